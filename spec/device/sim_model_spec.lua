--- The device of virtual time: its clock, to the nanosecond. What every device does is in the other
--- specs; here is what only a model can promise.
local each_device = require "spec.each_device"
local gpu = require "tidelock"
local stats = require "tidelock.stats"

-- A model that is easy to compute by hand: a launch costs 10 us, work takes what it takes.
local PLAIN = {
  launch_cost = 10e-6, launch_latency = 0, kernel_gap = 0, event_cost = 0, event_time = 0,
  untimed_event_cost = 0, wait_event_cost = 0, sync_cost = 0, sync_latency = 0, query_cost = 0,
  clock_cost = 0, allocate_cost = 0, gate_slots = 0, blas_cost = 0, float32_time = 0,
  float64_time = 0, float16_time = 0, bfloat16_time = 0,
}

--- PLAIN with other settings.
local function plain(settings)
  local sim = {}
  for name, value in pairs(PLAIN) do
    sim[name] = value
  end
  for name, value in pairs(settings or {}) do
    sim[name] = value
  end
  return { sim = sim, queue_depth = settings and settings.depth }
end

local function near(wanted, got, what)
  assert.is_true(math.abs(got - wanted) < 2e-9,
    ("%s: %.9f s, not %.9f s"):format(what, got, wanted))
end

--- A queue in twenty lines: each launch waits until the one `depth` places before it is done, then
--- costs tau; a kernel starts when the one before is done, and takes that long. Returns the first
--- launch that waits, when the last returned, and when the last kernel is done.
local function brute_force(launches, depth, tau, kernel)
  local now, free, done, first = 0, 0, {}, nil
  for i = 1, launches do
    local slot = done[i - depth] or 0
    if slot > now then
      first, now = first or i, slot
    end
    now = now + tau
    free = math.max(free, now) + kernel
    done[i] = free
  end
  return first, now, free
end

