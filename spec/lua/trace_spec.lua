local json = require "tidelock.json"
local records = require "spec.records"
local report = require "tidelock.report"
local trace_format = require "spec.trace_format"

local function trace_of(record)
  return assert(json.decode(report.text(record, "trace")))
end

--- The events of a phase as "name ts dur" or "name ts value", of one lane where that is given.
local function events_of(trace, phase, lane)
  local list = {}
  for _, event in ipairs(trace.traceEvents) do
    if event.ph == phase and (not lane or event.tid == lane) then
      list[#list + 1] = ("%s %.10g %.10g"):format(event.name, event.ts or 0,
        event.dur or event.args.launches)
    end
  end
  return list
end

local function assert_sound(record)
  local trace = trace_of(record)
  assert.is_nil(trace_format.fault(trace))
  return trace
end

describe("record:trace", function()
  it("has samples on the host's lane, in them enqueue and synchronize", function()
    local trace = assert_sound(records.bench())
    assert.same({
      "sample 0 330", "enqueue 0 4", "synchronize 4 326",
      "sample 330 330.2", "enqueue 330 4.2", "synchronize 334.2 326",
    }, events_of(trace, "X", 1))
    assert.same({ sample = 1, operations = 1, slots = 3 }, trace.traceEvents[6].args)
    assert.equal("samples are laid end to end: when each started was not kept",
      trace.otherData.host_lane)
  end)

  it("has the device's work on a lane of its own, ending when synchronize returned", function()
    local trace = assert_sound(records.bench())
    assert.same({ "matmul 18 312", "matmul 347.2 313" }, events_of(trace, "X", 2))
    assert.equal("drawn so that work ends when synchronize returned: the device's clock tells how "
      .. "long, not when", trace.otherData.device_lane)
  end)

  it("counts launches in flight: none, those when the enqueueing ended, none", function()
    local bench = records.bench()
    bench.samples.inflight = { 7, 9 }
    assert.same({ "in flight 0 0", "in flight 4 7", "in flight 330 0", "in flight 334.2 9",
      "in flight 660.2 0" }, events_of(assert_sound(bench), "C"))
  end)

  it("puts samples where they were, from the first one's start", function()
    local bench = records.bench()
    bench.samples.start = { 1e5 + 0.25, 1e5 + 0.5 } -- 250 ms apart, on a clock that runs long since
    local trace = assert_sound(bench)
    assert.same({ "sample 0 330", "enqueue 0 4", "synchronize 4 326", "sample 250000 330.2",
      "enqueue 250000 4.2", "synchronize 250004.2 326" }, events_of(trace, "X", 1))
    assert.equal("samples lie where they were on the host's clock", trace.otherData.host_lane)
  end)

  it("leaves out what was not measured", function()
    local bench = records.bench { samples = { enqueue = { 4e-6, 5e-6 }, device = { false, 2e-6 } } }
    local trace = assert_sound(bench)
    assert.same({ "sample 0 4", "enqueue 0 4", "synchronize 4 0", "sample 4 5", "enqueue 4 5",
      "synchronize 9 0" }, events_of(trace, "X", 1))
    assert.same({ "matmul 7 2" }, events_of(trace, "X", 2))
  end)

  it("shows each launch where launches were timed", function()
    local bench = records.bench { launches = { 1e-6, 1e-6, 2.5e-6 },
      samples = { enqueue = { 4e-6 }, wall = { 10e-6 } } }
    -- The third would end behind the loop: clocks that do not agree are not made to.
    assert.same({ "sample 0 10", "enqueue 0 4", "launch 0 1", "launch 1 1", "synchronize 4 6" },
      events_of(assert_sound(bench), "X", 1))
  end)

  it("names its processes and lanes, one process for each bench", function()
    local names = {}
    for _, event in ipairs(assert_sound(records.sweep()).traceEvents) do
      if event.ph == "M" and event.args.name then
        names[#names + 1] = event.pid .. " " .. event.name .. " " .. event.args.name
      end
    end
    assert.same({
      "1 process_name matmul, n=256, kernel=naive [cold]", "1 thread_name host",
      "1 thread_name cuda:0 (NVIDIA H200)",
      "2 process_name matmul, n=256, kernel=tiled [cold]", "2 thread_name host",
      "2 thread_name cuda:0 (NVIDIA H200)",
      "3 process_name matmul, n=512, kernel=tiled [cold]", "3 thread_name host",
      "3 thread_name cuda:0 (NVIDIA H200)",
    }, names)
  end)

  it("stays sound where clocks went wrong, and for names that are not UTF-8", function()
    local trace = assert_sound(records.bench { name = "\xffa", samples = {
      enqueue = { 0 / 0, -1e-6, 4e-6 }, wall = { math.huge, 2e-6, 1e-6 },
      device = { -1e-6, 0 / 0, 5e-6 }, start = { 3, 2, 4 } } })
    assert.same({ "?a 0 0", "?a 2 0", "?a 999999 5" }, events_of(trace, "X", 2))
  end)

  it("is sound without any samples, and for a record without benches", function()
    local bare = records.bench()
    bare.samples = nil
    assert.equal(5, #assert_sound(bare).traceEvents)
    assert.same({}, assert_sound(records.calibration()).traceEvents)
  end)

  it("is sound for any samples", function()
    local seed = os.time()
    math.randomseed(seed)
    for round = 1, 50 do
      local samples = { enqueue = {}, device = {}, sync = {}, wall = {}, start = {}, inflight = {} }
      local now = math.random() * 1e6
      for i = 1, 40 do
        local enqueue, sync = math.random() * 10.0 ^ -math.random(3, 7), math.random() * 1e-3
        samples.start[i], samples.enqueue[i], samples.sync[i] = now, enqueue, sync
        samples.wall[i], samples.inflight[i] = enqueue + sync, math.random(0, 1024)
        -- The device's clock is another one: it may tell a little more than the wall.
        samples.device[i] = math.random(5) > 1 and (enqueue + sync) * (0.1 + 0.9001 * math.random())
        now = now + enqueue + sync + (math.random(2) == 1 and math.random() * 1e-4 or 0)
      end
      if round % 2 == 0 then samples.start = nil end
      if round % 3 == 0 then samples.wall = nil end
      assert.is_nil(trace_format.fault(trace_of(records.bench { samples = samples })),
        "seed " .. seed)
    end
  end)

  it("is JSON to others, and written as a whole", function()
    local path = os.tmpname()
    records.compare():trace(path)
    local python = os.execute("python3 -c 'import json' 2>/dev/null")
    if python then
      local counted = io.popen("python3 -c 'import json, sys; "
        .. "print(len(json.load(open(sys.argv[1]))[\"traceEvents\"]))' '" .. path .. "'")
      assert.equal("36", counted:read("l"))
      counted:close()
    end
    local file = assert(io.open(path))
    local trace = json.decode(file:read("a"))
    file:close()
    os.remove(path)
    assert.equal(36, #trace.traceEvents)
    assert.is_nil(trace_format.fault(trace))
    local ok, raised = pcall(report.write, "x", records.bench(), "trace", { append = true })
    assert.is_false(ok)
    assert.matches("bad option 'append': trace is written as a whole", raised, 1, true)
  end)
end)

describe("the checker", function()
  local function span(ts, dur, changes)
    local event = { ph = "X", name = "s", cat = "host", pid = 1, tid = 1, ts = ts, dur = dur }
    for key, value in pairs(changes or {}) do event[key] = value end
    return event
  end

  it("takes spans that nest or are apart, on each lane", function()
    assert.is_nil(trace_format.fault { traceEvents = { span(0, 10), span(0, 4), span(4, 6),
      span(10, 1), span(2, 20, { tid = 2 }) }, displayTimeUnit = "ns" })
  end)

  it("refuses what the format does", function()
    local counter = { ph = "C", name = "c", pid = 1, tid = 1, ts = 0, args = {} }
    for fault, events in pairs {
      ["span 's' at 3 overlaps the one around it"] = { span(0, 10), span(0, 4), span(3, 5) },
      ["event 2 goes back in time on lane 1/1"] = { span(5, 1), span(4, 1) },
      ["event 1: dur is negative"] = { span(0, -1) },
      ["event 1: dur is no number"] = { span(0, "1") },
      ["event 1: ts is no number"] = { span(0 / 0, 1) },
      ["event 1: pid is no whole number"] = { span(0, 1, { pid = 1.5 }) },
      ["event 1: unknown phase Z"] = { span(0, 1, { ph = "Z" }) },
      ["event 1: name is no string"] = { span(0, 1, { name = 1 }) },
      ["event 1: a counter without a value"] = { counter },
      ["event 1: unknown metadata"] = { { ph = "M", name = "x", pid = 1, tid = 1 } },
      ["event 1: name is missing"] = { { ph = "M", name = "thread_name", pid = 1, tid = 1 } },
    } do
      assert.equal(fault, trace_format.fault { traceEvents = events })
    end
    assert.equal("traceEvents is missing", trace_format.fault {})
    assert.equal("displayTimeUnit is neither ms nor ns",
      trace_format.fault { traceEvents = {}, displayTimeUnit = "s" })
  end)
end)
