local each_device = require "spec.each_device"
local gpu = require "tidelock"

each_device("allclose", function(open)
  it("takes what differs by rounding, and not what differs by more (B26)", function()
    local dev = open()
    local a = dev:array { { 1e8, 1, -1e8, 1 } }
    local ones = dev:array { { 1 }, { 1 }, { 1 }, { 1 } }
    local c = gpu.matmul(a, ones, { kernel = "naive" }) -- 1 or 2, by the order of the sums
    assert.is_true(gpu.allclose(c, { { 2 } }, { atol = 4 * 2 ^ -23 * 2e8 }))
    assert.is_true(gpu.allclose(dev:array { 1000, 1 }, { 1000.0001, 1.0001 }))
    assert.same({ false, "element 2 is 1, wanted 1.1000000000000001 (allowed apart: 0.00135)" },
      { gpu.allclose(dev:array { 1000, 1 }, { 1000, 1.1 }) })
  end)

  it("has tolerances that can be given, and counts elements", function()
    local dev = open()
    local a = dev:array({ 100, 200 }, "float64")
    assert.is_true(gpu.allclose(a, { 101, 202 }, { rtol = 0.01 }))
    assert.is_false((gpu.allclose(a, { 101, 203 }, { rtol = 0.01 })))
    assert.is_true(gpu.allclose(a, { 101, 201 }, { atol = 1 }))
    assert.same({ false, "2 elements against 3" }, { gpu.allclose(a, { 1, 2, 3 }) })
    assert.is_true(gpu.allclose(dev:array({ 3 }, "int32"), { 3 }))
    assert.is_false((gpu.allclose(dev:array({ 3 }, "int32"), { 4 })))
  end)

  it("takes infinities that are the same, and no NaN", function()
    local dev = open()
    local a = dev:array { 1 / 0, 1 }
    assert.is_true(gpu.allclose(a, { 1 / 0, 1 }))
    assert.is_false((gpu.allclose(a, { -1 / 0, 1 })))
    assert.is_false((gpu.allclose(a, { 1, 1 })))
    assert.is_false((gpu.allclose(dev:array { 0 / 0 }, { 0 / 0 })))
    assert.is_false((gpu.allclose(dev:array { 0 / 0 }, { 1 })))
  end)
end)

each_device("check_matmul", function(open)
  local function factors(dev, dtype, m, n, k)
    if dtype == "int32" or dtype == "int8" then
      local function ints(rows, columns, period)
        local t = {}
        for i = 1, rows * columns do t[i] = i % period - 3 end
        return dev:array(t, dtype):reshape { rows, columns }
      end
      return ints(m, k, 7), ints(k, n, 5)
    end
    return dev:rand({ m, k }, { dtype = dtype, seed = 1 }),
      dev:randn({ k, n }, { dtype = dtype, seed = 2 })
  end

  it("passes a product whose sums on the way are beyond float16", function()
    local dev = open()
    local a = dev:full({ 8, 16 }, 2 ^ -12, "float16")
    local b = dev:full({ 16, 8 }, 60000, "float16")
    local c = gpu.matmul(a, b)
    assert.is_true(gpu.check_matmul(a, b, c))
    c:set(3, 3, 0)
    assert.is_false((gpu.check_matmul(a, b, c)))
  end)

  for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16", "int32", "int8" } do
    it("passes products of " .. dtype .. ", and finds one wrong element", function()
      local dev = open()
      for _, kernel in ipairs { "naive", "tiled", "auto" } do
        local a, b = factors(dev, dtype, 33, 41, 57)
        local c = gpu.matmul(a, b, { kernel = kernel })
        assert.is_true(gpu.check_matmul(a, b, c), kernel)
        c:set(20, 30, c:get(20, 30) + 64)
        local right, reason = gpu.check_matmul(a, b, c, { vectors = 2 })
        assert.is_false(right)
        assert.matches("^vector 1: row sums with random signs: element 20 is ", reason)
      end
    end)
  end

  it("knows transposes, and refuses a seed of 0", function()
    local dev = open()
    local a, b = dev:rand({ 20, 10 }, { seed = 3 }), dev:rand({ 30, 20 }, { seed = 4 })
    local c = gpu.matmul(a, b, { transpose_a = true, transpose_b = true })
    assert.is_true(gpu.check_matmul(a, b, c, { transpose_a = true, transpose_b = true, seed = 7 }))
    c:set(1, 1, 0 / 0)
    assert.is_false((gpu.check_matmul(a, b, c, { transpose_a = true, transpose_b = true })))
    assert.error_matches(function() gpu.check_matmul(a, b, c, { seed = 0 }) end, "seed")
  end)
end)
