-- Matmuls on several streams: the same bits every time, and results that are
-- ready when they are read.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

--- Calls body(kernel, dtype, label) for each kernel and each type it takes.
local function each_kernel(dev, body)
  for _, dtype in ipairs { "float32", "float64" } do
    body("auto", dtype, "auto " .. dtype)
    for _, kernel in ipairs(dev:matmul_kernels()) do
      local takes = table.concat(kernel.dtypes, " "):find(dtype, 1, true)
      if kernel.available and takes then
        body(kernel.name, dtype, kernel.name .. " " .. dtype)
      end
    end
  end
end

--- A matrix with numbers that depend on the seed alone, in -1 to 1.
local function random_matrix(dev, rows, columns, dtype, seed)
  local numbers, state = {}, seed
  for i = 1, rows * columns do
    state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
    numbers[i] = (state >> 11) / (1 << 51) - 1
  end
  local buffer = dev:empty({ rows, columns }, dtype)
  buffer:upload(numbers)
  return buffer
end

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

local function streams(dev, count)
  local list = {}
  for i = 1, count do
    list[i] = dev:stream()
  end
  return list
end

each_device("matmul on streams", function(open)
  it("B21: rule F has the sum 50328072 in each of 20 repetitions on 4 streams", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a, b = rule_f(dev, 256, 128, 256, dtype)
      local s, c = streams(dev, 4), {}
      for i = 1, 20 do
        c[i] = gpu.matmul(a, b, { kernel = kernel, stream = s[i % 4 + 1] })
      end
      local first, sum = c[1]:tobytes(), 0
      for _, row in ipairs(c[1]:totable()) do
        for _, x in ipairs(row) do
          sum = sum + x
        end
      end
      assert.equal(50328072, sum, label)
      for i = 2, 20 do
        assert.is_true(c[i]:tobytes() == first, label .. ", repetition " .. i)
        c[i]:close()
      end
    end)
  end)

  it("B21: random products are equal bit for bit, on 1 stream and on 4", function()
    local dev = open()
    local seed = os.time()
    for _, kernel in ipairs { "naive", "tiled" } do
      for _, dtype in ipairs { "float32", "float64" } do
        local a = random_matrix(dev, 130, 161, dtype, seed)
        local b = random_matrix(dev, 161, 97, dtype, seed + 1)
        local s, c = streams(dev, 4), {}
        for i = 1, 40 do
          c[i] = gpu.matmul(a, b, { kernel = kernel, stream = i <= 20 and s[1] or s[i % 4 + 1] })
        end
        local first = c[1]:tobytes()
        for i = 2, 40 do
          assert.is_true(c[i]:tobytes() == first,
            ("%s %s, seed %d: repetition %d"):format(kernel, dtype, seed, i))
        end
      end
    end
  end)

  it("gives the same bits from naive and tiled, transposed and scaled too", function()
    local dev = open()
    local seed = os.time()
    for _, dtype in ipairs { "float32", "float64" } do
      local a = random_matrix(dev, 161, 70, dtype, seed)
      local b = random_matrix(dev, 139, 161, dtype, seed + 1)
      local function with(kernel)
        local c = random_matrix(dev, 70, 139, dtype, seed + 2)
        return gpu.matmul(a, b, c, { kernel = kernel, transpose_a = true, transpose_b = true,
          alpha = 0.3, beta = -1.7 }):tobytes()
      end
      assert.is_true(with("naive") == with("tiled"), dtype .. ", seed " .. seed)
    end
  end)

  it("B26: adds 1e8, 1, -1e8 and 1 in some order", function()
    local dev = open()
    each_kernel(dev, function(kernel, dtype, label)
      local a = dev:array({ { 1e8, 1, -1e8, 1 } }, dtype)
      local b = dev:array({ { 1 }, { 1 }, { 1 }, { 1 } }, dtype)
      local c = gpu.matmul(a, b, { kernel = kernel }):get(1, 1)
      if dtype == "float64" then
        assert.equal(2, c, label)
      elseif kernel == "naive" or kernel == "tiled" then
        assert.equal(1, c, label .. ": in ascending order")
      else
        assert.is_true(c == 1 or c == 2, label .. ": " .. c)
      end
    end)
  end)

  it("waits on one stream for first contents that another one writes", function()
    local dev = open()
    local s, t = dev:stream(), dev:stream()
    local a, b = dev:empty { 2, 2 }, dev:array { { 1, 2 }, { 3, 4 } }
    local g = s:gate { timeout = 2 }
    a:fill(2, s)
    local c = gpu.matmul(a, b, t)
    local d = gpu.matmul(c, b, dev:stream())
    assert.is_false(t:synchronize(0))
    assert.same({ 1, 1 }, { t:inflight() })
    assert.is_true(g:open())
    assert.same({ { 8, 12 }, { 8, 12 } }, c:totable())
    assert.same({ { 44, 64 }, { 44, 64 } }, d:totable())
  end)

  it("returns before the work is done, many calls deep", function()
    local dev = open()
    local s = dev:stream()
    local a, c = dev:array { { 1, 1 }, { 0, 1 } }, dev:zeros { 2, 2 }
    local g = s:gate { timeout = 2 }
    for i = 1, 200 do
      gpu.matmul(a, a, c, { stream = s, beta = 1 })
      assert.same({ i, i }, { s:inflight() })
    end
    assert.is_false(s:done())
    assert.is_true(g:open())
    assert.same({ { 200, 400 }, { 0, 200 } }, c:totable())
    assert.is_true(s:done())
  end)
end)
