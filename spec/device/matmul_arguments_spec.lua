-- What a matmul refuses, with which words, and that nothing is queued then.
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

--- Asserts that f raises a table with this code and a message with the text.
local function fails(code, text, f, ...)
  local ok, failure = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(failure) ~= "table" or failure.code ~= code then
    error(failure, 0)
  end
  assert.matches(text, failure.message, 1, true)
  assert.equal(failure.message, tostring(failure))
end

each_device("matmul's arguments", function(open)
  it("refuses what is no buffer, and says what came", function()
    local dev = open()
    local a = dev:zeros { 2, 2 }
    refuses("bad argument #1 to 'matmul' (buffer expected, got no value)", function()
      gpu.matmul()
    end)
    refuses("bad argument #2 to 'matmul' (buffer expected, got no value)", function()
      gpu.matmul(a)
    end)
    refuses("bad argument #2 to 'matmul' (buffer expected, got table)", function()
      gpu.matmul(a, { 1, 2 })
    end)
    refuses("bad argument #1 to 'matmul' (buffer expected, got device)", function()
      gpu.matmul(dev, a)
    end)
    refuses("bad argument #1 to 'matmul' (buffer expected, got FILE*)", function()
      gpu.matmul(io.stdout, a)
    end)
    refuses("at most 4 arguments, got 5", function()
      gpu.matmul(a, a, dev:zeros { 2, 2 }, {}, 5)
    end)
  end)

  it("counts the arguments as they were given when c is left out", function()
    local dev = open()
    local a = dev:zeros { 2, 2 }
    refuses("bad argument #3 to 'matmul'", function()
      gpu.matmul(a, a, 5)
    end)
    refuses("bad argument #3 to 'matmul' (unknown option 'kernal')", function()
      gpu.matmul(a, a, { kernal = "naive" })
    end)
    refuses("bad argument #4 to 'matmul'", function()
      gpu.matmul(a, a, dev:zeros { 2, 2 }, 5)
    end)
  end)

  it("takes nil for a c and for options that are left out", function()
    local dev = open()
    local a, s = dev:array { { 1, 2 }, { 3, 4 } }, dev:stream()
    local expected = { { 7, 10 }, { 15, 22 } }
    assert.same(expected, gpu.matmul(a, a, nil, s):totable())
    assert.same(expected, gpu.matmul(a, a, nil, { stream = s }):totable())
    assert.same(expected, gpu.matmul(a, a, nil, nil):totable())
    assert.same(expected, gpu.matmul(a, a, s, nil):totable())
    assert.same(expected, gpu.matmul(a, a, dev:empty { 2, 2 }, nil):totable())
  end)

  it("refuses closed buffers and streams", function()
    local dev = open()
    local a, closed, s = dev:zeros { 2, 2 }, dev:zeros { 2, 2 }, dev:stream()
    closed:close()
    s:close()
    refuses("bad argument #1 to 'matmul' (buffer is closed)", function()
      gpu.matmul(closed, a)
    end)
    refuses("bad argument #2 to 'matmul' (buffer is closed)", function()
      gpu.matmul(a, closed)
    end)
    refuses("bad argument #3 to 'matmul' (buffer is closed)", function()
      gpu.matmul(a, a, closed)
    end)
    refuses("stream is closed", function()
      gpu.matmul(a, a, dev:zeros { 2, 2 }, s)
    end)
    refuses("option 'stream': stream is closed", function()
      gpu.matmul(a, a, { stream = s })
    end)
  end)

  it("refuses options that it does not know, and values of another type", function()
    local dev = open()
    local a = dev:zeros { 2, 2 }
    refuses("unknown option 'tranpose_a'", gpu.matmul, a, a, { tranpose_a = true })
    refuses("unknown option '1'", gpu.matmul, a, a, { "naive" })
    refuses("option 'transpose_a': boolean expected, got number", gpu.matmul, a, a,
      { transpose_a = 1 })
    refuses("option 'alpha': number expected, got boolean", gpu.matmul, a, a, { alpha = true })
    refuses("option 'beta': number expected, got table", gpu.matmul, a, a, { beta = {} })
    refuses("option 'kernel': string expected, got number", gpu.matmul, a, a, { kernel = 1 })
    refuses("option 'stream': stream expected, got buffer", gpu.matmul, a, a, { stream = a })
  end)

  it("F01: takes alpha and beta as integers and as floats", function()
    local dev = open()
    local a = dev:array { { 1, 2 }, { 3, 4 } }
    for _, one in ipairs { 1, 1.0, 2 ^ 0 } do
      for _, zero in ipairs { 0, 0.0, -0.0 } do
        local c = gpu.matmul(a, a, { alpha = one, beta = zero })
        assert.same({ { 7, 10 }, { 15, 22 } }, c:totable())
      end
    end
    local shape = { 4 / 2, 2 ^ 1 }
    assert.same({ 2, 2 }, gpu.matmul(dev:zeros(shape), dev:zeros { 2.0, 2 }):shape())
  end)

  it("refuses a beta without a c to read", function()
    local dev = open()
    local a = dev:zeros { 2, 2 }
    refuses("beta is 1.0, but there is no c to read", gpu.matmul, a, a, { beta = 1 })
    refuses("beta is -0.5, but there is no c to read", gpu.matmul, a, a, { beta = -0.5 })
    assert.equal(1, dev:memory().buffers)
  end)

  it("B02: refuses inner sizes that differ, transposes considered", function()
    local dev = open()
    local a, b = dev:zeros { 2, 3 }, dev:zeros { 4, 5 }
    refuses("a is 2x3 and b is 4x5: 3 columns against 4 rows", gpu.matmul, a, b)
    refuses("a is 2x3 transposed and b is 4x5: 2 columns against 4 rows", gpu.matmul, a, b,
      { transpose_a = true })
    refuses("a is 2x3 and b is 4x5 transposed: 3 columns against 5 rows", gpu.matmul, a, b,
      { transpose_b = true })
  end)

  it("refuses batches that differ, and says that it is the batch", function()
    local dev = open()
    local a, b = dev:zeros { 2, 3, 4 }, dev:zeros { 5, 4, 6 }
    refuses("a is 2x3x4 and b is 5x4x6", gpu.matmul, a, b)
    refuses("batch", gpu.matmul, a, b)
    refuses("a is 3x4 and b is 5x4x6", gpu.matmul, dev:zeros { 3, 4 }, b)
    refuses("dimensions", gpu.matmul, dev:zeros { 3, 4 }, b)
  end)

  it("refuses vectors", function()
    local dev = open()
    local v, a = dev:zeros(2), dev:zeros { 2, 2 }
    refuses("a has 1 dimension, wanted 2, or 3 for a batch", gpu.matmul, v, a)
    refuses("b has 1 dimension, wanted 2, or 3 for a batch", gpu.matmul, a, v)
    refuses("c is 2, the product is 2x2", gpu.matmul, a, a, v)
  end)

  it("B19: refuses mixed dtypes, names all three, and leaves c as it was", function()
    local dev = open()
    local s = dev:stream()
    local a, b = dev:zeros({ 2, 2 }, "float64"), dev:zeros({ 2, 2 }, "float32")
    local c = dev:array { { 1, 2 }, { 3, 4 } }
    refuses("matmul: dtype mismatch: a is float64, b is float32, c is float32", gpu.matmul,
      a, b, c, s)
    refuses("matmul: dtype mismatch: a is float64, b is float64, c is float32", gpu.matmul,
      a, a, c, s)
    refuses("matmul: dtype mismatch: a is float64, b is float32", gpu.matmul, a, b, s)
    assert.same({ 0, 0 }, { s:inflight() })
    assert.same({ { 1, 2 }, { 3, 4 } }, c:totable())
  end)

  it("refuses dtypes that it does not have, by name", function()
    local dev = open()
    refuses("unknown dtype 'float8' (there are: float32, float64", dev.empty, dev, 4, "float8")
    refuses("unknown dtype 'complex64' (there are: float32, float64", dev.zeros, dev, 4,
      { dtype = "complex64" })
  end)

  it("refuses kernels that it does not have, and lists those it has", function()
    local dev = open()
    local s = dev:stream()
    local a, names = dev:zeros { 2, 2 }, {}
    for _, kernel in ipairs(dev:matmul_kernels()) do
      names[#names + 1] = kernel.name
    end
    local list = ("matmul: %s has no kernel 'strassen' (it has: auto, %s)"):format(dev:id(),
      table.concat(names, ", "))
    refuses(list, gpu.matmul, a, a, { kernel = "strassen", stream = s })
    refuses("has no kernel ''", gpu.matmul, a, a, { kernel = "", stream = s })
    refuses("has no kernel 'Naive'", gpu.matmul, a, a, { kernel = "Naive", stream = s })
    assert.same({ 0, 0 }, { s:inflight() })
    assert.equal(1, dev:memory().buffers)
  end)

  it("F06: refuses a kernel's name and a compute type with a zero byte in it", function()
    local dev = open()
    local a = dev:zeros { 2, 2 }
    refuses("zero byte", gpu.matmul, a, a, { kernel = "naive\0x" })
    refuses("zero byte", gpu.matmul, a, a, { compute = "float32\0x" })
  end)

  it("B16: computes float32 as float32 unless told otherwise", function()
    local dev = open()
    local s = dev:stream()
    local a, d = dev:array { { 1024.5 } }, dev:array({ { 2 ^ -40 + 1 } }, "float64")
    local one = dev:array { { 1 } }
    assert.same({ { 1024.5 } }, gpu.matmul(a, one):totable())
    assert.same({ { 1024.5 } }, gpu.matmul(a, one, { compute = "float32" }):totable())
    assert.same({ { 2 ^ -80 + 2 ^ -39 + 1 } },
      gpu.matmul(d, d, { compute = "float64" }):totable())
    fails("unsupported", "compute 'float16' is not offered for float32 x float32 into float32 "
      .. "(offered: float32", gpu.matmul, a, one, { compute = "float16", stream = s })
    fails("unsupported", "compute 'float32' is not offered for float64 x float64 into float64 "
      .. "(offered: float64)", gpu.matmul, d, d, { compute = "float32", stream = s })
    assert.same({ 0, 0 }, { s:inflight() })
  end)

  it("B25: refuses a c that is too small, and writes nowhere", function()
    local dev = open()
    local s = dev:stream()
    local before, after
    local a, b = dev:full({ 64, 64 }, 1), dev:full({ 64, 64 }, 1)
    before = dev:full(4096, 7)
    local short, exact = dev:zeros(4095), dev:zeros(4096)
    after = dev:full(4096, 7)
    local function as_c(buffer, layout)
      return function()
        gpu.matmul(a, b, buffer:view(layout), s)
      end
    end
    refuses("the view needs 4096 elements after offset 0, the buffer has 4095",
      as_c(short, { shape = { 64, 64 } }))
    refuses("the view needs 4159 elements after offset 0, the buffer has 4096",
      as_c(exact, { shape = { 64, 64 }, stride = 65 }))
    refuses("the view needs 4096 elements after offset 1, the buffer has 4095",
      as_c(exact, { shape = { 64, 64 }, offset = 1 }))
    refuses("c is 4095, the product is 64x64", gpu.matmul, a, b, short, s)
    refuses("c is 63x65, the product is 64x64", gpu.matmul, a, b,
      short:view { shape = { 63, 65 } }, s)
    assert.same({ 0, 0 }, { s:inflight() })
    local sevens = dev:full(4096, 7):tobytes()
    assert.is_true(before:tobytes() == sevens)
    assert.is_true(after:tobytes() == sevens)
    assert.is_true(exact:tobytes() == ("\0"):rep(4 * 4096))
  end)

  it("B25: counts the offset of a view of a view", function()
    local dev = open()
    local parent = dev:zeros(20):view { offset = 4, shape = 12 }
    refuses("the view needs 9 elements after offset 4, the buffer has 8", parent.view, parent,
      { offset = 4, shape = { 3, 3 } })
    assert.equal(8, #parent:view { offset = 4, shape = 8 })
  end)

  it("F03: refuses a product whose size overflows", function()
    local dev = open()
    local a, b = dev:empty { 1 << 40, 0 }, dev:empty { 0, 1 << 40 }
    refuses("size overflows", gpu.matmul, a, b)
    assert.same({ 1 << 40, 0 }, a:shape())
  end)

  it("lists its kernels with types, shapes and whether they can be used", function()
    local dev = open()
    local by_name = {}
    for i, kernel in ipairs(dev:matmul_kernels()) do
      by_name[kernel.name] = { i, kernel }
      assert.is_true(#kernel.dtypes > 0, kernel.name)
      assert.is_true(#kernel.shapes > 0, kernel.name)
      assert.is_true(#kernel.note > 0, kernel.name)
      assert.equal("boolean", type(kernel.available), kernel.name)
    end
    for _, name in ipairs { "naive", "tiled", "blas" } do
      assert.is_table(by_name[name], name)
      local all = { "float32", "float64", "float16", "bfloat16", "int32", "int8" }
      local dtypes = by_name[name][2].dtypes
      assert.same(name == "blas" and { "float32", "float64" } or all,
        name == "blas" and { dtypes[1], dtypes[2] } or dtypes)
    end
    assert.is_true(by_name.naive[2].available)
    assert.is_true(by_name.tiled[2].available)
    assert.is_true(by_name.naive[1] < by_name.tiled[1], "the ladder goes up")
    assert.is_true(by_name.tiled[1] < by_name.blas[1], "the ladder goes up")
  end)
end)
