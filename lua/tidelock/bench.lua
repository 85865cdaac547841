--- dev:bench: one operation under one policy.
local caller = require "tidelock.caller"
local first_call = require "tidelock.first_call"
local fit = require "tidelock.fit"
local isolated = require "tidelock.isolated"
local policies = require "tidelock.policy"
local records = require "tidelock.record"
local resample = require "tidelock.resample"
local result = require "tidelock.result"
local session = require "tidelock.session"
local stats = require "tidelock.stats"

local bench = {}

-- ---- options --------------------------------------------------------------------------------

local function is_number(value)
  return type(value) == "number" and value > 0
end

local function is_table(value)
  return type(value) == "table"
end

local fields = {
  args = { is_table, "a table" }, outputs = { is_table, "a table of buffers" },
  flops = { is_number, "a number above 0" }, bytes = { is_number, "a number above 0" },
  setup = { function(v) return type(v) == "function" end, "a function" },
  verify = { function(v) return type(v) == "function" or v == "matmul" end,
    "a function or \"matmul\"" },
  name = { function(v) return type(v) == "string" end, "a string" },
  peak = { is_table, "a table {flops=, bytes=}" },
  calibration = { is_table, "what dev:calibrate() returns" },
  policy = { function() return true end },
  seed = { math.tointeger, "an integer" },
}

