--- Numbers for people: times, rates and ratios with units. Records keep seconds; only printing
--- scales them.
local units = {}

local scales = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" }, { 1e-9, "ns" } }

--- The unit for a time: the largest in which three digits make at least 1.
---@param seconds number
---@return number divisor, string unit
function units.scale(seconds)
  for _, scale in ipairs(scales) do
    if math.abs(seconds) >= 0.9995 * scale[1] then -- what three digits round up to the unit
      return scale[1], scale[2]
    end
  end
  return 1e-9, "ns"
end

--- Seconds with a unit and three digits: 0.00205 gives "2.05 ms".
---@param seconds number
---@return string
function units.seconds(seconds)
  local divisor, unit = units.scale(seconds)
  return ("%.3g %s"):format(seconds / divisor, unit)
end

--- How many decimals show two digits of a half-width; without one, four digits of the value.
local function decimals_for(value, half_width)
  local shown = half_width > 0 and 1 - math.floor(math.log(half_width, 10))
    or 3 - math.floor(math.log(math.max(math.abs(value), 1e-3), 10))
  return math.max(0, math.min(shown, 5))
end

--- A value and its interval in the value's unit, with the digits that the interval's width allows:
--- "312.40 us", "311.93 to 312.81 us". Without an interval four digits, and no second result.
---@param value number seconds
---@param interval { low: number, high: number }?
---@return string value, string? interval
function units.measured(value, interval)
  if value ~= value then
    return "nan"
  end
  local divisor, unit = units.scale(value)
  local half_width = interval and (interval.high - interval.low) / 2 / divisor or 0
  if not (half_width < math.huge and math.abs(value) < math.huge) then -- NaN too
    half_width = 0
  end
  local number = ("%%.%df"):format(decimals_for(value / divisor, half_width))
  local text = (number .. " %s"):format(value / divisor, unit)
  if interval then
    return text, (number .. " to " .. number .. " %s"):format(interval.low / divisor,
      interval.high / divisor, unit)
  end
  return text
end

local prefixes = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } }

--- A rate with a prefix and three digits: 5.12e13 gives "51.2 TFLOP/s". T is the largest: 2002
--- TFLOP/s is how an impossible figure is recognized.
---@param rate number per second
---@param unit string "FLOP/s", "B/s"
---@return string
function units.rate(rate, unit)
  for _, prefix in ipairs(prefixes) do
    if rate >= 0.9995 * prefix[1] then
      local scaled = rate / prefix[1]
      return (scaled >= 999.5 and "%.0f %s%s" or "%.3g %s%s"):format(scaled, prefix[2], unit)
    end
  end
  return ("%.3g %s"):format(rate, unit)
end

--- A share in percent, two digits: 0.0014 gives "0.14 %".
---@param share number
---@return string
function units.percent(share)
  return ("%.2g %%"):format(100 * share)
end

return units
