-- The BLAS's rules for alpha, beta, zero sizes and numbers that are not
-- finite, and what c may share with a and b.
local each_device = require "spec.each_device"
local each_kernel = require "spec.each_kernel"
local gpu = require "tidelock"

local nan, inf = 0 / 0, math.huge

--- Rule F: a[i][k] = (i*K + k) % 7 and b[k][j] = (k*N + j) % 5, indices from 0.
local function rule_f(dev, m, n, k, dtype)
  local a, b = {}, {}
  for i = 0, m * k - 1 do
    a[i + 1] = i % 7
  end
  for i = 0, k * n - 1 do
    b[i + 1] = i % 5
  end
  local x, y = dev:empty({ m, k }, dtype), dev:empty({ k, n }, dtype)
  x:upload(a)
  y:upload(b)
  return x, y
end

--- The sum of all elements, and how many of them are NaN.
local function sum_and_nans(c)
  local sum, nans = 0, 0
  for _, row in ipairs(c:totable()) do
    for _, x in ipairs(row) do
      sum = sum + x
      nans = nans + (x ~= x and 1 or 0)
    end
  end
  return sum, nans
end

--- Asserts that f raises a string that contains the text.
local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(message) ~= "string" then
    error(message, 0)
  end
  assert.matches(text, message, 1, true)
end

