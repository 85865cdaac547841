--- Devices of virtual time for specs, which take time for nothing but what a spec says; operations
--- of known length; and short policies.
local gpu = require "tidelock"

local virtual_device = {}

local NOTHING = { launch_cost = 0, launch_latency = 0, kernel_gap = 0, event_cost = 0,
  event_time = 0, untimed_event_cost = 0, clock_cost = 0, query_cost = 0, sync_cost = 0,
  sync_latency = 0, gate_slots = 0, blas_cost = 0, float32_time = 0 }

virtual_device.QUICK = { calls = 1, seconds = 0, settle = false }
virtual_device.FEW = { min_samples = 20, max_samples = 20, min_time = 0 }

--- A device of nothing but these.
function virtual_device.open(settings, options)
  local sim = {}
  for _, from in ipairs { NOTHING, settings } do
    for name, value in pairs(from) do
      sim[name] = value
    end
  end
  return gpu.device("sim", { sim = sim, queue_depth = options and options.queue_depth,
    memory_limit = options and options.memory_limit })
end

function virtual_device.spin(seconds)
  return function(stream)
    stream:spin(seconds)
  end
end

--- A launch that takes the setting kernel_time, with its jitter and drift: a spin has none.
function virtual_device.fill(dev)
  local buffer = dev:empty(1)
  return function(stream)
    buffer:fill(0, stream)
  end
end

--- A policy with few samples and a short warm-up; fields replace its own.
function virtual_device.quick(name, fields)
  local policy = { name, warmup = virtual_device.QUICK, stop = virtual_device.FEW }
  for field, value in pairs(fields or {}) do
    policy[field] = value
  end
  return policy
end

function virtual_device.warning_of(record, code)
  for _, warning in ipairs(record.warnings) do
    if warning.code == code then
      return warning
    end
  end
end

return virtual_device
