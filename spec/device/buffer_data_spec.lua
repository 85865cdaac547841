-- Data in and out: rounding, bytes, large tables, and reads that wait.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local nan, inf = 0 / 0, math.huge

--- Asserts that f raises a string that contains the text.
local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(message) ~= "string" then
    error(message, 0)
  end
  assert.matches(text, message, 1, true)
end

each_device("buffer's data", function(open)
  it("B20: rounds once, to nearest even", function()
    local dev = open()
    local single, double = dev:empty(8), dev:empty(4, "float64")
    single:upload { 16777217, 16777219, 16777217.0, -16777217, 0.1, 1 / 3, 16777216, 2 ^ -1 }
    assert.same({
      16777216.0, 16777220.0, 16777216.0, -16777216.0, 0x1.99999ap-4, 0x1.555556p-2,
      16777216.0, 0.5,
    }, single:totable())
    double:upload { 16777217, 9007199254740993, 9007199254740995, 0.1 }
    assert.same({ 16777217.0, 9007199254740992.0, 9007199254740996.0, 0.1 }, double:totable())
  end)

  it("B20: rounds integers beyond 2^53 once, not first to a double", function()
    local dev = open()
    -- Just above the middle of two floats; as a double it is the middle.
    local x = (1 << 54) + (1 << 30) + 1
    local above = 2.0 ^ 54 + 2.0 ^ 31
    local b = dev:zeros(2)
    b:upload { x, -x }
    assert.same({ above, -above }, b:totable())
    b:fill(0)
    b:set(1, x)
    assert.equal(above, b:get(1))
    assert.equal(above, dev:array({ x }):get(1))
  end)

  it("B20: returns floats from float dtypes", function()
    local dev = open()
    for _, dtype in ipairs { "float32", "float64" } do
      local b = dev:full(2, 3, dtype)
      assert.equal("float", math.type(b:totable()[1]))
      assert.equal("float", math.type(b:get(2)))
    end
  end)

  it("overflows to infinity and keeps what is small", function()
    local dev = open()
    local b = dev:array { 1e39, -1e39, 2 ^ 128, 0x1.fffffep127, 0x1.ffffffp127, 0x1.fffffefp127 }
    local greatest = 0x1.fffffep127
    assert.same({ inf, -inf, inf, greatest, inf, greatest }, b:totable())
    local tiny = dev:array { 2 ^ -149, 2 ^ -150, 2 ^ -150 * 1.5, 2 ^ -149 * 1.5, 2 ^ -126 }
    assert.same({ 2 ^ -149, 0, 2 ^ -149, 2 ^ -148, 2 ^ -126 }, tiny:totable())
    local double = dev:array({ 2 ^ -1074, 1.7976931348623157e308 }, "float64")
    assert.same({ 2 ^ -1074, 1.7976931348623157e308 }, double:totable())
  end)

  it("keeps NaN, infinity and the sign of zero", function()
    local dev = open()
    for _, dtype in ipairs { "float32", "float64" } do
      local b = dev:array({ nan, inf, -inf, -0.0, 0.0 }, dtype)
      local t = b:totable()
      assert.is_true(t[1] ~= t[1])
      assert.same({ inf, -inf }, { t[2], t[3] })
      assert.same({ -inf, inf }, { 1 / t[4], 1 / t[5] })
      b:set(5, nan)
      assert.is_true(b:get(5) ~= b:get(5))
      b:fill(-0.0)
      assert.equal(-inf, 1 / b:get(3))
      b:fill(nan)
      assert.is_true(b:get(1) ~= b:get(1))
    end
  end)

  it("F06: takes and gives bytes with zeros in them", function()
    local dev = open()
    local s = string.pack("<ffff", 1.5, 0, -2, 0)
    local a = dev:empty(4)
    a:upload(s)
    assert.equal(16, #a:tobytes())
    assert.equal(s, a:tobytes())
    assert.same({ 1.5, 0, -2, 0 }, a:totable())
    refuses("length 17 is not a multiple of 4", a.upload, a, s .. "x")
    refuses("16 bytes wanted, got 12", a.upload, a, s:sub(1, 12))
    refuses("16 bytes wanted, got 20", a.upload, a, s .. "\0\0\0\0")
    refuses("16 bytes wanted, got 0", a.upload, a, "")
    assert.equal(s, a:tobytes())
  end)

  it("F06: refuses a dtype and a device id with a zero byte in it", function()
    local dev = open()
    refuses("zero byte", dev.empty, dev, 4, "float32\0x")
    refuses("zero byte", dev.zeros, dev, 4, { dtype = "float32\0x" })
    refuses("zero byte", gpu.device, dev:id() .. "\0x")
  end)

  it("packs and unpacks bytes in row order, whatever the row stride", function()
    local dev = open()
    local frame = dev:full({ 3, 4 }, -1, "float64")
    local inner = frame:view { offset = 5, shape = { 2, 2 }, stride = 4 }
    inner:upload(string.pack("<dddd", 1, 2, 3, 4))
    assert.equal(string.pack("<dddd", 1, 2, 3, 4), inner:tobytes())
    assert.same({ { -1, -1, -1, -1 }, { -1, 1, 2, -1 }, { -1, 3, 4, -1 } }, frame:totable())
    inner:upload { { 5, 6 }, { 7, 8 } }
    assert.same({ { 5, 6 }, { 7, 8 } }, inner:totable())
    inner:set(2, 1, 0)
    assert.same({ { -1, -1, -1, -1 }, { -1, 5, 6, -1 }, { -1, 0, 8, -1 } }, frame:totable())
  end)

  it("F05: takes and gives a table of 5 million numbers", function()
    local dev = open()
    local n = 5000000
    local t = table.move({}, 1, 0, 1)
    for i = 1, n do
      t[i] = i % 1021
    end
    local b = dev:array(t)
    assert.equal(n, #b)
    assert.equal(4 * n, b:nbytes())
    local back = b:totable()
    assert.equal(n, #back)
    local wrong = 0
    for i = 1, n do
      if back[i] ~= i % 1021 then
        wrong = wrong + 1
      end
    end
    assert.equal(0, wrong)
  end)

  it("F05: is read from 150 coroutines, one inside the other", function()
    local dev = open()
    local b = dev:array { { 1, 2 }, { 3, 4 } }
    local function nested(depth)
      if depth == 0 then
        return b:totable()
      end
      return coroutine.wrap(nested)(depth - 1)
    end
    assert.same({ { 1, 2 }, { 3, 4 } }, nested(150))
  end)

  it("C07: waits for the work that writes it before it is read", function()
    local dev = open()
    local s = dev:stream()
    local a, c = dev:array { { 1, 2 }, { 3, 4 } }, dev:zeros { 2, 2 }
    assert.is_true(dev:synchronize())
    for _, read in ipairs {
      function() return c:totable() end,
      function() return { { c:get(1, 1), c:get(1, 2) }, { c:get(2, 1), c:get(2, 2) } } end,
      function()
        local w, x, y, z = string.unpack("<ffff", c:tobytes())
        return { { w, x }, { y, z } }
      end,
    } do
      c:fill(0, s)
      assert.is_true(s:synchronize())
      local start = dev:now()
      s:spin(0.02)
      gpu.matmul(a, a, c, s)
      assert.same({ { 7, 10 }, { 15, 22 } }, read())
      assert.is_true(dev:now() - start >= 0.02)
    end
  end)

  it("C08: takes its contents at the call, behind the work queued before", function()
    local dev = open()
    local s = dev:stream()
    local a, b = dev:zeros(4), dev:zeros(4)
    assert.is_true(dev:synchronize())
    s:spin(0.02)
    a:fill(9, s)
    b:fill(9, s)
    local source = string.pack(("<f"):rep(4), 1, 2, 3, 4)
    a:upload(source)
    source = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local numbers = { 1, 2, 3, 4 }
    b:upload(numbers)
    numbers[1] = 99
    assert.same({ 1, 2, 3, 4 }, a:totable())
    assert.same({ 1, 2, 3, 4 }, b:totable())
  end)

  it("C08: keeps contents that are used only later, when their source is gone", function()
    local dev = open()
    local s = dev:stream()
    local g = s:gate { timeout = 2 }
    local numbers = { { 1, 2 }, { 3, 4 } }
    local c = gpu.matmul(dev:array(numbers), dev:array(string.pack("<ffff", 1, 0, 0, 1))
      :reshape { 2, 2 }, s)
    numbers[1][1], numbers[2] = 99, nil
    collectgarbage()
    collectgarbage()
    assert.same({ 1, 1 }, { s:inflight() })
    assert.is_true(g:open())
    assert.same({ { 1, 2 }, { 3, 4 } }, c:totable())
  end)

  it("C08: an element is set behind the work queued before", function()
    local dev = open()
    local s = dev:stream()
    local a = dev:zeros(4)
    assert.is_true(dev:synchronize())
    s:spin(0.02)
    a:fill(9, s)
    a:set(1, 5)
    assert.same({ 5, 9, 9, 9 }, a:totable())
  end)
end)
