-- How can a processor multiply two large matrices in almost no time? It can't:
-- the clock stopped before the work had run.
--   lua5.4 instant_matmul.lua [n=size] [calls=10] [svg=path]
local gpu = require "tidelock"
local plot = require "tidelock.plot"
local progress = require "tidelock.progress".line()

local options = { calls = 10, svg = "instant_matmul.svg" }
for _, argument in ipairs { ... } do
  local name, value = argument:match("^(%w+)=(.+)$")
  options[assert(name, "options are written name=value")] = tonumber(value) or value
end
local dev = gpu.device()
local n = options.n or (dev:properties().backend == "host" and 2000 or 10000)

-- Small integers, so that every element of the product is exact.
local function matrix(period)
  local values = {}
  for i = 1, period do
    values[i] = i - 1
  end
  local once = string.pack("<" .. ("f"):rep(period), table.unpack(values))
  return dev:array(once:rep(n * n // period + 1):sub(1, 4 * n * n)):reshape { n, n }
end
progress("filling two matrices")
local a, b, c = matrix(7), matrix(5), dev:zeros { n, n }
local stream = dev:default_stream()
dev:synchronize()

--- One call: seconds until it returned, until the work was done, and by the
--- device's own clock.
local function call()
  local first, last = dev:event(), dev:event()
  stream:record(first)
  local start = dev:now()
  gpu.matmul(a, b, c, stream)
  local enqueue = start:elapsed()
  stream:record(last)
  stream:synchronize()
  return enqueue, (start:elapsed()), last - first
end

print(("matmul %dx%d float32 on %s (%s)"):format(n, n, dev:id(), dev:properties().name))
progress("multiplying")
local enqueue, wall = call()
print(("first call:  returned after %-8s [enqueue time: opening the library is in it]\n"
  .. "             done after     %-8s [wall time, synchronized]")
  :format(plot.seconds(enqueue), plot.seconds(wall)))

local start = dev:now()
gpu.matmul(a, b, c, stream)
local stop = dev:now()
local shown = stop - start -- says on stderr that the work is still in flight
stream:synchronize()
local done = dev:now() - start
print(("second call: the clock stopped at once: %s [enqueue time], which would be %.0f TFLOP/s\n"
  .. "             with synchronize:          %s [wall time], %.3f TFLOP/s")
  :format(plot.seconds(shown), 2 * n ^ 3 / shown * 1e-12, plot.seconds(done),
    2 * n ^ 3 / done * 1e-12))

local costs, device = { enqueue }, 0
for i = 2, options.calls do
  progress(("call %d of %d"):format(i, options.calls))
  costs[i], wall, device = call()
end
progress()
print(("             by the device itself:      %s [device time between two events]")
  :format(plot.seconds(device)))

-- The sum of the product, from the column sums of a and the row sums of b.
local expected = 0
for k = 0, n - 1 do
  local column, row = 0, 0
  for i = 0, n - 1 do
    column, row = column + (i * n + k) % 7, row + (k * n + i) % 5
  end
  expected = expected + column * row
end
local sum = 0
for _, values in ipairs(c:totable()) do
  for j = 1, n do
    sum = sum + values[j]
  end
end
assert(sum == expected, "the product is wrong")
print(("the product was checked: its elements add up to %.0f, as they must"):format(sum))
print(plot.text(costs, { title = "host time of each call (enqueue time)", height = 6 }))
if plot.svg(options.svg, costs, { title = "Host time of each call", ylabel = "seconds (enqueue)" }) then
  print("plot: " .. options.svg)
end
return { n = n, costs = costs, shown = shown, done = done, wall = wall, device = device, sum = sum,
  expected = expected }
