local resample = require "tidelock.resample"
local stats = require "tidelock.stats"

-- What was computed elsewhere: by numpy 2.4.6 and scipy 1.17.1, the functions named at each.
local uneven = { 4.12, 4.31, 4.05, 4.27, 4.27, 4.44, 4.18, 4.09, 4.52, 4.33, 4.21, 4.36, 4.11, 5.97,
  4.25, 4.30, 4.16, 4.40, 4.22, 4.28, 4.85, 4.07, 4.27 }
local wavy = { 10.0, 10.4, 10.7, 10.5, 10.9, 11.2, 11.0, 10.6, 10.1, 9.8, 9.9, 9.5, 9.2, 9.6, 9.9,
  10.2, 10.3, 10.0, 9.7, 9.4, 9.3, 9.6, 10.1, 10.5, 10.8, 10.6 }

local function near(expected, got)
  assert.near(expected, got, 1e-12 * math.max(1, math.abs(expected)))
end

--- A first-order autoregression of normal values, mean 0 and deviation 1.
local function autoregression(random, n, rho)
  local values, value = {}, random.normal()
  for i = 1, n do
    values[i] = value
    value = rho * value + math.sqrt(1 - rho * rho) * random.normal()
  end
  return values
end

describe("stats.summary", function()
  it("agrees with numpy and scipy", function()
    local s = stats.summary(uneven)
    assert.equal(23, s.n)
    assert.equal(4.27, s.median) -- numpy.median
    near(4.349130434782608, s.mean) -- numpy.mean
    near(4.17, s.q1) -- numpy.percentile 25
    near(4.345, s.q3) -- numpy.percentile 75
    near(0.133434, s.mad) -- 1.4826 * scipy.stats.median_abs_deviation
    assert.same({ 4.05, 5.97 }, { s.min, s.max })
    -- Fences from the quartiles: 3.9075 to 4.6075, and 3.645 to 4.87.
    assert.same({ 1, 1, { 14, 21 } }, { s.mild, s.severe, s.outliers })
    -- Ranks 7 and 17: scipy.stats.binom has 96.5 % for them, and 90.7 % for 8 and 16.
    assert.same({ low = 4.18, high = 4.33, range = false }, s.ci)
    near(0.075 / 4.27, s.rel_ci)
    assert.equal(0.0, s.rho) -- of -0.34
    assert.equal(23.0, s.n_eff)
  end)

  it("gives the correlation that numpy gives, a spike or not", function()
    -- numpy.correlate of the deviations, at 1 over at 0; for `uneven` after numpy.clip to the
    -- severe fences (without it: -0.197).
    near(0.8131208835906824, stats.autocorrelation(wavy))
    near(-0.34162696584338076, stats.autocorrelation(uneven))
    local spiked = table.move(wavy, 1, #wavy, 1, {})
    spiked[6] = 500
    assert.is_true(stats.autocorrelation(spiked) > 0.5)
    local open = { low = -math.huge, high = math.huge }
    assert.is_true(stats.autocorrelation(spiked, open) < 0.05)
  end)

  it("takes the range where values are too correlated, and says so", function()
    local s = stats.summary(wavy)
    assert.same({ low = 9.2, high = 11.2, range = true }, s.ci)
    near(26 / 39, s.n_eff) -- rho beyond the greatest that is used: 0.95
  end)

  it("takes the range of fewer than 6 values", function()
    for n = 1, 5 do
      local s = stats.summary(table.move(uneven, 1, n, 1, {}))
      assert.same({ low = s.min, high = s.max, range = true }, s.ci)
    end
    -- 6 independent values: their range is a 96.9 % interval, but it is the range all the same.
    assert.is_true(stats.summary({ 1, 3, 2, 4, 2, 3 }).ci.range)
    local s = stats.summary { 7 }
    assert.same({ 7, 7, 7, 7, 0.0, 0.0 }, { s.median, s.mean, s.q1, s.q3, s.mad, s.rel_ci })
  end)

  it("has nothing to say about a constant series, zeros too", function()
    for _, value in ipairs { 0.1, 0 } do
      local values = {}
      for i = 1, 50 do values[i] = value end
      local s = stats.summary(values)
      assert.same({ value, value, value, value }, { s.median, s.mean, s.ci.low, s.ci.high })
      assert.same({ 0.0, 0.0, 0.0, 0, 0, {} },
        { s.rel_ci, s.mad, s.rho, s.mild, s.severe, s.outliers })
      assert.is_false(s.ci.range)
    end
  end)

  it("does not call the rounding of time stamps an outlier", function()
    local values = {}
    for i = 1, 50 do values[i] = 7e-6 end
    values[9] = 7e-6 * (1 + 1e-9)
    assert.equal(0, stats.summary(values).severe)
    values[9] = 7e-6 * (1 + 1e-5)
    assert.same({ 9 }, stats.summary(values).outliers)
  end)

  it("depends on units and origin as it should, and on order only by correlation", function()
    local random = resample.generator(11)
    for n = 6, 60, 9 do
      local values, scaled, turned = autoregression(random, n, 0.5), {}, {}
      for i, value in ipairs(values) do
        values[i] = 100 + value
        scaled[i], turned[n + 1 - i] = 2.0 ^ -20 * values[i], values[i]
      end
      local s, t, u = stats.summary(values), stats.summary(scaled), stats.summary(turned)
      assert.equal(2.0 ^ -20 * s.median, t.median)
      assert.equal(2.0 ^ -20 * s.ci.low, t.ci.low)
      near(s.rel_ci, t.rel_ci)
      near(s.rho, t.rho)
      assert.same({ s.median, s.ci, s.q1, s.mad }, { u.median, u.ci, u.q1, u.mad })
      near(s.n_eff, u.n_eff)
      assert.is_true(s.ci.low <= s.median and s.median <= s.ci.high)
      assert.is_true(s.min <= s.q1 and s.q1 <= s.median and s.median <= s.q3 and s.q3 <= s.max)
    end
  end)

  it("leaves the series as it was", function()
    local copy = table.move(uneven, 1, #uneven, 1, {})
    stats.summary(uneven)
    assert.same(copy, uneven)
  end)

  for text, values in pairs {
    ["bad values: 1 wanted at the least, got 0"] = {},
    ["bad values: a finite number wanted at 3, got "] = { 1, 2, 0 / 0, 4 },
    ["bad values: a finite number wanted at 2, got inf"] = { 1, math.huge },
    ["bad values: a finite number wanted at 1, got false"] = { false, 1 },
    ["bad values: a finite number wanted at 1, got 5"] = { "5" },
    ["bad values: an array of numbers wanted, got string"] = "5",
  } do
    it("refuses " .. text, function()
      local ok, message = pcall(stats.summary, values)
      assert.is_false(ok)
      assert.matches(text, message, 1, true)
    end)
  end

  it("blames the caller", function()
    local _, message = pcall(function() stats.summary {} end)
    assert.matches("stats_spec.lua:%d+: bad values", message)
  end)
end)

-- With SHOW=1 in the environment the simulations print the rates that they found.
describe("the interval of the median", function()
  -- 2000 runs each, seeds 1 to 2000: between 93 and 99 % of the intervals hold the true median.
  for _, rho in ipairs { 0, 0.5, 0.8 } do
    it("covers it at a correlation of " .. rho, function()
      local sizes, held = { 20, 47, 100, 300 }, { 0, 0, 0, 0 }
      for seed = 1, 2000 do
        local series = autoregression(resample.generator(seed), 300, rho)
        for k, n in ipairs(sizes) do
          local ci = stats.summary(table.move(series, 1, n, 1, {})).ci
          held[k] = held[k] + (ci.low <= 0 and ci.high >= 0 and 1 or 0)
        end
      end
      for k, n in ipairs(sizes) do
        local share = held[k] / 2000
        assert.is_true(share >= 0.93 and share <= 0.99, ("n = %d: %.4f"):format(n, share))
        if os.getenv("SHOW") then print(rho, n, share) end
      end
    end)

    it("covers it where sampling stops by the interval's width, at " .. rho, function()
      local held, stopped = 0, {}
      for seed = 2001, 3000 do
        local random = resample.generator(seed)
        local values, value = {}, random.normal()
        local n, s
        repeat
          n = stats.checkpoint(n)
          for i = #values + 1, n do
            values[i] = 1 + 0.005 * value
            value = rho * value + math.sqrt(1 - rho * rho) * random.normal()
          end
          s = stats.summary(values)
        until s.rel_ci <= 0.005
        held = held + (s.ci.low <= 1 and s.ci.high >= 1 and 1 or 0)
        stopped[#stopped + 1] = n
      end
      local share = held / 1000
      assert.is_true(share >= 0.93 and share <= 0.99, ("%.4f"):format(share))
      if os.getenv("SHOW") then print("stop", rho, share, stats.median(stopped)) end
    end)
  end
end)

describe("stats.precision", function()
  it("is that of the estimate that is asked for", function()
    local s = stats.summary(uneven)
    assert.equal(s.rel_ci, stats.precision(uneven))
    assert.equal(s.rel_ci, stats.precision(uneven, "median"))
    -- 1.96 * numpy.std(ddof=1) / sqrt(23) / numpy.mean; the series is not correlated.
    near(0.03694494674355709, stats.precision(uneven, "mean"))
    -- The least of the first 11 is 4.05, and of all.
    assert.equal(0.0, stats.precision(uneven, "min"))
    near(1 / 9, stats.precision({ 10, 11, 12, 9, 13, 14 }, "min"))
    assert.equal(0.0, stats.precision({ 5, 5, 5 }, "mean"))
    assert.equal(math.huge, stats.precision({ 5 }, "mean"))
    assert.equal(math.huge, stats.precision({ 5 }, "min"))
  end)

  it("covers the mean of correlated series", function()
    local held = 0
    for seed = 1, 2000 do
      local values = autoregression(resample.generator(seed), 60, 0.5)
      for i = 1, #values do
        values[i] = 1 + 0.01 * values[i]
      end
      local mean = stats.summary(values).mean
      held = held + (math.abs(mean - 1) <= stats.precision(values, "mean") * mean and 1 or 0)
    end
    local share = held / 2000
    assert.is_true(share >= 0.93 and share <= 0.99, ("%.4f"):format(share))
  end)
end)

describe("stats.inflation", function()
  it("is 1 for independent values, and grows with correlation to its limit", function()
    assert.equal(1, stats.inflation(5, 0.9))
    assert.equal(1.0, stats.inflation(100, -0.5))
    local before = 1
    for r = 0, 1, 0.05 do
      local factor = stats.inflation(1000, r)
      assert.is_true(factor > before or factor == 39 or math.abs(factor - 39) < 1e-9)
      before = factor
    end
    near(39, before)
    -- n r + 1 = 51 over 96, and its standard error 0.0847: rho 0.6160.
    assert.near(4.2079, stats.inflation(100, 0.5), 1e-4)
  end)
end)

describe("stats.checkpoint", function()
  it("grows by half from 20", function()
    local n, list = nil, {}
    for i = 1, 7 do
      n = stats.checkpoint(n)
      list[i] = n
    end
    assert.same({ 20, 31, 47, 71, 107, 161, 242 }, list)
    assert.equal(11, stats.checkpoint(7)) -- from what a policy begins with, too
  end)
end)
