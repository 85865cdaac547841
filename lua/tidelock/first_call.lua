--- Policy "first_call": what a process pays before its first result, by phase. Each repetition is a
--- process of its own, for what is loaded once stays loaded.
---
--- The operation is a file: a Lua script that returns function(dev, stream), which makes buffers
--- and returns the operation, a function of no arguments.
local stats = require "tidelock.stats"

local first_call = {}

--- In the order in which they happen. `process` is the rest: starting the interpreter, loading
--- tidelock, and ending.
first_call.phases = { "process", "device", "script", "enqueue", "drain", "second", "steady" }

-- ---- in the child ----------------------------------------------------------------------------

--- Runs the script on the device and prints each phase and its seconds, a line each.
---@param path string
---@param id string of the device
---@param gpu table
function first_call.child(path, id, gpu)
  local host = gpu.device("host:7") -- a clock before there is a device; it starts no thread
  local before = host:clock()
  local function phase(name)
    local now = host:clock()
    io.write(("%s %.17g\n"):format(name, now - before))
    before = host:clock()
  end
  local dev = gpu.device(id)
  local stream = dev:stream()
  phase "device"
  local operation = assert(loadfile(path))()(dev, stream)
  dev:synchronize()
  phase "script"
  operation()
  phase "enqueue"
  stream:synchronize()
  phase "drain"
  operation()
  stream:synchronize()
  phase "second"
  local values = {}
  for i = 1, 5 do
    local start = host:clock()
    operation()
    stream:synchronize()
    values[i] = host:clock() - start
  end
  phase "loop"
  io.write(("steady %.17g\n"):format(stats.summary(values).median))
end

-- ---- in the parent ---------------------------------------------------------------------------

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- The interpreter that runs this script.
local function interpreter()
  local lowest = 0
  while arg and arg[lowest - 1] do
    lowest = lowest - 1
  end
  return lowest < 0 and arg[lowest] or "lua5.4"
end

local function command(path, id)
  local program = ("package.path, package.cpath = %q, %q; "
    .. "require 'tidelock.first_call'.child(%q, %q, require 'tidelock')"):format(package.path,
    package.cpath, path, id)
  return ("%s -e %s 2>&1"):format(quote(interpreter()), quote(program))
end

--- Runs one child; returns its phases and the wall time of the whole process.
local function run(path, id, clock)
  local began = clock:clock()
  local pipe = assert(io.popen(command(path, id)))
  local output = pipe:read("a")
  local ended = pipe:close()
  local wall = clock:clock() - began
  local phases, known = {}, 0
  for name, seconds in output:gmatch("(%a+) ([%d.e+-]+)\n") do
    phases[name] = tonumber(seconds)
  end
  if not ended or not phases.steady then
    error(("the process for policy 'first_call' failed: %s"):format(output:gsub("%s+$", "")), 0)
  end
  for name, seconds in pairs(phases) do
    known = known + (name ~= "steady" and seconds or 0)
  end
  phases.process = wall - known
  return phases, wall
end

--- Starts so many processes one after the other.
---@param path string of the script
---@param id string of the device
---@param count integer
---@param clock tidelock.device of real time
---@return table<string, tidelock.statistics> phases
---@return table columns of the samples: the first call of each process; wall with `process` seconds
function first_call.measure(path, id, count, clock)
  local series = {}
  local columns = { enqueue = {}, device = {}, sync = {}, wall = {}, ops = {}, process = {} }
  for i = 1, count do
    local phases, wall = run(path, id, clock)
    for name, seconds in pairs(phases) do
      series[name] = series[name] or {}
      series[name][i] = seconds
    end
    columns.enqueue[i], columns.sync[i] = phases.enqueue, phases.drain
    columns.wall[i], columns.device[i] = phases.enqueue + phases.drain, false
    columns.ops[i], columns.process[i] = 1, wall
  end
  local statistics = {}
  for name, values in pairs(series) do
    statistics[name] = stats.summary(values)
  end
  return statistics, columns
end

return first_call
