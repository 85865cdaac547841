--- Streams: what is asynchronous, what is in order, and what a full queue does.
-- Asynchrony is proved with gates that stay closed until the spec opens them:
-- `open() == true` says that the gate had not run into its time limit.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local HELD = { timeout = 30 } -- seconds: only a spec that fails waits for it

-- busted looks globals up in a function, which the hooks below would see.
local debug, pcall = debug, pcall

--- Calls f(...) under a hook that calls `act` at every function called inside:
-- what the interpreter does on Ctrl-C.
local function hooked(act, f, ...)
  debug.sethook(function()
    local called = debug.getinfo(2, "f").func
    if called ~= f and called ~= pcall and called ~= debug.sethook then
      act()
    end
  end, "c")
  local ok, result = pcall(f, ...)
  debug.sethook()
  return ok, result
end

--- The same with what Ctrl-C does: it raises.
local function interrupted(f, ...)
  return hooked(function() error("interrupted!", 0) end, f, ...)
end

each_device("stream", function(open, id)
  describe("a launch", function()
    it("returns before its work has run, and a clock sees only that (A01)", function()
      local dev = open()
      local s = dev:stream()
      local began = dev:now()
      local gate = s:gate(HELD)
      local first = s:record()
      for _ = 1, 10 do
        s:spin(0.01)
      end
      local last = s:record()
      assert.same({ 10, 10 }, { s:inflight() })
      local _, inflight = began:elapsed()
      assert.equal(10, inflight)
      assert.is_false(last:done())
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
      assert.same({ 0, 0 }, { s:inflight() })
      assert.is_true(last - first >= 0.1, "ten spins of 10 ms")
      local seconds
      seconds, inflight = began:elapsed()
      assert.is_true(seconds >= 0.1, "ten spins of 10 ms")
      assert.equal(0, inflight)
    end)

    it("of any kind is asynchronous with the default options (A06)", function()
      local dev = open()
      local s = dev:stream()
      local a = dev:array { { 1, 2 }, { 3, 4 } }
      local c, d = dev:zeros { 2, 2 }, dev:zeros { 2, 2 }
      assert.is_true(dev:synchronize())
      local gate = s:gate(HELD)
      s:spin(0.001)
      gpu.matmul(a, a, c, s)
      d:copy_from(c, s)
      c:fill(5, s)
      local event = s:record()
      assert.same({ 4, 4 }, { s:inflight() })
      assert.is_false(event:done())
      assert.is_false(s:done())
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
      assert.is_true(event:done())
      assert.is_true(s:done())
      assert.same({ { 7, 10 }, { 15, 22 } }, d:totable())
      assert.same({ { 5, 5 }, { 5, 5 } }, c:totable())
    end)

    it("refuses a closed stream and a wrong stream argument", function()
      local dev = open()
      local s = dev:stream()
      local x = dev:array { 1 }
      s:close()
      assert.equal("stream (closed)", tostring(s))
      assert.error_matches(function() s:spin(0) end, "stream is closed", 1, true)
      assert.error_matches(function() x:fill(1, s) end, "stream is closed", 1, true)
      assert.error_matches(function() x:fill(1, { stream = s }) end,
        "option 'stream': stream is closed", 1, true)
      assert.error_matches(function() x:fill(1, { stream = 3 }) end,
        "option 'stream': stream expected, got number", 1, true)
      assert.error_matches(function() x:fill(1, { strem = s }) end,
        "unknown option 'strem'", 1, true)
      assert.error_matches(function() x:fill(1, dev) end,
        "stream expected, got device", 1, true)
      assert.same({ 1 }, x:totable())
    end)
  end)

  describe("spin", function()
    it("occupies the stream for at least that long", function()
      local dev = open()
      local s = dev:stream()
      local before = s:record()
      assert.is_true(before:synchronize())
      local began = dev:now()
      s:spin(0.03)
      local after = s:record()
      assert.is_true(s:synchronize())
      assert.is_true(began:elapsed() >= 0.03)
      assert.is_true(after - before >= 0.03)
    end)

    it("refuses what is no duration", function()
      local dev = open()
      local s = dev:stream()
      for _, seconds in ipairs { -1, 2e6, 0 / 0, math.huge } do
        assert.error_matches(function() s:spin(seconds) end,
          "spin: seconds must be 0 to 1e6, got " .. ("%g"):format(seconds), 1, true)
      end
      assert.error_matches(function() s:spin() end, "number expected, got no value", 1, true)
      assert.same({ 0, 0 }, { s:inflight() })
    end)
  end)

  describe("streams", function()
    it("are independent, and the default stream is an ordinary one (D07)", function()
      local dev = open()
      local x = { dev:array { 0 }, dev:array { 0 }, dev:array { 0 } }
      local streams = { dev:default_stream(), dev:stream(), dev:stream() }
      for held = 1, 3 do
        local gate = streams[held]:gate(HELD)
        for i = 1, 3 do
          x[i]:fill(10 * held + i, streams[i])
        end
        for i = 1, 3 do
          if i ~= held then
            assert.is_true(streams[i]:synchronize())
            assert.same({ 10 * held + i }, x[i]:totable())
          end
        end
        assert.is_false(streams[held]:done())
        assert.is_false(dev:synchronize(0))
        assert.is_true(gate:open())
        assert.is_true(dev:synchronize())
        assert.same({ 10 * held + held }, x[held]:totable())
      end
    end)

    it("are objects of their device; the default one is always the same (D07)", function()
      local dev = open()
      local s = dev:stream()
      assert.is_true(dev:default_stream() == dev:default_stream())
      assert.is_false(s == dev:default_stream())
      assert.is_false(s == dev:stream())
      assert.is_true(rawequal(dev, s:device()))
      assert.matches("^stream %d+ on ", tostring(s))
      assert.equal(id, tostring(s):match(" on (.*)$"))
    end)

    it("finish their work when they are closed with work pending (D08)", function()
      local dev = open()
      local s = dev:stream()
      local x = dev:array { 0, 0, 0 }
      local gate = s:gate(HELD)
      s:spin(0.01)
      x:fill(7, s)
      local event = s:record()
      s:close()
      assert.is_false(event:done())
      assert.is_false(dev:synchronize(0))
      assert.is_true(gate:open())
      assert.is_true(dev:synchronize())
      assert.same({ 7, 7, 7 }, x:totable())
      assert.is_true(event:done())
      assert.is_true(event:synchronize())
      s:close()
      assert.error_matches(function() x:fill(1, s) end, "stream is closed", 1, true)
    end)

    it("finish their work when they are collected with work pending (D08)", function()
      local dev = open()
      local x = dev:array { 0, 0, 0 }
      local gate, event
      do
        local s = dev:stream()
        gate = s:gate(HELD)
        x:fill(7, s)
        event = s:record()
      end
      collectgarbage()
      collectgarbage()
      assert.is_false(event:done())
      assert.is_true(gate:open())
      assert.same({ 7, 7, 7 }, x:totable())
      assert.is_true(event:synchronize())
    end)
  end)

  describe("synchronize", function()
    it("says true when all is done, false when the time limit came first", function()
      local dev = open()
      local s = dev:stream()
      assert.is_true(s:synchronize(0))
      local gate = s:gate(HELD)
      assert.is_false(s:synchronize(0))
      local began = dev:now()
      assert.is_false(s:synchronize(0.07))
      assert.is_false(dev:synchronize(0.07))
      assert.is_true(began:elapsed() >= 0.14)
      assert.is_true(gate:open())
      assert.is_true(s:synchronize(20))
      assert.is_true(dev:synchronize(20))
    end)

    it("refuses what is no time limit", function()
      local dev = open()
      local s = dev:stream()
      for _, seconds in ipairs { -1, 0 / 0 } do
        assert.error_matches(function() s:synchronize(seconds) end,
          "a time limit >= 0 s wanted, got", 1, true)
      end
      assert.error_matches(function() s:synchronize("soon") end,
        "number expected, got string", 1, true)
    end)

    it("is ended by an error out of a hook, and all stays usable (D14)", function()
      local dev = open()
      local s = dev:stream()
      local x = dev:array { 0 }
      local gate = s:gate(HELD)
      x:fill(3, s)
      local event = s:record()
      assert.same({ false, "interrupted!" }, { interrupted(s.synchronize, s) })
      assert.same({ false, "interrupted!" }, { interrupted(event.synchronize, event) })
      assert.same({ false, "interrupted!" }, { interrupted(dev.synchronize, dev) })
      assert.same({ false, "interrupted!" }, { interrupted(x.totable, x) })
      assert.same({ false, "interrupted!" }, { interrupted(x.upload, x, { 1 }) })
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
      assert.same({ 3 }, x:totable())
    end)

    it("goes on after a hook that returns", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      local calls = 0
      local ok, reached = hooked(function()
        calls = calls + 1
        if calls == 2 then
          gate:open()
        end
      end, s.synchronize, s)
      assert.same({ true, true }, { ok, reached })
      assert.is_true(calls >= 2)
    end)

    it("notices that a hook has closed the stream", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      local ok, message = hooked(function() s:close() end, s.synchronize, s)
      assert.is_false(ok)
      assert.matches("stream is closed", message, 1, true)
      assert.is_true(gate:open())
    end)
  end)

  describe("the queue", function()
    for _, depth in ipairs { 4, 64 } do
      it("takes " .. depth .. " launches; a further one waits, and can be interrupted", function()
        local dev = open(each_device.depth(id, depth))
        local s = dev:stream()
        local x = dev:array { 0 }
        local gate = s:gate(HELD)
        for i = 1, depth do
          x:fill(i, s)
        end
        assert.same({ depth, depth }, { s:inflight() })
        assert.same({ false, "interrupted!" }, { interrupted(x.fill, x, -1, s) })
        assert.same({ false, "interrupted!" }, { interrupted(s.spin, s, 100) })
        assert.same({ false, "interrupted!" }, { interrupted(s.record, s) })
        assert.same({ depth, depth }, { s:inflight() })
        assert.is_true(gate:open())
        assert.is_true(s:synchronize())
        assert.same({ 0, 0 }, { s:inflight() })
        assert.same({ depth }, x:totable())
      end)

      it("of " .. depth .. " takes one more once there is room, and fails nothing", function()
        local dev = open(each_device.depth(id, depth))
        local s = dev:stream()
        local x = dev:array { 0 }
        local began = dev:now()
        local gate = s:gate { timeout = 0.1 }
        for i = 1, depth + 1 do
          x:fill(i, s)
        end
        assert.is_true(began:elapsed() >= 0.1, "the last launch waited for the gate")
        assert.same({ false, "timed out" }, { gate:open() })
        assert.is_true(s:synchronize())
        assert.same({ depth + 1 }, x:totable())
      end)
    end

    it("holds 1024 launches by default, or as many as the device's own", function()
      local dev = open()
      local depth = dev:properties().queue_depth
      if id:find("cuda", 1, true) then
        assert.is_nil(depth) -- the driver does not say
        return
      end
      assert.equal(1024, depth)
      -- The host's gate takes none of them.
      local room = math.tointeger(depth - (dev:properties().sim or { gate_slots = 0 }).gate_slots)
      local s = dev:stream()
      local gate = s:gate(HELD)
      for _ = 1, room do
        s:spin(0)
      end
      assert.same({ room, room }, { s:inflight() })
      assert.same({ false, "interrupted!" }, { interrupted(s.spin, s, 0) })
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
    end)

    it("counts a record with timing as a slot, and not as a launch in flight", function()
      local dev = open(each_device.depth(id, 4))
      local s = dev:stream()
      local gate = s:gate(HELD)
      for _ = 1, 2 do
        s:spin(0)
        s:record()
      end
      assert.same({ 2, 2 }, { s:inflight() })
      assert.same({ false, "interrupted!" }, { interrupted(s.spin, s, 0) })
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
    end)

    it("when full holds up no other stream", function()
      local dev = open(each_device.depth(id, 4))
      local full, other = dev:stream(), dev:stream()
      local x, y, z = dev:array { 0 }, dev:array { 0 }, dev:array { 0 }
      local gate = full:gate(HELD)
      for i = 1, 4 do
        x:fill(i, full)
      end
      for i = 1, 20 do
        y:fill(i, other)
      end
      z:copy_from(dev:array { 99 }) -- the default stream
      assert.is_true(other:synchronize())
      assert.is_true(dev:default_stream():synchronize())
      assert.same({ 4, 4 }, { full:inflight() })
      assert.is_true(gate:open())
      assert.same({ 4 }, x:totable())
    end)

    it("lets gates and waits for events be interrupted when it has no place left", function()
      if id:find("sim", 1, true) then
        return -- waits take no place there, as on the GPU that it models: there is always one left
      end
      local dev = open(each_device.depth(id, 4))
      local s, other = dev:stream(), dev:stream()
      local held = other:gate { timeout = 0.6 }
      local event = other:record()
      local gate = s:gate { timeout = 0.6 }
      -- As many waits as there could be: none of these takes a launch's slot.
      local ok, message, waits = true, nil, 0
      while ok and waits < 100 do
        ok, message = interrupted(s.wait_event, s, event)
        waits = waits + 1
      end
      assert.same({ false, "interrupted!" }, { ok, message })
      assert.equal(4, waits) -- the gate, and three before this one
      assert.same({ false, "interrupted!" }, { interrupted(s.gate, s, HELD) })
      assert.is_true(held:open())
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
    end)

    it("loses and reorders nothing under back-pressure", function()
      local dev = open(each_device.depth(id, 4))
      local s = dev:stream()
      local n = 500
      local x, y, wanted = dev:array { 0 }, dev:zeros(n), {}
      for i = 1, n do
        wanted[i] = i
        x:fill(i, s)
        local place <close> = y:view { offset = i - 1, shape = 1 }
        place:copy_from(x, s)
      end
      assert.same(wanted, y:totable())
    end)

    it("takes 20 000 launches that nobody waits for (A05)", function()
      local dev = open()
      local s, other = dev:stream(), dev:stream()
      local x, y = dev:array { 0 }, dev:array { 0 }
      for i = 1, 20000 do
        x:fill(i, s)
      end
      y:fill(1, other)
      assert.same({ 1 }, y:totable())
      assert.same({ 20000 }, x:totable())
    end)
  end)
end)
