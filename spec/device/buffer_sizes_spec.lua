-- Sizes, shapes and tables as they come from Lua: what is taken, what is
-- refused, and that a refusal leaves nothing behind.
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

--- Asserts that f raises an out-of-memory error, and returns it.
local function exhausts(f, ...)
  local ok, failure = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: out_of_memory")
  if type(failure) ~= "table" or failure.code ~= "out_of_memory" then
    error(failure, 0)
  end
  return failure
end

each_device("buffer's sizes", function(open)
  it("F01: takes floats with an integral value, 0.0 among them", function()
    local dev = open()
    assert.same({ 256 }, dev:empty(2 ^ 8, "float32"):shape())
    assert.same({ 4, 2, 2 }, dev:empty({ 4.0, 2 ^ 1, 8 / 4 }):shape())
    assert.same({ 0 }, dev:empty(0.0):shape())
    assert.equal("integer", math.type(dev:empty(2 ^ 8):shape()[1]))
    local b = dev:array { 1, 2, 3, 4 }
    assert.same({ 1, 2 }, b:view({ offset = 0.0, shape = 2.0 }):totable())
    assert.same({ { 2, 3 } }, b:view({ offset = 1.0, shape = { 1.0, 2 }, stride = 2.0 }):totable())
    assert.same({ { 1, 2 }, { 3, 4 } }, b:reshape({ 2.0, 4 / 2 }):totable())
  end)

  it("F01: takes numbers in a string as Lua's own functions do, but not as data", function()
    local dev = open()
    assert.same({ 16 }, dev:empty("16"):shape())
    assert.same({ 16 }, dev:empty("16.0"):shape())
    assert.same({ 16, 2 }, dev:empty({ "0x10", 2 }):shape())
    refuses("element 1 is string, a number wanted", dev.array, dev, { "16" })
  end)

  it("F02: refuses sizes that are no integers, and never truncates", function()
    local dev = open()
    for _, size in ipairs { 3.5, 0 / 0, 1 / 0, -1 / 0, 2 ^ 63, -0.5, 1e300 } do
      refuses("bad argument #1 to 'empty' (number has no integer representation)", function()
        dev:empty(size)
      end)
      refuses("number has no integer representation", dev.zeros, dev, { 2, size })
      refuses("number has no integer representation", dev.full, dev, { size }, 1)
    end
    refuses("number has no integer representation (got 3.5)", dev.empty, dev, { 2, 3.5 })
    assert.same({ 0, 0 }, { dev:memory().buffers, dev:memory().peak })
  end)

  it("F02: refuses sizes that are no numbers", function()
    local dev = open()
    refuses("bad argument #1 to 'empty' (number or table expected, got nil)", function()
      dev:empty(nil)
    end)
    refuses("(number or table expected, got no value)", function() dev:empty() end)
    refuses("(number or table expected, got boolean)", function() dev:empty(true) end)
    refuses("(number or table expected, got device)", function() dev:zeros(dev) end)
    refuses("(number or table expected, got string)", function() dev:empty("a lot") end)
    refuses("shape: 1 to 3 dimensions wanted, got 0", dev.empty, dev, {})
    refuses("shape: 1 to 3 dimensions wanted, got 4", dev.empty, dev, { 1, 1, 1, 1 })
    refuses("shape: number expected, got boolean", dev.empty, dev, { 2, true })
    refuses("shape: number expected, got nil", dev.empty, dev, { 2, nil, 3 })
    refuses("shape: number expected, got table", dev.empty, dev, { { 2 } })
    assert.same({ 0, 0 }, { dev:memory().buffers, dev:memory().peak })
  end)

  it("F02: names the value of an option that is no integer", function()
    local dev = open()
    local b = dev:zeros(4)
    refuses("option 'offset'", b.view, b, { offset = 1.5, shape = 1 })
    refuses("number has no integer representation (got 1.5)", b.view, b,
      { offset = 1.5, shape = 1 })
    refuses("stride: number has no integer representation (got 1.5)", b.view, b,
      { shape = { 2, 1 }, stride = 1.5 })
    refuses("option 'offset': integer expected, got boolean", b.view, b,
      { offset = true, shape = 1 })
  end)

  it("F02: asks for 2^53 elements, no fewer", function()
    local dev = open()
    local failure = exhausts(dev.empty, dev, 2 ^ 53)
    assert.equal(9007199254740992 * 4, failure.asked)
    assert.matches("asked 36028797018963968 bytes", failure.message, 1, true)
    assert.equal(0, dev:memory().peak)
  end)

  it("F03: refuses negative sizes, and names them", function()
    local dev = open()
    refuses("size must be >= 0, got -1", dev.empty, dev, -1)
    refuses("size must be >= 0, got -9223372036854775808", dev.empty, dev, math.mininteger)
    refuses("size must be >= 0, got -4", dev.zeros, dev, { 2, -4 })
    refuses("size must be >= 0, got -4", dev.zeros, dev, { 0, -4 })
    refuses("size must be >= 0, got -3", dev.zeros, dev, { -3, -4 })
    assert.same({ 0, 0 }, { dev:memory().buffers, dev:memory().peak })
  end)

  it("F03: refuses huge sizes as what they are, not as what wraps", function()
    local dev = open()
    local failure = exhausts(dev.empty, dev, 20000000000000, "float32")
    assert.equal(80000000000000, failure.asked)
    assert.matches("asked 80000000000000 bytes", failure.message, 1, true)
    for _, case in ipairs {
      { 1 << 62, "float32" }, { math.maxinteger, "float64" }, { 1 << 61, "float32" },
      { { 1 << 31, 1 << 31 }, "float32" }, { { 1 << 32, 1 << 32 }, "float64" },
      { { 1 << 21, 1 << 21, 1 << 21 }, "float32" }, { { math.maxinteger, 2 }, "float32" },
    } do
      refuses("size overflows", dev.empty, dev, case[1], case[2])
    end
    assert.same({ 0, 0 }, { dev:memory().buffers, dev:memory().peak })
  end)

  it("F03: checks the range of a view without wrapping", function()
    local dev = open()
    local b = dev:array { 1, 2, 3, 4, 5 }
    local function view(text, layout)
      refuses(text, b.view, b, layout)
    end
    local most = math.maxinteger
    view("offset must be 0 to 5, got -1", { offset = -1, shape = 5 })
    view("offset must be 0 to 5, got 6", { offset = 6, shape = 0 })
    view("offset must be 0 to 5, got " .. most, { offset = most, shape = 1 })
    view("the view needs 3 elements after offset 3, the buffer has 2", { offset = 3, shape = 3 })
    view("size overflows", { offset = 3, shape = most })
    view("size overflows", { shape = { 1 << 40, 1 << 40 } })
    view("size must be >= 0, got -2", { shape = { -2, 2 } })
    view("elements after offset 3, the buffer has 2",
      { offset = 3, shape = { 2, 1 }, stride = most })
    view("stride -1 < 1", { shape = { 2, 1 }, stride = -1 })
    view("stride overflows", { shape = { 1, 2, 1 }, stride = most })
    view("the view needs 7 elements after offset 0, the buffer has 5",
      { shape = { 3, 1 }, stride = 3 })
    assert.same({ 1, 2, 3, 4, 5 }, b:totable())
    assert.same({ 5 }, b:view({ offset = 4, shape = 1 }):totable())
    assert.same({}, b:view({ offset = 5, shape = 0 }):totable())
  end)

  it("F04: names the element that is missing or no number, and writes nothing", function()
    local dev = open()
    local b = dev:array { 9, 8, 7, 6, 5 }
    local function upload(text, t)
      refuses(text, b.upload, b, t)
      assert.same({ 9, 8, 7, 6, 5 }, b:totable())
    end
    upload("element 4 is nil, a number wanted", { 1, 2, 3, nil, 5 })
    upload("element 2 is string, a number wanted", { 1, "x", 3, 4, 5 })
    upload("element 2 is string, a number wanted", { 1, "2", 3, 4, 5 })
    upload("element 5 is boolean, a number wanted", { 1, 2, 3, 4, false })
    upload("element 1 is table, a number wanted", { { 1, 2, 3, 4, 5 }, 2, 3, 4, 5 })
    upload("5 elements wanted, the table has 4", { 1, 2, 3, 4 })
    upload("5 elements wanted, the table has 6", { 1, 2, 3, 4, 5, 6 })
    upload("5 elements wanted, the table has 0", {})
    upload("5 elements wanted, the table has 4", { [1] = 1, [2] = 2, [4] = 4 })
    upload("(table or string expected, got number)", 5)
    upload("(table or string expected, got nil)", nil)
  end)

  it("F04: counts from 1: what stands at 0 is not read", function()
    local dev = open()
    local b = dev:zeros(2)
    b:upload { [0] = 9, 1, 2 }
    assert.same({ 1, 2 }, b:totable())
    assert.same({ 1, 2 }, dev:array({ [0] = 9, 1, 2 }):totable())
  end)

  it("F04: takes nested tables of its own shape, or all elements in one", function()
    local dev = open()
    local b = dev:zeros { 2, 3 }
    b:upload { { 1, 2, 3 }, { 4, 5, 6 } }
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, b:totable())
    b:upload { 6, 5, 4, 3, 2, 1 }
    assert.same({ { 6, 5, 4 }, { 3, 2, 1 } }, b:totable())
    refuses("row 1 has 2 elements, 3 wanted", b.upload, b, { { 1, 2 }, { 3, 4 } })
    refuses("row 2 has 2 elements, 3 wanted", b.upload, b, { { 1, 2, 3 }, { 3, 4 } })
    refuses("2 elements wanted, the table has 3", b.upload, b, { { 1, 2 }, { 3, 4 }, { 5, 6 } })
    refuses("element [2][2] is nil, a number wanted", b.upload, b, { { 1, 2, 3 }, { 3, nil, 4 } })
    refuses("element [2] is boolean, a table wanted", b.upload, b, { { 1, 2, 3 }, true })
    refuses("6 elements wanted, the table has 5", b.upload, b, { 1, 2, 3, 4, 5 })
    assert.same({ { 6, 5, 4 }, { 3, 2, 1 } }, b:totable())
  end)

  it("F04: reads through __index and __len, and passes their errors on", function()
    local dev = open()
    local b = dev:zeros(3)
    local function proxy(length, index)
      return setmetatable({}, { __len = function() return length end, __index = index })
    end
    b:upload(proxy(3, function(_, i) return i * i end))
    assert.same({ 1, 4, 9 }, b:totable())
    assert.same({ 2, 3 }, dev:array(proxy(2, function(_, i) return i + 1 end)):totable())
    refuses("no element 2 here", b.upload, b, proxy(3, function(_, i)
      if i == 2 then
        error("no element 2 here")
      end
      return 0
    end))
    assert.same({ 1, 4, 9 }, b:totable())
    refuses("3 elements wanted, the table has 1000000000", b.upload, b,
      proxy(1000000000, function() error("asked for an element") end))
    refuses("object length is not an integer", b.upload, b, proxy("x", function() return 1 end))
    refuses("buffer is closed", b.upload, b, proxy(3, function()
      b:close()
      return 1
    end))
    collectgarbage()
    assert.same({ 0, 0 }, { dev:memory().live, dev:memory().buffers })
  end)

  it("F04: refuses to make a buffer by lengths that lie", function()
    local dev = open()
    local function liar(length)
      local asked = false
      return setmetatable({}, {
        __len = function() return length end,
        __index = function() -- the shape is found by asking once
          if asked then
            error("asked for an element")
          end
          asked = true
          return 1
        end,
      })
    end
    refuses("size overflows", dev.array, dev, liar(1 << 62))
    refuses("size overflows", dev.array, dev, liar(math.maxinteger), "float64")
    refuses("size must be >= 0, got -1", dev.array, dev, liar(-1))
    local rows = setmetatable({}, {
      __len = function() return 1 << 32 end,
      __index = function() return liar(1 << 32) end,
    })
    refuses("size overflows", dev.array, dev, rows)
    assert.same({ 0, 0 }, { dev:memory().buffers, dev:memory().peak })
  end)
end)
