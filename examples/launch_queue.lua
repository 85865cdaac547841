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

io.stdout:setvbuf("line")
local launches = options.launches
local dev = gpu.device(nil, options.depth and { queue_depth = options.depth })
local depth = dev:properties().queue_depth -- nil: not told

--- The work of one launch: the question's own kernel, or a spin of known length.
local function work(n)
  local a, b = dev:full({ n, n }, 2, "float64"), dev:full({ n, n }, 3, "float64")
  local c = dev:zeros({ n, n }, "float64")
  return options.spin and function(s) s:spin(options.spin) end
    or function(s) gpu.matmul(a, b, c, { kernel = "naive", stream = s }) end, c
end

--- So many launches in a loop, under a policy: with one wait at the end, or one for each.
local function loop(launch, count, policy)
  return dev:bench(launch, { name = "launches", outputs = {}, policy = { policy, check = "none",
    k = policy == "unsynced" and count or nil, warmup = { calls = 0 },
    stop = policy ~= "unsynced" and { min_samples = count, max_samples = count, min_time = 0 }
      or nil } })
end

-- The size at which this kernel takes about 2 ms here.
gpu.on_warning(nil) -- what they say is printed below
local n, each = options.n or options.spin and 8 or 32, 0
while not options.n and not options.spin and each < 5e-4 do
  n = 2 * n
  each = loop(work(n), 8, "unsynced").wall.median
end
if each > 0 then n = math.floor(n * (2e-3 / each) ^ (1 / 3)) end
local launch, c = work(n)

progress("launching " .. launches .. " times")
local r = loop(launch, launches, "unsynced")
progress("launching " .. launches .. " times, waiting for each")
local waiting = loop(launch, launches, "synchronized")
progress()
assert(options.spin or (c:get(1, 1) == 6 * n and c:get(n, n) == 6 * n), "the product is wrong")

local step, shown, truth = r.knee, r.samples.enqueue[1], r.samples.wall[1]
local in_flight, synchronized = r.samples.inflight[1], waiting.wall.mean * launches
local what = options.spin and "spins of " .. plot.seconds(options.spin)
  or ("matmul %dx%d float64, kernel naive,"):format(n, n)
print(("%d launches of %s on %s; a stream's queue holds %s")
  :format(launches, what, dev:id(), depth or "what the driver does not tell"))
depth = depth or in_flight -- a full queue's launches are those in flight
print(plot.text(r.launches, { title = "host time of each launch (enqueue time)" }))
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
  :format(plot.seconds(synchronized), plot.seconds(waiting.wall.mean)))
local written, reason = false, "svg= is empty"
if options.svg then written, reason = r:plot(options.svg) end
print(written and "plot: " .. options.svg or "no plot: " .. reason)
return { costs = r.launches, step = step, depth = depth, n = n, shown = shown,
  in_flight = in_flight, truth = truth, synchronized = synchronized, record = r }
