local records = require "spec.records"
local result = require "tidelock.result"

--- Calls f(path) with the name of a file that is not there, and removes what f makes.
local function with_path(f)
  local path = os.tmpname()
  os.remove(path)
  local ok, raised = pcall(f, path)
  os.remove(path)
  if not ok then error(raised, 0) end
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

--- What f raises.
local function raised_by(f, ...)
  local ok, raised = pcall(f, ...)
  assert.is_false(ok)
  return raised
end

local function warning(code, changes)
  local fields = { code = code, message = "what happened" }
  for key, value in pairs(changes or {}) do fields[key] = value end
  return fields
end

describe("a printed bench", function()
  it("is a headline with its clock named, the other clocks, the rate, the policy", function()
    assert.equal([[
matmul on cuda:0 (NVIDIA H200), policy cold [bench.lua:12]
  device time               312.40 us    (95 % interval 311.96 to 312.84 us, n = 47)
  enqueue time              4.1000 us    (95 % interval 4.0959 to 4.1041 us)
  wall time, synchronized   330.00 us    (95 % interval 329.67 to 330.33 us)
  time in synchronize       325.90 us    (95 % interval 325.57 to 326.23 us)
  51.2 TFLOP/s [device time]
  clock events, isolation each, cache flush, duty burst, blocked until all is queued
  an empty call costs 210 ns; setup and warm-up took 1.2 s]], tostring(records.bench()))
  end)

  it("needs no more than a name and a median", function()
    assert.equal("bare\n  wall time, synchronized   1.000 ms\n"
      .. "  device time               not measured",
      tostring(result.new { kind = "bench", name = "bare", headline = "wall",
        wall = { median = 1e-3 } }))
  end)

  it("takes no rate from a clock that did not see the work", function()
    local text = tostring(records.bench { headline = "enqueue" })
    assert.matches("\n  enqueue time +4.1000 us", text)
    assert.matches("\n  51.2 TFLOP/s [device time]\n", text, 1, true)
    text = tostring(result.new { kind = "bench", name = "x", headline = "enqueue", flops = 2e12,
      enqueue = { median = 999e-6 } })
    assert.is_nil(text:find("FLOP/s", 1, true))
    assert.matches("  no rate: no clock of this record saw the work being done", text, 1, true)
    text = tostring(records.bench { headline = "wall", bytes = 3.3e6 })
    assert.matches("  48.5 TFLOP/s, 10 GB/s [wall time, synchronized]", text, 1, true)
  end)

  it("says where launches began to wait, unless a warning does", function()
    local knee = { first = 1029, before = 20e-6, after = 5e-3, predicted = 1028.4 }
    assert.matches("\n  launches 1-1028 cost 20 us each; from 1029 on each waits 5 ms for a free "
      .. "slot [enqueue time], predicted from 1028\n", tostring(records.bench { knee = knee }), 1,
      true)
    assert.is_nil(tostring(records.bench { knee = knee, warnings = { warning("W-BACKPRESSURE") } })
      :find("launches 1-", 1, true))
  end)

  it("puts the corrected value beside the raw one", function()
    local text = tostring(records.bench { corrected = 311.3e-6,
      calibration = { bias = 1.1e-6, scale = 1.0002, floor = 1.9e-6 } })
    assert.matches("  device time               312.40 us ", text, 1, true)
    assert.matches("  policy floor 1.9 us, bias +1.1 us, scale 1.0002; corrected 311.3 us\n", text,
      1, true)
  end)

  it("has the headline in parentheses where measuring costs more than it does", function()
    local text = tostring(records.bench { warnings = { warning("W-OVERHEAD") } })
    assert.matches("device time               (312.40 us)", text, 1, true)
  end)

  it("names the estimator where it is not the median, without the median's interval", function()
    local bench = records.bench()
    bench.policy.center = "min"
    assert.matches("\n  device time, minimum      309.3 us     %(n = 47%)\n", tostring(bench))
  end)

  it("prints every error, then three of the others, then a count", function()
    local text = tostring(records.bench { warnings = {
      warning("W-DRIFT", { where = "a.lua:3", cause = "clocks", action = "warm up longer" }),
      warning("E-WRONG", { where = "a.lua:3: " }), warning("W-OUTLIERS"), warning("E-CLOCKS"),
      warning("I-GRAPHED"), warning("W-SHARED"), warning("W-BIMODAL"),
    } })
    assert.equal([[
  E-WRONG a.lua:3: what happened
  E-CLOCKS what happened
  W-DRIFT a.lua:3: what happened
    likely cause: clocks; what to do: warm up longer
  W-OUTLIERS what happened
  I-GRAPHED what happened
  and 2 more: see .warnings]], text:sub((text:find("  E-WRONG", 1, true))))
  end)
end)

