-- Random fills: what they depend on, what is refused, and whether they are
-- distributed as they should be. Seeds are fixed, so every run sees the same.
local each_device = require "spec.each_device"

local FLOATS = { "float32", "float64", "float16", "bfloat16" }
local METHODS = { "rand", "randn" }

local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  assert.equal("string", type(message), tostring(message))
  assert.matches(text, message, 1, true)
end

--- Polynomial hash of the bytes, in 64 bits that wrap.
local function hash(bytes)
  local h = 0
  for i = 1, #bytes - 7, 8 do
    h = h * 6364136223846793005 + string.unpack("<i8", bytes, i) + 1442695040888963407
  end
  return ("%016x"):format(h)
end

-- ---- statistics -------------------------------------------------------------

--- The normal distribution function: Marsaglia, "Evaluating the normal
-- distribution", J. Stat. Software 11(4), 2004; all digits of a double for |x| < 7.
local function phi(x)
  local sum, term, k = x, x, 1
  repeat
    k = k + 2
    term = term * x * x / k
    local before = sum
    sum = sum + term
  until sum == before
  return 0.5 + sum * math.exp(-0.5 * x * x - 0.5 * math.log(2 * math.pi))
end

--- What each distribution should be: its function; mean, variance, kurtosis; and n times the
-- variances of the sample's mean, variance, skewness and kurtosis, from the central moments
-- (Kendall and Stuart, volume 1, chapter 10, for symmetric distributions).
local TRUTH = {
  rand = {
    cumulative = function(x) return x end, low = 0, high = 1,
    mean = 1 / 2, variance = 1 / 12, kurtosis = 9 / 5,
    errors = { 1 / 12, 1 / 180, 27 / 7 - 6 * 9 / 5 + 9,
      9 - 4 * 9 / 5 * 27 / 7 - 81 / 25 + 4 * 729 / 125 },
  },
  randn = {
    cumulative = phi, low = -3.5, high = 3.5, -- the rest goes into the outer bins
    mean = 0, variance = 1, kurtosis = 3,
    errors = { 1, 2, 6, 24 },
  },
}

local BINS = 101
-- Upper 0.001 point of chi-square with 100 degrees of freedom: NIST/SEMATECH e-Handbook of
-- Statistical Methods, table 1.3.6.7.4.
local CHI_SQUARE = 149.449
-- Upper 0.001 point of sqrt(n) times Kolmogorov's distance, large n: sqrt(-log(0.001 / 2) / 2)
-- (Smirnov, Ann. Math. Stat. 19, 1948).
local KOLMOGOROV = 1.9495

--- In one pass: least and most, moments, the products of neighbours, and counts in bins.
local function measure(x, truth)
  local n, low, scale = #x, truth.low, BINS / (truth.high - truth.low)
  local least, most, floor = math.huge, -math.huge, math.floor
  local s1, s2, s3, s4, neighbours, squares, before = 0, 0, 0, 0, 0, 0, nil
  local counts = {}
  for i = 1, BINS do
    counts[i] = 0
  end
  for i = 1, n do
    local value = x[i]
    if value < least then least = value end
    if value > most then most = value end
    local bin = floor((value - low) * scale) + 1
    bin = bin < 1 and 1 or bin > BINS and BINS or bin
    counts[bin] = counts[bin] + 1
    local d = value - truth.mean
    local d2 = d * d
    s1, s2, s3, s4 = s1 + d, s2 + d2, s3 + d2 * d, s4 + d2 * d2
    if before then
      neighbours = neighbours + d * before
      squares = squares + (d2 - truth.variance) * (before * before - truth.variance)
    end
    before = d
  end
  local m = s1 / n
  local variance = s2 / n - m * m
  local third = s3 / n - 3 * m * s2 / n + 2 * m ^ 3
  local fourth = s4 / n - 4 * m * s3 / n + 6 * m * m * s2 / n - 3 * m ^ 4
  local chi_square = 0
  for i, count in ipairs(counts) do
    local from = i == 1 and truth.low == -3.5 and 0 or truth.cumulative(low + (i - 1) / scale)
    local to = i == BINS and 1 or truth.cumulative(low + i / scale)
    local expected = n * (to - from)
    chi_square = chi_square + (count - expected) ^ 2 / expected
  end
  local fourth_true = truth.kurtosis * truth.variance ^ 2
  return {
    least = least, most = most, chi_square = chi_square,
    mean = m + truth.mean, variance = variance, skewness = third / variance ^ 1.5,
    kurtosis = fourth / variance ^ 2,
    neighbours = neighbours / (n - 1) / truth.variance,
    squares = squares / (n - 1) / (fourth_true - truth.variance ^ 2),
  }
end

