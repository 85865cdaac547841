--- The rules behind the warnings, on records made by hand: each speaks, and each can be silent.
local judge = require "tidelock.judge"
local records = require "spec.records"
local warnings = require "tidelock.warnings"

--- A session as far as the rules look at it.
local function session(changes)
  local run = { sampler = { contradictions = {}, timed_out = 0, per_operation = function(self)
    return self.values or { 1e-3, 1e-3 }
  end }, properties = { backend = "cuda", compute_capability = "9.0", multiprocessor_count = 132,
    clock_rate = 1980000000, memory_clock_rate = 3201000000, memory_bus_width = 6144 },
    null = { device = 1e-6, wall = 8e-6, enqueue = 1e-7 }, count = 1, found = {} }
  for name, value in pairs(changes or {}) do
    run[name] = value
  end
  function run:warn(code, evidence)
    self.found[#self.found + 1] = warnings.make(code, evidence)
  end
  return run
end

--- The codes that are found, in one text, and the first message.
local function judged(run, changes, options)
  judge.record(run, records.bench(changes), options or {})
  local codes = {}
  for i, warning in ipairs(run.found) do
    codes[i] = warning.code
  end
  return table.concat(codes, " "), run.found[1] and run.found[1].message
end

describe("judge", function()
  it("has nothing to say of a sound record", function()
    assert.equal("", (judged(session(), { environment = { clocksource = "tsc" } })))
  end)

  it("names contradictions of the clocks, and how many", function()
    local run = session()
    run.sampler.contradictions = { ["negative device time"] = 1,
      ["device time above wall time"] = 1 }
    local codes, message = judged(run)
    assert.equal("E-CLOCKS", codes)
    assert.equal("2 of 2 samples contradict themselves: device time above wall time, "
      .. "negative device time", message)
  end)

  -- Question 2: 10000^3 * 2 FLOP in 999 us are 2002 TFLOP/s.
  it("finds what is faster than light, by the device's peak", function()
    local codes, message = judged(session(), { flops = 2e12, headline = "wall",
      wall = records.statistics(999e-6), device = records.statistics(999e-6) })
    assert.matches("^E%-IMPOSSIBLE", codes)
    assert.matches("^2002 TFLOP/s %[wall time, synchronized%] is 3.74 times the peak of this "
      .. "device, 535 TFLOP/s", message)
    assert.equal("", (judged(session(), { flops = 2e12, headline = "device",
      device = records.statistics(41e-3), wall = records.statistics(41e-3) })))
  end)

  -- mixbench #14: a boosted clock is not faster than light.
  it("does not take a boosted clock for a wonder (case 33)", function()
    local run = session { properties = { backend = "cuda", compute_capability = "9.0",
      multiprocessor_count = 132, clock_rate = 1980000000 } }
    local peak = 2 * 132 * 1024 * 1980e6
    assert.equal("", (judged(run, { flops = peak * 312.4e-6 * 1.01 })))
  end)

  it("finds bytes that come from the cache though it was flushed (case 26)", function()
    local codes, message = judged(session(), { bytes = 312.4e-6 * 6e12 })
    assert.equal("W-WARMCACHE", codes)
    assert.equal("6 TB/s is more than the memory's 4.92 TB/s", message)
    assert.equal("", (judged(session(), { bytes = 312.4e-6 * 4e12 })))
  end)

  it("names what throttled, and not that the device was idle", function()
    local codes, message = judged(session { throttled = { SwPowerCap = true, GpuIdle = true } })
    assert.equal("W-THROTTLE", codes)
    assert.equal("the device was held back by SwPowerCap", message)
    assert.equal("", (judged(session { throttled = { GpuIdle = true } })))
  end)

  it("says who shares the device, at the beginning or at the end", function()
    local function shared(properties, environment)
      return judged(session { properties = properties }, { environment = environment or {} })
    end
    local codes, message = shared { other_processes = 1 }
    assert.equal("W-SHARED", codes)
    assert.equal("the device is shared: 1 other process has it open", message)
    codes, message = shared({ other_processes = 0, mig = true },
      { other_processes = 2, mps = true })
    assert.equal("W-SHARED", codes)
    assert.equal("the device is shared: 2 other processes have it open, it is a slice of a GPU "
      .. "(MIG), it runs kernels of several processes at a time (MPS)", message)
    assert.equal("", (shared({ other_processes = 0, mig = false, mps = false },
      { other_processes = 0, mig = false, mps = false })))
    assert.equal("", (shared({}, {})))
  end)

  it("doubts a clock that takes a system call", function()
    local codes, message = judged(session(), { environment = { clocksource = "hpet" } })
    assert.equal("W-CLOCKSOURCE", codes)
    assert.equal("the system's clock is read from hpet", message)
  end)

  it("puts in parentheses what measuring costs as much as", function()
    local codes = judged(session { null = { device = 40e-6 } })
    assert.equal("W-OVERHEAD", codes)
    assert.equal("", (judged(session { null = { device = 30e-6 } })))
  end)

  -- Question 2: the first call took 350 ms, and was done after 0.79 s; the others 1 ms and 0.44 s.
  it("finds a first call by the clock of the headline (case 2)", function()
    local run = session()
    function run.sampler.per_operation(_, name)
      return name == "enqueue" and { 0.35, 1e-3, 1e-3 } or { 0.79, 0.44, 0.44 }
    end
    local policy = records.bench().policy
    policy.warmup.calls = 0
    local changes = { policy = policy, headline = "enqueue", enqueue = records.statistics(1e-3),
      wall = records.statistics(0.44) }
    assert.equal("W-INFLIGHT W-FIRSTCALL", (judged(run, changes)))
    assert.equal("the first sample took 350 ms, 350 times the median", run.found[2].message)
    changes.headline, run.found = "wall", {}
    assert.equal("", (judged(run, changes)))
  end)

  it("finds a first sample that is far from the rest", function()
    local run = session()
    run.sampler.values = { 1e-3 }
    for i = 2, 30 do
      run.sampler.values[i] = 312e-6 + (i % 3) * 1e-7
    end
    local codes, message = judged(run)
    assert.equal("W-FIRSTSLOW", codes)
    assert.matches("the first sample is far from the rest: 1 ms, median 312 us", message, 1, true)
  end)
end)