describe("a printed table", function()
  it("of a comparison has every clock, the ratios and the noise floor", function()
    local text = tostring(records.compare())
    assert.equal("comparison on cuda:0 (NVIDIA H200), policy cold, 20 rounds; ratios of device "
      .. "time to 'naive'", text:match("^[^\n]+"))
    assert.matches("\n  tiled  100.00 us    99.80 to 100.20 us   4.100 us      330.0 us  "
      .. "               160 TFLOP/s   0.320  0.318 to 0.322  FASTER\n", text, 1, true)
    assert.matches("\n  noise floor: 'naive' against itself 1.000 (0.999 to 1.001)", text, 1, true)
  end)

  it("of a comparison takes ratios with or without the first's own", function()
    local one = { ratio = 1, ci = { low = 1, high = 1 }, verdict = "SAME" }
    local two = { ratio = 1.01, ci = { low = 0.98, high = 1.04 }, verdict = "UNRESOLVED",
      needed = 84.6 }
    for _, ratios in ipairs { { one, two }, { two } } do
      assert.matches("1.010  0.980 to 1.040  UNRESOLVED (needs about 85 rounds)\n",
        tostring(records.compare { ratios = ratios }), 1, true)
    end
  end)

  it("of a comparison says whose warning it is", function()
    local compare = records.compare()
    compare.results[2].warnings = { warning("E-IMPOSSIBLE") }
    assert.matches("\n  E-IMPOSSIBLE (tiled) what happened", tostring(compare), 1, true)
  end)

  it("of a sweep has its axes in order, and why a point was skipped", function()
    local lines = {}
    for line in tostring(records.sweep()):gmatch("[^\n]+") do lines[#lines + 1] = line end
    assert.equal("sweep of matmul over n, kernel on cuda:0 (NVIDIA H200), policy cold", lines[1])
    assert.equal("  n    kernel  device time                      95 % interval      enqueue time  "
      .. "wall time, synchronized  FLOP/s", lines[2])
    assert.equal("  512  naive   skipped: it would take too long", lines[5])
    assert.matches("^  512  tiled   31.84 us +31.21 to 32.48 us +4.100 us +330.0 us +8.43 TFLOP/s$",
      lines[6])
  end)

  it("of a calibration has each policy's bias, scale and floor", function()
    local text = tostring(records.calibration())
    assert.matches("calibration on cuda:0 (NVIDIA H200): measured = bias + scale * spin\n", text, 1,
      true)
    assert.matches("\n  enqueue  3 us     0.0000  none    20 ns     5\n", text, 1, true)
    assert.matches("\n  batch    1.35 us  1.0000  135 us  20 ns     5$", text)
  end)
end)

describe("result.new", function()
  it("makes records of the tables in a table", function()
    local plain = { kind = "compare", names = { "a" }, ratios = {}, rounds = 20, results = {
      { kind = "bench", name = "a", headline = "wall", wall = { median = 1 } } } }
    assert.equal(plain, result.new(plain))
    assert.equal(1, plain.schema)
    assert.matches("^a\n  wall time, synchronized   1.000 s", tostring(plain.results[1]))
  end)

  it("refuses what could not be printed, at the script's line", function()
    for message, fields in pairs {
      ["kind 'nil' is none of bench, compare, sweep, calibration, against"] = {},
      ["schema 2: this version has schema 1"] = { kind = "bench", schema = 2 },
      ["a bench needs a name"] = { kind = "bench" },
      ["headline 'cpu' is none of the clocks device, slope, enqueue, wall, sync"] =
        { kind = "bench", name = "x", headline = "cpu" },
      ["the headline's statistics, 'wall', have no median"] =
        { kind = "bench", name = "x", headline = "wall", wall = {} },
      ["'ratios' is missing"] = { kind = "compare", names = {}, results = {} },
      ["a record is a table, not a boolean"] = { kind = "compare", names = {}, ratios = {},
        results = { true } },
    } do
      local raised = raised_by(function() result.new(fields) end)
      assert.matches("result_spec.lua:%d+: ", raised)
      assert.equal("bad record: " .. message, (raised:gsub("^.-:%d+: ", "")))
    end
  end)
end)

describe("record:json", function()
  it("writes a line that reads back equal, with its methods", function()
    with_path(function(path)
      local samples = { enqueue = { 0.1 + 0.2, 5e-324, -0.0, 1e308 }, ops = { 2^53 | 1, 1, 1, 1 },
        device = { false, 1e-6, math.huge, -math.huge } }
      for _, written in ipairs { records.bench { samples = samples }, records.compare(),
        records.sweep(), records.calibration() } do
        written:json(path)
        assert.equal(1, select(2, read(path):gsub("\n", "")))
        local all = result.read(path)
        assert.equal(1, #all)
        assert.same(written, all[1])
        assert.equal(getmetatable(written), getmetatable(all[1]))
        assert.equal(tostring(written), tostring(all[1]))
      end
    end)
  end)

  it("starts a line with what a reader looks for", function()
    with_path(function(path)
      records.bench():json(path)
      assert.matches('^{"schema":1,"kind":"bench","name":"matmul","where":"bench.lua:12",'
        .. '"policy":{', read(path))
    end)
  end)

  it("replaces the file, or appends to it, behind a line that was cut off", function()
    with_path(function(path)
      records.bench { name = "a" }:json(path)
      records.bench { name = "b" }:json(path)
      records.bench { name = "c" }:json(path, { append = true })
      local all = result.read(path)
      assert.same({ "b", "c" }, { all[1].name, all[2].name })
      write(path, '{"schema":1,"kin')
      records.bench():json(path, { append = true })
      assert.matches('^{"schema":1,"kin\n{"schema":1,"kind":"bench"', read(path))
    end)
  end)

  it("names the path and the reason where a file can't be opened", function()
    local raised = raised_by(function() records.bench():json("/nonexistent/x.jsonl") end)
    assert.equal("io", raised.code)
    assert.equal("/nonexistent/x.jsonl: No such file or directory", raised.message)
    assert.equal("/nonexistent/x.jsonl", raised.path)
    assert.matches("result_spec.lua:%d+: /nonexistent/x.jsonl: No such file or directory$",
      tostring(raised))
    raised = raised_by(function() records.bench():json("/nonexistent/x", { append = true }) end)
    assert.equal("/nonexistent/x: No such file or directory", raised.message)
  end)

  it("leaves the old file as it was, and nothing beside it, when writing fails", function()
    with_path(function(path)
      write(path, "old")
      local bench = records.bench()
      bench.settings = { f = print }
      local raised = raised_by(function() bench:json(path) end)
      assert.matches("can't write JSON: value.settings.f is a function", raised, 1, true)
      assert.equal("old", read(path))
      os.remove(path)
      assert(os.execute("mkdir " .. path))
      raised = raised_by(function() records.bench():json(path) end) -- a rename onto a folder
      assert.equal("io", raised.code)
      assert.equal(path .. ": Is a directory", raised.message)
      local list = io.popen("ls -d " .. path .. "*")
      assert.equal(path, list:read("a"):gsub("\n$", ""), nil)
      list:close()
      os.execute("rmdir " .. path)
    end)
  end)

  it("says so when the disk is full", function()
    if not io.open("/dev/full", "w") then
      pending("there is no /dev/full")
      return
    end
    for _, append in ipairs { false, true } do
      local bench = records.bench()
      local raised = raised_by(function() bench:json("/dev/full", { append = append }) end)
      assert.equal("/dev/full: No space left on device", raised.message)
    end
  end)

  it("refuses other options, and what is no path", function()
    local bench = records.bench()
    for message, call in pairs {
      ["unknown option 'apend'; there is: append"] = { "x", { apend = true } },
      ["bad option 'append' (boolean expected, got number)"] = { "x", { append = 1 } },
      ["bad path (a file's name expected, got nil)"] = {},
      ["bad path (a file's name expected, got an empty string)"] = { "" },
    } do
      local raised = raised_by(function() bench:json(call[1], call[2]) end)
      assert.matches("result_spec.lua:%d+: ", raised)
      assert.equal(message, (raised:gsub("^.-:%d+: ", "")))
    end
  end)
end)

describe("result.read", function()
  it("says which line is no record, and why", function()
    with_path(function(path)
      records.bench():json(path)
      local line = read(path)
      for message, case in pairs {
        ["3: column 5: ':' expected, got '1'"] = line .. '\n{"a"1}\n',
        ["2: column 17: a string that does not end"] = line .. '{"schema":1,    "kin',
        ["1: a record is a table, not a number"] = "1\n",
        ["1: kind 'nil' is none of bench, compare, sweep, calibration, against"] = "{}",
        ["1: a bench needs a name"] = '{"kind":"bench"}',
        ["2: schema 2: this version has schema 1"] = line .. line:gsub('"schema":1', '"schema":2'),
      } do
        write(path, case)
        local raised = raised_by(function() result.read(path) end)
        assert.equal(path .. ":" .. message, raised.message)
        assert.equal(message:find("schema 2") and "unsupported" or "io", raised.code)
      end
    end)
  end)

  it("skips empty lines and takes line ends of other systems", function()
    with_path(function(path)
      records.bench():json(path)
      write(path, "\r\n" .. read(path):gsub("\n", "\r\n") .. "\n\n")
      assert.same({ records.bench() }, result.read(path))
      write(path, "")
      assert.same({}, result.read(path))
    end)
  end)

  it("is gpu.read_results, which names the script's line too", function()
    local gpu = require "tidelock"
    with_path(function(path)
      records.compare():json(path)
      assert.same({ records.compare() }, gpu.read_results(path))
    end)
    local raised = raised_by(function() gpu.read_results("/nonexistent") end)
    assert.matches("result_spec.lua:%d+: /nonexistent: No such file or directory$",
      tostring(raised))
  end)

  it("names the path and the reason where a file can't be read", function()
    assert.equal("/nonexistent: No such file or directory",
      raised_by(function() result.read("/nonexistent") end).message)
    assert.equal("/tmp: Is a directory", raised_by(function() result.read("/tmp") end).message)
  end)
end)

describe("record:csv", function()
  it("has a row for each sample, units in the header, exact numbers", function()
    with_path(function(path)
      records.bench { name = 'a "quoted", name', samples = { enqueue = { 4e-6, 0.1 + 0.2 },
        device = { false, 1e-6 }, ops = { 1, 20 }, start = { 10, 10.5 } } }:csv(path)
      assert.equal([[
name,policy,device,sample,start_seconds,enqueue_seconds,device_seconds,sync_seconds,]]
        .. [[wall_seconds,inflight_launches,slots,operations
"a ""quoted"", name",cold,cuda:0 (NVIDIA H200),1,10,4e-06,,,,,,1
"a ""quoted"", name",cold,cuda:0 (NVIDIA H200),2,10.5,0.30000000000000004,1e-06,,,,,20
]], read(path))
    end)
  end)

  it("has the axes of a sweep for columns, and every variant of a comparison", function()
    with_path(function(path)
      records.sweep():csv(path)
      assert.matches("^name,policy,device,n,kernel,sample,start_seconds,", read(path))
      assert.matches("\nmatmul,cold,cuda:0 %(NVIDIA H200%),512,tiled,2,,4.2e%-06,0.000313,",
        read(path))
      assert.equal(1 + 3 * 2, select(2, read(path):gsub("\n", "")))
      records.compare():csv(path)
      assert.equal(1 + 2 * 2, select(2, read(path):gsub("\n", "")))
      records.calibration():csv(path)
      assert.matches("^policy,device,spin_seconds,measured_seconds\nenqueue,cuda:0 %(NVIDIA H200%),"
        .. "0,3e%-06\n", read(path))
    end)
  end)

  it("appends rows of the same columns, and refuses others", function()
    with_path(function(path)
      records.bench():csv(path, { append = true })
      records.bench { name = "b" }:csv(path, { append = true })
      assert.equal(1 + 2 * 2, select(2, read(path):gsub("\n", "")))
      local raised = raised_by(function() records.calibration():csv(path, { append = true }) end)
      assert.equal("io", raised.code)
      assert.matches("^" .. path .. ": its columns are name,policy,.*; this record's are "
        .. "policy,device,spin_seconds,measured_seconds$", raised.message)
    end)
  end)
end)

describe("record:markdown", function()
  it("returns a table with the clock named, then what was wrong, and writes it", function()
    with_path(function(path)
      local text = records.bench { name = "a|b", warnings = { warning("W-DRIFT") } }:markdown(path)
      assert.equal([[
| name | device | policy | clock | time | 95 % interval | enqueue time | ]]
        .. [[wall time, synchronized | FLOP/s | warnings |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| a\|b | cuda:0 (NVIDIA H200) | cold | device time | 312.40 us | 311.96 to 312.84 us | ]]
        .. [[4.100 us | 330.0 us | 51.2 TFLOP/s | W-DRIFT |

- `W-DRIFT` (a|b): what happened
]], text)
      assert.equal(text, read(path))
    end)
  end)

  it("has one table for many benches, with the device's time where enqueue is the headline",
    function()
      with_path(function(path)
        result.write(path, { records.bench(), records.bench { name = "b", headline = "enqueue" } },
          "markdown")
        local text = read(path)
        assert.matches("\n| matmul | .* | device time | 312.40 us | ", text)
        assert.matches("\n| b | .* | enqueue time | 4.1000 us | .* | 312.4 us | 330.0 us | ", text)
        assert.equal(1, select(2, text:gsub("| name |", "")))
      end)
    end)

  it("has a table of its own for the other kinds", function()
    assert.matches("^comparison on cuda:0 %(NVIDIA H200%), policy cold, 20 rounds; .*\n\n| name | "
      .. "device time .* | verdict |\n| %-%-%- | .*\n| naive | .*\n\nnoise floor: ",
      records.compare():markdown())
    assert.matches("\n| 512 | naive | skipped: it would take too long |",
      records.sweep():markdown(), 1, true)
  end)
end)
