-- The Lua side of enqueue.c: one function for each figure, which makes n calls,
-- and two that hold the stream back and let it go. `empty` is a C function.
local empty = ...
local gpu = require "tidelock"

local dev = gpu.device("host")
local s = dev:stream()
local a, b = dev:full({64, 64}, 1), dev:full({64, 64}, 1)
local c = dev:zeros({64, 64})
local options = {stream = s, kernel = "tiled"}
local matmul = gpu.matmul
local gate

local bench = {}

--- Returns when the worker stands at the closed gate: it has done the spin, and
--- the gate was queued by then, so it does not go to sleep in between.
function bench.hold()
  s:spin(0)
  gate = s:gate{timeout = 60}
  while select(2, s:inflight()) > 0 do end
end

function bench.finish()
  if gate then
    assert(gate:open())
    gate:close()
    gate = nil
  end
  assert(s:synchronize())
end

function bench.matmul(n)
  for _ = 1, n do matmul(a, b, c, s) end
end

function bench.matmul_options(n)
  for _ = 1, n do matmul(a, b, c, options) end
end

function bench.spin(n)
  for _ = 1, n do s:spin(0) end
end

function bench.empty(n)
  for _ = 1, n do empty(a, b, c, s) end
end

function bench.check()
  assert(c:get(1, 1) == 64 and c:get(64, 64) == 64, "the product is wrong")
end

return bench
