--- Transfers that do not wait: pinned buffers, pending results, and copies between devices.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  assert.matches(text, tostring(message), 1, true)
end

each_device("transfers that do not wait", function(open, id)
  it("start from a pinned buffer, whose next contents wait for the copy (C08)", function()
    local dev = open()
    local s = dev:stream()
    local pinned, b = dev:pinned(2), dev:zeros(2)
    pinned:upload { 5, 6 }
    local gate = s:gate { timeout = 0.3 }
    assert.is_true(rawequal(b, b:upload_async(pinned, s)))
    assert.equal(1, (s:inflight()))
    pinned:set(1, 99) -- waits until the gate has timed out and the copy is done
    assert.same({ false, "timed out" }, { gate:open() })
    assert.same({ 5, 6 }, b:totable())
    assert.same({ 99, 6 }, pinned:totable())
  end)

  it("start from a string, which may go at once (C08)", function()
    local dev = open()
    local s = dev:stream()
    local b = dev:zeros { 2, 2 }
    local gate = s:gate { timeout = 10 }
    b:upload_async(string.pack("<ffff", 1, 2, 3, 4), s)
    collectgarbage()
    collectgarbage()
    assert.equal(1, (s:inflight()))
    assert.is_true(gate:open())
    assert.same({ { 1, 2 }, { 3, 4 } }, b:totable())
  end)

  it("end in a pinned buffer, whose value cannot be had before (C07)", function()
    local dev = open()
    local s = dev:stream()
    local gate = s:gate { timeout = 10 }
    local b = dev:full(3, 7, { stream = s })
    local pinned = dev:pinned(3)
    local pending = b:download_async(pinned, s)
    b:close()
    assert.is_false(pending:done())
    assert.is_false(pending:synchronize(0))
    assert.equal("pending on " .. id, tostring(pending))
    assert.is_true(gate:open())
    assert.is_true(rawequal(pinned, pending:result()))
    assert.is_true(pending:done())
    assert.same({ 7, 7, 7 }, pinned:totable())
    pending:close()
    pending:close()
    refuses("pending is closed", pending.result, pending)
  end)

  it("can be awaited", function()
    local dev = open()
    local s = dev:stream()
    local gate = s:gate { timeout = 10 }
    local pending = dev:full(2, 4, "int32", s):download_async(dev:pinned(2, "int32"), s)
    local yielded = 0
    local run = coroutine.wrap(function() return gpu.await(pending):totable() end)
    while yielded < 3 do
      assert.is_true(rawequal(pending, run()))
      yielded = yielded + 1
    end
    assert.is_true(gate:open())
    assert.is_true(pending:synchronize())
    assert.same({ 4, 4 }, run())
  end)

  it("honour views and every dtype", function()
    local dev = open()
    for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16", "int32", "int8" } do
      local b = dev:zeros({ 3, 4 }, dtype)
      local column = b:view { shape = { 3, 2 }, offset = 1, stride = 4 }
      local pinned = dev:pinned({ 3, 2 }, dtype)
      pinned:upload { { 1, 2 }, { 3, 4 }, { 5, 6 } }
      column:upload_async(pinned)
      assert.same({ { 0, 1, 2, 0 }, { 0, 3, 4, 0 }, { 0, 5, 6, 0 } }, b:totable())
      local back = column:download_async(dev:pinned({ 3, 2 }, dtype)):result()
      assert.equal(pinned:tobytes(), back:tobytes())
    end
  end)

  it("are kept by what is queued, whatever is dropped", function()
    local dev = open()
    local s = dev:stream()
    local gate = s:gate { timeout = 10 }
    local b = dev:zeros(1000)
    do
      local pinned = dev:pinned(1000)
      pinned:fill(3, s)
      b:upload_async(pinned, s)
    end
    collectgarbage()
    collectgarbage()
    for _ = 1, 10 do
      dev:pinned(1000):fill(9)
    end
    assert.is_true(gate:open())
    assert.equal(3, b:get(1000))
  end)

  it("have pinned memory outside of the limit, and say so", function()
    local dev = open { memory_limit = 4096 }
    local before = dev:memory().live
    local pinned = dev:pinned(4096)
    assert.equal(before, dev:memory().live)
    assert.equal("buffer 4096 float32 pinned for " .. id, tostring(pinned))
    assert.equal(0, dev:pinned(0):size())
  end)

  it("refuse what is not pinned, and what does not fit, and queue nothing", function()
    local dev = open()
    local b, s = dev:zeros(2), dev:stream()
    refuses("the buffer is not pinned: use copy_from", b.upload_async, b, dev:zeros(2), s)
    refuses("the buffer is not pinned: use copy_from", b.download_async, b, dev:zeros(2), s)
    refuses("pinned buffer or string expected, got table", b.upload_async, b, { 1, 2 }, s)
    refuses("8 bytes wanted, got 7", b.upload_async, b, ("x"):rep(7), s)
    refuses("another shape", b.upload_async, b, dev:pinned(3), s)
    refuses("the source is float64, the buffer float32", b.upload_async, b,
      dev:pinned(2, "float64"), s)
    refuses("another shape", b.download_async, b, dev:pinned(3), s)
    assert.equal(0, (s:inflight()))
  end)
end)

each_device("copies between devices", function(open, id)
  it("bring the contents over, once the source is done", function()
    local dev = open()
    local other <close> = gpu.device(each_device.other(id))
    local t, s = other:stream(), dev:stream()
    local gate = t:gate { timeout = 0.2 }
    local source = other:full({ 2, 3 }, 8, { stream = t })
    local b = dev:zeros({ 4, 3 }, s)
    b:view { shape = { 2, 3 }, offset = 3 }:copy_from(source, s)
    assert.same({ false, "timed out" }, { gate:open() })
    assert.same({ { 0, 0, 0 }, { 8, 8, 8 }, { 8, 8, 8 }, { 0, 0, 0 } }, b:totable())
    refuses("the stream belongs to", b.copy_from, b, other:zeros { 4, 3 }, t)
    refuses("another shape", b.copy_from, b, source, s)
    source:close()
    t:close()
    gate:close()
  end)
end)
