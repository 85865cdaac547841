--- Raising with the script's place, from however deep in the library. Wrong arguments raise a
--- string; an operation that failed raises a table like those of tidelock.core.
local raise = {}

--- The first function in the call that is not one of this library's, as "script.lua:12: ".
local function caller()
  local library = debug.getinfo(1, "S").source:match("^(.*[/\\])report[/\\]") or "="
  for level = 2, math.huge do
    local info = debug.getinfo(level, "Sl")
    if not info then
      return ""
    elseif info.currentline > 0 and info.source:sub(1, #library) ~= library then
      return ("%s:%d: "):format(info.short_src, info.currentline)
    end
  end
end

--- Raises a string: the call was wrong.
---@param message string
function raise.argument(message)
  error(caller() .. message, 0)
end

local failure = { __name = "tidelock.failure" }

function failure.__tostring(raised)
  return raised.where .. raised.message
end

--- Raises a table: code, message, path, where; tostring gives where and message.
---@param path string
---@param message string one line, cause last
---@param code string? default "io"
function raise.failure(path, message, code)
  error(setmetatable({ code = code or "io", message = message, path = path, where = caller() },
    failure), 0)
end

return raise
