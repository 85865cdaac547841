--- What the samples say about themselves: the warnings of a bench, found when it is over.
local detect = require "tidelock.detect"
local operation = require "tidelock.operation"
local order = require "tidelock.order"
local outputs = require "tidelock.outputs"
local peaks = require "tidelock.peak"
local clocks = require "tidelock.report.clocks"
local stats = require "tidelock.stats"
local units = require "tidelock.units"

local judge = {}

local rules = {}

function rules.clocks(run, record)
  local count, which = 0, {}
  for name, times in pairs(run.sampler.contradictions) do
    count = count + times
    which[#which + 1] = name
  end
  if count > 0 then
    table.sort(which)
    run:warn("E-CLOCKS", { count = count, samples = #record.samples.wall,
      which = table.concat(which, ", ") })
  end
end

function rules.gate(run, record)
  if run.sampler.timed_out > 0 then
    run:warn("W-BLOCKTIMEOUT", { count = run.sampler.timed_out, samples = #record.samples.wall,
      timeout = "1 s" })
  end
end

--- An operation that waits for its own work has none in flight when it returns, and took as long.
function rules.synchronous(run, record)
  if record.policy.block or not record.device or #record.samples.inflight < 6 then
    return
  end
  for _, count in ipairs(record.samples.inflight) do
    if count > 0 then
      return
    end
  end
  local device, enqueue = record.device.median, record.enqueue.median
  if enqueue > 0.9 * device and device > 20 * (run.null and run.null.wall or 0) then
    run:warn("W-SYNCLAUNCH", { what = ("an operation of %s returned after %s, nothing in flight")
      :format(units.seconds(device), units.seconds(enqueue)) })
  end
end

--- The clock of a series that was stopped with work in flight.
function rules.inflight(run, record)
  local samples = record.samples
  if record.headline ~= "enqueue" and record.policy.isolation ~= "all" then
    return
  end
  local most, ops = 0, 0
  for i, count in ipairs(samples.inflight) do
    if count > most then
      most, ops = count, samples.slots[i] - 2
    end
  end
  if most > 0 then
    run:warn("W-INFLIGHT", { inflight = most, made = ops })
  end
end

--- Rates that no device of this kind reaches, by the clock that rates are printed of and by the
--- device's own.
function rules.impossible(run, record, options)
  local properties = run.properties
  local first = operation.is_buffer((options.args or {})[1]) and options.args[1]
  local given = options.peak or {}
  local limits = {
    { record.flops, given.flops or peaks.flops(properties, first and first:dtype() or "float32"),
      1.02, "FLOP/s" },
    { record.bytes, given.bytes, 1.05, "B/s" },
  }
  for _, limit in ipairs(limits) do
    local work, peak, margin, unit = table.unpack(limit, 1, 4)
    for _, key in ipairs { clocks.of_work(record) or "device", "device" } do
      local statistics = record[key]
      local rate = work and statistics and statistics.median > 0 and work / statistics.median
      if rate and peak and rate > margin * peak then
        run:warn("E-IMPOSSIBLE", { rate = units.rate(rate, unit), peak = units.rate(peak, unit),
          times = rate / peak, clock = clocks.names[key] })
      end
    end
  end
end

--- Bytes faster than memory gives them come from the cache, if they are real.
function rules.cache(run, record, options)
  local peak = (options.peak or {}).bytes or peaks.bandwidth(run.properties)
  local statistics = record[record.headline]
  if record.policy.cache == "warm" or not record.bytes or not peak then
    return
  end
  local rate = record.bytes / statistics.median
  if rate > 1.05 * peak then
    run:warn("W-WARMCACHE", { what = ("%s is more than the memory's %s"):format(
      units.rate(rate, "B/s"), units.rate(peak, "B/s")) })
  end
end

--- Operands of one value, where a rate is printed.
function rules.fill(run, record, options)
  if not record.flops then
    return
  end
  local is_output = {}
  for _, buffer in ipairs(run.outputs and run.outputs[1] or {}) do
    is_output[buffer] = true
  end
  local constant = {}
  for i, buffer in ipairs(options.args or {}) do
    if operation.is_buffer(buffer) and not is_output[buffer] and buffer:size() > 1 then
      local values, same = outputs.sample(buffer, 32), true
      for _, value in ipairs(values) do
        same = same and value == values[1]
      end
      if same then
        constant[#constant + 1] = ("argument %d is all %g"):format(i, values[1])
      end
    end
  end
  if #constant > 0 then
    run:warn("W-FILL", { which = table.concat(constant, ", ") })
  end
end

--- By the clock of the headline: what a library costs at its first call is little beside a long
--- product, and hundreds of launches.
function rules.first_call(run, record)
  local key = record.headline == "slope" and "wall" or record.headline
  local values, median = run.sampler:per_operation(key), record[key].median
  if record.policy.warmup.calls == 0 and #values >= 2 and values[1] > 5 * median then
    run:warn("W-FIRSTCALL", { first = units.seconds(values[1]), times = values[1] / median })
  end
end

function rules.idle_gap(run, record)
  local p = record.policy
  if p.clock == "events" and not p.block and p.isolation == "each"
    and record.device and record.device.median < 10 * record.enqueue.median then
    run:warn("W-IDLEGAP", { device = units.seconds(record.device.median),
      launch = units.seconds(record.enqueue.median) })
  end
end

--- By how much one more operation costs more among the last of the largest batches than in smaller
--- ones: the 95 % interval over the rounds of a slope, each of which had every size once.
local function growth(samples, key, sizes)
  local small, half, large = sizes[#sizes // 2], sizes[#sizes - 1], sizes[#sizes]
  local times = { [small] = {}, [half] = {}, [large] = {} }
  for i, k in ipairs(samples.ops) do
    local list = times[k]
    if list then
      list[#list + 1] = samples[key][i]
    end
  end
  local ratios = {}
  for i, last in ipairs(times[large]) do
    local before = (times[half][i] - times[small][i]) / (half - small)
    if before <= 0 then -- nothing but noise
      return nil
    end
    ratios[i] = (last - times[half][i]) / (large - half) / before
  end
  return #ratios >= 6 and stats.summary(ratios) or nil
end

--- A slope is the time of one operation where each more of them adds the same. Waiting for a slot
--- of the queue shows in the host's time of a launch: the line stays straight. (The margin of 5 %
--- is a false alarm in 3 of 3200 simulated slopes, with noise of 2 to 20 % and spikes.)
function rules.line(run, record)
  local sizes = record.fit and order.distinct(record.samples.ops) or {}
  if #sizes < 4 then
    return
  end
  local large = sizes[#sizes]
  local launch = growth(record.samples, "enqueue", sizes)
  if launch and launch.ci.low > 1.5 then
    run:warn("W-BACKPRESSURE", { what = ("in batches of %d a launch costs %.3g times what it costs "
      .. "in smaller ones: it waits for a free slot"):format(large, launch.median) })
  end
  local wall = growth(record.samples, "wall", sizes)
  if wall and (wall.ci.low > 1.05 or wall.ci.high < 0.95) then
    run:warn("W-CURVED", { percent = 100 * math.abs(wall.median - 1), large = large,
      more = wall.median > 1 and "more" or "less" })
  end
end

function rules.overhead(run, record)
  local null = run.null and run.null[record.headline]
  local value = record[record.headline].median
  if null and value * run.count < 10 * null and record.policy.isolation ~= "all" then
    run:warn("W-OVERHEAD", { value = units.seconds(value * run.count),
      null = units.seconds(null) })
  end
end

--- The series that the headline is taken from, for each operation, in order of time.
local function series_of(run, record)
  if record.launches then
    return record.launches
  end
  local key = record.headline
  return key == "slope" and run.slopes or run.sampler:per_operation(key)
end

-- What is said of each flag of a series with these statistics.
local evidence = {
  ["W-DRIFT"] = function(flag)
    return { percent = 100 * flag.change, z = flag.z }
  end,
  ["W-BIMODAL"] = function(flag)
    return { low = units.seconds(flag.medians[1]), high = units.seconds(flag.medians[2]),
      low_share = 100 * flag.shares[1], high_share = 100 * flag.shares[2] }
  end,
  ["W-OSCILLATES"] = function(flag)
    return { rho = flag.rho }
  end,
  ["W-FIRSTSLOW"] = function(flag, statistics)
    return { first = units.seconds(flag.first), median = units.seconds(statistics.median) }
  end,
  ["W-OUTLIERS"] = function(flag, statistics)
    return { severe = flag.severe, mild = flag.mild, n = statistics.n }
  end,
}

--- What the series does besides scattering: trends, two levels, waves, far values. Nothing is
--- thrown away. A knee explains a drift, and two modes a wave.
function rules.series(run, record)
  local values = series_of(run, record)
  local statistics = record.launches and record.enqueue or record[record.headline]
  if #values < 10 or statistics.median <= 0 then
    return
  end
  local explained = { ["W-DRIFT"] = record.knee ~= nil }
  for _, flag in ipairs(detect.flags(values, { summary = statistics })) do
    if not explained[flag.code] then
      run:warn(flag.code, evidence[flag.code](flag, statistics))
    end
    explained["W-OSCILLATES"] = explained["W-OSCILLATES"] or flag.code == "W-BIMODAL"
  end
end

-- Clocks that are read without a system call, in steps of nanoseconds.
local good_sources = { tsc = true, ["kvm-clock"] = true, arch_sys_counter = true,
  hyperv_clocksource_tsc_page = true }

function rules.clock_source(run, record)
  local source = record.environment.clocksource
  if source and not good_sources[source] then
    run:warn("W-CLOCKSOURCE", { source = source })
  end
end

local throttles = { SwPowerCap = true, HwSlowdown = true, SwThermalSlowdown = true,
  HwThermalSlowdown = true, HwPowerBrakeSlowdown = true }

function rules.throttle(run)
  local reasons = {}
  for name in pairs(run.throttled or {}) do
    reasons[#reasons + 1] = throttles[name] and name or nil
  end
  if #reasons > 0 then
    table.sort(reasons)
    run:warn("W-THROTTLE", { reasons = table.concat(reasons, ", ") })
  end
end

--- Others on the GPU: those of the beginning count, and those who have come meanwhile.
function rules.shared(run, record)
  local before, now, found = run.properties, record.environment, {}
  local others = math.max(before.other_processes or 0, now.other_processes or 0)
  if others > 0 then
    found[1] = ("%d other process%s it open"):format(others, others > 1 and "es have" or " has")
  end
  if before.mig then
    found[#found + 1] = "it is a slice of a GPU (MIG)"
  end
  if before.mps or now.mps then
    found[#found + 1] = "it runs kernels of several processes at a time (MPS)"
  end
  if #found > 0 then
    run:warn("W-SHARED", { what = table.concat(found, ", "), others = others })
  end
end

local sequence = { "clocks", "gate", "synchronous", "inflight", "impossible", "cache", "fill",
  "first_call", "idle_gap", "line", "overhead", "shared", "throttle", "clock_source", "series" }

--- Adds to the warnings of a session what its record shows.
---@param run tidelock.session
---@param record tidelock.bench
---@param options table as bench.run takes
function judge.record(run, record, options)
  for _, name in ipairs(sequence) do
    rules[name](run, record, options)
  end
end

return judge
