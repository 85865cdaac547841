local distribution = require "tidelock.distribution"
local resample = require "tidelock.resample"

local values = { 0.012, -0.004, 0.007, 0.021, 0.003, -0.011, 0.009, 0.015, 0.001, 0.006, -0.002,
  0.018, 0.010, 0.004, -0.007, 0.013, 0.008, 0.002, 0.011, 0.005 }

describe("distribution", function()
  it("agrees with scipy 1.17.1", function()
    for x, p in pairs { -- scipy.stats.norm.cdf
      [-5] = 2.866515718791933e-07, [-1.96] = 0.024997895148220435, [0] = 0.5,
      [0.5] = 0.6914624612740131, [3] = 0.9986501019683699, [-40] = 0, [40] = 1,
    } do
      assert.near(p, distribution.normal(x), 1e-14)
    end
    for freedom, t in pairs { -- scipy.stats.t.ppf(0.975)
      [1] = 12.706204736174694, [2] = 4.302652729749462, [5] = 2.5705818356363146,
      [9] = 2.262157162798205, [19] = 2.0930240544083087, [100] = 1.9839715185235518,
    } do
      assert.near(t, distribution.student(0.975, freedom), 1e-9)
    end
    assert.near(1.3277282090267986, distribution.student(0.9, 19), 1e-9)
  end)
end)

