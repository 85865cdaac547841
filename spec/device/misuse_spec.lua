--- What is given is never ignored, and nothing that runs in between can pull an object away.
local each_device = require "spec.each_device"
local gpu = require "tidelock"

local function refuses(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  assert.matches(text, tostring(message), 1, true)
end

each_device("misuse", function(open, id)
  it("refuses more arguments than it takes", function()
    local dev = open()
    local s, m = dev:stream(), dev:zeros { 2, 3 }
    refuses("at most 4 arguments here, got 5", function() m:set(1, 2, 3, 9.5) end)
    refuses("at most 3 arguments here, got 4", function() m:get(1, 2, 3) end)
    refuses("nothing is expected after the stream", function() dev:zeros({ 2 }, s, "float64") end)
    refuses("nothing is expected after the stream", function()
      dev:full({ 2 }, 1, { dtype = "float64" }, s)
    end)
    refuses("at most 2 arguments here", function() m:upload({ 1, 2, 3, 4, 5, 6 }, s) end)
    refuses("at most 3 arguments here", function() dev:array({ 1 }, "float32", s) end)
    refuses("at most 2 arguments here", function() m:reshape(6, 1) end)
    refuses("a shape of several dimensions is a table", function() dev:zeros(2, 3) end)
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, m:totable())
  end)

  it("takes only numbers for elements", function()
    local dev = open()
    local b = dev:zeros(1)
    refuses("number expected, got string", function() b:set(1, "5") end)
    refuses("number expected, got string", function() b:fill("1") end)
    refuses("number expected, got string", function() dev:full(2, "3") end)
    assert.same({ 0 }, b:totable())
  end)

  it("takes empty views and shapes with several zeros", function()
    local dev = open()
    assert.same({ 2, 2, 0 }, dev:zeros(10):view({ shape = { 2, 2, 0 } }):shape())
    assert.same({ 2, 2, 0 }, dev:zeros({ 2, 2, 0 }):reshape({ 2, 2, 0 }):shape())
    assert.same({ 0, 2, 2 }, dev:zeros(10):view({ shape = { 0, 2, 2 } }):shape())
  end)

  it("does not index a buffer", function()
    local dev = open()
    local b = dev:zeros(3)
    refuses("a buffer is not indexed: use get(i, j) or totable()", function() return b[1] end)
    refuses("a buffer is not indexed", function() for _ in ipairs(b) do error("entered") end end)
    assert.is_nil(b.nothing)
  end)

  it("reads options as they are, and runs nothing meanwhile", function()
    local dev = open()
    local b, s = dev:zeros(4), dev:stream()
    local trap = setmetatable({}, { __index = function() b:close() end })
    b:fill(1, trap)
    refuses("option 'shape' is missing", function() b:view(trap) end)
    gpu.matmul(b:reshape { 2, 2 }, b:reshape { 2, 2 }, trap)
    assert.is_true(s:synchronize())
    assert.same({ 1, 1, 1, 1 }, b:totable())
  end)

  it("survives finalizers that close what a call works on", function()
    local dev = open()
    local refused = 0
    for _ = 1, 300 do
      local a = dev:zeros { 2, 2 }
      local s = dev:stream()
      setmetatable({}, { __gc = function() a:close() s:close() end })
      for _, call in ipairs {
        function() return gpu.matmul(a, a) end,
        function() return a:view { shape = 2 } end,
        function() return a:clone(s) end,
        function() return s:record() end,
        function() return a:totable() end,
      } do
        local ok, message = pcall(call)
        if not ok then
          refused = refused + 1
          assert.matches("is closed", tostring(message), 1, true)
        end
      end
    end
    assert.is_true(refused >= 0)
    assert.is_true(dev:synchronize())
  end)

  it("finds its device again by a stamp alone", function()
    local dev = open()
    local first = dev:now()
    dev = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local again = gpu.device((tostring(first):match("on (%S+)$")))
    assert.is_true(again:now() - first >= 0)
  end)

  it("waits once for the first contents, not at every launch", function()
    local dev = open(each_device.depth(id, 4))
    local s, t = dev:stream(), dev:stream()
    local gate = s:gate { timeout = 10 }
    local a = dev:full({ 2, 2 }, 2, { stream = s })
    local b = dev:full({ 2, 2 }, 3, { stream = s })
    local c = dev:zeros({ 2, 2 }, s)
    for _ = 1, 4 do
      gpu.matmul(a, b, c, t)
    end
    assert.equal(4, (t:inflight()))
    assert.is_true(gate:open())
    assert.same({ { 12, 12 }, { 12, 12 } }, c:totable())
  end)

  it("lets waits for events and launches have room of their own", function()
    local dev = open(each_device.depth(id, 4))
    local s, t = dev:stream(), dev:stream()
    local gate = s:gate { timeout = 10 }
    local event = s:record()
    for _ = 1, 4 do
      t:wait_event(event)
    end
    for _ = 1, 4 do
      t:spin(0)
    end
    assert.equal(4, (t:inflight()))
    assert.is_true(gate:open())
    assert.is_true(t:synchronize())
  end)

  it("steps down from a kernel that does not take the sizes", function()
    local dev = open()
    local a = dev:array { 1, 2 }:view { shape = { 1, 2 }, stride = 1 << 40 }
    local b = dev:array { { 3 }, { 4 } }
    assert.same({ { 11 } }, gpu.matmul(a, b):totable())
    refuses("a's stride is 1099511627776, kernel 'blas' takes at most 2147483647", function()
      gpu.matmul(a, b, { kernel = "blas" })
    end)
  end)
end)
