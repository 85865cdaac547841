--- Devices in trouble: lost ones, closed ones, and those that are not there.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local HELD = { timeout = 30 } -- seconds: only a spec that fails waits for it

each_device("errors", function(open, id)
  --- A device whose launches can be made to fail, and what makes them.
  local function open_with_faults(options)
    if each_device.faults then
      pending("faults are injected from outside")
    end
    options = options or {}
    options.faults = gpu.faults()
    return open(options), options.faults
  end

  --- A device that has lost a matmul, the error that said so, what is on it.
  local function lose()
    local dev, faults = open_with_faults()
    local s = dev:stream()
    local a = dev:array { { 1, 2 }, { 3, 4 } }
    local event = s:record()
    assert.is_true(event:synchronize())
    local on = { a = a, event = event, stamp = dev:now(), gate = dev:stream():gate(HELD) }
    faults:arm("execute", 1, "device_lost")
    gpu.matmul(a, a, { stream = s, kernel = "naive" })
    local line = debug.getinfo(1, "l").currentline - 1
    local ok, lost = pcall(s.synchronize, s)
    assert.is_false(ok)
    on.stream = s
    return dev, lost, on, line
  end

  describe("a launch that fails on the device", function()
    it("is told by the next wait, which names kernel and script line (E01)", function()
      local _, lost, _, line = lose()
      assert.equal("device_lost", lost.code)
      assert.equal(lost.message, tostring(lost))
      assert.matches("^" .. id .. " is lost: an earlier asynchronous operation failed",
        lost.message)
      assert.matches("last launches: stream %d+: matmul naive %([^()]*error_spec%.lua:" .. line
        .. "%)$", lost.message)
    end)

    it("is the cause that every later call repeats at once (E01)", function()
      local dev, lost, on = lose()
      local a, s, event = on.a, on.stream, on.event
      for name, call in pairs {
        properties = function() dev:properties() end,
        memory = function() dev:memory() end,
        trim = function() dev:trim() end,
        now = function() dev:now() end,
        synchronize = function() dev:synchronize() end,
        default_stream = function() dev:default_stream() end,
        stream = function() dev:stream() end,
        event = function() dev:event() end,
        empty = function() dev:empty(2) end,
        zeros = function() dev:zeros(2) end,
        full = function() dev:full(2, 1) end,
        array = function() dev:array { 1 } end,
        matmul = function() gpu.matmul(a, a) end,
        upload = function() a:upload { { 1, 1 }, { 1, 1 } } end,
        totable = function() a:totable() end,
        tobytes = function() a:tobytes() end,
        get = function() a:get(1, 1) end,
        set = function() a:set(1, 1, 9) end,
        fill = function() a:fill(1, s) end,
        clone = function() a:clone() end,
        copy_from = function() a:copy_from(a:view { shape = { 2, 2 } }) end,
        spin = function() s:spin(1) end,
        ["s:synchronize"] = function() s:synchronize() end,
        ["s:done"] = function() s:done() end,
        inflight = function() s:inflight() end,
        record = function() s:record() end,
        gate = function() s:gate() end,
        wait_event = function() s:wait_event(event) end,
        ["event:done"] = function() event:done() end,
        ["event:synchronize"] = function() event:synchronize() end,
        ["-"] = function() return event - event end,
        elapsed = function() on.stamp:elapsed() end,
        open = function() on.gate:open() end,
      } do
        local ok, again = pcall(call)
        assert.is_false(ok, name)
        assert.equal(lost.message, type(again) == "table" and again.message or again, name)
        assert.equal("device_lost", again.code, name)
      end
    end)

    it("leaves questions, closing and collecting quiet (E01)", function()
      local dev, lost, on = lose()
      assert.same({ true, lost.message }, { dev:is_lost() })
      assert.equal(id, dev:id())
      assert.same({ 2, 2 }, on.a:shape())
      assert.equal("buffer 2x2 float32 on " .. id, tostring(on.a))
      assert.equal("device " .. id, tostring(dev))
      on.event:close()
      on.stream:close()
      on.gate:close()
      on.a = nil
      collectgarbage()
      assert.is_nil(dev:last_cleanup_error())
      assert.is_true(dev:is_lost())
      dev:close()
      assert.equal("device (closed)", tostring(dev))
    end)

    it("leaves other devices, and the same one opened anew, at work (E01)", function()
      local dev, _, on = lose()
      local other <close> = gpu.device(each_device.other(id))
      local a = other:array { { 1, 2 }, { 3, 4 } }
      assert.same({ { 7, 10 }, { 15, 22 } }, gpu.matmul(a, a):totable())
      assert.same({ false }, { other:is_lost() })
      dev:close()
      on.gate:close()
      local anew = open()
      assert.same({ false }, { anew:is_lost() })
      a = anew:array { { 1, 2 }, { 3, 4 } }
      assert.same({ { 7, 10 }, { 15, 22 } }, gpu.matmul(a, a):totable())
    end)

    it("is not known before the device gets there, nor held up by other streams", function()
      local dev, faults = open_with_faults()
      local s, other = dev:stream(), dev:stream()
      local gate, held = s:gate(HELD), other:gate(HELD)
      faults:arm("execute", 1, "device_lost")
      s:spin(0)
      assert.same({ false }, { dev:is_lost() })
      assert.is_false(s:synchronize(0))
      assert.same({ 1, 1 }, { s:inflight() })
      assert.is_true(gate:open())
      -- `other` stays held: the wait for all streams still sees the failure.
      local ok, lost = pcall(dev.synchronize, dev)
      assert.is_false(ok)
      assert.equal("device_lost", lost.code)
      held:close()
    end)

    it("is blamed on its stream's last launches, not on the call that sees it (E02)", function()
      local dev, faults = open_with_faults()
      local s, other = dev:stream(), dev:stream()
      local a, c = dev:array { { 1 } }, dev:array { { 0 } }
      other:spin(0)
      local gate = s:gate(HELD)
      faults:arm("execute", 3, "device_lost")
      local line = debug.getinfo(1, "l").currentline
      s:spin(0)
      c:fill(2, s)
      gpu.matmul(a, a, c, { stream = s, kernel = "tiled" }) -- this one
      assert.same({ false }, { dev:is_lost() })
      assert.is_true(gate:open())
      pcall(s.synchronize, s) -- whoever asks first is told
      for _, innocent in ipairs {
        function() c:fill(1, other) end,
        function() dev:empty(1) end,
      } do
        local ok, lost = pcall(innocent)
        assert.is_false(ok)
        local place = " %([^()]*error_spec%.lua:"
        assert.matches("an earlier asynchronous operation failed.*; last launches: stream %d+: "
          .. "spin" .. place .. line + 1 .. "%), fill" .. place .. line + 2
          .. "%), matmul tiled" .. place .. line + 3 .. "%)$", lost.message)
      end
    end)

    it("is told at the launch itself with blocking_launches (E02)", function()
      local dev, faults = open_with_faults { blocking_launches = true }
      local s = dev:stream()
      local a = dev:array { { 2 } }
      s:spin(0.01)
      assert.same({ 0, 0 }, { s:inflight() })
      assert.same({ { 4 } }, gpu.matmul(a, a, s):totable())
      faults:arm("execute", 1, "device_lost")
      local line = debug.getinfo(1, "l").currentline + 1
      local ok, lost = pcall(function() gpu.matmul(a, a, { stream = s, kernel = "naive" }) end)
      assert.is_false(ok)
      assert.equal("device_lost", lost.code)
      assert.matches("matmul naive %([^()]*error_spec%.lua:" .. line .. "%)$", lost.message)
    end)
  end)

  describe("a failure that was handled", function()
    it("does not show at a later call (E02)", function()
      local dev = open()
      local a = dev:array { { 1, 2 }, { 3, 4 } }
      assert.is_false(pcall(gpu.device, "host:99"))
      assert.is_false(pcall(gpu.matmul, a, dev:array { { 1 } }))
      assert.same({ { 7, 10 }, { 15, 22 } }, gpu.matmul(a, a):totable())
    end)

    it("of a driver call is a table with code and message, and passes", function()
      local dev, faults = open_with_faults()
      local s, a = dev:stream(), dev:array { { 3 } }
      faults:arm("matmul", 1, "driver")
      local ok, failure = pcall(gpu.matmul, a, a, s)
      assert.is_false(ok)
      assert.equal("driver", failure.code)
      assert.equal("matmul: injected failure of use 1", failure.message)
      assert.equal(failure.message, tostring(failure))
      assert.same({ 0, 0 }, { s:inflight() })
      assert.same({ { 9 } }, gpu.matmul(a, a, s):totable())
      assert.equal(2, faults:sites().matmul)
      assert.error_matches(function() faults:arm("matmul", 0, "driver") end,
        "uses count from 1", 1, true)
      assert.error_matches(function() faults:arm("matmul", 1, "oops") end,
        "unknown code 'oops'", 1, true)
      faults:reset()
      assert.same({}, faults:sites())
    end)
  end)

  describe("a closed device", function()
    it("says so, through its own methods and those of what was made on it", function()
      local dev = open()
      local s, a, event = dev:stream(), dev:array { { 1 } }, dev:event()
      s:record(event)
      assert.is_true(event:synchronize())
      local stamp, gate = dev:now(), s:gate(HELD)
      dev:close()
      dev:close()
      for _, call in ipairs {
        function() dev:synchronize() end, function() dev:memory() end,
        function() dev:empty(1) end, function() dev:now() end, function() dev:is_lost() end,
      } do
        assert.error_matches(call, "device is closed", 1, true)
      end
      for _, call in ipairs {
        function() s:synchronize() end, function() s:spin(0) end, function() s:done() end,
        function() s:inflight() end, function() s:record() end, function() s:record(event) end,
        function() s:gate() end, function() s:wait_event(event) end,
        function() event:done() end, function() event:synchronize() end,
        function() return event - event end, function() a:totable() end,
        function() a:get(1, 1) end, function() a:fill(1, s) end, function() a:clone() end,
        function() a:view { shape = 1 } end, function() gpu.matmul(a, a) end,
        function() stamp:elapsed() end, function() gate:open() end,
      } do
        assert.error_matches(call, "device " .. id .. " is closed", 1, true)
      end
      assert.same({ 1, 1 }, a:shape())
      assert.equal("device (closed)", tostring(dev))
      for _, object in ipairs { a, event, gate, s, stamp } do
        object:close()
        assert.matches(" %(closed%)$", tostring(object))
      end
    end)

    it("can be opened again, with other options, while the old one has work", function()
      local dev = open { queue_depth = 4 }
      local s = dev:stream()
      local gate = s:gate(HELD)
      s:spin(0)
      dev:close()
      local anew = open { queue_depth = 8 }
      assert.equal(8, anew:properties().queue_depth)
      assert.is_false(anew == dev)
      local a = anew:array { { 2 } }
      assert.error_matches(function() a:fill(1, s) end, "device " .. id .. " is closed", 1, true)
      assert.same({ { 4 } }, gpu.matmul(a, a):totable())
      gate:close()
    end)
  end)

  describe("a device id", function()
    it("is one object while it is open; other options are refused", function()
      local options = { queue_depth = 16, wait = "spin", faults = each_device.faults }
      local dev = open(options)
      assert.is_true(rawequal(dev, gpu.device(id)))
      assert.is_true(rawequal(dev, gpu.device(id, options)))
      assert.equal(id, dev:id())
      local message = "device '" .. id .. "' is open with other options; close it first, "
        .. "or leave the options out"
      for _, other in ipairs { {}, { queue_depth = 17, wait = "spin" }, { queue_depth = 16 },
        { queue_depth = 16, wait = "spin", memory_limit = 1 << 20 },
        { queue_depth = 16, wait = "spin", blocking_launches = true } } do
        assert.error_matches(function() gpu.device(id, other) end, message, 1, true)
      end
    end)

    it("stays that object's while something made on it is alive", function()
      local s = gpu.device(id, { queue_depth = 16, faults = each_device.faults }):stream()
      collectgarbage()
      local dev = open { queue_depth = 16 }
      assert.is_true(dev == s:device())
      assert.same({ 5 }, dev:full(1, 5, { stream = s }):totable())
    end)

    it("takes no option that it does not know, and no value out of range", function()
      assert.error_matches(function() gpu.device(id, { depth = 3 }) end,
        "unknown option 'depth'", 1, true)
      assert.error_matches(function() gpu.device(id, { wait = "sleep" }) end,
        'option \'wait\': "spin" or "block" wanted, got "sleep"', 1, true)
      for depth, wanted in pairs {
        [0] = "1 to 1048576 launches wanted, got 0",
        [-1] = "1 to 1048576 launches wanted, got -1",
        [(1 << 20) + 1] = "1 to 1048576 launches wanted, got 1048577",
        [1.5] = "number has no integer representation (got 1.5)",
        deep = "integer expected, got string",
      } do
        assert.error_matches(function() gpu.device(id, { queue_depth = depth }) end,
          "option 'queue_depth': " .. wanted, 1, true)
      end
      assert.error_matches(function() gpu.device(id, { faults = 1 }) end,
        "option 'faults': open faults expected, got number", 1, true)
    end)
  end)
end)

