--- Time stamps: dev:now(), later - earlier with its warnings, elapsed().
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local HELD = { timeout = 30 } -- seconds: only a spec that fails waits for it

--- Calls f with a warning handler set, and puts the old one back in any case.
local function with_handler(handler, f)
  local previous = gpu.on_warning(handler)
  local results = table.pack(pcall(f))
  gpu.on_warning(previous)
  if not results[1] then
    error(results[2], 0)
  end
  return table.unpack(results, 2, results.n)
end

--- Calls f and returns the warnings that came, then what f returned.
local function warnings_of(f)
  local list = {}
  local result = with_handler(function(...)
    local code, message, details = ...
    assert.equal(3, select("#", ...))
    list[#list + 1] = { code = code, message = message, details = details }
  end, f)
  return list, result
end

each_device("stamp", function(open, id)
  describe("now", function()
    it("never goes backwards, in a million calls (A02)", function()
      local dev = open()
      local first = dev:now()
      local before, least, finer = first, math.huge, 0
      for _ = 1, 1000000 do
        local now = dev:now()
        local step = now - before
        if step < least then
          least = step
        end
        if math.tointeger((step * 1e9 + 0.5) // 1) % 1000 ~= 0 then
          finer = finer + 1
        end
        before = now
      end
      assert.is_true(least >= 0, "smallest step: " .. least)
      assert.is_true(finer > 0, "the clock is finer than a microsecond")
      assert.is_true(before - first > 0)
    end)

    it("is wall time, where os.clock() is not (A02)", function()
      local dev = open()
      local s = dev:stream()
      local began, cpu = dev:now(), os.clock()
      s:spin(0.05)
      assert.is_true(s:synchronize())
      cpu = os.clock() - cpu
      assert.is_true(dev:now() - began >= 0.05)
      if id == "host" then -- whose spin sleeps, and so does who waits for it
        assert.is_true(cpu < 0.025, cpu)
      end
    end)

    it("shows itself", function()
      local dev = open()
      local stamp = dev:now()
      assert.matches("^stamp %d+%.%d+ s on ", tostring(stamp))
      assert.equal(id, tostring(stamp):match(" on (.*)$"))
      stamp:close()
      stamp:close()
      assert.equal("stamp (closed)", tostring(stamp))
      assert.error_matches(function() stamp:elapsed() end, "stamp is closed", 1, true)
      assert.error_matches(function() return dev:now() - stamp end, "stamp is closed", 1, true)
    end)
  end)

  describe("sleep", function()
    it("lets that much time pass, and waits for no work", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      local began = dev:now()
      s:spin(0)
      dev:sleep(0.07)
      dev:sleep(0)
      local seconds, inflight = began:elapsed()
      assert.is_true(seconds >= 0.07)
      assert.equal(1, inflight)
      assert.is_true(gate:open())
    end)

    it("refuses what is no duration", function()
      local dev = open()
      for _, seconds in ipairs { -1, 2e6, 0 / 0, math.huge } do
        assert.error_matches(function() dev:sleep(seconds) end,
          "sleep: seconds must be 0 to 1e6, got " .. ("%g"):format(seconds), 1, true)
      end
      assert.error_matches(function() dev:sleep() end, "number expected, got no value", 1, true)
    end)
  end)

  describe("later - earlier", function()
    it("warns W-INFLIGHT when launches made since are not done", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      local began = dev:now()
      for _ = 1, 7 do
        s:spin(0)
      end
      local stopped = dev:now()
      local line = debug.getinfo(1, "l").currentline + 1
      local list, seconds = warnings_of(function() return stopped - began end)
      assert.equal(1, #list)
      assert.equal("W-INFLIGHT", list[1].code)
      assert.equal("clock stopped with 7 of 7 launches in flight: this is enqueue time, not "
        .. "execution time; synchronize before you stop the clock", list[1].message)
      assert.same({
        seconds = seconds, least = 7, most = 7, made = 7, where = list[1].details.where,
      }, list[1].details)
      assert.matches("stamp_spec%.lua:" .. line .. ": $", list[1].details.where)
      -- What counts is the moment of the stamps, not of the subtraction.
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
      assert.equal(1, #(warnings_of(function() return stopped - began end)))
    end)

    it("counts on every stream of the device, and only what is not done", function()
      local dev = open()
      local streams = { dev:default_stream(), dev:stream(), dev:stream() }
      local gates = {}
      local began = dev:now()
      for i, s in ipairs(streams) do
        s:spin(0)
        assert.is_true(s:synchronize())
        gates[i] = s:gate(HELD)
        for _ = 1, i do
          s:spin(0)
        end
      end
      local other = dev:stream() -- made after the first stamp
      gates[4] = other:gate(HELD)
      other:spin(0)
      local list = warnings_of(function() return dev:now() - began end)
      assert.equal(1, #list)
      assert.matches("clock stopped with 7 of 10 launches in flight", list[1].message, 1, true)
      assert.same({ 7, 7, 10 },
        { list[1].details.least, list[1].details.most, list[1].details.made })
      for i = 1, 4 do
        assert.is_true(gates[i]:open())
      end
    end)

    it("counts what a stream has done that is gone by the end", function()
      local dev = open()
      local s, other = dev:stream(), dev:stream()
      local began = dev:now()
      for _ = 1, 5 do
        s:spin(0)
      end
      assert.is_true(s:synchronize())
      s:close()
      dev:memory() -- what was closed is cleaned up here
      local gate = other:gate(HELD)
      other:spin(0)
      local list = warnings_of(function() return dev:now() - began end)
      assert.matches("1 of 6 launches in flight", list[1].message, 1, true)
      assert.is_true(gate:open())
    end)

    it("warns W-BACKLOG when earlier launches ran at the start", function()
      local dev = open()
      local s, other = dev:stream(), dev:stream()
      local gates = { s:gate(HELD), other:gate(HELD) }
      s:spin(0)
      s:spin(0)
      other:spin(0)
      local began = dev:now()
      assert.is_true(gates[1]:open() and gates[2]:open())
      assert.is_true(dev:synchronize())
      local stopped = dev:now()
      local line = debug.getinfo(1, "l").currentline + 1
      local list, seconds = warnings_of(function() return stopped - began end)
      assert.equal(1, #list)
      assert.equal("W-BACKLOG", list[1].code)
      assert.equal("3 earlier launches were still running when the clock started: "
        .. "their time is in this number; synchronize first", list[1].message)
      assert.same({
        seconds = seconds, least = 3, most = 3, made = 3, where = list[1].details.where,
      }, list[1].details)
      assert.matches("stamp_spec%.lua:" .. line .. ": $", list[1].details.where)
    end)

    it("warns W-CHARGED when a read waited for earlier launches (case 10)", function()
      local dev = open()
      local s, buf = dev:stream(), dev:empty(4)
      s:spin(0.0267)
      buf:fill(1, s)
      local began = dev:now()
      assert.equal(1, buf:get(1))
      local stopped = dev:now()
      local line = debug.getinfo(1, "l").currentline + 1
      local list, seconds = warnings_of(function() return stopped - began end)
      assert.equal(1, #list)
      assert.equal("W-CHARGED", list[1].code)
      local details = list[1].details
      assert.is_true(details.waited > 0.9 * seconds and details.waited <= seconds)
      assert.equal(("a read or write waited %.3g ms for 2 launches made before the clock started: "
        .. "their time is charged here; synchronize first"):format(details.waited * 1e3),
        list[1].message)
      assert.same({ 2, 2, 2 }, { details.least, details.most, details.made })
      assert.matches("stamp_spec%.lua:" .. line .. ": $", details.where)
      -- The same read, of a buffer that nobody writes any more.
      began = dev:now()
      assert.equal(1, buf:get(1))
      assert.same({}, (warnings_of(function() return dev:now() - began end)))
    end)

    it("warns W-CHARGED of a write too, and tells launches made since from those before", function()
      local dev = open()
      local s, buf = dev:stream(), dev:empty(4)
      s:spin(0.01)
      local began = dev:now()
      s:spin(0.01)
      buf:fill(1, s)
      buf:set(1, 2)
      local list = warnings_of(function() return dev:now() - began end)
      assert.equal(1, #list)
      assert.equal("W-CHARGED", list[1].code)
      assert.matches("for 1 launches made before the clock started and for 2 made since:",
        list[1].message, 1, true)
    end)

    it("does not warn W-CHARGED of a short read, nor of one that waited for later work only",
      function()
        local dev = open()
        local s, other, buf = dev:stream(), dev:stream(), dev:empty(4)
        s:spin(0.02)
        buf:fill(1, other)
        local began = dev:now()
        assert.is_true(s:synchronize())
        assert.equal(1, buf:get(1))
        local list = warnings_of(function() return dev:now() - began end)
        assert.equal("W-BACKLOG", list[1].code)
        local gate = s:gate(HELD)
        s:spin(0)
        began = dev:now()
        other:spin(0.01)
        buf:fill(2, other)
        assert.equal(2, buf:get(1))
        list = warnings_of(function() return dev:now() - began end)
        assert.same({ "W-BACKLOG", 1 }, { list[1].code, #list })
        assert.is_true(gate:open())
      end)

    it("keeps the two apart: launches before the start, and since", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      s:spin(0)
      s:spin(0)
      local began = dev:now()
      for _ = 1, 3 do
        s:spin(0)
      end
      local list = warnings_of(function() return dev:now() - began end)
      assert.equal(2, #list)
      assert.same({ "W-BACKLOG", 2, 2 },
        { list[1].code, list[1].details.least, list[1].details.most })
      assert.same({ "W-INFLIGHT", 3, 3, 3 },
        { list[2].code, list[2].details.least, list[2].details.most, list[2].details.made })
      assert.is_true(gate:open())
    end)

    it("does not warn after a synchronize, nor without work", function()
      local dev = open()
      local s = dev:stream()
      local began = dev:now()
      local list = warnings_of(function() return dev:now() - began end)
      assert.same({}, list)
      for _ = 1, 20 do
        s:spin(0)
      end
      assert.is_true(dev:synchronize())
      local seconds
      list, seconds = warnings_of(function() return dev:now() - began end)
      assert.same({}, list)
      assert.is_true(seconds > 0)
    end)

    it("is negative for stamps the wrong way round, and warns all the same", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      local began = dev:now()
      s:spin(0)
      local stopped = dev:now()
      local list, seconds = warnings_of(function() return began - stopped end)
      assert.same("W-INFLIGHT", list[1].code)
      assert.equal(1, #list)
      assert.is_true(seconds <= 0)
      local _, forward = warnings_of(function() return stopped - began end)
      assert.equal(-forward, seconds)
      assert.is_true(gate:open())
    end)

    it("takes stamps only", function()
      local dev = open()
      assert.error_matches(function() return dev:now() - 1 end,
        "stamp expected, got number", 1, true)
      assert.error_matches(function() return 1 - dev:now() end,
        "stamp expected, got number", 1, true)
      assert.error_matches(function() return dev:now() - dev:stream():record() end,
        "stamp expected, got event", 1, true)
    end)
  end)

  describe("elapsed", function()
    it("is the seconds and the launches in flight, and warns of nothing", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      s:spin(0)
      local began = dev:now()
      s:spin(0.02)
      s:spin(0)
      local list = warnings_of(function()
        local _, inflight = began:elapsed()
        assert.equal(2, inflight)
      end)
      assert.same({}, list)
      assert.is_true(gate:open())
      assert.is_true(s:synchronize())
      local seconds, inflight = began:elapsed()
      assert.is_true(seconds >= 0.02)
      assert.equal(0, inflight)
    end)

    it("counts right with more streams than fit into a glance", function()
      local dev = open()
      local began = dev:now()
      local gates = {}
      for i = 1, 20 do
        local s = dev:stream()
        gates[i] = s:gate(HELD)
        s:spin(0)
      end
      local _, inflight = began:elapsed()
      assert.equal(20, inflight)
      local list = warnings_of(function() return dev:now() - began end)
      assert.equal(20, list[1].details.made)
      for i = 1, 20 do
        assert.is_true(gates[i]:open())
      end
      assert.is_true(dev:synchronize())
      _, inflight = began:elapsed()
      assert.equal(0, inflight)
    end)
  end)

  describe("on_warning", function()
    --- A later and an earlier stamp with three launches between, held back.
    local function held_stamps(dev)
      local s = dev:stream()
      local gate = s:gate(HELD)
      local began = dev:now()
      for _ = 1, 3 do
        s:spin(0)
      end
      return dev:now(), began, gate
    end

    it("makes warnings errors that name place and code when given error", function()
      local later, earlier, gate = held_stamps(open())
      local line = debug.getinfo(1, "l").currentline + 2
      local ok, message = pcall(with_handler, error, function()
        return later - earlier
      end)
      assert.is_false(ok)
      assert.matches("stamp_spec.lua:" .. line .. ": W-INFLIGHT: clock stopped with 3 of 3",
        message, 1, true)
      assert.is_true(gate:open())
    end)

    it("passes a handler's own error on", function()
      local later, earlier, gate = held_stamps(open())
      local raised = { "mine" }
      local ok, message = pcall(with_handler, function() error(raised) end,
        function() return later - earlier end)
      assert.is_false(ok)
      assert.is_true(rawequal(raised, message))
      assert.is_true(gate:open())
    end)

    it("silences warnings when given nil", function()
      local later, earlier, gate = held_stamps(open())
      with_handler(nil, function()
        assert.is_nil(gpu.on_warning())
        assert.is_true(later - earlier > 0)
      end)
      assert.is_true(gate:open())
    end)

    it("returns the handler before, so that it can be put back", function()
      local before = gpu.on_warning()
      local first, second = function() end, function() end
      local returned = { gpu.on_warning(first), gpu.on_warning(second), gpu.on_warning() }
      returned[4] = gpu.on_warning(before)
      assert.is_true(rawequal(before, returned[1]))
      assert.is_true(rawequal(first, returned[2]))
      assert.is_true(rawequal(second, returned[3]))
      assert.is_true(rawequal(second, returned[4]))
      assert.is_true(rawequal(before, gpu.on_warning()))
    end)

    it("refuses what is no function, and keeps the handler", function()
      local before = gpu.on_warning()
      assert.error_matches(function() gpu.on_warning("loud") end,
        "function expected, got string", 1, true)
      assert.is_true(rawequal(before, gpu.on_warning()))
    end)

    it("leaves nothing in the registry when set 100 000 times (F17)", function()
      local before = gpu.on_warning()
      local weak = setmetatable({}, { __mode = "k" })
      local function set(n)
        for i = 1, n do
          local f = function() return i end
          weak[f] = true
          gpu.on_warning(f)
          pcall(gpu.on_warning, i)
        end
        gpu.on_warning(before)
        collectgarbage()
        collectgarbage()
      end
      set(10)
      local length, kilobytes = #debug.getregistry(), collectgarbage("count")
      set(100000)
      weak = next(weak) == nil
      collectgarbage()
      assert.equal(length, #debug.getregistry())
      assert.is_true(collectgarbage("count") - kilobytes < 1024)
      assert.is_true(weak, "every handler was collected")
      assert.is_true(rawequal(before, gpu.on_warning()))
    end)

    it("may yield out of the handler, in a pcall too (F14)", function()
      local dev = open()
      local s = dev:stream()
      local gate = s:gate(HELD)
      s:spin(0)
      local earlier = dev:now()
      s:spin(0)
      local later = dev:now()
      with_handler(function(code, _, details)
        assert.equal("done " .. code, coroutine.yield(code, details.most))
      end, function()
        for _, call in ipairs { function(f) return true, f() end, pcall } do
          local run = coroutine.wrap(function()
            return select(2, call(function() return later - earlier end))
          end)
          assert.same({ "W-BACKLOG", 1 }, { run() })
          assert.same({ "W-INFLIGHT", 1 }, { run("done W-BACKLOG") })
          local seconds = run("done W-INFLIGHT")
          assert.equal("float", math.type(seconds))
          assert.is_true(seconds > 0)
        end
      end)
      assert.is_true(gate:open())
    end)
  end)
end)
