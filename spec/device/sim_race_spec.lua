--- The race detector of the device of virtual time: what it finds, and what it must not.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local function line()
  return debug.getinfo(2, "l").currentline
end

each_device("races", function(open, id)
  if not id:find("sim", 1, true) then
    return -- only a device that knows every order can tell
  end

  --- Calls f, which must race; returns the message.
  local function race(f, ...)
    local ok, raised = pcall(f, ...)
    assert.is_false(ok, "no race was found")
    assert.equal("race", type(raised) == "table" and raised.code or raised)
    return raised.message
  end

  --- A device with two streams and a written buffer that all know to be there.
  local function setup(shape)
    local dev = open()
    local s, t = dev:stream(), dev:stream()
    local x, y = dev:zeros(shape or { 4, 4 }), dev:zeros(shape or { 4, 4 })
    assert.is_true(dev:synchronize())
    return dev, s, t, x, y
  end

  describe("are found", function()
    it("between a write and a read, both named with their lines", function()
      local _, s, t, x, y = setup()
      local wrote = line() + 1
      x:fill(1, s)
      local read = line() + 1
      local message = race(function() y:copy_from(x, t) end)
      local file = debug.getinfo(1, "S").short_src
      local first, second = tostring(s):match("%d+"), tostring(t):match("%d+")
      assert.equal(("E-RACE: copy (%s:%d) on stream %s reads elements that fill (%s:%d) on stream "
        .. "%s writes, and nothing orders the two: record an event behind the earlier one, and "
        .. "let stream %s wait_event for it"):format(
          file, read, second, file, wrote, first, second), message)
      assert.same({ 0, 0 }, { t:inflight() })
    end)

    it("between a read and a write, and two writes", function()
      local _, s, t, x, y = setup()
      y:copy_from(x, s)
      assert.matches("fill .* writes elements that copy .* reads",
        race(function() x:fill(1, t) end))
      assert.matches("fill .* writes elements that copy .* writes",
        race(function() y:fill(1, t) end))
    end)

    it("in products, with the kernel's name, whichever operand it is", function()
      local dev, s, t, x, y = setup()
      local c, d = dev:zeros { 4, 4 }, dev:zeros { 4, 4 }
      dev:synchronize()
      gpu.matmul(x, y, c, { kernel = "naive", stream = s })
      assert.matches("E-RACE: matmul tiled .* writes elements that matmul naive .* writes",
        race(gpu.matmul, x, y, c, { kernel = "tiled", stream = t }))
      assert.matches("matmul naive .* reads", race(function() x:fill(1, t) end))
      assert.matches("matmul naive .* reads", race(function() y:fill(1, t) end))
      assert.matches("matmul tiled .* reads elements that matmul naive .* writes",
        race(gpu.matmul, c, y, d, { kernel = "tiled", stream = t }))
    end)

    it("when an event was waited for that was recorded too early", function()
      local _, s, t, x, y = setup()
      local event = s:record()
      x:fill(1, s)
      t:wait_event(event)
      race(function() y:copy_from(x, t) end)
      t:wait_event(s:record(event))
      y:copy_from(x, t)
    end)

    it("when the other stream is gone, or only its time has come", function()
      local dev, s, t, x, y = setup()
      x:fill(1, s)
      s:close()
      collectgarbage()
      dev:sleep(1)
      assert.is_true(t:synchronize())
      race(function() y:copy_from(x, t) end)
    end)

    it("after uses that are in order were forgotten", function()
      local dev, s, t, x = setup()
      local u = dev:stream()
      for i = 1, 100 do
        x:fill(i, s)
      end
      t:wait_event(s:record())
      x:fill(0, t)
      race(function() x:fill(0, u) end)
      u:wait_event(t:record())
      x:fill(0, u)
    end)

    it("and leave nothing queued: the stream goes on", function()
      local dev, s, t, x, y = setup()
      x:fill(3, s)
      race(function() y:copy_from(x, t) end)
      y:fill(4, t)
      assert.is_true(dev:synchronize())
      assert.equal(4, y:get(1, 1))
      y:copy_from(x, t)
      assert.equal(3, y:get(1, 1))
      assert.is_false(dev:is_lost())
    end)
  end)

  describe("are not what is ordered", function()
    it("by an event", function()
      local _, s, t, x, y = setup()
      x:fill(1, s)
      t:wait_event(s:record())
      y:copy_from(x, t)
      s:wait_event(t:record())
      x:fill(2, s)
    end)

    it("by events through a third stream", function()
      local dev, s, t, x, y = setup()
      local u = dev:stream()
      x:fill(1, s)
      u:wait_event(s:record(dev:event { timing = false }))
      u:spin(1e-3)
      t:wait_event(u:record())
      y:copy_from(x, t)
    end)

    it("by a wait of the host, through what the stream had waited for as well", function()
      for _, wait in ipairs {
        function(s) s:synchronize() end,
        function(_, dev) dev:synchronize() end,
        function(s) s:record():synchronize() end,
        function(s) repeat until s:done() end,
        function(s) repeat until s:inflight() == 0 end,
        function(s) local event = s:record() repeat until event:done() end,
        function(_, _, y) y:tobytes() end,
        function(_, _, y) y:set(1, 1, 5) end,
      } do
        local dev, s, t, x, y = setup()
        x:fill(1, s)
        t:wait_event(s:record())
        y:copy_from(x, t)
        wait(t, dev, y)
        local u <close> = dev:stream()
        x:fill(2, u)
        dev:close()
      end
    end)

    it("by a read that had to wait for nothing", function()
      local dev, s, t, x, y = setup()
      x:fill(1, s)
      for _ = 1, 3 do
        y:fill(2, s)
      end
      dev:sleep(1) -- all is done, and yet the host does not know
      assert.equal(1, x:get(1, 1))
      x:fill(2, t)
      race(function() y:fill(3, t) end)
    end)

    it("because it is the first contents of a buffer", function()
      local dev = open()
      local s, t = dev:stream(), dev:stream()
      local x = dev:full({ 4, 4 }, 1, { stream = s })
      local y = dev:empty { 4, 4 }
      y:copy_from(x, t)
      x:upload_async(("\0"):rep(64), s:wait_event(t:record()) or s)
      assert.is_true(dev:synchronize())
    end)

    it("reads, on any number of streams", function()
      local dev, s, t, x = setup()
      for _, stream in ipairs { s, t, dev:stream(), dev:default_stream() } do
        dev:empty({ 4, 4 }):copy_from(x, stream)
      end
      race(function() x:fill(1, s) end)
    end)

    it("other elements of the same memory, rows and columns too", function()
      local _, s, t, x = setup { 6, 8 }
      local left = x:view { shape = { 6, 4 }, stride = 8 }
      local right = x:view { shape = { 6, 4 }, stride = 8, offset = 4 }
      local top, bottom = x:view { shape = { 3, 8 } }, x:view { shape = { 3, 8 }, offset = 24 }
      left:fill(1, s)
      right:fill(2, t)
      race(function() left:view({ shape = { 1, 1 } }):fill(3, t) end)
      race(function() top:fill(3, t) end)
      s:synchronize()
      t:synchronize()
      top:fill(1, s)
      bottom:fill(2, t)
      race(function() left:fill(3, t) end)
      race(function() right:fill(3, s) end)
    end)
  end)

  it("agree with a search through all elements, in 300 random layouts", function()
    local dev = open()
    local s, t = dev:stream(), dev:stream()
    local x = dev:zeros(400)
    local seed = os.time()
    math.randomseed(seed)

    local function layout()
      while true do
        local planes, rows, columns = math.random(3), math.random(4), math.random(5)
        local stride = columns + math.random(0, 6)
        local plane = rows * stride + math.random(0, 9)
        local offset = math.random(0, 60)
        if offset + planes * plane <= 400 then
          local elements = {}
          for p = 0, planes - 1 do
            for r = 0, rows - 1 do
              for c = 0, columns - 1 do
                elements[offset + p * plane + r * stride + c] = true
              end
            end
          end
          return x:view { shape = { planes, rows, columns }, offset = offset,
            stride = { plane, stride } }, elements
        end
      end
    end

    local found = 0
    for i = 1, 300 do
      assert.is_true(dev:synchronize())
      local a, in_a = layout()
      local b, in_b = layout()
      local shared = false
      for element in pairs(in_a) do
        shared = shared or in_b[element] or false
      end
      a:fill(1, s)
      local ok = pcall(b.fill, b, 2, t)
      assert.equal(shared, not ok, ("layout %d with seed %d"):format(i, seed))
      found = found + (shared and 1 or 0)
    end
    assert.is_true(found > 50 and found < 250, found .. " of 300 share elements")
  end)
end)
