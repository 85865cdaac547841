--- The warnings of a measurement, as data: each with its message, the likely cause and what to do.
-- E- says that the number is wrong, W- that it may mislead, I- what was done otherwise than asked.
local warnings = {}

---@class tidelock.warning
---@field code string
---@field message string what was seen, with the numbers
---@field cause string why that is, most likely
---@field action string what to do
---@field where string? "script.lua:12"

--- In order of weight: the first is told first. {name} is a field of the evidence.
warnings.catalog = {
  { code = "E-WRONG", message = "{reason}",
    cause = "the operation failed, was skipped, or computes something else",
    action = "check the result first; a time of wrong work is no time" },
  { code = "E-IMPOSSIBLE",
    message = "{rate} [{clock}] is {times} times the peak of this device, {peak}",
    cause = "the clock stopped too early, the work did not run, or flops and bytes are wrong",
    action = "time with policy 'cold' or 'synchronized', and check the result" },
  { code = "E-OTHERSTREAM", message = "{stray} of {made} launches of an operation went to other "
      .. "streams than the one it was given, and its events do not wait for them",
    cause = "the operation does not pass on its last argument, the stream",
    action = "enqueue on the stream given, or make it wait for an event of the other one" },
  { code = "E-ALLOC", message = "an operation makes {count} buffers of its own",
    cause = "buffers are made inside the timed region: that is in the time",
    action = "make them once, before, and write into them" },
  { code = "E-CLOCKS", message = "{count} of {samples} samples contradict themselves: {which}",
    cause = "a clock was read for other work than the rest, or the system's clock has jumped",
    action = "report it: this should not happen" },
  { code = "W-SYNCLAUNCH", message = "{what}",
    cause = "CUDA_LAUNCH_BLOCKING=1, blocking_launches, a profiler, or a read inside the operation",
    action = "remove it; until then enqueue time contains the work" },
  { code = "W-BLOCKTIMEOUT", message = "the gate gave up after {timeout} in {count} of {samples} "
      .. "samples; the rest ran without a gate",
    cause = "the operation waits for the device itself: a read, a synchronize, a first use",
    action = "take the wait out of the operation, or use a policy with block=false" },
  { code = "W-BACKPRESSURE", message = "{what}",
    cause = "the launch queue was full: the host's clock then measures the device",
    action = "use policy 'window', or synchronize" },
  { code = "W-CURVED", message = "among the last of {large} in a row an operation takes {percent} "
      .. "% {more} than in shorter rows",
    cause = "clocks, caches or memory change with how many follow each other: the slope is a mean",
    action = "use policy 'batch' with the k that matters, and look at the samples" },
  { code = "W-INFLIGHT", message = "clock stopped with {inflight} of {made} launches in flight: "
      .. "this is enqueue time, not execution time",
    cause = "launches are asynchronous, and nobody waited",
    action = "for the time of the work use policy 'cold', 'batch' or 'synchronized'" },
  { code = "W-FIRSTCALL", message = "the first sample took {first}, {times} times the median",
    cause = "it loads code, opens libraries or the context",
    action = "warm up, or use policy 'first_call'" },
  { code = "W-IDLEGAP", message = "the device's {device} are less than 10 launches ({launch} each)",
    cause = "the device was idle between the first event and the launch: the host's time is in it",
    action = "use policy 'cold' or 'batch', which hold the device back until all is queued" },
  { code = "W-OVERHEAD", message = "{value} is less than 10 times what the policy measures of "
      .. "nothing, {null}",
    cause = "the cost of measuring is a large part of the number",
    action = "use policy 'batch' or 'slope', or look at the corrected column of dev:calibrate()" },
  { code = "W-WARMCACHE", message = "{what}",
    cause = "the data stays in the cache from one operation to the next",
    action = "declare all inputs in args, or call the policy's cache warm" },
  { code = "W-FILL", message = "the data is constant: {which}",
    cause = "equal operands take less power: clocks and rates come out higher than with real data",
    action = "use dev:rand or dev:randn" },
  { code = "W-SHARED", message = "the device is shared: {what}",
    cause = "others take turns with this process, or a part of the memory, the cache and the power",
    action = "measure when nobody else is there; until then compare in turns with dev:compare" },
  { code = "W-CLOCKSOURCE", message = "the system's clock is read from {source}",
    cause = "it takes a system call, or is coarse: host times are too long or too even",
    action = "boot with another clock source, or trust the device's time only" },
  { code = "W-NOTSETTLED", message = "after {seconds} of warm-up two windows still differed by "
      .. "{percent} %",
    cause = "clocks ramp or oscillate, or the machine is shared",
    action = "warm up longer (warmup.limit), or compare in turns with dev:compare" },
  { code = "W-THROTTLE", message = "the device was held back by {reasons}",
    cause = "power or temperature",
    action = "compare in turns with dev:compare; state the clocks with the number" },
  { code = "W-BIMODAL", message = "two modes: {low} ({low_share} %) and {high} ({high_share} %)",
    cause = "clocks, memory placement or other work switch between two states",
    action = "look at the samples; no single number says it" },
  { code = "W-DRIFT", message = "samples drifted by {percent} % from the first to the last",
    cause = "clocks, temperature or other work changed meanwhile",
    action = "warm up longer; compare in turns with dev:compare" },
  { code = "W-OSCILLATES", message = "successive samples are alike: lag-1 correlation {rho}",
    cause = "clocks oscillate or other work comes and goes; the interval allows for it",
    action = "measure longer" },
  { code = "W-FIRSTSLOW",
    message = "the first sample is far from the rest: {first}, median {median}",
    cause = "the device had been idle, or was not warm",
    action = "warm up longer" },
  { code = "W-OUTLIERS", message = "{severe} severe and {mild} mild outliers in {n} samples",
    cause = "interrupts, other work, clock changes; none was removed",
    action = "the median does not mind them; a mean would" },
  { code = "W-NOISYCOMPARE", message = "the first variant against itself differs by {floor}, more "
      .. "than the {margin} asked for",
    cause = "the machine is noisier than the difference that matters",
    action = "more rounds, a longer budget, or a quieter machine" },
  { code = "I-CAPPED", message = "a batch of {k} operations lasts only {seconds}: half the queue "
      .. "holds no longer one",
    cause = "the operation is short and a gate may not fill the queue",
    action = "a graph would hold more; policy 'slope' needs no batch" },
  { code = "I-UNCHECKED", message = "whether the work was done was not checked: {why}",
    cause = "only buffers in args or outputs can be poisoned and verified",
    action = "declare outputs, and verify where the operation is no plain matmul" },
  { code = "I-CACHE", message = "{what}",
    cause = "only what is known can be flushed, and only what is declared rotated",
    action = "declare the inputs in args, or read the result as one of a warm cache" },
}

