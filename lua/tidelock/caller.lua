--- Where in the script a call came from.
local caller = {}

--- The first function in the call that is not one of this library's, as "script.lua:12"; empty
--- where there is none with lines.
---@return string
function caller.line()
  local library = debug.getinfo(1, "S").source:match("^(.*[/\\])") or "="
  for level = 2, math.huge do
    local info = debug.getinfo(level, "Sl")
    if not info then
      return ""
    elseif info.currentline > 0 and info.source:sub(1, #library) ~= library then
      return ("%s:%d"):format(info.short_src, info.currentline)
    end
  end
end

return caller
