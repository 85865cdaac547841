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
      for _ = 1, count do
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
end)
