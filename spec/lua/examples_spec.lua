local gpu = require "tidelock"
local stats = require "tidelock.stats"

--- Runs an example with what it prints collected; returns its results and the text.
local function run(name, ...)
  local printed = {}
  local sandbox = setmetatable({
    print = function(...)
      local texts = {}
      for i = 1, select("#", ...) do
        texts[i] = tostring((select(i, ...)))
      end
      printed[#printed + 1] = table.concat(texts, "\t")
    end,
  }, { __index = _G })
  local chunk = assert(loadfile("examples/" .. name .. ".lua", "t", sandbox))
  local before = gpu.on_warning(function(code, message)
    printed[#printed + 1] = code .. ": " .. message
  end)
  local ok, results = pcall(chunk, ...)
  gpu.on_warning(before)
  gpu.device():close()
  if not ok then
    error(results, 0)
  end
  return results, table.concat(printed, "\n")
end

--- The launch that first waits is the one behind a full queue: launch `depth`, since the event at
--- the start has a slot too, or a later one by as many operations as had ended while the queue was
--- being filled.
local function assert_knee(results, depth, operation)
  local first, filling = results.step.first, 0
  for i = 1, first - 1 do
    filling = filling + results.costs[i]
  end
  assert.is_true(first >= depth and first <= depth + 1 + math.ceil(filling / operation),
    ("knee at %d for depth %d, filled in %g s"):format(first, depth, filling))
end

describe("examples/launch_queue", function()
  for _, depth in ipairs { 64, 256, 1024 } do
    local launches = depth + 150

    it("has its knee behind a queue of " .. depth .. ", and the clock shows 1 - depth/n", function()
      local svg = os.tmpname()
      local r, text = run("launch_queue", "depth=" .. depth, "launches=" .. launches,
        "spin=0.001", "svg=" .. svg)
      os.remove(svg)
      assert_knee(r, depth, 0.001)
      -- When the loop ended the queue was full, but for what ended since its last launch.
      local ended = depth - r.in_flight
      assert.is_true(ended >= 0 and launches - r.in_flight <= r.shown / 0.001,
        ("%d in flight after %g s"):format(r.in_flight, r.shown))
      -- What the spin that runs when the loop begins to wait and the one that runs when it ends
      -- can explain: two of the longest.
      local longest = 0
      for i = r.step.first, launches do
        longest = math.max(longest, r.costs[i])
      end
      local predicted = 1 - depth / launches
      assert.near(predicted, r.shown / r.truth, (2 + ended) * longest / r.truth + 0.02)
      assert.matches("launches 1%-%d+ cost .* from " .. r.step.first .. " on each waits", text)
      assert.matches("[enqueue time, " .. r.in_flight .. " launches in flight]", text, 1, true)
      assert.matches("[wall time, synchronized]", text, 1, true)
    end)
  end

  it("finds the knee with the question's own kernel", function()
    local svg = os.tmpname()
    local r = run("launch_queue", "depth=64", "launches=200", "n=96", "svg=" .. svg)
    os.remove(svg)
    assert.equal(64, r.depth)
    assert_knee(r, 64, stats.median(r.costs, 100))
    assert.is_true(r.synchronized > 0 and r.truth > r.shown)
  end)

  it("says when the queue did not fill, and why there is no plot", function()
    local r, text = run("launch_queue", "launches=20", "spin=0.0001", "svg=/nonexistent/x.svg")
    assert.is_nil(r.step)
    assert.matches("no launch waited for a slot: the queue did not fill", text, 1, true)
    assert.is_nil(text:find("predicts", 1, true))
    assert.matches("\nno plot: %S", text)
  end)

  for argument, message in pairs {
    ["64"] = "'64': options are written name=value; there are: depth, launches, n, spin, svg",
    ["bogus=3"] = "'bogus=3': options are written name=value; there are",
    ["launches=0"] = "launches=0: a whole number of at least 1 wanted",
    ["n=abc"] = "n=abc: a whole number of at least 1 wanted",
    ["n=1.5"] = "n=1.5: a whole number of at least 1 wanted",
    ["spin=-1"] = "spin=-1: a number above 0 wanted",
  } do
    it("refuses " .. argument, function()
      local ok, raised = pcall(run, "launch_queue", argument)
      assert.is_false(ok)
      assert.equal(message, raised:sub(1, #message))
    end)
  end
end)

describe("examples/instant_matmul", function()
  it("is warned, shows less than the truth, and checks the product", function()
    local svg = os.tmpname()
    local r, text = run("instant_matmul", "n=700", "calls=3", "svg=" .. svg)
    os.remove(svg)
    assert.is_true(r.shown < r.done)
    assert.equal("wall", r.record.headline)
    assert.equal(3, r.record.wall.n)
    assert.equal(2 * 700 ^ 3, r.record.flops)
    for i = 1, 3 do
      assert.is_true(r.record.samples.enqueue[i] < r.record.samples.wall[i])
    end
    assert.matches("W%-INFLIGHT: clock stopped with 1 of 1 launches in flight", text)
    assert.matches("\n  device time  ", text, 1, true)
    assert.matches("the product was checked", text, 1, true)
  end)

  it("raises when the product is wrong", function()
    local matmul = gpu.matmul
    gpu.matmul = function(a, b, c, stream) return matmul(b, a, c, stream) end
    local ok, raised = pcall(run, "instant_matmul", "n=64", "calls=2", "svg=")
    gpu.matmul = matmul
    assert.is_false(ok)
    assert.matches("after the samples: the product is wrong: vector 1", raised, 1, true)
  end)
end)

describe("examples/zeros", function()
  it("warns of the zeros, and only of them (case 25)", function()
    local r, text = run("zeros", "n=64", "seconds=0.05")
    for i, record in ipairs(r.records) do
      local filled = false
      for _, warning in ipairs(record.warnings) do
        filled = filled or warning.code == "W-FILL"
      end
      assert.equal(i == 2, filled, record.name)
      assert.is_true(record.device.median > 0)
    end
    assert.matches("float32 n=64 on %S+: zeros are %d+%.%d %% %a+ than uniform data", text)
    if os.getenv("TIDELOCK_DEVICE") == "sim" then -- which knows of no power
      assert.same({ 0.0, 0.0 }, { r.gain, r.noise })
    end
  end)
end)

describe("examples/device_info", function()
  it("prints every property that question 1 prints", function()
    local _, text = run("device_info")
    for _, name in ipairs { "name", "compute_capability", "max_threads_per_block", "max_block_dim",
      "max_grid_dim", "max_shared_memory_per_block", "async_engine_count", "can_map_host_memory",
      "multiprocessor_count", "warp_size", "unified_addressing", "pci_bus_id", "pci_device_id" } do
      assert.matches("\n?" .. name .. " +%S", text)
    end
    assert.matches("matmul kernel naive", text)
  end)
end)

describe("examples/policies", function()
  it("shows one kernel under every policy, and reads back as JSON", function()
    local path = os.tmpname()
    local results, text = run("policies", "n=32", "seconds=0.04", "launches=1500", "json=" .. path)
    local names = {}
    for i, r in ipairs(results) do
      names[i] = r.policy.name
      assert.matches("\n" .. r.policy.name .. " +%a", text)
    end
    assert.same({ "enqueue", "synchronized", "events", "cold", "batch", "window", "slope",
      "profile", "unsynced" }, names)
    assert.matches("W-INFLIGHT", text, 1, true)
    assert.matches("a loop without a wait shows [%d.]+ %% of the truth", text)
    local read = require "tidelock".read_results(path)
    os.remove(path)
    assert.equal(9, #read)
    assert.equal(results[4].device.median, read[4].device.median)
  end)
end)

describe("examples/ladder", function()
  it("checks every kernel of the device, times them in turns, and compares", function()
    local r, text = run("ladder", "n=48", "svg=/nonexistent/x.svg")
    assert.matches("naive +right", text)
    assert.same("naive", r.names[1])
    assert.equal(#r.names - 1, #r.ratios)
    assert.matches("noise floor: 'naive' against itself", text, 1, true)
    assert.matches("\nno plot: %S", text)
  end)
end)

describe("examples/window", function()
  it("shows what is busy for each window, and skips those that the queue does not hold", function()
    local r, text = run("window", "spin=0.0005", "count=64", "svg=/nonexistent/x.svg")
    assert.equal(8, #r.points)
    for i, point in ipairs(r.points) do
      assert.equal(2 ^ (i - 1), point.at.window)
      assert.is_true(point.result.wall.median >= 0.0005)
    end
    assert.matches("  16 in flight: +%S+ [mu]s each", text)
  end)
end)

describe("examples/race", function()
  it("is found on the device of virtual time, with both lines", function()
    local r, text = run("race")
    assert.is_true(r.found and r.fine and r.right)
    assert.matches("without wait_event: .*E%-RACE: matmul .*race.lua:17.*race.lua:13", text)
    assert.matches("with wait_event:    no race", text, 1, true)
  end)
end)
