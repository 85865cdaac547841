--- GPU experiments in Lua. Every time says which clock it is, and whether the
-- work was done. The device layer is tidelock.core, declared in core.d.lua.
local check = require "tidelock.check"
local core = require "tidelock.core"
local device = require "tidelock.device"

---@class tidelock: tidelock.core
local gpu = {}
for name, value in pairs(core) do
  gpu[name] = value
end

--- The default handler: one line on stderr, once for each code and place.
local function warn_once()
  local seen = {}
  return function(code, message, details)
    local place = details.where ~= "" and details.where or message
    if not seen[code .. place] then
      seen[code .. place] = true
      io.stderr:write("tidelock: ", code, " ", details.where, message, "\n")
    end
  end
end

--- Waits for a stream, an event or a pending result. In a coroutine it yields
--- the object until it is done, so that others can run; elsewhere it waits.
---@param object any something with done() and synchronize()
---@return any ... what object:result() returns, where there is such a method
function gpu.await(object)
  local known, done = pcall(function() return object.done end)
  if not known or not done then
    error(("bad argument #1 to 'await' (stream, event or pending result expected, got %s)")
      :format(type(object)), 2)
  end
  if coroutine.isyieldable() then
    local finished, reason = object:done()
    while not finished do
      if finished == nil then
        error(reason, 2)
      end
      coroutine.yield(object)
      finished, reason = object:done()
    end
  else
    object:synchronize()
  end
  if object.result then
    return object:result()
  end
end

core.extend("device", device)
gpu.allclose = check.allclose

--- Reads the records of a file of JSON lines, as record:json(path) writes them: see
--- tidelock.result, which is loaded at the first use. Raises code "io" for a file that can't be
--- read, or is no such file, and "unsupported" for records of another schema.
---@param path string
---@return tidelock.record[]
function gpu.read_results(path)
  return require "tidelock.result".read(path)
end

--- Checks c = op(a) * op(b) by Freivalds' method, in n^2 operations: see tidelock.check.
---@param a tidelock.buffer
---@param b tidelock.buffer
---@param c tidelock.buffer
---@param options tidelock.check_options?
---@return boolean right
---@return string? reason
function gpu.check_matmul(a, b, c, options)
  return check.matmul(gpu, a, b, c, options)
end

if core.on_warning() == nil then
  core.on_warning(warn_once())
end

return gpu
