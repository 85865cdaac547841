-- What a matmul computes: shapes, transposes, row strides, batches. Each case
-- runs on every kernel that the device has, and on "auto".
local each_device = require "spec.each_device"
local each_kernel = require "spec.each_kernel"
local gpu = require "tidelock"

local function matrix(dev, rows, columns, numbers, dtype)
  local buffer = dev:empty({ rows, columns }, dtype)
  buffer:upload(numbers)
  return buffer
end

--- Rule F: a[i][k] = (i*K + k) % 7 and b[k][j] = (k*N + j) % 5, indices from 0.
local function rule_f(m, n, k)
  local a, b = {}, {}
  for i = 0, m * k - 1 do
    a[i + 1] = i % 7
  end
  for i = 0, k * n - 1 do
    b[i + 1] = i % 5
  end
  return a, b
end

--- The transpose of a row-major matrix, as flat numbers.
local function transposed(numbers, rows, columns)
  local result = {}
  for i = 0, rows - 1 do
    for j = 0, columns - 1 do
      result[j * rows + i + 1] = numbers[i * columns + j + 1]
    end
  end
  return result
end

--- The product by the definition, as nested tables of floats.
local function product(a, b, m, n, k)
  local c = {}
  for i = 0, m - 1 do
    c[i + 1] = {}
    for j = 0, n - 1 do
      local sum = 0.0
      for l = 0, k - 1 do
        sum = sum + a[i * k + l + 1] * b[l * n + j + 1]
      end
      c[i + 1][j + 1] = sum
    end
  end
  return c
end