--- Asserts that a value is at most five of its standard deviations off.
local function within(wanted, got, deviation, what)
  assert.is_true(math.abs(got - wanted) <= 5 * deviation,
    ("%s %.6g, %.6g wanted, standard deviation %.3g"):format(what, got, wanted, deviation))
end

local function kolmogorov(x, cumulative)
  table.sort(x)
  local n, distance = #x, 0
  for i = 1, n do
    local f = cumulative(x[i])
    distance = math.max(distance, i / n - f, f - (i - 1) / n)
  end
  return distance * math.sqrt(n)
end

each_device("random", function(open, id)
  it("gives the same numbers for the same call, and others for another seed", function()
    local dev = open()
    for _, method in ipairs(METHODS) do
      for _, dtype in ipairs(FLOATS) do
        local function bytes(seed)
          return dev[method](dev, 100, { dtype = dtype, seed = seed }):tobytes()
        end
        local first = bytes()
        assert.equal(first, bytes(0))
        assert.equal(first, dev[method](dev, 100, dtype):tobytes())
        local seen = { [first] = true }
        for _, seed in ipairs { 1, 2, -1, 1 << 32, math.mininteger, math.maxinteger } do
          local other = bytes(seed)
          assert.is_nil(seen[other], dtype .. " repeats at seed " .. seed)
          assert.equal(other, bytes(seed))
          seen[other] = true
        end
      end
    end
    assert.equal(dev:rand(9, { seed = 7 }):tobytes(), dev:rand(9, { seed = 7.0 }):tobytes())
    assert.equal("float32", dev:rand(3):dtype())
    assert.equal("float32", dev:randn(3):dtype())
  end)

  it("gives the same bits on every device", function()
    local dev = open()
    local wanted = {
      rand = {
        float32 = "149477573afdafc5", float64 = "b5d901efcb74dad7",
        float16 = "32fe82c4b3a360ce", bfloat16 = "cc4f2dfd913fc120",
      },
      randn = {
        float32 = "078da78e1e69c4df", float64 = "0d0bb7c36348e0dd",
        float16 = "fde942a90ac12f4c", bfloat16 = "8e6a1452962a146e",
      },
    }
    for _, method in ipairs(METHODS) do
      for _, dtype in ipairs(FLOATS) do
        local b = dev[method](dev, 100000, { dtype = dtype, seed = 0x0123456789abcdef })
        assert.equal(wanted[method][dtype], hash(b:tobytes()), method .. " " .. dtype)
      end
    end
  end)

  it("numbers elements in row order, whatever the shape", function()
    local dev = open()
    for _, method in ipairs(METHODS) do
      for _, dtype in ipairs(FLOATS) do
        local all = dev[method](dev, 210, dtype):tobytes()
        local element = #all // 210
        for _, shape in ipairs { { 210 }, { 10, 21 }, { 3, 7, 10 }, { 1, 1, 1 }, { 1 }, { 7 },
          { 13, 3 }, { 5, 0 } } do
          local b = dev[method](dev, shape, dtype)
          assert.same(shape, b:shape())
          assert.equal(all:sub(1, b:size() * element), b:tobytes())
        end
      end
    end
  end)

  it("takes the narrow types from float32's words", function()
    local dev = open()
    local n = 20000
    local single = dev:rand(n, { seed = 5 }):totable()
    local normal = dev:randn(n, { seed = 5 })
    for dtype, bits in pairs { float16 = 11, bfloat16 = 8 } do
      local x = dev:rand(n, { dtype = dtype, seed = 5 }):totable()
      for i = 1, n do
        assert(x[i] == math.floor(single[i] * 2 ^ bits) / 2 ^ bits, "element " .. i)
      end
      local rounded = dev:array(normal:totable(), dtype)
      assert.equal(rounded:tobytes(), dev:randn(n, { dtype = dtype, seed = 5 }):tobytes())
    end
  end)

  it("refuses integer types by name, and leaves nothing behind", function()
    local dev = open()
    for _, dtype in ipairs { "int32", "int8" } do
      for method, what in pairs { rand = "numbers of [0, 1)",
        randn = "normally distributed numbers" } do
        local ok, failure = pcall(dev[method], dev, 3, dtype)
        assert.is_false(ok)
        assert.equal("unsupported", failure.code)
        assert.equal(("%s: %s does not hold %s"):format(method, dtype, what), failure.message)
      end
    end
    assert.equal(0, dev:memory().buffers)
  end)

  it("refuses wrong arguments by name", function()
    local dev = open()
    refuses("unknown option 'sede'", dev.rand, dev, 3, { sede = 1 })
    refuses("unknown option 'seed'", dev.zeros, dev, 3, { seed = 1 })
    refuses("option 'seed'", dev.rand, dev, 3, { seed = 1.5 })
    refuses("option 'seed'", dev.randn, dev, 3, { seed = {} })
    refuses("unknown dtype 'no such'", dev.randn, dev, 3, "no such")
    refuses("size must be >= 0", dev.rand, dev, -1)
    refuses("stream or options table expected, got number", dev.rand, dev, 3, "float32", 5)
    assert.equal(0, dev:memory().buffers)
  end)

  it("fills behind a gate, on the stream; first uses elsewhere and reads wait", function()
    local dev = open()
    local s, other = dev:stream(), dev:stream()
    local wanted = dev:rand(1000, { seed = 3 }):tobytes()
    local normal = dev:randn(1000):tobytes()
    local g = s:gate { timeout = 2 }
    local a, b, c = dev:rand(1000, { seed = 3, stream = s }), dev:randn(1000, s),
      dev:randn(1000, "float32", s)
    assert.same({ 3, 3 }, { s:inflight() })
    local copy = a:clone(other)
    assert.same({ 1, 1 }, { other:inflight() })
    assert.is_true(g:open())
    assert.equal(wanted, copy:tobytes())
    assert.equal(wanted, a:tobytes())
    assert.equal(normal, b:tobytes())
    assert.equal(normal, c:tobytes())
  end)

  for _, method in ipairs(METHODS) do
    for _, dtype in ipairs { "float32", "float64" } do
      local name = method .. " " .. dtype

      it(name .. " has the moments and the shape of its distribution", function()
        local dev = open()
        local n, seed = 1000000, 20
        local truth = TRUTH[method]
        local m = measure(dev[method](dev, n, { dtype = dtype, seed = seed }):totable(), truth)
        if method == "rand" then
          assert.is_true(m.least >= 0 and m.least < 20 / n and m.most < 1 and m.most > 1 - 20 / n)
        else
          assert.is_true(m.most > 4 and m.most < 6.5 and m.least < -4 and m.least > -6.5,
            ("%g to %g"):format(m.least, m.most))
        end
        local deviations = {}
        for i, error in ipairs(truth.errors) do
          deviations[i] = math.sqrt(error / n)
        end
        within(truth.mean, m.mean, deviations[1], "mean")
        within(truth.variance, m.variance, deviations[2], "variance")
        within(0, m.skewness, deviations[3], "skewness")
        within(truth.kurtosis, m.kurtosis, deviations[4], "kurtosis")
        within(0, m.neighbours, n ^ -0.5, "correlation of neighbours")
        within(0, m.squares, n ^ -0.5, "correlation of neighbours' squares")
        print(("# %s: %s, seed %d: mean %.5f variance %.5f skewness %.4f kurtosis %.4f, %.3f to"
          .. " %.3f, chi-square %.1f (%d degrees; 0.001 point %.1f)"):format(id, name, seed, m.mean,
          m.variance, m.skewness, m.kurtosis, m.least, m.most, m.chi_square, BINS - 1, CHI_SQUARE))
        assert.is_true(m.chi_square < CHI_SQUARE)
      end)

      it(name .. " is close to its distribution function", function()
        local dev = open()
        local n, seed = 50000, 21
        local x = dev[method](dev, n, { dtype = dtype, seed = seed }):totable()
        local distance = kolmogorov(x, TRUTH[method].cumulative)
        print(("# %s: %s, seed %d: sqrt(n) Kolmogorov distance %.3f (0.001 point %.4f)"):format(id,
          name, seed, distance, KOLMOGOROV))
        assert.is_true(distance < KOLMOGOROV)
      end)
    end

    for _, dtype in ipairs { "float16", "bfloat16" } do
      it(("%s %s has the moments of its distribution"):format(method, dtype), function()
        local dev = open()
        local n, truth = 200000, TRUTH[method]
        local step = method == "rand" and (dtype == "float16" and 2 ^ -11 or 2 ^ -8) or 0
        local m = measure(dev[method](dev, n, { dtype = dtype, seed = 22 }):totable(), truth)
        -- Multiples of a step below 1: the mean is half a step less, the variance as much less as
        -- a uniform number within a step has. Rounding a normal number adds less than 1e-5.
        within(truth.mean - step / 2, m.mean, math.sqrt(truth.errors[1] / n), "mean")
        within(truth.variance - step ^ 2 / 12, m.variance, math.sqrt(truth.errors[2] / n),
          "variance")
        within(0, m.skewness, math.sqrt(truth.errors[3] / n), "skewness")
        within(truth.kurtosis, m.kurtosis, math.sqrt(truth.errors[4] / n), "kurtosis")
        if method == "rand" then
          assert.equal(0, m.least)
          assert.equal(1 - step, m.most)
        end
      end)
    end
  end
end)
