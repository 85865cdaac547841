--- What the specs of .npy files share: a folder for each spec, files with a given header, child
-- processes, and where the files are that NumPy wrote.
local assert = require "luassert"
local busted = require "busted"

local npy_files = {}

--- Where files that NumPy wrote are; nil: they are not here.
function npy_files.samples()
  for _, folder in ipairs { "../shared/npy", os.getenv("TIDELOCK_NPY") } do
    local file = io.open(folder .. "/float32_3x4.npy", "rb")
    if file then
      file:close()
      return folder
    end
  end
end

function npy_files.read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read("a")
  file:close()
  return bytes
end

function npy_files.write(path, bytes)
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes))
  assert(file:close())
end

--- What a command prints, errors too.
function npy_files.output(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1"))
  local text = pipe:read("a")
  pipe:close()
  return text
end

function npy_files.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Asserts that f raises a failure of that code that contains the text.
function npy_files.fails(code, text, f, ...)
  local ok, failure = pcall(f, ...)
  assert.is_false(ok, "nothing was raised; wanted: " .. text)
  if type(failure) ~= "table" then
    error(failure, 0)
  end
  assert.matches(text, failure.message, 1, true)
  assert.equal(code, failure.code)
end

--- A file with the dict as its header.
function npy_files.pack(dict, data, version)
  version = version or 1
  local preamble = version == 1 and 10 or 12
  local padding = (" "):rep(-(preamble + #dict + 1) % 64)
  return ("\x93NUMPY" .. string.pack(version == 1 and "<BBs2" or "<BBs4", version, 0,
    dict .. padding .. "\n")) .. (data or "")
end

function npy_files.dict(descr, shape, order)
  return ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }"):format(descr, order or "False",
    shape)
end

--- The command for a child that runs the script with this module and the folder as `...`.
function npy_files.lua(script, folder, id)
  local environment = ("LUA_PATH=%s LUA_CPATH=%s"):format(npy_files.quote(package.path),
    npy_files.quote(package.cpath))
  npy_files.write(folder .. "/child.lua", [[
    local gpu = require "tidelock"
    local folder, id = ...
    local dev = gpu.device(id)
    ]] .. script)
  return ("%s lua5.4 %s/child.lua %s %s"):format(environment, folder, folder, npy_files.quote(id))
end

npy_files.python = "/usr/bin/python3"
if not os.execute(npy_files.python .. " -c 'import numpy' 2>/dev/null") then
  npy_files.python = os.execute("python3 -c 'import numpy' 2>/dev/null") and "python3" or nil
end

local FORMATS = {
  float32 = "<f", float64 = "<d", float16 = "<I2", int32 = "<i4", int8 = "<i1",
}

--- Calls f(dtype, format) for each dtype that has a .npy type, in order.
function npy_files.each_dtype(f)
  for _, dtype in ipairs { "float32", "float64", "float16", "int32", "int8" } do
    f(dtype, FORMATS[dtype])
  end
end

--- So many elements of all sorts of bytes, packed.
function npy_files.some_bytes(dtype, count)
  local parts = {}
  for i = 1, count do
    local value = (i * 37 + 11) % 251
    parts[i] = string.pack(FORMATS[dtype], dtype == "int8" and value - 125 or value)
  end
  return table.concat(parts)
end

--- Gives each spec of the block a folder of its own: f is told of it before the spec runs.
function npy_files.each_folder(f)
  local folder

  busted.before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    f(folder)
  end)

  busted.after_each(function()
    os.execute("rm -rf " .. folder)
  end)
end

--- Asserts that there is nothing in the folder but these files.
function npy_files.only(folder, ...)
  local names = {}
  for name in npy_files.output("ls -A " .. folder):gmatch("[^\n]+") do
    names[#names + 1] = name
  end
  assert.same({ ... }, names)
end

return npy_files
