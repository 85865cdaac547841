--- What a record prints as: a short block for a bench, a table for the other kinds; then what was
--- wrong.
local clocks = require "tidelock.report.clocks"
local runs = require "tidelock.report.runs"
local tables = require "tidelock.report.tables"
local units = require "tidelock.units"

local text = {}

local MAX_WARNINGS = 3 -- printed, beside the errors; the record holds all

-- ---- warnings -------------------------------------------------------------------------------

--- "bench.lua:3: ", however the place was written.
local function place_of(where)
  where = (where or ""):gsub(":? *$", "")
  return where ~= "" and where .. ": " or ""
end

local function add_warning(lines, warning, of)
  lines[#lines + 1] = ("  %s%s %s%s"):format(warning.code, of, place_of(warning.where),
    warning.message)
  local parts = {}
  if warning.cause then
    parts[#parts + 1] = "likely cause: " .. warning.cause
  end
  if warning.action then
    parts[#parts + 1] = "what to do: " .. warning.action
  end
  if #parts > 0 then
    lines[#lines + 1] = "    " .. table.concat(parts, "; ")
  end
end

--- The warnings of a record and of the benches in it, each with whose it is.
local function all_warnings(record)
  local all = {}
  for _, warning in ipairs(record.warnings or {}) do
    all[#all + 1] = { warning, "" }
  end
  for _, run in ipairs(record.kind ~= "bench" and runs.of(record) or {}) do
    local place = run.label ~= "" and ", " .. run.label or ""
    for _, warning in ipairs(run.bench and run.bench.warnings or {}) do
      all[#all + 1] = { warning, (" (%s%s)"):format(run.bench.name, place) }
    end
  end
  return all
end

--- Errors first, each of them; then three of the others, in their own order; then a count.
local function add_warnings(lines, record)
  local others = {}
  for _, entry in ipairs(all_warnings(record)) do
    if entry[1].code:sub(1, 2) == "E-" then
      add_warning(lines, entry[1], entry[2])
    else
      others[#others + 1] = entry
    end
  end
  for i = 1, math.min(#others, MAX_WARNINGS) do
    add_warning(lines, others[i][1], others[i][2])
  end
  if #others > MAX_WARNINGS then
    lines[#lines + 1] = ("  and %d more: see .warnings"):format(#others - MAX_WARNINGS)
  end
end

-- ---- a bench --------------------------------------------------------------------------------

local function add_clock(lines, name, value, interval, rest)
  local line = ("  %-25s %-12s"):format(name, value)
  local evidence = {}
  if interval then
    evidence[1] = "95 % interval " .. interval
  end
  if rest ~= "" then
    evidence[#evidence + 1] = rest
  end
  line = #evidence > 0 and ("%s (%s)"):format(line, table.concat(evidence, ", ")) or line
  lines[#lines + 1] = (line:gsub("%s+$", ""))
end

--- "n = 47, outliers 3, severe 1".
local function samples_text(statistics)
  local parts = {}
  if statistics.n then
    parts[1] = "n = " .. statistics.n
  end
  local outliers = (statistics.mild or 0) + (statistics.severe or 0)
  if outliers > 0 then
    parts[#parts + 1] = ("outliers %d, severe %d"):format(outliers, statistics.severe or 0)
  end
  return table.concat(parts, ", ")
end

local function add_clocks(lines, bench)
  local headline = clocks.headline(bench)
  local value, interval = clocks.measured(bench)
  add_clock(lines, headline.name, value, interval, samples_text(headline.statistics))
  for _, clock in ipairs(clocks.list) do
    local statistics = bench[clock.key]
    if clock.key ~= bench.headline and statistics then
      value, interval = units.measured(statistics.median, statistics.ci)
      add_clock(lines, clock.name, value, interval, "")
    elseif clock.key == "device" and not statistics then
      add_clock(lines, clock.name, "not measured", nil, "")
    end
  end
end

local function add_rates(lines, bench)
  local rates = {}
  for _, field in ipairs { "flops", "bytes" } do
    rates[#rates + 1] = clocks.rate(bench, field)
  end
  if #rates > 0 then
    lines[#lines + 1] = ("  %s [%s]"):format(table.concat(rates, ", "),
      clocks.names[clocks.of_work(bench)])
  elseif (bench.flops or bench.bytes) and not clocks.of_work(bench) then
    lines[#lines + 1] = "  no rate: no clock of this record saw the work being done"
  end
end

--- Where launches began to wait, unless a warning says it.
local function add_knee(lines, bench)
  local knee = bench.knee
  for _, warning in ipairs(bench.warnings or {}) do
    knee = warning.code ~= "W-BACKPRESSURE" and knee or nil
  end
  if knee then
    lines[#lines + 1] = ("  launches 1-%d cost %s each; from %d on each waits %s for a free slot "
      .. "[enqueue time]%s"):format(knee.first - 1, units.seconds(knee.before), knee.first,
      units.seconds(knee.after),
      knee.predicted and (", predicted from %.0f"):format(knee.predicted) or "")
  end
end

--- What calibration says of the policy, and the corrected value beside the raw one.
local function add_calibration(lines, bench)
  local calibration = bench.calibration
  if not calibration then
    return
  end
  lines[#lines + 1] = ("  policy floor %s, bias %s%s, scale %.4f%s"):format(
    calibration.floor and units.seconds(calibration.floor) or "unknown",
    calibration.bias >= 0 and "+" or "", units.seconds(calibration.bias), calibration.scale,
    bench.corrected and "; corrected " .. units.measured(bench.corrected) or "")
end

--- The policy's fields that say what was measured, and what measuring cost.
local function add_policy(lines, bench)
  local policy, parts = bench.policy or {}, {}
  for _, field in ipairs { "clock", "isolation", "k", "window", "cache", "duty" } do
    if policy[field] ~= nil then
      parts[#parts + 1] = ("%s %s"):format(field, policy[field])
    end
  end
  if policy.block then
    parts[#parts + 1] = "blocked until all is queued"
  end
  if #parts > 0 then
    lines[#lines + 1] = "  " .. table.concat(parts, ", ")
  end
  if bench.call_cost then
    lines[#lines + 1] = ("  an empty call costs %s%s"):format(units.seconds(bench.call_cost),
      bench.setup and "; setup and warm-up took " .. units.seconds(bench.setup) or "")
  end
end

local function bench_lines(bench)
  local device = tables.device_of(bench)
  local policy = bench.policy and bench.policy.name
  local lines = { ("%s%s%s%s"):format(bench.name, device and " on " .. device or "",
    policy and ", policy " .. policy or "",
    bench.where and " [" .. place_of(bench.where):gsub(": $", "") .. "]" or "") }
  add_clocks(lines, bench)
  add_rates(lines, bench)
  add_knee(lines, bench)
  add_calibration(lines, bench)
  add_policy(lines, bench)
  return lines
end

-- ---- the other kinds ------------------------------------------------------------------------

local function table_lines(record)
  local block = tables.of(record)
  local lines = tables.lines(block)
  table.insert(lines, 1, block.title)
  for _, note in ipairs(block.notes) do
    lines[#lines + 1] = "  " .. note
  end
  return lines
end

local endings = {
  against = function(lines, record)
    lines[#lines + 1] = ("  %s; exit status %d"):format(record.summary, record.status)
  end,
}

--- A record as text, without a line end behind the last line.
---@param record table
---@return string
function text.of(record)
  local lines = record.kind == "bench" and bench_lines(record) or table_lines(record)
  add_warnings(lines, record)
  if endings[record.kind] then
    endings[record.kind](lines, record)
  end
  return table.concat(lines, "\n")
end

return text
