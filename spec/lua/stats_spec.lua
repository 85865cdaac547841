--- The statistics, against values that NumPy 2.4.6 and SciPy 1.17.1 computed, and against series of
--- which the truth is known.
local detect = require "tidelock.detect"
local fit = require "tidelock.fit"
local random = require "spec.series"
local resample = require "tidelock.resample"
local stats = require "tidelock.stats"
local verdict = require "tidelock.verdict"

local function close(wanted, got)
  assert.is_true(math.abs(got - wanted) <= 1e-12 * math.abs(wanted),
    ("wanted %.17g, got %.17g"):format(wanted, got))
end

describe("stats.summary", function()
  it("has NumPy's median, mean and quartiles, SciPy's median_abs_deviation", function()
    local s = stats.summary { 10.2, 9.7, 11.4, 10.0, 10.9, 9.9, 10.4, 18.0, 10.1, 10.3, 9.8, 10.6 }
    close(10.25, s.median)
    close(10.941666666666665, s.mean)
    close(9.975, s.q1)
    close(10.675, s.q3)
    close(0.5189099999999994, s.mad)
    assert.same({ 12, 9.7, 18.0 }, { s.n, s.min, s.max })
    assert.same({ 0, 1, { 8 } }, { s.mild, s.severe, s.outliers })
  end)

  it("has the interval that the binomial distribution gives: ranks 6 and 15 of 20", function()
    local values = {}
    for i = 1, 20 do
      values[i] = i * 7 % 20 + 1 -- 1 to 20, in an order without correlation
    end
    local s = stats.summary(values)
    assert.equal(0, s.rho)
    assert.same({ low = 6, high = 15 }, s.ci)
    close(4.5 / 10.5, s.rel_ci)
    assert.equal(20, s.n_eff)
  end)

  it("takes the range where values are few, and says so of equal ones", function()
    assert.same({ low = 1, high = 3 }, stats.summary({ 2, 3, 1 }).ci)
    local s = stats.summary { 5, 5, 5, 5, 5, 5, 5, 5 }
    assert.same({ 5, 0, 0, 0, 8 }, { s.median, s.mad, s.rel_ci, s.rho, s.n_eff })
    assert.same({ 0, 0 }, { s.mild, s.severe })
  end)

  it("takes what rounding does to differences of clock readings for no spread", function()
    local values = {}
    for i = 1, 100 do
      values[i] = 7.843e-6 + (i > 50 and 2e-15 or 0) + (i == 80 and 4e-15 or 0)
    end
    local s = stats.summary(values)
    assert.same({ 0, 0, 0 }, { s.rho, s.mild, s.severe })
  end)

  it("refuses what has no median", function()
    assert.has_error(function() stats.summary {} end, "stats.summary: at least one value wanted")
    assert.has_error(function() stats.summary { 1, 0 / 0 } end,
      "stats.summary: value 2 is not a number")
  end)

  it("covers the true median in 93 % to 99 % of 2000 series, correlated or not", function()
    for _, n in ipairs { 31, 107 } do
      for _, rho in ipairs { 0, 0.5, 0.8 } do
        local draw, hits = random.normal(2000 + n), 0
        for _ = 1, 2000 do
          local ci = stats.summary(random.autoregressive(draw, n, rho)).ci
          hits = hits + (ci.low <= 0 and 0 <= ci.high and 1 or 0)
        end
        assert.is_true(hits >= 1860 and hits <= 1980,
          ("n %d, correlation %g, seed %d: %d of 2000"):format(n, rho, 2000 + n, hits))
      end
    end
  end)
end)

describe("fit.theil_sen", function()
  it("has SciPy's theilslopes, method joint, and is not moved by a wild point", function()
    local line = fit.theil_sen({ 0, 1, 2, 3, 4, 5, 6 }, { 1.1, 3.2, 4.8, 7.3, 8.9, 30.0, 13.2 })
    close(2.05, line.slope)
    assert.is_true(math.abs(line.intercept - 1.1) < 1e-12)
    assert.is_true(math.abs(line.largest - 18.65) < 1e-12)
  end)

  it("finds a line exactly", function()
    local line = fit.theil_sen({ 1, 2, 4, 8 }, { 3, 5, 9, 17 })
    assert.same({ 2, 1, 0, 0, 1 }, { line.slope, line.intercept, line.residual, line.largest,
      line.r2 })
    assert.has_error(function() fit.theil_sen({ 1, 1 }, { 2, 3 }) end,
      "fit.theil_sen: points of at least two different x wanted, got 2 x and 2 y")
  end)
end)