--- The catalog's entry for a code, and its place.
local function entry_of(code)
  for weight, entry in ipairs(warnings.catalog) do
    if entry.code == code then
      return entry, weight
    end
  end
  error("no warning has the code " .. tostring(code))
end

--- Makes a warning of its code and the numbers that it is about, which it carries.
---@param code string
---@param evidence table<string, any>
---@return tidelock.warning
function warnings.make(code, evidence)
  local entry = entry_of(code)
  local warning = {}
  for name, value in pairs(evidence) do
    warning[name] = value
  end
  warning.code, warning.cause, warning.action = code, entry.cause, entry.action
  warning.message = entry.message:gsub("{([%w_]+)}", function(name)
    local value = evidence[name]
    assert(value ~= nil, code .. " lacks its " .. name)
    return math.type(value) == "float" and ("%.4g"):format(value) or tostring(value)
  end)
  return warning
end

--- Puts warnings in order of weight: those of the catalog's order, each code's as they came.
---@param list tidelock.warning[]
---@return tidelock.warning[] list
function warnings.sort(list)
  local keys = {}
  for i, warning in ipairs(list) do
    keys[warning] = select(2, entry_of(warning.code)) * 1000 + i
  end
  table.sort(list, function(a, b)
    return keys[a] < keys[b]
  end)
  return list
end

return warnings
