--- The element types: what each holds, what is refused, and the products of each.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  assert.matches(text, tostring(message), 1, true)
end

--- Rule F: (i*K+k) % 7 and (k*N+j) % 5, counted from 0.
local function rule_f(rows, columns, period)
  local values = {}
  for i = 1, rows * columns do
    values[i] = (i - 1) % period
  end
  return values
end

local function product_of(dev, dtype, m, n, k, options)
  local a = dev:array(rule_f(m, k, 7), dtype):reshape { m, k }
  local b = dev:array(rule_f(k, n, 5), dtype):reshape { k, n }
  return gpu.matmul(a, b, options)
end

local function sum_of(buffer)
  local sum = 0
  for _, row in ipairs(buffer:totable()) do
    for _, value in ipairs(row) do
      sum = sum + value
    end
  end
  return sum
end

each_device("dtypes", function(open)
  it("have the sizes of their names", function()
    local dev = open()
    for dtype, size in pairs { float32 = 4, float64 = 8, float16 = 2, bfloat16 = 2, int32 = 4,
      int8 = 1 } do
      assert.equal(3 * size, dev:zeros(3, dtype):nbytes(), dtype)
    end
  end)

  for _, dtype in ipairs { "float16", "bfloat16" } do
    it("round-trip every finite bit pattern of " .. dtype .. " through a table", function()
      local dev = open()
      local exponent = dtype == "float16" and 0x7c00 or 0x7f80
      local patterns = {}
      for bits = 0, 0xffff do
        if bits & exponent ~= exponent then
          patterns[#patterns + 1] = string.pack("<I2", bits)
        end
      end
      local bytes = table.concat(patterns)
      local values = dev:array(bytes, dtype):totable()
      assert.equal(#patterns, #values)
      assert.is_true(dev:array(values, dtype):tobytes() == bytes)
    end)
  end

  it("round-trip every int8 through a table, as Lua integers", function()
    local dev = open()
    local values = {}
    for i = -128, 127 do
      values[#values + 1] = i
    end
    local buffer = dev:array(values, "int8")
    assert.same(values, buffer:totable())
    assert.equal("integer", math.type(buffer:get(1)))
    assert.equal("float", math.type(dev:zeros(1, "float16"):get(1)))
    assert.equal(string.pack(("<i1"):rep(256), table.unpack(values)), buffer:tobytes())
  end)

  it("round-trip bit patterns through table, string and file", function()
    local dev = open()
    local seed = os.time()
    math.randomseed(seed)
    local halves, bytes = {}, {}
    for bits = 0, 0xffff do
      if bits & 0x7c00 ~= 0x7c00 then
        halves[#halves + 1] = string.pack("<I2", bits)
      end
    end
    for i = 0, 255 do
      bytes[#bytes + 1] = string.char(i)
    end
    local data = { float16 = table.concat(halves), int8 = table.concat(bytes) }
    for dtype, format in pairs { float32 = "<f", float64 = "<d", int32 = "<i4" } do
      local list = {}
      for i = 1, 20000 do
        local raw = string.pack("<I8", math.random(0)):sub(1, string.packsize(format))
        local value = string.unpack(format, raw)
        list[i] = value - value == 0 and raw or string.rep("\0", #raw)
      end
      data[dtype] = table.concat(list)
    end
    local path = os.tmpname() .. ".npy"
    for dtype, wanted in pairs(data) do
      local b = dev:array(wanted, dtype)
      local label = dtype .. ", seed " .. seed
      assert.is_true(b:tobytes() == wanted, label)
      assert.is_true(dev:array(b:totable(), dtype):tobytes() == wanted, label)
      b:save(path)
      local loaded = dev:load_npy(path)
      assert.equal(dtype, loaded:dtype())
      assert.is_true(loaded:tobytes() == wanted, label)
    end
    os.remove(path)
    os.remove((path:gsub("%.npy$", "")))
  end)

  it("round to nearest even in one step", function()
    local dev = open()
    local halves = dev:array({ 2049, 2051, 65504, 65519.99, 65520, 2 ^ -24, 2 ^ -25, 3 * 2 ^ -26,
      2 ^ -14 - 2 ^ -26, 1 + 2 ^ -11 + 2 ^ -40, -1 / 0 }, "float16"):totable()
    assert.same({ 2048, 2052, 65504, 65504, math.huge, 2 ^ -24, 0, 2 ^ -24, 2 ^ -14, 1 + 2 ^ -10,
      -math.huge }, halves)
    -- 1 + 2^-8 is a tie in bfloat16; 2^-60 more is not, though a float32 would lose it.
    assert.same({ 1, 1 + 2 ^ -7, 1.015625, 3.3895313892515355e38, math.huge, 2 ^ -133 },
      dev:array({ 1 + 2 ^ -8, 1 + 2 ^ -8 + 2 ^ -50, 1 + 3 * 2 ^ -8, 3.3895e38, 3.4e38, 2 ^ -133 },
        "bfloat16"):totable())
    local nan = dev:array({ 0 / 0, 0 / 0 }, "float16"):get(1)
    assert.is_true(nan ~= nan)
  end)

  it("round integers beyond 2^53 by their digits", function()
    local dev = open()
    local value = (1 << 62) + (1 << 54) + 1 -- just above a tie of bfloat16
    assert.same({ 2.0 ^ 62 + 2.0 ^ 55 }, dev:array({ value }, "bfloat16"):totable())
    assert.same({ math.huge }, dev:array({ value }, "float16"):totable())
  end)

  it("refuse what an integer type does not hold, naming it, and change nothing", function()
    local dev = open()
    local b = dev:array({ 1, 2, 3 }, "int8")
    for value, text in pairs { [128] = "128", [-129] = "-129", [1.5] = "1.5", [1e300] = "1e+300",
      [math.huge] = "inf" } do
      refuses("element 2 is " .. text .. ", which is no int8", b.upload, b, { 1, value, 3 })
      refuses(text .. " is no int8", b.set, b, 1, value)
      refuses(text .. " is no int8", b.fill, b, value)
    end
    refuses("is no int32", dev.full, dev, 2, 2 ^ 31, "int32")
    refuses("is no int32", dev.full, dev, 2, 0 / 0, "int32")
    assert.same({ 1, 2, 3 }, b:totable())
    b:set(2, -128.0)
    assert.same({ 1, -128, 3 }, b:totable())
    assert.same({ -2 ^ 31, 2 ^ 31 - 1 }, dev:array({ -2 ^ 31, 2 ^ 31 - 1 }, "int32"):totable())
  end)

  it("B20: integers above 2^24 stay themselves in an integer type", function()
    local dev = open()
    assert.same({ 16777216 }, dev:array({ 16777217 }, "float32"):totable())
    assert.same({ 16777217 }, dev:array({ 16777217 }, "int32"):totable())
    local a, one = dev:array({ { 65537 } }, "int32"), dev:array({ { 1 } }, "int32")
    assert.same({ { 65537 } }, gpu.matmul(a, one):totable())
  end)

  for _, kernel in ipairs { "naive", "tiled", "auto" } do
    for dtype, result in pairs { float16 = "float16", bfloat16 = "bfloat16", int32 = "int32",
      int8 = "int32", float32 = "float32", float64 = "float64" } do
      it(("multiply %s into %s by %s"):format(dtype, result, kernel), function()
        local dev = open()
        local c = product_of(dev, dtype, 17, 19, 23, { kernel = kernel })
        assert.equal(result, c:dtype())
        assert.equal(44316, sum_of(c))
        assert.equal(124, c:get(1, 1))
        assert.equal(149, c:get(17, 19))
      end)
    end

    it("multiply float16 and bfloat16 into float32 by " .. kernel, function()
      local dev = open()
      for _, dtype in ipairs { "float16", "bfloat16" } do
        local a = dev:array(rule_f(31, 32, 7), dtype):reshape { 31, 32 }
        local b = dev:array(rule_f(32, 33, 5), dtype):reshape { 32, 33 }
        local c = dev:full({ 31, 33 }, 1, "float32")
        gpu.matmul(a, b, c, { kernel = kernel, beta = 1 })
        assert.equal(195904 + 31 * 33, sum_of(c))
      end
    end)

    it("B18: float16 sums are made in float32 by " .. kernel, function()
      local dev = open()
      local ones = dev:full({ 1, 4096 }, 1, "float16")
      local c = gpu.matmul(ones, ones:reshape { 4096, 1 }, { kernel = kernel })
      assert.same({ { 4096 } }, c:totable())
      local a = dev:array({ { 256 } }, "float16")
      assert.same({ { math.huge } }, gpu.matmul(a, a, { kernel = kernel }):totable())
      local wide = gpu.matmul(a, a, dev:zeros({ 1, 1 }, "float32"), { kernel = kernel })
      assert.same({ { 65536 } }, wide:totable())
      assert.same({ { 128 } }, gpu.matmul(a, dev:array({ { 1 } }, "float16"),
        { kernel = kernel, alpha = 0.5 }):totable())
    end)

    it("wrap where int32 does, by " .. kernel, function()
      local dev = open()
      local a = dev:array({ { 2 ^ 31 - 1, 1 } }, "int32")
      local b = dev:array({ { 1 }, { 1 } }, "int32")
      assert.same({ { -2 ^ 31 } }, gpu.matmul(a, b, { kernel = kernel }):totable())
      local c = dev:array({ { 5 } }, "int32")
      gpu.matmul(a, b, c, { kernel = kernel, alpha = -1, beta = 2 })
      assert.same({ { -2 ^ 31 + 10 } }, c:totable())
    end)
  end

  it("B19: refuse what is in no row of the table, naming all three", function()
    local dev = open()
    local one = function(dtype) return dev:full({ 1, 1 }, 1, dtype) end
    refuses("matmul: dtype mismatch: a is float16, b is bfloat16, c is float32", gpu.matmul,
      one "float16", one "bfloat16", one "float32")
    refuses("a is int8, b is int8, c is int8", gpu.matmul, one "int8", one "int8", one "int8")
    refuses("a is int8, b is int32", gpu.matmul, one "int8", one "int32")
    refuses("alpha must be an int32 where the sums are, got 0.5", gpu.matmul, one "int32",
      one "int32", { alpha = 0.5 })
    refuses("'float16' is not offered for float16 x float16 into float16 (offered: float32)",
      gpu.matmul, one "float16", one "float16", { compute = "float16" })
    assert.is_true(dev:synchronize())
  end)

  it("refuse a kernel that does not take a type, by name", function()
    local dev = open()
    local a = dev:full({ 1, 1 }, 1, "int8")
    local refused = 0
    for _, kernel in ipairs(dev:matmul_kernels()) do
      if not table.concat(kernel.dtypes, " "):find("int8", 1, true) then
        refuses("does not take int8 with sums in int32", gpu.matmul, a, a, { kernel = kernel.name })
        refused = refused + 1
      end
    end
    assert.is_true(refused > 0, "a kernel of floats only")
  end)
end)
