-- .npy files: what NumPy wrote is read, and NumPy reads what is written.
local each_device = require "spec.each_device"
local files = require "spec.npy_files"

local nan, inf = 0 / 0, math.huge

each_device(".npy files", function(open)
  local folder, path
  files.each_folder(function(new)
    folder, path = new, new .. "/x.npy"
  end)

  -- ---- what NumPy wrote ----

  describe("that NumPy wrote", function()
    local MATRIX = { { -5, -4, -3, -2 }, { -1, 0, 1, 2 }, { 3, 4, 5, 6 } }
    local CUBE = {
      { { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 8, 9, 10, 11 } },
      { { 12, 13, 14, 15 }, { 16, 17, 18, 19 }, { 20, 21, 22, 23 } },
    }
    local good = {
      { "float16_3x4", "float16", { 3, 4 }, MATRIX },
      { "float32_3x4", "float32", { 3, 4 }, MATRIX },
      { "float64_3x4", "float64", { 3, 4 }, MATRIX },
      { "int32_3x4", "int32", { 3, 4 }, MATRIX },
      { "float32_fortran_3x4", "float32", { 3, 4 }, MATRIX },
      { "float32_bigendian_3x4", "float32", { 3, 4 }, MATRIX },
      { "float32_version2", "float32", { 3, 4 }, MATRIX },
      { "float32_2x3x4", "float32", { 2, 3, 4 }, CUBE },
      { "float32_0x3", "float32", { 0, 3 }, {} },
      { "int8_5", "int8", { 5 }, { -2, -1, 0, 1, 2 } },
      { "float64_scalar", "float64", { 1 }, { 2.5 } },
    }
    for _, file in ipairs(good) do
      local name, dtype, shape, values = table.unpack(file)
      it("are read: " .. name, function()
        local here = files.samples()
        if not here then
          return pending("needs ../shared/npy")
        end
        local b = open():load_npy(here .. "/" .. name .. ".npy")
        assert.equal(dtype, b:dtype())
        assert.same(shape, b:shape())
        assert.same(values, b:totable())
      end)
    end

    it("are read: float64_special", function()
      local here = files.samples()
      if not here then
        return pending("needs ../shared/npy")
      end
      local b = open():load_npy(here .. "/float64_special.npy")
      assert.same({ 6 }, b:shape())
      local v = b:totable()
      assert.is_true(v[1] ~= v[1])
      assert.same({ inf, -inf, 0.0, 5e-324, 1.7976931348623157e308 }, { table.unpack(v, 2) })
      assert.equal(-inf, 1 / v[4])
    end)

    local refused = {
      bool = { "unsupported", "dtype '|b1' (bool) is not supported" },
      complex = { "unsupported", "dtype '<c8' (complex64) is not supported" },
      structured = { "unsupported", "a structured dtype is not supported" },
      magic = { "io", "not a .npy file" },
      truncated = { "io", "truncated: 176 bytes wanted, the file has 169" },
    }
    for name, wanted in pairs(refused) do
      it("are refused: refuse_" .. name, function()
        local here = files.samples()
        if not here then
          return pending("needs ../shared/npy")
        end
        local dev = open()
        local full = ("%s/refuse_%s.npy"):format(here, name)
        files.fails(wanted[1], full .. ": " .. wanted[2], dev.load_npy, dev, full)
        assert.equal(0, dev:memory().peak)
        assert.equal(0, dev:memory().objects)
      end)
    end
  end)

  -- ---- there and back ----

  it("are read as they were saved, in every dtype, of one to three dimensions", function()
    local dev = open()
    files.each_dtype(function(dtype, format)
      for _, shape in ipairs { { 1 }, { 7 }, { 3, 4 }, { 1, 9 }, { 9, 1 }, { 2, 3, 4 },
        { 0 }, { 0, 3 }, { 3, 0 }, { 2, 0, 4 } } do
        local count = 1
        for _, size in ipairs(shape) do
          count = count * size
        end
        local bytes = files.some_bytes(dtype, count)
        assert.equal(count * format:gsub("^.*$", string.packsize), #bytes)
        local b = dev:empty(shape, dtype)
        b:upload(bytes)
        b:save(path)
        local back = dev:load_npy(path)
        assert.equal(dtype, back:dtype())
        assert.same(shape, back:shape())
        assert.equal(bytes, back:tobytes())
        assert.equal(128 + #bytes, #files.read(path))
      end
    end)
    files.only(folder, "x.npy")
  end)

  it("keep every bit: NaN, infinity, the sign of zero, subnormals", function()
    local dev = open()
    local b = dev:array({ nan, -nan, inf, -inf, -0.0, 5e-324 }, "float64")
    b:save(path)
    assert.equal(b:tobytes(), dev:load_npy(path):tobytes())
  end)

  it("hold a view's own elements, in row order", function()
    local dev = open()
    local numbers = {}
    for i = 1, 60 do
      numbers[i] = i
    end
    local b = dev:array(numbers, "int32")
    for _, view in ipairs {
      b:view { offset = 7, shape = 5 },
      b:view { offset = 1, shape = { 4, 3 }, stride = 10 },
      b:view { offset = 3, shape = { 2, 2, 3 }, stride = { 30, 7 } },
      b:reshape { 3, 4, 5 },
    } do
      view:save(path)
      local back = dev:load_npy(path)
      assert.same(view:shape(), back:shape())
      assert.same(view:totable(), back:totable())
    end
  end)

  it("may be larger than what passes at once", function()
    local dev = open()
    local b = dev:empty { 3, 700001 }
    b:upload(string.rep(files.some_bytes("float32", 1021), 3 * 700001 // 1021 + 1)
      :sub(1, b:nbytes()))
    b:save(path)
    local file = files.read(path)
    assert.equal(128 + b:nbytes(), #file)
    assert.is_true(b:tobytes() == file:sub(129))
    assert.is_true(b:tobytes() == dev:load_npy(path):tobytes())
    local columns = b:view { offset = 5, shape = { 3, 600000 }, stride = 700001 }
    columns:save(path)
    assert.is_true(columns:tobytes() == dev:load_npy(path):tobytes())
  end)

  it("are written with the header that NumPy writes", function()
    local dev = open()
    local cases = {
      { dev:zeros({ 3, 4 }), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" },
      { dev:zeros(5, "int8"), "{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }" },
      { dev:zeros({ 0, 3, 12 }, "float64"),
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3, 12), }" },
      { dev:zeros(1, "int32"), "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }" },
      { dev:zeros(1, "float16"), "{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }" },
    }
    for _, case in ipairs(cases) do
      local b, text = table.unpack(case)
      b:save(path)
      assert.equal("\x93NUMPY\1\0\x76\0" .. text .. (" "):rep(117 - #text) .. "\n",
        files.read(path):sub(1, 128))
    end
  end)

  it("have the bytes of NumPy's own", function()
    local here = files.samples()
    if not here then
      return pending("needs ../shared/npy")
    end
    local dev = open()
    for _, name in ipairs { "float16_3x4", "float32_3x4", "float64_3x4", "int32_3x4", "int8_5",
      "float32_2x3x4", "float32_0x3", "float64_special" } do
      local original = here .. "/" .. name .. ".npy"
      dev:load_npy(original):save(path)
      assert.equal(files.read(original), files.read(path), name)
    end
  end)

  it("wait for the work that writes the buffer", function()
    local dev = open()
    local s = dev:stream()
    local b = dev:zeros(4)
    assert.is_true(dev:synchronize())
    s:spin(0.02)
    b:fill(7, s)
    b:save(path)
    assert.same({ 7, 7, 7, 7 }, dev:load_npy(path):totable())
  end)

  -- ---- every order ----

  it("are read in either byte order and either order of elements", function()
    local dev = open()
    files.each_dtype(function(dtype, format)
      local code = ({ float32 = "f4", float64 = "f8", float16 = "f2", int32 = "i4",
        int8 = "i1" })[dtype]
      local packed = files.some_bytes(dtype, 24)
      local size = string.packsize(format)
      local function element(index)
        return packed:sub(index * size + 1, (index + 1) * size)
      end
      for _, shape in ipairs { { 4, 6, 1 }, { 2, 3, 4 }, { 24, 1, 1 }, { 1, 24, 1 } } do
        local columns = {}
        for k = 0, shape[3] - 1 do
          for j = 0, shape[2] - 1 do
            for i = 0, shape[1] - 1 do
              columns[#columns + 1] = element((i * shape[2] + j) * shape[3] + k)
            end
          end
        end
        local text = ("(%d, %d, %d)"):format(table.unpack(shape))
        local swapped = {}
        for i, bytes in ipairs(columns) do
          swapped[i] = bytes:reverse()
        end
        files.write(path, files.pack(files.dict("<" .. code, text, "True"), table.concat(columns)))
        assert.equal(packed, dev:load_npy(path):tobytes())
        files.write(path, files.pack(files.dict(">" .. code, text, "True"), table.concat(swapped)))
        assert.equal(packed, dev:load_npy(path):tobytes())
        files.write(path, files.pack(files.dict("=" .. code, text), packed))
        assert.equal(packed, dev:load_npy(path):tobytes())
        files.write(path, files.pack(files.dict(code, text), packed))
        assert.equal(packed, dev:load_npy(path):tobytes())
      end
    end)
  end)

  it("are read in column order where they are larger than what passes at once", function()
    local dev = open()
    for _, shape in ipairs { { 1100, 700 }, { 3, 2, 150000 }, { 2, 150000, 3 },
      { 300000, 2, 2 }, { 90, 110, 80 } } do
      local n1, n2, n3 = shape[1], #shape == 3 and shape[2] or 1, shape[#shape]
      local columns, wrong = {}, 0
      for k = 0, n3 - 1 do
        for j = 0, n2 - 1 do
          local run = {}
          for i = 0, n1 - 1 do
            run[i + 1] = (i * n2 + j) * n3 + k
          end
          for i = 1, n1, 200 do
            local last = math.min(i + 199, n1)
            columns[#columns + 1] = string.pack("<" .. ("i4"):rep(last - i + 1),
              table.unpack(run, i, last))
          end
        end
      end
      local text = "(" .. table.concat(shape, ", ") .. ")"
      files.write(path, files.pack(files.dict("<i4", text, "True"),
        table.concat(columns)))
      local b = dev:load_npy(path)
      assert.same(shape, b:shape())
      for i, value in ipairs(b:reshape(b:size()):totable()) do
        wrong = wrong + (value == i - 1 and 0 or 1)
      end
      assert.equal(0, wrong, table.concat(shape, "x"))
    end
  end)

  -- ---- NumPy itself ----

  it("are read by NumPy bit for bit", function()
    if not files.python then
      return pending("needs python3-numpy")
    end
    local dev = open()
    local script = { "import numpy as np" }
    files.each_dtype(function(dtype)
      for index, shape in ipairs { { 5 }, { 3, 4 }, { 2, 3, 4 }, { 0, 3 } } do
        local b = dev:empty(shape, dtype)
        b:upload(files.some_bytes(dtype, b:size()))
        local name = ("%s/%s_%d"):format(folder, dtype, index)
        b:save(name .. ".npy")
        files.write(name .. ".bytes", b:tobytes())
        script[#script + 1] = ("a = np.load('%s.npy')"):format(name)
        script[#script + 1] = ("assert a.dtype == '%s' and a.shape == (%s,)"):format(dtype,
          table.concat(shape, ","))
        script[#script + 1] = ("assert a.tobytes() == open('%s.bytes', 'rb').read()"):format(name)
        script[#script + 1] = ("np.save('%s.again', a)"):format(name)
        script[#script + 1] = ("assert open('%s.npy', 'rb').read() == open('%s.again.npy', 'rb')" ..
          ".read()"):format(name, name)
      end
    end)
    script[#script + 1] = "print('read')"
    files.write(folder .. "/check.py", table.concat(script, "\n"))
    assert.equal("read\n", files.output(files.python .. " " .. folder .. "/check.py"))
  end)

  it("are read as NumPy writes them: types, orders and versions", function()
    if not files.python then
      return pending("needs python3-numpy")
    end
    local dev = open()
    files.write(folder .. "/make.py", ([[
import numpy as np
from numpy.lib import format
n = 0
for dtype in ('f2', 'f4', 'f8', 'i1', 'i4'):
    for shape in ((), (5,), (3, 4), (2, 3, 4), (1, 7), (7, 1), (0, 3), (300, 500), (40, 50, 60)):
        a = np.random.default_rng(n).integers(0, 256, shape + (np.dtype(dtype).itemsize,), 'u1')
        a = a.view(dtype).reshape(shape)
        for order in '<>':
            for layout in 'CF':
                n += 1
                b = np.array(a, dtype=np.dtype(dtype).newbyteorder(order), order=layout)
                with open('FOLDER/%d.npy' % n, 'wb') as f:
                    format.write_array(f, b, version=((1, 0), (2, 0), (3, 0))[n % 3])
                open('FOLDER/%d.bytes' % n, 'wb').write(a.tobytes())
                print(n, a.dtype.name, *(shape or (1,)))
]]):gsub("FOLDER", folder))
    local count = 0
    local made = files.output(files.python .. " -W ignore " .. folder .. "/make.py")
    for line in made:gmatch("[^\n]+") do
      local number, dtype, shape = line:match("^(%d+) (%w+) ([%d ]+)$")
      assert.is_not_nil(number, line)
      local name = folder .. "/" .. number
      local b = dev:load_npy(name .. ".npy")
      assert.equal(dtype, b:dtype())
      assert.equal(shape, table.concat(b:shape(), " "))
      assert.is_true(files.read(name .. ".bytes") == b:tobytes(), line)
      count = count + 1
    end
    assert.equal(180, count)
  end)
end)
