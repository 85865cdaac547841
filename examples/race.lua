-- A forgotten wait_event. On a GPU the result is right, almost always; on the device of virtual
-- time it is an error that names both operations and their lines. Needs no GPU.
--   lua5.4 race.lua
local gpu = require "tidelock"
local dev <close> = gpu.device("sim:1") -- whatever TIDELOCK_DEVICE says
local producer, consumer = dev:stream(), dev:stream()
local n = 64
local a, b = dev:rand({ n, n }, { seed = 1 }), dev:rand({ n, n }, { seed = 2 })
local c, d = dev:zeros { n, n }, dev:zeros { n, n }

--- d = (a * b) * b, the two products on two streams.
local function chain(ordered)
  gpu.matmul(a, b, c, producer)
  if ordered then
    consumer:wait_event(producer:record())
  end
  gpu.matmul(c, b, d, consumer)
  dev:synchronize()
end

local ok, raised = pcall(chain, false)
print("without wait_event: " .. (ok and "nothing was noticed" or tostring(raised)))
dev:synchronize()
local fine, reason = pcall(chain, true)
print("with wait_event:    " .. (fine and "no race" or tostring(reason)))
local right = gpu.check_matmul(c, b, d)
print("the product is " .. (right and "right" or "wrong"))
return { found = not ok, message = tostring(raised), fine = fine, right = right }
