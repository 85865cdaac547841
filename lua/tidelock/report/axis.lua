--- Axes of plots: their range and their ticks, labelled with units.
local units = require "tidelock.units"

local axis = {}

--- 1, 2 or 5 times a power of ten: a step that makes four to ten ticks.
local function nice_step(range)
  local power = 10.0 ^ math.floor(math.log(range / 4, 10))
  local mantissa = range / 4 / power
  return power * (mantissa >= 5 and 5 or mantissa >= 2 and 2 or 1)
end

--- Labels of equally spaced times, all in the unit of the largest, with the digits of the step.
local function time_labels(ticks, step)
  local divisor, unit = units.scale(ticks[#ticks])
  local decimals = math.max(0, -math.floor(math.log(step / divisor, 10) + 1e-9))
  local labels = {}
  for i, value in ipairs(ticks) do
    labels[i] = ("%.*f %s"):gsub("%*", decimals):format(value / divisor, unit)
  end
  return labels
end

local function number_labels(ticks)
  local labels = {}
  for i, value in ipairs(ticks) do
    labels[i] = ("%.10g"):format(value)
  end
  return labels
end

local function linear(low, high, kind)
  local range = high > low and high - low or math.max(math.abs(high), 1e-9)
  local step = nice_step(range)
  local ticks = {}
  for i = math.ceil((low - 0.02 * range) / step), math.floor((high + 0.02 * range) / step) do
    ticks[#ticks + 1] = i * step
  end
  if #ticks == 0 then
    ticks[1] = low
  end
  return { low = low - 0.05 * range, high = high + 0.05 * range, ticks = ticks, log = false,
    labels = (kind == "seconds" and time_labels or number_labels)(ticks, step) }
end

--- Powers of ten, with 2 and 5 times each where there are few.
local function logarithmic(low, high, kind)
  local decades = math.log(high / low, 10)
  local mantissas = decades > 2.1 and { 1 } or { 1, 2, 5 }
  local ticks = {}
  for power = math.floor(math.log(low, 10)), math.ceil(math.log(high, 10)) do
    for _, mantissa in ipairs(mantissas) do
      local value = tonumber(("%de%d"):format(mantissa, power))
      if value >= low * 0.85 and value <= high * 1.18 then
        ticks[#ticks + 1] = value
      end
    end
  end
  local labels = number_labels(ticks)
  for i, value in ipairs(kind == "seconds" and ticks or {}) do
    labels[i] = units.seconds(value)
  end
  return { low = low * 0.8, high = high * 1.25, ticks = ticks, labels = labels, log = true }
end

--- An axis for values from low to high. A logarithmic one that would show less than half a decade,
--- or values that are not positive, becomes linear.
---@param low number
---@param high number
---@param options { kind: "seconds" | "number", log: boolean? }
---@return { low: number, high: number, ticks: number[], labels: string[], log: boolean }
function axis.of(low, high, options)
  if options.log and low > 0 and high / low >= 3 then
    return logarithmic(low, high, options.kind)
  end
  return linear(low, high, options.kind)
end

--- Puts the ticks at these values, where they are few: a sweep's sizes.
---@param ticked table an axis
---@param values number[]
---@return table ticked
function axis.at(ticked, values)
  if #values <= 12 then
    ticked.ticks, ticked.labels = values, number_labels(values)
  end
  return ticked
end

--- An axis of names, at 1, 2, and so on.
---@param names string[]
---@return table
function axis.named(names)
  local ticks = {}
  for i = 1, #names do
    ticks[i] = i
  end
  return { low = 0.5, high = #names + 0.5, ticks = ticks, labels = names, log = false }
end

return axis
