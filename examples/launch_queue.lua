-- Why do launches get slow after about a thousand of them? The launch queue
-- filled: from there each launch waits for a slot, and the clock of the loop
-- measures the queue, not the work.
--   lua5.4 launch_queue.lua [launches=2000] [depth=1024] [n=size] [svg=path]
local gpu = require "tidelock"
local plot = require "tidelock.plot"
local progress = require "tidelock.progress".line()

local options = { launches = 2000, svg = "launch_queue.svg" }
for _, argument in ipairs { ... } do
  local name, value = argument:match("^(%w+)=(.+)$")
  options[assert(name, "options are written name=value")] = tonumber(value) or value
end
local launches = options.launches
local dev = gpu.device(nil, { queue_depth = options.depth })
local depth = dev:properties().queue_depth

-- The size that makes this kernel take about 2 ms here.
local function launch_seconds(n)
  local a, c = dev:full({ n, n }, 1, "float64"), dev:zeros({ n, n }, "float64")
  dev:synchronize()
  local start = dev:now()
  gpu.matmul(a, a, c, { kernel = "naive" })
  dev:synchronize()
  return dev:now() - start
end
launch_seconds(8)
local n = options.n or math.max(8, math.floor(64 * (2e-3 / launch_seconds(64)) ^ (1 / 3)))

local a, b = dev:full({ n, n }, 2, "float64"), dev:full({ n, n }, 3, "float64")
local c, naive = dev:zeros({ n, n }, "float64"), { kernel = "naive" }

--- Launches in a loop; returns the seconds of each launch, the loop's clock when
--- the loop ended, the launches in flight then, and the clock when all was done.
local function run(each)
  local costs, before = {}, 0
  dev:synchronize()
  local start = dev:now()
  for i = 1, launches do
    gpu.matmul(a, b, c, naive)
    local now = start:elapsed()
    costs[i], before = now - before, now
    if each then
      dev:synchronize()
      before = start:elapsed()
    end
  end
  local shown, in_flight = start:elapsed()
  dev:synchronize()
  return costs, shown, in_flight, (start:elapsed())
end

local function median(values, first, last)
  local part = table.move(values, first, last, 1, {})
  table.sort(part)
  return part[(#part + 1) // 2]
end

progress("launching " .. launches .. " times")
local costs, shown, in_flight, true_time = run(false)
progress("launching " .. launches .. " times, waiting for each")
local _, _, _, synchronized = run(true)
progress()
assert(c:get(1, 1) == 6 * n and c:get(n, n) == 6 * n, "the product is wrong")

local before = median(costs, 2, math.min(depth, launches) // 2 + 1)
local after = median(costs, launches - (launches - math.min(depth, launches - 1)) // 2, launches)
local knee
for i = 1, launches - 8 do
  local slow = costs[i] > math.sqrt(before * after) and 0 or -8
  for j = i, i + 7 do
    slow = slow + (costs[j] > math.sqrt(before * after) and 1 or 0)
  end
  if slow >= 6 and after > 1.5 * before then
    knee = i
    break
  end
end

print(("%d launches of matmul %dx%d float64, kernel naive, on %s; the queue holds %d launches")
  :format(launches, n, n, dev:id(), depth))
print(plot.text(costs, { title = "host time of each launch (enqueue time)" }))
if knee then
  print(("launches 1-%d cost %s each [enqueue time]; from launch %d on each waits %s for a free slot")
    :format(knee - 1, plot.seconds(before), knee, plot.seconds(after)))
end
print(("the loop ended after   %8.3f s [enqueue time, %d launches in flight]"):format(shown, in_flight))
print(("the work ended after   %8.3f s [wall time, synchronized]"):format(true_time))
print(("the loop showed %.1f %% of the truth; a full queue predicts 1 - %d/%d = %.1f %%")
  :format(100 * shown / true_time, depth, launches, 100 * (1 - depth / launches)))
print(("synchronized each step %8.3f s [wall time], %s a launch")
  :format(synchronized, plot.seconds(synchronized / launches)))
if plot.svg(options.svg, costs, { title = "Host time of each launch", ylabel = "seconds (enqueue)" }) then
  print("plot: " .. options.svg)
end
return { costs = costs, knee = knee, depth = depth, before = before, after = after, n = n,
  shown = shown, in_flight = in_flight, true_time = true_time, synchronized = synchronized }
