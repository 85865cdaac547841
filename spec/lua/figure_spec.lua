local axis = require "tidelock.report.axis"
local figure = require "tidelock.report.figure"
local plot = require "tidelock.plot"
local records = require "spec.records"
local result = require "tidelock.result"
local units = require "tidelock.units"

local function drawing_of(record)
  return assert(figure.of(record))
end

--- A drawing that gnuplot takes without a word.
local function assert_draws(record)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(plot.script(drawing_of(record)))
  file:close()
  local gnuplot = io.popen("gnuplot " .. path .. " 2>&1 >/dev/null")
  local said = gnuplot:read("a")
  gnuplot:close()
  os.remove(path)
  assert.equal("", said)
end

local function launches_of(count, knee)
  local launches = {}
  for i = 1, count do launches[i] = i < knee and 4e-6 or 1e-3 end
  return records.bench { launches = launches, knee = { first = knee, before = 4e-6, after = 1e-3 },
    policy = { name = "unsynced" } }
end

local function samples_of(values)
  return records.bench { samples = { enqueue = values, device = values } }
end

describe("units", function()
  it("gives a value the digits that its interval allows", function()
    for _, case in ipairs {
      { 312.4e-6, 0.44e-6, "312.40 us", "311.96 to 312.84 us" },
      { 312.4e-6, 20e-6, "312 us", "292 to 332 us" },
      { 1.5, 0.1, "1.50 s", "1.40 to 1.60 s" },
      { 2e-3, 0, "2.000 ms", "2.000 to 2.000 ms" },
      { 0.0, 0, "0.00000 ns", "0.00000 to 0.00000 ns" },
    } do
      local value, interval = units.measured(case[1],
        { low = case[1] - case[2], high = case[1] + case[2] })
      assert.same({ case[3], case[4] }, { value, interval })
    end
    assert.equal("4.100 us", units.measured(4.1e-6))
    assert.equal("nan", units.measured(0 / 0))
  end)

  it("takes T for the largest prefix of a rate", function()
    assert.same({ "51.2 TFLOP/s", "2002 TFLOP/s", "870 GFLOP/s", "12 B/s", "1 TB/s" },
      { units.rate(5.12e13, "FLOP/s"), units.rate(2.002e15, "FLOP/s"), units.rate(8.7e11, "FLOP/s"),
        units.rate(12, "B/s"), units.rate(9.999e11, "B/s") })
  end)
end)

