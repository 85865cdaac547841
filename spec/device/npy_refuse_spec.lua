-- .npy files that are read only where every byte of the header is what it should be.
local each_device = require "spec.each_device"
local files = require "spec.npy_files"

each_device(".npy files", function(open)
  local folder, path
  files.each_folder(function(new)
    folder, path = new, new .. "/x.npy"
  end)

  --- Asserts that the file at `path` is refused so.
  local function refused(dev, code, text)
    files.fails(code, text, dev.load_npy, dev, path)
  end

  it("are read in versions 1 to 3, however the dict is written", function()
    local dev = open()
    local data = string.pack("<i4i4", 3, -4)
    for _, text in ipairs {
      "{'shape': (2,), 'fortran_order': False, 'descr': '<i4'}",
      '{"descr":"<i4","fortran_order":False,"shape":(2,)}',
      "{ 'descr' : '<i4' , 'fortran_order' : True , 'shape' : ( 2 , ) , } ",
    } do
      for version = 1, 3 do
        files.write(path, files.pack(text, data, version))
        assert.same({ 3, -4 }, dev:load_npy(path):totable())
      end
    end
    files.write(path, files.pack(files.dict("<i4", "(2L,)"), data))
    assert.same({ 3, -4 }, dev:load_npy(path):totable())
    files.write(path, files.pack(files.dict("i1", "(2, 1)", "True"), "\1\2"))
    assert.same({ { 1 }, { 2 } }, dev:load_npy(path):totable())
    files.write(path, files.pack(files.dict(">i1", "()"), "\5"))
    assert.same({ 5 }, dev:load_npy(path):totable())
  end)

  it("are refused where the dict is not what it should be", function()
    local dev = open()
    local good = files.dict("<f4", "(1,)")
    local four = "\0\0\0\0"
    local cases = {
      { "", "the header ends where '{' is wanted" },
      { good .. "x", "the header has 'x' at " .. #good + 1 .. " where its end is wanted" },
      { good .. "{}", "where its end is wanted" },
      { "[" .. good .. "]", "the header has '[' at 1 where '{' is wanted" },
      { good:sub(1, -2), "the header ends where a key is wanted" },
      { good:gsub(", }$", " 'descr': '<f4'}"), "where ',' or '}' is wanted" },
      { good:gsub("}$", "'descr': '<f4'}"), "the header has 'descr' twice" },
      { good:gsub("}$", "'extra': 1}"), "the header has an unknown key 'extra'" },
      { good:gsub("descr", "Descr"), "the header has an unknown key 'Descr'" },
      { "{'descr': '<f4', 'shape': (1,)}", "the header has no 'fortran_order'" },
      { "{'descr': '<f4', 'fortran_order': False}", "the header has no 'shape'" },
      { "{'fortran_order': False, 'shape': (1,)}", "the header has no 'descr'" },
      { "{}", "the header has no 'descr'" },
      { "{,}", "where a key is wanted" },
      { good:sub(1, 14), "the header has byte 0x0a at 54 where a string without escapes" },
      { good:gsub("'<f4'", "'<\\x664'"), "where a string without escapes is wanted" },
      { good:gsub("'<f4'", "4"), "the header has '4' at 11 where a dtype is wanted" },
      { good:gsub("False", "false"), "where True or False is wanted" },
      { good:gsub("False", "0"), "where True or False is wanted" },
      { good:gsub("False", "Falsey"), "where ',' or '}' is wanted" },
      { files.dict("<f4", "(1)"), "the shape is a number, not a tuple" },
      { files.dict("<f4", "1"), "where a shape in parentheses is wanted" },
      { files.dict("<f4", "[1,]"), "where a shape in parentheses is wanted" },
      { files.dict("<f4", "(-1,)"), "the shape has a negative size" },
      { files.dict("<f4", "(1.0,)"), "where ',' or ')' is wanted" },
      { files.dict("<f4", "(0x1,)"), "where ',' or ')' is wanted" },
      { files.dict("<f4", "(01,)"), "the shape has a size with a leading zero" },
      { files.dict("<f4", "(,)"), "where a size is wanted" },
      { files.dict("<f4", "(1,,)"), "where a size is wanted" },
      { files.dict("<f4", "(1 1)"), "where ',' or ')' is wanted" },
      { files.dict("<f4", "(True,)"), "where a size is wanted" },
      { files.dict("<f4", "(9223372036854775808,)"), "the shape overflows" },
      { files.dict("<f4", "(99999999999999999999, 0)"), "the shape overflows" },
      { files.dict("<f4", "(4611686018427387904,)"), "the shape overflows" },
      { files.dict("<f4", "(4294967296, 4294967296)"), "the shape overflows" },
      { files.dict("|f4", "(1,)"), "dtype '|f4' has no byte order" },
      { "{'d\xe9scr': '<f4'}", "the header has byte 0xe9, not ASCII" },
      { good .. "\0", "the header has byte 0x00" },
    }
    for _, case in ipairs(cases) do
      files.write(path, files.pack(case[1], four))
      refused(dev, "io", path .. ": ")
      refused(dev, "io", case[2])
    end
    files.write(path, files.pack("{'d\xc3\xa9scr': '<f4'}", four, 3))
    refused(dev, "io", "unknown key 'd??scr'")
    files.write(path, files.pack(files.dict("<f4", "(1L,)"), four, 3))
    refused(dev, "io", "where ',' or ')' is wanted")
    files.write(path, (files.pack(good, four):gsub("\n", " ")))
    refused(dev, "io", "the header does not end its line")
    assert.equal(0, dev:memory().peak)
  end)

  it("are refused by the dtype's name, where it is none of ours", function()
    local dev = open()
    for descr, name in pairs {
      ["|b1"] = "bool", ["?"] = "bool", ["|u1"] = "uint8", ["<u4"] = "uint32",
      ["<i2"] = "int16", ["<i8"] = "int64", [">i8"] = "int64", ["<c16"] = "complex128",
      ["<f16"] = "longdouble", ["<U3"] = "text", ["|S5"] = "bytes", ["|O"] = "Python objects",
      ["<M8[ns]"] = "dates", ["|V2"] = "raw bytes, as bfloat16 is saved", ["|V7"] = "raw bytes",
      ["<f3"] = "unknown", ["bfloat16"] = "unknown", [""] = "unknown", ["<"] = "unknown",
      ["<f4 "] = "unknown", ["<<f4"] = "unknown",
    } do
      files.write(path, files.pack(files.dict(descr, "(0,)")))
      refused(dev, "unsupported",
        ("%s: dtype '%s' (%s) is not supported"):format(path, descr, name))
    end
    files.write(path, files.pack("{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (0,)}"))
    refused(dev, "unsupported", "a structured dtype is not supported")
    files.write(path, files.pack(files.dict("<f4", "(1, 1, 1, 1)"), "\0\0\0\0"))
    refused(dev, "unsupported", path .. ": 4 dimensions are not supported, at most 3 are")
  end)

  it("are refused where bytes are missing or too many", function()
    local dev = open()
    local whole = files.pack(files.dict("<f4", "(2, 3)"), ("\0"):rep(24))
    files.write(path, whole)
    assert.same({ 2, 3 }, dev:load_npy(path):shape())
    for length = 0, #whole - 1 do
      files.write(path, whole:sub(1, length))
      refused(dev, "io", path .. ": " .. (length == 0 and "not a .npy file" or "truncated: "))
    end
    files.write(path, whole:sub(1, -2))
    refused(dev, "io", "truncated: 152 bytes wanted, the file has 151")
    files.write(path, whole:sub(1, 100))
    refused(dev, "io", "truncated: 128 bytes of header wanted, the file has 100")
    files.write(path, whole .. "\0")
    refused(dev, "io", "bytes behind the data: 152 bytes wanted, the file has 153")
    files.write(path, files.pack(files.dict("<f8", "(1000000000000000,)")))
    refused(dev, "io", "truncated: 8000000000000128 bytes wanted, the file has 128")
  end)

  it("are refused in other versions and with long headers", function()
    local dev = open()
    local whole = files.pack(files.dict("<f4", "(0,)"))
    for version, name in pairs { ["\0\0"] = "0.0", ["\4\0"] = "4.0", ["\1\1"] = "1.1" } do
      files.write(path, whole:sub(1, 6) .. version .. whole:sub(9))
      refused(dev, "unsupported", path .. ": .npy version " .. name .. " is not supported")
    end
    files.write(path, files.pack(files.dict("<f4", "(0,)") .. (" "):rep(10000)))
    refused(dev, "unsupported", "bytes is not supported, at most 10000 are")
    files.write(path, "\x93NUMPY\2\0\xff\xff\xff\xff")
    refused(dev, "unsupported", "a header of 4294967295 bytes is not supported")
  end)

  it("are refused where there is no file, and where the path is none", function()
    local dev = open()
    local b = dev:zeros(1)
    refused(dev, "io", path .. ": No such file or directory")
    files.fails("io", folder .. ": Is a directory", dev.load_npy, dev, folder)
    files.fails("io", folder .. ": Is a directory", b.save, b, folder)
    files.fails("io", "/dev/null: not a regular file", dev.load_npy, dev, "/dev/null")
    files.fails("io", "/dev/null: not a regular file", b.save, b, "/dev/null")
    assert(os.execute("mkfifo " .. path))
    refused(dev, "io", path .. ": not a regular file")
    os.remove(path)
    for _, f in ipairs {
      function(p) dev:load_npy(p) end,
      function(p) b:save(p) end,
    } do
      local ok, message = pcall(f, path .. "\0.txt")
      assert.is_false(ok)
      assert.matches("path contains a zero byte", message, 1, true)
      assert.is_false(pcall(f, nil))
      assert.is_false(pcall(f, {}))
    end
    files.only(folder)
  end)
end)
