--- Records for the specs of results: small, made by hand or from a seed, no device needed.
local result = require "tidelock.result"

local records = {}

--- Statistics of a clock, all from a median and the half-width of its interval.
function records.statistics(median, half_width)
  local h = half_width or median * 0.001
  return { n = 47, median = median, ci = { low = median - h, high = median + h }, mean = median,
    min = median * 0.99, max = median * 1.05, q1 = median - 2 * h, q3 = median + 2 * h, mad = h,
    rho = 0.1, n_eff = 38.5, mild = 0, severe = 0, rel_ci = h / median }
end

--- A bench as dev:bench makes one; `changes` replace fields.
function records.bench(changes)
  local fields = {
    kind = "bench", name = "matmul", where = "bench.lua:12", headline = "device",
    policy = { name = "cold", clock = "events", isolation = "each", block = true, cache = "flush",
      duty = "burst", warmup = { calls = 3, seconds = 0.5 }, stop = { rel_ci = 0.005 },
      center = "median", check = "none" },
    device = records.statistics(312.4e-6, 0.44e-6), enqueue = records.statistics(4.1e-6),
    wall = records.statistics(330e-6), sync = records.statistics(325.9e-6),
    samples = { enqueue = { 4e-6, 4.2e-6 }, device = { 312e-6, 313e-6 },
      sync = { 326e-6, 326e-6 }, wall = { 330e-6, 330.2e-6 }, inflight = { 1, 1 },
      slots = { 3, 3 }, ops = { 1, 1 } },
    flops = 16e9, call_cost = 0.21e-6, setup = 1.2,
    environment = { device = "cuda:0", backend = "cuda", name = "NVIDIA H200", driver = "580.159",
      lua = "Lua 5.4", date = "2026-12-01T03:00:00Z", tidelock = "0.3.0" },
    warnings = {},
  }
  for key, value in pairs(changes or {}) do
    fields[key] = value
  end
  return result.new(fields)
end

--- A comparison of two benches.
function records.compare(changes)
  local fields = {
    kind = "compare", names = { "naive", "tiled" }, rounds = 20,
    results = {
      records.bench { name = "naive" },
      records.bench { name = "tiled", device = records.statistics(100e-6, 0.2e-6) },
    },
    ratios = { { ratio = 0.32, ci = { low = 0.318, high = 0.322 }, verdict = "FASTER" } },
    floor = { ratio = 1.0002, ci = { low = 0.9991, high = 1.0013 } }, warnings = {},
  }
  for key, value in pairs(changes or {}) do
    fields[key] = value
  end
  return result.new(fields)
end

--- A sweep over a size and a kernel, one point skipped.
function records.sweep(sizes)
  local points = {}
  sizes = sizes or { 256, 512 }
  for _, n in ipairs(sizes) do
    for _, kernel in ipairs { "naive", "tiled" } do
      local point = { at = { n = n, kernel = kernel } }
      if kernel == "naive" and n == sizes[#sizes] then
        point.skipped = "it would take too long"
      else
        local time = n ^ 3 * (kernel == "naive" and 2e-12 or 2e-13) + 5e-6
        point.result = records.bench { name = "matmul", flops = 2.0 * n ^ 3,
          device = records.statistics(time, 0.02 * time) }
      end
      points[#points + 1] = point
    end
  end
  return result.new { kind = "sweep", points = points,
    axes = { { "n", sizes }, { "kernel", { "naive", "tiled" } } } }
end

function records.calibration()
  local policies = {}
  for _, policy in ipairs { { "enqueue", 3e-6, 0, nil }, { "events", 4.66e-6, 1, 466e-6 },
    { "batch", 1.35e-6, 1, 135e-6 } } do
    local points = {}
    for i, spin in ipairs { 0, 2e-6, 1e-5, 1e-4, 1e-3 } do
      points[i] = { spin = spin, measured = policy[2] + policy[3] * spin }
    end
    policies[#policies + 1] = { policy = policy[1], bias = policy[2], scale = policy[3] + 0.0,
      floor = policy[4], residual = 2e-8, points = points }
  end
  return result.new { kind = "calibration", policies = policies,
    environment = { device = "cuda:0", name = "NVIDIA H200" } }
end

return records
