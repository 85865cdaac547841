-- From process start to a first checked product, 1000 x 1000 float32. The last line it prints
-- is the moment that counts; those before it say what each step took.
--   lua5.4 start.lua [device]
local before = os.clock() -- of the processor: there is no other yet
local gpu = require "tidelock"
local import = os.clock() - before
local lines = require "lines"

local n, checked = 1000, 100
local period_a, period_b = 7, 11 -- so that every sum is exact

lines.say("import", { import }, "s", n, "float32")
local step = lines.steps(n)

--- 0, 1, ... period - 1 over and over.
local function matrix(period)
  local once = {}
  for i = 1, period do once[i] = string.pack("<f", i - 1) end
  return table.concat(once):rep(n * n // period + 1):sub(1, 4 * n * n)
end
local bytes_a, bytes_b = matrix(period_a), matrix(period_b)
step("inputs")
local dev = gpu.device(arg[1] or "cuda:0")
step("context")
local a, b = dev:array(bytes_a):reshape { n, n }, dev:array(bytes_b):reshape { n, n }
step("upload")
local c = gpu.matmul(a, b) -- opens the BLAS library
dev:synchronize()
step("product")

local bytes, period = c:tobytes(), period_a * period_b
for place = 0, checked - 1 do
  local i = place * (n - 1) // (checked - 1)
  local j = n - 1 - i
  local sum = 0
  for k = 0, period - 1 do -- each stands for those that are a period apart
    local times = (n - 1 - k) // period + 1
    sum = sum + times * ((i * n + k) % period_a) * ((k * n + j) % period_b)
  end
  assert(string.unpack("<f", bytes, 4 * (i * n + j) + 1) == sum, "the product is wrong")
end
step("check")
lines.say("checked", { checked }, "elements", n, "float32")
