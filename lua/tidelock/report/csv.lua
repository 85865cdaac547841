--- CSV (RFC 4180, but with plain line ends): one row for each sample; of a calibration one for each
--- point, of a comparison with an earlier run one for each ratio. Headers carry the units; a cell
--- is empty where nothing was measured. Numbers are exact.
local json = require "tidelock.json"
local runs = require "tidelock.report.runs"
local tables = require "tidelock.report.tables"

--- The columns of a sample: header, column of the record. Times are of the whole sample.
local sample_columns = {
  { "start_seconds", "start" }, { "enqueue_seconds", "enqueue" }, { "device_seconds", "device" },
  { "sync_seconds", "sync" }, { "wall_seconds", "wall" }, { "inflight_launches", "inflight" },
  { "slots", "slots" }, { "operations", "ops" },
}

--- A cell: numbers exact, text in quotes where it needs them, nothing for nil and false.
local function cell(value)
  if value == nil or value == false then
    return ""
  elseif math.type(value) == "float" and (value ~= value or math.abs(value) == math.huge) then
    return value ~= value and "nan" or value > 0 and "inf" or "-inf"
  end
  local text = type(value) == "number" and json.number(value) or tostring(value)
  if text:find('[,"\r\n]') or text:find("^%s") or text:find("%s$") then
    return '"' .. text:gsub('"', '""') .. '"'
  end
  return text
end

--- A line of `count` values, nil among them.
local function line(values, count)
  local cells = {}
  for i = 1, count do
    cells[i] = cell(values[i])
  end
  return table.concat(cells, ",") .. "\n"
end

-- ---- what each kind of record has for a header and for rows -----------------------------------

local function samples_header(record)
  local header = { "name", "policy", "device" }
  for _, axis in ipairs(record.axes or {}) do
    header[#header + 1] = axis[1]
  end
  header[#header + 1] = "sample"
  for _, column in ipairs(sample_columns) do
    header[#header + 1] = column[1]
  end
  return header
end

--- How many samples there are: the longest column.
local function sample_count(samples)
  local count = 0
  for _, column in ipairs(sample_columns) do
    count = math.max(count, #(samples[column[2]] or {}))
  end
  return count
end

local function bench_rows(run, add)
  local bench, samples = run.bench, run.bench.samples or {}
  for i = 1, sample_count(samples) do
    local row = { bench.name, bench.policy and bench.policy.name, tables.device_of(bench) }
    for j, place in ipairs(run.at) do
      row[3 + j] = place[2]
    end
    local behind = 3 + #run.at
    row[behind + 1] = i
    for j, column in ipairs(sample_columns) do
      row[behind + 1 + j] = (samples[column[2]] or {})[i]
    end
    add(row)
  end
end

local function samples_rows(record, add)
  for _, run in ipairs(runs.of(record)) do
    if run.bench then
      bench_rows(run, add)
    end
  end
end

local function calibration_rows(record, add)
  for _, policy in ipairs(record.policies) do
    local name = type(policy.policy) == "table" and policy.policy.name or policy.policy
    for _, point in ipairs(policy.points or {}) do
      add { name, tables.device_of(record), point.spin, point.measured }
    end
  end
end

local function against_rows(record, add)
  for _, ratio in ipairs(record.ratios) do
    local ci = ratio.ci or {}
    add { ratio.name, ratio.policy, ratio.clock, ratio.new, ratio.old, ratio.ratio, ci.low, ci.high,
      ratio.verdict, ratio.reason }
  end
end

local function fixed(...)
  local header = { ... }
  return function()
    return header
  end
end

local samples = { header = samples_header, rows = samples_rows }
local kinds = {
  bench = samples, compare = samples, sweep = samples,
  calibration = { header = fixed("policy", "device", "spin_seconds", "measured_seconds"),
    rows = calibration_rows },
  against = { header = fixed("name", "policy", "clock", "new_seconds", "old_seconds", "ratio",
    "ratio_low", "ratio_high", "verdict", "reason"), rows = against_rows },
}

return {
  name = "csv",
  appends = true,

  --- Rows of one record, behind the header where that is not there yet. `state.header` is the one
  --- of the file that is appended to, or of the record before; all must have the same columns.
  row = function(state, record)
    local kind = kinds[record.kind]
    local header = kind.header(record)
    local lines = { line(header, #header) }
    local wanted = lines[1]:sub(1, -2)
    if state.header and state.header:gsub("\r$", "") ~= wanted then
      return nil, ("its columns are %s; this record's are %s"):format(state.header, wanted)
    elseif state.header then
      lines = {}
    end
    state.header = wanted
    kind.rows(record, function(row)
      lines[#lines + 1] = line(row, #header)
    end)
    return table.concat(lines)
  end,

  finish = function()
    return ""
  end,
}
