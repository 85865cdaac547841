--- The README's script, pasted and run, prints what the README says: word for word, but for the
--- times, and for how many launches of the loop were done when it ended.

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end

--- Times become T, and "50 of 50" in flight becomes "N of 50".
local function without_times(text)
  return (text:gsub("(time\t)%d[%d.e-]*", "%1T"):gsub("with %d+ of", "with N of"))
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

describe("README.md", function()
  local readme = read("README.md")
  local script = readme:match("```lua\n(.-)```")
  local output = readme:match("```lua\n.-```\n.-```\n(.-)```")

  it("has a script of fifteen lines, and its output", function()
    local lines = select(2, script:gsub("[^\n]+\n", ""))
    assert.is_true(lines <= 15, lines .. " lines")
    assert.matches("W-INFLIGHT experiment.lua:%d+: clock stopped with 50 of 50", output)
  end)

  it("says what its script prints", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local file = assert(io.open(folder .. "/experiment.lua", "w"))
    file:write(script)
    file:close()
    local here = io.popen("pwd"):read("l")
    local path = package.path:gsub("%./", here .. "/")
    local cpath = package.cpath:gsub("%./", here .. "/")
    local pipe = io.popen(("cd %s && TIDELOCK_DEVICE= LUA_PATH_5_4=%s LUA_CPATH_5_4=%s "
      .. "lua5.4 experiment.lua 2>&1"):format(folder, quote(path), quote(cpath)))
    local printed = pipe:read("a")
    pipe:close()
    os.remove(folder .. "/experiment.lua")
    os.remove(folder)
    assert.equal(without_times(output), without_times(printed))
    -- The clock that was stopped too early shows less than the truth.
    local enqueue, wall = printed:match("enqueue time\t([%d.e-]+)\nwall time\t([%d.e-]+)\n")
    assert.is_true(tonumber(enqueue) < tonumber(wall))
  end)
end)
