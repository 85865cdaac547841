-- Question 1 with tidelock: many launches of the naive product, each timed.
--   lua5.4 question1.lua [device] [n] [launches]
local gpu = require "tidelock"
local lines = require "lines"

local probes = 5
local dev = gpu.device(arg[1] or "cuda:0")
local n = math.tointeger(arg[2] or 2000)
local launches = math.tointeger(arg[3] or 2000)
local clock, matmul = lines.clock, gpu.matmul

local a, b = dev:full({ n, n }, 2, "float64"), dev:full({ n, n }, 3, "float64")
local c, stream = dev:zeros({ n, n }, "float64"), dev:stream()
local naive = { kernel = "naive", stream = stream }

local kernel = {}
for i = 0, probes do -- the first loads the kernel
  local start = clock()
  matmul(a, b, c, naive)
  stream:synchronize()
  kernel[i] = clock() - start
end

local costs = {}
local start = clock()
local before = start
for i = 1, launches do
  matmul(a, b, c, naive)
  local after = clock()
  costs[i], before = after - before, after
end
local launching = clock() - start
stream:synchronize()
local total = clock() - start

assert(c:get(n, n) == 6 * n, "the product is wrong")
lines.say("kernel", kernel, "s", n, "float64")
lines.say("launch", costs, "s", n, "float64")
lines.say("launching", { launching }, "s", n, "float64")
lines.say("total", { total }, "s", n, "float64")
