--- What exists, what is declared and what is specified are the same: the methods
-- in the metatables, the declarations in core.d.lua and device.lua, and the spec files.
local gpu = require "tidelock"

local CLASSES = { "device", "buffer", "stream", "event", "gate", "stamp", "faults", "pending" }
local FUNCTIONS = {
  "available", "await", "device", "devices", "extend", "faults", "matmul", "on_warning", "version",
}

local function read(path)
  local file = assert(io.open(path, "r"))
  local text = file:read("a")
  file:close()
  return text
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

--- Calls f with one live object of each class.
local function with_objects(f)
  local dev <close> = gpu.device("host:3")
  local s = dev:stream()
  f {
    device = dev, buffer = dev:empty(1), stream = s, event = dev:event(),
    gate = s:gate { timeout = 0 }, stamp = dev:now(), faults = gpu.faults(),
    pending = dev:zeros(1):download_async(dev:pinned(1)),
  }
end

--- What core.d.lua declares: methods by class, functions and fields by module,
-- and for each function the comment above it.
local function declarations()
  local folder = assert(package.searchpath("tidelock", package.path)):gsub("init%.lua$", "")
  local methods, functions, comments = {}, {}, {}
  local comment, class = {}, nil
  -- device.lua has the device's methods that are written in Lua.
  for line in (read(folder .. "core.d.lua") .. read(folder .. "device.lua")):gmatch("[^\n]*") do
    local owner, separator, name, parameters = line:match("^function (%w+)([.:])([%w_]+)(%b())")
    class = line:match("^%-%-%-@class tidelock%.([%w_]+)") or class
    local field = line:match("^%-%-%-@field ([%w_]+)")
    if class == "core" and field then
      functions[field] = true
    elseif owner then
      local list = separator == "." and functions or methods[owner] or {}
      if separator == ":" then
        methods[owner] = list
      end
      list[name] = true
      comments[owner .. separator .. name] = { text = comment, parameters = parameters }
    end
    if line:match("^%-%-%-") then
      comment[#comment + 1] = line
    else
      comment = {}
    end
  end
  return methods, functions, comments
end

--- All spec files but this one, in one text.
local function spec_text()
  local here = debug.getinfo(1, "S").source:match("^@(.*)$")
  local folder = here:match("^(.*)lua/[^/]*$")
  local list = assert(io.popen("ls '" .. folder .. "'device/*_spec.lua '" .. folder
    .. "'lua/*_spec.lua"))
  local parts = {}
  for path in list:lines() do
    if not path:match("api_spec%.lua$") then
      parts[#parts + 1] = read(path)
    end
  end
  list:close()
  return table.concat(parts, "\n")
end

describe("core.d.lua", function()
  it("declares the methods that the classes have, and no others", function()
    local declared = declarations()
    local classes = table.move(CLASSES, 1, #CLASSES, 1, {})
    table.sort(classes)
    assert.same(classes, sorted_keys(declared))
    with_objects(function(objects)
      for _, class in ipairs(CLASSES) do
        local methods = debug.getmetatable(objects[class]).__index
        assert.same(sorted_keys(methods), sorted_keys(declared[class]), class)
      end
    end)
  end)

  it("declares the module's functions; tidelock adds await", function()
    local _, declared = declarations()
    assert.same(sorted_keys(require "tidelock.core"), sorted_keys(declared))
    declared.await = true
    assert.same(FUNCTIONS, sorted_keys(declared))
    local source = read(assert(package.searchpath("tidelock", package.path)))
    for _, name in ipairs(FUNCTIONS) do
      assert.is_not_nil(gpu[name], name)
      if name ~= "version" then
        assert.equal("function", type(gpu[name]), name)
      end
    end
    -- What init.lua defines or redefines carries its own annotations.
    for name in source:gmatch("\nfunction gpu%.([%w_]+)") do
      assert.is_not_nil(gpu[name], name)
      assert.matches("%-%-%-[^\n]+\nfunction gpu%." .. name .. "%(", source)
    end
    assert.matches("\nfunction gpu.await(", source, 1, true)
  end)

  it("describes every function in a sentence, and each of its parameters", function()
    local _, _, comments = declarations()
    for name, comment in pairs(comments) do
      local text = table.concat(comment.text, "\n")
      assert.matches("^%-%-%- %u[^\n]+", text, name)
      assert.matches("%.", text, name)
      for parameter in comment.parameters:gmatch("[%w_.]+") do
        assert.matches("---@param " .. parameter .. " ", text, 1, true)
      end
    end
  end)

  it("lists the dtypes that there are", function()
    local path = package.searchpath("tidelock", package.path):gsub("init%.lua$", "core.d.lua")
    local declared = {}
    for name in read(path):match("@alias tidelock%.dtype ([^\n]*)"):gmatch('"([%w_]+)"') do
      declared[#declared + 1] = name
    end
    local dev <close> = gpu.device("host:3")
    local ok, message = pcall(dev.empty, dev, 1, "no such")
    assert.is_false(ok)
    assert.matches("unknown dtype 'no such' (there are: " .. table.concat(declared, ", ") .. ")",
      message, 1, true)
  end)
end)

describe("every method", function()
  it("occurs in a spec", function()
    local text = spec_text()
    with_objects(function(objects)
      local missing = {}
      for _, class in ipairs(CLASSES) do
        for _, name in ipairs(sorted_keys(debug.getmetatable(objects[class]).__index)) do
          if not text:find("[.:]" .. name .. "%f[^%w_]") then
            missing[#missing + 1] = class .. ":" .. name
          end
        end
      end
      for _, name in ipairs(FUNCTIONS) do
        if name ~= "version" and not text:find("gpu%." .. name .. "%f[^%w_]") then
          missing[#missing + 1] = "gpu." .. name
        end
      end
      assert.same({}, missing)
    end)
  end)
end)

describe("a class", function()
  it("has its name, a locked metatable, and the same function to close and to collect", function()
    with_objects(function(objects)
      for class, object in pairs(objects) do
        local meta = debug.getmetatable(object)
        assert.equal(class, meta.__name)
        assert.equal("tidelock." .. class, getmetatable(object))
        for _, name in ipairs { "__gc", "__close", "__tostring" } do
          assert.equal("function", type(meta[name]), class .. " " .. name)
        end
        assert.matches("^" .. class, tostring(object))
        assert.is_nil(object.no_such_method)
      end
    end)
  end)
end)

describe("version", function()
  it("is three numbers", function()
    assert.matches("^%d+%.%d+%.%d+$", gpu.version)
  end)
end)
