--- Judges two variants by rounds in which both ran: same, faster, slower, or not to be told.
local order = require "tidelock.order"
local resample = require "tidelock.resample"

local verdict = {}

---@class tidelock.ratio
---@field ratio number exp of the mean of the logarithms
---@field ci { low: number, high: number } 95 %, by bootstrap over rounds
---@field rounds integer
---@field seed integer

--- The ratio that rounds agree on. Rounds are resampled, not samples: within one, samples share its
--- clocks and its place in time. The interval is expanded for few rounds: the plain percentiles of
--- 20 are as narrow as those of a normal quantile, and call a difference too often.
---@param d number[] of each round ln(median of b / median of a), 2 at the least
---@param options { seed: integer?, resamples: integer? }? default 1; 10000
---@return tidelock.ratio
function verdict.estimate(d, options)
  order.check(d, 2)
  options = options or {}
  local mean = resample.bootstrap(d, "mean",
    { seed = options.seed, resamples = options.resamples, expand = true })
  return { ratio = math.exp(mean.estimate), rounds = #d, seed = mean.seed,
    ci = { low = math.exp(mean.ci.low), high = math.exp(mean.ci.high) } }
end

--- How far from 1 a comparison of a variant with itself came out, as a logarithm: the farther end
--- of its interval.
---@param floor tidelock.ratio of a against a
---@return number
function verdict.noise(floor)
  return math.max(math.abs(math.log(floor.ci.low)), math.abs(math.log(floor.ci.high)))
end

--- How many rounds would tell: half the interval must shrink to the effect's distance from what it
--- is not. Half over margin would promise too much for an effect of nearly the margin.
local function rounds_needed(rounds, half, effect, margin, noise)
  local distance = effect > margin and effect or margin - effect
  distance = math.max(distance, margin / 10) -- beyond a hundredfold it is a guess anyway
  local factor = (half / distance) ^ 2
  if effect > margin then
    factor = math.max(factor, (noise / effect) ^ 2)
  end
  return math.max(rounds + 1, math.ceil(rounds * factor))
end

---@class tidelock.verdict : tidelock.ratio
---@field verdict "SAME" | "FASTER" | "SLOWER" | "UNRESOLVED" what b is, against a
---@field margin number
---@field needed integer? rounds that would tell, where these did not

--- The verdict on b against a. SAME: the interval is within the margin. FASTER, SLOWER: it excludes
--- 1, and the effect is above the margin and above what a against itself showed. All else is
--- UNRESOLVED.
---@param d number[] of each round ln(median of b / median of a); a ratio below 1 is FASTER
---@param floor tidelock.ratio? of a against a, from verdict.estimate; nil: not measured
---@param margin number? below which a difference is none; default 0.01
---@param options { seed: integer?, resamples: integer? }?
---@return tidelock.verdict
function verdict.judge(d, floor, margin, options)
  order.check(d, 2)
  margin = margin or 0.01
  if not (margin > 0 and margin < 1) then
    error("bad margin: a number above 0 and below 1 wanted, got " .. tostring(margin), 2)
  end
  local result = verdict.estimate(d, options)
  local low, high = result.ci.low, result.ci.high
  local effect = math.abs(result.ratio - 1)
  local noise = floor and math.exp(verdict.noise(floor)) - 1 or 0
  result.margin = margin
  if low > 1 - margin and high < 1 + margin then
    result.verdict = "SAME"
  elseif (low > 1 or high < 1) and effect > margin and effect > noise then
    result.verdict = result.ratio < 1 and "FASTER" or "SLOWER"
  else
    result.verdict = "UNRESOLVED"
    result.needed = rounds_needed(#d, (high - low) / 2, effect, margin, noise)
  end
  return result
end

return verdict
