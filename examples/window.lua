-- How many launches must be in flight? Throughput against the in-flight window: one at a time pays
-- for every wait, a few hide it, and more only fill the queue.
--   lua5.4 window.lua [spin=20e-6] [count=500] [svg=window.svg]
local gpu = require "tidelock"
local options = require "tidelock.options".read({ ... }, {
  spin = { default = 20e-6, number = true }, count = { default = 500, least = 1 },
  svg = { default = "window.svg", text = true },
})
local units = require "tidelock.units"

gpu.on_warning(nil)
local dev = gpu.device()
local windows = {}
for power = 0, 7 do windows[power + 1] = 2 ^ power // 1 | 0 end

local r = dev:sweep({ { "window", windows } }, function(at)
  if at.window > (dev:properties().queue_depth or 1000) // 4 then
    return nil, "more than a quarter of the queue"
  end
  return function(stream) stream:spin(options.spin) end, { policy = { "window", window = at.window,
    k = options.count, warmup = { seconds = 0, settle = false, calls = 1 },
    stop = { min_samples = 5, min_time = 0, max_time = 1, rel_ci = 0.02 } } }
end, { outputs = {} })

print(("%d spins of %s on %s, so many in flight at most"):format(options.count,
  units.seconds(options.spin), dev:id()))
for _, point in ipairs(r.points) do
  local statistics = point.result and point.result.wall
  if statistics then
    local share = options.spin / statistics.median
    print(("%4d in flight: %8s each [wall time, synchronized], %5.1f %% busy %s"):format(
      point.at.window, units.seconds(statistics.median), 100 * share,
      ("#"):rep(40 * math.min(share, 1) // 1 | 0)))
  else
    print(("%4d in flight: %s"):format(point.at.window, point.skipped))
  end
end
local written, reason = false, "svg= is empty"
if options.svg then written, reason = r:plot(options.svg) end
print(written and "plot: " .. options.svg or "no plot: " .. reason)
return r
