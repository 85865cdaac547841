--- A checker for the Trace Event Format, JSON object form, written from its published description
-- ("Trace Event Format", the Chromium project's document) and from what Perfetto says it takes
-- (perfetto.dev/docs/faq: complete events of one lane must nest). It knows the phases that
-- tidelock writes: X, C and M.
local trace_format = {}

local function is_number(value)
  return type(value) == "number" and value == value and math.abs(value) < math.huge
end

local function is_id(value)
  return math.type(value) == "integer" and value >= 0
end

local metadata = {
  process_name = "string", thread_name = "string", process_labels = "string",
  process_sort_index = "number", thread_sort_index = "number",
}

--- For each phase: what is wrong with an event of it, or nil.
local phases = {}

function phases.X(event)
  return not is_number(event.ts) and "ts is no number"
    or not is_number(event.dur) and "dur is no number"
    or event.dur < 0 and "dur is negative"
    or type(event.cat) ~= "string" and "cat is no string"
    or event.args ~= nil and type(event.args) ~= "table" and "args is no object"
end

function phases.C(event)
  if not is_number(event.ts) then
    return "ts is no number"
  elseif type(event.args) ~= "table" or next(event.args) == nil then
    return "a counter without a value"
  end
  for _, value in pairs(event.args) do
    if not is_number(value) then
      return "a counter's value is no number"
    end
  end
end

function phases.M(event)
  local kind = metadata[event.name]
  local key = kind == "string" and (event.name == "process_labels" and "labels" or "name")
    or "sort_index"
  return not kind and "unknown metadata"
    or (type(event.args) ~= "table" or type(event.args[key]) ~= kind) and key .. " is missing"
end

local function fault_of(event)
  return type(event) ~= "table" and "no object"
    or type(event.name) ~= "string" and "name is no string"
    or not phases[event.ph] and "unknown phase " .. tostring(event.ph)
    or not is_id(event.pid) and "pid is no whole number"
    or not is_id(event.tid) and "tid is no whole number"
    or phases[event.ph](event)
end

--- The picoseconds of a time: microseconds as text have three decimals here, so sums are exact.
local function picoseconds(microseconds)
  return math.floor(microseconds * 1e6 + 0.5)
end

--- Checks that spans of a lane are within each other or apart, given in the order of their starts,
--- longer ones first.
local function nesting_fault(spans)
  local open = {}
  for _, span in ipairs(spans) do
    local from = picoseconds(span.ts)
    local to = from + picoseconds(span.dur)
    while #open > 0 and open[#open] <= from do
      open[#open] = nil
    end
    if #open > 0 and to > open[#open] then
      return ("span '%s' at %s overlaps the one around it"):format(span.name, span.ts)
    end
    open[#open + 1] = to
  end
end

--- Collects by lane; events of one lane must be in order of time in the file.
local function lanes_of(events, phase)
  local lanes, order = {}, {}
  for i, event in ipairs(events) do
    if event.ph == phase then
      local key = ("%d/%s"):format(event.pid, phase == "C" and event.name or event.tid)
      if not lanes[key] then
        lanes[key] = {}
        order[#order + 1] = key
      end
      local lane = lanes[key]
      if #lane > 0 and event.ts < lane[#lane].ts then
        return nil, ("event %d goes back in time on lane %s"):format(i, key)
      end
      lane[#lane + 1] = event
    end
  end
  return lanes, order
end

--- Says what is wrong with a trace, or nil.
---@param trace any decoded JSON
---@return string? fault
function trace_format.fault(trace)
  if type(trace) ~= "table" or type(trace.traceEvents) ~= "table" then
    return "traceEvents is missing"
  elseif trace.displayTimeUnit ~= nil and trace.displayTimeUnit ~= "ms"
    and trace.displayTimeUnit ~= "ns" then
    return "displayTimeUnit is neither ms nor ns"
  end
  for i, event in ipairs(trace.traceEvents) do
    local fault = fault_of(event)
    if fault then
      return ("event %d: %s"):format(i, fault)
    end
  end
  local counters, fault = lanes_of(trace.traceEvents, "C")
  if not counters then
    return fault
  end
  local lanes, order = lanes_of(trace.traceEvents, "X")
  if not lanes then
    return order
  end
  for _, key in ipairs(order) do
    fault = nesting_fault(lanes[key])
    if fault then
      return fault
    end
  end
end

return trace_format
