-- Question 2 with tidelock: what the first large product pays for, and what a clock shows
-- that is stopped before the work has run.
--   lua5.4 question2.lua [device] [n]
local before = os.clock() -- of the processor: there is no other yet
local gpu = require "tidelock"
local import = os.clock() - before
local lines = require "lines"

local n = math.tointeger(arg[2] or 10000)
lines.say("import", { import }, "s", n, "float32")
local step = lines.steps(n)
local dev = gpu.device(arg[1] or "cuda:0")
local stream = dev:stream()
step("context")
local a = dev:rand({ n, n }, { seed = 1, stream = stream })
local b = dev:rand({ n, n }, { seed = 2, stream = stream })
local c = dev:empty { n, n }
stream:synchronize()
step("data")
gpu.matmul(a, b, c, stream) -- opens the BLAS library
step("first enqueue")
stream:synchronize()
step("first wait")
gpu.matmul(a, b, c, stream)
step("second enqueue")
stream:synchronize()
step("second wait")
