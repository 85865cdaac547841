--- Straight lines through points, by Theil and Sen: the median of the slopes of all pairs, which a
--- quarter of wild points does not move. Pure functions.
local stats = require "tidelock.stats"

local fit = {}

---@class tidelock.line
---@field slope number
---@field intercept number median of y - slope * x
---@field residual number median absolute residual, times 1.4826
---@field largest number the residual that is furthest from 0
---@field r2 number? share of the variance of y that the line explains; nil: y is constant

local function slopes_of(x, y)
  local slopes = {}
  for i = 1, #x do
    for j = i + 1, #x do
      if x[i] ~= x[j] then
        slopes[#slopes + 1] = (y[j] - y[i]) / (x[j] - x[i])
      end
    end
  end
  return slopes
end

--- Fits y = intercept + slope * x.
---@param x number[]
---@param y number[]
---@return tidelock.line
function fit.theil_sen(x, y)
  local slopes = slopes_of(x, y)
  if #x ~= #y or #slopes == 0 then
    error(("fit.theil_sen: points of at least two different x wanted, got %d x and %d y"):format(
      #x, #y), 2)
  end
  local slope = stats.median(slopes)
  local rest, mean = {}, stats.mean(y)
  for i = 1, #x do
    rest[i] = y[i] - slope * x[i]
  end
  local intercept, largest = stats.median(rest), 0
  local apart, unexplained, variance = {}, 0, 0
  for i, value in ipairs(rest) do
    local residual = value - intercept
    apart[i] = math.abs(residual)
    largest = apart[i] > math.abs(largest) and residual or largest
    unexplained = unexplained + residual ^ 2
    variance = variance + (y[i] - mean) ^ 2
  end
  return { slope = slope, intercept = intercept, residual = 1.4826 * stats.median(apart),
    largest = largest, r2 = variance > 0 and 1 - unexplained / variance or nil }
end

return fit
