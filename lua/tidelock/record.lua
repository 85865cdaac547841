--- The record of a bench, made of a session that has been sampled, and telling of its warnings.
local judge = require "tidelock.judge"
local knees = require "tidelock.knee"
local policies = require "tidelock.policy"
local result = require "tidelock.result"
local stats = require "tidelock.stats"
local units = require "tidelock.units"
local warnings = require "tidelock.warnings"

local record = {}

local variables = { "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "CUDA_MODULE_LOADING",
  "CUDA_SCALE_LAUNCH_QUEUES", "CUDA_DEVICE_MAX_CONNECTIONS", "NVIDIA_TF32_OVERRIDE",
  "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "TIDELOCK_CBLAS", "TIDELOCK_DEVICE" }

--- What Linux reads the clock from; nil elsewhere.
local function clock_source()
  local file = io.open("/sys/devices/system/clocksource/clocksource0/current_clocksource")
  local source = file and file:read("l")
  if file then
    file:close()
  end
  return source
end

--- Where a measurement was made.
---@param dev tidelock.device
---@param gpu table with version
---@return table
function record.environment(dev, gpu)
  local properties = dev:properties()
  local set = {}
  for _, name in ipairs(variables) do
    set[name] = os.getenv(name)
  end
  return { device = properties.id, backend = properties.backend, name = properties.name,
    driver = properties.driver_version and tostring(properties.driver_version),
    compute_capability = properties.compute_capability, l2_cache_size = properties.l2_cache_size,
    queue_depth = properties.queue_depth, power_limit = properties.power_limit,
    sm_clock = properties.sm_clock, memory_clock = properties.memory_clock,
    other_processes = properties.other_processes, mig = properties.mig, mps = properties.mps,
    precision_override = properties.precision_override, lua = _VERSION,
    clocksource = properties.backend ~= "sim" and clock_source() or nil,
    date = os.date("!%Y-%m-%dT%H:%M:%SZ"), tidelock = gpu.version, variables = set }
end

--- Statistics, or nil where there are no values.
---@param values number[]
---@return tidelock.statistics?
function record.summary(values)
  return #values > 0 and stats.summary(values) or nil
end

local function constant(values)
  for _, value in ipairs(values) do
    if value ~= values[1] then
      return false
    end
  end
  return true
end

--- The launch from which on each waits, and what the queue's model says of it.
local function find_knee(run, made)
  local knee = knees.find(run.extra, { depth = run.depth / run.op.launches,
    device = made.device and made.device.median })
  if not knee then
    return
  end
  made.knee = knee
  local samples = made.samples
  local what = ("launches 1-%d cost %s each; from %d on each waits %s for a free slot; the loop "
    .. "showed %.1f %% of the truth"):format(knee.first - 1, units.seconds(knee.before), knee.first,
    units.seconds(knee.after), 100 * samples.enqueue[1] / samples.wall[1])
  run:warn("W-BACKPRESSURE", { what = what, first = knee.first, before = knee.before,
    after = knee.after, predicted = knee.predicted })
end

--- The bias of the policy, from dev:calibrate(), and the value without it: beside the raw one.
local function correct(made, calibration)
  for _, entry in ipairs(calibration and calibration.policies or {}) do
    local name = type(entry.policy) == "table" and entry.policy.name or entry.policy
    -- What a sample costs is shared by its operations: as many of them, or it is another bias.
    if name == made.policy.name and entry.policy.k == made.policy.k and entry.scale ~= 0 then
      made.calibration = { bias = entry.bias, scale = entry.scale, floor = entry.floor }
      made.corrected = (made[made.headline].median - entry.bias) / entry.scale
    end
  end
end

local plain = { name = true, flops = true, bytes = true, seed = true }

--- The record of a session that has been sampled.
---@param run tidelock.session
---@param name string
---@param where string
---@return tidelock.bench
function record.of(run, name, where)
  local options, sampler, policy = run.options, run.sampler, run.policy
  local made = { schema = 1, kind = "bench", name = name, where = where, policy = policy,
    headline = policies.headline(policy), samples = sampler.columns, flops = options.flops,
    bytes = options.bytes, call_cost = run.call_cost, setup = run.setup, settings = {},
    environment = record.environment(run.dev, run.gpu) }
  for field in pairs(plain) do
    made.settings[field] = options[field]
  end
  for _, key in ipairs { "enqueue", "device", "sync", "wall" } do
    made[key] = record.summary(sampler:per_operation(key))
  end
  if policy.isolation == "batch" and not constant(sampler.columns.ops) then
    made.slope, made.fit = record.summary(run.slopes), run.fit
  end
  policy.window = policy.isolation == "window" and run.extra or policy.window
  if policy.isolation ~= "each" and policy.clock ~= "slope" then
    policy.k = run.count
  end
  if policy.isolation == "all" then
    made.launches, made.enqueue = run.extra, record.summary(run.extra)
    find_knee(run, made)
  end
  if not made[made.headline] then
    made.headline = "wall"
  end
  correct(made, options.calibration)
  judge.record(run, made, options)
  made.warnings = warnings.sort(run.found)
  for _, warning in ipairs(made.warnings) do
    warning.where = where
  end
  return result.new(made)
end

--- Tells the script's handler of the warnings of a record; information stays in the record.
---@param gpu table with warn
---@param made tidelock.record
function record.tell(gpu, made)
  for _, warning in ipairs(made.warnings) do
    if not warning.code:find("^I%-") then
      local details = {}
      for key, value in pairs(warning) do
        details[key] = value
      end
      details.where = made.where ~= "" and made.where .. ": " or ""
      gpu.warn(warning.code, warning.message, details)
    end
  end
end

return record
