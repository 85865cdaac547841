local plot = require "tidelock.plot"
local stats = require "tidelock.stats"

describe("plot.seconds", function()
  it("takes three digits and the unit that they make", function()
    for seconds, text in pairs {
      [0.00205] = "2.05 ms", [1] = "1 s", [0.9999] = "1 s", [0.0009999] = "1 ms",
      [1.3e-6] = "1.3 us", [5.2e-8] = "52 ns", [12.5] = "12.5 s", [0.9994] = "999 ms",
    } do
      assert.equal(text, plot.seconds(seconds))
    end
  end)
end)

describe("plot.text", function()
  it("draws a step where it is", function()
    local values = {}
    for i = 1, 8 do values[i] = i <= 4 and 1e-6 or 1e-3 end
    assert.equal("t\n" ..
      "      1 ms |    ****\n" ..
      "   31.6 us |\n" ..
      "      1 us |****\n" ..
      "           +--------\n" ..
      "            1      8", plot.text(values, { title = "t", height = 3 }))
  end)

  it("draws one value, and equal ones", function()
    assert.equal("t\n      1 ms |*\n           +-\n            1",
      plot.text({ 1e-3 }, { title = "t" }))
    assert.equal("t\n      1 ms |***\n           +---\n            1 3",
      plot.text({ 1e-3, 1e-3, 1e-3 }, { title = "t" }))
  end)
end)

describe("plot.svg", function()
  it("writes only the file that it is told to write, whatever it is called", function()
    if not os.execute("command -v gnuplot >/dev/null 2>&1") then
      pending("gnuplot is not installed")
      return
    end
    local name = os.tmpname()
    local path = name .. "|it's $HOME.svg"
    assert.is_true(plot.svg(path, { 1e-6, 1e-3 }, { title = "t" }))
    local file = assert(io.open(path))
    assert.matches("^<%?xml", file:read("l"))
    file:close()
    os.remove(path)
    os.remove(name)
  end)

  it("says why there is none", function()
    local written, reason = plot.svg("/nonexistent/x.svg", { 1 }, { title = "t" })
    assert.is_false(written)
    assert.is_true(reason == "gnuplot is not installed"
      or reason == "/nonexistent/x.svg: No such file or directory", reason)
  end)
end)

describe("stats.step", function()
  it("finds where launches become slow, and nothing where they do not", function()
    local values = {}
    for i = 1, 400 do
      values[i] = (i <= 100 and 2e-6 or 1e-3) * (1 + 0.1 * (i % 7) / 7)
    end
    values[40] = 5e-3 -- an outlier makes no step
    local step = stats.step(values)
    assert.equal(101, step.first)
    assert.near(2e-6, step.before, 2e-7)
    assert.near(1e-3, step.after, 1e-4)
    for i = 101, 400 do values[i] = 2e-6 end
    assert.is_nil(stats.step(values))
    assert.is_nil(stats.step({ 1, 2, 3 }))
  end)

  it("finds a step to the double", function()
    local values = {}
    for i = 1, 300 do values[i] = i <= 200 and 1e-5 or 2e-5 end
    assert.equal(201, stats.step(values).first)
  end)
end)
