--- dev:bench: what each policy does, and that a script that measures the wrong thing is told so.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local QUICK = { calls = 1, seconds = 0, settle = false }
local FEW = { min_samples = 6, max_samples = 6, min_time = 0, max_time = 5 }

--- A policy with few samples and a short warm-up; fields replace its own.
local function quick(name, fields)
  local policy = { name, warmup = QUICK, stop = FEW }
  for field, value in pairs(fields or {}) do
    policy[field] = value
  end
  return policy
end

local function spin(seconds)
  return function(stream)
    stream:spin(seconds)
  end
end

--- Calls f with the warnings kept, and returns their codes in one text, and what f returned.
local function told(f)
  local codes = {}
  local before = gpu.on_warning(function(code, _, details)
    assert.equal("string", type(details.where))
    codes[#codes + 1] = code
  end)
  local ok, result = pcall(f)
  gpu.on_warning(before)
  if not ok then
    error(result, 0)
  end
  return table.concat(codes, " "), result
end

local function quietly(f)
  return select(2, told(f))
end

local function warning_of(record, code)
  for _, warning in ipairs(record.warnings) do
    if warning.code == code then
      return warning
    end
  end
end

each_device("bench", function(open, id)
  --- Random operands and an output.
  local function operands(dev, n)
    local a, b = dev:rand({ n, n }, { seed = 1 }), dev:rand({ n, n }, { seed = 2 })
    return { a, b, dev:zeros { n, n } }
  end

  describe("a sample", function()
    it("has all clocks under every policy, and they agree", function()
      local dev = open()
      for _, name in ipairs { "enqueue", "synchronized", "events", "cold", "batch", "window" } do
        local r = quietly(function()
          return dev:bench(spin(1e-3), { policy = quick(name) })
        end)
        local s = r.samples
        for _, column in ipairs { "enqueue", "device", "sync", "wall", "inflight", "slots", "ops",
          "start" } do
          assert.equal(6, #s[column], name .. " " .. column)
        end
        for i = 1, 6 do
          assert.is_true(s.enqueue[i] <= s.wall[i])
          assert.near(s.wall[i], s.enqueue[i] + s.sync[i], 1e-9)
          assert.is_true(s.device[i] >= 1e-3 * s.ops[i], name)
          assert.is_true(i == 1 or s.start[i] > s.start[i - 1])
          assert.equal(s.ops[i] + 2, s.slots[i])
        end
        assert.is_nil(warning_of(r, "E-CLOCKS"), name)
        assert.equal(name, r.policy.name)
      end
    end)

    it("sees the work in flight, and not in the enqueue time", function()
      local dev = open()
      local codes, r = told(function()
        return dev:bench(spin(5e-3), { policy = quick("enqueue") })
      end)
      assert.equal("enqueue", r.headline)
      assert.is_true(r.enqueue.median < 5e-3 and r.device.median >= 5e-3)
      assert.same({ 1, 1, 1, 1, 1, 1 }, r.samples.inflight)
      assert.matches("W-INFLIGHT", codes, 1, true)
      assert.matches("clock stopped with 1 of 1 launches in flight",
        warning_of(r, "W-INFLIGHT").message, 1, true)
    end)
  end)

  describe("policy", function()
    it("batch makes one sample of k operations", function()
      local dev = open()
      local calls = 0
      local r = quietly(function()
        return dev:bench(function(s)
          calls = calls + 1
          s:spin(0)
        end, { policy = quick("batch", { k = 5 }) })
      end)
      assert.same({ 5, 5, 5, 5, 5, 5 }, r.samples.ops)
      assert.same({ 5, 5, 5, 5, 5, 5 }, r.samples.inflight)
      assert.equal(5, r.policy.k)
      assert.equal(0, (calls - 5 - 6 * 5) % 5) -- five looks, six samples, a warm-up
    end)

    it("batch fills half the queue at most behind its gate, and says so", function()
      local dev = open { queue_depth = 64 }
      local r = quietly(function()
        return dev:bench(spin(0), { policy = quick("batch", { k = 1000 }) })
      end)
      assert.equal(30, r.policy.k)
      local capped = warning_of(r, "I-CAPPED")
      if id:find("sim", 1, true) then -- elsewhere it depends on what a spin of 0 takes
        assert.matches("a batch of 30 operations lasts only", capped.message, 1, true)
      end
    end)

    it("window keeps no more in flight than its window", function()
      local dev = open()
      local most = 0
      local r = quietly(function()
        return dev:bench(function(s)
          s:spin(1e-4)
          most = math.max(most, (s:inflight()))
        end, { policy = quick("window", { window = 8, k = 64 }) })
      end)
      assert.is_true(most <= 8, most .. " in flight")
      assert.same({ 8, 64 }, { r.policy.window, r.policy.k })
      assert.is_true(r.wall.median >= 1e-4)
    end)

    it("slope measures batches of several sizes, and each round gives a value", function()
      local dev = open()
      local r = quietly(function()
        return dev:bench(spin(1e-3), { policy = quick("slope",
          { stop = { min_samples = 2, max_samples = 2 } }) })
      end)
      assert.equal("slope", r.headline)
      assert.equal(2, r.slope.n)
      local sizes = {}
      for i, ops in ipairs(r.samples.ops) do
        sizes[i] = ops
      end
      table.sort(sizes)
      assert.same({ 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64 }, sizes)
      assert.is_true(r.slope.median >= 0.99e-3)
      assert.equal(r.fit.slope, r.fit.slope)
    end)

    it("unsynced keeps each launch's time, and finds where the queue was full", function()
      local dev = open { queue_depth = 64 }
      local codes, r = told(function()
        return dev:bench(spin(2e-3), { policy = { "unsynced", k = 150 } })
      end)
      assert.equal(150, #r.launches)
      assert.same({ 150 }, r.samples.ops)
      -- One slot is the first event's; spins that ended meanwhile have given theirs back.
      assert.is_true(r.knee.first >= 64 and r.knee.first <= 75, r.knee.first)
      assert.is_true(r.knee.predicted >= 65 and r.knee.predicted <= 75)
      assert.is_true(r.samples.enqueue[1] < 0.75 * r.samples.wall[1])
      assert.matches("W-BACKPRESSURE", codes, 1, true)
      assert.matches("W-INFLIGHT", codes, 1, true)
      assert.matches("launches 1%-%d+ cost .* each; from %d+ on each waits .* for a free slot",
        warning_of(r, "W-BACKPRESSURE").message)
    end)

    it("profile calls once, and takes nothing for granted", function()
      local dev = open()
      local calls = 0
      local r = quietly(function()
        return dev:bench(function(s)
          calls = calls + 1
          s:spin(1e-3)
        end, { policy = "profile" })
      end)
      assert.equal(1, calls)
      assert.same({ false }, r.samples.device)
      assert.is_true(r.wall.median >= 1e-3)
    end)

    it("first_call starts a process for each value, and its phases add up", function()
      local dev = open()
      local path = os.tmpname()
      local file = assert(io.open(path, "w"))
      file:write("return function(dev, stream) return function() stream:spin(0.02) end end\n")
      file:close()
      local r = dev:bench(path, { policy = { "first_call", stop = { min_samples = 2,
        max_samples = 2 } } })
      os.remove(path)
      assert.equal(2, r.wall.n)
      local real = id:find("sim", 1, true) and 0 or 0.02
      assert.is_true(r.wall.min >= real and r.phases.second.min >= real
        and r.phases.steady.min >= real)
      for i = 1, 2 do
        assert.is_true(r.samples.wall[i] < r.samples.process[i])
      end
      assert.is_true(r.phases.process.min > 0 and r.phases.device.min > 0)
    end)

    it("first_call wants a script, and says why a process failed", function()
      local dev = open()
      local function bench(path)
        return dev:bench(path, { policy = "first_call" })
      end
      assert.error_matches(function() bench(spin(0)) end,
        "the path of a script expected, got function")
      assert.error_matches(function() bench("/nonexistent.lua") end,
        "the process for policy 'first_call' failed: .*/nonexistent%.lua")
    end)

    it("graph says that the device can't", function()
      local dev = open()
      assert.error_matches(function() dev:bench(spin(0), { policy = "graph" }) end,
        "policy 'graph': %S+ can't capture launches into a graph; use policy 'batch'")
    end)

    it("cold flushes twice the cache, rotate has copies of three times the cache (case 26)",
      function()
        local dev = open()
        local l2 = dev:properties().l2_cache_size
        if not l2 or l2 < 65536 then
          pending("the device does not tell a real cache size")
        end
        local args = { dev:zeros(l2 // 16), dev:empty(l2 // 16) } -- together half the cache
        local seen, count = {}, 0
        quietly(function()
          return dev:bench(function(from, to, s)
            count = count + (seen[to] and 0 or 1)
            seen[to] = true
            to:copy_from(from, s)
          end, { args = args, policy = quick("batch", { k = 8 }) })
        end)
        assert.equal(6, count)
        local r = quietly(function()
          return dev:bench(gpu.matmul, { args = operands(dev, 8), policy = quick("cold") })
        end)
        assert.is_nil(warning_of(r, "I-CACHE"))
        -- The flush is a launch, and not one of the sample's.
        assert.same({ 1, 1, 1, 1, 1, 1 }, r.samples.inflight)
      end)
  end)

  describe("tells a script that", function()
    it("times the wrong stream (E-OTHERSTREAM, case 19)", function()
      local dev = open()
      local other = dev:default_stream()
      local codes, r = told(function()
        return dev:bench(function() other:spin(2e-3) end, { policy = quick("events") })
      end)
      assert.matches("E-OTHERSTREAM", codes, 1, true)
      assert.matches("1 of 1 launches of an operation went to other streams",
        warning_of(r, "E-OTHERSTREAM").message, 1, true)
      dev:synchronize()
    end)

    it("times one of two streams, whether the other has much to do or little (case 20)", function()
      local dev = open()
      local other = dev:stream()
      for _, seconds in ipairs { 0, 5e-3 } do
        local codes = told(function()
          return dev:bench(function(s)
            s:spin(1e-3)
            other:spin(seconds)
          end, { policy = quick("events") })
        end)
        assert.matches("E-OTHERSTREAM", codes, 1, true)
        dev:synchronize()
      end
    end)

    it("but not one that forks to another stream and joins it", function()
      local dev = open()
      local other = dev:stream()
      local fork, join = dev:event { timing = false }, dev:event { timing = false }
      local codes = told(function()
        return dev:bench(function(s)
          other:wait_event(s:record(fork))
          other:spin(1e-3)
          s:spin(1e-3)
          s:wait_event(other:record(join))
        end, { policy = quick("cold") })
      end)
      assert.is_nil(codes:find("E-OTHERSTREAM", 1, true), codes)
    end)

    it("times a kernel that never ran (E-WRONG, case 34)", function()
      local dev = open()
      local r = quietly(function()
        return dev:bench(function() end,
          { args = operands(dev, 8), policy = quick("synchronized") })
      end)
      assert.matches("before the samples: output 1 %(buffer .*%) was not written: 64 of 64",
        warning_of(r, "E-WRONG").message)
    end)

    it("times a kernel that stops running later (case 34)", function()
      local dev = open()
      local calls = 0
      local args = operands(dev, 8)
      local r = quietly(function()
        return dev:bench(function(a, b, c, s)
          calls = calls + 1
          if calls < 8 then
            gpu.matmul(a, b, c, s)
          end
        end, { args = args, outputs = { args[3] }, policy = quick("synchronized") })
      end)
      assert.matches("after the samples: output 1", warning_of(r, "E-WRONG").message, 1, true)
    end)

    it("times a wrong product (case 34)", function()
      local dev = open()
      local args = operands(dev, 16)
      local function wrong(a, b, c, s)
        gpu.matmul(a, b, c, { alpha = 1.01, stream = s })
      end
      local options = { args = args, verify = "matmul", policy = quick("synchronized") }
      local r = quietly(function() return dev:bench(wrong, options) end)
      assert.matches("the product is wrong: vector 1: row sums with random signs",
        warning_of(r, "E-WRONG").message, 1, true)
      options.verify = nil
      r = quietly(function() return dev:bench(gpu.matmul, options) end)
      assert.is_nil(warning_of(r, "E-WRONG"))
      assert.is_nil(warning_of(r, "I-UNCHECKED"))
    end)

    it("reads back too early: an unfinished event has no time", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate { timeout = 30 }
      local first = s:record()
      s:spin(0)
      local last = s:record()
      assert.error_matches(function() return last - first end,
        "the earlier event is not finished: synchronize it first")
      gate:open()
      s:synchronize()
      assert.is_true(last - first >= 0)
    end)

    it("times zeros (W-FILL, case 25)", function()
      local dev = open()
      local args = { dev:zeros { 32, 32 }, dev:full({ 32, 32 }, 3), dev:empty { 32, 32 } }
      local codes, r = told(function()
        return dev:bench(gpu.matmul, { args = args, flops = 2 * 32 ^ 3,
          policy = quick("synchronized") })
      end)
      assert.matches("W-FILL", codes, 1, true)
      assert.equal("the data is constant: argument 1 is all 0, argument 2 is all 3",
        warning_of(r, "W-FILL").message)
    end)

    it("allocates in the loop (E-ALLOC), whether it closes the buffer or not", function()
      local dev = open()
      for _, close in ipairs { true, false } do
        local r = quietly(function()
          return dev:bench(function(s)
            local b = dev:zeros({ 4, 4 }, s)
            if close then
              b:close()
            end
          end, { policy = quick("synchronized") })
        end)
        assert.equal("an operation makes 1 buffers of its own", warning_of(r, "E-ALLOC").message)
      end
    end)

    it("but closes a new buffer that it returns, at once", function()
      local dev = open()
      local a = dev:rand { 8, 8 }
      local before = dev:memory().buffers
      local most = 0
      local r = quietly(function()
        return dev:bench(function(s)
          most = math.max(most, dev:memory().buffers)
          return gpu.matmul(a, a, s)
        end, { policy = quick("batch", { k = 4 }) })
      end)
      assert.is_nil(warning_of(r, "E-ALLOC"))
      assert.matches("it returns new buffers", warning_of(r, "I-UNCHECKED").message, 1, true)
      -- The first calls, before it is known what they return, leave a few to the collector.
      assert.is_true(most - before < 10, most - before)
    end)

    it("and never closes a buffer that the script still has", function()
      local dev = open()
      local a, c = dev:rand { 8, 8 }, dev:zeros { 8, 8 }
      quietly(function()
        return dev:bench(function(s) return gpu.matmul(a, a, c, s) end,
          { policy = quick("synchronized") })
      end)
      assert.equal("table", type(c:totable()))
    end)

    it("waits inside (W-BLOCKTIMEOUT behind a gate, W-SYNCLAUNCH without, case 21)", function()
      local dev = open()
      local function waits(s)
        s:spin(2e-3)
        s:synchronize()
      end
      local r = quietly(function() return dev:bench(waits, { policy = quick("events") }) end)
      assert.matches("returned after .*, nothing in flight", warning_of(r, "W-SYNCLAUNCH").message)
      r = quietly(function()
        return dev:bench(waits, { policy = quick("cold", { cache = "warm",
          warmup = { calls = 0, seconds = 0, settle = false } }) })
      end)
      assert.matches("the gate gave up after 1 s in 1 of 6 samples",
        warning_of(r, "W-BLOCKTIMEOUT").message, 1, true)
      assert.is_false(r.samples.device[1])
      assert.is_true(r.device.n == 5 and r.device.median >= 2e-3)
    end)

    it("has launches that wait (W-SYNCLAUNCH, case 21)", function()
      local dev = open { blocking_launches = true }
      if dev:properties().name:find("stub", 1, true) then
        pending("a spin takes no time there")
      end
      local codes, r = told(function()
        return dev:bench(spin(1e-3), { policy = quick("cold", { cache = "warm" }) })
      end)
      assert.matches("W-SYNCLAUNCH", codes, 1, true)
      local warning = warning_of(r, "W-SYNCLAUNCH")
      assert.matches("a launch of 5 ms of work returned after", warning.message, 1, true)
      assert.is_true(warning.seconds >= 5e-3)
      -- Behind a gate the launch and the thread that opens it would wait for each other.
      assert.is_false(r.policy.block)
      assert.is_nil(warning_of(r, "W-BLOCKTIMEOUT"))
      assert.is_true(r.enqueue.min >= 1e-3)
    end)

    it("has an empty clock: faster than light (E-IMPOSSIBLE)", function()
      local dev = open()
      local codes, r = told(function()
        return dev:bench(spin(1e-3), { flops = 1e15, peak = { flops = 1e12 }, outputs = {},
          policy = quick("synchronized") })
      end)
      assert.matches("E-IMPOSSIBLE", codes, 1, true)
      assert.matches("FLOP/s %[wall time, synchronized%] is [%d.e+]+ times the peak of this "
        .. "device, 1 TFLOP/s", warning_of(r, "E-IMPOSSIBLE").message)
    end)

    it("times its first call (W-FIRSTCALL)", function()
      local dev = open()
      local calls = 0
      local r = quietly(function()
        return dev:bench(function(s)
          calls = calls + 1
          s:spin(calls == 1 and 0.2 or 1e-3)
        end, { policy = quick("synchronized", { warmup = { calls = 0 } }) })
      end)
      assert.matches("the first sample took 2%d%d ms", warning_of(r, "W-FIRSTCALL").message)
    end)

    it("has an idle gap between its events (W-IDLEGAP), and pays mostly for measuring", function()
      local dev = open()
      if dev:properties().name:find("stub", 1, true) then
        pending("its own times are no model of a device's")
      end
      local r = quietly(function() return dev:bench(spin(0), { policy = quick("events") }) end)
      assert.is_not_nil(warning_of(r, "W-IDLEGAP"))
      r = quietly(function() return dev:bench(spin(0), { policy = quick("synchronized") }) end)
      assert.is_not_nil(warning_of(r, "W-OVERHEAD"))
    end)
  end)

  it("tells the handler with the script's line, and keeps cause and action", function()
    local dev = open()
    local seen
    local before = gpu.on_warning(function(code, message, details)
      if code == "W-INFLIGHT" then
        seen = { message = message, details = details }
      end
    end)
    local line = debug.getinfo(1, "l").currentline + 1
    dev:bench(spin(5e-3), { policy = quick("enqueue") })
    gpu.on_warning(before)
    assert.matches("bench_spec%.lua:" .. line .. ": $", seen.details.where)
    assert.same({ 1, 1 }, { seen.details.inflight, seen.details.made })
    assert.matches("^launches are asynchronous", seen.details.cause)
  end)

  it("makes errors of warnings where `error` is the handler", function()
    local dev = open()
    local before = gpu.on_warning(error)
    local ok, message = pcall(dev.bench, dev, spin(5e-3), { policy = quick("enqueue") })
    gpu.on_warning(before)
    assert.is_false(ok)
    assert.matches("bench_spec%.lua:%d+: W%-INFLIGHT: clock stopped", message)
  end)

  it("restores an operation in place before each sample, off the clock", function()
    local dev = open()
    local args, start = operands(dev, 8), dev:full({ 8, 8 }, 1)
    local setups = 0
    local r = quietly(function()
      return dev:bench(function(a, b, c, s)
        gpu.matmul(a, b, c, { beta = 1, stream = s })
      end, { args = args, policy = quick("synchronized"), setup = function(_, _, c, s)
        setups = setups + 1
        c:copy_from(start, s)
      end })
    end)
    assert.is_true(setups > 6)
    assert.is_nil(warning_of(r, "E-WRONG"))
    local product = gpu.matmul(args[1], args[2])
    assert.near(1 + product:get(8, 8), args[3]:get(8, 8), 1e-5)
  end)

  it("gives an argument back that was only taken for the output", function()
    local dev = open()
    local a = dev:array { 1, 2, 3 }
    local r = quietly(function()
      return dev:bench(function(_, s) s:spin(0) end,
        { args = { a }, policy = quick("synchronized") })
    end)
    assert.matches("the last buffer of args is taken for the output",
      warning_of(r, "E-WRONG").message, 1, true)
    assert.same({ 1, 2, 3 }, a:totable())
  end)

  it("passes an error of the operation through, and leaves nothing open", function()
    local dev = open()
    local raised = {}
    local ok, message = pcall(dev.bench, dev, function() error(raised) end)
    assert.is_false(ok)
    assert.equal(raised, message)
    assert.is_true(collectgarbage("isrunning"))
    assert.equal(0, dev:memory().buffers)
    ok, message = pcall(dev.bench, dev, function() coroutine.yield() end)
    assert.is_false(ok)
    assert.matches("bench_spec%.lua:%d+: the operation yielded", message)
  end)

  for message, options in pairs {
    ["unknown option 'flop' (there are: args, bytes, "] = { flop = 1 },
    ["option 'flops': a number above 0 wanted, got 0"] = { flops = 0 },
    ["option 'args': a table wanted, got 3"] = { args = 3 },
    ["option 'verify': a function or \"matmul\" wanted, got true"] = { verify = true },
    ["option 'policy': unknown policy 'hot'"] = { policy = "hot" },
    ["unknown policy field 'blok'"] = { policy = { "cold", blok = true } },
  } do
    it("refuses: " .. message, function()
      local dev = open()
      local ok, raised = pcall(dev.bench, dev, spin(0), options)
      assert.is_false(ok)
      assert.matches("bench_spec%.lua:%d+: ", raised)
      assert.matches(message, raised, 1, true)
      ok, raised = pcall(dev.bench, dev, 3)
      assert.is_false(ok)
      assert.matches("bad argument #1 to 'bench' (function expected, got number)", raised, 1, true)
    end)
  end

  it("says where and how it was measured", function()
    local dev = open()
    local r = quietly(function()
      return dev:bench(gpu.matmul, { args = operands(dev, 8), flops = 1024, name = "small",
        policy = quick("events") })
    end)
    assert.same({ 1, "bench", "small", 1024 }, { r.schema, r.kind, r.name, r.flops })
    assert.equal(dev:properties().backend, r.environment.backend)
    assert.equal(gpu.version, r.environment.tidelock)
    assert.matches("^%d+%-%d+%-%d+T", r.environment.date)
    assert.is_true(r.call_cost > 0 and r.setup > 0)
    assert.matches("small on ", tostring(r), 1, true)
  end)
end)