describe("resample.generator", function()
  it("is xorshift64*, its seed spread by splitmix64", function()
    for seed, expected in pairs { -- computed with the integers of Python 3.11
      [0] = { 0x7bbcb40d550682d0, 0xde7fe413d00cc9fd, 0xb3c638353c668c91 },
      [1] = { 0x4b46a55df3611b9b, 0xd7e1f1410e763ef4, 0x5f14ec66975f9b06 },
      [42] = { 0x31b0ece7c4f697a2, 0x9008a3b1cb686f03, 0x7c7173abd97be16f },
      [-1] = { 0x079ce65d09240e13, 0x1587f139eb004b7f, 0x3190cf0b897a2433 },
    } do
      local generator = resample.generator(seed)
      for _, bits in ipairs(expected) do
        assert.equal(bits, generator.bits())
      end
    end
    assert.equal(0.1941059175341826, resample.generator(42).uniform())
  end)

  it("spreads evenly, and normally", function()
    local generator, counts = resample.generator(3), {}
    for _ = 1, 60000 do
      local k = generator.below(6)
      counts[k] = (counts[k] or 0) + 1
    end
    assert.equal(6, #counts)
    local squares = 0 -- Pearson's chi squared with 5 degrees of freedom: 20.5 once in a thousand
    for k = 1, 6 do squares = squares + (counts[k] - 10000) ^ 2 / 10000 end
    assert.is_true(squares < 20.5, squares)
    local sum, square, beyond = 0, 0, 0
    for _ = 1, 40000 do
      local x = generator.normal()
      sum, square = sum + x, square + x * x
      beyond = beyond + (math.abs(x) > 1.96 and 1 or 0)
    end
    assert.near(0, sum / 40000, 4 / 200)
    assert.near(1, square / 40000, 4 * math.sqrt(2) / 200)
    assert.near(0.05, beyond / 40000, 4 * 0.218 / 200)
  end)

  it("is alone with its seed", function()
    local a, b = resample.generator(9), resample.generator(9)
    local first = a.bits()
    assert.not_equal(first, a.bits())
    assert.equal(first, b.bits())
  end)

  it("refuses seeds that are no integers", function()
    assert.error_matches(function() resample.generator(1.5) end,
      "bad seed: an integer wanted, got 1.5")
    assert.error_matches(function() resample.generator() end,
      "bad seed: an integer wanted, got nil")
  end)
end)

describe("resample.bootstrap", function()
  it("gives the mean's interval that scipy gives", function()
    local b = resample.bootstrap(values, "mean")
    assert.near(0.00605, b.estimate, 1e-15)
    -- scipy.stats.bootstrap, percentile, a million resamples: 0.0025 to 0.0095.
    assert.near(0.0025, b.ci.low, 1e-4)
    assert.near(0.0095, b.ci.high, 1e-4)
    assert.same({ 1, 10000, 1 }, { b.seed, b.resamples, b.block })
  end)

  it("expands it for few values", function()
    local b = resample.bootstrap(values, "mean", { expand = true })
    -- numpy: percentiles 1.588 and 98.412 of two million resamples' means; 0.01588 is
    -- scipy's norm.cdf(-sqrt(20/19) * t.ppf(0.975, 19)).
    assert.near(0.00215, b.ci.low, 1.2e-4)
    assert.near(0.00980, b.ci.high, 1.2e-4)
  end)

  it("gives the exact interval of the median", function()
    -- The median of a resample of n is at most the k-th value with the probability that a binomial
    -- variable of n and k/n is above n/2. scipy.stats.binom.sf: for n = 15, 0.0042 at k = 3 and
    -- 0.02545 at k = 4, so the 2.5 % percentile is the 4th value, and the 12th at the other end;
    -- for n = 21, 0.0183 at 6 and 0.0557 at 7: 7th and 15th.
    for seed = 1, 5 do
      local list = { 3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 97, 93, 23, 84, 62, 64, 33, 83, 27, 95, 50 }
      local sorted = table.move(list, 1, 21, 1, {})
      table.sort(sorted)
      local b = resample.bootstrap(list, "median", { seed = seed })
      assert.same({ sorted[7], sorted[15] }, { b.ci.low, b.ci.high })
      assert.equal(sorted[11], b.estimate)
    end
  end)

  it("takes any function, and agrees with itself", function()
    local function middle(sample)
      local sorted = table.move(sample, 1, #sample, 1, {})
      table.sort(sorted)
      return (sorted[10] + sorted[11]) / 2
    end
    local a = resample.bootstrap(values, middle, { resamples = 500 })
    local b = resample.bootstrap(values, "median", { resamples = 500 })
    assert.same(a, b)
  end)

  it("depends on its seed alone", function()
    local function with(seed)
      return resample.bootstrap(values, "mean", { seed = seed, resamples = 200 }).ci
    end
    assert.same(with(4), with(4))
    assert.not_same(with(4), with(5))
  end)

  it("draws blocks where values are correlated", function()
    local random, wave, x = resample.generator(2), {}, 0
    for i = 1, 125 do
      x = 0.8 * x + 0.6 * random.normal()
      wave[i] = x
    end
    local alone = resample.bootstrap(wave, "mean", { resamples = 2000 })
    local blocks = resample.bootstrap(wave, "mean", { resamples = 2000, rho = 0.8 })
    assert.same({ 1, 5 }, { alone.block, blocks.block })
    assert.equal(1, resample.bootstrap(wave, "mean", { resamples = 1, rho = 0.1 }).block)
    -- Sums of 5 neighbours vary by 1 + 2 (4/5 rho + 3/5 rho^2 + 2/5 rho^3 + 1/5 rho^4) = 3.62
    -- times as much as those of 5 strangers: intervals are wider by its root.
    local wider = (blocks.ci.high - blocks.ci.low) / (alone.ci.high - alone.ci.low)
    assert.near(1.90, wider, 0.2)
  end)

  it("keeps neighbours together, and stays within the series", function()
    local list = {}
    for i = 1, 27 do list[i] = i end
    resample.bootstrap(list, function(sample)
      assert.equal(27, #sample)
      for i = 1, 27, 3 do
        assert.equal(sample[i] + 2, sample[i + 2])
        assert.is_true(sample[i] >= 1 and sample[i + 2] <= 27)
      end
      return sample[1]
    end, { rho = 0.5, resamples = 300 })
  end)

  it("takes constant values, and one", function()
    local b = resample.bootstrap({ 7, 7, 7 }, "mean", { resamples = 50, expand = true })
    assert.same({ 7.0, 7.0, 7.0 }, { b.estimate, b.ci.low, b.ci.high })
    b = resample.bootstrap({ 3 }, "median", { resamples = 5 })
    assert.same({ 3.0, 3.0, 3.0 }, { b.estimate, b.ci.low, b.ci.high })
  end)

  it("refuses what it can't use", function()
    assert.error_matches(function() resample.bootstrap({}, "mean") end, "1 wanted at the least")
    assert.error_matches(function() resample.bootstrap({ 1 }, "mean", { expand = true }) end,
      "bad values: 2 wanted at the least, got 1")
    assert.error_matches(function() resample.bootstrap({ 1, 2 }, "mode") end,
      "bad statistic: 'mean', 'median' or a function wanted, got mode")
    assert.error_matches(function() resample.bootstrap({ 1 }, "mean", { seed = "x" }) end,
      "bad seed: an integer wanted, got x")
    assert.error_matches(function() resample.bootstrap({ 1 }, "mean", { resamples = 0 }) end,
      "bad resamples: a whole number above 0 wanted, got 0")
  end)
end)
