-- tidelock's side of the comparisons that alternate between programs: see server.c.
--   lua5.4 server.lua [device]
-- A question may name the matmul kernel: throughput DTYPE N PRODUCTS KERNEL
local gpu = require "tidelock"
local lines = require "lines"

local calls, batches, hold = 200, 5, 50e-6 -- as in server.c

local dev = gpu.device(arg[1] or "cuda:0")
local stream = dev:stream()
local clock, matmul = lines.clock, gpu.matmul

-- What a sum of positive products may be off by, relatively.
local tolerances = { float32 = 1e-4, float64 = 1e-10, tf32 = 2e-3, float16 = 2e-3, bfloat16 = 1e-2 }

-- The matrices of the last question, kept for the next of the same shape.
local kept = {}

local function matrices(dtype, n)
  if kept.dtype ~= dtype or kept.n ~= n then
    for _, name in ipairs { "a", "b", "c" } do
      if kept[name] then kept[name]:close() end
    end
    dev:trim() -- to the driver, as plain C gives it: where a matrix lies is worth 3 % at n = 1000
    kept = { dtype = dtype, n = n, checked = {} }
    local stored = dtype == "tf32" and "float32" or dtype
    kept.a = dev:rand({ n, n }, { dtype = stored, seed = 1, stream = stream })
    kept.b = dev:rand({ n, n }, { dtype = stored, seed = 2, stream = stream })
    kept.c = dev:empty({ n, n }, stored)
    stream:synchronize()
  end
  return kept.a, kept.b, kept.c
end

--- Some elements against sums made here: no time is told before.
local function check(a, b, c, n, dtype)
  for _, place in ipairs { { 1, 1 }, { n, n }, { n // 2 + 1, n // 3 + 1 } } do
    local i, j = place[1], place[2]
    local row = a:view { shape = { n }, offset = (i - 1) * n }:totable()
    local column = b:view { shape = { n, 1 }, offset = j - 1, stride = n }:totable()
    local sum = 0
    for k = 1, n do sum = sum + row[k] * column[k][1] end
    local got = c:get(i, j)
    assert(math.abs(got - sum) <= tolerances[dtype] * sum,
      ("%s: the product is wrong: %g, wanted %g"):format(dtype, got, sum))
  end
end

local function throughput(dtype, n, products, kernel)
  local a, b, c = matrices(dtype, n)
  local options = { stream = stream, kernel = kernel, compute = dtype == "tf32" and dtype or nil }
  if not kept.checked[kernel] then
    c:fill(0, stream)
    matmul(a, b, c, options)
    check(a, b, c, n, dtype)
    kept.checked[kernel] = true
  end
  stream:spin(products * hold)
  local first = stream:record()
  for _ = 1, products do matmul(a, b, c, options) end
  local last = stream:record()
  last:synchronize()
  lines.say("throughput", { 2e-12 * n ^ 3 * products / (last - first) }, "TFLOP/s", n, dtype)
end

local function launch(what, n)
  local a, b, c = matrices("float32", n)
  local options = { stream = stream, kernel = what }
  local samples = {}
  for batch = 0, batches do
    local start = clock()
    if what == "spin" then
      for _ = 1, calls do stream:spin(0) end
    else
      for _ = 1, calls do matmul(a, b, c, options) end
    end
    local took = clock() - start
    stream:synchronize()
    samples[batch] = took * 1e9 / calls -- the one before the first is the warm-up
  end
  lines.say(what, samples, "ns", n, "float32")
end

lines.tell("version", "tidelock " .. gpu.version .. ", " .. _VERSION)
for line in io.lines() do
  local words = {}
  for word in line:gmatch("%S+") do words[#words + 1] = word end
  local done, reason
  if words[1] == "throughput" then
    done, reason = pcall(throughput, words[2], math.tointeger(words[3]), math.tointeger(words[4]),
      words[5] or "blas")
  else
    done, reason = pcall(launch, words[2], math.tointeger(words[3]))
  end
  if not done then
    lines.tell("error", tostring(reason))
  end
end
