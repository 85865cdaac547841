--- Events: their states, the time between two of them, and waiting for one on
-- another stream.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local HELD = { timeout = 30 } -- seconds: only a spec that fails waits for it

each_device("event", function(open, id)
  describe("done", function()
    it("is nil with the reason before the first record (D01)", function()
      local dev = open()
      local event = dev:event()
      local done, reason = event:done()
      assert.is_nil(done)
      assert.equal("the event was never recorded", reason)
      assert.equal("event on " .. id .. ", new", tostring(event))
      assert.equal("event on " .. id .. ", new, without timing",
        tostring(dev:event { timing = false }))
    end)

    it("is false until the stream has got that far, then true", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      local event = s:record()
      assert.is_false(event:done())
      assert.is_false(event:synchronize(0))
      local began = dev:now()
      assert.is_false(event:synchronize(0.07))
      assert.is_true(began:elapsed() >= 0.07)
      assert.is_true(gate:open())
      assert.is_true(event:synchronize())
      assert.is_true(event:done())
      assert.is_true(event:synchronize(0))
    end)

    it("is about the place in the stream, not about what comes later", function()
      local dev = open()
      local s = dev:stream()
      local event = s:record()
      local gate = s:gate(HELD)
      s:spin(0)
      assert.is_true(event:synchronize())
      assert.is_true(event:done())
      assert.is_false(s:done())
      assert.is_true(gate:open())
    end)
  end)

  describe("an event that was never recorded", function()
    it("cannot be waited for, on the host or on a stream", function()
      local dev = open()
      local event = dev:event()
      for _, f in ipairs {
        function() event:synchronize() end,
        function() event:synchronize(0) end,
        function() dev:stream():wait_event(event) end,
      } do
        assert.error_matches(f, "the event was never recorded", 1, true)
      end
    end)
  end)

  describe("later - earlier", function()
    it("has three messages for what has no time (D01)", function()
      local dev = open()
      local s = dev:stream()
      local first, second = dev:event(), dev:event()
      assert.error_matches(function() return second - first end,
        "the earlier event was never recorded", 1, true)
      -- What no waiting can cure is said first, finished or not.
      local gate = s:gate(HELD)
      s:record(first)
      local plain = s:record(dev:event { timing = false })
      for _ = 1, 2 do
        assert.error_matches(function() return second - first end,
          "the later event was never recorded", 1, true)
        assert.error_matches(function() return plain - first end,
          "the later event was created without timing", 1, true)
        assert.error_matches(function() return first - plain end,
          "the earlier event was created without timing", 1, true)
        gate:open()
        assert.is_true(s:synchronize())
      end
    end)

    it("is refused before both are finished, then the same both ways (D02)", function()
      local dev = open()
      local s = dev:stream()
      local first = s:record()
      assert.is_true(first:synchronize())
      local gate = s:gate(HELD)
      s:spin(0.03)
      local second = s:record()
      assert.error_matches(function() return second - first end,
        "the later event is not finished: synchronize it first", 1, true)
      assert.error_matches(function() return first - second end,
        "the earlier event is not finished: synchronize it first", 1, true)
      assert.is_true(gate:open())
      assert.is_true(second:synchronize())
      assert.is_true(second - first >= 0.03)
      assert.equal(-(second - first), first - second)
      assert.equal(0, second - second)
    end)

    it("takes events only", function()
      local dev = open()
      local event = dev:stream():record()
      assert.error_matches(function() return event - 1 end,
        "event expected, got number", 1, true)
      assert.error_matches(function() return event - dev:now() end,
        "event expected, got stamp", 1, true)
      event:close()
      assert.error_matches(function() return event - event end, "event is closed", 1, true)
      assert.equal("event (closed)", tostring(event))
    end)
  end)

  describe("record", function()
    it("makes an event with timing, or returns the one it was given", function()
      local dev = open()
      local s = dev:stream()
      local event = s:record()
      assert.equal("event on " .. id .. ", recorded", tostring(event))
      assert.is_true(rawequal(event, s:record(event)))
      assert.is_true(rawequal(dev, event:device()))
      assert.is_true(s:synchronize())
      assert.is_true(s:record():synchronize())
    end)

    it("moves an event that was recorded before", function()
      local dev = open()
      local s, other = dev:stream(), dev:stream()
      local start = s:record()
      local event = s:record()
      assert.is_true(event:synchronize())
      local gate = other:gate(HELD)
      other:spin(0.02)
      other:record(event)
      assert.is_false(event:done())
      assert.is_true(gate:open())
      assert.is_true(event:synchronize())
      assert.is_true(event - start >= 0.02)
    end)

    it("refuses what is no event", function()
      local dev = open()
      local s = dev:stream()
      assert.error_matches(function() s:record(7) end, "event expected, got number", 1, true)
      assert.error_matches(function() s:record(s) end, "event expected, got stream", 1, true)
      local event = dev:event()
      event:close()
      assert.error_matches(function() s:record(event) end, "event is closed", 1, true)
      assert.error_matches(function() s:wait_event(event) end, "event is closed", 1, true)
      assert.error_matches(function() s:wait_event() end,
        "event expected, got no value", 1, true)
      assert.error_matches(function() dev:event { timing = 1 } end,
        "option 'timing': boolean expected, got number", 1, true)
      assert.error_matches(function() dev:event { time = true } end,
        "unknown option 'time'", 1, true)
    end)

    it("takes no slot of the queue without timing", function()
      local dev = open(each_device.depth(id, 4))
      local s = dev:stream()
      local gate = s:gate(HELD)
      for _ = 1, 4 do
        s:spin(0)
      end
      local events = {}
      for i = 1, 100 do
        events[i] = s:record(dev:event { timing = false })
      end
      assert.same({ 4, 4 }, { s:inflight() })
      assert.is_false(events[100]:done())
      assert.is_true(gate:open())
      assert.is_true(events[100]:synchronize())
      assert.is_true(events[1]:done())
    end)

    it("outlives its stream: the event stays valid when the stream is closed", function()
      local dev = open()
      local s, other = dev:stream(), dev:stream()
      local x = dev:array { 0 }
      local first = s:record()
      local gate = s:gate(HELD)
      s:spin(0.02)
      x:fill(4, s)
      local second = s:record()
      s:close()
      assert.is_false(second:done())
      other:wait_event(second)
      local y = dev:array { 0 }
      y:copy_from(x, other)
      assert.same({ 1, 1 }, { other:inflight() })
      assert.is_true(gate:open())
      assert.same({ 4 }, y:totable())
      assert.is_true(second:synchronize())
      assert.is_true(dev:synchronize())
      assert.is_true(second:done())
      assert.is_true(second - first >= 0.02)
    end)
  end)

  describe("wait_event", function()
    it("orders streams, as a barrier with one event for all of them (D05)", function()
      local dev = open()
      for slow = 1, 2 do
        local streams = { dev:stream(), dev:stream() }
        local third = dev:stream()
        local x = { dev:array { 0 }, dev:array { 0 } }
        local y = { dev:array { 0 }, dev:array { 0 } }
        local gate = streams[slow]:gate(HELD)
        local event = dev:event()
        for i = 1, 2 do
          x[i]:fill(i, streams[i])
          streams[i]:record(event)
          third:wait_event(event)
        end
        for i = 1, 2 do
          y[i]:copy_from(x[i], third)
        end
        assert.is_true(streams[3 - slow]:synchronize())
        assert.same({ 2, 2 }, { third:inflight() })
        assert.is_true(gate:open())
        assert.is_true(third:synchronize())
        assert.same({ 1 }, y[1]:totable())
        assert.same({ 2 }, y[2]:totable())
      end
    end)

    it("keeps what was recorded when it was called, not a later record (D05)", function()
      local dev = open()
      local slow, quick, third = dev:stream(), dev:stream(), dev:stream()
      local x, y = dev:array { 0 }, dev:array { 0 }
      local gate = slow:gate(HELD)
      x:fill(5, slow)
      local event = slow:record()
      third:wait_event(event)
      y:copy_from(x, third)
      quick:record(event)
      assert.is_true(event:synchronize())
      assert.is_false(third:synchronize(0))
      assert.same({ 1, 1 }, { third:inflight() })
      assert.is_true(gate:open())
      assert.is_true(third:synchronize())
      assert.same({ 5 }, y:totable())
    end)

    it("of an event on the same stream changes nothing", function()
      local dev = open()
      local s = dev:stream()
      s:wait_event(s:record())
      assert.is_true(s:synchronize())
    end)
  end)

  describe("first contents", function()
    it("are waited for on every stream that uses them (D12)", function()
      local dev = open()
      local s, other = dev:stream(), dev:stream()
      local gate = s:gate(HELD)
      local a = dev:full({ 4 }, 3, { stream = s })
      local b = dev:array { 0, 0, 0, 0 }
      b:copy_from(a, other)
      assert.same({ 1, 1 }, { other:inflight() })
      assert.is_true(gate:open())
      assert.is_true(other:synchronize())
      assert.same({ 3, 3, 3, 3 }, b:totable())
    end)

    it("are there on a new stream at once, 1000 times (D12)", function()
      local dev = open()
      local n = 16 * 1024
      for i = 1, 1000 do
        local bytes = ("<f"):pack(i):rep(n)
        local a <close> = dev:array(bytes)
        local b <close> = dev:empty(n)
        local s <close> = dev:stream()
        b:copy_from(a, s)
        assert.is_true(bytes == b:tobytes(), "repetition " .. i)
      end
    end)
  end)

  describe("objects of two devices", function()
    it("are refused together, naming both (D03)", function()
      local dev = open()
      local other <close> = gpu.device(each_device.other(id), { faults = each_device.faults })
      local here, there = id, other:id()
      local s, t = dev:stream(), other:stream()
      local mine, theirs = s:record(), t:record()
      local a, b = dev:array { { 1 } }, other:array { { 1 } }
      assert.is_true(s:synchronize())
      assert.is_true(t:synchronize())

      local function refused(message, f)
        message = message:gsub("THERE", there):gsub("HERE", here)
        assert.error_matches(f, message, 1, true)
      end

      refused("the earlier event belongs to HERE, the later one to THERE",
        function() return theirs - mine end)
      refused("the earlier event belongs to THERE, the later one to HERE",
        function() return mine - theirs end)
      refused("the event belongs to THERE, the stream to HERE", function() s:record(theirs) end)
      refused("the event belongs to THERE, the stream to HERE",
        function() s:wait_event(theirs) end)
      refused("the stream belongs to THERE, the work to HERE", function() a:fill(1, t) end)
      refused("the stream belongs to THERE, the work to HERE",
        function() dev:zeros(3, { stream = t }) end)
      refused("the stream belongs to THERE, the work to HERE", function() a:clone(t) end)
      refused("the stream belongs to THERE, the work to HERE",
        function() gpu.matmul(a, a, t) end)
      refused("matmul: a is on HERE, b is on THERE", function() gpu.matmul(a, b) end)
      refused("matmul: a is on HERE, b is on HERE, c is on THERE",
        function() gpu.matmul(a, a, b) end)
      refused("the later stamp is of THERE, the earlier one of HERE",
        function() return other:now() - dev:now() end)
      assert.same({ { 1 } }, a:totable())
      assert.same({ { 1 } }, b:totable())
    end)
  end)
end)
