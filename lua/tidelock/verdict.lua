--- What the rounds of a comparison say. Pure functions.
local resample = require "tidelock.resample"
local stats = require "tidelock.stats"

local verdict = {}

---@class tidelock.verdict
---@field ratio number of the geometric mean over the rounds
---@field ci { low: number, high: number } 95 %, by bootstrap over the rounds
---@field verdict "SAME" | "FASTER" | "SLOWER" | "UNRESOLVED"
---@field needed integer? rounds that would resolve it, if it is not

---@class tidelock.verdict_options: tidelock.resample_options
---@field margin number? the difference that matters; default 0.01

--- SAME: the interval lies within the margin. FASTER, SLOWER: it leaves 1 out, and the difference
--- is more than the margin. UNRESOLVED: neither.
---@param logs number[] ln(time / time of the first), one for each round
---@param options tidelock.verdict_options?
---@return tidelock.verdict
function verdict.of(logs, options)
  options = options or {}
  local margin = options.margin or 0.01
  local low, high = resample.mean(logs, options)
  local ratio, ci = math.exp(stats.mean(logs)), { low = math.exp(low), high = math.exp(high) }
  local word = "UNRESOLVED"
  if ci.low > 1 - margin and ci.high < 1 + margin then
    word = "SAME"
  elseif (ci.low > 1 or ci.high < 1) and math.abs(ratio - 1) > margin then
    word = ratio < 1 and "FASTER" or "SLOWER"
  end
  return { ratio = ratio, ci = ci, verdict = word, needed = word == "UNRESOLVED"
    and math.max(#logs + 1, math.ceil(#logs * ((high - low) / 2 / margin) ^ 2)) or nil }
end

return verdict
