--- The clocks of a record: their printed names, and the figures that are taken from them.
local units = require "tidelock.units"

local clocks = {}

--- In the order in which they are printed, the headline apart.
clocks.list = {
  { key = "device", name = "device time" },
  { key = "slope", name = "slope of wall times" },
  { key = "enqueue", name = "enqueue time" },
  { key = "wall", name = "wall time, synchronized" },
  { key = "sync", name = "time in synchronize" },
}

clocks.names = {}
for _, clock in ipairs(clocks.list) do
  clocks.names[clock.key] = clock.name
end

local centers = { mean = "mean", min = "minimum" }

--- What a record says first. The interval is that of the median; with the mean or the minimum for
--- an estimator there is none.
---@param bench table a record of kind "bench"
---@return { key: string, name: string, value: number, interval: table?, statistics: table }
function clocks.headline(bench)
  local key = bench.headline
  local statistics = bench[key]
  local center = bench.policy and bench.policy.center or "median"
  local word = centers[center]
  if not word then
    return { key = key, name = clocks.names[key], value = statistics.median,
      interval = statistics.ci, statistics = statistics }
  end
  return { key = key, name = clocks.names[key] .. ", " .. word, value = statistics[center],
    statistics = statistics }
end

local function has_warning(bench, code)
  for _, warning in ipairs(bench.warnings or {}) do
    if warning.code == code then
      return true
    end
  end
  return false
end

--- The headline as text, in parentheses where measuring it costs more than it does (W-OVERHEAD).
---@param bench table
---@return string value, string? interval
function clocks.measured(bench)
  local headline = clocks.headline(bench)
  local value, interval = units.measured(headline.value, headline.interval)
  return has_warning(bench, "W-OVERHEAD") and "(" .. value .. ")" or value, interval
end

local work_clocks = { device = true, slope = true, wall = true }

--- The clock that rates are taken from: the headline, where that one sees the work being done;
--- else the device's, else the wall clock. Work by enqueue time is the classic mistake.
---@param bench table
---@return string? key
function clocks.of_work(bench)
  return work_clocks[bench.headline] and bench.headline
    or bench.device and "device" or bench.wall and "wall" or nil
end

--- Work by time, as text: "51.2 TFLOP/s"; nil where no work was declared or no clock saw it.
---@param bench table
---@param field "flops" | "bytes"
---@return string? rate
function clocks.rate(bench, field)
  local key = clocks.of_work(bench)
  if not bench[field] or not key then
    return nil
  end
  local seconds = key == bench.headline and clocks.headline(bench).value or bench[key].median
  if seconds ~= seconds or seconds <= 0 then
    return nil
  end
  return units.rate(bench[field] / seconds, field == "flops" and "FLOP/s" or "B/s")
end

return clocks
