-- Why is the benchmark faster than the real thing? Its matrices were zeros: they take less power,
-- and a GPU at its power limit then has a higher clock. (Random data first, zeros, and random data
-- again: what drifts meanwhile shows in the two that should be equal.)
--   lua5.4 zeros.lua [n=size] [dtype=name] [seconds=2]
local gpu = require "tidelock"
local options = require "tidelock.options".read({ ... }, {
  n = { least = 1 }, dtype = { text = true }, seconds = { default = 2, number = true },
})
local progress = require "tidelock.progress".line()

io.stdout:setvbuf("line")
local dev = gpu.device()
local cuda = dev:properties().backend == "cuda"
local n = options.n or cuda and 8192 or 256
local dtype = options.dtype or cuda and "bfloat16" or "float32"
local c = dev:zeros({ n, n }, dtype)
local uniform = { dev:rand({ n, n }, { dtype = dtype, seed = 1 }),
  dev:rand({ n, n }, { dtype = dtype, seed = 2 }), c }
local zeros = { dev:zeros({ n, n }, dtype), dev:zeros({ n, n }, dtype), c }

local told = gpu.on_warning(nil) -- the records print what was warned
local records = {}
for i, case in ipairs { { "uniform", uniform }, { "zeros", zeros },
  { "uniform again", uniform } } do
  progress(("%d of 3: %s"):format(i, case[1]))
  records[i] = dev:bench(gpu.matmul, { name = case[1], args = case[2], flops = 2 * n ^ 3,
    policy = { "batch", cache = "warm", warmup = { seconds = options.seconds / 2 },
      stop = { rel_ci = 0, min_time = options.seconds, max_time = options.seconds } } })
end
progress()
gpu.on_warning(told)
for _, record in ipairs(records) do print(record) end
local before, between, after = records[1].device.median, records[2].device.median,
  records[3].device.median
local gain, noise = (before + after) / 2 / between - 1, math.abs(after / before - 1)
print(("%s n=%d on %s: zeros are %.1f %% %s than uniform data [device time]; uniform data differs "
  .. "from itself by %.1f %%"):format(dtype, n, dev:id(), 100 * math.abs(gain),
  gain >= 0 and "faster" or "slower", 100 * noise))
return { records = records, gain = gain, noise = noise }
