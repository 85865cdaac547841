--- Runs a block of specs on every device present, and after each spec asserts
-- that nothing it made is left alive.
--
--   each_device("matmul", function(open)
--     it("multiplies", function()
--       local dev = open()              -- or open{queue_depth = 4}
--     end)
--   end)
--
-- `open` opens the device anew for the spec, so every spec stands alone: it may
-- run in any order, alone, and again after a failure (spec/faults.lua does so).
local assert = require "luassert"
local busted = require "busted"
local gpu = require "tidelock"

local each_device = {}

--- What spec/faults.lua puts here is given to every device that is opened.
each_device.faults = nil

--- Ids of the devices that specs run on: TIDELOCK_SPEC_DEVICES, else all.
function each_device.ids()
  local ids = {}
  local wanted = os.getenv("TIDELOCK_SPEC_DEVICES")
  if wanted then
    for id in wanted:gmatch("[^%s,]+") do
      ids[#ids + 1] = id
    end
    return ids
  end
  for _, device in ipairs(gpu.devices()) do
    ids[#ids + 1] = device.id
  end
  return ids
end

--- The id of another device: of the same back end, or the host where there is only one.
function each_device.other(id)
  local backend, ordinal = id:match("^(%a+):?(%d*)$")
  local next_one = ("%s:%d"):format(backend, (tonumber(ordinal) or 0) + 1)
  return gpu.available(next_one) and next_one or "host"
end

--- Closes the device once its work is done and returns what was left alive.
function each_device.close(dev)
  collectgarbage()
  collectgarbage()
  dev:synchronize()
  local left = dev:memory()
  dev:close()
  return left.objects, left.live, left.pending
end

--- Options that make a queue of that depth, behind a gate that takes none of its places, as on the
--- host; the simulated H200's takes three.
function each_device.depth(id, depth)
  return { queue_depth = depth, sim = id:find("sim", 1, true) and { gate_slots = 0 } or nil }
end

local function with_faults(options)
  if not each_device.faults then
    return options
  end
  local copy = { faults = each_device.faults }
  for name, value in pairs(options or {}) do
    copy[name] = value
  end
  return copy
end

local warm = {}

-- cuBLAS loads its code at the first product of a kind, and then waits for all work on the GPU:
-- without a product before, one behind a closed gate would wait until the gate gives up.
local function warm_up(id)
  if warm[id] or not id:find("cuda", 1, true) then
    return
  end
  warm[id] = true
  local dev <close> = gpu.device(id)
  if dev:properties().name:find("stub", 1, true) then
    return -- spec/embed/cuda_stub.c loads nothing
  end
  for _, kernel in ipairs(dev:matmul_kernels()) do
    for _, dtype in ipairs(kernel.name == "blas" and kernel.available and kernel.dtypes or {}) do
      for _, n in ipairs { 2, 8, 64, 512 } do
        local a <close> = dev:full({ n, n }, 0, dtype)
        pcall(gpu.matmul, a, a, { kernel = "blas" }) -- int8 not at every size
      end
    end
  end
  collectgarbage()
  dev:synchronize()
end

setmetatable(each_device, {
  __call = function(_, title, body)
    for _, id in ipairs(each_device.ids()) do
      busted.describe(id .. ": " .. title, function()
        local opened = {}

        local function open(options)
          warm_up(id)
          local dev = gpu.device(id, with_faults(options))
          opened[#opened + 1] = dev
          return dev
        end

        busted.after_each(function()
          local devices = opened
          opened = {}
          for _, dev in ipairs(devices) do
            -- A spec may have closed its device itself.
            if tostring(dev) ~= "device (closed)" and not dev:is_lost() then
              local objects, live, pending = each_device.close(dev)
              assert.equal(0, objects, "objects left alive")
              assert.equal(0, live, "bytes left alive")
              assert.equal(0, pending, "bytes left pending")
            else
              dev:close()
            end
          end
        end)

        body(open, id)
      end)
    end
  end,
})

return each_device
