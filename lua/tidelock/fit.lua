--- Straight lines through measured points, by medians: a few wild points do not turn them.
local order = require "tidelock.order"

local fit = {}

local function check_points(x, y, level)
  order.check(x, 2, level + 1)
  order.check(y, 2, level + 1)
  if #x ~= #y then
    error(("bad points: %d values of x for %d of y"):format(#x, #y), level + 1)
  end
  for _, value in ipairs(x) do
    if value ~= x[1] then
      return
    end
  end
  error("bad points: two different values of x wanted", level + 1)
end

local function residuals(x, y, slope, intercept)
  local list = {}
  for i = 1, #x do
    list[i] = y[i] - (intercept + slope * x[i])
  end
  return list
end

local function theil_sen(x, y)
  local slopes = {}
  for i = 1, #x - 1 do
    local xi, yi = x[i], y[i]
    for j = i + 1, #x do
      local distance = x[j] - xi
      if distance ~= 0 then
        slopes[#slopes + 1] = (y[j] - yi) / distance
      end
    end
  end
  local slope = order.median(slopes)
  local intercept = order.median(residuals(x, y, slope, 0))
  return slope, intercept, order.mad(residuals(x, y, slope, intercept))
end

--- The Theil-Sen line: the median of the slopes between all pairs of points, and the median of what
--- is left of y (H. Theil, 1950; P. K. Sen, Estimates of the regression coefficient based on
--- Kendall's tau, 1968). Takes n^2 steps: meant for up to a thousand points.
---@param x number[] not all the same
---@param y number[]
---@return number slope
---@return number intercept
---@return number residual median absolute deviation of the residuals, times 1.4826
function fit.theil_sen(x, y)
  check_points(x, y, 2)
  return theil_sen(x, y)
end

--- The part of the variance of y that a line explains, 1 - residual / total sum of squares.
---@param x number[]
---@param y number[]
---@param slope number
---@param intercept number
---@return number? r2 1 at most; nil where y is constant
function fit.r2(x, y, slope, intercept)
  check_points(x, y, 2)
  local mean, total, left = 0, 0, 0
  for _, value in ipairs(y) do
    mean = mean + value / #y
  end
  for i, residual in ipairs(residuals(x, y, slope, intercept)) do
    total = total + (y[i] - mean) ^ 2
    left = left + residual * residual
  end
  return total > 0 and 1 - left / total or nil
end

---@class tidelock.line
---@field slope number
---@field intercept number
---@field residual number median absolute deviation of the residuals, times 1.4826
---@field r2 number? nil where y is constant
---@field largest { at: integer, value: number } the largest residual and its place

--- A Theil-Sen line with what tells how well it fits.
---@param x number[] not all the same
---@param y number[]
---@return tidelock.line
function fit.line(x, y)
  check_points(x, y, 2)
  local slope, intercept, residual = theil_sen(x, y)
  local largest = { at = 1, value = 0 }
  for i, value in ipairs(residuals(x, y, slope, intercept)) do
    if math.abs(value) > math.abs(largest.value) then
      largest = { at = i, value = value }
    end
  end
  return { slope = slope, intercept = intercept, residual = residual,
    r2 = fit.r2(x, y, slope, intercept), largest = largest }
end

return fit
