--- Records as figures for tidelock.plot: one kind of drawing for each kind of record. Axis labels
--- name the clock and the unit; ticks carry scaled units.
local axis = require "tidelock.report.axis"
local clocks = require "tidelock.report.clocks"
local plot = require "tidelock.plot"
local runs = require "tidelock.report.runs"
local tables = require "tidelock.report.tables"
local units = require "tidelock.units"

local figure = {}

--- "matmul on cuda:0 (NVIDIA H200), policy cold".
local function title_of(bench)
  local device = tables.device_of(bench)
  return bench.name .. (device and " on " .. device or "")
    .. (bench.policy and bench.policy.name and ", policy " .. bench.policy.name or "")
end

--- Least and greatest of the numbers in some columns of points; NaN and infinities apart.
local function range_of(points, columns)
  local low, high = math.huge, -math.huge
  for _, point in ipairs(points) do
    for _, column in ipairs(columns) do
      local value = point[column]
      if value == value and math.abs(value) < math.huge then
        low, high = math.min(low, value), math.max(high, value)
      end
    end
  end
  return low, high
end

local function axis_of(points, columns, options)
  local low, high = range_of(points, columns)
  return axis.of(low, high, options)
end

local seconds_log = { kind = "seconds", log = true }

-- ---- launch cost against launch number --------------------------------------------------------

local function launches_figure(bench)
  local points, x, y = plot.numbered(bench.launches)
  local lines = {}
  if bench.knee then
    lines[1] = { x = bench.knee.first, label = ("from launch %d on each waits for a slot")
      :format(bench.knee.first) }
  end
  return { title = "Launch cost: " .. title_of(bench), x = x, y = y, lines = lines,
    xlabel = "launch number", ylabel = "enqueue time of each launch, seconds",
    series = { { style = "dots", points = points } } }
end

-- ---- distribution of samples ------------------------------------------------------------------

