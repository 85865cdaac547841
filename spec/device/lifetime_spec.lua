--- Lifetimes: every order of dropping things, finalizers and closes called by
-- hand, failed clean-ups, and objects of a device that was closed.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local HELD = { timeout = 30 } -- seconds: only a spec that fails waits for it

--- All orders of the items.
local function orders(items)
  if #items == 0 then
    return { {} }
  end
  local result = {}
  for i, item in ipairs(items) do
    local rest = table.move(items, 1, #items, 1, {})
    table.remove(rest, i)
    for _, order in ipairs(orders(rest)) do
      table.insert(order, 1, item)
      result[#result + 1] = order
    end
  end
  return result
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Runs Lua code in an interpreter of its own, which ends with lua_close.
-- Returns its exit code and what it wrote on either stream.
local function run(flags, code, ...)
  local environment, rest = flags:match("^([%u_]+=%S+) (.*)$")
  flags = rest or flags
  local interpreter = 0
  while arg and arg[interpreter - 1] do
    interpreter = interpreter - 1
  end
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(code)
  file:close()
  local words = { name, ... }
  for i, word in ipairs(words) do
    words[i] = quote(word)
  end
  local command = ("%s LUA_PATH=%s LUA_CPATH=%s %s %s %s 2>&1; echo \"exit $?\""):format(
    environment or "", quote(package.path), quote(package.cpath),
    interpreter < 0 and arg[interpreter] or "lua5.4", flags, table.concat(words, " "))
  local pipe = assert(io.popen(command))
  local output = pipe:read("a")
  pipe:close()
  os.remove(name)
  local text, status = output:match("^(.-)exit (%d+)\n$")
  return tonumber(status), text
end

local order_at_exit = [[
  local gpu = require "tidelock"
  local id, order = ...
  local root, first = gpu.device(id), nil
  local made = {}

  local function make(name)
    local dev = made.device or root
    if name == "device" then
      return dev
    end
    return name == "buffer" and dev:zeros(8) or dev[name](dev)
  end

  for name in order:gmatch("%a+") do
    if name == "device" and first then
      root = nil -- so that the handle is younger than what was made before
      collectgarbage()
      made.device = first:device()
    else
      made[name] = make(name)
    end
    first = first or made[name]
  end
  made.stream:spin(0.005)
  made.buffer:fill(7, made.stream)
  made.stream:record(made.event)
]]

each_device("lifetimes", function(open, id)
  --- A device that only the caller holds.
  local function open_unheld()
    return gpu.device(id, { faults = each_device.faults })
  end

  describe("dropping", function()
    for _, pending in ipairs { false, true } do
      it("device, buffer, stream and event works in every order, "
        .. (pending and "with" or "without") .. " pending work (F10)", function()
        for _, order in ipairs(orders { "device", "buffer", "stream", "event" }) do
          local kept = { device = open_unheld() }
          kept.stream = kept.device:stream()
          kept.buffer = kept.device:full({ 16 }, 1, { stream = kept.stream })
          local gate = pending and kept.stream:gate(HELD)
          kept.buffer:fill(7, kept.stream)
          kept.event = kept.stream:record()
          for i, name in ipairs(order) do
            kept[name] = nil
            collectgarbage()
            if i == 3 and gate then
              assert.is_true(gate:open())
              gate = nil
            end
            if kept.buffer then
              assert.equal("buffer 16 float32 on " .. id, tostring(kept.buffer))
              assert.equal(id, kept.buffer:device():id())
              if not gate then
                assert.equal(7, kept.buffer:get(16))
              end
            end
            if kept.event then
              assert.is_true(kept.event:synchronize(gate and 0 or 20) == not gate)
            end
            if kept.stream then
              assert.is_true(kept.stream:synchronize(gate and 0 or 20) == not gate)
            end
          end
        end
      end)
    end

    it("all of it, held back by a gate, waits for nothing (F10)", function()
      local gate
      do
        local dev = open_unheld()
        local s = dev:stream()
        gate = s:gate(HELD)
        dev:full({ 16 }, 1, { stream = s })
      end
      collectgarbage()
      assert.is_true(gate:open())
    end)

    it("at the end of the program works in every order, with work pending (F10)", function()
      for _, order in ipairs(orders { "device", "buffer", "stream", "event" }) do
        local names = table.concat(order, " ")
        assert.same({ 0, "" }, { run("-W", order_at_exit, id, names) }, names)
      end
    end)

    it("finds things made in a finalizer, before and after the rest is gone (F10)", function()
      local status, text = run("-W", [[
        local gpu = require "tidelock"
        local dev, s
        local function late(name)
          return setmetatable({}, { __gc = function()
            local ok, result = pcall(function()
              local b = dev:empty(10)
              b:fill(1, s)
              return tostring(s:synchronize()) .. " " .. b:get(10)
            end)
            print(name, ok, (tostring(result):match("[^()]+ is clos%a+") or result))
          end })
        end
        local after = late "after"
        dev = gpu.device(...)
        s = dev:stream()
        local before = late "before"
        s:spin(0.005)
      ]], id)
      assert.equal("before\ttrue\ttrue 1.0\nafter\tfalse\tdevice is closed\n", text)
      assert.equal(0, status)
    end)
  end)

  describe("a scope's end", function()
    it("closes at once, however it is left (F12)", function()
      local dev = open()
      collectgarbage()
      collectgarbage("stop")
      local ok, message = pcall(function()
        local before = dev:memory()

        local function check(how)
          local now = dev:memory()
          assert.equal(before.live, now.live, how)
          assert.equal(before.objects, now.objects, how)
        end

        do
          local a <close> = dev:empty(1 << 10)
          assert.equal(before.live + 4096, dev:memory().live)
          assert.equal(4096, a:nbytes())
        end
        check "end of a block"
        for i = 1, 3 do
          local a <close> = dev:empty(1 << 10)
          if i == 2 then
            a:close() -- a second close is no harm
            break
          end
        end
        check "break"
        local _, script_error = pcall(function()
          local _ <close> = dev:empty(1 << 10)
          local s <close> = dev:stream()
          s:spin(0)
          local event <close> = s:record()
          assert.is_true(event:synchronize())
          error("the script's own", 0)
        end)
        assert.equal("the script's own", script_error)
        check "error"
        assert.equal(1024, (function()
          local a <close> = dev:empty(1 << 10)
          return a:size()
        end)())
        check "return"
        local abandoned = coroutine.create(function()
          local _ <close> = dev:empty(1 << 10)
          coroutine.yield()
        end)
        assert.is_true(coroutine.resume(abandoned))
        assert.equal(before.live + 4096, dev:memory().live)
        assert.is_true(coroutine.close(abandoned))
        check "coroutine.close"
      end)
      collectgarbage("restart")
      assert.is_true(ok, message)
    end)

    it("comes with the collector for an abandoned coroutine (F12)", function()
      local dev = open()
      local before = dev:memory().live
      local abandoned = coroutine.wrap(function()
        local _ <close> = dev:empty(1 << 10)
        coroutine.yield()
      end)
      abandoned()
      assert.equal(before + 4096, dev:memory().live)
      abandoned = nil -- luacheck: ignore
      collectgarbage()
      assert.equal(before, dev:memory().live)
    end)
  end)

  describe("a wrong self", function()
    it("is an argument error with both types (F07)", function()
      local dev = open()
      local a, s = dev:array { 1 }, dev:stream()
      for _, case in ipairs {
        { function() a.totable() end, "buffer expected, got no value" },
        { function() a.totable(io.stdout) end, "buffer expected, got FILE*" },
        { function() a.totable(s) end, "buffer expected, got stream" },
        { function() s.spin(a, 1) end, "stream expected, got buffer" },
        { function() dev.memory(s) end, "device expected, got stream" },
        { function() s:record().done(dev) end, "event expected, got device" },
        { function() s:gate().open(s) end, "gate expected, got stream" },
        { function() dev:now().elapsed(a) end, "stamp expected, got buffer" },
        { function() gpu.faults().arm(a) end, "faults expected, got buffer" },
        { function() gpu.matmul(a, s) end, "buffer expected, got stream" },
      } do
        assert.error_matches(case[1], case[2], 1, true)
      end
    end)

    it("does no harm to finalizers called by hand, twice or with another class (F07)", function()
      local dev = open()
      local a, s = dev:array { 1 }, dev:stream()
      local meta = debug.getmetatable(a)
      assert.error_matches(function() meta.__gc(s) end, "buffer expected, got stream", 1, true)
      assert.error_matches(function() meta.__gc() end, "buffer expected, got no value", 1, true)
      assert.error_matches(function() meta.__close(7) end, "buffer expected, got number", 1, true)
      meta.__gc(a)
      meta.__gc(a)
      meta.__close(a)
      assert.error_matches(function() a:totable() end, "buffer is closed", 1, true)
      assert.equal("buffer (closed)", tostring(a))
      for _ = 1, 3 do
        a:close()
        s:close()
      end
      assert.equal(0, dev:memory().live)
      for name, object in pairs { buffer = a, stream = s, device = dev } do
        assert.equal("tidelock." .. name, getmetatable(object))
        assert.error_matches(function() setmetatable(object, {}) end, "table expected", 1, true)
      end
    end)

    it("with a stolen metatable leaks, and does not crash (F07)", function()
      assert.same({ 0, "still here\n" }, { run("ASAN_OPTIONS=detect_leaks=0 -W", [[
        local gpu = require "tidelock"
        local dev = gpu.device(...)
        for _, object in ipairs { dev:zeros(4), dev:stream(), dev:now(), dev } do
          debug.setmetatable(object, {})
        end
        collectgarbage()
        print("still here")
      ]], id) })
    end)
  end)

  describe("a hook", function()
    it("that closes an argument while a launch waits leaves nothing behind", function()
      local debug, pcall = debug, pcall
      local dev = open(each_device.depth(id, 4))
      local s = dev:stream()
      local a = dev:array { { 1 } }
      local launches = {
        function(x) x:fill(1, s) end,
        function(x) x:copy_from(a, s) end,
        function(x) gpu.matmul(a, a, x, s) end,
      }
      for _, launch in ipairs(launches) do
        local x = dev:array { { 0 } }
        local gate = s:gate(HELD)
        for _ = 1, 4 do
          s:spin(0)
        end
        local calls = 0
        debug.sethook(function()
          calls = calls + 1
          if calls == 5 then -- pcall, launch, method, and twice in the wait
            x:close()
            gate:open()
          end
        end, "c")
        local ok, message = pcall(launch, x)
        debug.sethook()
        assert.is_false(ok)
        assert.matches("buffer is closed", message, 1, true)
        assert.is_true(s:synchronize())
        gate:close()
      end
    end)
  end)

  describe("a failed clean-up", function()
    local function open_with_faults()
      if each_device.faults then
        pending("faults are injected from outside")
      end
      local faults = gpu.faults()
      return open { faults = faults }, faults
    end

    it("raises nowhere and is kept (F13)", function()
      local dev, faults = open_with_faults()
      assert.is_nil(dev:last_cleanup_error())
      for how, drop in pairs {
        close = function() dev:empty(10):close() end,
        __close = function() local _ <close> = dev:empty(10) end,
        __gc = function() dev:empty(10) end,
      } do
        faults:reset()
        faults:arm("release", 1, "driver")
        drop()
        collectgarbage()
        assert.equal(0, dev:memory().live, how)
        assert.equal(id .. ": cleaning up a buffer of 40 bytes: release: "
          .. "injected failure of use 1", dev:last_cleanup_error(), how)
      end
      assert.same({ 1 }, dev:array({ 1 }):totable())
    end)

    it("says what it was about: stream, event or gate (F13)", function()
      local dev, faults = open_with_faults()
      local s = dev:stream()
      local number = tostring(s):match("%d+")
      faults:arm("stream_destroy", 1, "driver")
      s:close()
      dev:memory()
      assert.equal(id .. ": cleaning up stream " .. number .. ": stream_destroy: "
        .. "injected failure of use 1", dev:last_cleanup_error())
      faults:arm("event_destroy", 1, "driver")
      dev:event():close()
      dev:memory()
      assert.equal(id .. ": cleaning up an event: event_destroy: "
        .. "injected failure of use 1", dev:last_cleanup_error())
      faults:arm("gate_destroy", 1, "driver")
      dev:default_stream():gate():close()
      dev:memory()
      assert.equal(id .. ": cleaning up a gate: gate_destroy: "
        .. "injected failure of use 1", dev:last_cleanup_error())
    end)

    it("reaches Lua's warnings, once, where they are on (F13)", function()
      local code = [[
        local gpu = require "tidelock"
        local faults = gpu.faults()
        local dev = gpu.device(..., { faults = faults })
        faults:arm("release", 1, "driver")
        dev:empty(10):close()
        dev:memory()
        dev:memory()
        dev:synchronize()
        dev:trim()
      ]]
      local status, text = run("-W", code, id)
      assert.equal(0, status)
      assert.matches("^Lua warning: tidelock: " .. id .. ": cleaning up a buffer[^\n]*: release: "
        .. "injected failure of use 1\n$", text)
      assert.same({ 0, "" }, { run("", code, id) })
    end)
  end)
end)
