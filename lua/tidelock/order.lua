--- Order statistics: what depends on the sorted values alone.
local order = {}

--- Raises unless values holds finite numbers, `least` at the least. A NaN would leave a sort
--- without meaning, and the place of a missing value is worth more than a wrong median.
---@param values number[]
---@param least integer? default 1
---@param level integer? the caller to blame, as for error(); default: who called the function
--- that checks
function order.check(values, least, level)
  level = (level or 2) + 1
  if type(values) ~= "table" then
    error("bad values: an array of numbers wanted, got " .. type(values), level)
  end
  for i = 1, #values do
    local value = values[i]
    if math.type(value) == nil or value - value ~= 0 then -- infinities and NaN give NaN
      error(("bad values: a finite number wanted at %d, got %s"):format(i, tostring(value)), level)
    end
  end
  if #values < (least or 1) then
    error(("bad values: %d wanted at the least, got %d"):format(least or 1, #values), level)
  end
end

--- A sorted copy.
---@param values number[]
---@return number[]
function order.sorted(values)
  local copy = table.move(values, 1, #values, 1, {})
  table.sort(copy)
  return copy
end

--- The values that occur, sorted, each once.
---@param values number[]
---@return number[]
function order.distinct(values)
  local list = {}
  for _, value in ipairs(order.sorted(values)) do
    if value ~= list[#list] then
      list[#list + 1] = value
    end
  end
  return list
end

--- The quantile p of sorted values, by linear interpolation between neighbours: definition 7 of
--- Hyndman and Fan (Sample quantiles in statistical packages, 1996), numpy's default.
---@param sorted number[]
---@param p number 0 to 1
---@return number
function order.quantile(sorted, p)
  local place = 1 + (#sorted - 1) * p
  local below = math.floor(place)
  local low = sorted[below]
  local high = sorted[below + 1] or low
  return low + (place - below) * (high - low)
end

--- The median of values[first..last].
---@param values number[]
---@param first integer? default 1
---@param last integer? default #values
---@return number
function order.median(values, first, last)
  local part = table.move(values, first or 1, last or #values, 1, {})
  table.sort(part)
  local middle = (#part + 1) // 2
  return #part % 2 == 1 and part[middle] or (part[middle] + part[middle + 1]) / 2
end

--- The median absolute deviation from a center, times 1.4826: for normal values this estimates
--- the standard deviation.
---@param values number[]
---@param center number? default: the median
---@return number
function order.mad(values, center)
  center = center or order.median(values)
  local deviations = {}
  for i = 1, #values do
    local deviation = values[i] - center
    deviations[i] = deviation < 0 and -deviation or deviation
  end
  return 1.4826 * order.median(deviations)
end

--- Tukey's fences: values beyond them are outliers, mild ones beyond 1.5 and severe ones beyond
--- 3 times the interquartile range. The range counts as a millionth of the median at the least:
--- differences of time stamps round by more than nothing.
---@param q1 number
---@param median number
---@param q3 number
---@return { mild: { low: number, high: number }, severe: { low: number, high: number } }
function order.fences(q1, median, q3)
  local range = math.max(q3 - q1, 1e-6 * math.abs(median))
  return {
    mild = { low = q1 - 1.5 * range, high = q3 + 1.5 * range },
    severe = { low = q1 - 3 * range, high = q3 + 3 * range },
  }
end

return order
