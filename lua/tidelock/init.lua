--- GPU experiments in Lua. Every time says which clock it is, and whether the
-- work was done. The device layer is tidelock.core, declared in core.d.lua.
local core = require "tidelock.core"

local gpu = {}
for name, value in pairs(core) do
  gpu[name] = value
end

--- The default handler: one line on stderr, once for each code and place.
local function warn_once()
  local seen = {}
  return function(code, message, details)
    local line = code .. " " .. (details.where or "") .. message
    local place = code .. (details.where or message)
    if not seen[place] then
      seen[place] = true
      io.stderr:write("tidelock: ", line, "\n")
    end
  end
end

--- Sets who is told of warnings: `f(code, message, details)`. `error` itself
--- makes every warning an error; nil silences them.
---@param ... function? the new handler; without an argument nothing is changed
---@return function? previous
function gpu.on_warning(...)
  if select("#", ...) > 0 and ... == error then
    return core.on_warning(function(code, message, details)
      error((details.where or "") .. code .. ": " .. message, 0)
    end)
  end
  return core.on_warning(...)
end

--- The default device: `TIDELOCK_DEVICE` where it is set, else the host.
local function default_id()
  local id = os.getenv("TIDELOCK_DEVICE")
  return id ~= nil and id ~= "" and id or "host"
end

--- Opens a device, or returns the one that is open under this id already.
---@param id string? "host"; nil: the environment variable TIDELOCK_DEVICE, else "host"
---@param options table? memory_limit (bytes), queue_depth (launches),
--- wait ("block" | "spin"), blocking_launches (boolean), faults
---@return tidelock.device
function gpu.device(id, options)
  return core.device(id == nil and default_id() or id, options)
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

if core.on_warning() == nil then
  core.on_warning(warn_once())
end

return gpu