local function sum_first_last(c)
  local sum = 0
  for _, row in ipairs(c) do
    for _, x in ipairs(row) do
      sum = sum + x
    end
  end
  local last = c[#c]
  return { sum, c[1][1], last[#last] }
end

each_device("matmul", function(open)
  it("B01: multiplies row-major rectangles", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { 1, 2, 3 }, { 4, 5, 6 } }, dtype)
      local b = dev:array({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }, dtype)
      local c = gpu.matmul(a, b, { kernel = kernel })
      local got = c:totable()
      assert.same({ { 38, 44, 50, 56 }, { 83, 98, 113, 128 } }, got, label)
      assert.not_same({ { 22, 28, 49, 64 }, { 76, 100, 103, 136 } }, got, label)
      assert.same({ 2, 4 }, c:shape(), label)
      assert.equal(dtype, c:dtype(), label)
    end)
  end)

  it("B02: takes every transpose of a rectangle without being told a stride", function()
    local dev = open()
    local m, n, k = 256, 128, 64
    local a, b = rule_f(m, n, k)
    local a_t, b_t = transposed(a, m, k), transposed(b, k, n)
    local expected
    each_kernel(dev, function(kernel, dtype, label)
      local x, x_t = matrix(dev, m, k, a, dtype), matrix(dev, k, m, a_t, dtype)
      local y, y_t = matrix(dev, k, n, b, dtype), matrix(dev, n, k, b_t, dtype)
      expected = expected or matrix(dev, m, n, product(a, b, m, n, k), "float32"):tobytes()
      for _, case in ipairs {
        { x, y, false, false }, { x, y_t, false, true },
        { x_t, y, true, false }, { x_t, y_t, true, true },
      } do
        local c = gpu.matmul(case[1], case[2], {
          kernel = kernel, transpose_a = case[3], transpose_b = case[4],
        })
        local got = dtype == "float32" and c:tobytes()
          or matrix(dev, m, n, c:totable(), "float32"):tobytes()
        local which = label .. (case[3] and " T" or " N") .. (case[4] and "T" or "N")
        assert.is_true(got == expected, which)
      end
    end, { largest = 24 * k })
  end)

  it("B02: refuses a row stride below the row's length, and names both", function()
    local dev = open()
    local block = dev:zeros(256 * 64)
    local ok, message = pcall(block.view, block, { shape = { 256, 64 }, stride = 63 })
    assert.is_false(ok)
    assert.matches("stride 63 < 64", message, 1, true)
  end)

  it("B03: neither reads nor writes the padding behind a row", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local p = -9
      local a = dev:array({ 1, 2, 3, p, p, 4, 5, 6, p, p }, dtype)
      local b = dev:array({ 7, 8, p, p, 9, 10, p, p, 11, 12, p, p }, dtype)
      local c = dev:full(6, -7, dtype)
      gpu.matmul(a:view { shape = { 2, 3 }, stride = 5 }, b:view { shape = { 3, 2 }, stride = 4 },
        c:view { shape = { 2, 2 }, stride = 3 }, { kernel = kernel })
      assert.same({ 58, 64, -7, 139, 154, -7 }, c:totable(), label)
    end)
  end)

  it("B03: keeps a NaN in the padding out of the result", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local p = 0 / 0
      local a = dev:array({ 1, 2, p, 3, 4, p }, dtype):view { shape = { 2, 2 }, stride = 3 }
      local c = gpu.matmul(a, a, { kernel = kernel, transpose_a = true })
      assert.same({ { 10, 14 }, { 14, 20 } }, c:totable(), label)
    end, { floats = true })
  end)

  it("B04: takes the four mixes of transposes with awkward sizes", function()
    local dev = open()
    local m, n, k = 7, 11, 15
    local a, b = rule_f(m, n, k)
    local stored_a = { [false] = { m, k, a }, [true] = { k, m, transposed(a, m, k) } }
    local stored_b = { [false] = { k, n, b }, [true] = { n, k, transposed(b, k, n) } }
    local expected = product(a, b, m, n, k)
    each_kernel(dev, function(kernel, dtype, label)
      for ta, x in pairs(stored_a) do
        for tb, y in pairs(stored_b) do
          local c = gpu.matmul(matrix(dev, x[1], x[2], x[3], dtype),
            matrix(dev, y[1], y[2], y[3], dtype),
            { kernel = kernel, transpose_a = ta, transpose_b = tb }):totable()
          local trace = 0
          for i = 1, math.min(m, n) do
            trace = trace + c[i][i]
          end
          local which = ("%s, transpose_a %s, transpose_b %s"):format(label, ta, tb)
          assert.same({ 6930, 79, 91 }, sum_first_last(c), which)
          assert.equal(583, trace, which)
          assert.same(expected, c, which)
        end
      end
    end)
  end)

  it("B04: takes the four mixes for the rectangles of B01", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local x = { [false] = dev:array({ { 1, 2, 3 }, { 4, 5, 6 } }, dtype),
        [true] = dev:array({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, dtype) }
      local y = { [false] = dev:array({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }, dtype),
        [true] = dev:array({ { 1, 5, 9 }, { 2, 6, 10 }, { 3, 7, 11 }, { 4, 8, 12 } }, dtype) }
      for ta, a in pairs(x) do
        for tb, b in pairs(y) do
          local c = gpu.matmul(a, b, { kernel = kernel, transpose_a = ta, transpose_b = tb })
          assert.same({ { 38, 44, 50, 56 }, { 83, 98, 113, 128 } }, c:totable(), label)
        end
      end
    end)
  end)

  -- m, n, k and the sum, the first and the last element of c.
  local sizes = {
    { 1, 1, 1, { 0, 0, 0 } },
    { 3, 2, 5, { 163, 25, 27 } },
    { 5, 2, 1, { 10, 0, 4 } },
    { 15, 17, 16, { 24176, 78, 86 } },
    { 16, 16, 16, { 24296, 79, 97 } },
    { 17, 19, 23, { 44316, 124, 149 } },
    { 31, 33, 32, { 195904, 174, 189 } },
    { 33, 65, 17, { 218400, 0, 212 } },
    { 100, 100, 100, { 5998800, 0, 1196 } },
    { 128, 199, 1025, { 156651611, 6138, 6142 } },
    { 1, 1, 1000, { 5999, 5999, 5999 } },
  }
  for _, size in ipairs(sizes) do
    local m, n, k, expected = table.unpack(size)
    it(("B05: sizes that are no multiple of the tile: %d x %d x %d"):format(m, n, k), function()
      local dev = open()
      local a, b = rule_f(m, n, k)
      each_kernel(dev, function(kernel, dtype, label)
        local c = dev:full({ m, n }, -12345, dtype)
        gpu.matmul(matrix(dev, m, k, a, dtype), matrix(dev, k, n, b, dtype), c,
          { kernel = kernel })
        local got = c:totable()
        assert.same(expected, sum_first_last(got), label)
        for i = 1, m do
          for j = 1, n do
            if got[i][j] == -12345 then
              error(("%s: element %d, %d was not written"):format(label, i, j))
            end
          end
        end
      end, { largest = 24 * k })
    end)
  end

  it("B05: writes every element of 1000 x 1000", function()
    local dev = open()
    local m, n, k = 1000, 1000, 8
    local a, b = rule_f(m, n, k)
    each_kernel(dev, function(kernel, dtype, label)
      local c = dev:full({ m, n }, -12345, dtype)
      gpu.matmul(matrix(dev, m, k, a, dtype), matrix(dev, k, n, b, dtype), c, { kernel = kernel })
      local unwritten = dev:full(1, -12345, dtype):tobytes()
      -- The elements are small and not negative: no other bytes look like it.
      assert.is_nil(c:tobytes():find(unwritten, 1, true), label)
      -- The last row and column of the grid, element by element.
      for j = 1, n, 37 do
        local last, side = 0, 0
        for l = 0, k - 1 do
          last = last + a[(m - 1) * k + l + 1] * b[l * n + j]
          side = side + a[(j - 1) * k + l + 1] * b[l * n + n]
        end
        assert.equal(last, c:get(m, j), label)
        assert.equal(side, c:get(j, n), label)
      end
    end)
  end)

  it("makes c where it is left out, on the stream of the call", function()
    local dev = open()
    local s = dev:stream()
    local a = dev:array { { 1, 2 }, { 3, 4 } }
    local g = s:gate { timeout = 2 }
    local c = gpu.matmul(a, a, s)
    assert.same({ 1, 1 }, { s:inflight() })
    assert.same({ 2, 2 }, c:shape())
    assert.is_true(g:open())
    assert.same({ { 7, 10 }, { 15, 22 } }, c:totable())
    assert.same({ 0, 0 }, { s:inflight() })
  end)

  it("returns the c it was given", function()
    local dev = open()
    local a, c = dev:array { { 1, 2 }, { 3, 4 } }, dev:empty { 2, 2 }
    assert.is_true(rawequal(c, gpu.matmul(a, a, c)))
    assert.is_true(dev:synchronize())
    assert.is_true(rawequal(c, gpu.matmul(a, a, c, dev:stream())))
    assert.is_true(dev:synchronize())
    assert.is_true(rawequal(c, gpu.matmul(a, a, c, { stream = dev:stream() })))
    assert.same({ { 7, 10 }, { 15, 22 } }, c:totable())
  end)

  it("multiplies batches matrix by matrix", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }, dtype)
      local b = dev:array({ { { 1, 0 }, { 0, 1 } }, { { 2, 1 }, { 1, 3 } } }, dtype)
      local c = gpu.matmul(a, b, { kernel = kernel })
      assert.same({ 2, 2, 2 }, c:shape(), label)
      assert.same({ { { 1, 2 }, { 3, 4 } }, { { 16, 23 }, { 22, 31 } } }, c:totable(), label)
    end)
  end)

  it("takes batches with transposes, row strides and plane strides", function()
    local dev = open()
    local m, n, k, batch = 5, 7, 3, 4
    local a, b = rule_f(batch * m, n, k), select(2, rule_f(m, batch * n, k))
    each_kernel(dev, function(kernel, dtype, label)
      -- a is stored transposed, in planes of 40 and rows of 8; c in rows of 9.
      local x = dev:full(batch * 40, 99, dtype):view {
        shape = { batch, k, m }, stride = { 40, 8 } }
      local y = dev:empty({ batch, k, n }, dtype)
      local frame = dev:full({ batch, m, 9 }, -1, dtype)
      local z = frame:view { offset = 1, shape = { batch, m, n }, stride = 9 }
      local packed, expected = {}, {}
      for p = 1, batch do
        local one_a = table.move(a, (p - 1) * m * k + 1, p * m * k, 1, {})
        local one_b = table.move(b, (p - 1) * k * n + 1, p * k * n, 1, {})
        table.move(transposed(one_a, m, k), 1, m * k, #packed + 1, packed)
        expected[p] = product(one_a, one_b, m, n, k)
      end
      x:upload(packed)
      y:upload(b)
      gpu.matmul(x, y, z, { kernel = kernel, transpose_a = true })
      assert.same(expected, z:totable(), label)
      for _, plane in ipairs(frame:totable()) do
        for _, row in ipairs(plane) do
          assert.same({ -1, -1 }, { row[1], row[9] }, label)
        end
      end
    end)
  end)

  it("agrees with the definition on random integers, transposed and padded", function()
    local dev = open()
    local seed = os.time()
    local state = seed
    local function random(least, most)
      state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
      return least + (state >> 33) % (most - least + 1)
    end
    local function numbers(count)
      local t = {}
      for i = 1, count do
        t[i] = random(-8, 8)
      end
      return t
    end
    for _ = 1, 6 do
      local m, n, k, pad = random(1, 70), random(1, 140), random(1, 70), random(0, 3)
      local a, b = numbers(m * k), numbers(k * n)
      local expected = product(a, b, m, n, k)
      each_kernel(dev, function(kernel, dtype, label)
        local function padded(rows, columns, content)
          local block = dev:full({ rows, columns + pad }, 77, dtype)
          local view = block:view { shape = { rows, columns }, stride = columns + pad }
          if content then
            view:upload(content)
          end
          return view
        end
        local ta, tb = random(0, 1) == 1, random(0, 1) == 1
        local x = ta and padded(k, m, transposed(a, m, k)) or padded(m, k, a)
        local y = tb and padded(n, k, transposed(b, k, n)) or padded(k, n, b)
        local c = gpu.matmul(x, y, padded(m, n),
          { kernel = kernel, transpose_a = ta, transpose_b = tb })
        assert.same(expected, c:totable(),
          ("%s, seed %d: %d x %d x %d, pad %d"):format(label, seed, m, n, k, pad))
      end, { largest = 2 ^ 20 })
    end
  end)
end)
