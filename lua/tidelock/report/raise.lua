--- Raising with the script's place, from however deep in the library. Wrong arguments raise a
--- string; an operation that failed raises a table like those of tidelock.core.
local caller = require "tidelock.caller"

local raise = {}

--- The script's line, as "script.lua:12: ".
local function place()
  local line = caller.line()
  return line ~= "" and line .. ": " or ""
end

--- Raises a string: the call was wrong.
---@param message string
function raise.argument(message)
  error(place() .. message, 0)
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
  error(setmetatable({ code = code or "io", message = message, path = path, where = place() },
    failure), 0)
end

return raise
