--- Products whose size, shape or precision has broken other libraries.
local each_device = require "spec.each_device"
local each_kernel = require "spec.each_kernel"
local gpu = require "tidelock"

local GiB = 1 << 30

each_device("matmul", function(open, id)
  for _, rows in ipairs { 1048561, 2097121 } do
    it("B23: makes a column of " .. rows .. " rows, more than a grid has in y", function()
      local dev = open()
      each_kernel(dev, function(kernel, dtype, label)
        local element = { float32 = "<f", float64 = "<d" }
        if not element[dtype] then
          return
        end
        local seven = {}
        for i = 0, 6 do
          seven[#seven + 1] = element[dtype]:pack(i)
        end
        local column = table.concat(seven):rep(rows // 7 + 1)
        local a = dev:empty({ rows, 1 }, dtype)
        a:upload(column:sub(1, a:nbytes()))
        local c = gpu.matmul(a, dev:array({ { 3 } }, dtype), { kernel = kernel })
        assert.equal(0, c:get(1, 1), label)
        assert.equal(3 * (1048560 % 7), c:get(1048561, 1), label)
        assert.equal(3 * ((rows - 1) % 7), c:get(rows, 1), label)
        c:close()
        a:close()
      end)
    end)
  end

  it("B14: addresses more than 2^31 elements in every kernel", function()
    local dev = open()
    if not id:find("cuda", 1, true) or dev:memory().free < 10 * GiB then
      pending("needs 10 GiB and a GPU's speed")
      return
    end
    local n = 46341
    local rows, columns = {}, {}
    for i = 0, n - 1 do
      rows[i + 1], columns[i + 1] = { 1 + i % 7 }, 1 + i % 5
    end
    local a, b, c = dev:array(rows), dev:array { columns }, dev:empty { n, n }
    for _, kernel in ipairs(dev:matmul_kernels()) do
      c:fill(-1)
      gpu.matmul(a, b, c, { kernel = kernel.name })
      assert.same({ 1, 14, 35, 5, 1 }, {
        c:get(1, 1), c:get(46340, 2), c:get(46340, 46340), c:get(46341, 46340), c:get(n, n),
      }, kernel.name)
    end
  end)

  it("B16: 1024.5 times the identity is 1024.5 in float32; tf32 has to be asked for", function()
    local dev = open()
    local n = 256
    local identity = {}
    for i = 1, n do
      identity[i] = {}
      for j = 1, n do
        identity[i][j] = i == j and 1 or 0
      end
    end
    local a, b = dev:full({ n, n }, 1024.5), dev:array(identity)
    local exact = ("<f"):pack(1024.5):rep(n * n)
    for _, kernel in ipairs(dev:matmul_kernels()) do
      if kernel.available then
        for _, compute in ipairs { false, "float32" } do
          local c = gpu.matmul(a, b, { kernel = kernel.name, compute = compute or nil })
          assert.is_true(c:tobytes() == exact, kernel.name)
        end
      end
    end
    if id:find("cuda", 1, true) and not os.getenv("NVIDIA_TF32_OVERRIDE") then
      local value = gpu.matmul(a, b, { compute = "tf32" }):get(n, n)
      assert.is_true(value == 1024 or value == 1025, "rounded to tf32: " .. value)
    end
  end)
end)
