--- Random numbers from a recorded seed, and bootstrap intervals made with them.
local distribution = require "tidelock.distribution"
local order = require "tidelock.order"

local resample = {}

--- Spreads the bits of a seed, so that 1, 2, 3 give unrelated sequences: the output function of
--- splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
local function scramble(seed)
  local state = seed + 0x9E3779B97F4A7C15
  state = (state ~ (state >> 30)) * 0xBF58476D1CE4E5B9
  state = (state ~ (state >> 27)) * 0x94D049BB133111EB
  state = state ~ (state >> 31)
  return state ~= 0 and state or 1 -- xorshift stays at 0
end

--- One step of xorshift64* (S. Vigna, An experimental exploration of Marsaglia's xorshift
--- generators, scrambled, 2016).
local function advance(state)
  state = state ~ (state >> 12)
  state = state ~ (state << 25)
  state = state ~ (state >> 27)
  return state
end

local multiplier <const> = 0x2545F4914F6CDD1D

--- Raises unless the seed is an integer and the number of resamples a whole one above 0.
local function check_seed(seed, count, level)
  if math.type(seed) ~= "integer" then
    error("bad seed: an integer wanted, got " .. tostring(seed), level + 1)
  elseif math.type(count) ~= "integer" or count < 1 then
    error("bad resamples: a whole number above 0 wanted, got " .. tostring(count), level + 1)
  end
end

---@class tidelock.generator
---@field bits fun(): integer 64 random bits
---@field uniform fun(): number from 0 to below 1, in steps of 2^-53
---@field below fun(n: integer): integer from 1 to n; n below 2^31
---@field normal fun(): number of mean 0 and deviation 1, by Box and Muller

--- A generator of its own: no other is disturbed, and the seed alone fixes what it gives.
---@param seed integer
---@return tidelock.generator
function resample.generator(seed)
  check_seed(seed, 1, 2)
  local state, spare = scramble(seed), nil
  local generator = {}
  function generator.bits()
    state = advance(state)
    return state * multiplier
  end
  function generator.uniform()
    return (generator.bits() >> 11) * 0x1p-53
  end
  function generator.below(n)
    return ((generator.bits() >> 33) * n >> 31) + 1
  end
  function generator.normal()
    local value = spare
    if value then
      spare = nil
      return value
    end
    local radius = math.sqrt(-2 * math.log(1 - generator.uniform()))
    local angle = 2 * math.pi * generator.uniform()
    spare = radius * math.sin(angle)
    return radius * math.cos(angle)
  end
  return generator
end

--- Fills places[1..n] with the places of one resample: blocks of neighbours, each of which begins
--- anywhere. Blocks of 1 are the ordinary bootstrap. Returns the generator's new state. What
--- `advance` does is written out: a call for each number would take half of the time.
local function draw(places, n, block, state)
  local starts = n - block + 1
  for filled = 0, n - 1, block do
    state = state ~ (state >> 12)
    state = state ~ (state << 25)
    state = state ~ (state >> 27)
    local start = (state * multiplier >> 33) * starts >> 31
    places[filled + 1] = start + 1
    for i = 2, block do
      places[filled + i] = start + i -- what is beyond n is not used
    end
  end
  return state
end

local statistics = {}

function statistics.mean(values)
  local n = #values
  return function(places)
    local sum = 0
    for i = 1, n do
      sum = sum + values[places[i]]
    end
    return sum / n
  end
end

--- The median of a resample without sorting it: counts how often each rank was drawn.
function statistics.median(values)
  local n, ranks, counts = #values, {}, {}
  local by_value = {}
  for i = 1, n do
    by_value[i] = i
  end
  table.sort(by_value, function(a, b) return values[a] < values[b] end)
  for rank, place in ipairs(by_value) do
    ranks[place] = rank
  end
  local lower, upper = (n + 1) // 2, n // 2 + 1
  return function(places)
    for i = 1, n do
      counts[i] = 0
    end
    for i = 1, n do
      local rank = ranks[places[i]]
      counts[rank] = counts[rank] + 1
    end
    local rank, seen = 0, 0
    repeat
      rank = rank + 1
      seen = seen + counts[rank]
    until seen >= lower
    local low = values[by_value[rank]]
    while seen < upper do
      rank = rank + 1
      seen = seen + counts[rank]
    end
    return (low + values[by_value[rank]]) / 2
  end
end

--- Any other statistic is a function of an array.
local function statistic_of(name, values, level)
  if type(name) == "function" then
    local sample = {}
    return function(places)
      for i = 1, #values do
        sample[i] = values[places[i]]
      end
      return name(sample)
    end
  elseif not statistics[name] then
    error("bad statistic: 'mean', 'median' or a function wanted, got " .. tostring(name), level + 1)
  end
  return statistics[name](values)
end

--- The length of the blocks: correlated neighbours stay together.
local function block_length(n, rho)
  return rho and rho > 0.1 and math.ceil(n ^ (1 / 3) - 1e-9) or 1
end

--- The statistic of each resample; and the generator's state behind them.
local function replicate(values, statistic, block, count, state)
  local places, replicates = {}, {}
  for i = 1, count do
    state = draw(places, #values, block, state)
    replicates[i] = statistic(places)
  end
  return replicates, state
end

--- The tail beyond each end of the interval. `expand`: the percentile interval of a mean is too
--- narrow where there are few values, as if a normal quantile were used for Student's t, and the
--- deviation divided by n for the one divided by n - 1; this takes both back (T. Hesterberg, What
--- teachers should know about the bootstrap, The American Statistician 69, 2015, section 3.3).
local function tail_of(n, expand)
  if not expand then
    return 0.025
  end
  return distribution.normal(-math.sqrt(n / (n - 1)) * distribution.student(0.975, n - 1))
end

local function interval(replicates, tail)
  table.sort(replicates)
  return { low = order.quantile(replicates, tail), high = order.quantile(replicates, 1 - tail) }
end

---@class tidelock.bootstrap_options
---@field seed integer? default 1
---@field resamples integer? default 10000
---@field rho number? lag-1 autocorrelation: above 0.1 blocks of ceil(n^(1/3)) neighbours are drawn
---@field expand boolean? correct the interval of a mean for few values

---@class tidelock.bootstrap
---@field estimate number the statistic of the values themselves
---@field ci { low: number, high: number } 95 %, by percentiles
---@field seed integer
---@field resamples integer
---@field block integer

--- A 95 % interval of a statistic, by the percentiles of resamples.
---@param values number[] in time order
---@param statistic "mean" | "median" | fun(sample: number[]): number which keeps no reference to
--- the array and leaves it as it is
---@param options tidelock.bootstrap_options?
---@return tidelock.bootstrap
function resample.bootstrap(values, statistic, options)
  options = options or {}
  order.check(values, options.expand and 2 or 1)
  local seed, count = options.seed or 1, options.resamples or 10000
  check_seed(seed, count, 2)
  local of = statistic_of(statistic, values, 2)
  local block = block_length(#values, options.rho)
  local replicates = replicate(values, of, block, count, scramble(seed))
  local all = {}
  for i = 1, #values do
    all[i] = i
  end
  return { estimate = of(all), ci = interval(replicates, tail_of(#values, options.expand)),
    seed = seed, resamples = count, block = block }
end

return resample