describe("detect.trend", function()
  it("has the Z of Mann and Kendall: S of SciPy's kendalltau over its deviation", function()
    local y = { 1.0, 1.2, 0.9, 1.3, 1.5, 1.4, 1.6, 1.9, 1.7, 2.0, 2.2, 2.1 }
    local trend = detect.trend(y)
    close(3.771490147280579, trend.z)
  end)

  it("raises no alarm in 500 series without one, correlated or not, and sees 3 %", function()
    local draw = random.normal(11)
    for _, rho in ipairs { 0, 0.5, 0.8 } do
      local alarms, found = 0, 0
      for _ = 1, 500 do
        local flat, rising = random.autoregressive(draw, 60, rho), {}
        for i = 1, 60 do
          flat[i] = 1 + 0.005 * flat[i]
          rising[i] = flat[i] + 0.03 * i / 60
        end
        local a, b = detect.trend(flat), detect.trend(rising)
        alarms = alarms + (math.abs(a.z) > 3.29 and math.abs(a.total) > 0.005 and 1 or 0)
        found = found + (b.z > 3.29 and b.total > 0.005 and 1 or 0)
      end
      assert.is_true(alarms <= 2, ("correlation %g: %d of 500 alarms"):format(rho, alarms))
      assert.is_true(found >= (rho < 0.8 and 450 or 80), ("correlation %g: %d of 500"):format(rho,
        found))
    end
  end)
end)

describe("detect.modes", function()
  it("finds two levels and their shares", function()
    local draw, values = random.normal(12), {}
    for i = 1, 100 do
      values[i] = (i % 4 == 0 and 1.2 or 1) + 0.005 * draw()
    end
    local modes = detect.modes(values)
    assert.is_true(modes.share > 0.95 and modes.gap > 0.1)
    assert.equal(0.75, modes.low_share)
    assert.is_true(math.abs(modes.low - 1) < 0.01 and math.abs(modes.high - 1.2) < 0.01)
    assert.is_nil(detect.modes { 3, 3, 3 })
  end)

  it("says less than 0.85 of 1000 series with one", function()
    local draw, most = random.normal(13), 0
    for i = 1, 1000 do
      local values = {}
      for j = 1, 100 do
        local x = draw()
        values[j] = i % 3 == 0 and x or i % 3 == 1 and math.exp(0.3 * x) or math.abs(x)
      end
      most = math.max(most, detect.modes(values).share)
    end
    assert.is_true(most < 0.85, ("the most: %.3f"):format(most))
  end)
end)

--- Host times of launches by the model of a queue: launch i waits until launch i - depth has run.
local function queue(count, depth, launch, kernel, noise)
  local ends, costs, now, free = {}, {}, 0, 0
  for i = 1, count do
    local begun = now
    now = math.max(now, ends[i - depth] or 0) + launch * noise()
    free = math.max(free, now) + kernel
    ends[i], costs[i] = free, now - begun
  end
  return costs
end

--- Jitter of 5 to 20 %, and spikes of ten times in one of a hundred.
local function jitter(draw, seed)
  local share = 0.05 + 0.15 * (seed % 4) / 3
  return function()
    local spike = math.abs(draw()) > 2.576 and 10 or 1
    return math.exp(share * draw()) * spike
  end
end

