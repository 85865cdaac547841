--- gpu.await: yields in a coroutine, waits elsewhere.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local HELD = { timeout = 30 } -- seconds: only a spec that fails waits for it

--- A thing to wait for that is done when asked for the nth time.
local function pending_result(nth, ...)
  local results, asked, waited = table.pack(...), 0, 0
  return {
    done = function()
      asked = asked + 1
      return asked >= nth
    end,
    synchronize = function()
      waited = waited + 1
      return true
    end,
    result = function()
      return table.unpack(results, 1, results.n)
    end,
    counts = function()
      return asked, waited
    end,
  }
end

describe("await", function()
  it("waits outside a coroutine, and returns the result", function()
    assert.is_false(coroutine.isyieldable())
    local object = pending_result(3, "here")
    assert.equal("here", gpu.await(object))
    assert.same({ 0, 1 }, { object.counts() })
  end)

  it("yields the object in a coroutine until it is done (F14)", function()
    local object = pending_result(3, "here")
    local run = coroutine.wrap(function() return "result", gpu.await(object) end)
    assert.is_true(rawequal(object, run()))
    assert.is_true(rawequal(object, run()))
    assert.same({ "result", "here" }, { run() })
    assert.same({ 3, 0 }, { object.counts() })
  end)

  it("does not yield what is done already", function()
    local object = pending_result(1, 7)
    assert.equal(7, coroutine.wrap(function() return gpu.await(object) end)())
  end)

  it("returns a result that is false as it is", function()
    assert.is_false(gpu.await(pending_result(1, false)))
    assert.is_false(coroutine.wrap(function()
      return gpu.await(pending_result(1, false))
    end)())
  end)

  it("yields through pcall, and an error at the yield passes (F14)", function()
    local object = pending_result(2, 1)
    local run = coroutine.wrap(function() return pcall(gpu.await, object) end)
    assert.is_true(rawequal(object, run()))
    assert.same({ true, 1 }, { run() })
    local thread = coroutine.create(function() gpu.await(pending_result(99)) end)
    assert.is_true(coroutine.resume(thread))
    assert.is_true(coroutine.close(thread))
  end)

  it("says what it takes", function()
    for _, wrong in ipairs { 42, "stream", {}, false } do
      for _, call in ipairs { pcall, function(f, ...)
        return coroutine.wrap(pcall)(f, ...)
      end } do
        local ok, message = call(gpu.await, wrong)
        assert.is_false(ok)
        assert.matches("await", tostring(message), 1, true)
        assert.matches("stream, event or pending", tostring(message), 1, true)
      end
    end
  end)
end)

each_device("await", function(open)
  it("lets others run while a stream works, then goes on (F14)", function()
    local dev = open()
    local s = dev:stream()
    local x = dev:array { 0 }
    local gate = s:gate(HELD)
    local log = {}
    x:fill(6, s)
    local waiter = coroutine.wrap(function()
      log[#log + 1] = "waits"
      gpu.await(s)
      log[#log + 1] = "value " .. x:get(1)
      return "over"
    end)
    for _ = 1, 3 do
      assert.is_true(rawequal(s, waiter()))
      log[#log + 1] = "other"
    end
    assert.is_true(gate:open())
    assert.is_true(s:synchronize())
    assert.equal("over", waiter())
    assert.same({ "waits", "other", "other", "other", "value 6.0" }, log)
  end)

  it("takes an event, in a coroutine and elsewhere", function()
    local dev = open()
    local s = dev:stream()
    local gate = s:gate(HELD)
    local event = s:record()
    local waiter = coroutine.wrap(function() return "over", gpu.await(event) end)
    assert.is_true(rawequal(event, waiter()))
    assert.is_true(gate:open())
    assert.is_nil(gpu.await(event))
    assert.is_true(event:done())
    assert.equal("over", (waiter()))
  end)

  it("refuses an event that was never recorded, in a coroutine and elsewhere", function()
    local dev = open()
    local event = dev:event()
    local function wait() gpu.await(event) end
    assert.error_matches(wait, "the event was never recorded", 1, true)
    assert.error_matches(coroutine.wrap(wait), "the event was never recorded", 1, true)
  end)

  it("leaves nothing behind when the coroutine is abandoned (F14)", function()
    local dev = open()
    local s = dev:stream()
    local gate = s:gate(HELD)
    local abandoned = coroutine.wrap(function()
      local x <close> = dev:array { 1 }
      gpu.await(s)
      return x
    end)
    assert.is_true(rawequal(s, abandoned()))
    assert.equal(4, dev:memory().live)
    abandoned = nil -- luacheck: ignore
    collectgarbage()
    assert.equal(0, dev:memory().live)
    assert.is_true(gate:open())
  end)
end)