--- The headline's samples, per operation, in order of size; nil where there are none.
local function sorted_samples(bench)
  local samples = bench.samples or {}
  local column, sorted = samples[bench.headline], {}
  for i, value in ipairs(column or {}) do
    if value and value == value and math.abs(value) < math.huge then
      sorted[#sorted + 1] = value / (samples.ops and samples.ops[i] or 1)
    end
  end
  table.sort(sorted)
  return #sorted > 0 and sorted or nil
end

--- How many bars: as wide as Freedman and Diaconis propose (2 IQR / n^(1/3); On the histogram as a
--- density estimator, 1981), but 5 to 60.
local function bar_count(values)
  local n = #values
  local iqr = values[math.ceil(0.75 * n)] - values[math.ceil(0.25 * n)]
  local width = 2 * iqr / n ^ (1 / 3)
  local range = values[n] - values[1]
  return width > 0 and math.max(5, math.min(60, math.ceil(range / width))) or range > 0 and 20 or 1
end

--- Bars { x, y, low x, high x, low y, high y } of values that are in order.
local function bars_of(values, back)
  local count = bar_count(values)
  local low, range = values[1], values[#values] - values[1]
  if range == 0 then
    low, range = low - 0.005 * math.abs(low), 0.01 * math.abs(low)
  end
  local tally = {}
  for i = 1, count do
    tally[i] = 0
  end
  for _, value in ipairs(values) do
    local bar = math.min(count, (value - low) / range * count // 1 + 1)
    tally[math.tointeger(bar)] = tally[math.tointeger(bar)] + 1
  end
  local bars = {}
  for i, number in ipairs(tally) do
    if number > 0 then
      local from, to = back(low + (i - 1) * range / count), back(low + i * range / count)
      bars[#bars + 1] = { (from + to) / 2, number, from, to, 0, number }
    end
  end
  return bars
end

local function same(value)
  return value
end

local function counts_axis(bars)
  local counts = axis.of(0, select(2, range_of(bars, { 2 })), { kind = "number" })
  counts.low = 0
  return counts
end

--- A histogram; on a logarithmic axis where the samples span more than a decade.
local function distribution_figure(bench)
  local values = sorted_samples(bench)
  if not values then
    return nil, "the record has no samples of its headline to draw"
  end
  local wide = values[1] > 0 and values[#values] / values[1] > 10
  if wide then
    for i, value in ipairs(values) do
      values[i] = math.log(value)
    end
  end
  local bars = bars_of(values, wide and math.exp or same)
  local headline = clocks.headline(bench)
  local interval = headline.interval
  return { title = "Distribution: " .. title_of(bench),
    x = axis_of(bars, { 3, 4 }, { kind = "seconds", log = wide }),
    y = counts_axis(bars),
    xlabel = headline.name .. " of an operation, seconds",
    ylabel = ("samples (of %d)"):format(#values), series = { { style = "bars", points = bars } },
    lines = { { x = headline.value, label = headline.name:find(",") and headline.name
      or "median " .. units.measured(headline.value, interval) } },
    bands = interval and { { x = { interval.low, interval.high } } } }
end

local function bench_figure(bench)
  if bench.launches and #bench.launches > 0 then
    return launches_figure(bench)
  end
  return distribution_figure(bench)
end

-- ---- boxes of a comparison --------------------------------------------------------------------

local function compare_figure(record)
  local boxes, medians = {}, {}
  for i, bench in ipairs(record.results) do
    local s = bench[bench.headline]
    if not (s.q1 and s.q3 and s.min and s.max) then
      return nil, ("'%s' has no quartiles to draw"):format(bench.name)
    end
    boxes[i], medians[i] = { i, s.q1, s.min, s.max, s.q3 }, { i, s.median }
  end
  if #boxes == 0 then
    return nil, "the comparison has no results to draw"
  end
  local first = record.results[1]
  local device = tables.device_of(first)
  return { title = "Least, quartiles, median, greatest" .. (device and " on " .. device or ""),
    x = axis.named(record.names), y = axis_of(boxes, { 3, 4 }, seconds_log), xlabel = "variant",
    ylabel = clocks.names[first.headline] .. " of an operation, seconds",
    series = { { style = "boxes", points = boxes }, { style = "medians", points = medians } } }
end

-- ---- time against size ------------------------------------------------------------------------

--- The place of the first axis whose values are all numbers.
local function numeric_axis(record)
  for i, axis_entry in ipairs(record.axes) do
    local numeric = #axis_entry[2] > 0
    for _, value in ipairs(axis_entry[2]) do
      numeric = numeric and type(value) == "number"
    end
    if numeric then
      return i
    end
  end
end

--- What tells a run's line from the others: its name, and its place on the other axes.
local function line_name(run, size)
  local parts = { run.bench.name }
  for i, place in ipairs(run.at) do
    if i ~= size then
      parts[#parts + 1] = place[1] .. "=" .. runs.text_of(place[2])
    end
  end
  return table.concat(parts, ", ")
end

--- A line of { size, time, low, high } for each of the names, in the order of the points.
local function lines_of(list, size)
  local series, by_name, points = {}, {}, {}
  for _, run in ipairs(list) do
    if run.bench then
      local name = line_name(run, size)
      if not by_name[name] then
        by_name[name] = { style = "errors", title = name, points = {} }
        series[#series + 1] = by_name[name]
      end
      local headline = clocks.headline(run.bench)
      local interval = headline.interval or { low = headline.value, high = headline.value }
      local point = { run.at[size][2], headline.value, interval.low, interval.high }
      table.insert(by_name[name].points, point)
      points[#points + 1] = point
    end
  end
  return series, points
end

local function sweep_figure(record)
  local size = numeric_axis(record)
  if not size then
    return nil, "the sweep has no axis of numbers to draw against"
  end
  local list = runs.of(record)
  local series, points = lines_of(list, size)
  if #points == 0 then
    return nil, "every point of the sweep was skipped"
  end
  local bench
  for _, run in ipairs(list) do
    bench = bench or run.bench
  end
  local device = tables.device_of(bench)
  return { title = ("Time against %s%s%s"):format(record.axes[size][1],
      device and " on " .. device or "",
      bench.policy and bench.policy.name and ", policy " .. bench.policy.name or ""),
    x = axis.at(axis_of(points, { 1 }, { kind = "number", log = true }), record.axes[size][2]),
    y = axis_of(points, { 3, 4 }, seconds_log), xlabel = record.axes[size][1],
    ylabel = clocks.headline(bench).name .. " of an operation, seconds", series = series }
end

-- ---- calibration, and ratios to an earlier run ------------------------------------------------

--- Spins of length 0 have no place on a logarithmic axis, nor have measured times below it.
local function calibration_figure(record)
  local series, all = {}, {}
  for _, policy in ipairs(record.policies) do
    local points = {}
    for _, point in ipairs(policy.points or {}) do
      if point.spin > 0 and point.measured > 0 then
        points[#points + 1] = { point.spin, point.measured }
        all[#all + 1] = points[#points]
      end
    end
    if #points > 0 then
      local name = type(policy.policy) == "table" and policy.policy.name or policy.policy
      series[#series + 1] = { style = "points", title = name, points = points }
    end
  end
  if #all == 0 then
    return nil, "the calibration has no points to draw"
  end
  local low, high = range_of(all, { 1 })
  series[#series + 1] = { style = "line", title = "the truth", points = { { low, low },
    { high, high } } }
  local device = tables.device_of(record)
  return { title = "What each policy measures of a spin" .. (device and " on " .. device or ""),
    x = axis_of(all, { 1 }, seconds_log), y = axis_of(all, { 1, 2 }, seconds_log),
    xlabel = "the spin's own time, seconds", ylabel = "measured by the policy's clock, seconds",
    series = series }
end

local function against_figure(record)
  local points, names = {}, {}
  for _, ratio in ipairs(record.ratios) do
    if ratio.ratio then
      local ci = ratio.ci or { low = ratio.ratio, high = ratio.ratio }
      names[#names + 1] = ratio.name
      points[#points + 1] = { #names, ratio.ratio, ci.low, ci.high }
    end
  end
  if #points == 0 then
    return nil, "nothing could be compared"
  end
  local low, high = range_of(points, { 3, 4 })
  return { title = "Against an earlier run, not interleaved", x = axis.named(names),
    y = axis.of(math.min(low, 1 - record.margin), math.max(high, 1 + record.margin),
      { kind = "number" }), xlabel = "bench", ylabel = "time, new / old (95 % interval)",
    lines = { { y = 1 } }, bands = { { y = { 1 - record.margin, 1 + record.margin } } },
    series = { { style = "ranges", points = points } } }
end

local kinds = { bench = bench_figure, compare = compare_figure, sweep = sweep_figure,
  calibration = calibration_figure, against = against_figure }

--- The figure of a record; nil and the reason where it has nothing to draw.
---@param record table
---@return tidelock.figure?
---@return string? reason
function figure.of(record)
  return kinds[record.kind](record)
end

return figure