--- Checks options; more are the fields that another measurement has beside those of a bench.
---@param options table?
---@param more table<string, true>?
---@return table options
function bench.read(options, more)
  if options ~= nil and type(options) ~= "table" then
    error(("bad options: a table wanted, got %s"):format(type(options)), 0)
  end
  local names = {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  for name in pairs(more or {}) do
    names[#names + 1] = name
  end
  table.sort(names)
  for name, value in pairs(options or {}) do
    local field = fields[name]
    if field and not field[1](value) then
      error(("option '%s': %s wanted, got %s"):format(name, field[2], tostring(value)), 0)
    elseif not field and not (more and more[name]) then
      error(("unknown option '%s' (there are: %s)"):format(tostring(name),
        table.concat(names, ", ")), 0)
    end
  end
  return options or {}
end

--- The options of one variant or point: its own over those of all.
---@param options table
---@param own table?
---@return table
function bench.merged(options, own)
  local all = {}
  for _, from in ipairs { options, own or {} } do
    for name, value in pairs(from) do
      all[name] = value
    end
  end
  return all
end

-- ---- sampling until it is enough --------------------------------------------------------------

local function note_throttling(run)
  for _, reason in ipairs(run.dev:properties().throttle_reasons or {}) do
    run.throttled = run.throttled or {}
    run.throttled[reason] = true
  end
end

local function headline_values(run)
  local key = policies.headline(run.policy)
  local values = run.sampler:per_operation(key == "slope" and "wall" or key)
  return #values > 0 and values or run.sampler:per_operation("wall")
end

--- Whether the estimate is as precise as asked. To be asked at few, growing numbers of samples:
--- stopping at the first chance that a noisy interval gives is a bias.
local function precise(run, values)
  return stats.precision(values, run.policy.center) <= run.policy.stop.rel_ci
end

--- Samples at 20, 31, 47, ... until the interval is narrow and the device has worked long enough;
--- never longer than the policy allows, by the wall clock.
local function sample_until(run)
  local stop, dev = run.policy.stop, run.dev
  local ends, look = dev:clock() + stop.max_time, math.max(stop.min_samples, 1)
  for n = 1, stop.max_samples do
    run:sample()
    isolated.pause()
    if n >= look then
      note_throttling(run)
      if run.sampler.busy >= stop.min_time and precise(run, headline_values(run)) then
        return
      end
      look = stats.checkpoint(look)
    end
    if dev:clock() >= ends and n >= math.min(3, stop.max_samples) then
      return
    end
  end
end

local function shuffle(list, generator)
  for i = #list, 2, -1 do
    local k = generator.below(i)
    list[i], list[k] = list[k], list[i]
  end
end

--- The numbers from 1 in random order.
---@param count integer
---@param seed integer
---@return integer[]
function bench.shuffled(count, seed)
  local list = {}
  for i = 1, count do
    list[i] = i
  end
  shuffle(list, resample.generator(seed))
  return list
end

--- A window's worth of the queue at most: no launch of a slope waits for a slot.
local function sizes_of(run)
  local sizes, k = {}, 1
  while k <= 64 and (k == 1 or k * run.op.launches <= run.depth // 4) do
    sizes[#sizes + 1], k = k, 2 * k
  end
  return sizes
end

--- Rounds of batches of 1 to 64 operations in random order; the slope of each round is one value.
local function sample_slopes(run)
  local stop, dev = run.policy.stop, run.dev
  local sizes, generator = sizes_of(run), resample.generator(run.options.seed or 1)
  local ends, slopes, all = dev:clock() + stop.max_time, {}, { x = {}, y = {} }
  repeat
    local x, y = {}, {}
    shuffle(sizes, generator)
    for i, k in ipairs(sizes) do
      x[i], y[i] = k, run:sample(k).wall
      all.x[#all.x + 1], all.y[#all.y + 1] = x[i], y[i]
      isolated.pause()
    end
    slopes[#slopes + 1] = (fit.theil_sen(x, y))
    local enough = #slopes >= stop.min_samples and precise(run, slopes)
  until enough or #slopes >= stop.max_samples or dev:clock() >= ends
  run.slopes, run.fit = slopes, fit.line(all.x, all.y)
  run.count = sizes[1]
end

--- Everything that happens on the device, in a coroutine of its own.
local function measure(run)
  local dev, policy = run.dev, run.policy
  local began = dev:clock()
  dev:synchronize()
  if policy.clock == "none" then
    run.setup = dev:clock() - began
    run.sampler:bare(run.op)
    return
  end
  run:prepare()
  if policy.warmup.calls > 0 then
    run:warm_up(isolated.pause)
  end
  if policy.check == "before_after" and run.outputs then
    run:poison()
  end
  run.setup = dev:clock() - began
  local sample = policy.clock == "slope" and sample_slopes or sample_until
  sample(run)
  if policy.check == "before_after" and run.outputs then
    run:verify("after")
  end
  run:examine(false)
end

-- ---- the whole -------------------------------------------------------------------------------

--- Opens a session, which is closed in any case, and runs f with it in isolation.
---@param dev tidelock.device
---@param fn function
---@param options table
---@param policy tidelock.policy
---@param gpu table
---@param f fun(run: tidelock.session)
---@return tidelock.bench
local function with_session(dev, fn, options, policy, gpu, f)
  if policy.clock == "graph" then
    error(("policy 'graph': %s can't capture launches into a graph; use policy 'batch'")
      :format(dev:id()), 0)
  end
  return isolated.run(function()
    local run = session.open(dev, fn, options, policy, gpu)
    local closing <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
      run:close()
    end })
    f(run)
    return records.of(run, options.name or "operation", run.where)
  end)
end

---@class tidelock.bench_options
---@field args any[]? the arguments before the stream; the default: none
---@field outputs tidelock.buffer[]? what the operation writes; default: what it returns if that is
---among args, else the last buffer of args
---@field setup function? called with args and the stream before each sample, untimed: restores what
---the operation changes in place
---@field verify (fun(...): boolean, string?) | "matmul" | nil called with args; default: Freivalds'
---check for gpu.matmul
---@field flops number? of one operation
---@field bytes number? that one operation has to move
---@field policy (string | table)? a preset's name, or a table: { "cold", cache = "warm" }
---@field name string? default "operation"
---@field peak { flops: number?, bytes: number? }? per second; default: from the device's properties
---@field calibration tidelock.calibration? for the corrected value
---@field seed integer? of what is in random order; default 1

--- The record of a policy that starts processes: see tidelock.first_call.
local function run_processes(dev, path, options, policy, gpu, where)
  local clock = gpu.device("host:7")
  local began = clock:clock()
  local phases, columns = first_call.measure(path, dev:id(), policy.stop.min_samples, clock)
  local record = { schema = 1, kind = "bench", name = options.name or path, where = where,
    policy = policy, headline = "wall", phases = phases, samples = columns, flops = options.flops,
    bytes = options.bytes, setup = clock:clock() - began, settings = {}, warnings = {},
    environment = records.environment(dev, gpu) }
  for _, key in ipairs { "enqueue", "sync", "wall" } do
    record[key] = records.summary(columns[key])
  end
  return result.new(record)
end

--- Times fn(args..., stream) under a policy. Raises a string for bad options, and whatever fn
--- raises; a yield out of fn is an error. Policy "first_call" takes the path of a script instead.
---@param dev tidelock.device
---@param fn fun(...) | string
---@param options tidelock.bench_options?
---@param gpu table matmul, device, version, warn
---@return tidelock.bench
function bench.run(dev, fn, options, gpu)
  local where = caller.line()
  options = bench.read(options)
  local policy = policies.read(options.policy)
  local wanted = policy.isolation == "process" and "string" or "function"
  if type(fn) ~= wanted then
    error(("bad argument #1 to 'bench' (%s expected, got %s)"):format(wanted == "string"
      and "policy 'first_call' starts processes: the path of a script" or wanted, type(fn)), 0)
  elseif policy.isolation == "process" then
    return run_processes(dev, fn, options, policy, gpu, where)
  end
  local record = with_session(dev, fn, options, policy, gpu, function(run)
    run.where = where
    measure(run)
  end)
  records.tell(gpu, record)
  return record
end

return bench
