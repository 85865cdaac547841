--- Markdown: one table for all benches, one for each record of another kind, each followed by what
--- was wrong.
local runs = require "tidelock.report.runs"
local tables = require "tidelock.report.tables"

--- "- E-WRONG (matmul): message", one line each.
local function add_warnings(parts, record, name)
  for _, warning in ipairs(record.warnings or {}) do
    local message = warning.message:gsub("%s*\n%s*", " ")
    parts[#parts + 1] = ("- `%s`%s: %s\n"):format(warning.code, name and " (" .. name .. ")" or "",
      message)
  end
end

local function block_of(record)
  local parts = { tables.markdown(tables.of(record)) }
  local warnings = {}
  add_warnings(warnings, record)
  for _, run in ipairs(runs.of(record)) do
    if run.bench then
      local place = run.label ~= "" and ", " .. run.label or ""
      add_warnings(warnings, run.bench, run.bench.name .. place)
    end
  end
  parts[2] = #warnings > 0 and "\n" .. table.concat(warnings) or ""
  return table.concat(parts)
end

return {
  name = "markdown",

  --- Keeps benches for the one table; the others are written as they come.
  row = function(state, record)
    if record.kind == "bench" then
      state.benches = state.benches or {}
      table.insert(state.benches, record)
      return ""
    end
    local text = (state.written and "\n" or "") .. block_of(record)
    state.written = true
    return text
  end,

  finish = function(state)
    if not state.benches then
      return ""
    end
    local list, warnings = {}, {}
    for _, bench in ipairs(state.benches) do
      list[#list + 1] = runs.of(bench)[1]
      add_warnings(warnings, bench, bench.name)
    end
    return (state.written and "\n" or "") .. tables.markdown(tables.of_runs(list))
      .. (#warnings > 0 and "\n" .. table.concat(warnings) or "")
  end,
}
