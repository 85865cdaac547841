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
local n = options.n or (dev:properties().backend == "cuda" and 10000 or 2000)
progress("filling two matrices")
local a, b = dev:rand({ n, n }, { seed = 1 }), dev:rand({ n, n }, { seed = 2 })
local c = dev:zeros { n, n }
dev:synchronize()

print(("matmul %dx%d float32 on %s (%s)"):format(n, n, dev:id(), dev:properties().name))
progress("opening the BLAS")
local before = dev:now()
dev:matmul_kernels() -- asks each whether it can be used
local library = before:elapsed()
progress("multiplying")

-- Nothing is called before the first sample; the product is checked after the last one.
local told = gpu.on_warning(function(code, message) -- the rest is printed below
  assert(code ~= "E-WRONG", message)
end)
local r = dev:bench(gpu.matmul, { name = "each call", args = { a, b, c }, flops = 2 * n ^ 3,
  verify = "matmul", policy = { "synchronized", warmup = { calls = 0 },
    stop = { min_samples = options.calls, max_samples = options.calls, min_time = 0 } } })
gpu.on_warning(told)
progress()
local enqueue, wall = r.samples.enqueue, r.samples.wall
print(("before it     opening the device %s, the BLAS %s [wall time]")
  :format(plot.seconds(opened), plot.seconds(library)))
print(("first call    returned after %-7s [enqueue time: loading code is in it]")
  :format(plot.seconds(enqueue[1])))
print(("              done after     %-7s [wall time, synchronized]"):format(plot.seconds(wall[1])))

local start = dev:now()
gpu.matmul(a, b, c)
local shown = dev:now() - start -- the clock is stopped at once: a warning says so
dev:synchronize()
local done = dev:now() - start
print(("a later call  clock stopped  %-7s [enqueue time]: it would be %.0f TFLOP/s")
  :format(plot.seconds(shown), 2e-12 * n ^ 3 / shown))
print(("              synchronized   %-7s [wall time]: %.3f TFLOP/s")
  :format(plot.seconds(done), 2e-12 * n ^ 3 / done))
print(r)
print("the product was checked, by Freivalds' method")
print(plot.text(enqueue, { title = "host time of each call (enqueue time)", height = 6 }))
local written, reason = false, "svg= is empty"
if options.svg then
  written, reason = plot.svg(options.svg, enqueue,
    { title = "Host time of each call", ylabel = "enqueue, s" })
end
print(written and "plot: " .. options.svg or "no plot: " .. reason)
return { n = n, shown = shown, done = done, record = r }