describe("device ids", function()
  local function refused(wanted, code, device_id)
    local ok, failure = pcall(gpu.device, device_id)
    assert.is_false(ok)
    assert.matches(wanted, tostring(failure), 1, true)
    assert.equal(code, type(failure) == "table" and failure.code or nil)
    local available, reason = gpu.available(device_id)
    assert.is_false(available)
    assert.matches(wanted, reason, 1, true)
  end

  it("count from 0, and are refused by name (E09)", function()
    local host <close> = gpu.device("host:0")
    assert.equal("host", host:id())
    assert.is_true(rawequal(host, gpu.device("host")))
    local last <close> = gpu.device("host:7")
    assert.equal("host:7", last:id())
    assert.is_false(last == host)
    assert.same({ { 9 } }, gpu.matmul(last:array { { 3 } }, last:array { { 3 } }):totable())
    for _, beyond in ipairs { "host:8", "host:99" } do
      refused("device '" .. beyond .. "' does not exist (devices host:0 to host:7)",
        "unsupported", beyond)
    end
    for _, text in ipairs { "host:x", "host:", "host:-1", "host:1.5", "host:0x1" } do
      refused("device '" .. text .. "': an ordinal from 0 is wanted after the colon",
        nil, text)
    end
    refused("device 'nope': this build has no back end of that name", "unsupported", "nope")
    for _, f in ipairs { gpu.device, gpu.available } do
      assert.error_matches(function() f "host\0:1" end, "contains a zero byte", 1, true)
    end
    assert.error_matches(function() gpu.device {} end, "string expected, got table", 1, true)
    assert.error_matches(function() gpu.available() end,
      "string expected, got no value", 1, true)
  end)

  it("without a GPU list the host only, and say why there is no cuda (E07)", function()
    if gpu.available("cuda") then
      pending("this machine has a CUDA device")
    end
    local ids = {}
    for i, device in ipairs(gpu.devices()) do
      ids[i] = device.id
      assert.is_true(#device.name > 0)
      assert.equal(device.id:match("^%a+"), device.backend)
      assert.same({ true }, { gpu.available(device.id) })
    end
    assert.equal("host", ids[1])
    for _, device_id in ipairs(ids) do
      assert.is_nil(device_id:find("cuda", 1, true))
    end
    local _, reason = gpu.available("cuda")
    assert.matches("cuda", reason, 1, true)
    refused(reason, "unsupported", "cuda")
  end)

  it("need no library that is not on every machine (E07)", function()
    local module = assert(package.searchpath("tidelock.core", package.cpath))
    local pipe = assert(io.popen("ldd '" .. module .. "'"))
    local libraries = pipe:read("a")
    pipe:close()
    assert.matches("libc.so", libraries, 1, true)
    for _, name in ipairs { "cuda", "cublas", "nvrtc", "blas", "lua5", "liblua" } do
      assert.is_nil(libraries:gsub("%(0x%x+%)", ""):match("lib[%w_.-]*" .. name), name)
    end
  end)
end)