each_device("the model of a GPU", function(open, id)
  if not id:find("sim", 1, true) then
    return -- time is real
  end

  --- Launches spins in a loop; the same three numbers as brute_force.
  local function loop(dev, launches, tau, kernel)
    local s = dev:stream()
    local start, before, first = dev:now(), 0, nil
    for i = 1, launches do
      s:spin(kernel)
      local now = start:elapsed()
      if not first and now - before > 1.001 * tau then
        first = i
      end
      before = now
    end
    dev:synchronize()
    return first, before, (start:elapsed())
  end

  describe("a full queue", function()
    for _, case in ipairs {
      { name = "question 1: a launch is 0.004 of its kernel", 20e-6, 5e-3, knee = 1029 },
      { name = "4.5 us launches of 190 us kernels", 4.5e-6, 190e-6, knee = 1049 },
      { name = "a launch half as long as its kernel", 4.83e-6, 10e-6, knee = 1979 },
      { name = "launches longer than their kernels", 12e-6, 10e-6 },
    } do
      it("makes the launch wait that brute force says: " .. case.name, function()
        local tau, kernel = case[1], case[2]
        local dev = open(plain { launch_cost = tau })
        local first, shown, truth = loop(dev, 2500, tau, kernel)
        local wanted_first, wanted_shown, wanted_truth = brute_force(2500, 1024, tau, kernel)
        assert.equal(case.knee, wanted_first)
        assert.equal(wanted_first, first)
        near(wanted_shown, shown, "the loop ends")
        near(wanted_truth, truth, "the work ends")
      end)
    end

    it("makes a loop of 2000 launches show 48.8 % of the truth", function()
      local dev = open(plain { launch_cost = 20e-6 })
      local _, shown, truth = loop(dev, 2000, 20e-6, 5e-3)
      assert.equal("48.80", ("%.2f"):format(100 * shown / truth))
    end)

    it("has slots for each kind of operation, on each stream its own", function()
      local dev = open() -- the H200's own
      for _, case in ipairs {
        { 1021, function(s) s:spin(0) end },
        { 1021, function(s) s:record() end },
        { 510, function(s) s:spin(0); s:record() end },
        { 1021, function(s) s:spin(0); s:record(dev:event { timing = false }) end },
        { nil, function(s) s:record(dev:event { timing = false }) end },
      } do
        local s = dev:stream()
        s:gate { timeout = 1 }
        local fit, start = 0, dev:now()
        for i = 1, 6000 do
          case[2](s)
          if start:elapsed() > 0.5 then
            break
          end
          fit = i
        end
        assert.equal(case[1] or 6000, fit)
        dev:synchronize()
      end
    end)

    it("of other slots than the preset's takes what is said", function()
      local dev = open { queue_depth = 10, sim = { gate_slots = 2, launch_slots = 3 } }
      local s = dev:stream()
      local gate = s:gate { timeout = 1 }
      s:spin(0)
      s:spin(0)
      assert.same({ 2, 2 }, { s:inflight() })
      local start = dev:now()
      s:spin(0)
      assert.is_true(start:elapsed() > 0.9, "there is room for two")
      assert.same({ false, "timed out" }, { gate:open() })
      assert.is_true(dev:synchronize())
    end)
  end)

  describe("the preset", function()
    it("is the simulated H200, and its settings are told", function()
      local dev = open()
      local properties = dev:properties()
      assert.equal("simulated H200", properties.name)
      assert.equal("sim", properties.backend)
      assert.equal(1024, properties.queue_depth)
      assert.equal(3.1e-6, properties.sim.launch_cost)
      assert.equal(3, properties.sim.gate_slots)
      assert.equal(1, properties.sim.throttle_factor)
      assert.is_false(properties.sim.no_values)
      assert.equal(50 << 20, properties.l2_cache_size)
    end)

    it("times a spin between two events as its parts add up", function()
      local dev = open()
      local m, s = dev:properties().sim, dev:stream()
      for _, spin in ipairs { 0, 2e-6, 1e-5, 1e-3 } do
        -- Behind a gate the device is the only clock.
        local gate = s:gate()
        local first = s:record()
        s:spin(spin)
        local last = s:record()
        gate:open()
        assert.is_true(s:synchronize())
        near(m.kernel_gap + spin + m.event_time, last - first, "gated")
        -- On an idle device the launch's cost lies between the two.
        first = s:record()
        s:spin(spin)
        last = s:record()
        assert.is_true(s:synchronize())
        near(m.launch_cost + m.kernel_gap + spin, last - first, "idle start")
      end
    end)

    it("charges the host for each call", function()
      local dev = open()
      local m, s = dev:properties().sim, dev:stream()
      local other, timed, plain_event = dev:stream(), dev:event(), dev:event { timing = false }
      assert.is_true(dev:synchronize())
      for cost, f in pairs {
        [m.launch_cost] = function() s:spin(0) end,
        [m.event_cost] = function() s:record(timed) end,
        [m.untimed_event_cost] = function() s:record(plain_event) end,
        [m.query_cost] = function() s:done() end,
        [m.query_cost + 0] = function() s:inflight() end,
        [m.sync_cost] = function() other:synchronize() end,
        [0.25] = function() dev:sleep(0.25) end,
        [0] = function() return dev:properties() end,
      } do
        local start = dev:now()
        f()
        near(cost + m.clock_cost, (start:elapsed()), "a call")
      end
    end)

    it("has a launch and a wait for it take what was measured, 8.0 to 8.9 us", function()
      local dev = open()
      local s = dev:stream()
      local start = dev:now()
      s:spin(0)
      s:synchronize()
      local seconds = start:elapsed()
      assert.is_true(seconds >= 8e-6 and seconds <= 8.9e-6, tostring(seconds))
    end)

    it("has a product by cuBLAS take what was measured, small ones too", function()
      local dev = open { sim = { no_values = true } }
      local s = dev:stream()
      -- Seconds a product in a row of them; n = 512 by policy batch, else examples/peers.
      for _, case in ipairs {
        { "float32", 512, 15.53e-6, 0.01 }, { "float32", 1000, 50.7e-6, 0.04 },
        { "float32", 2048, 341e-6, 0.02 }, { "float32", 4096, 2.674e-3, 0.01 },
        { "float64", 1000, 41.3e-6, 0.01 }, { "float64", 4096, 2.428e-3, 0.02 },
        { "float16", 1000, 7.69e-6, 0.01 }, { "float16", 4096, 178.8e-6, 0.03 },
        { "bfloat16", 1000, 8.57e-6, 0.01 }, { "bfloat16", 4096, 170.2e-6, 0.05 },
      } do
        local dtype, n, wanted, tolerance = table.unpack(case)
        local a, c = dev:empty({ n, n }, dtype), dev:empty({ n, n }, dtype)
        local gate = s:gate()
        local first = s:record()
        for _ = 1, 10 do
          gpu.matmul(a, a, c, { kernel = "blas", stream = s })
        end
        local last = s:record()
        gate:open()
        s:synchronize()
        assert.near(1, (last - first - dev:properties().sim.event_time) / 10 / wanted, tolerance,
          ("%s n=%d"):format(dtype, n))
      end
    end)

    it("has a product by cuBLAS cost its host blas_cost more than a launch", function()
      local dev = open()
      local m, a, c = dev:properties().sim, dev:full({ 2, 2 }, 1), dev:zeros { 2, 2 }
      assert.equal(14e-6, m.blas_cost)
      for kernel, more in pairs { naive = 0, tiled = 0, blas = 14e-6, auto = 14e-6 } do
        local start = dev:now()
        gpu.matmul(a, a, c, { kernel = kernel })
        near(m.launch_cost + more + m.clock_cost, (start:elapsed()), kernel)
      end
    end)
  end)

  describe("work", function()
    --- Seconds of device time that the launch takes.
    local function time_of(dev, launch)
      local s = dev:stream()
      local gate = s:gate()
      local first = s:record()
      launch(s)
      local last = s:record()
      gate:open()
      assert.is_true(s:synchronize())
      return last - first
    end

    it("takes operations over the kernel's rate, or bytes over the bandwidth", function()
      local dev = open(plain {
        float32_rate = 1e9, float64_rate = 2e9, float16_rate = 4e9, bfloat16_rate = 5e9,
        naive_rate = 1e8, tiled_rate = 5e8, memory_bandwidth = 1e12, host_bandwidth = 1e9,
      })
      for _, case in ipairs {
        { "float32", "blas", 1e9 }, { "float64", "blas", 2e9 }, { "float16", "blas", 4e9 },
        { "bfloat16", "blas", 5e9 }, { "float32", "naive", 1e8 }, { "int32", "tiled", 5e8 },
      } do
        local a, b = dev:zeros({ 10, 30 }, case[1]), dev:zeros({ 30, 20 }, case[1])
        local c = dev:zeros({ 10, 20 }, case[1])
        near(2 * 10 * 20 * 30 / case[3], time_of(dev, function(s)
          gpu.matmul(a, b, c, { kernel = case[2], stream = s })
        end), case[1] .. " " .. case[2])
      end
      local x, y, pinned = dev:zeros(1000), dev:zeros(1000), dev:pinned(1000)
      dev:synchronize()
      near(4000 / 1e12, time_of(dev, function(s) x:fill(1, s) end), "fill")
      near(8000 / 1e12, time_of(dev, function(s) y:copy_from(x, s) end), "copy")
      near(4000 / 1e9, time_of(dev, function(s) x:download_async(pinned, s) end), "download")
      local start = dev:now()
      x:tobytes()
      near(4000 / 1e9, (start:elapsed()), "a read that waits for nothing")
    end)

    it("takes the fixed time of the type first, in a product by kernel blas", function()
      local dev = open(plain {
        float32_time = 1e-6, float64_time = 2e-6, float16_time = 3e-6, bfloat16_time = 4e-6,
        float32_rate = 1e9, float64_rate = 1e9, float16_rate = 1e9, bfloat16_rate = 1e9,
        naive_rate = 1e9, tiled_rate = 1e9,
      })
      for _, case in ipairs {
        { "float32", "blas", 1e-6 }, { "float64", "blas", 2e-6 }, { "float16", "blas", 3e-6 },
        { "bfloat16", "blas", 4e-6 }, { "float32", "naive", 0 }, { "float32", "tiled", 0 },
      } do
        local a, c = dev:zeros({ 10, 10 }, case[1]), dev:zeros({ 10, 10 }, case[1])
        near(case[3] + 2e-6, time_of(dev, function(s)
          gpu.matmul(a, a, c, { kernel = case[2], stream = s })
        end), case[1] .. " " .. case[2])
      end
    end)

    it("is bound by memory where there is little to compute", function()
      local dev = open(plain { float32_rate = 1e15, memory_bandwidth = 1e9 })
      local a, b, c = dev:zeros { 10, 30 }, dev:zeros { 30, 20 }, dev:zeros { 10, 20 }
      local bytes = 4 * (10 * 30 + 30 * 20 + 10 * 20)
      local options = { kernel = "blas" }
      near(bytes / 1e9, time_of(dev, function(s)
        options.stream = s
        gpu.matmul(a, b, c, options)
      end), "c is written")
      options.beta = 1
      near((bytes + 4 * 10 * 20) / 1e9, time_of(dev, function(s)
        options.stream = s
        gpu.matmul(a, b, c, options)
      end), "c is read and written")
    end)

    it("takes kernel_time where that is set, and a spin its own length", function()
      local dev = open(plain { kernel_time = 7e-6, float32_time = 5e-6 })
      local x, a, c = dev:zeros(100), dev:zeros { 2, 2 }, dev:zeros { 2, 2 }
      dev:synchronize()
      near(7e-6, time_of(dev, function(s) x:fill(1, s) end), "fill")
      near(7e-6, time_of(dev, function(s)
        gpu.matmul(a, a, c, { kernel = "blas", stream = s })
      end), "blas")
      near(3e-6, time_of(dev, function(s) s:spin(3e-6) end), "spin")
    end)

    it("has the first matmul of each kernel cost first_call more", function()
      local dev = open(plain { first_call = 0.2 })
      local a = dev:full({ 2, 2 }, 1)
      local c = dev:zeros { 2, 2 }
      dev:synchronize()
      for _, kernel in ipairs { "naive", "tiled" } do
        for _, more in ipairs { 0.2, 0 } do
          local start = dev:now()
          gpu.matmul(a, a, c, { kernel = kernel })
          near(10e-6 + more, (start:elapsed()), kernel)
          dev:synchronize()
        end
      end
    end)

    it("grows by what drift says, for each second and for each launch before", function()
      local dev = open(plain { kernel_time = 1e-3, drift_per_second = 0.03 })
      local x = dev:zeros(1)
      dev:synchronize()
      for _ = 1, 3 do
        dev:sleep(1)
        local start = tonumber(tostring(dev:now()):match("[%d.]+")) + 2 * 10e-6 -- gate and fill
        local wanted = 1e-3 * (1 + 0.03 * start)
        assert.near(wanted, time_of(dev, function(s) x:fill(1, s) end), 1e-8)
      end
      dev:close()
      dev = open(plain { kernel_time = 1e-3, drift_per_launch = 0.01 })
      x = dev:zeros(1) -- launch 0
      dev:synchronize()
      for i = 1, 5 do
        near(1e-3 * (1 + 0.01 * i), time_of(dev, function(s) x:fill(i, s) end), "launch " .. i)
      end
    end)

    it("runs at throttle_factor of its speed from throttle_after on", function()
      local dev = open(plain { kernel_time = 1e-3, throttle_after = 2, throttle_factor = 0.8 })
      local x = dev:zeros(1)
      dev:synchronize()
      near(1e-3, time_of(dev, function(s) x:fill(1, s) end), "before")
      dev:sleep(2)
      near(1e-3 / 0.8, time_of(dev, function(s) x:fill(1, s) end), "after")
      near(1e-3, time_of(dev, function(s) s:spin(1e-3) end), "a spin")
    end)

    it("says SwPowerCap while it is throttled, and is not after a rest", function()
      local dev = open(plain { kernel_time = 1e-3, throttle_after = 5e-3, throttle_factor = 0.5,
        throttle_rest = 2e-3 })
      local s, x = dev:stream(), dev:zeros(1)
      for _ = 1, 2 do
        dev:synchronize()
        dev:sleep(2e-3)
        assert.same({}, dev:properties().throttle_reasons)
        local start = dev:now()
        for _ = 1, 7 do
          x:fill(1, s)
        end
        s:synchronize()
        near(10e-6 + 5 * 1e-3 + 2 * 2e-3, (start:elapsed()), "five, then two at half the speed")
        assert.same({ "SwPowerCap" }, dev:properties().throttle_reasons)
      end
      dev:sleep(1.9e-3)
      assert.same({ "SwPowerCap" }, dev:properties().throttle_reasons)
      near(2e-3, time_of(dev, function(other) x:fill(1, other) end), "less than a rest")
    end)

    it("gives the bits that the host gives, by every kernel", function()
      local dev = open()
      local host <close> = gpu.device("host:2")
      for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16" } do
        for _, kernel in ipairs { "naive", "tiled", "blas" } do
          local function product(on, by)
            local a = on:randn({ 37, 53 }, { dtype = dtype, seed = 1 })
            local b = on:rand({ 53, 41 }, { dtype = dtype, seed = 2 })
            return gpu.matmul(a, b, { kernel = by, alpha = 0.5 }):tobytes()
          end
          -- The CPU's BLAS has no narrow floats: the tiled kernel computes them.
          local by = kernel == "blas" and dtype:find("16", 1, true) and "tiled" or kernel
          assert.is_true(product(dev, kernel) == product(host, by), dtype .. " " .. kernel)
        end
      end
    end)

    it("is computed anew whenever an input or the output has changed", function()
      local dev = open()
      local a, b, c = dev:full({ 2, 2 }, 1), dev:full({ 2, 2 }, 2), dev:zeros { 2, 2 }
      local function product()
        gpu.matmul(a, b, c)
        return c:get(1, 1)
      end
      assert.equal(4, product())
      assert.equal(4, product())
      a:fill(3)
      assert.equal(12, product())
      b:set(1, 1, 0)
      assert.equal(6, product())
      c:fill(0 / 0) -- poison
      assert.equal(6, product())
      c:view { shape = { 1, 2 } }:upload { 8, 9 }
      assert.equal(6, product())
      gpu.matmul(a, b, c, { beta = 1 })
      gpu.matmul(a, b, c, { beta = 1 })
      assert.equal(18, c:get(1, 1))
      c:copy_from(a)
      assert.equal(3, c:get(1, 1))
      a:set(1, 1, 5)
      c:copy_from(a)
      assert.equal(5, c:get(1, 1))
    end)

    it("computes nothing with no_values, and takes its time", function()
      local dev = open(plain { no_values = true, kernel_time = 1e-3 })
      local a = dev:full({ 2, 2 }, 7)
      assert.same({ { 0, 0 }, { 0, 0 } }, a:totable())
      a:upload { 1, 2, 3, 4 }
      near(1e-3, time_of(dev, function(s) a:fill(9, s) end), "fill")
      assert.same({ { 1, 2 }, { 3, 4 } }, a:totable())
    end)
  end)

  describe("time", function()
    it("passes only in calls, and by what sleep says", function()
      local dev = open()
      local start = dev:now()
      local sum = 0
      for i = 1, 1000000 do
        sum = sum + i
      end
      near(25e-9, (start:elapsed()), "a million additions")
      assert.equal(500000500000, sum)
      dev:sleep(3600)
      assert.near(3600, (start:elapsed()), 1e-6)
    end)

    it("jumps to a closed gate's time-out, to the nanosecond", function()
      local dev = open(plain())
      local s, other = dev:stream(), dev:stream()
      local start = dev:now()
      local gate = s:gate { timeout = 20 }
      s:spin(0.5)
      other:wait_event(s:record())
      other:spin(0.25)
      assert.is_false(other:synchronize(0.125))
      near(10e-6 + 2 * 10e-6 + 0.125, (start:elapsed()), "a time limit")
      assert.is_true(other:synchronize())
      near(10e-6 + 20 + 0.5 + 0.25, (start:elapsed()), "the end")
      assert.same({ false, "timed out" }, { gate:open() })
    end)

    it("lets a gate that is opened go at that moment", function()
      local dev = open(plain())
      local s = dev:stream()
      local gate = s:gate { timeout = 20 }
      local first = s:record()
      s:spin(0.5)
      local last = s:record()
      dev:sleep(3)
      local start = dev:now()
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
      near(0.5, (start:elapsed()), "the wall clock")
      near(0.5, last - first, "the device's")
    end)

    it("passes in every question, so that polling comes to an end", function()
      local dev = open()
      local s = dev:stream()
      for _, asks in ipairs {
        function() return s:done() end,
        function() return (s:inflight()) == 0 end,
        function(event) return event:done() end,
        function() return s:synchronize(0) end,
        function() return dev:synchronize(0) end,
        function(event) return event:synchronize(0) end,
        function(_, _, start) return start:elapsed() > 1e-3 end,
        function(_, x) x:close() return dev:memory().pending == 0 end,
      } do
        local x = dev:zeros(4, s)
        s:spin(1e-3)
        x:fill(1, s)
        local start, event, asked = dev:now(), s:record(), 0
        repeat
          asked = asked + 1
        until asks(event, x, start) or asked == 1000000
        assert.is_true(asked > 100 and asked < 1000000, tostring(asked))
        assert.is_true(start:elapsed() >= 1e-3)
        assert.is_true(start:elapsed() < 1.1e-3)
        dev:synchronize()
      end
    end)

    it("of a wait in parts is that of the wait in one", function()
      local function wait(parts)
        local dev = open()
        local s = dev:stream()
        local start = dev:now()
        s:spin(0.1)
        for _ = 1, parts do
          s:synchronize(0.01)
        end
        s:synchronize()
        local seconds = start:elapsed()
        dev:close()
        return seconds
      end
      assert.equal(wait(0), wait(9))
    end)
  end)

  describe("noise", function()
    --- The costs of launches, and the device times of kernels, in order.
    local function measure(settings, count)
      local dev = open(plain(settings))
      local s, x = dev:stream(), dev:zeros(1)
      dev:synchronize()
      local costs, times = {}, {}
      for i = 1, count do
        local gate = s:gate()
        local first, start = s:record(), dev:now()
        x:fill(1, s)
        costs[i] = start:elapsed()
        local last = s:record()
        gate:open()
        s:synchronize()
        times[i] = last - first
      end
      dev:close()
      return costs, times
    end

    local function logarithms(values, median)
      local logs, square = {}, 0
      for i, value in ipairs(values) do
        logs[i] = math.log(value / median)
        square = square + logs[i] ^ 2
      end
      return stats.median(logs), math.sqrt(square / #logs)
    end

    local NOISY = {
      kernel_time = 1e-3, launch_jitter = 0.2, kernel_jitter = 0.05, spike_share = 0.01,
      spike_time = 1e-3, seed = 7,
    }

    it("is the same for the same seed, and another for another", function()
      local costs, times = measure(NOISY, 200)
      local again, times_again = measure(NOISY, 200)
      assert.same(costs, again)
      assert.same(times, times_again)
      local other = {}
      for name, value in pairs(NOISY) do
        other[name] = value
      end
      other.seed = 8
      local _, others = measure(other, 200)
      local equal = 0
      for i = 1, 200 do
        equal = equal + (others[i] == times[i] and 1 or 0)
      end
      assert.is_true(equal < 3)
    end)

    it("of one kind does not depend on the other", function()
      local _, times = measure(NOISY, 50)
      local quiet, alone = measure({ kernel_time = 1e-3, kernel_jitter = 0.05, seed = 7 }, 50)
      assert.same(times, alone)
      near(10e-6, quiet[50], "no jitter of launches")
    end)

    it("is log-normal, around the setting as its median", function()
      local costs, times = measure({
        kernel_time = 1e-3, launch_jitter = 0.2, kernel_jitter = 0.05, seed = 3 }, 4000)
      for _, case in ipairs { { costs, 10e-6, 0.2 }, { times, 1e-3, 0.05 } } do
        local median, deviation = logarithms(case[1], case[2])
        -- Standard errors: 1.2533 s / sqrt(n) and s / sqrt(2 n); five of them.
        assert.near(0, median, 5 * 1.2533 * case[3] / math.sqrt(4000))
        assert.near(case[3], deviation, 5 * case[3] / math.sqrt(8000))
      end
    end)

    it("of launches is a share of blas_cost, too", function()
      local function cost(kernel)
        local dev = open(plain { blas_cost = 30e-6, launch_jitter = 0.2, seed = 9 })
        local a, c = dev:zeros { 2, 2 }, dev:zeros { 2, 2 }
        local start = dev:now()
        gpu.matmul(a, a, c, { kernel = kernel })
        local seconds = start:elapsed()
        dev:close()
        return seconds
      end
      assert.is_true(math.abs(cost("naive") - 10e-6) > 1e-8)
      near(4 * cost("naive"), cost("blas"), "10 and 30 us")
    end)

    it("has spikes in the share of launches that is said", function()
      local costs = measure({ spike_share = 0.01, spike_time = 1e-3, seed = 5 }, 5000)
      local spikes = 0
      for _, cost in ipairs(costs) do
        if cost > 5e-4 then
          near(10e-6 + 1e-3, cost, "a spike")
          spikes = spikes + 1
        else
          near(10e-6, cost, "a launch")
        end
      end
      assert.is_true(spikes >= 15 and spikes <= 85, spikes .. " of 50 expected; five deviations")
    end)
  end)

  describe("the option sim", function()
    for message, options in pairs {
      ["unknown option 'sim.lunch_cost'"] = { sim = { lunch_cost = 1 } },
      ["unknown option 'sim.1'"] = { sim = { 5 } },
      ["option 'sim': table expected, got number"] = { sim = 3 },
      ["option 'sim.launch_cost': number expected, got boolean"] = { sim = { launch_cost = true } },
      ["option 'sim.no_values': boolean expected, got number"] = { sim = { no_values = 1 } },
      ["option 'sim.query_cost': a number >= 0 wanted, got -1"] = { sim = { query_cost = -1.0 } },
      ["sim: gate_slots must be a whole number of 0 to"] = { sim = { gate_slots = 1.5 } },
      ["sim: naive_rate must be above 0, got 0"] = { sim = { naive_rate = 0 } },
      ["sim: launch_cost must be a number of 0 to 1000, got inf"] =
        { sim = { launch_cost = math.huge } },
      ["sim: throttle_factor must be a number of 0 to 1, got 1.5"] =
        { sim = { throttle_factor = 1.5 } },
    } do
      it("is refused: " .. message, function()
        assert.error_matches(function() gpu.device(id, options) end, message, 1, true)
      end)
    end

    it("is for a simulated device only", function()
      assert.error_matches(function() gpu.device("host:2", { sim = {} }) end,
        "device 'host:2' is not simulated: option 'sim' is not for it", 1, true)
    end)

    it("is compared when the device is open already", function()
      local dev = open { sim = { query_cost = 0 } }
      assert.is_true(rawequal(dev, gpu.device(id, { sim = { query_cost = 0 },
        faults = each_device.faults })))
      assert.equal(0, dev:properties().sim.query_cost)
      assert.error_matches(function() gpu.device(id, { sim = { query_cost = 1 } }) end,
        "is open with other options", 1, true)
      dev:close()
      local preset = open { sim = {} }
      assert.is_true(rawequal(preset, gpu.device(id, { faults = each_device.faults })))
    end)
  end)
end)
