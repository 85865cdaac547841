local detect = require "tidelock.detect"
local resample = require "tidelock.resample"
local stats = require "tidelock.stats"

local rising = { 1.00, 1.02, 0.99, 1.03, 1.03, 1.05, 1.02, 1.06, 1.05, 1.08, 1.07, 1.07, 1.10,
  1.09, 1.12, 1.10, 1.13, 1.15, 1.12, 1.16 }

--- n values of a function of a generator and the place.
local function series(seed, n, value_of)
  local random, values = resample.generator(seed), {}
  for i = 1, n do values[i] = value_of(random, i) end
  return values
end

--- A first-order autoregression about 1.
local function correlated(seed, n, deviation, rho)
  local x
  return series(seed, n, function(random)
    x = x and rho * x + math.sqrt(1 - rho * rho) * random.normal() or random.normal()
    return 1 + deviation * x
  end)
end

local function count(runs, found)
  local n = 0
  for seed = 1, runs do
    n = n + (found(seed) and 1 or 0)
  end
  return n
end

describe("detect.mann_kendall", function()
  it("agrees with scipy", function()
    -- scipy 1.17.1: stats.kendalltau(range(20), rising, method="asymptotic") has p of
    -- Z = 5.207556439232955 = 160 / sqrt(944): ties corrected, and no correction for continuity.
    assert.near(159 / math.sqrt(944), detect.mann_kendall(rising), 1e-12)
    assert.near(160 / math.sqrt(944), 5.207556439232955, 1e-12)
  end)

  it("counts pairs as the definition does", function()
    for seed = 1, 40 do
      local n = 1 + seed
      local values = series(seed, n, function(random) return random.below(1 + n // 2) end)
      local score, variance, ties = 0, n * (n - 1) * (2 * n + 5), {}
      for i = 1, n do
        ties[values[i]] = (ties[values[i]] or 0) + 1
        for j = i + 1, n do
          score = score + (values[j] > values[i] and 1 or values[j] < values[i] and -1 or 0)
        end
      end
      for _, t in pairs(ties) do variance = variance - t * (t - 1) * (2 * t + 5) end
      score = score - (score > 0 and 1 or score < 0 and -1 or 0)
      assert.near(variance > 0 and score / math.sqrt(variance / 18) or 0,
        detect.mann_kendall(values), 1e-12)
    end
    assert.equal(0.0, detect.mann_kendall { 4, 4, 4, 4 })
  end)
end)

-- With SHOW=1 in the environment the simulations print the rates that they found.
describe("detect.drift", function()
  it("agrees with scipy", function()
    local drift = detect.drift(rising)
    -- stats.theilslopes: 0.008; times 20 over numpy.median. What a cubic leaves (numpy polyfit) has
    -- a correlation of -0.65: nothing to correct.
    assert.near(159 / math.sqrt(944), drift.z, 1e-12)
    assert.near(0.008, drift.slope, 1e-12)
    assert.near(0.14953271028037332, drift.change, 1e-12)
  end)

  it("is not seen in steady series: at most 1 of 100, correlated or not", function()
    local alarms = 0
    for _, n in ipairs { 20, 47, 100, 300 } do
      for _, rho in ipairs { 0, 0.5, 0.8 } do
        local found = count(125, function(seed)
          return detect.drift(correlated(seed, n, 0.01, rho))
        end)
        assert.is_true(found <= 5, ("n = %d, rho = %g: %d of 125"):format(n, rho, found))
        alarms = alarms + found
      end
    end
    assert.is_true(alarms <= 15, alarms .. " of 1500")
    if os.getenv("SHOW") then print("drift alarms of 1500", alarms) end
  end)

  it("is seen where Mann and Kendall alone would call half of steady series drifting", function()
    local raw = count(200, function(seed)
      return math.abs(detect.mann_kendall(correlated(seed, 100, 0.01, 0.8))) > 3.29
    end)
    assert.is_true(raw > 30, raw .. " of 200: the correction has nothing to do")
  end)

  it("finds 3 % in 100 samples always, exponential or linear, up or down", function()
    for _, sign in ipairs { 1, -1 } do
      for _, shape in ipairs {
        function(i) return 1 - math.exp(-i / 25) end,
        function(i) return i / 100 end,
      } do
        local found = count(50, function(seed)
          local drift = detect.drift(series(seed, 100, function(random, i)
            return 1 + 0.003 * random.normal() + sign * 0.03 * shape(i)
          end))
          return drift and drift.change * sign > 0.005
        end)
        assert.equal(50, found)
      end
    end
  end)

  it("lets what is certain but small pass", function()
    local values = series(1, 100, function(random, i)
      return 1 + 3e-5 * i + 1e-4 * random.normal()
    end)
    assert.is_true(detect.mann_kendall(values) > 10)
    assert.is_nil(detect.drift(values))
  end)

  it("takes 10,000 samples by stretches", function()
    local values = series(1, 10000, function(random, i)
      return 1 + 1e-6 * i + 1e-3 * random.normal()
    end)
    assert.near(1e-6, detect.drift(values).slope, 2e-8)
  end)

  it("is nothing in constant and in short series", function()
    local values = series(1, 30, function() return 2 end)
    assert.is_nil(detect.drift(values))
    assert.is_nil(detect.drift { 1, 2, 3, 4, 5, 6, 7, 8, 9 })
  end)
end)

describe("detect.modes", function()
  it("is exact on two levels", function()
    local values = series(1, 40, function(_, i) return i % 4 == 0 and 6 or 5 end)
    assert.same({ medians = { 5, 6 }, shares = { 0.75, 0.25 }, eta = 1.0, gap = 0.2 },
      detect.modes(values))
    assert.is_nil(detect.modes(values, 0.6)) -- 1 apart are not two steps of a clock of 0.6
  end)

  it("is not seen in smooth series, nor in spikes: at most 1 of 1000", function()
    local found = 0
    for name, value_of in pairs {
      normal = function(random) return 10 + random.normal() end,
      lognormal = function(random) return math.exp(0.3 * random.normal()) end,
      half = function(random) return 10 + math.abs(random.normal()) end,
      even = function(random) return 1 + random.uniform() end,
      spiked = function(random)
        return (1 + 0.01 * random.normal()) * (random.uniform() < 0.01 and 20 or 1)
      end,
    } do
      for _, n in ipairs { 20, 47, 100, 300 } do
        local alarms = count(200, function(seed) return detect.modes(series(seed, n, value_of)) end)
        assert.is_true(alarms <= 2, ("%s, n = %d: %d of 200"):format(name, n, alarms))
        found = found + alarms
      end
    end
    assert.is_true(found <= 4, found .. " of 4000")
    if os.getenv("SHOW") then print("modes alarms of 4000", found) end
  end)

  it("finds a tenth at 5 % more, through spikes, in 95 of 100 series of 300", function()
    local shares = 0
    local found = count(100, function(seed)
      local modes = detect.modes(series(seed, 300, function(random)
        return (random.uniform() < 0.1 and 1.05 or 1) * (1 + 0.005 * random.normal())
          * (random.uniform() < 0.01 and 3 or 1)
      end))
      if modes then
        shares = shares + modes.shares[2]
        assert.near(1, modes.medians[1], 0.003)
        assert.near(1.05, modes.medians[2], 0.01)
      end
      return modes
    end)
    assert.is_true(found >= 95, found)
    assert.near(0.1, shares / found, 0.02)
  end)

  it("finds halves in 47 samples, always", function()
    assert.equal(100, count(100, function(seed)
      return detect.modes(series(seed, 47, function(random)
        return (random.uniform() < 0.5 and 1.03 or 1) * (1 + 0.002 * random.normal())
      end))
    end))
  end)

  it("does not take scattered slow samples for a mode", function()
    local values = series(1, 100, function(random, i)
      return i % 16 == 0 and i / 8 or 1 + 0.001 * random.normal()
    end)
    assert.is_nil(detect.modes(values)) -- six: 2, 4, 6, 8, 10, 12
    for i = 16, 96, 16 do values[i] = 6 + 0.001 * i end
    assert.near(6.056, detect.modes(values).medians[2], 1e-12)
  end)

  it("asks 20 samples, and 2 % apart", function()
    local function two(n) return series(1, n, function(_, i) return 1 + i % 2 end) end
    assert.is_nil(detect.modes(two(19)))
    assert.same({ 0.5, 0.5 }, detect.modes(two(20)).shares)
    assert.is_nil(detect.modes(series(1, 40, function(_, i) return 5 + 0.08 * (i % 2) end)))
    assert.is_nil(detect.modes(series(1, 40, function() return 5 end)))
  end)
end)

describe("detect.flags", function()
  local function codes(values, options)
    local list = {}
    for i, flag in ipairs(detect.flags(values, options)) do list[i] = flag.code end
    return table.concat(list, " ")
  end

  it("has nothing to say of steady noise: at most 1 of 100", function()
    local found = count(300, function(seed)
      return #detect.flags(correlated(seed, 47, 0.01, 0)) > 0
    end)
    assert.is_true(found <= 3, found .. " of 300")
    if os.getenv("SHOW") then print("any flag of 300", found) end
  end)

  it("tells oscillation from drift", function()
    local slow = series(1, 100, function(random, i)
      return 1 + 0.01 * math.sin(i / 3) + 0.002 * random.normal()
    end)
    assert.equal("W-OSCILLATES", codes(slow))
    assert.is_true(detect.flags(slow)[1].rho > 0.8)
    local drifting = series(1, 100, function(random, i)
      return 1 + 0.001 * i + 0.002 * random.normal()
    end)
    assert.equal("W-DRIFT", codes(drifting))
    local small = series(1, 100, function(_, i) return 1 + 0.0005 * math.sin(i / 3) end)
    assert.equal("", codes(small)) -- nobody's concern
  end)

  it("sees a slow first sample, and outliers; and leaves them where they are", function()
    local values = series(1, 100, function(random) return 1 + 0.001 * random.normal() end)
    values[1] = 3
    local flags = detect.flags(values)
    assert.same({ { code = "W-FIRSTSLOW", first = 3, ratio = 3 / stats.median(values) } }, flags)
    assert.equal(3, values[1])
    values[1], values[50] = values[50], 3 -- one elsewhere: in the counts only
    assert.equal("", codes(values))
    assert.equal(1, stats.summary(values).severe)
    values[60], values[70] = 0.5, 4
    local flag = detect.flags(values)[1]
    assert.same({ "W-OUTLIERS", 3, 0.03 }, { flag.code, flag.severe, flag.share })
    assert.equal(100, #values)
  end)

  it("does not call the rounding of a constant series a slow first sample", function()
    local values = series(1, 50, function() return 7e-6 end)
    values[1] = 7e-6 * 1.001
    assert.equal("", codes(values))
    values[1] = 7e-6 * 1.01
    assert.equal("W-FIRSTSLOW W-OUTLIERS", codes(values))
  end)

  it("calls the queue's back-pressure in enqueue times two modes", function()
    local values = series(1, 100, function(random, i)
      return (i % 5 == 0 and 5e-3 or 4e-6) * (1 + 0.1 * random.normal())
    end)
    assert.equal("W-BIMODAL", codes(values):match("W%-BIMODAL"))
  end)
end)
