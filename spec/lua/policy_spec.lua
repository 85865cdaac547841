--- Policies as data: the presets, what may be replaced, and what is refused.
local policy = require "tidelock.policy"

describe("policy.presets", function()
  it("are the eleven of the README's table, in order, and whole", function()
    local names = {}
    for i, preset in ipairs(policy.presets) do
      names[i] = preset.name
      local p = policy.read(preset.name)
      for _, field in ipairs { "clock", "isolation", "block", "cache", "duty", "warmup", "stop",
        "center", "check" } do
        assert.is_not_nil(p[field], preset.name .. "." .. field)
      end
    end
    assert.same({ "enqueue", "first_call", "synchronized", "events", "cold", "batch", "graph",
      "window", "slope", "profile", "unsynced" }, names)
  end)

  it("has cold as the default: events behind a gate, the cache flushed", function()
    local p = policy.read()
    assert.equal("cold", p.name)
    assert.same({ "events", "each", true, "flush", "sustained", "median", "before_after" },
      { p.clock, p.isolation, p.block, p.cache, p.duty, p.center, p.check })
    assert.same({ calls = 3, seconds = 0.5, settle = 0.005, limit = 3 }, p.warmup)
    assert.same({ rel_ci = 0.005, min_samples = 20, max_samples = 10000, min_time = 0.5,
      max_time = 15 }, p.stop)
  end)

  it("runs a profile once, without a warm-up, a gate or a check", function()
    local p = policy.read("profile")
    assert.same({ "none", false, "none", 0, 1 },
      { p.clock, p.block, p.check, p.warmup.calls, p.stop.max_samples })
  end)
end)

describe("policy.read", function()
  it("replaces fields, and of warmup and stop those that are given", function()
    local p = policy.read { "cold", cache = "warm", center = "min", warmup = { calls = 7 },
      stop = { rel_ci = 0.1 } }
    assert.same({ "cold", "warm", "min", true }, { p.name, p.cache, p.center, p.block })
    assert.same({ calls = 7, seconds = 0.5, settle = 0.005, limit = 3 }, p.warmup)
    assert.equal(0.1, p.stop.rel_ci)
    assert.equal(20, p.stop.min_samples)
  end)

  it("gives a new table each time: changing one changes no preset", function()
    local p = policy.read("cold")
    p.block, p.stop.rel_ci = false, 1
    assert.is_true(policy.read("cold").block)
    assert.equal(0.005, policy.read("cold").stop.rel_ci)
    assert.equal(0.005, policy.read("batch").stop.rel_ci)
  end)

  it("reads back what it made", function()
    local p = policy.read { "batch", k = 8, stop = { max_time = 1 } }
    assert.same(p, policy.read(p))
  end)

  it("takes integral floats for counts", function()
    assert.equal("integer", math.type(policy.read({ "batch", k = 8.0 }).k))
  end)

  for message, given in pairs {
    ["option 'policy': unknown policy 'hot' (there are: enqueue, first_call, "] = "hot",
    ["option 'policy': a name or a table wanted, got 3"] = 3,
    ["unknown policy field 'chache' (there are: block, cache, "] = { "cold", chache = "warm" },
    ["policy field 'cache': one of warm, flush, rotate wanted, got \"hot\""] =
      { "cold", cache = "hot" },
    ["policy field 'block': true or false wanted, got 1"] = { "cold", block = 1 },
    ["policy field 'k': a whole number of at least 1 wanted, got 0"] = { "batch", k = 0 },
    ["policy field 'window': a whole number of at least 1 wanted, got 1.5"] =
      { "window", window = 1.5 },
    ["policy field 'stop': a table wanted, got 3"] = { "cold", stop = 3 },
    ["unknown policy field 'stop.samples'"] = { "cold", stop = { samples = 3 } },
    ["policy field 'stop.rel_ci': a number of at least 0 wanted, got -1"] =
      { "cold", stop = { rel_ci = -1 } },
    ["policy field 'warmup.calls': a whole number wanted, got 0.5"] =
      { "cold", warmup = { calls = 0.5 } },
    ["policy 'cold': stop.max_samples 5 is less than stop.min_samples 20"] =
      { "cold", stop = { max_samples = 5 } },
    ["policy 'synchronized': a gate (block=true) goes with clock \"events\" only"] =
      { "synchronized", block = true },
    ["policy 'window': clock \"slope\" does not go with isolation \"window\""] =
      { "window", clock = "slope" },
    ["policy 'events': k goes with isolation \"batch\", \"window\" or \"all\""] =
      { "events", k = 2 },
    ["policy 'cold': window goes with isolation \"window\""] = { "cold", window = 2 },
    ["policy 'window': behind a gate (block=true) an operation can't wait for an earlier one"] =
      { "window", clock = "events", block = true },
  } do
    it("refuses: " .. message, function()
      local ok, raised = pcall(policy.read, given)
      assert.is_false(ok)
      assert.equal(message, raised:sub(1, #message))
    end)
  end
end)

describe("policy.headline", function()
  it("is the block of statistics of the policy's clock", function()
    local headlines = {}
    for _, preset in ipairs(policy.presets) do
      headlines[#headlines + 1] = preset.name .. ":" .. policy.headline(policy.read(preset.name))
    end
    assert.equal("enqueue:enqueue first_call:wall synchronized:wall events:device cold:device "
      .. "batch:device graph:device window:wall slope:slope profile:wall unsynced:wall",
      table.concat(headlines, " "))
  end)
end)