describe("detect.knee", function()
  local cases = { -- launches, depth, launch, kernel
    { "question 1", 2000, 1024, 20e-6, 5e-3, 10 },
    { "4.5 us against 190 us", 3000, 1024, 4.5e-6, 190e-6, 10 },
    { "half of the kernel's time", 4000, 1024, 4.83e-6, 10e-6 },
    { "50 launches before the end", 1080, 1024, 20e-6, 5e-3, 10 },
  }

  for _, case in ipairs(cases) do
    local name, count, depth, launch, kernel, within = table.unpack(case)
    it("is found in 200 of 200 noisy loops: " .. name, function()
      for seed = 1, 200 do
        local costs = queue(count, depth, launch, kernel, jitter(random.normal(seed), seed))
        local knee = detect.knee(costs, kernel, depth)
        assert.is_truthy(knee, "seed " .. seed)
        if within then
          assert.is_true(math.abs(knee.first - knee.predicted) <= within,
            ("seed %d: %d, predicted %d"):format(seed, knee.first, knee.predicted))
        end
      end
    end)
  end

  it("raises no alarm in 200 loops that the launches bound and 200 that are too short", function()
    for seed = 1, 200 do
      local noise = jitter(random.normal(seed), seed)
      assert.is_nil(detect.knee(queue(2000, 1024, 10e-6, 5e-6, noise), 5e-6, 1024), "seed " .. seed)
      assert.is_nil(detect.knee(queue(1000, 1024, 20e-6, 5e-3, noise), 5e-3, 1024), "seed " .. seed)
    end
  end)

  it("is predicted by the depth and the ratio of the two times", function()
    assert.same({ 1029, 1049, 1981 }, { detect.predicted_knee(1024, 0.004, 1),
      detect.predicted_knee(1024, 4.5, 190), detect.predicted_knee(1024, 0.483, 1) })
    assert.is_nil(detect.predicted_knee(1024, 1, 1))
  end)
end)

describe("resample", function()
  it("draws every number as often as another, and again for the same seed", function()
    local next, again, count = resample.generator(5), resample.generator(5), {}
    for _ = 1, 60000 do
      local i = next(6)
      assert.equal(i, again(6))
      count[i] = (count[i] or 0) + 1
    end
    for i = 1, 6 do
      assert.is_true(math.abs(count[i] - 10000) < 400, i .. ": " .. count[i])
    end
    assert.is_nil(count[0] or count[7])
  end)

  it("covers the true mean of 20 values in 93 % to 97 % of 1000 series", function()
    local draw, hits = random.normal(21), 0
    for i = 1, 1000 do
      local low, high = resample.mean(random.autoregressive(draw, 20, 0),
        { seed = i, resamples = 500 })
      hits = hits + (low <= 0 and 0 <= high and 1 or 0)
    end
    assert.is_true(hits >= 925 and hits <= 975, hits .. " of 1000")
  end)
end)

describe("verdict.of", function()
  local function rounds(ratio, noise, seed)
    local draw, logs = random.normal(seed), {}
    for i = 1, 20 do
      logs[i] = math.log(ratio) + noise * draw()
    end
    return logs
  end

  it("says same, faster and slower where the rounds say so", function()
    assert.equal("SAME", verdict.of(rounds(1, 0.002, 1)).verdict)
    assert.equal("FASTER", verdict.of(rounds(0.9, 0.01, 2)).verdict)
    local slower = verdict.of(rounds(1.1, 0.01, 3))
    assert.equal("SLOWER", slower.verdict)
    assert.is_true(math.abs(slower.ratio - 1.1) < 0.01 and slower.needed == nil)
  end)

  it("says how many rounds would do where they do not", function()
    local v = verdict.of(rounds(1, 0.05, 4))
    assert.equal("UNRESOLVED", v.verdict)
    local half = math.log(v.ci.high / v.ci.low) / 2
    assert.equal(math.ceil(20 * (half / 0.01) ^ 2), v.needed)
  end)

  it("calls the same thing different in at most 5 % of 500 comparisons, drift or not", function()
    for _, drift in ipairs { 0, 0.03 } do
      for _, noise in ipairs { 0.003, 0.02 } do
        local false_alarms = 0
        for seed = 1, 500 do
          local draw, logs, turn = random.normal(7000 + seed), {}, 0
          for round = 1, 20 do
            local times = {}
            for place = 1, 2 do
              local which = round % 2 == 1 and place or 3 - place -- ABBA
              times[which] = (1 + drift * turn / 40) * math.exp(noise * draw())
              turn = turn + 1
            end
            logs[round] = math.log(times[2] / times[1])
          end
          local word = verdict.of(logs, { seed = seed, resamples = 500 }).verdict
          false_alarms = false_alarms + ((word == "FASTER" or word == "SLOWER") and 1 or 0)
        end
        assert.is_true(false_alarms <= 25,
          ("drift %g, noise %g: %d of 500"):format(drift, noise, false_alarms))
      end
    end
  end)
end)
