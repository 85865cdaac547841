-- How can a processor multiply two large matrices in almost no time? It can't: the clock
-- stopped before the work had run.
--   lua5.4 instant_matmul.lua [n=size] [calls=10] [svg=path]
local gpu = require "tidelock"
local options = require "tidelock.options".read({ ... }, {
  n = { least = 2 }, calls = { default = 10, least = 2 },
  svg = { default = "instant_matmul.svg", text = true },
})
local plot = require "tidelock.plot"
local progress = require "tidelock.progress".line()

io.stdout:setvbuf("line") -- the warning on stderr then stands where it belongs
local clock = gpu.device("host"):now() -- a stamp before there is a device to take one of
local dev = gpu.device()
local opened = clock:elapsed()
local stream = dev:default_stream()
local n = options.n or (dev:properties().backend == "cuda" and 10000 or 2000)

--- 0, 1, ... period - 1 over and over: so every element of the product is exact.
local function matrix(period)
  local once = {}
  for i = 1, period do once[i] = string.pack("<f", i - 1) end
  local bytes = table.concat(once):rep(n * n // period + 1)
  return dev:array(bytes:sub(1, 4 * n * n)):reshape { n, n }
end
progress("filling two matrices")
local a, b, c = matrix(7), matrix(5), dev:zeros { n, n }
dev:synchronize()

--- One call: seconds until it returned, until the work was done, by the device's own clock.
local function call()
  local first, start = stream:record(), dev:now()
  gpu.matmul(a, b, c, stream)
  local enqueue, last = start:elapsed(), stream:record()
  stream:synchronize()
  return enqueue, (start:elapsed()), last - first
end

--- The sum of the product is known from the column sums of a and the row sums of b.
local function check()
  local wanted, sum = 0, 0
  for k = 0, n - 1 do
    local column, row = 0, 0
    for i = 0, n - 1 do column, row = column + (i * n + k) % 7, row + (k * n + i) % 5 end
    wanted = wanted + column * row
  end
  for _, values in ipairs(c:totable()) do
    for j = 1, n do sum = sum + values[j] end
  end
  assert(sum == wanted, "the product is wrong")
  return sum
end

print(("matmul %dx%d float32 on %s (%s)"):format(n, n, dev:id(), dev:properties().name))
progress("opening the BLAS")
local before = dev:now()
dev:matmul_kernels() -- asks each whether it can be used
local library = before:elapsed()
progress("multiplying")
local first_cost, wall, device = call()
local costs = { first_cost }
progress()
print(("before it     opening the device %s, the BLAS %s [wall time]")
  :format(plot.seconds(opened), plot.seconds(library)))
print(("first call    returned after %-7s [enqueue time: loading code is in it]")
  :format(plot.seconds(costs[1])))
print(("              done after     %-7s [wall time, synchronized]"):format(plot.seconds(wall)))

local start = dev:now()
gpu.matmul(a, b, c, stream)
local shown = dev:now() - start -- the clock is stopped at once: a warning says so
stream:synchronize()
local done = dev:now() - start
print(("second call   clock stopped  %-7s [enqueue time]: it would be %.0f TFLOP/s")
  :format(plot.seconds(shown), 2e-12 * n ^ 3 / shown))
print(("              synchronized   %-7s [wall time]: %.3f TFLOP/s")
  :format(plot.seconds(done), 2e-12 * n ^ 3 / done))
for i = 2, options.calls do
  progress(("call %d of %d"):format(i, options.calls))
  costs[i], wall, device = call()
end
progress("checking the product")
local sum = check()
progress()
print(("last call     by the device  %-7s [device time, between two events]")
  :format(plot.seconds(device)))
print(("the product was checked: its elements add up to %.0f, as they must"):format(sum))
print(plot.text(costs, { title = "host time of each call (enqueue time)", height = 6 }))
local written, reason = false, "svg= is empty"
if options.svg then
  written, reason = plot.svg(options.svg, costs,
    { title = "Host time of each call", ylabel = "enqueue, s" })
end
print(written and "plot: " .. options.svg or "no plot: " .. reason)
return { n = n, costs = costs, shown = shown, done = done, wall = wall, device = device, sum = sum }
