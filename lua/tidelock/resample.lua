--- Intervals by resampling, from a generator of its own: the same seed, the same interval.
local stats = require "tidelock.stats"

local resample = {}

--- Marsaglia's xorshift with a multiplication (xorshift64*, Vigna 2016). Returns a function that
--- returns integers from 1 to what it is given.
---@param seed integer
---@return fun(most: integer): integer
function resample.generator(seed)
  local state = (seed ~ 0x9E3779B97F4A7C15) | 1 -- not 0, which it would stay at
  return function(most)
    state = state ~ (state >> 12)
    state = state ~ (state << 25)
    state = state ~ (state >> 27)
    return math.floor(((state * 0x2545F4914F6CDD1D) >> 11) * 0x1p-53 * most) + 1
  end
end

--- The mean of one resample, in blocks of neighbours.
local function mean_of_one(values, next, block)
  local n, sum, taken = #values, 0, 0
  while taken < n do
    local first = next(n - block + 1)
    for i = first, first + math.min(block, n - taken) - 1 do
      sum = sum + values[i]
    end
    taken = taken + block
  end
  return sum / n
end

-- Student's 97.5 % points for n - 1 degrees of freedom, over the normal 1.96.
local function student(n)
  local d = n - 1
  return 1 + 1.21 / d + 1.37 / d ^ 2 + 1.3 / d ^ 3 -- within 1 % from d = 4 on
end

---@class tidelock.resample_options
---@field resamples integer? default 10000
---@field seed integer? default 1

--- The 95 % interval of a mean by the bootstrap: percentiles of the means of resamples. Where
--- neighbours are correlated by more than 0.1 the resamples are of blocks of them. Percentiles are
--- too narrow for few values, by sqrt((n - 1) / n) and by what Student's distribution is wider
--- than the normal; the interval is stretched by both.
---@param values number[] in order of time, at least 2
---@param options tidelock.resample_options?
---@return number low
---@return number high
function resample.mean(values, options)
  options = options or {}
  local n, mean = #values, stats.mean(values)
  local block = stats.correlation(values) > 0.1 and math.ceil(n ^ (1 / 3)) or 1
  local next, means = resample.generator(options.seed or 1), {}
  for i = 1, options.resamples or 10000 do
    means[i] = mean_of_one(values, next, block)
  end
  table.sort(means)
  local stretch = math.sqrt(n / (n - 1)) * student(n)
  return mean + (stats.quantile(means, 0.025) - mean) * stretch,
    mean + (stats.quantile(means, 0.975) - mean) * stretch
end

return resample
