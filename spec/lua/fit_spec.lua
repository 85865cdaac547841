local fit = require "tidelock.fit"
local resample = require "tidelock.resample"

-- Seven sizes twice, in mixed order; the tenth value is 23 too high.
local x = { 1, 2, 4, 8, 16, 32, 64, 4, 1, 16, 64, 2, 8, 32 }
local y = { 32.1, 38.9, 53.2, 81.4, 136.8, 249.3, 473.2, 52.8, 31.8, 160.0, 472.9, 39.2, 80.9,
  249.1 }

describe("fit.theil_sen", function()
  it("agrees with scipy", function()
    -- scipy 1.17.1: stats.theilslopes(y, x, method="joint"); 1.4826 * median_abs_deviation.
    local slope, intercept, residual = fit.theil_sen(x, y)
    assert.near(7.001875, slope, 1e-12)
    assert.near(25.06, intercept, 1e-11)
    assert.near(0.2631615, residual, 1e-11)
  end)

  it("recovers 7 us under 25 us of fixed cost from noisy rounds", function()
    local worst, sum = 0, 0
    for seed = 1, 50 do
      local random, ks, times = resample.generator(seed), {}, {}
      for _ = 1, 10 do
        for power = 0, 6 do
          ks[#ks + 1] = 2 ^ power
          local spike = random.uniform() < 0.03 and 100 or 0
          times[#times + 1] = 25 + 7 * 2 ^ power + 0.3 * random.normal() + spike
        end
      end
      local slope = fit.theil_sen(ks, times)
      worst, sum = math.max(worst, math.abs(slope - 7)), sum + slope / 50
    end
    assert.is_true(worst < 0.01, worst)
    assert.near(7, sum, 0.002)
  end)

  it("is exact on a line, and carries units", function()
    local slope, intercept, residual = fit.theil_sen({ 0, 1, 2, 5 }, { 3, 5, 7, 13 })
    assert.same({ 2.0, 3.0, 0.0 }, { slope, intercept, residual })
    slope, intercept = fit.theil_sen({ 0, 1, 2 }, { 4, 4, 4 })
    assert.same({ 0.0, 4.0 }, { slope, intercept })
  end)

  it("refuses what has no slope", function()
    assert.error_matches(function() fit.theil_sen({ 1, 1 }, { 1, 2 }) end,
      "bad points: two different values of x wanted")
    assert.error_matches(function() fit.theil_sen({ 1, 2 }, { 1, 2, 3 }) end,
      "bad points: 2 values of x for 3 of y")
    assert.error_matches(function() fit.theil_sen({ 1 }, { 1 }) end,
      "bad values: 2 wanted at the least, got 1")
    local _, message = pcall(function() fit.theil_sen({ 1, 0 / 0 }, { 1, 2 }) end)
    assert.matches("fit_spec.lua:%d+: bad values: a finite number wanted at 2", message)
  end)
end)

describe("fit.line", function()
  it("says how well it fits", function()
    local line = fit.line(x, y)
    assert.near(0.9983011919181478, line.r2, 1e-12) -- numpy: 1 - sum(res^2)/sum((y - mean)^2)
    assert.equal(10, line.largest.at)
    assert.near(22.91, line.largest.value, 1e-10)
    assert.near(7.001875, line.slope, 1e-12)
    assert.is_nil(fit.line({ 1, 2 }, { 5, 5 }).r2)
    assert.equal(1.0, fit.line({ 1, 2, 3 }, { 5, 6, 7 }).r2)
  end)
end)
