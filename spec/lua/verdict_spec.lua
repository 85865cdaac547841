local resample = require "tidelock.resample"
local stats = require "tidelock.stats"
local verdict = require "tidelock.verdict"

local d = { 0.012, -0.004, 0.007, 0.021, 0.003, -0.011, 0.009, 0.015, 0.001, 0.006, -0.002,
  0.018, 0.010, 0.004, -0.007, 0.013, 0.008, 0.002, 0.011, 0.005 }

local function shifted(by, scale)
  local list = {}
  for i, value in ipairs(d) do list[i] = by + (scale or 1) * (value - 0.00605) end
  return list
end

describe("verdict.estimate", function()
  it("agrees with numpy", function()
    local e = verdict.estimate(d)
    assert.near(math.exp(0.00605), e.ratio, 1e-12)
    -- numpy, see resample_spec: 0.00215 to 0.00980, and Student's t has 0.00223 to 0.00987.
    assert.near(math.exp(0.00215), e.ci.low, 1.2e-4)
    assert.near(math.exp(0.00980), e.ci.high, 1.2e-4)
    assert.same({ 20, 1 }, { e.rounds, e.seed })
  end)
end)

describe("verdict.judge", function()
  it("says SAME where the interval is within the margin, though it excludes 1", function()
    local v = verdict.judge(d)
    assert.equal("SAME", v.verdict)
    assert.is_true(v.ci.low > 1 and v.ci.high < 1.01)
    assert.is_nil(v.needed)
    assert.equal("UNRESOLVED", verdict.judge(d, nil, 0.009).verdict)
  end)

  it("says FASTER and SLOWER beyond margin and floor", function()
    assert.equal("SLOWER", verdict.judge(shifted(0.05)).verdict)
    assert.equal("FASTER", verdict.judge(shifted(-0.05)).verdict)
    local floor = verdict.estimate(shifted(0, 5)) -- as wide as 4 %
    assert.equal("SLOWER", verdict.judge(shifted(0.05), floor).verdict)
    assert.equal("FASTER", verdict.judge(shifted(-0.05), floor).verdict)
    local v = verdict.judge(shifted(0.015), floor)
    assert.equal("UNRESOLVED", v.verdict)
    local noise = math.exp(verdict.noise(floor)) - 1
    assert.equal(math.ceil(20 * (noise / (v.ratio - 1)) ^ 2), v.needed)
  end)

  it("says how many rounds would tell", function()
    local v = verdict.judge(shifted(0.02, 10)) -- 2 % of effect, 4 % of half width
    assert.equal("UNRESOLVED", v.verdict)
    local half = (v.ci.high - v.ci.low) / 2
    assert.equal(math.ceil(20 * (half / (v.ratio - 1)) ^ 2), v.needed)
    assert.is_true(v.needed > 60 and v.needed < 120, v.needed)
    -- An effect of nearly the margin takes many: the interval must fit in between.
    v = verdict.judge(shifted(0.0094))
    assert.equal(math.ceil(20 * ((v.ci.high - v.ci.low) / 2 / 0.001) ^ 2), v.needed)
    v = verdict.judge(shifted(0, 10)) -- no effect: half the interval must become the margin
    half = (v.ci.high - v.ci.low) / 2
    assert.equal(math.ceil(20 * (half / (0.01 - math.abs(v.ratio - 1))) ^ 2), v.needed)
  end)

  it("needs no noise", function()
    local same, faster = {}, {}
    for i = 1, 20 do same[i], faster[i] = 0, math.log(0.5) end
    assert.same({ ratio = 1.0, ci = { low = 1.0, high = 1.0 }, rounds = 20, seed = 7, margin = 0.01,
      verdict = "SAME" }, verdict.judge(same, verdict.estimate(same), 0.01, { seed = 7 }))
    local v = verdict.judge(faster)
    assert.equal("FASTER", v.verdict)
    assert.near(0.5, v.ratio, 1e-15)
  end)

  it("refuses what it can't judge", function()
    assert.error_matches(function() verdict.judge({ 1 }) end,
      "bad values: 2 wanted at the least, got 1")
    assert.error_matches(function() verdict.judge({ 1, 0 / 0 }) end, "finite number wanted at 2")
    assert.error_matches(function() verdict.judge(d, nil, 0) end,
      "bad margin: a number above 0 and below 1 wanted, got 0")
  end)
end)

-- With SHOW=1 in the environment the simulations print the rates that they found.
describe("a comparison with itself", function()
  --- Rounds in the order ABBA of a variant with itself: each place in a round has 10 samples with a
  --- normal noise of 1 % and a lag-1 correlation of 0.5, and a common one of `place` for all of
  --- them; the machine drifts evenly over all rounds.
  local function rounds(random, count, place, drift)
    local ratios, x = {}, random.normal()
    local function median(part)
      local values, level = {}, 1 + place * random.normal()
      for i = 1, 10 do
        x = 0.5 * x + math.sqrt(0.75) * random.normal()
        values[i] = level * (1 + 0.01 * x) * (1 + drift * (part + i / 10) / (2 * count))
      end
      return stats.median(values)
    end
    for round = 1, count do
      local first, second = median(2 * round - 2), median(2 * round - 1)
      local swapped = round % 2 == 0
      ratios[round] = math.log(swapped and first / second or second / first)
    end
    return ratios
  end

  -- A round's noise from what the samples alone make (0.6 %), or far more than the margin.
  for _, place in ipairs { 0, 0.04 } do
    for _, drift in ipairs { 0, 0.03 } do
      it(("calls a difference in at most 5 %% of 500 runs: rounds vary by %g, drift %g")
        :format(place, drift), function()
        local calls, same, excluded = 0, 0, 0
        for seed = 1, 500 do
          local random = resample.generator(seed)
          local options = { seed = seed, resamples = 400 } -- of 10,000, for time
          local floor = verdict.estimate(rounds(random, 10, place, drift / 2), options)
          local v = verdict.judge(rounds(random, 20, place, drift), floor, 0.01, options)
          calls = calls + ((v.verdict == "FASTER" or v.verdict == "SLOWER") and 1 or 0)
          excluded = excluded + ((v.ci.low > 1 or v.ci.high < 1) and 1 or 0)
          same = same + (v.verdict == "SAME" and 1 or 0)
        end
        assert.is_true(calls <= 25, calls .. " of 500")
        -- Nor is it margin and floor alone: the interval by itself leaves out 1 in 5 of 100 runs,
        -- and fewer with a drift, which widens it.
        assert.is_true(excluded <= 35, excluded .. " of 500 intervals")
        if os.getenv("SHOW") then
          print(place, drift, "called", calls, "same", same, "excluded", excluded)
        end
      end)
    end
  end
end)
