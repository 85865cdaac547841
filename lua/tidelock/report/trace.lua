--- A trace that chrome://tracing and Perfetto open (Trace Event Format, JSON object form): for each
--- bench a process with a host lane (samples, in them enqueue and synchronize), a device lane, and
--- a counter of launches in flight. Complete events ("X") that nest, counters ("C"), metadata
--- ("M").
---
--- Times are microseconds, rounded to whole nanoseconds first, so that what nests stays nested.
--- Two things are not in the samples, and are said in otherData: where the device's work lay
--- within its sample (it is drawn so that it ends when synchronize returned), and, where samples
--- carry no start, the time between them (they are laid end to end).
local json = require "tidelock.json"
local runs = require "tidelock.report.runs"
local tables = require "tidelock.report.tables"

local HOST, DEVICE = 1, 2 -- lanes: thread ids within a bench's process

--- Whole nanoseconds; 0 for what is no time: nothing, NaN, infinities and less than 0.
local function nanoseconds(seconds)
  if not seconds or seconds ~= seconds or seconds < 0 or seconds > 1e9 then
    return 0
  end
  return math.floor(seconds * 1e9 + 0.5)
end

--- A name as JSON; bytes that are not UTF-8 become question marks.
local function name_of(text)
  return json.encode(utf8.len(text) and text or (text:gsub("[\128-\255]", "?")))
end

--- What a column has for a sample; nil where there is no column, or false in it.
local function sample_of(bench, column, i)
  local values = bench.samples[column]
  return values and values[i] or nil
end

--- Nanoseconds as the text of microseconds: exact, and in no locale.
local function microseconds(ns)
  return ("%d.%03d"):format(ns // 1000, ns % 1000)
end

--- A span from one nanosecond to another. Events are kept as text: there are many.
local function add_span(events, lane, name, from, to, arguments)
  events[#events + 1] = ('{"ph":"X","name":%s,"cat":"%s","pid":%d,"tid":%d,"ts":%s,"dur":%s%s}')
    :format(name, lane == HOST and "host" or "device", events.pid, lane, microseconds(from),
      microseconds(to - from), arguments and ',"args":' .. json.encode(arguments) or "")
end

local function add_counter(events, at, launches)
  -- One value at one time: the later one takes the place of the earlier.
  local place = events.counted == at and events.counter or #events + 1
  events[place] = ('{"ph":"C","name":"in flight","pid":%d,"tid":%d,"ts":%s,"args":{"launches":%s}}')
    :format(events.pid, HOST, microseconds(at), json.number(launches))
  events.counted, events.counter = at, place
end

local function add_metadata(events, name, lane, value)
  local key = type(value) == "string" and "name" or "sort_index"
  events[#events + 1] = ('{"ph":"M","name":"%s","pid":%d,"tid":%d,"args":{"%s":%s}}')
    :format(name, events.pid, lane, key, type(value) == "string" and name_of(value) or value)
end

local function add_names(events, run)
  local policy = run.bench.policy and run.bench.policy.name
  add_metadata(events, "process_name", HOST, run.bench.name
    .. (run.label ~= "" and ", " .. run.label or "") .. (policy and " [" .. policy .. "]" or ""))
  add_metadata(events, "thread_name", HOST, "host")
  add_metadata(events, "thread_sort_index", HOST, HOST)
  add_metadata(events, "thread_name", DEVICE, tables.device_of(run.bench) or "device")
  add_metadata(events, "thread_sort_index", DEVICE, DEVICE)
end

--- The launches of the only sample, one behind the other, as far as its enqueue time goes.
local function add_launches(events, bench, from, to)
  for i, seconds in ipairs(bench.launches) do
    local stop = from + nanoseconds(seconds)
    if stop > to then
      return
    end
    add_span(events, HOST, '"launch"', from, stop, { launch = i })
    from = stop
  end
end

--- One sample from the nanosecond it starts at; returns where it ends.
local function add_sample(events, bench, i, start)
  local enqueued = start + nanoseconds(sample_of(bench, "enqueue", i))
  local wall = sample_of(bench, "wall", i)
  local done = wall and start + nanoseconds(wall)
    or enqueued + nanoseconds(sample_of(bench, "sync", i))
  done = math.max(done, enqueued)
  add_span(events, HOST, '"sample"', start, done, { sample = i,
    operations = sample_of(bench, "ops", i), slots = sample_of(bench, "slots", i) })
  add_span(events, HOST, '"enqueue"', start, enqueued)
  if bench.launches and #bench.samples.enqueue == 1 then
    add_launches(events, bench, start, enqueued)
  end
  add_span(events, HOST, '"synchronize"', enqueued, done)
  local device = sample_of(bench, "device", i)
  if device then
    local from = math.max(done - nanoseconds(device), events.device_free)
    events.device_free = from + nanoseconds(device)
    add_span(events, DEVICE, name_of(bench.name), from, events.device_free, { sample = i })
  end
  add_counter(events, start, 0)
  add_counter(events, enqueued, sample_of(bench, "inflight", i) or 0)
  add_counter(events, done, 0)
  return done
end

--- When the sample starts, in nanoseconds since the first one; never before the last one's end.
local function start_of(bench, i, free)
  local starts = bench.samples.start
  if not starts then
    return free
  end
  return math.max(free, nanoseconds(starts[i] - starts[1]))
end

local function events_of(run, pid)
  local bench = run.bench
  local events = { pid = pid, device_free = 0 }
  add_names(events, run)
  local free = 0
  for i = 1, #(bench.samples and bench.samples.enqueue or {}) do
    free = add_sample(events, bench, i, start_of(bench, i, free))
  end
  return events
end

return {
  name = "trace",

  row = function(state, record)
    local lines = {}
    for _, run in ipairs(runs.of(record)) do
      if run.bench then
        state.pid = (state.pid or 0) + 1
        state.laid_out = state.laid_out or not (run.bench.samples or {}).start
        for _, event in ipairs(events_of(run, state.pid)) do
          lines[#lines + 1] = event
        end
      end
    end
    if #lines == 0 then
      return ""
    end
    local opening = state.open and ",\n" or '{"traceEvents":[\n'
    state.open = true
    return opening .. table.concat(lines, ",\n")
  end,

  finish = function(state)
    local data = json.encode {
      device_lane = "drawn so that work ends when synchronize returned: the device's clock tells "
        .. "how long, not when",
      host_lane = state.laid_out and "samples are laid end to end: when each started was not kept"
        or "samples lie where they were on the host's clock",
    }
    return (state.open and "\n" or '{"traceEvents":[\n')
      .. '],"displayTimeUnit":"ns","otherData":' .. data .. "}\n"
  end,
}