describe("an axis", function()
  it("is logarithmic for positive values that span half a decade, with labelled units", function()
    local x = axis.of(4e-6, 1e-3, { kind = "seconds", log = true })
    assert.is_true(x.log)
    assert.same({ "10 us", "100 us", "1 ms" }, x.labels)
    assert.same({ "100", "200", "500", "1000" },
      axis.of(100, 1000, { kind = "number", log = true }).labels)
  end)

  it("is linear else, with the digits of its steps", function()
    local x = axis.of(312.0e-6, 313.0e-6, { kind = "seconds", log = true })
    assert.is_false(x.log)
    assert.same({ "312.0 us", "312.2 us", "312.4 us", "312.6 us", "312.8 us", "313.0 us" },
      x.labels)
    assert.is_false(axis.of(0, 100, { kind = "number", log = true }).log)
    for _, value in ipairs { 0.0, 1e-6, 5.0 } do -- one value alone
      local alone = axis.of(value, value, { kind = "seconds", log = true })
      assert.is_true(alone.low < value and value < alone.high)
      assert.is_true(#alone.ticks > 0 and #alone.ticks == #alone.labels)
    end
  end)
end)

describe("the figure of a bench", function()
  it("is launch cost against launch number where launches were timed", function()
    local drawing = drawing_of(launches_of(2000, 1029))
    assert.equal("Launch cost: matmul on cuda:0 (NVIDIA H200), policy unsynced", drawing.title)
    assert.equal("launch number", drawing.xlabel)
    assert.equal("enqueue time of each launch, seconds", drawing.ylabel)
    assert.same({ { x = 1029, label = "from launch 1029 on each waits for a slot" } },
      drawing.lines)
    assert.same({ 1029, 1e-3 }, drawing.series[1].points[1029])
    assert.equal(2000, #drawing.series[1].points)
    assert.is_true(drawing.y.log)
  end)

  it("is else the distribution of the headline's samples, for an operation", function()
    local bench = samples_of { 10e-6, 11e-6, 11e-6, 12e-6, false, 40e-6 }
    bench.samples.ops = { 1, 1, 1, 1, 1, 2 }
    local drawing = drawing_of(bench)
    assert.equal("device time of an operation, seconds", drawing.xlabel)
    assert.equal("samples (of 5)", drawing.ylabel)
    local counted = 0
    for i, bar in ipairs(drawing.series[1].points) do
      counted = counted + bar[2]
      assert.is_true(bar[3] < bar[4])
      if i == 1 then assert.near(10e-6, bar[3], 1e-12) end
    end
    assert.equal(5, counted) -- 40 us for 2 operations is 20 us for one: no sample is lost
    assert.near(20e-6, drawing.series[1].points[#drawing.series[1].points][4], 1e-12)
    assert.equal("median 312.40 us", drawing.lines[1].label)
    assert.same({ { x = { bench.device.ci.low, bench.device.ci.high } } }, drawing.bands)
  end)

  it("has a logarithmic axis where samples span more than a decade", function()
    local values = {}
    for i = 1, 100 do values[i] = (i % 10 == 0 and 5e-3 or 4e-6) * (1 + i / 1000) end
    local drawing = drawing_of(samples_of(values))
    assert.is_true(drawing.x.log)
    local counted = 0
    for _, bar in ipairs(drawing.series[1].points) do counted = counted + bar[2] end
    assert.equal(100, counted)
  end)

  it("is a single bar for equal samples, and nothing for none", function()
    assert.equal(1, #drawing_of(samples_of { 1e-6, 1e-6, 1e-6 }).series[1].points)
    local drawing, reason = figure.of(samples_of {})
    assert.is_nil(drawing)
    assert.equal("the record has no samples of its headline to draw", reason)
    assert.same({ false, reason }, { samples_of {}:plot("/nonexistent/x.svg") })
  end)
end)

describe("the figure of a sweep", function()
  it("is time against size, a line for each kernel, its sizes for ticks", function()
    local drawing = drawing_of(records.sweep { 256, 512, 1024, 2048 })
    assert.equal("Time against n on cuda:0 (NVIDIA H200), policy cold", drawing.title)
    assert.equal("device time of an operation, seconds", drawing.ylabel)
    assert.same({ "256", "512", "1024", "2048" }, drawing.x.labels)
    assert.is_true(drawing.x.log and drawing.y.log)
    assert.same({ "matmul, kernel=naive", "matmul, kernel=tiled" },
      { drawing.series[1].title, drawing.series[2].title })
    assert.equal(3, #drawing.series[1].points) -- the fourth was skipped
    assert.equal(4, #drawing.series[2].points)
    assert.equal(2048, drawing.series[2].points[4][1])
  end)

  it("needs an axis of numbers and a point that was measured", function()
    local sweep = records.sweep()
    sweep.axes[1][2] = { "small", "large" }
    assert.same({ nil, "the sweep has no axis of numbers to draw against" }, { figure.of(sweep) })
    sweep = records.sweep()
    for _, point in ipairs(sweep.points) do point.result, point.skipped = nil, "why" end
    assert.same({ nil, "every point of the sweep was skipped" }, { figure.of(sweep) })
  end)
end)

describe("the figure of the other kinds", function()
  it("is a box for each variant of a comparison", function()
    local drawing = drawing_of(records.compare())
    assert.same({ "naive", "tiled" }, drawing.x.labels)
    local first = records.compare().results[1].device
    assert.same({ 1, first.q1, first.min, first.max, first.q3 }, drawing.series[1].points[1])
    assert.same({ 2, 100e-6 }, drawing.series[2].points[2])
  end)

  it("is a line for each policy of a calibration, and the truth", function()
    local titles = {}
    local drawing = drawing_of(records.calibration())
    for i, series in ipairs(drawing.series) do titles[i] = series.title end
    assert.same({ "enqueue", "events", "batch", "the truth" }, titles)
    assert.equal(4, #drawing.series[1].points) -- the spin of length 0 has no place
    assert.same({ { 2e-6, 2e-6 }, { 1e-3, 1e-3 } }, drawing.series[4].points)
  end)

  it("is the ratios and the margin against an earlier run", function()
    local against = result.against(records.bench(), records.bench())
    local drawing = drawing_of(against)
    assert.same({ { y = 1 } }, drawing.lines)
    assert.same({ { y = { 0.95, 1.05 } } }, drawing.bands)
    assert.equal(1.0, drawing.series[1].points[1][2])
    against = result.against(records.bench(), {})
    assert.same({ nil, "nothing could be compared" }, { figure.of(against) })
  end)
end)

describe("plot.script", function()
  it("quotes what the script calls things, and leaves out what has no place", function()
    local bench = launches_of(20, 11)
    bench.name = "it's a_{b}\n`x`"
    local script = plot.script(drawing_of(bench))
    assert.matches("set title 'Launch cost: it''s a_{b} `x` on cuda:0 ", script, 1, true)
    assert.matches(" noenhanced ", script, 1, true)
    local sweep = records.sweep()
    sweep.points[2].result.device.median = 0 / 0
    script = plot.script(drawing_of(sweep))
    assert.is_nil(script:find("nan", 1, true))
  end)

  it("is what gnuplot takes without a word, for every kind", function()
    if not os.execute("command -v gnuplot >/dev/null 2>&1") then
      pending("gnuplot is not installed")
      return
    end
    local wide, equal = {}, {}
    for i = 1, 100 do
      wide[i], equal[i] = (i % 10 == 0 and 5e-3 or 4e-6) * (1 + i / 1000), 1e-6
    end
    for _, record in ipairs { launches_of(2000, 1029), samples_of(wide), samples_of(equal),
      records.bench(), records.compare(), records.sweep(), records.sweep { 256, 512, 1024, 2048 },
      records.calibration(), result.against(records.bench(), records.bench()) } do
      assert_draws(record)
    end
    local quoted = records.bench { name = "it's \"a\" \\ $HOME `x`" }
    assert_draws(quoted)
  end)

  it("makes an SVG with the clock's name in it", function()
    if not os.execute("command -v gnuplot >/dev/null 2>&1") then
      pending("gnuplot is not installed")
      return
    end
    local path = os.tmpname()
    assert.is_true(records.bench():plot(path))
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    os.remove(path)
    assert.matches("^<%?xml", text)
    assert.matches("device time of an operation, seconds", text, 1, true)
    assert.same({ false, "/nonexistent/x.svg: No such file or directory" },
      { records.bench():plot("/nonexistent/x.svg") })
  end)
end)
