local each_device = require "spec.each_device"
local gpu = require "tidelock"
each_device("smoke", function(open)
  it("works", function()
    local dev = open()
    local a = dev:array({{1,2},{3,4}})
    assert.same({{7,10},{15,22}}, gpu.matmul(a, a):totable())
  end)
  it("works twice", function()
    local dev = open{queue_depth=4}
    local s = dev:stream()
    s:spin(0.01)
    assert.is_true(s:synchronize())
  end)
end)