each_device("matmul's rules", function(open)
  it("computes alpha * a * b + beta * c", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { 1, 2 }, { 3, 4 } }, dtype)
      local b = dev:array({ { 5, 6 }, { 7, 8 } }, dtype)
      local function with(alpha, beta)
        local c = dev:array({ { 1, 10 }, { 100, 1000 } }, dtype)
        return gpu.matmul(a, b, c, { kernel = kernel, alpha = alpha, beta = beta }):totable()
      end
      assert.same({ { 19, 22 }, { 43, 50 } }, with(nil, nil), label)
      assert.same({ { 19, 22 }, { 43, 50 } }, with(1, 0), label)
      assert.same({ { 20, 32 }, { 143, 1050 } }, with(1, 1), label)
      assert.same({ { 41, 74 }, { 386, 3100 } }, with(2, 3), label)
      assert.same({ { -9.5, -11 }, { -21.5, -25 } }, with(-0.5, 0), label)
      assert.same({ { -0.5, -5 }, { -50, -500 } }, with(0, -0.5), label)
    end, { largest = 2048, floats = true })
  end)

  it("applies alpha and beta to each matrix of a batch", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { { 1, 2 } }, { { 3, 4 } } }, dtype)
      local b = dev:array({ { { 1 }, { 1 } }, { { 2 }, { 2 } } }, dtype)
      local c = dev:array({ { { 100 } }, { { 200 } } }, dtype)
      gpu.matmul(a, b, c, { kernel = kernel, alpha = 2, beta = 0.5 })
      assert.same({ { { 56 } }, { { 128 } } }, c:totable(), label)
    end, { floats = true })
  end)

  it("B09: K = 0 leaves beta * c", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a, b = dev:empty({ 2, 0 }, dtype), dev:empty({ 0, 2 }, dtype)
      for _, case in ipairs { { nil, 0 }, { 0, 0 }, { 1, 2 }, { 3, 6 } } do
        local c = dev:full({ 2, 2 }, 2, dtype)
        local x = case[2]
        gpu.matmul(a, b, c, { kernel = kernel, beta = case[1] })
        assert.same({ { x, x }, { x, x } }, c:totable(), label .. " beta " .. tostring(case[1]))
      end
      local c = dev:full({ 2, 2 }, dtype == "int32" and 9 or nan, dtype)
      gpu.matmul(a, b, c, { kernel = kernel })
      assert.same({ { 0, 0 }, { 0, 0 } }, c:totable(), label)
      assert.same({ { 0, 0 }, { 0, 0 } }, gpu.matmul(a, b, { kernel = kernel }):totable(), label)
    end)
  end)

  it("B09: K = 0 leaves beta * c inside its frame, transposed and in batches", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a, b = dev:empty({ 2, 0, 2 }, dtype), dev:empty({ 2, 3, 0 }, dtype)
      local frame = dev:full({ 2, 2, 4 }, 5, dtype)
      local c = frame:view { shape = { 2, 2, 3 }, stride = 4 }
      gpu.matmul(a, b, c,
        { kernel = kernel, beta = 3, transpose_a = true, transpose_b = true })
      local row = { 15, 15, 15, 5 }
      assert.same({ { row, row }, { row, row } }, frame:totable(), label)
    end)
  end)

  it("B09: M = 0, N = 0 and all zero do nothing and launch nothing", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      for _, case in ipairs { { 0, 2, 3 }, { 2, 0, 3 }, { 0, 0, 3 }, { 0, 2, 0 }, { 0, 0, 0 } } do
        local m, n, k = table.unpack(case)
        local s = dev:stream()
        local a, b = dev:full({ m, k }, 1, dtype), dev:full({ k, n }, 1, dtype)
        local c = dev:empty({ m, n }, dtype)
        local g = s:gate { timeout = 2 }
        gpu.matmul(a, b, c, { kernel = kernel, stream = s, beta = 1 })
        local d = gpu.matmul(a, b, { kernel = kernel, stream = s })
        assert.same({ 0, 0 }, { s:inflight() }, label)
        assert.is_true(g:open())
        assert.equal(0, c:size(), label)
        assert.same({ m, n }, d:shape(), label)
        assert.equal("", d:tobytes(), label)
        assert.is_true(s:synchronize())
        s:close()
      end
    end)
  end)

  it("B09: the least row stride of a matrix without columns is harmless", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local block = dev:zeros(4, dtype)
      local a = block:view { shape = { 2, 0 }, stride = 0 }
      local b = block:view { shape = { 0, 2 }, stride = 2 }
      local c = dev:full({ 2, 2 }, 2, dtype)
      gpu.matmul(a, b, c, { kernel = kernel, beta = 1 })
      assert.same({ { 2, 2 }, { 2, 2 } }, c:totable(), label)
    end)
  end)

  it("B11: beta = 0 ignores what c held, NaN and infinity too", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a, b = rule_f(dev, 17, 19, 23, dtype)
      for _, old in ipairs { nan, inf, -inf } do
        local c = dev:full({ 17, 19 }, old, dtype)
        gpu.matmul(a, b, c, { kernel = kernel, alpha = 1, beta = 0 })
        local sum, nans = sum_and_nans(c)
        assert.equal(0, nans, label)
        assert.equal(44316, sum, label)
      end
    end, { floats = true })
  end)

  it("B11: beta = 1 keeps the NaN that c held", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a, b = rule_f(dev, 17, 19, 23, dtype)
      local c = dev:full({ 17, 19 }, nan, dtype)
      gpu.matmul(a, b, c, { kernel = kernel, beta = 1 })
      local _, nans = sum_and_nans(c)
      assert.equal(323, nans, label)
    end, { floats = true })
  end)

  it("B12: NaN and infinity in a and b reach c", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { 0, 1 }, { 2, 3 } }, dtype)
      local b = dev:array({ { inf, 4 }, { 5, nan } }, dtype)
      local c = gpu.matmul(a, b, { kernel = kernel, alpha = 1, beta = 0 }):totable()
      assert.is_true(c[1][1] ~= c[1][1], label .. ": 0 * inf + 1 * 5 is NaN")
      assert.is_true(c[1][2] ~= c[1][2], label)
      assert.equal(inf, c[2][1], label)
      assert.is_true(c[2][2] ~= c[2][2], label)
    end, { floats = true })
  end)

  it("B12: alpha = 0 reads neither a nor b", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { 0, 1 }, { 2, 3 } }, dtype)
      local b = dev:array({ { inf, 4 }, { 5, nan } }, dtype)
      local c = dev:full({ 2, 2 }, nan, dtype)
      gpu.matmul(a, b, c, { kernel = kernel, alpha = 0 })
      assert.same({ { 0, 0 }, { 0, 0 } }, c:totable(), label)
      gpu.matmul(b, b, c:fill(3), { kernel = kernel, alpha = 0, beta = 2 })
      assert.same({ { 6, 6 }, { 6, 6 } }, c:totable(), label)
    end, { floats = true })
  end)

  it("B13: refuses a c that is a or b, and leaves both as they were", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype)
      local a = dev:array({ { 1, 2 }, { 3, 4 } }, dtype)
      local b = dev:array({ { 5, 6 }, { 7, 8 } }, dtype)
      local options = { kernel = kernel }
      refuses("output c overlaps input a", gpu.matmul, a, b, a, options)
      refuses("output c overlaps input b", gpu.matmul, a, b, b, options)
      refuses("output c overlaps input a", gpu.matmul, a, a, a, options)
      refuses("output c overlaps input a", gpu.matmul, a, b, a, { kernel = kernel, alpha = 0 })
      assert.same({ { 1, 2 }, { 3, 4 } }, a:totable())
      assert.same({ { 5, 6 }, { 7, 8 } }, b:totable())
    end)
  end)

  it("B13: refuses a c that lies in part over an input, and launches nothing", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype)
      local s = dev:stream()
      local block = dev:array({ 1, 2, 3, 4, 5, 6, 7, 8 }, dtype)
      local a = block:view { shape = { 2, 2 } }
      local b = dev:array({ { 1, 0 }, { 0, 1 } }, dtype)
      local c = block:view { offset = 1, shape = { 2, 2 } }
      local options = { kernel = kernel, stream = s }
      refuses("output c overlaps input a", gpu.matmul, a, b, c, options)
      refuses("output c overlaps input b", gpu.matmul, b, a, c, options)
      assert.same({ 0, 0 }, { s:inflight() })
      assert.same({ 1, 2, 3, 4, 5, 6, 7, 8 }, block:totable())
      s:close()
    end)
  end)

  it("B13: takes c as its own input, and one buffer as both a and b", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { 1, 2 }, { 3, 4 } }, dtype)
      local c = gpu.matmul(a, a, { kernel = kernel })
      assert.same({ { 7, 10 }, { 15, 22 } }, c:totable(), label)
      gpu.matmul(a, a, c, { kernel = kernel, beta = 1 })
      assert.same({ { 14, 20 }, { 30, 44 } }, c:totable(), label)
    end)
  end)

  it("B13: takes parts of one buffer that touch in no element", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      -- a and c are columns 1 to 2 and 3 to 4 of the same four rows.
      local block = dev:array({ { 1, 2, 0, 0, 9 }, { 3, 4, 0, 0, 9 } }, dtype)
      local a = block:view { shape = { 2, 2 }, stride = 5 }
      local c = block:view { offset = 2, shape = { 2, 2 }, stride = 5 }
      gpu.matmul(a, a, c, { kernel = kernel })
      assert.same({ { 1, 2, 7, 10, 9 }, { 3, 4, 15, 22, 9 } }, block:totable(), label)
      -- The same with c to the left of a, and one row up.
      block:upload { 0, 0, 0, 0, 9, 0, 1, 2, 3, 4 }
      a = block:view { offset = 6, shape = { 1, 2 }, stride = 5 }
      local b = dev:array({ { 1, 2 }, { 3, 4 } }, dtype)
      c = block:view { offset = 1, shape = { 1, 2 }, stride = 5 }
      gpu.matmul(a, b, c, { kernel = kernel })
      assert.same({ { 0, 7, 10, 0, 9 }, { 0, 1, 2, 3, 4 } }, block:totable(), label)
      -- One behind the other.
      local line = dev:array({ 1, 2, 3, 4, 0, 0, 0, 0 }, dtype)
      a = line:view { shape = { 2, 2 } }
      gpu.matmul(a, a, line:view { offset = 4, shape = { 2, 2 } }, { kernel = kernel })
      assert.same({ 1, 2, 3, 4, 7, 10, 15, 22 }, line:totable(), label)
    end)
  end)

  it("B13: refuses columns that share one, across the end of a row too", function()
    local dev = open()
    local block = dev:zeros { 4, 6 }
    local b = dev:zeros { 3, 3 }
    local function part(offset, rows, columns)
      return block:view { offset = offset, shape = { rows, columns }, stride = 6 }
    end
    for _, offsets in ipairs {
      { 0, 2 }, { 2, 0 }, { 0, 8 }, { 3, 5 }, { 9, 5 }, { 3, 7 }, { 0, 5 }, { 5, 0 },
    } do
      refuses("output c overlaps input a", gpu.matmul, part(offsets[1], 2, 3), b,
        part(offsets[2], 2, 3))
    end
    for _, offsets in ipairs {
      { 0, 3 }, { 3, 0 }, { 0, 12 }, { 0, 15 }, { 9, 0 }, { 3, 12 }, { 2, 5 }, { 5, 2 },
    } do
      gpu.matmul(part(offsets[1], 2, 3), b, part(offsets[2], 2, 3))
    end
    assert.is_true(dev:synchronize())
  end)

  it("B13: judges views with other row strides by their range", function()
    local dev = open()
    local block = dev:zeros(32)
    local a = block:view { shape = { 2, 2 }, stride = 8 }
    local c = block:view { offset = 3, shape = { 2, 2 }, stride = 9 }
    refuses("output c overlaps input a", gpu.matmul, a, dev:zeros { 2, 2 }, c)
    c = block:view { offset = 10, shape = { 2, 2 }, stride = 9 }
    gpu.matmul(a, dev:zeros { 2, 2 }, c)
    assert.is_true(dev:synchronize())
  end)
end)
