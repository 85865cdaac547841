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

--- The line through the points whose x is within bounds, and the standard error of its slope: that
--- of least squares with the residuals' robust deviation, over 0.91, the efficiency of the method.
local function part(x, y, low, high)
  local px, py = {}, {}
  for i, value in ipairs(x) do
    if value >= low and value <= high then
      px[#px + 1], py[#py + 1] = value, y[i]
    end
  end
  local slope, _, residual = theil_sen(px, py)
  local mean, square = 0, 0
  for _, value in ipairs(px) do
    mean = mean + value / #px
  end
  for _, value in ipairs(px) do
    square = square + (value - mean) ^ 2
  end
  return slope, residual / math.sqrt(0.91 * square)
end

--- Says whether points bend away from a line: compares the slopes of the lower and the upper half
--- of the different values of x (the middle one belongs to both). Fixed costs cancel in both
--- slopes, so a steeper upper half means that something began to wait on the way.
---@param x number[] three different values at the least
---@param y number[]
---@return { lower: number, upper: number, excess: number, z: number, bends: boolean } curvature
--- excess: upper / lower - 1; z: their difference in standard errors; bends: z beyond 3.29 (one
--- line in a thousand) and more than 2 % of the lower slope, either way
function fit.curvature(x, y)
  check_points(x, y, 2)
  local distinct = {}
  for _, value in ipairs(order.sorted(x)) do
    if value ~= distinct[#distinct] then
      distinct[#distinct + 1] = value
    end
  end
  if #distinct < 3 then
    error("bad points: three different values of x wanted", 2)
  end
  local middle = distinct[(#distinct + 1) // 2]
  local lower, error_below = part(x, y, distinct[1], middle)
  local upper, error_above = part(x, y, middle, distinct[#distinct])
  local difference = upper - lower
  local deviation = math.sqrt(error_below ^ 2 + error_above ^ 2)
  local z = difference == 0 and 0.0 or difference / deviation -- infinite where nothing is noisy
  return { lower = lower, upper = upper, excess = difference / lower, z = z,
    bends = math.abs(z) > 3.29 and math.abs(difference) > 0.02 * math.abs(lower) }
end

--- The shortest time from which on `intercept + slope * time` is within a tolerance of the time.
---@param slope number of measured against true times: the scale of a calibration
---@param intercept number its bias
---@param tolerance number? a part; default 0.01
---@return number time infinite where the slope alone is off by as much
function fit.floor(slope, intercept, tolerance)
  tolerance = tolerance or 0.01
  local drift = intercept < 0 and 1 - slope or slope - 1 -- in the direction of the intercept
  if math.abs(drift) >= tolerance then
    return math.huge
  end
  return math.abs(intercept) / (tolerance - drift)
end

return fit
