--- The pure parts of measuring: rounds, grids, arguments, isolation, the speed of light.
local caller = require "tidelock.caller"
local compare = require "tidelock.compare"
local isolated = require "tidelock.isolated"
local operation = require "tidelock.operation"
local peak = require "tidelock.peak"
local sweep = require "tidelock.sweep"

describe("compare.order", function()
  it("is ABBA BAAB for two", function()
    local rounds = {}
    for round = 1, 4 do
      rounds[round] = table.concat(compare.order(2, round))
    end
    assert.same({ "12", "21", "21", "12" }, rounds)
  end)

  it("puts each of five equally often at each place, in ten rounds", function()
    local count = {}
    for round = 1, 10 do
      local seen = {}
      for place, i in ipairs(compare.order(5, round)) do
        count[place] = count[place] or {}
        count[place][i] = (count[place][i] or 0) + 1
        seen[i] = true
      end
      assert.equal(5, #seen)
    end
    for place = 1, 5 do
      assert.same({ 2, 2, 2, 2, 2 }, count[place])
    end
  end)
end)

describe("sweep.grid", function()
  it("has every point, the last axis fastest", function()
    local points = sweep.grid { { "n", { 1, 2 } }, { "kernel", { "a", "b" } } }
    local names = {}
    for i, at in ipairs(points) do
      names[i] = at.n .. at.kernel
    end
    assert.same({ "1a", "1b", "2a", "2b" }, names)
  end)
end)

describe("operation.bind", function()
  it("passes on all arguments and the stream behind them", function()
    for count = 0, 6 do
      local args = {}
      for i = 1, count do
        args[i] = i * 10
      end
      local got
      operation.bind(function(...) got = table.pack(...) end, args, "stream")()
      assert.equal(count + 1, got.n)
      assert.equal("stream", got[got.n])
      for i = 1, count do
        assert.equal(i * 10, got[i])
      end
    end
  end)
end)

describe("isolated.run", function()
  it("returns what f returns, after pauses, with the collector stopped meanwhile", function()
    local inside
    local a, b = isolated.run(function(x)
      isolated.pause()
      inside = collectgarbage("isrunning")
      isolated.pause()
      return x, "b"
    end, "a")
    assert.same({ "a", "b", false, true }, { a, b, inside, collectgarbage("isrunning") })
  end)

  it("starts the collector again, and closes what is open, after an error", function()
    local closed = false
    local raised = { "the very error" }
    local ok, message = pcall(isolated.run, function()
      local _ <close> = setmetatable({}, { __close = function() closed = true end })
      error(raised)
    end)
    assert.is_false(ok)
    assert.equal(raised, message)
    assert.is_true(closed)
    assert.is_true(collectgarbage("isrunning"))
  end)

  it("leaves a collector stopped that was stopped", function()
    collectgarbage("stop")
    isolated.run(function() end)
    local running = collectgarbage("isrunning")
    collectgarbage("restart")
    assert.is_false(running)
  end)

  it("refuses a yield of the operation", function()
    local ok, message = pcall(isolated.run, function() coroutine.yield("mine") end)
    assert.is_false(ok)
    assert.matches("^the operation yielded: ", message)
    assert.is_true(collectgarbage("isrunning"))
  end)
end)

describe("caller.line", function()
  it("is the line of the script", function()
    local here = debug.getinfo(1, "l").currentline + 1
    assert.matches("measure_spec%.lua:" .. here .. "$", caller.line())
  end)
end)

describe("peak", function()
  -- Figures of NVIDIA's H100 whitepaper scaled to 132 multiprocessors at 1.98 GHz: dense tensor
  -- rates of 67 (float64), 535 (tf32), 1070 (float16) TFLOP/s.
  local h200 = { backend = "cuda", compute_capability = "9.0", multiprocessor_count = 132,
    clock_rate = 1980000000, memory_clock_rate = 3201000000, memory_bus_width = 6144 }

  it("is that of the fastest unit for the type, at the highest clock", function()
    assert.near(66.9e12, peak.flops(h200, "float64"), 0.1e12)
    assert.near(535e12, peak.flops(h200, "float32"), 1e12)
    assert.near(1070e12, peak.flops(h200, "bfloat16"), 2e12)
  end)

  it("is two transfers in a clock for memory", function()
    assert.near(4.917e12, peak.bandwidth(h200), 0.001e12)
  end)

  it("is nil where nothing is known", function()
    assert.is_nil(peak.flops({ backend = "cuda", compute_capability = "6.1" }, "float32"))
    assert.is_nil(peak.bandwidth({ backend = "host" }))
  end)
end)
