--- dev:calibrate: every policy against spins of known length. measured = bias + scale * spin; a
-- policy that sees device time has the scale 1, one that does not has 0, and says so.
local bench = require "tidelock.bench"
local fit = require "tidelock.fit"
local policies = require "tidelock.policy"
local progress = require "tidelock.progress"
local records = require "tidelock.record"
local result = require "tidelock.result"

local calibrate = {}

local SPINS = { 0, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3,
  10e-3 }

-- Where a sample has several operations their number is fixed: the bias of one is a share of it.
local POLICIES = { "enqueue", "synchronized", "events", "cold", { "batch", k = 16 },
  { "window", window = 4, k = 64 }, "slope" }

local FLOOR = 0.01 -- the error up to which a spin counts as measured

---@class tidelock.calibrate_options
---@field policies (string | table)[]? default: all that measure
---@field spins number[]? seconds, ascending; default: 0 and 2 us to 10 ms
---@field seconds number? for each policy; default 8
---@field samples integer? of each spin; default 20
---@field seed integer? default 1

local known = { policies = "table", spins = "table", seconds = "number", samples = "number",
  seed = "number" }

local function read(options)
  for name, value in pairs(options or {}) do
    if not known[name] then
      error(("unknown option '%s' (there are: policies, samples, seconds, seed, spins)"):format(
        tostring(name)), 0)
    elseif type(value) ~= known[name] then
      error(("option '%s': a %s wanted, got %s"):format(name, known[name], tostring(value)), 0)
    end
  end
  return options or {}
end

--- A policy as it is calibrated: as it is, but with short warm-up and a budget.
local function hurried(given, samples, seconds)
  local asked = type(given) == "table" and given or { given }
  local fields = { warmup = { calls = 2, seconds = 0, settle = false }, check = "none",
    stop = { min_samples = samples, max_samples = samples, min_time = 0, max_time = seconds } }
  for name, value in pairs(asked) do
    fields[name] = value
  end
  local base = policies.read(asked)
  if base.clock == "slope" then
    fields.stop.min_samples = math.max(3, samples // 4)
    fields.stop.max_samples = fields.stop.min_samples
  end
  return fields
end

--- The smallest spin from which on every measured value is within the error.
local function floor_of(points)
  local floor
  for i = #points, 1, -1 do
    local point = points[i]
    if math.abs(point.measured - point.spin) > FLOOR * point.spin then
      break
    end
    floor = point.spin
  end
  return floor
end

local function line_of(points)
  local x, y = {}, {}
  for i, point in ipairs(points) do
    x[i], y[i] = point.spin, point.measured
  end
  return fit.line(x, y)
end

--- Measures the spins in random order.
local function measure(dev, policy, spins, seed, gpu)
  local order = bench.shuffled(#spins, seed)
  local points, used = {}, nil
  for _, i in ipairs(order) do
    local record = bench.run(dev, function(stream)
      stream:spin(spins[i])
    end, { policy = policy, outputs = {} }, gpu)
    points[i] = { spin = spins[i], measured = record[record.headline].median }
    used = record.policy
  end
  return points, used
end

--- Calibrates policies. The figures are of the device with its driver and flags, for one stream:
--- this validates clocks and queueing, not caches, power or occupancy. On the host a spin sleeps,
--- and the time until the scheduler wakes the thread is in the bias.
---@param dev tidelock.device
---@param options tidelock.calibrate_options?
---@param gpu table
---@return tidelock.calibration
function calibrate.run(dev, options, gpu)
  options = read(options)
  local spins, list = options.spins or SPINS, options.policies or POLICIES
  if #spins < 3 then
    error("option 'spins': at least three wanted, or there is no line", 0)
  end
  local quiet = setmetatable({ warn = function() end }, { __index = gpu })
  local show, entries = progress.line(), {}
  for i, given in ipairs(list) do
    local name = type(given) == "table" and given[1] or given
    show(("calibrating policy %s, %d of %d"):format(name, i, #list))
    local policy = hurried(given, options.samples or 20, (options.seconds or 8) / #spins)
    local points, used = measure(dev, policy, spins, options.seed or 1, quiet)
    local line = line_of(points)
    entries[i] = { policy = used, bias = line.intercept, scale = line.slope,
      residual = line.residual,
      floor = floor_of(points), points = points }
  end
  show()
  return result.new { schema = 1, kind = "calibration", policies = entries,
    environment = records.environment(dev, gpu), warnings = {} }
end

return calibrate
