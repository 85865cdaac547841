--- Long loops of create, use and drop end where they began (C15).
local each_device = require "spec.each_device"
local gpu = require "tidelock"

--- Resident bytes of this process; nil where the system does not say.
local function resident()
  local file = io.open("/proc/self/statm")
  if not file then
    return nil
  end
  local pages = file:read("n", "n") and file:seek("set") and select(2, file:read("n", "n"))
  file:close()
  return pages * 4096
end

--- A checker keeps freed memory back on purpose.
local checked = (os.getenv("LD_PRELOAD") or ""):find("san", 1, true) ~= nil

each_device("long loops", function(open)
  it("C15: streams, events and buffers that are used and dropped leave nothing", function()
    local dev = open()
    local x = dev:full({ 8, 8 }, 1)
    local function rounds(count)
      for r = 1, count do
        if r % 100 == 0 then
          collectgarbage() -- else how many are alive at a time depends on the specs before
        end
        local s = dev:stream()
        local first, c = s:record(), gpu.matmul(x, x, s)
        local last = s:record()
        c:fill(2, s)
        assert.is_true(s:synchronize())
        assert.is_true(last - first >= 0)
      end
      collectgarbage()
      collectgarbage()
      dev:synchronize()
    end
    rounds(200)
    local before, objects = resident(), dev:memory().objects
    rounds(each_device.faults and 200 or 10000)
    local after = resident()
    assert.equal(objects, dev:memory().objects)
    assert.equal(256, dev:memory().live)
    assert.equal(0, dev:memory().pending)
    if before and not checked and not each_device.faults then
      assert.is_true(after - before < 5 << 20, ("grew by %d bytes"):format(after - before))
    end
  end)

  it("C15: dropped with work in flight on four streams, the device's memory comes back", function()
    local dev = open()
    local n, streams = 1000, {}
    for i = 1, 4 do
      streams[i] = dev:stream()
    end

    --- What round r computes: dropped at once but for the last result.
    local function round(r)
      local s, t = streams[r % 4 + 1], streams[(r + 1) % 4 + 1]
      local x = dev:full(n, r % 2048, { stream = s })
      local y = x:clone(s)
      local event, mine = s:record(dev:event { timing = false }), dev:stream()
      mine:wait_event(event)
      local z = dev:zeros(n, mine)
      z:copy_from(y, mine)
      t:wait_event(mine:record())
      return z:clone(t)
    end

    local function rounds(count)
      for r = 1, count do
        local z = round(r)
        if r % 100 == 0 then
          assert.equal(r % 2048, z:get(n))
          collectgarbage() -- a driver keeps what the most streams at a time have taken
        end
      end
      collectgarbage()
      collectgarbage()
      assert.is_true(dev:synchronize())
      dev:trim()
      local memory = dev:memory()
      return { memory.cached, memory.live, memory.pending, memory.objects }, memory.free
    end
    local before, free = rounds(200)
    local after, free_after = rounds(each_device.faults and 200 or 10000)
    assert.same({ 0, 0, 0, 4 }, before)
    assert.same(before, after)
    if os.getenv("TIDELOCK_SPEC_ALONE") then -- nobody else uses the device
      assert.equal(free, free_after)
    end
  end)
end)
