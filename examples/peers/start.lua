-- From process start to a first checked product, 1000 x 1000 float32. The line it prints is
-- the moment that counts.
--   lua5.4 start.lua [device]
local gpu = require "tidelock"

local n, checked = 1000, 16
local period_a, period_b = 7, 5 -- so that every sum is exact

local dev = gpu.device(arg[1] or "cuda:0")

--- 0, 1, ... period - 1 over and over.
local function matrix(period)
  local once = {}
  for i = 1, period do once[i] = string.pack("<f", i - 1) end
  local bytes = table.concat(once):rep(n * n // period + 1):sub(1, 4 * n * n)
  return dev:array(bytes):reshape { n, n }
end

local bytes = gpu.matmul(matrix(period_a), matrix(period_b)):tobytes()
for place = 0, checked - 1 do
  local i = place * (n - 1) // (checked - 1)
  local j = n - 1 - i
  local sum = 0
  for k = 0, n - 1 do sum = sum + (i * n + k) % period_a * ((k * n + j) % period_b) end
  assert(string.unpack("<f", bytes, 4 * (i * n + j) + 1) == sum, "the product is wrong")
end
require "lines".say("checked", { checked }, "elements", n, "float32")
