--- What a series does besides scattering: a queue that filled, a trend, two levels. Pure functions.
local fit = require "tidelock.fit"
local stats = require "tidelock.stats"

local detect = {}

--- The first launch that waits for a slot in a queue of that depth, where a launch costs the host
--- `launch` and runs for `kernel`: launch i waits until launch i - depth has run. nil: none waits.
---@param depth number launches that the queue holds
---@param launch number seconds, the mean: spikes count
---@param kernel number seconds
---@return integer?
function detect.predicted_knee(depth, launch, kernel)
  -- 1e-6: where it is a whole number, rounding is not one more
  return launch < kernel and math.ceil(depth / (1 - launch / kernel) - 1e-6) or nil
end

--- Where launches begin to wait for a slot: a step in their host times whose upper level is about
--- what an operation takes on the device.
---@param launches number[] host time of each launch, seconds
---@param device number? seconds of the device for an operation; nil: any step counts
---@param depth number? of the queue, for the prediction
---@return { first: integer, before: number, after: number, predicted: integer? }?
function detect.knee(launches, device, depth)
  local step = stats.step(launches)
  if not step then
    return nil
  end
  -- The means agree whatever the kernel's times do: each launch waits for one of them.
  local waiting = stats.mean(table.move(launches, step.first, #launches, 1, {}))
  if device and math.abs(waiting - device) > 0.25 * device then
    return nil
  end
  local mean = stats.mean(table.move(launches, 1, step.first - 1, 1, {}))
  step.predicted = depth and detect.predicted_knee(depth, mean, device or step.after)
  return step
end

local TREND_POINTS = 200 -- all pairs of these are 20,000

--- Medians of at most so many successive stretches.
local function thinned(values, most)
  local count, parts = math.min(#values, most), {}
  for i = 1, count do
    local first = (i - 1) * #values // count + 1
    parts[i] = stats.median(values, first, i * #values // count)
  end
  return parts
end

--- Mann and Kendall's statistic: how many of the pairs rise, less those that fall, in its own
--- standard deviations, with ties.
local function rising(values)
  local n, s, ties = #values, 0, {}
  for i = 1, n do
    ties[values[i]] = (ties[values[i]] or 0) + 1
    for j = 1, i - 1 do
      s = s + (values[i] > values[j] and 1 or values[i] < values[j] and -1 or 0)
    end
  end
  local variance = n * (n - 1) * (2 * n + 5)
  for _, t in pairs(ties) do
    variance = variance - t * (t - 1) * (2 * t + 5)
  end
  if variance <= 0 then
    return 0
  end
  return (s > 0 and s - 1 or s < 0 and s + 1 or 0) / math.sqrt(variance / 18)
end

--- Whether a series rises or falls: Mann and Kendall's Z, made smaller by what the correlation of
--- the values around the trend is worth, and what Theil and Sen's slope adds up to.
---@param values number[] in order of time
---@return { z: number, total: number }
function detect.trend(values)
  local y, x = thinned(values, TREND_POINTS), {}
  if #y < 3 then
    return { z = 0, total = 0 }
  end
  for i = 1, #y do
    x[i] = i
  end
  local slope, rest = fit.theil_sen(x, y).slope, {}
  for i = 1, #y do
    rest[i] = y[i] - slope * i
  end
  local rho = stats.correlation(rest)
  return { z = rising(y) / math.sqrt((1 + rho) / (1 - rho)), total = slope * #y }
end

--- The split of a series into a lower and an upper cluster that explains most of its variance.
---@param values number[]
---@return { share: number, gap: number, low: number, high: number, low_share: number }? modes
--- share: of the variance that lies between the two; gap: between their nearest values; low, high:
--- medians; low_share: of the values. nil: all are equal
function detect.modes(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local n, mean = #sorted, stats.mean(sorted)
  local variance, best, where, sum = 0, -1, nil, 0
  for i, value in ipairs(sorted) do
    variance = variance + (value - mean) ^ 2
    sum = sum + value - mean
    local between = i < n and sum ^ 2 / i + sum ^ 2 / (n - i) or -1
    if between > best then
      best, where = between, i
    end
  end
  if variance <= 0 then
    return nil
  end
  return { share = best / variance, gap = sorted[where + 1] - sorted[where],
    low = stats.median(sorted, 1, where), high = stats.median(sorted, where + 1, n),
    low_share = where / n }
end

return detect
