-- Device memory: what is counted, what the collector is told, what happens when
-- it runs out.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local MiB <const> = 1 << 20

--- Asserts that f raises an out-of-memory error, and returns it.
local function exhausts(f, ...)
  local ok, failure = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: out_of_memory")
  if type(failure) ~= "table" or failure.code ~= "out_of_memory" then
    error(failure, 0)
  end
  return failure
end

--- Runs f with the collector in this mode, and puts the old one back.
local function with_collector(mode, f)
  local before = collectgarbage(mode)
  local restore <close> = setmetatable({}, { -- luacheck: ignore
    __close = function()
      collectgarbage(mode == "stop" and "restart" or before)
    end,
  })
  f()
end

each_device("memory", function(open)
  it("counts bytes and buffers that are open, and remembers the most", function()
    local dev = open { memory_limit = 64 * MiB }
    local m = dev:memory()
    assert.same({ 0, 0, 0, 0 }, { m.live, m.peak, m.pending, m.buffers })
    assert.same({ 64 * MiB, 64 * MiB }, { m.limit, m.free })
    assert.is_true(m.total > 64 * MiB)
    assert.is_true(m.cached >= 0)
    local a, b = dev:empty(MiB), dev:empty({ 2, 3 }, "float64")
    m = dev:memory()
    assert.same({ 4 * MiB + 48, 4 * MiB + 48, 2 }, { m.live, m.peak, m.buffers })
    assert.equal(60 * MiB - 48, m.free)
    a:close()
    m = dev:memory()
    assert.same({ 48, 4 * MiB + 48, 1, 0 }, { m.live, m.peak, m.buffers, m.pending })
    assert.equal(64 * MiB - 48, m.free)
    b:close()
    m = dev:memory()
    assert.same({ 0, 4 * MiB + 48, 0 }, { m.live, m.peak, m.buffers })
    for name, value in pairs(m) do
      assert.equal("integer", math.type(value), name)
    end
  end)

  it("counts every kind of object, and none that is closed", function()
    local dev = open()
    local before = dev:memory().objects
    local list = { dev:empty(1), dev:stream(), dev:event() }
    list[4] = list[1]:view { shape = 1 }
    list[5] = list[2]:gate { timeout = 2 }
    assert.equal(before + 5, dev:memory().objects)
    for i = #list, 1, -1 do
      list[i]:close()
      list[i]:close()
    end
    assert.equal(before, dev:memory().objects)
  end)

  it("is limited to what the device has where nothing is said", function()
    local dev = open()
    local m = dev:memory()
    assert.equal(m.total, m.limit)
    assert.is_true(m.free > 0 and m.free <= m.total)
    assert.equal(m.total, dev:properties().total_memory)
  end)

  it("refuses a limit that is no number of bytes", function()
    local dev = open()
    local id = dev:id()
    assert.is_true(dev:synchronize())
    dev:close()
    for _, case in ipairs {
      { -1, "option 'memory_limit': at least 1 byte wanted, got -1" },
      { "much", "option 'memory_limit': integer expected, got string" },
    } do
      local ok, message = pcall(gpu.device, id, { memory_limit = case[1] })
      assert.is_false(ok)
      assert.matches(case[2], message, 1, true)
    end
  end)

  for _, mode in ipairs { "incremental", "generational" } do
    it("C01: 20000 dropped buffers of 1 MiB stay below the soft limit, " .. mode, function()
      local dev = open()
      with_collector(mode, function()
        for _ = 1, 20000 do
          dev:empty(262144, "float32")
        end
      end)
      assert.is_true(dev:memory().peak >= MiB)
      assert.is_true(dev:memory().peak < 512 * MiB, "peak " .. dev:memory().peak)
    end)
  end

  it("C01: collects before it passes the soft limit, though the collector is stopped", function()
    local dev = open()
    local s = dev:stream()
    local a, b = dev:empty { 512, 0 }, dev:empty { 0, 512 }
    with_collector("stop", function()
      for _ = 1, 1000 do
        dev:zeros(262144, s)
        gpu.matmul(a, b, s)
      end
    end)
    assert.is_true(s:synchronize())
    assert.is_true(dev:memory().peak < 512 * MiB, "peak " .. dev:memory().peak)
  end)

  it("C01: closing leaves nothing for the collector to do", function()
    local dev = open { memory_limit = 2 * MiB }
    with_collector("stop", function()
      for _ = 1, 1000 do
        local b <close> = dev:empty(262144)
        assert.equal(MiB, b:nbytes())
      end
    end)
    assert.equal(MiB, dev:memory().peak)
  end)

  it("C02: collects dropped buffers when the limit is reached", function()
    local dev = open { memory_limit = 64 * MiB }
    for _ = 1, 1000 do
      dev:empty(262144, "float32")
    end
    assert.is_true(dev:memory().peak <= 64 * MiB)
    with_collector("stop", function()
      coroutine.wrap(function()
        for _ = 1, 200 do
          dev:empty(262144, "float32")
        end
      end)()
    end)
    assert.is_true(dev:memory().peak <= 64 * MiB)
  end)

  it("C02: says what was asked, live and free, and goes on once some is released", function()
    local dev = open { memory_limit = 64 * MiB }
    local kept = {}
    for i = 1, 60 do
      kept[i] = dev:full(262144, i)
    end
    local failure = exhausts(dev.empty, dev, 8 * MiB // 4)
    assert.same({ 8388608, 62914560, 4194304, 67108864, 60 },
      { failure.asked, failure.live, failure.free, failure.limit, failure.buffers })
    assert.equal(dev:id() .. ": out of memory: asked 8388608 bytes, live 62914560 in 60 buffers, "
      .. "free 4194304, limit 67108864", failure.message)
    assert.equal(failure.message, tostring(failure))
    for i = 1, 60 do
      assert.same({ i, i }, { kept[i]:get(1), kept[i]:get(262144) })
    end
    assert.same({ 62914560, 60, 4194304 },
      { dev:memory().live, dev:memory().buffers, dev:memory().free })
    for i = 1, 8 do
      kept[i]:close()
    end
    assert.equal(8388608, dev:full(8 * MiB // 4, 1):nbytes())
    assert.equal(60, kept[60]:get(1))
  end)

  it("C02: fills the limit to the last byte", function()
    local dev = open { memory_limit = 1000 }
    local a = dev:full(200, 1)
    local failure = exhausts(dev.empty, dev, 51)
    assert.same({ 204, 800, 200 }, { failure.asked, failure.live, failure.free })
    local b = dev:full(50, 2)
    assert.equal(0, dev:memory().free)
    failure = exhausts(dev.empty, dev, 1)
    assert.same({ 4, 1000, 0, 2 },
      { failure.asked, failure.live, failure.free, failure.buffers })
    assert.same({ 0 }, dev:empty(0):shape())
    assert.same({ 1, 2 }, { a:get(200), b:get(50) })
  end)

  it("C02: every way of making a buffer names what it asked", function()
    local dev = open { memory_limit = 100 }
    local a = dev:full({ 4, 5 }, 1)
    local column, row = a:view { shape = { 20, 1 } }, a:view { shape = { 1, 20 } }
    assert.equal(40, exhausts(dev.zeros, dev, 10).asked)
    assert.equal(48, exhausts(dev.full, dev, 6, 1, "float64").asked)
    assert.equal(24, exhausts(dev.array, dev, { 1, 2, 3, 4, 5, 6 }).asked)
    assert.equal(80, exhausts(a.clone, a).asked)
    assert.equal(1600, exhausts(gpu.matmul, column, row).asked)
    assert.same({ 1 }, a:view({ offset = 19, shape = 1 }):totable())
    assert.equal(80, dev:memory().live)
    assert.equal(4, gpu.matmul(row, column):nbytes())
  end)

  it("C03: a failed allocation leaves nothing behind", function()
    local dev = open()
    local failure = exhausts(dev.empty, dev, 1 << 40, "float32")
    assert.equal(1 << 42, failure.asked)
    assert.matches("out of memory: asked 4398046511104 bytes", failure.message, 1, true)
    local a = dev:array { { 1, 2 }, { 3, 4 } }
    assert.same({ { 7, 10 }, { 15, 22 } }, gpu.matmul(a, a):totable())
    assert.is_true(dev:synchronize())
    assert.is_nil(dev:last_cleanup_error())
    assert.is_false(dev:is_lost())
  end)

  it("B14: names exactly the bytes of 46341 x 46341", function()
    local dev = open { memory_limit = 1 << 30 }
    for _, shape in ipairs { 46341 * 46341, { 46341, 46341 } } do
      local failure = exhausts(dev.empty, dev, shape, "float32")
      assert.equal(8589953124, failure.asked)
      assert.matches("asked 8589953124 bytes", failure.message, 1, true)
      assert.equal(1 << 30, failure.limit)
    end
    local a, b = dev:empty { 46341, 1 }, dev:empty { 1, 46341 }
    assert.equal(8589953124, exhausts(gpu.matmul, a, b).asked)
  end)

  it("trims: gives back what closed objects held", function()
    local dev = open { memory_limit = MiB }
    dev:full(MiB // 4, 1):close()
    assert.is_true(dev:synchronize())
    dev:trim()
    local m = dev:memory()
    assert.same({ 0, 0, 0, MiB }, { m.live, m.pending, m.cached, m.free })
    assert.equal(MiB, dev:full(MiB // 4, 1):nbytes())
  end)
end)
