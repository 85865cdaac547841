local json = require "tidelock.json"
local records = require "spec.records"
local result = require "tidelock.result"

--- A bench of that median in microseconds, with an interval of that half-width.
local function bench(median, half_width, changes)
  local fields = { device = records.statistics(median * 1e-6, (half_width or 0.5) * 1e-6) }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return records.bench(fields)
end

--- The only ratio of one bench against another.
local function ratio_of(new, old, options)
  local against = result.against(new, old, options)
  assert.equal(1, #against.ratios)
  return against.ratios[1], against
end

describe("result.against", function()
  it("has a ratio, an interval and a verdict for each name, and a status", function()
    local ratio, against = ratio_of(bench(120), bench(100))
    assert.equal("SLOWER", ratio.verdict)
    assert.near(1.2, ratio.ratio, 1e-12)
    assert.equal("device time", ratio.clock)
    assert.near(120e-6, ratio.new, 1e-18)
    assert.near(100e-6, ratio.old, 1e-18)
    assert.equal(1, against.status)
    assert.equal(0, result.against(bench(80), bench(100)).status)
    assert.equal("FASTER", ratio_of(bench(80), bench(100)).verdict)
    assert.equal("SAME", ratio_of(bench(101), bench(100)).verdict)
    assert.equal(0, result.against(bench(101), bench(100)).status)
  end)

  it("adds the distances to the limits as squares, on the logarithmic scale", function()
    local new = bench(100, nil)
    new.device.ci = { low = 98e-6, high = 103e-6 }
    local old = bench(200, nil)
    old.device.ci = { low = 190e-6, high = 204e-6 }
    local ci = ratio_of(new, old).ci
    -- By hand: ln(100/98) = .0202027, ln(204/200) = .0198026, together .0282891;
    -- ln(103/100) = .0295588, ln(200/190) = .0512933, together .0592012.
    assert.near(0.5 * math.exp(-0.0282891), ci.low, 1e-6)
    assert.near(0.5 * math.exp(0.0592012), ci.high, 1e-6)
  end)

  it("covers the true ratio in 95 of 100 cases, from 95 % intervals of both", function()
    math.randomseed(5)
    local function normal()
      return math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
    end
    local function measured(truth, sigma)
      local median = truth * math.exp(sigma * normal())
      local b = bench(1)
      b.device.median = median
      b.device.ci = { low = median * math.exp(-1.96 * sigma),
        high = median * math.exp(1.96 * sigma) }
      return b
    end
    local covered = 0
    for _ = 1, 1000 do
      local ci = ratio_of(measured(3e-6, 0.02), measured(2e-6, 0.005)).ci
      covered = covered + (ci.low <= 1.5 and 1.5 <= ci.high and 1 or 0)
    end
    assert.is_true(covered >= 930 and covered <= 970, covered .. " of 1000")
  end)

  it("leaves open what the intervals leave open", function()
    local ratio, against = ratio_of(bench(110, 15), bench(100, 1))
    assert.equal("UNRESOLVED", ratio.verdict)
    assert.equal(0, against.status)
    assert.equal(2, result.against(bench(110, 15), bench(100, 1), { strict = true }).status)
    local bare = bench(150)
    bare.device.ci = nil
    assert.equal("UNRESOLVED", ratio_of(bare, bench(100)).verdict)
    assert.is_nil(ratio_of(bare, bench(100)).ci)
  end)

  it("takes another margin", function()
    assert.equal("SAME", ratio_of(bench(104, 0.1), bench(100, 0.1)).verdict)
    assert.equal("SLOWER", ratio_of(bench(104, 0.1), bench(100, 0.1), { margin = 0.01 }).verdict)
    assert.equal("SAME", ratio_of(bench(120), bench(100), { margin = 0.3 }).verdict)
  end)

  it("does not compare what was measured otherwise, and says what differs", function()
    local function environment(changes)
      local copy = {}
      for key, value in pairs(records.bench().environment) do copy[key] = value end
      for key, value in pairs(changes) do copy[key] = value end
      return { environment = copy }
    end
    local function policy(changes)
      local copy = {}
      for key, value in pairs(records.bench().policy) do copy[key] = value end
      for key, value in pairs(changes) do copy[key] = value end
      return { policy = copy }
    end
    for reason, new in pairs {
      ["device: NVIDIA A100 against NVIDIA H200"] = environment { name = "NVIDIA A100" },
      ["device: host against cuda"] = environment { backend = "host" },
      ["policy.cache: warm against flush"] = policy { cache = "warm" },
      ["headline: wall against device"] = { headline = "wall" },
      ["flops: 2.0 against 16000000000.0"] = { flops = 2.0 },
      ["E-WRONG in the new run"] = { warnings = { { code = "E-WRONG", message = "m" } } },
      ["the new run has no device time"] = { device = { median = 0 / 0 } },
    } do
      local ratio, against = ratio_of(records.bench(new), records.bench())
      assert.equal(reason, ratio.reason)
      assert.equal("NOT COMPARED", ratio.verdict)
      assert.is_nil(ratio.ratio)
      assert.equal(2, against.status)
    end
    -- k follows from the time itself; another driver is told, and no reason.
    assert.equal("SAME", ratio_of(records.bench(policy { k = 12 }), records.bench()).verdict)
    local ratio, against = ratio_of(records.bench(environment { driver = "590" }), records.bench())
    assert.equal("SAME", ratio.verdict)
    assert.same({ "driver: 590 against 580.159" }, against.changed)
    assert.equal("policy: batch against cold", result.against(
      records.bench(policy { name = "batch" }), records.bench()).ratios[1].reason)
  end)

  it("pairs by name, point and policy; of several with one name the last counts", function()
    local sweep = records.sweep()
    local against = result.against({ sweep, bench(100, nil, { name = "a" }),
      bench(10, nil, { name = "new" }) }, { bench(100, nil, { name = "a" }),
      bench(200, nil, { name = "a" }), bench(10, nil, { name = "old" }), records.sweep() })
    local lines = {}
    for i, ratio in ipairs(against.ratios) do
      lines[i] = ("%s: %s %s"):format(ratio.name, ratio.verdict, ratio.ratio or ratio.reason)
    end
    assert.same({
      "matmul, n=256, kernel=naive: SAME 1.0", "matmul, n=256, kernel=tiled: SAME 1.0",
      "matmul, n=512, kernel=tiled: SAME 1.0", "a: FASTER 0.5",
      "new: NOT COMPARED not in the old run", "old: NOT COMPARED not in the new run",
    }, lines)
    assert.equal(2, against.status)
    assert.equal("3 same, 1 faster, 0 slower, 0 unresolved, 2 not compared", against.summary)
  end)

  it("is slower before it is not compared, and nothing at all is no success", function()
    local added = bench(1, nil, { name = "new" })
    assert.equal(1, result.against({ bench(120), added }, bench(100)).status)
    assert.equal(2, result.against({}, {}).status)
  end)

  it("is a record: not interleaved, printed, written, read", function()
    local against = bench(120):against(bench(100))
    assert.is_false(against.interleaved)
    assert.matches("not interleaved", against.method, 1, true)
    assert.equal([[
against an earlier run, not interleaved: new / old, margin 5 %
  name    policy  clock        new       old       ratio  95 % interval   verdict
  matmul  cold    device time  120.0 us  100.0 us  1.200  1.192 to 1.208  SLOWER
  0 same, 0 faster, 1 slower, 0 unresolved, 0 not compared; exit status 1]], tostring(against))
    local path = os.tmpname()
    against:json(path)
    assert.same({ against }, result.read(path))
    against:csv(path)
    local file = assert(io.open(path))
    local header, row = file:read("l", "l")
    file:close()
    os.remove(path)
    assert.equal("name,policy,clock,new_seconds,old_seconds,ratio,ratio_low,ratio_high,verdict,"
      .. "reason", header)
    assert.equal(("matmul,cold,device time,%s,%s,%s,%s,%s,SLOWER,"):format(json.number(120 * 1e-6),
      json.number(100 * 1e-6), json.number(against.ratios[1].ratio),
      json.number(against.ratios[1].ci.low), json.number(against.ratios[1].ci.high)), row)
  end)

  it("refuses wrong arguments at the script's line", function()
    for message, call in pairs {
      ["bad argument #1 to 'against' (a record or a list of them expected, got nil)"] = {},
      ["bad argument #2 to 'against' (a record or a list of them expected, got string)"] =
        { bench(1), "x.jsonl" },
      ["unknown option 'margn'; there are: margin, strict"] = { bench(1), bench(1), { margn = 1 } },
      ["bad option 'margin' (a number between 0 and 1 expected, got 5)"] =
        { bench(1), bench(1), { margin = 5 } },
    } do
      local ok, raised = pcall(function() result.against(call[1], call[2], call[3]) end)
      assert.is_false(ok)
      assert.matches("against_spec.lua:%d+: ", raised)
      assert.equal(message, (raised:gsub("^.-:%d+: ", "")))
    end
  end)
end)
