-- The Lua side of transfer.c: one function for each figure, over 64 MiB of float32.
local gpu = require "tidelock"

local elements = 16 << 20
local dev = gpu.device("host")
local s = dev:stream()
local buffer, pinned = dev:zeros(elements), dev:pinned(elements)
local bytes = ("\0\0\128\63"):rep(elements) -- 1.0 over and over
local values = buffer:upload(bytes) or buffer:totable()
pinned:upload(bytes)
dev:synchronize()

local bench = {}

function bench.upload_string() buffer:upload(bytes) end

function bench.upload_table() buffer:upload(values) end

function bench.upload_pinned()
  buffer:upload_async(pinned, s)
  s:synchronize()
end

function bench.tobytes() return buffer:tobytes() end

function bench.totable() return buffer:totable() end

function bench.download_pinned() buffer:download_async(pinned, s):result() end

function bench.check()
  assert(buffer:get(1) == 1 and buffer:get(elements) == 1 and pinned:get(elements) == 1)
end

return bench
