-- One kernel under every timing policy, in one table. They disagree, and each is right about
-- something: the clock column says about what, and the last one what was wrong with the question.
--   lua5.4 policies.lua [n=512] [dtype=float32] [kernel=auto] [seconds=2] [json=path]
local gpu = require "tidelock"
local options = require "tidelock.options".read({ ... }, {
  n = { default = 512, least = 1 }, dtype = { default = "float32", text = true },
  kernel = { default = "auto", text = true }, seconds = { default = 2, number = true },
  launches = { default = 2000, least = 1 }, json = { text = true },
})
local policy = require "tidelock.policy"
local progress = require "tidelock.progress".line()
local clocks = require "tidelock.report.clocks"

gpu.on_warning(nil) -- they are in the table
local dev = gpu.device()
local n, dtype = options.n, options.dtype
local a, b = dev:rand({ n, n }, { dtype = dtype, seed = 1 }), dev:rand({ n, n }, { dtype = dtype })
local c = dev:zeros({ n, n }, dtype)
local function product(x, y, z, stream)
  gpu.matmul(x, y, z, { kernel = options.kernel, stream = stream })
end

--- A preset that takes `seconds` at most, warm-up included.
local function hurried(preset)
  local seconds = options.seconds / 2
  local warm = not preset.warmup and { seconds = seconds / 2, limit = seconds } or nil
  return { preset.name, warmup = warm, stop = { max_time = seconds, min_time = seconds / 2 },
    k = preset.name == "unsynced" and options.launches or nil }
end

local results = {}
for _, preset in ipairs(policy.presets) do
  if preset.name ~= "first_call" and preset.name ~= "graph" then -- a script; no device captures yet
    progress("policy " .. preset.name)
    results[#results + 1] = dev:bench(product, { args = { a, b, c }, verify = "matmul",
      flops = 2.0 * n ^ 3, name = "matmul", policy = hurried(preset) })
  end
end
progress()

print(("matmul %dx%d %s, kernel %s, on %s (%s)"):format(n, n, dtype, options.kernel, dev:id(),
  dev:properties().name))
local row = "%-13s %-24s %-12s %-28s %-14s %s"
print((row:format("policy", "clock", "time", "95 % interval", "rate", "told")))
for i, r in ipairs(results) do
  local value, interval = clocks.measured(r)
  local codes = {}
  for k, warning in ipairs(r.warnings) do codes[k] = warning.code end
  print((row:format(r.policy.name, clocks.headline(r).name, value, interval or "",
    clocks.rate(r, "flops") or "", table.concat(codes, " ")):gsub("%s+$", "")))
  if options.json then r:json(options.json, { append = i > 1 }) end
end
local unsynced = results[#results]
print(("a loop without a wait shows %.1f %% of the truth"):format(
  100 * unsynced.samples.enqueue[1] / unsynced.samples.wall[1]))
return results
