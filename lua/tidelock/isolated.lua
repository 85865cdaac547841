--- Runs a measurement in a coroutine of its own with the collector stopped.
local isolated = {}

local PAUSE = {}

--- To be called between samples: it lets the caller's thread see hooks (Ctrl-C), and collects where
--- much garbage has come together, off the clock.
function isolated.pause()
  coroutine.yield(PAUSE)
end

local GARBAGE = 64 * 1024 -- KiB

--- Calls f in a coroutine and returns what it returns. A yield that is not a pause is an error of
--- the operation that is measured; an error passes through. In any case the collector is as before.
---@param f function
---@param ... any
---@return any ...
function isolated.run(f, ...)
  local running = collectgarbage("isrunning")
  collectgarbage("stop")
  local thread = coroutine.create(f)
  local restore <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
    coroutine.close(thread)
    if running then
      collectgarbage("restart")
    end
  end })
  local start = collectgarbage("count")
  local results = table.pack(coroutine.resume(thread, ...))
  while coroutine.status(thread) == "suspended" do
    if results[2] ~= PAUSE then
      error("the operation yielded: it is timed as it is called, and must not wait in a coroutine",
        0)
    end
    if collectgarbage("count") - start > GARBAGE then
      collectgarbage("collect")
      collectgarbage("stop") -- a full collection starts it again
      start = collectgarbage("count")
    end
    results = table.pack(coroutine.resume(thread))
  end
  if not results[1] then
    error(results[2], 0)
  end
  return table.unpack(results, 2, results.n)
end

return isolated
