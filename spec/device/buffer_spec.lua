-- Buffers: making them, asking them, filling, copying, cloning.
local each_device = require "spec.each_device"

--- Asserts that f raises a string that contains the text.
local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(message) ~= "string" then
    error(message, 0)
  end
  assert.matches(text, message, 1, true)
end

each_device("buffer", function(open)
  it("says its shape, size, bytes, dtype and device", function()
    local dev = open()
    local b = dev:empty({ 2, 3, 4 }, "float64")
    assert.same({ 2, 3, 4 }, b:shape())
    assert.equal(2, #b)
    assert.equal(24, b:size())
    assert.equal(192, b:nbytes())
    assert.equal("float64", b:dtype())
    assert.is_true(b:device() == dev)
    local v = dev:empty(5)
    assert.same({ 5 }, v:shape())
    assert.same({ 5, 5, 20, "float32" }, { #v, v:size(), v:nbytes(), v:dtype() })
    for _, n in ipairs { #v, v:size(), v:nbytes(), v:shape()[1] } do
      assert.equal("integer", math.type(n))
    end
  end)

  it("is printed with shape, dtype and device, and closed too", function()
    local dev = open()
    local b, v = dev:empty { 2000, 20 }, dev:empty(7, "float64")
    assert.equal("buffer 2000x20 float32 on " .. dev:id(), tostring(b))
    assert.equal("buffer 7 float64 on " .. dev:id(), tostring(v))
    assert.equal("buffer 0x3x1 float32 on " .. dev:id(), tostring(dev:empty { 0, 3, 1 }))
    b:close()
    assert.equal("buffer (closed)", tostring(b))
  end)

  it("is made of zeros, of one value, or of data", function()
    local dev = open()
    for _, dtype in ipairs { "float32", "float64" } do
      assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, dev:zeros({ 2, 3 }, dtype):totable())
      assert.same({ 1.5, 1.5, 1.5, 1.5 }, dev:full(4, 1.5, dtype):totable())
      local nested = { { { 1, 2 }, { 3, 4 } } }
      assert.same(nested, dev:array(nested, dtype):totable())
      assert.equal(dtype, dev:zeros({ 2, 3 }, dtype):dtype())
      assert.equal(dtype, dev:full(4, 1.5, { dtype = dtype }):dtype())
      assert.equal(dtype, dev:array({ 1 }, dtype):dtype())
    end
    assert.same({ "float32", "float32", "float32", "float32" }, {
      dev:zeros(1):dtype(), dev:full(1, 2):dtype(), dev:array({ 1 }):dtype(), dev:empty(1):dtype(),
    })
  end)

  it("takes its contents from packed bytes", function()
    local dev = open()
    local bytes = string.pack("<ddd", 1, -2.5, 3)
    local b = dev:array(bytes, "float64")
    assert.same({ 1, -2.5, 3 }, b:totable())
    assert.equal(bytes, b:tobytes())
    refuses("length 23 is not a multiple of 8", dev.array, dev, bytes:sub(1, 23), "float64")
    assert.same({ 0 }, dev:array(""):shape())
  end)

  it("takes nested tables of the shape they have", function()
    local dev = open()
    assert.same({ 3 }, dev:array({ 1, 2, 3 }):shape())
    assert.same({ 1, 3 }, dev:array({ { 1, 2, 3 } }):shape())
    assert.same({ 2, 1, 3 }, dev:array({ { { 1, 2, 3 } }, { { 4, 5, 6 } } }):shape())
    assert.same({ 0 }, dev:array({}):shape())
    assert.same({ 1, 0 }, dev:array({ {} }):shape())
    refuses("row 2 has 1 elements, 2 wanted", dev.array, dev, { { 1, 2 }, { 3 } })
    refuses("row 2 has 3 elements, 2 wanted", dev.array, dev, { { 1, 2 }, { 3, 4, 5 } })
    refuses("element [2] is number, a table wanted", dev.array, dev, { { 1, 2 }, 3 })
    refuses("element [2][1] is table, a number wanted", dev.array, dev, { { 1, 2 }, { {}, 3 } })
    refuses("element 2 is table, a number wanted", dev.array, dev, { 1, { 2 } })
    refuses("nested more than 3 deep", dev.array, dev, { { { { 1 } } } })
    refuses("table or string expected, got number", dev.array, dev, 5)
    refuses("table or string expected, got buffer", dev.array, dev, dev:zeros(1))
  end)

  it("is written and read element by element", function()
    local dev = open()
    local b = dev:zeros({ 2, 3 }, "float64")
    b:set(1, 1, 0.5)
    b:set(2, 3, -7)
    b:set(1.0, 2.0, 3)
    assert.same({ { 0.5, 3, 0 }, { 0, 0, -7 } }, b:totable())
    assert.equal(-7, b:get(2, 3))
    assert.equal(3, b:get(1, 2.0))
    local cube = dev:array { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }
    assert.equal(7, cube:get(2, 2, 1))
  end)

  it("refuses indices out of range, missing, or no integers", function()
    local dev = open()
    local b = dev:zeros { 2, 3 }
    refuses("bad argument #1 to 'get' (index must be 1 to 2, got 0)", function() b:get(0, 1) end)
    refuses("bad argument #1 to 'get' (index must be 1 to 2, got 3)", function() b:get(3, 1) end)
    refuses("bad argument #2 to 'get' (index must be 1 to 3, got 4)", function() b:get(1, 4) end)
    refuses("bad argument #2 to 'set' (index must be 1 to 3, got -1)", function()
      b:set(1, -1, 5)
    end)
    refuses("index must be 1 to 2, got " .. math.maxinteger, b.get, b, math.maxinteger, 1)
    refuses("index must be 1 to 2, got " .. math.mininteger, b.get, b, math.mininteger, 1)
    refuses("bad argument #2 to 'get' (number expected, got no value)", function() b:get(1) end)
    refuses("number has no integer representation", b.get, b, 1.5, 1)
    refuses("bad argument #3 to 'set' (number expected, got no value)", function()
      b:set(1, 1)
    end)
    refuses("index must be 1 to 0, got 1", dev:empty(0).get, dev:empty(0), 1)
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, b:totable())
  end)

  it("is filled, and returns itself", function()
    local dev = open()
    local s = dev:stream()
    local b = dev:empty { 3, 5 }
    assert.is_true(rawequal(b, b:fill(2)))
    assert.is_true(rawequal(b, b:fill(3, s)))
    assert.is_true(rawequal(b, b:fill(4, { stream = s })))
    s:synchronize()
    local row = { 4, 4, 4, 4, 4 }
    assert.same({ row, row, row }, b:totable())
    refuses("number expected, got nil", b.fill, b, nil)
    refuses("unknown option 'strem'", b.fill, b, 1, { strem = s })
    refuses("stream or options table expected, got number", b.fill, b, 1, 5)
  end)

  it("fills behind a gate, and reads wait for it", function()
    local dev = open()
    local s = dev:stream()
    local b = dev:zeros(1000)
    assert.is_true(dev:synchronize())
    local g = s:gate { timeout = 2 }
    b:fill(7, s)
    assert.same({ 1, 1 }, { s:inflight() })
    assert.is_true(g:open())
    assert.equal(7, b:get(1000))
    assert.same({ 0, 0 }, { s:inflight() })
  end)

  it("is copied from another, contents, strides and all", function()
    local dev = open()
    local s = dev:stream()
    local a, b = dev:array { { 1, 2, 3 }, { 4, 5, 6 } }, dev:zeros { 2, 3 }
    assert.is_true(rawequal(b, b:copy_from(a)))
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, b:totable())
    local frame = dev:full({ 4, 5 }, -1)
    frame:view({ offset = 6, shape = { 2, 3 }, stride = 5 }):copy_from(a, s)
    local edge = { -1, -1, -1, -1, -1 }
    assert.same({ edge, { -1, 1, 2, 3, -1 }, { -1, 4, 5, 6, -1 }, edge }, frame:totable())
    b:copy_from(frame:view { offset = 5, shape = { 2, 3 }, stride = 5 }, { stream = s })
    assert.same({ { -1, 1, 2 }, { -1, 4, 5 } }, b:totable())
    local cube, planes = dev:array { { { 1, 2 } }, { { 3, 4 } }, { { 5, 6 } } }, dev:zeros(30)
    planes:view({ shape = { 3, 1, 2 }, stride = { 10, 2 } }):copy_from(cube)
    assert.same({ 1, 2, 0, 3, 4, 0, 5, 6, 0 }, {
      planes:get(1), planes:get(2), planes:get(3), planes:get(11), planes:get(12),
      planes:get(13), planes:get(21), planes:get(22), planes:get(23),
    })
  end)

  it("refuses to be copied from another shape or dtype, or from what it overlaps", function()
    local dev = open()
    local b = dev:array { { 1, 2, 3 }, { 4, 5, 6 } }
    refuses("another shape than the buffer (6 and 6 elements)", b.copy_from, b, dev:zeros { 3, 2 })
    refuses("another shape than the buffer (5 and 6 elements)", b.copy_from, b, dev:zeros(5))
    refuses("the source is float64, the buffer float32", b.copy_from, b,
      dev:zeros({ 2, 3 }, "float64"))
    refuses("the buffer overlaps its source", b.copy_from, b, b)
    local left, right = b:view { shape = { 2, 2 }, stride = 3 },
      b:view { offset = 1, shape = { 2, 2 }, stride = 3 }
    refuses("the buffer overlaps its source", left.copy_from, left, right)
    refuses("buffer expected, got table", b.copy_from, b, { 1 })
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, b:totable())
  end)

  it("copies between columns of one buffer that do not touch", function()
    local dev = open()
    local b = dev:array { { 1, 2, 0, 0 }, { 3, 4, 0, 0 }, { 5, 6, 0, 0 } }
    b:view({ offset = 2, shape = { 3, 2 }, stride = 4 })
      :copy_from(b:view { shape = { 3, 2 }, stride = 4 })
    assert.same({ { 1, 2, 1, 2 }, { 3, 4, 3, 4 }, { 5, 6, 5, 6 } }, b:totable())
  end)

  it("is cloned into memory of its own, packed", function()
    local dev = open()
    local s = dev:stream()
    local a = dev:array { { 1, 2, 3 }, { 4, 5, 6 } }
    local column = a:view { offset = 1, shape = { 2, 1 }, stride = 3 }
    local b, c = a:clone(), column:clone(s)
    dev:synchronize()
    a:fill(0)
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, b:totable())
    assert.same({ { 2 }, { 5 } }, c:totable())
    assert.same({ 2, 5 }, c:reshape(2):totable())
    assert.equal(3, dev:memory().buffers)
  end)

  it("equals itself and no other", function()
    local dev = open()
    local a = dev:zeros(4)
    assert.is_true(a == a) -- luacheck: ignore
    assert.is_false(a == dev:zeros(4))
    assert.is_false(a == a:view { shape = 4 })
    assert.is_false(a == dev)
  end)

  it("C10: has no bytes where a dimension is 0", function()
    local dev = open()
    local s = dev:stream()
    local g = s:gate { timeout = 2 }
    local before = dev:memory().live
    local b = dev:empty(0, "float32")
    assert.equal(0, #b)
    b:upload("")
    b:upload({})
    assert.equal(0, #b:tobytes())
    assert.same({}, b:totable())
    assert.same({ 0, 0 }, { b:size(), b:nbytes() })
    b:fill(1, s)
    b:copy_from(dev:zeros(0), s)
    assert.same({ 0 }, b:clone(s):shape())
    assert.same({ 0, 0 }, { s:inflight() })
    assert.same({ {}, {} }, dev:zeros({ 2, 0 }):totable())
    assert.same({}, dev:full({ 0, 2 }, 5):totable())
    assert.equal(before, dev:memory().live)
    assert.is_true(g:open())
    b:close()
    b:close()
    assert.equal("buffer (closed)", tostring(b))
  end)

  it("F07: refuses a wrong self, and names both types", function()
    local dev = open()
    local a, s = dev:zeros(4), dev:stream()
    refuses("bad argument #1 to 'totable' (buffer expected, got no value)", function()
      a.totable()
    end)
    refuses("(buffer expected, got FILE*)", function() a.totable(io.stdout) end)
    refuses("(buffer expected, got stream)", function() a.totable(s) end)
    refuses("(buffer expected, got table)", function() a.fill({}, 1) end)
    refuses("(buffer expected, got stream)", function() a.close(s) end)
    refuses("attempt to call a nil value (method 'read')", function() a:read() end)
    assert.is_nil(a.read)
    assert.has_error(function() a.note = 1 end)
    assert.is_true(s:synchronize())
  end)

  it("F07: keeps its metatable to itself, and survives what is done through debug", function()
    local dev = open()
    local a, s = dev:zeros(4), dev:stream()
    assert.equal("tidelock.buffer", getmetatable(a))
    assert.has_error(function() setmetatable(a, {}) end)
    local meta = debug.getmetatable(a)
    refuses("(buffer expected, got stream)", meta.__gc, s)
    refuses("(buffer expected, got stream)", meta.__tostring, s)
    assert.is_true(s:synchronize())
    debug.setmetatable(a, {})
    pcall(meta.__index.totable, a) -- whether it works is nobody's business
    collectgarbage()
    debug.setmetatable(a, meta)
    assert.same({ 0, 0, 0, 0 }, a:totable())
    meta.__gc(a)
    meta.__gc(a)
    refuses("(buffer is closed)", meta.__index.totable, a)
    refuses("bad argument #1 to 'totable' (buffer is closed)", function()
      a.totable(a)
    end)
    refuses("buffer is closed", a.fill, a, 1)
    a:close()
    a:close()
    a:close()
    assert.equal(0, dev:memory().buffers)
  end)

  it("F12: is closed at the end of its block, and raises nothing there", function()
    local dev = open()
    local function block(leave)
      for i = 1, 3 do
        local a <close> = dev:zeros(1 << 10)
        assert.equal(4096, dev:memory().live)
        if i == 2 then
          leave(a)
        end
      end
    end
    block(function() end)
    assert.equal(0, dev:memory().live)
    block(function(a) a:close() end)
    assert.equal(0, dev:memory().live)
    refuses("the script's own", block, function() error("the script's own") end)
    assert.equal(0, dev:memory().live)
  end)

  it("refuses every use once it is closed", function()
    local dev = open()
    local a, b = dev:zeros(4), dev:zeros(4)
    a:close()
    for name, arguments in pairs {
      shape = {}, size = {}, nbytes = {}, dtype = {}, device = {}, totable = {}, tobytes = {},
      upload = { { 1, 2, 3, 4 } }, get = { 1 }, set = { 1, 1 }, fill = { 1 }, copy_from = { b },
      clone = {}, view = { { shape = 1 } }, reshape = { 4 },
    } do
      refuses("buffer is closed", a[name], a, table.unpack(arguments))
    end
    refuses("buffer is closed", function() return #a end)
    refuses("buffer is closed", b.copy_from, b, a)
    assert.same({ 0, 0, 0, 0 }, b:totable())
  end)

  it("belongs to a device, and is refused once that is closed", function()
    local dev = open()
    local a = dev:zeros(4)
    assert.is_true(dev:synchronize())
    dev:close()
    refuses("is closed", a.totable, a)
    refuses("is closed", a.fill, a, 1)
    assert.same({ 4 }, a:shape())
    a:close()
    assert.equal("buffer (closed)", tostring(a))
  end)
end)
