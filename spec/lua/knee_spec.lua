local knee = require "tidelock.knee"
local resample = require "tidelock.resample"

local normals = {} -- drawn from below: 64 random bits make one launch
do
  local random = resample.generator(1)
  for i = 0, 4095 do
    normals[i] = random.normal()
  end
end

--- Host times of launches into a queue, and the first launch that waited: launch i waits until
--- launch i - depth has run. Costs and device times jitter by normal noise of a random size from 5
--- to 20 %; one launch in 100 costs 5 to 20 times as much.
local function simulate(case, seed)
  local random = resample.generator(seed)
  local jitter = 0.05 + 0.15 * random.uniform()
  local depth, launch, device = case.depth or 1024, case.launch, case.device
  local costs, ends, host, finished, first = {}, {}, 0, 0, nil
  for i = 1, case.launches do
    local begin, bits = host, random.bits()
    local slot = ends[i - depth]
    if slot and slot > host then
      host, first = slot, first or i
    end
    local cost = launch * math.max(0.1, 1 + jitter * normals[bits >> 52])
    local part = (bits >> 20 & 0xFFFFF) / 0x100000
    host = host + (part < 0.01 and cost * (5 + 1500 * part) or cost)
    finished = math.max(finished, host)
      + device * math.max(0.1, 1 + jitter * normals[bits >> 40 & 0xFFF])
    ends[i], costs[i] = finished, host - begin
  end
  return costs, first
end

describe("knee.predict", function()
  it("is the queue's model, rounded up", function()
    assert.equal(1029, knee.predict(1024, 20e-6, 5e-3)) -- question 1
    assert.equal(1049, knee.predict(1024, 4.5e-6, 190e-6)) -- Stack Overflow 53970187
    assert.equal(1981, knee.predict(1024, 0.483, 1)) -- numba #4390
    assert.equal(515, knee.predict(512, 20e-6, 5e-3)) -- 2 slots a launch
  end)

  it("is nothing where launches are slower than the work", function()
    assert.is_nil(knee.predict(1024, 2e-6, 1e-6))
    assert.is_nil(knee.predict(1024, 1e-6, 1e-6))
  end)
end)

describe("knee.find", function()
  -- `within`: of the first launch that waited. With a small step a few launches wait before the
  -- queue is full for good; there the place is that of the model.
  for _, case in ipairs {
    { name = "question 1", launches = 2000, launch = 20e-6, device = 5e-3, within = 10 },
    { name = "Stack Overflow 53970187, its beginning", launches = 1500, launch = 4.5e-6,
      device = 190e-6, within = 10 },
    { name = "a knee 50 launches before the end", launches = 1079, launch = 20e-6, device = 5e-3,
      within = 10 },
    { name = "numba #4390, a step to the double", launches = 2600, launch = 0.483e-3,
      device = 1e-3, within = 150 },
  } do
    it("finds the knee in 200 of 200 noisy runs: " .. case.name, function()
      local worst = 0
      for seed = 1, 200 do
        local costs, first = simulate(case, seed)
        local found, reason = knee.find(costs, { device = case.device, depth = 1024 })
        assert(found, ("seed %d: %s"):format(seed, reason or "no step"))
        worst = math.max(worst, math.abs(found.first - first))
        assert.near(case.launch, found.before, 0.1 * case.launch)
        assert.near(case.device, found.after, 0.15 * case.device)
        assert.near(found.first, found.predicted, 0.03 * found.first)
      end
      assert.is_true(worst <= case.within, ("off by %d launches"):format(worst))
    end)
  end

  for _, case in ipairs {
    { name = "launches slower than the work", launches = 1200, launch = 20e-6, device = 10e-6 },
    { name = "launches as slow as the work", launches = 1200, launch = 20e-6, device = 19e-6 },
    { name = "loops too short for the queue", launches = 1000, launch = 20e-6, device = 5e-3 },
    { name = "short loops", launches = 90, launch = 20e-6, device = 5e-3 },
  } do
    it("raises no alarm in 200 runs, even without a device time: " .. case.name, function()
      for seed = 1001, 1200 do
        local costs = simulate(case, seed)
        assert.is_nil(knee.find(costs, { depth = 1024 }), "seed " .. seed)
      end
    end)
  end

  it("gives the numbers of an exact series", function()
    local costs = {}
    for i = 1, 400 do costs[i] = i < 134 and 20e-6 or 5e-3 end
    costs[50] = 1e-3 -- one spike
    assert.same({ first = 134, before = 20e-6, after = 5e-3 }, knee.find(costs))
    -- The mean launch is (132 * 20 us + 1 ms)/133 = 27.4 us: 128/(1 - 0.00547) = 128.7.
    assert.same({ first = 134, before = 20e-6, after = 5e-3, predicted = 129 },
      knee.find(costs, { device = 5e-3, depth = 128 }))
  end)

  it("says why a step is no knee: what follows is not the device's time", function()
    local costs = {}
    for i = 1, 400 do costs[i] = i <= 200 and 20e-6 or 60e-6 end
    local found, reason = knee.find(costs, { device = 5e-3 })
    assert.is_nil(found)
    assert.equal("launches cost 6e-05 s from launch 201 on, and the device takes 0.005 s for one",
      reason)
    assert.equal(201, knee.find(costs, { device = 70e-6 }).first)
  end)

  it("does not take an early stall for the knee", function()
    local costs = {}
    for i = 1, 1000 do costs[i] = (i > 600 or i > 70 and i < 79) and 5e-3 or 20e-6 end
    assert.equal(601, knee.find(costs).first)
  end)

  it("refuses what is no series", function()
    assert.error_matches(function() knee.find { 1, 0 / 0 } end,
      "bad values: a finite number wanted at 2, got %-?nan")
    assert.error_matches(function() knee.find {} end, "bad values: 1 wanted at the least, got 0")
    assert.error_matches(function() knee.find(3) end,
      "bad values: an array of numbers wanted, got number")
  end)
end)
