--- The speed of light: what a device can do at most in a second, from its properties.
local peak = {}

-- Fused multiply-adds of one multiprocessor in a clock, by the fastest unit that takes the type:
-- tensor cores without sparsity, float32 as tf32 (an operation of the script's own may use it).
-- NVIDIA's architecture whitepapers: V100, T4, A100, GA102, Ada, H100, Blackwell.
local units = {
  { capability = 7.0, float64 = 32, float32 = 64, float16 = 512, int8 = 256, int32 = 64 },
  { capability = 7.5, float64 = 2, float32 = 64, float16 = 512, int8 = 1024, int32 = 64 },
  { capability = 8.0, float64 = 64, float32 = 512, float16 = 1024, int8 = 2048, int32 = 64 },
  { capability = 8.6, float64 = 2, float32 = 256, float16 = 512, int8 = 1024, int32 = 64 },
  { capability = 9.0, float64 = 128, float32 = 1024, float16 = 2048, int8 = 4096, int32 = 64 },
  { capability = 10.0, float64 = 128, float32 = 2048, float16 = 4096, int8 = 8192, int32 = 128 },
}

-- The widest units of a processor's core: two of 512 bits; and more than the highest clock of any.
local HOST = { float64 = 16, float32 = 32, float16 = 64, bfloat16 = 64, int32 = 32, int8 = 128,
  clock = 6e9 }

local function unit_of(capability, dtype)
  local found
  for _, entry in ipairs(units) do
    if capability >= entry.capability then
      found = entry[dtype == "bfloat16" and "float16" or dtype]
    end
  end
  return found
end

--- FLOP/s at most for operands of that type; nil where nothing is known of the device.
---@param properties tidelock.properties
---@param dtype tidelock.dtype
---@return number?
function peak.flops(properties, dtype)
  local count = properties.multiprocessor_count
  if properties.peak_flops then
    return properties.peak_flops
  elseif properties.backend == "host" then
    return count and 2 * count * HOST[dtype] * HOST.clock
  end
  local unit = unit_of(tonumber(properties.compute_capability) or 0, dtype)
  return count and unit and properties.clock_rate and 2 * count * unit * properties.clock_rate
end

--- Bytes/s at most between the device and its memory, two transfers in a clock; nil: not known.
---@param properties tidelock.properties
---@return number?
function peak.bandwidth(properties)
  if properties.peak_bandwidth then
    return properties.peak_bandwidth
  end
  local clock, width = properties.memory_clock_rate, properties.memory_bus_width
  return clock and width and 2 * clock * width / 8
end

return peak
