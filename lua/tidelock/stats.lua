--- Statistics of measured series. Pure functions; values in time order. Nothing is ever removed
--- from a series: outliers are counted and their places told.
local knee = require "tidelock.knee"
local order = require "tidelock.order"

local stats = { median = order.median, step = knee.step }

--- The lag-1 autocorrelation. Values beyond the severe fences are moved to the fence for this one
--- estimate: a single spike of 100 standard deviations is the whole variance, and would hide that
--- all the others are correlated.
---@param values number[]
---@param fences { low: number, high: number }? default: those of the values
---@return number -1 to 1; 0 for a constant series
function stats.autocorrelation(values, fences)
  if not fences then
    local sorted = order.sorted(values)
    fences = order.fences(order.quantile(sorted, 0.25), order.quantile(sorted, 0.5),
      order.quantile(sorted, 0.75)).severe
  end
  local low, high = fences.low, fences.high
  local clipped, sum, origin = {}, 0, values[1] -- equal values differ from an origin by nothing,
  for i, value in ipairs(values) do -- and from a rounded mean by something
    value = (value < low and low or value > high and high or value) - origin
    clipped[i], sum = value, sum + value
  end
  local mean, product, square, before = sum / #values, 0, 0, 0
  for _, value in ipairs(clipped) do
    local deviation = value - mean
    product = product + deviation * before
    square = square + deviation * deviation
    before = deviation
  end
  return square > 0 and product / square or 0
end

--- By how much correlation multiplies the variance of a location estimate: (1 + rho) / (1 - rho)
--- for a first-order autoregression, with rho from 0 to 0.95. Two things are done to the estimate
--- r first, or the interval is too narrow where there are few values:
--- - r is biased low, its mean being rho - (1 + 4 rho)/n (Marriott and Pope, Bias in the
---   estimation of autocorrelations, Biometrika 41, 1954): (n r + 1)/(n - 4) takes that back, and
---   (n r + p)/(n - 3 - p) about what fitting p terms instead of a mean did;
--- - the factor is steep in rho, so a right estimate of rho gives too small a factor half of the
---   time, and by more than it gives too large a one: one standard error is added.
--- At rho = 0.8 and n = 20 r itself gives intervals that cover the median in 89 % of runs, the
--- first correction 92 %, both 94.5 %, and the whole range 95.7 %; at rho = 0 both cost 1 point.
--- (20,000 simulated runs of each; the spec repeats 2000.)
---@param n integer
---@param r number lag-1 autocorrelation, as estimated
---@param terms integer? how many were fitted to the series before: default 1, its mean
---@return number factor at least 1
function stats.inflation(n, r, terms)
  terms = terms or 1
  if n < terms + 5 then
    return 1 -- too few to tell; the interval is the range there
  end
  local rho = (n * r + terms) / (n - 3 - terms)
  rho = rho + math.sqrt(math.max(1 - rho * rho, 0) / n)
  rho = math.min(math.max(rho, 0), 0.95)
  return (1 + rho) / (1 - rho)
end

--- The 95 % interval of the median, between two order statistics. Their ranks are those of the
--- binomial distribution of how many values lie below the median, by its normal approximation with
--- the correction for continuity (without it n = 20 gives 98.8 % for 95 %); correlation widens it.
local function median_interval(sorted, factor)
  local n = #sorted
  local rank = math.floor((n + 1 - 1.96 * math.sqrt(n * factor)) / 2)
  local whole = n < 6 or rank <= 1
  rank = whole and 1 or rank
  return { low = sorted[rank], high = sorted[n + 1 - rank], range = whole }
end

local function count_outliers(values, fences)
  local mild, severe, places = 0, 0, {}
  for i, value in ipairs(values) do
    if value < fences.severe.low or value > fences.severe.high then
      severe = severe + 1
      places[#places + 1] = i
    elseif value < fences.mild.low or value > fences.mild.high then
      mild = mild + 1
      places[#places + 1] = i
    end
  end
  return mild, severe, places
end

--- The mean, summed from the first value on: of equal values it is that value.
local function mean_of(values)
  local sum, origin = 0.0, values[1]
  for _, value in ipairs(values) do
    sum = sum + (value - origin)
  end
  return origin + sum / #values
end

---@class tidelock.summary
---@field n integer
---@field median number
---@field ci { low: number, high: number, range: boolean } 95 % interval of the median; `range`: it
--- is the whole range, because values are too few or too correlated for less, and may cover the
--- median less often than that
---@field rel_ci number half the interval over the median
---@field mean number
---@field min number
---@field max number
---@field q1 number
---@field q3 number
---@field mad number median absolute deviation times 1.4826
---@field rho number lag-1 autocorrelation, as estimated, 0 to 0.95
---@field n_eff number independent values that the interval counts them for; see stats.inflation
---@field mild integer values beyond 1.5 interquartile ranges and within 3
---@field severe integer values beyond 3
---@field outliers integer[] their places, both kinds

--- Summarizes a series.
---@param values number[] in time order, 1 at the least, finite
---@return tidelock.summary
function stats.summary(values)
  order.check(values)
  local n, sorted = #values, order.sorted(values)
  local q1, median, q3 = order.quantile(sorted, 0.25), order.quantile(sorted, 0.5),
    order.quantile(sorted, 0.75)
  local fences = order.fences(q1, median, q3)
  local r = stats.autocorrelation(values, fences.severe)
  local factor = stats.inflation(n, r)
  local ci = median_interval(sorted, factor)
  local mild, severe, places = count_outliers(values, fences)
  local half = (ci.high - ci.low) / 2
  return {
    n = n, median = median, ci = ci, rel_ci = half == 0 and 0.0 or half / math.abs(median),
    mean = mean_of(values), min = sorted[1], max = sorted[n], q1 = q1, q3 = q3,
    mad = order.mad(values, median), rho = math.min(math.max(r, 0.0), 0.95), n_eff = n / factor,
    mild = mild, severe = severe, outliers = places,
  }
end

--- How precise an estimate of a series is: half of its 95 % interval, as a part of it. The mean's
--- interval is 1.96 standard errors of so many values as the correlated ones count for. A minimum
--- has no interval: it is as precise as the second half of the series left it where the first half
--- had it.
---@param values number[]
---@param center "median" | "mean" | "min" | nil default: median
---@return number relative
function stats.precision(values, center)
  local s = stats.summary(values)
  local half
  if center == "mean" then
    local squares = 0
    for _, value in ipairs(values) do
      squares = squares + (value - s.mean) ^ 2
    end
    half = s.n > 1 and 1.96 * math.sqrt(squares / (s.n - 1) / s.n_eff) or math.huge
  elseif center == "min" then
    local early = math.huge
    for i = 1, s.n // 2 do
      early = math.min(early, values[i])
    end
    half = early - s.min
  else
    return s.rel_ci
  end
  return half == 0 and 0.0 or half / math.abs(s[center])
end

--- The number of samples at which to look next whether the interval is narrow enough: 20, 31, 47
--- and so on, half as many again. Looking after every sample would stop at the first lucky one.
---@param n integer? looked at last; nil: none yet
---@return integer
function stats.checkpoint(n)
  return n and n + n // 2 + 1 or 20
end

return stats
