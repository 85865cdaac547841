-- What the device is: every property that there is.
--   lua5.4 device_info.lua [id]
local gpu = require "tidelock"

local names = { "name", "id", "backend", "compute_capability", "max_threads_per_block",
  "max_block_dim", "max_grid_dim", "max_shared_memory_per_block", "async_engine_count",
  "can_map_host_memory", "multiprocessor_count", "warp_size", "unified_addressing", "pci_bus_id",
  "pci_device_id", "l2_cache_size", "clock_rate", "driver_version", "total_memory", "queue_depth",
  "memory_clock_rate", "memory_bus_width", "power_limit", "sm_clock", "memory_clock",
  "throttle_reasons", "other_processes", "mig", "mps", "precision_override" }

local dev = gpu.device(...)
local properties = dev:properties()
for _, name in ipairs(names) do
  local value = properties[name]
  if type(value) == "table" then
    value = table.concat(value, " x ")
  end
  print(("%-28s %s"):format(name, value == nil and "-" or tostring(value)))
end
for _, kernel in ipairs(dev:matmul_kernels()) do
  print(("matmul kernel %-14s %s; %s; %s"):format(kernel.name, table.concat(kernel.dtypes, " "),
    kernel.shapes, kernel.note))
end
return properties
