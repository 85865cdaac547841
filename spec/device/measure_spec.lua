--- dev:compare, dev:sweep, dev:calibrate and dev:probe on every device; gpu.extend.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local QUICK = { "synchronized", warmup = { calls = 1, seconds = 0, settle = false },
  stop = { min_samples = 6, max_samples = 6, min_time = 0, max_time = 5 } }

local function spin(seconds)
  return function(stream)
    stream:spin(seconds)
  end
end

--- Calls f with no handler of warnings.
local function quietly(f)
  local before = gpu.on_warning(nil)
  local ok, result = pcall(f)
  gpu.on_warning(before)
  if not ok then
    error(result, 0)
  end
  return result
end

each_device("measuring", function(open)
  describe("compare", function()
    it("finds what takes four times as long, and has a floor of its own", function()
      local dev = open()
      local r = quietly(function()
        return dev:compare({ { "short", spin(1e-3) }, { "long", spin(4e-3) } },
          { policy = QUICK, rounds = 10, outputs = {} })
      end)
      assert.same({ "compare", 10 }, { r.kind, r.rounds })
      assert.same({ "short", "long" }, r.names)
      assert.equal("SLOWER", r.ratios[1].verdict)
      assert.is_true(r.ratios[1].ratio > 1.5, r.ratios[1].ratio)
      assert.is_true(r.ratios[1].ci.low <= r.ratios[1].ratio)
      assert.is_true(r.floor.ci.low <= r.floor.ratio and r.floor.ratio <= r.floor.ci.high)
      for i = 1, 2 do
        assert.equal(r.names[i], r.results[i].name)
        assert.is_true(r.results[i].wall.n >= 30)
      end
      assert.matches("SLOWER", tostring(r), 1, true)
    end)

    it("takes options of a variant over those of all", function()
      local dev = open()
      local a, c, d = dev:rand { 8, 8 }, dev:zeros { 8, 8 }, dev:zeros { 8, 8 }
      local r = quietly(function()
        return dev:compare({ { "c", gpu.matmul }, { "d", gpu.matmul, { args = { a, a, d } } } },
          { policy = QUICK, rounds = 10, args = { a, a, c } })
      end)
      assert.equal(2, #r.results)
      assert.same(c:totable(), d:totable())
    end)

    for message, arguments in pairs {
      ["a list of two variants {name, function} or more expected"] = { { { "a", spin(0) } } },
      ["variant 2: {name, function [, options]} wanted"] = { { { "a", spin(0) }, { "b" } } },
      ["option 'rounds': a whole number of at least 10 wanted, got 3"] =
        { { { "a", spin(0) }, { "b", spin(0) } }, { rounds = 3 } },
      ["option 'margin': a number between 0 and 1 wanted, got 2"] =
        { { { "a", spin(0) }, { "b", spin(0) } }, { margin = 2 } },
      ["policy 'unsynced' can't be compared in turns"] =
        { { { "a", spin(0) }, { "b", spin(0) } }, { policy = "unsynced" } },
    } do
      it("refuses: " .. message, function()
        local dev = open()
        local ok, raised = pcall(dev.compare, dev, table.unpack(arguments))
        assert.is_false(ok)
        assert.matches("measure_spec%.lua:%d+: ", raised)
        assert.matches(message, raised, 1, true)
      end)
    end
  end)

  describe("sweep", function()
    it("times every point, skips with the maker's reason, and with the device's", function()
      local dev = open()
      local seen = {}
      local r = quietly(function()
        return dev:sweep({ { "n", { 4, 8 } }, { "what", { "a", "b" } } }, function(at)
          seen[#seen + 1] = at.n .. at.what
          if at.n == 8 and at.what == "a" then
            return nil, "too dear"
          elseif at.n == 8 then
            dev:empty(2 ^ 56)
          end
          return spin(0), { outputs = {}, flops = at.n }
        end, { policy = QUICK })
      end)
      assert.same({ "4a", "4b", "8a", "8b" }, seen)
      assert.same({ "sweep", 4 }, { r.kind, #r.points })
      assert.same({ n = 4, what = "b" }, r.points[2].at)
      assert.equal("n=4 what=b", r.points[2].result.name)
      assert.equal(4, r.points[2].result.flops)
      assert.equal("too dear", r.points[3].skipped)
      assert.matches("out of memory", r.points[4].skipped, 1, true)
      assert.is_nil(r.points[4].result)
    end)

    it("does not hide a mistake of the maker", function()
      local dev = open()
      assert.error_matches(function()
        dev:sweep({ { "n", { 1 } } }, function(at) return at.m.x end)
      end, "attempt to index a nil value %(field 'm'%)")
      assert.error_matches(function() dev:sweep({}, spin) end,
        "bad argument #1 to 'sweep' %(a list of axes")
      assert.error_matches(function() dev:sweep({ { "n", {} } }, spin) end, "axis 1: ")
      assert.error_matches(function() dev:sweep({ { "n", { 1 } } }, 3) end,
        "bad argument #2 to 'sweep' %(function expected, got number%)")
    end)
  end)

  describe("calibrate", function()
    it("fits a line through spins; policies that see the device have a slope of about 1", function()
      local dev = open()
      local r = dev:calibrate { policies = { "enqueue", "events" }, samples = 3, seconds = 5,
        spins = { 1e-3, 10e-3, 20e-3, 30e-3 } }
      assert.same({ "calibration", 2 }, { r.kind, #r.policies })
      local enqueue, events = r.policies[1], r.policies[2]
      assert.same({ "enqueue", "events" }, { enqueue.policy.name, events.policy.name })
      assert.is_true(math.abs(enqueue.scale) < 0.3, enqueue.scale)
      assert.is_true(events.scale > 0.7, events.scale)
      for i, spun in ipairs { 1e-3, 10e-3, 20e-3, 30e-3 } do
        assert.equal(spun, events.points[i].spin)
        assert.is_true(events.points[i].measured >= spun)
      end
    end)

    it("corrects a later result beside the raw one", function()
      local dev = open()
      local calibration = { policies = { { policy = { name = "events" }, bias = 1e-3, scale = 2,
        floor = 1e-3 } } }
      local policy = { "events", warmup = QUICK.warmup, stop = QUICK.stop }
      local r = quietly(function()
        return dev:bench(spin(3e-3), { policy = policy, calibration = calibration })
      end)
      assert.same({ bias = 1e-3, scale = 2, floor = 1e-3 }, r.calibration)
      assert.equal((r.device.median - 1e-3) / 2, r.corrected)
    end)

    it("refuses unknown options, and too few spins for a line", function()
      local dev = open()
      assert.error_matches(function() dev:calibrate { spin = {} } end,
        "unknown option 'spin' %(there are: policies, samples, ")
      assert.error_matches(function() dev:calibrate { spins = { 1 } } end, "at least three wanted")
    end)
  end)

  describe("probe", function()
    it("finds the depth of the queue, which each stream has for itself (case 5)", function()
      local dev = open { queue_depth = 64 }
      if dev:properties().name:find("stub", 1, true) then
        pending("a spin takes no time there")
      end
      local p = dev:probe()
      local sim = dev:properties().sim
      local depth = 64 - (sim and sim.gate_slots or 0)
      assert.same({ launch = depth, event = depth }, p.depth)
      assert.is_false(p.shared)
      assert.is_true(p.asynchronous)
      assert.is_true(p.clock.step > 0 and p.clock.cost > 0)
      assert.is_true(p.launch_cost > 0 and p.launch_cost < p.round_trip)
      assert.is_true(p.event_null >= 0 and p.empty_launch >= p.event_null)
      assert.equal(0, dev:memory().objects)
    end)
  end)
end)

describe("gpu.extend", function()
  it("adds methods to a class, and replaces those that were added", function()
    local dev <close> = gpu.device("host:3")
    gpu.extend("device", { answer = function(self) return self:id(), 1 end })
    assert.same({ "host:3", 1 }, { dev:answer() })
    gpu.extend("device", { answer = function() return 2 end })
    assert.equal(2, dev:answer())
    debug.getmetatable(dev).__index.answer = nil
  end)

  it("leaves what the C module has, and refuses what is no class or no method", function()
    assert.error_matches(function() gpu.extend("device", { now = print }) end,
      "device has a method 'now'")
    assert.error_matches(function() gpu.extend("table", {}) end, "no class is called 'table'")
    assert.error_matches(function() gpu.extend("device", { x = 3 }) end,
      "functions by name wanted")
    assert.error_matches(function() gpu.extend("device", { print }) end,
      "functions by name wanted")
  end)

  it("lets tidelock be loaded twice in one state", function()
    package.loaded["tidelock"], package.loaded["tidelock.device"] = nil, nil
    local again = require "tidelock"
    local dev <close> = again.device("host:3")
    assert.equal("function", type(dev.bench))
    assert.error_matches(function() dev:bench(3) end, "bad argument #1 to 'bench'")
  end)
end)
