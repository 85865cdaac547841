--- A progress line on stderr, where stderr is a terminal.
local progress = {}

--- Returns a function that shows a text in place of the last one; without a
--- text it clears the line. Elsewhere than on a terminal it does nothing.
---@return fun(text: string?)
function progress.line()
  if not os.execute("test -t 2") then
    return function() end
  end
  return function(text)
    io.stderr:write("\r\27[K", text or "")
    io.stderr:flush()
  end
end

return progress
