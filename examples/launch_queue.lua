-- Why do launches get slow after about a thousand of them? The launch queue filled: from
-- there each launch waits for a slot, and the loop's clock measures the queue, not the work.
--   lua5.4 launch_queue.lua [launches=2000] [depth=1024] [n=size] [spin=seconds] [svg=path]
local gpu = require "tidelock"
local options = require "tidelock.options".read({ ... }, {
  launches = { default = 2000, least = 1 }, depth = { least = 1 }, n = { least = 1 },
  spin = { number = true }, svg = { default = "launch_queue.svg", text = true },
})
local plot = require "tidelock.plot"
local progress = require "tidelock.progress".line()
local stats = require "tidelock.stats"

io.stdout:setvbuf("line")
local launches = options.launches
local dev = gpu.device(nil, options.depth and { queue_depth = options.depth })
local depth, stream = dev:properties().queue_depth, dev:default_stream() -- nil: not told

--- The work of one launch: the question's own kernel, or a spin of known length.
local function work(n)
  local a, b = dev:full({ n, n }, 2, "float64"), dev:full({ n, n }, 3, "float64")
  local c = dev:zeros({ n, n }, "float64")
  local naive = { kernel = "naive", stream = stream }
  return options.spin and function() stream:spin(options.spin) end
    or function() gpu.matmul(a, b, c, naive) end, c
end

--- Launches in a loop. Returns each launch's host time, the loop's clock when the loop ended,
--- the launches in flight then, and the clock when the work was done.
local function run(launch, count, wait_each)
  local costs, before = {}, 0
  dev:synchronize()
  local start = dev:now()
  for i = 1, count do
    launch()
    local now = start:elapsed()
    costs[i], before = now - before, now
    if wait_each then dev:synchronize() end
  end
  local shown, in_flight = start:elapsed()
  dev:synchronize()
  return costs, shown, in_flight, (start:elapsed())
end

-- The size at which this kernel takes about 2 ms here.
local n, each = options.n or options.spin and 8 or 32, 0
while not options.n and not options.spin and each < 5e-4 do
  n = 2 * n
  local once = work(n)
  run(once, 1) -- the first launch loads code
  each = select(4, run(once, 8)) / 8
end
if each > 0 then n = math.floor(n * (2e-3 / each) ^ (1 / 3)) end
local launch, c = work(n)

progress("launching " .. launches .. " times")
local costs, shown, in_flight, truth = run(launch, launches)
progress("launching " .. launches .. " times, waiting for each")
local synchronized = select(4, run(launch, launches, true))
progress()
assert(options.spin or (c:get(1, 1) == 6 * n and c:get(n, n) == 6 * n), "the product is wrong")

local step = stats.step(costs)
local what = options.spin and "spins of " .. plot.seconds(options.spin)
  or ("matmul %dx%d float64, kernel naive,"):format(n, n)
print(("%d launches of %s on %s; a stream's queue holds %s")
  :format(launches, what, dev:id(), depth or "what the driver does not tell"))
depth = depth or in_flight -- a full queue's launches are those in flight
print(plot.text(costs, { title = "host time of each launch (enqueue time)" }))
if step then
  print(("launches 1-%d cost %s each; from %d on each waits %s for a free slot [enqueue time]")
    :format(step.first - 1, plot.seconds(step.before), step.first, plot.seconds(step.after)))
else
  print("no launch waited for a slot: the queue did not fill")
end
print(("the loop ended after   %-7s [enqueue time, %d launches in flight]")
  :format(plot.seconds(shown), in_flight))
print(("the work ended after   %-7s [wall time, synchronized]"):format(plot.seconds(truth)))
if step then
  print(("the loop showed %.1f %% of the truth; a full queue predicts 1 - %d/%d = %.1f %%")
    :format(100 * shown / truth, depth, launches, 100 * (1 - depth / launches)))
end
print(("synchronized each step %-7s [wall time], %s a launch")
  :format(plot.seconds(synchronized), plot.seconds(synchronized / launches)))
local written, reason = false, "svg= is empty"
if options.svg then
  written, reason = plot.svg(options.svg, costs,
    { title = "Host time of each launch", ylabel = "enqueue, s" })
end
print(written and "plot: " .. options.svg or "no plot: " .. reason)
return { costs = costs, step = step, depth = depth, n = n, shown = shown, in_flight = in_flight,
  truth = truth, synchronized = synchronized }
