-- The ladder of matmul kernels: each checked, timed in turns with the others, compared and plotted.
--   lua5.4 ladder.lua [n=size] [dtype=float32] [rounds=10] [svg=ladder.svg]
local gpu = require "tidelock"
local options = require "tidelock.options".read({ ... }, {
  n = { least = 1 }, dtype = { default = "float32", text = true },
  rounds = { default = 10, least = 10 }, svg = { default = "ladder.svg", text = true },
})
local units = require "tidelock.units"

gpu.on_warning(nil) -- they are in the results, which are printed
local dev = gpu.device()
local dtype = options.dtype
local n = options.n or (dev:properties().backend == "cuda" and 4096 or 256)
local a, b = dev:rand({ n, n }, { dtype = dtype, seed = 1 }), dev:rand({ n, n }, { dtype = dtype })

--- Whether the kernel takes the type and gives the right product, and the variant of it.
local function rung(kernel)
  local takes = false
  for _, name in ipairs(kernel.dtypes) do takes = takes or name == dtype end
  if not kernel.available or not takes then
    return nil, kernel.available and "does not take " .. dtype or kernel.note
  end
  local c = dev:zeros({ n, n }, dtype)
  gpu.matmul(a, b, c, { kernel = kernel.name })
  local right, reason = gpu.check_matmul(a, b, c)
  return right and { kernel.name, function(x, y, z, stream)
    gpu.matmul(x, y, z, { kernel = kernel.name, stream = stream })
  end, { args = { a, b, c } } }, reason
end

local variants = {}
for _, kernel in ipairs(dev:matmul_kernels()) do
  local variant, reason = rung(kernel)
  variants[#variants + 1] = variant or nil
  print(("%-10s %s"):format(kernel.name, variant and "right" or reason))
end

local r = dev:compare(variants, { policy = { "cold", cache = "warm", warmup = { limit = 0.5 } },
  rounds = options.rounds, verify = "matmul", flops = 2.0 * n ^ 3 })
print(tostring(r))
for i, name in ipairs(r.names) do
  print(("%-10s %s, %s"):format(name, units.seconds(r.results[i].device.median),
    units.rate(2 * n ^ 3 / r.results[i].device.median, "FLOP/s")))
end
local written, reason = false, "svg= is empty"
if options.svg then written, reason = r:plot(options.svg) end
print(written and "plot: " .. options.svg or "no plot: " .. reason)
return r
