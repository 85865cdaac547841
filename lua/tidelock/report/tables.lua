--- Records as tables of text, which print aligned and as Markdown: { title, header, rows, notes }.
local clocks = require "tidelock.report.clocks"
local runs = require "tidelock.report.runs"
local units = require "tidelock.units"

local tables = {}

--- "cuda:0 (NVIDIA H200)".
---@param record table
---@return string? device nil where the record does not tell
function tables.device_of(record)
  local environment = record.environment or {}
  if environment.device and environment.name then
    return ("%s (%s)"):format(environment.device, environment.name)
  end
  return environment.device or environment.name
end

--- The codes of the warnings, once each.
local function codes_of(record)
  local codes, seen = {}, {}
  for _, warning in ipairs(record.warnings or {}) do
    if not seen[warning.code] then
      seen[warning.code] = true
      codes[#codes + 1] = warning.code
    end
  end
  return table.concat(codes, " ")
end

--- The name that a function gives to all benches alike, or nil.
local function in_common(list, name_of)
  local common
  for _, run in ipairs(list) do
    if run.bench then
      local name = name_of(run.bench)
      if common and common ~= name then
        return nil
      end
      common = name
    end
  end
  return common
end

local function policy_of(bench)
  return bench.policy and bench.policy.name or ""
end

local function clock_of(bench)
  return clocks.headline(bench).name
end

--- "on cuda:0 (NVIDIA H200), policy cold", as far as all benches have it in common.
local function setting_of(list)
  local device = in_common(list, tables.device_of)
  local policy = in_common(list, policy_of)
  return (device and " on " .. device or "")
    .. (policy and policy ~= "" and ", policy " .. policy or "")
end

local function ratio_text(ratio, ci)
  if not ci then
    return ("%.3f"):format(ratio), ""
  end
  return ("%.3f"):format(ratio), ("%.3f to %.3f"):format(ci.low, ci.high)
end

-- ---- columns of benches ---------------------------------------------------------------------

local function median_text(bench, key)
  local value = bench[key] and units.measured(bench[key].median)
  return value or "not measured"
end

--- Each column: its title, and its text for a run; columns that stay empty are left out.
local columns = {
  { "name", function(run) return run.bench and run.bench.name end, when = "name" },
  { "device", function(run) return run.bench and tables.device_of(run.bench) end, when = "device" },
  { "policy", function(run) return run.bench and policy_of(run.bench) end, when = "policy" },
  { "clock", function(run) return run.bench and clock_of(run.bench) end, when = "clock" },
  { "time", function(run)
    return run.bench and clocks.measured(run.bench) or "skipped: " .. run.skipped
  end },
  { "95 % interval", function(run) return run.bench and select(2, clocks.measured(run.bench)) end },
  { "corrected", function(run)
    return run.bench and run.bench.corrected and units.measured(run.bench.corrected)
  end },
  { "enqueue time", function(run)
    return run.bench and run.bench.headline ~= "enqueue" and median_text(run.bench, "enqueue")
  end },
  { "device time", function(run)
    return run.bench and run.bench.headline == "enqueue" and median_text(run.bench, "device")
  end },
  { "wall time, synchronized", function(run)
    return run.bench and run.bench.headline ~= "wall" and median_text(run.bench, "wall")
  end },
  { "FLOP/s", function(run) return run.bench and clocks.rate(run.bench, "flops") end },
  { "B/s", function(run) return run.bench and clocks.rate(run.bench, "bytes") end },
  { "warnings", function(run) return run.bench and codes_of(run.bench) end },
}

--- Takes the columns that have something to say; `common` are those that the title says.
local function fill_columns(block, list, common)
  for _, column in ipairs(columns) do
    local cells, empty = {}, true
    for i, run in ipairs(list) do
      cells[i] = column[2](run) or ""
      empty = empty and cells[i] == ""
    end
    if not empty and not common[column.when] then
      block.header[#block.header + 1] = column[1] == "time" and common.clock or column[1]
      for i, cell in ipairs(cells) do
        table.insert(block.rows[i], cell)
      end
    end
  end
end

--- A table of any benches, each with all that is its own.
---@param list tidelock.run[]
---@return table block
function tables.of_runs(list)
  local block = { title = "", header = {}, rows = {}, notes = {} }
  for i = 1, #list do
    block.rows[i] = {}
  end
  fill_columns(block, list, {})
  return block
end

-- ---- one table for each kind ----------------------------------------------------------------

local function sweep_table(record)
  local list = runs.of(record)
  local block = { header = {}, rows = {}, notes = {} }
  local names = {}
  for i, axis in ipairs(record.axes) do
    names[i], block.header[i] = axis[1], axis[1]
  end
  for i, run in ipairs(list) do
    block.rows[i] = {}
    for j, place in ipairs(run.at) do
      block.rows[i][j] = runs.text_of(place[2])
    end
  end
  local name = in_common(list, function(bench) return bench.name end)
  block.title = ("sweep%s over %s%s"):format(name and " of " .. name or "",
    table.concat(names, ", "), setting_of(list))
  fill_columns(block, list, { name = name, device = in_common(list, tables.device_of),
    policy = in_common(list, policy_of), clock = in_common(list, clock_of) })
  return block
end

--- The ratio of each result to the first; the list may begin with the first's own.
local function ratios_of(record)
  local skip = #record.results - #record.ratios
  return function(i)
    return i > 1 and record.ratios[i - skip] or nil
  end
end

local function verdict_text(ratio)
  if ratio.verdict == "UNRESOLVED" and ratio.needed then
    return ("UNRESOLVED (needs about %.0f rounds)"):format(ratio.needed)
  end
  return ratio.verdict
end

local function add_column(block, title, cells)
  block.header[#block.header + 1] = title
  for i, row in ipairs(block.rows) do
    row[#row + 1] = cells[i]
  end
end

local function add_ratios(block, record)
  local ratio_to_first = ratios_of(record)
  local ratios, intervals, verdicts = { "1" }, { "" }, { "" }
  for i = 2, #block.rows do
    local ratio = ratio_to_first(i)
    ratios[i], intervals[i] = ratio_text(ratio.ratio, ratio.ci)
    verdicts[i] = verdict_text(ratio)
  end
  add_column(block, "ratio", ratios)
  add_column(block, "95 % interval", intervals)
  add_column(block, "verdict", verdicts)
end

local function compare_table(record)
  local list = runs.of(record)
  local clock = in_common(list, clock_of)
  local block = { header = {}, rows = {}, notes = {} }
  block.title = ("comparison%s, %s rounds; ratios of %s to '%s'"):format(setting_of(list),
    record.rounds or "?", clock or "time", record.names[1])
  for i = 1, #list do
    block.rows[i] = {}
  end
  add_column(block, "name", record.names)
  fill_columns(block, list, { name = true, device = in_common(list, tables.device_of),
    policy = in_common(list, policy_of), clock = clock })
  add_ratios(block, record)
  if record.floor then
    block.notes[1] = ("noise floor: '%s' against itself %s (%s)"):format(record.names[1],
      ratio_text(record.floor.ratio, record.floor.ci))
  end
  return block
end

local function calibration_table(record)
  local device = tables.device_of(record)
  local block = { title = "calibration" .. (device and " on " .. device or "")
    .. ": measured = bias + scale * spin", rows = {}, notes = {},
    header = { "policy", "bias", "scale", "floor", "residual", "spins" } }
  for i, policy in ipairs(record.policies) do
    local name = type(policy.policy) == "table" and policy.policy.name or policy.policy
    block.rows[i] = { name, policy.bias and units.seconds(policy.bias) or "",
      policy.scale and ("%.4f"):format(policy.scale) or "",
      policy.floor and units.seconds(policy.floor) or "none",
      policy.residual and units.seconds(policy.residual) or "",
      tostring(#(policy.points or {})) }
  end
  return block
end

local function against_table(record)
  local block = { rows = {}, notes = {}, title = ("against an earlier run, not interleaved: new / "
    .. "old, margin %s"):format(units.percent(record.margin)),
    header = { "name", "policy", "clock", "new", "old", "ratio", "95 % interval", "verdict" } }
  for i, ratio in ipairs(record.ratios) do
    local row = { ratio.name, ratio.policy or "", ratio.clock or "", "", "", "", "",
      ratio.reason and ("%s: %s"):format(ratio.verdict, ratio.reason) or ratio.verdict }
    if ratio.ratio then
      row[4], row[5] = units.measured(ratio.new), units.measured(ratio.old)
      row[6], row[7] = ratio_text(ratio.ratio, ratio.ci)
    end
    block.rows[i] = row
  end
  for _, change in ipairs(record.changed) do
    block.notes[#block.notes + 1] = "changed meanwhile: " .. change
  end
  return block
end

local kinds = {
  bench = function(record) return tables.of_runs(runs.of(record)) end, sweep = sweep_table,
  compare = compare_table, calibration = calibration_table, against = against_table,
}

--- The table of a record.
---@param record table
---@return { title: string, header: string[], rows: string[][], notes: string[] } block
function tables.of(record)
  return kinds[record.kind](record)
end

-- ---- rendering ------------------------------------------------------------------------------

--- Characters, not bytes; what is not UTF-8 counts by bytes.
local function width_of(text)
  return utf8.len(text) or #text
end

local function pad(text, width)
  return text .. (" "):rep(width - width_of(text))
end

--- Aligned lines, two spaces in front.
---@param block table
---@return string[] lines
function tables.lines(block)
  local widths = {}
  for _, row in ipairs { block.header, table.unpack(block.rows) } do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, width_of(cell))
    end
  end
  local lines = {}
  for _, row in ipairs { block.header, table.unpack(block.rows) } do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = pad(cell, widths[i])
    end
    lines[#lines + 1] = ("  " .. table.concat(cells, "  ")):gsub("%s+$", "")
  end
  return lines
end

local function markdown_row(cells)
  local escaped = {}
  for i, cell in ipairs(cells) do
    escaped[i] = cell:gsub("[|\\]", "\\%0"):gsub("%s*\n%s*", " ")
  end
  return "| " .. table.concat(escaped, " | ") .. " |"
end

--- A table as GitHub's Markdown has it.
---@param block table
---@return string
function tables.markdown(block)
  local lines = {}
  if block.title ~= "" then
    lines = { block.title, "" }
  end
  lines[#lines + 1] = markdown_row(block.header)
  lines[#lines + 1] = "|" .. (" --- |"):rep(#block.header)
  for _, row in ipairs(block.rows) do
    lines[#lines + 1] = markdown_row(row)
  end
  for _, note in ipairs(block.notes) do
    lines[#lines + 1] = ""
    lines[#lines + 1] = note
  end
  return table.concat(lines, "\n") .. "\n"
end

return tables
