-- Memory that is let go while queued work still uses it, and finalizers that
-- run in the middle of a call.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local MiB <const> = 1 << 20
local nan = 0 / 0

--- Asserts that f raises a string that contains the text.
local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(message) ~= "string" then
    error(message, 0)
  end
  assert.matches(text, message, 1, true)
end

--- Stops the collector until the end of the block, so that what is dropped is
--- collected by the call under test and by no other.
local function stopped_collector()
  collectgarbage("stop")
  return setmetatable({}, {
    __close = function()
      collectgarbage("restart")
    end,
  })
end

--- Drops an object whose finalizer calls f.
local function drop_with_finalizer(f)
  setmetatable({}, { __gc = f })
end

local function matrix(dev, n, value)
  local diagonal = dev:zeros { n, n }
  diagonal:reshape(n * n):view({ shape = { n, 1 }, stride = n + 1 }):fill(value)
  dev:default_stream():synchronize() -- only the first write is ordered before other streams
  return diagonal
end

local function collect()
  collectgarbage()
  collectgarbage()
end

each_device("memory in use", function(open)
  it("C05: a buffer closed with a matmul queued keeps its memory until that has run", function()
    local dev = open()
    local n = 64
    local s, t = dev:stream(), dev:stream()
    local a, b, c = dev:full({ n, n }, 2), matrix(dev, n, 3), dev:full({ n, n }, -1)
    assert.is_true(dev:synchronize())
    local live = dev:memory().live
    local g = s:gate { timeout = 2 }
    gpu.matmul(a, b, c, s)
    a:close()
    refuses("buffer is closed", a.totable, a)
    refuses("buffer is closed", function() gpu.matmul(a, b, c, s) end)
    a = nil -- luacheck: ignore
    collect()
    local memory = dev:memory()
    assert.same({ live - 4 * n * n, 4 * n * n }, { memory.live, memory.pending })
    local others = {}
    for i = 1, 10 do
      others[i] = dev:full({ n, n }, nan, { stream = t })
    end
    assert.is_true(t:synchronize())
    assert.same({ 1, 1 }, { s:inflight() })
    assert.is_true(g:open())
    assert.is_true(c:tobytes() == dev:full({ n, n }, 6):tobytes())
    assert.is_true(s:synchronize())
    assert.equal(0, dev:memory().pending)
    assert.equal(10, #others)
  end)

  it("C05: the same with buffers that are collected, inputs and output alike", function()
    local dev = open()
    local n = 64
    local s, t = dev:stream(), dev:stream()
    local g = s:gate { timeout = 2 }
    local function queue()
      local a, b = dev:full({ n, n }, 2), matrix(dev, n, 3)
      gpu.matmul(a, b, s) -- nobody keeps this result
      local c = gpu.matmul(a, b, s)
      return gpu.matmul(c, b, s)
    end
    local d = queue()
    collect()
    assert.equal(1, dev:memory().buffers)
    for _ = 1, 10 do
      dev:full({ n, n }, nan, { stream = t })
    end
    assert.is_true(t:synchronize())
    assert.same({ 3, 3 }, { s:inflight() })
    assert.is_true(g:open())
    assert.is_true(d:tobytes() == dev:full({ n, n }, 18):tobytes())
    assert.is_true(s:synchronize())
    collect()
    assert.same({ 4 * n * n, 0 }, { dev:memory().live, dev:memory().pending })
  end)

  it("C05: a fill and a copy keep their buffers too", function()
    local dev = open()
    local s = dev:stream()
    local a, b, c = dev:zeros(100), dev:zeros(100), dev:zeros(100)
    assert.is_true(dev:synchronize())
    local g = s:gate { timeout = 2 }
    a:fill(5, s)
    b:copy_from(a, s)
    c:copy_from(b, s)
    a:close()
    b:close()
    assert.same({ 400, 800 }, { dev:memory().live, dev:memory().pending })
    local other = dev:full(100, -1)
    assert.is_true(dev:default_stream():synchronize())
    assert.is_true(g:open())
    assert.same({ 5, 5 }, { c:get(1), c:get(100) })
    assert.same({ -1, -1 }, { other:get(1), other:get(100) })
  end)

  it("C05: memory in use counts against the limit until the work has run", function()
    local dev = open { memory_limit = 4 * MiB }
    local s = dev:stream()
    local a = dev:full(MiB // 2, 1)
    assert.is_true(dev:synchronize())
    local g = s:gate { timeout = 2 }
    a:fill(2, s)
    a:close()
    assert.same({ 0, 2 * MiB, 2 * MiB },
      { dev:memory().live, dev:memory().pending, dev:memory().free })
    local b = dev:full(MiB // 2, 3)
    assert.equal(0, dev:memory().free)
    assert.same({ 1, 1 }, { s:inflight() })
    assert.is_true(g:open())
    assert.is_true(s:synchronize())
    assert.equal(2 * MiB, dev:memory().free)
    assert.equal(3, b:get(MiB // 2))
  end)

  it("C05: an allocation waits for queued work where only that frees memory", function()
    local dev = open { memory_limit = 4 * MiB }
    local s = dev:stream()
    local a = dev:full(MiB // 2, 1)
    assert.is_true(dev:synchronize())
    local start = dev:now()
    s:spin(0.02)
    a:fill(2, s)
    a:close()
    local b = dev:full(MiB * 3 // 4, 3) -- 3 MiB of the 4, while 2 are in use
    assert.equal(3, b:get(1))
    assert.is_true(dev:now() - start >= 0.02)
    assert.is_true(dev:memory().peak <= 4 * MiB)
  end)

  it("C06: closing an idle buffer waits for no other stream", function()
    local dev = open()
    local s, t = dev:stream(), dev:stream()
    local b = dev:full(1000, 1, { stream = t })
    local unused = dev:empty(1000)
    assert.is_true(dev:synchronize())
    local g = s:gate { timeout = 2 }
    s:spin(0)
    b:close()
    unused:close()
    assert.same({ 1, 1 }, { s:inflight() })
    assert.same({ 0, 0, 0 }, { dev:memory().live, dev:memory().pending, dev:memory().buffers })
    assert.is_true(t:done())
    assert.is_true(g:open())
    assert.is_true(s:synchronize())
  end)

  it("C06: closing a buffer in use waits neither, and is no barrier", function()
    local dev = open()
    local s = dev:stream()
    local b = dev:zeros(1000)
    assert.is_true(dev:synchronize())
    local g = s:gate { timeout = 2 }
    for i = 1, 5 do
      b:fill(i, s)
    end
    b:close()
    b = nil -- luacheck: ignore
    collect()
    assert.same({ 5, 5 }, { s:inflight() })
    assert.is_false(s:synchronize(0))
    assert.is_true(g:open())
    assert.is_true(s:synchronize())
    assert.equal(0, dev:memory().pending)
  end)

  it("A12: a finalizer that closes an input while the result is allocated", function()
    local dev = open { memory_limit = 4 * MiB }
    local _ <close> = stopped_collector()
    local n = 512 -- 1 MiB each
    local a, b = matrix(dev, n, 2), dev:full({ n, n }, 3)
    assert.is_true(dev:synchronize())
    local closed = 0
    drop_with_finalizer(function()
      a:close()
      closed = closed + 1
    end)
    dev:empty(2 * MiB // 4) -- dropped: the result fits only once it is collected
    local ok, c = pcall(gpu.matmul, a, b)
    assert.equal(1, closed, "the finalizer ran during the call")
    if ok then -- the arguments were kept
      assert.is_true(c:tobytes() == dev:full({ n, n }, 6):tobytes())
    else -- or the call says what became of them
      assert.matches("buffer is closed", tostring(c), 1, true)
    end
    assert.equal("buffer (closed)", tostring(a))
    c = nil -- luacheck: ignore
    collect()
    assert.is_true(dev:synchronize())
    assert.same({ MiB, 0, 1 },
      { dev:memory().live, dev:memory().pending, dev:memory().buffers })
    assert.equal(3, b:get(n, n))
  end)

  it("A12: a finalizer that closes the stream of the call", function()
    local dev = open { memory_limit = 4 * MiB }
    local _ <close> = stopped_collector()
    local n = 512
    local a, s = matrix(dev, n, 2), dev:stream()
    assert.is_true(dev:synchronize())
    local closed = 0
    drop_with_finalizer(function()
      s:close()
      closed = closed + 1
    end)
    dev:empty(3 * MiB // 4)
    refuses("stream is closed", gpu.matmul, a, a, { stream = s })
    assert.equal(1, closed)
    collect()
    assert.equal(MiB, dev:memory().live)
  end)

  it("A12: finalizers that close what zeros, full and clone work with", function()
    local dev = open { memory_limit = 4 * MiB }
    local _ <close> = stopped_collector()
    local source = dev:full(MiB // 4, 5)
    assert.is_true(dev:synchronize())
    for _, make in ipairs {
      function(s) return dev:zeros(MiB // 4, { stream = s }) end,
      function(s) return dev:full(MiB // 4, 1, { stream = s }) end,
      function(s) return source:clone(s) end,
    } do
      local s = dev:stream()
      local closed = 0
      drop_with_finalizer(function()
        s:close()
        closed = closed + 1
      end)
      dev:empty(3 * MiB // 4)
      refuses("stream is closed", make, s)
      assert.equal(1, closed)
      collect()
    end
    drop_with_finalizer(function() source:close() end)
    dev:empty(3 * MiB // 4)
    local ok, copy = pcall(source.clone, source)
    if ok then
      assert.equal(5, copy:get(MiB // 4))
    else
      assert.matches("buffer is closed", tostring(copy), 1, true)
    end
    copy = nil -- luacheck: ignore
    collect()
    assert.is_true(dev:synchronize())
    assert.same({ 0, 0 }, { dev:memory().live, dev:memory().pending })
  end)

  it("C02: finalizers may allocate, and see out of memory as an error", function()
    local dev = open { memory_limit = 4 * MiB }
    local _ <close> = stopped_collector()
    local small, large, made
    drop_with_finalizer(function()
      made, small = pcall(dev.empty, dev, 10)
      large = select(2, pcall(dev.empty, dev, 5 * MiB // 4))
    end)
    dev:empty(3 * MiB // 4)
    local b = dev:full(2 * MiB // 4, 1)
    assert.is_true(made)
    assert.equal(40, small:nbytes())
    assert.equal("out_of_memory", large.code)
    assert.equal(5 * MiB, large.asked)
    assert.equal(1, b:get(1))
    small:close()
    assert.equal(2 * MiB, dev:memory().live)
  end)

  it("closes in any order with work queued, streams and events too", function()
    local dev = open()
    local g
    local function queue()
      local s = dev:stream()
      g = s:gate { timeout = 2 }
      local a, b = dev:full({ 8, 8 }, 1), dev:full({ 8, 8 }, 2)
      local c = gpu.matmul(a, b, s)
      local e = s:record()
      return { s, a, b, c, e }
    end
    for _, order in ipairs { { 1, 2, 3, 4, 5 }, { 5, 4, 3, 2, 1 }, { 4, 1, 5, 2, 3 } } do
      local list = queue()
      for _, i in ipairs(order) do
        list[i]:close()
      end
      assert.equal(0, dev:memory().live)
      assert.equal(1, dev:memory().objects, "the gate")
      assert.is_true(dev:memory().pending > 0)
      assert.is_true(g:open())
      g:close()
      assert.is_true(dev:synchronize())
      assert.same({ 0, 0 }, { dev:memory().pending, dev:memory().objects })
    end
  end)
end)
