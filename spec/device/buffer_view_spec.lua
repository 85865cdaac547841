-- Views: what they show, what they keep, and what is refused.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

--- Asserts that f raises a string that contains the text.
local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(message) ~= "string" then
    error(message, 0)
  end
  assert.matches(text, message, 1, true)
end

each_device("buffer's views", function(open)
  it("show part of a buffer, without and with a row stride", function()
    local dev = open()
    local b = dev:array { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }
    assert.same({ 1, 2, 3 }, b:view({ shape = 3 }):totable())
    assert.same({ 4, 5 }, b:view({ offset = 3, shape = 2 }):totable())
    assert.same({ { 1, 2 }, { 3, 4 } }, b:view({ shape = { 2, 2 } }):totable())
    assert.same({ { 2, 3 }, { 6, 7 }, { 10, 11 } },
      b:view({ offset = 1, shape = { 3, 2 }, stride = 4 }):totable())
    assert.same({ { 2 }, { 6 } },
      b:view({ offset = 1, shape = { 2, 1 }, stride = { 4 } }):totable())
    assert.same({ { { 1, 2 }, { 4, 5 } }, { { 7, 8 }, { 10, 11 } } },
      b:view({ shape = { 2, 2, 2 }, stride = 3 }):totable())
    assert.same({ { { 1, 2 }, { 3, 4 } }, { { 8, 9 }, { 10, 11 } } },
      b:view({ shape = { 2, 2, 2 }, stride = { 7, 2 } }):totable())
  end)

  it("say their own shape, and print as a buffer does", function()
    local dev = open()
    local v = dev:zeros({ 4, 5 }, "float64"):view { offset = 1, shape = { 2, 3 }, stride = 5 }
    assert.same({ 2, 3 }, v:shape())
    assert.same({ 2, 6, 48, "float64" }, { #v, v:size(), v:nbytes(), v:dtype() })
    assert.is_true(v:device() == dev)
    assert.equal("buffer 2x3 float64 on " .. dev:id(), tostring(v))
    v:close()
    assert.equal("buffer (closed)", tostring(v))
  end)

  it("share their memory with the buffer, and with views of themselves", function()
    local dev = open()
    local b = dev:zeros { 3, 4 }
    local v = b:view { offset = 4, shape = { 2, 4 } }
    local w = v:view { offset = 1, shape = { 2, 2 }, stride = 4 }
    w:fill(5)
    assert.same({ { 0, 0, 0, 0 }, { 0, 5, 5, 0 }, { 0, 5, 5, 0 } }, b:totable())
    b:set(2, 2, 7)
    assert.equal(7, w:get(1, 1))
    assert.equal(7, v:get(1, 2))
    assert.equal(1, dev:memory().buffers)
    assert.equal(48, dev:memory().live)
  end)

  it("keep the memory when the buffer is closed or collected", function()
    local dev = open()
    local b = dev:array { { 1, 2 }, { 3, 4 } }
    local v = b:view { offset = 2, shape = 2 }
    b:close()
    assert.equal("buffer (closed)", tostring(b))
    assert.same({ 3, 4 }, v:totable())
    v:fill(6)
    assert.same({ 6, 6 }, v:totable())
    assert.same({ 16, 1 }, { dev:memory().live, dev:memory().buffers })
    v:close()
    assert.same({ 0, 0 }, { dev:memory().live, dev:memory().buffers })
    local w = dev:array({ { 1, 2 }, { 3, 4 } }):view { shape = { 1, 2 } }
    collectgarbage()
    collectgarbage()
    assert.same({ { 1, 2 } }, w:totable())
    assert.equal(16, dev:memory().live)
  end)

  it("keep the memory of queued work when both are closed", function()
    local dev = open()
    local s = dev:stream()
    local g = s:gate { timeout = 2 }
    local b = dev:array { { 1, 2 }, { 3, 4 } }
    local v = b:view { shape = { 2, 2 } }
    local c = gpu.matmul(v, v, s)
    v:close()
    b:close()
    local other = dev:full({ 2, 2 }, -1)
    assert.is_true(dev:default_stream():synchronize())
    assert.is_true(g:open())
    assert.same({ { 7, 10 }, { 15, 22 } }, c:totable())
    assert.same({ { -1, -1 }, { -1, -1 } }, other:totable())
  end)

  it("wait for work on the buffer, and the buffer for work on them", function()
    local dev = open()
    local s = dev:stream()
    local b = dev:zeros(4)
    local v = b:view { shape = 2 }
    assert.is_true(dev:synchronize())
    s:spin(0.01)
    b:fill(3, s)
    assert.same({ 3, 3 }, v:totable())
    s:spin(0.01)
    v:fill(4, s)
    assert.same({ 4, 4, 3, 3 }, b:totable())
  end)

  it("are reshaped without being copied", function()
    local dev = open()
    local b = dev:array { 1, 2, 3, 4, 5, 6 }
    local m = b:reshape { 2, 3 }
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, m:totable())
    assert.same({ { { 1 }, { 2 } }, { { 3 }, { 4 } }, { { 5 }, { 6 } } },
      m:reshape({ 3, 2, 1 }):totable())
    assert.same({ 1, 2, 3, 4, 5, 6 }, m:reshape(6):totable())
    m:set(1, 1, 9)
    assert.equal(9, b:get(1))
    assert.equal(1, dev:memory().buffers)
    assert.same({ 0, 5 }, dev:zeros({ 3, 0 }):reshape({ 0, 5 }):shape())
  end)

  it("keep their place when they are reshaped", function()
    local dev = open()
    local b = dev:array { 1, 2, 3, 4, 5, 6 }
    local v = b:view { offset = 2, shape = 4 }
    assert.same({ { 3, 4 }, { 5, 6 } }, v:reshape({ 2, 2 }):totable())
    -- One row, or rows of one: nothing lies between them.
    local one = b:view { offset = 1, shape = { 1, 3 }, stride = 5 }
    assert.same({ 2, 3, 4 }, one:reshape(3):totable())
  end)

  it("are not reshaped into another size, or with gaps between the rows", function()
    local dev = open()
    local b = dev:zeros { 2, 3 }
    refuses("bad argument #1 to 'reshape' (6 elements do not go into 7)", function()
      b:reshape(7)
    end)
    refuses("6 elements do not go into 0", b.reshape, b, { 6, 0 })
    refuses("size overflows", b.reshape, b, { 1 << 40, 1 << 40 })
    refuses("size must be >= 0, got -2", b.reshape, b, { -2, -3 })
    refuses("(number or table expected, got no value)", function() b:reshape() end)
    local columns = b:view { shape = { 2, 2 }, stride = 3 }
    refuses("rows do not follow each other; clone it", columns.reshape, columns, 4)
    assert.same({ 0, 0, 0, 0 }, columns:clone():reshape(4):totable())
  end)

  it("refuse what does not fit, by name", function()
    local dev = open()
    local b = dev:zeros { 2, 3 }
    refuses("option 'shape' is missing", b.view, b, {})
    refuses("unknown option 'ofset'", b.view, b, { ofset = 1, shape = 2 })
    refuses("table expected, got number", b.view, b, 5)
    refuses("the view needs 6 elements after offset 1, the buffer has 5", b.view, b,
      { offset = 1, shape = { 2, 3 } })
    refuses("stride 2 < 3", b.view, b, { shape = { 2, 3 }, stride = 2 })
    refuses("stride 5 < 6", b.view, b, { shape = { 1, 2, 3 }, stride = { 5, 3 } })
    refuses("option 'stride': 1 numbers wanted for 2 dimensions", b.view, b,
      { shape = { 2, 1 }, stride = { 2, 1 } })
    refuses("option 'stride': 0 numbers wanted for 1 dimensions", b.view, b,
      { shape = 2, stride = 2 })
    assert.equal(1, dev:memory().buffers)
  end)

  it("of nothing are allowed where the buffer ends", function()
    local dev = open()
    local b = dev:zeros(3)
    assert.same({}, b:view({ offset = 3, shape = 0 }):totable())
    assert.same({ {}, {} }, b:view({ offset = 3, shape = { 2, 0 } }):totable())
    assert.same({}, dev:zeros(0):view({ shape = 0 }):totable())
    refuses("offset must be 0 to 0, got 1", function()
      dev:zeros(0):view { offset = 1, shape = 0 }
    end)
  end)
end)
