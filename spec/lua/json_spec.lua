local json = require "tidelock.json"

--- A number's type and bits: two are the same when these are.
local function bits(value)
  return math.type(value) .. ":" .. (math.type(value) == "integer" and ("%x"):format(value)
    or ("%016x"):format((">I8"):unpack((">d"):pack(value))))
end

--- Asserts that two values are the same to the bit, NaN and signs of zero included.
local function assert_identical(wanted, got, path)
  path = path or "value"
  assert.equal(type(wanted), type(got), path)
  if type(wanted) == "number" then
    assert.equal(bits(wanted), bits(got), path)
  elseif type(wanted) ~= "table" then
    assert.equal(wanted, got, path)
  else
    for key, value in pairs(wanted) do
      assert_identical(value, got[key], path .. "." .. tostring(key))
    end
    for key in pairs(got) do
      assert.is_not_nil(wanted[key], path .. "." .. tostring(key))
    end
  end
end

local function back(value)
  return assert(json.decode(json.encode(value)))
end

describe("json.encode", function()
  it("writes one line, keys in order, those asked for first", function()
    assert.equal('{"name":"x","a":[1,2.0,false],"b":{"c":"\\n"}}',
      json.encode({ b = { c = "\n" }, a = { 1, 2.0, false }, name = "x" }, { "name" }))
  end)

  it("writes integers as integers and floats as floats, in the fewest digits", function()
    for text, value in pairs {
      ["0"] = 0, ["-0.0"] = -0.0, ["0.1"] = 0.1, ["1.0"] = 1.0, ["1e+308"] = 1e308,
      ["9007199254740993"] = 2^53 // 1 | 0 + 1, ["9223372036854775807"] = math.maxinteger,
      ["-9223372036854775808"] = math.mininteger, ["0.30000000000000004"] = 0.1 + 0.2,
      ["9.223372036854776e+18"] = 2.0 ^ 63, ["4.94065645841247e-324"] = 5e-324,
    } do
      assert.equal(text, json.encode(value))
      assert_identical(value, back(value))
    end
  end)

  it("has an object for what JSON has no word for", function()
    assert.equal('[{"$float":"inf"},{"$float":"-inf"}]', json.encode { math.huge, -math.huge })
    local quiet = ("<d"):unpack(("<I8"):pack(0x7ff8000000000001))
    assert.equal('{"$float":"7ff8000000000001"}', json.encode(quiet))
    assert.equal('{"$bytes":"41ff00"}', json.encode("A\xff\0"))
    assert.equal('[true,null]', json.encode { true, json.null })
    assert.equal('[]', json.encode {})
  end)

  it("escapes what must be, and nothing else", function()
    assert.equal([["\"\\\b\f\n\r\t\u0001\u0000/é]] .. "\127\u{1F600}\"",
      json.encode("\"\\\b\f\n\r\t\1\0/é\127\u{1F600}"))
  end)

  it("refuses what does not read back, and says where it is", function()
    for message, value in pairs {
      ["value.a.b[2] is a function, which JSON can't hold"] = { a = { b = { 1, print } } },
      ["value.a is neither an array without holes nor a table of names"] = { a = { 1, nil, 3 } },
      ["value is neither an array without holes nor a table of names"] = { 1, a = 2 },
      ["value has the key '$float', which is reserved"] = { ["$float"] = "x" },
      ["value has the key '$bytes', which is reserved"] = { ["$bytes"] = "x", b = 1 },
      ["value has the key \"\xff\", which is not UTF-8"] = { ["\xff"] = 1 },
    } do
      local ok, raised = pcall(json.encode, value)
      assert.is_false(ok)
      assert.equal("can't write JSON: " .. message, (raised:gsub("^.-:%d+: ", "")))
    end
    local loop = {}
    loop.self = loop
    assert.has_error(function() json.encode(loop) end,
      "can't write JSON: value is nested deeper than 100 tables (a table within itself?)")
  end)

  it("takes 100 tables in each other, and so does decode", function()
    local deep = 1
    for _ = 1, 100 do deep = { deep } end
    assert_identical(deep, back(deep))
    assert.has_error(function() json.encode { deep } end)
    local _, reason = json.decode("[" .. json.encode(deep) .. "]")
    assert.equal("line 1, column 101: nested deeper than 100", reason)
  end)

  it("reads tables raw: a metatable adds nothing", function()
    local value = setmetatable({ a = 1 }, { __index = { b = 2 }, __pairs = error, __len = error })
    assert.equal('{"a":1}', json.encode(value))
  end)

  it("writes a point whatever the locale says", function()
    local before = os.setlocale(nil, "numeric")
    local comma
    for _, name in ipairs { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" } do
      comma = comma or os.setlocale(name, "numeric")
    end
    if not comma then
      pending("no locale with a decimal comma is installed")
      return
    end
    local text = json.encode { 0.5, 1e300, 2.0 }
    local again = json.decode(text)
    os.setlocale(before, "numeric")
    assert.equal("[0.5,1e+300,2.0]", text)
    assert_identical({ 0.5, 1e300, 2.0 }, again)
  end)
end)

describe("json.decode", function()
  it("reads JSON of others", function()
    assert_identical({ a = { 1, -2.5e3, true, false, "A/\u{1F600}é" }, b = {}, c = {}, [""] = "" },
      json.decode(' {"a" : [1, -2.5E+3,\ttrue,false,"\\u0041\\/\\ud83d\\ude00\\u00e9"],\n"b":{},'
        .. '"c":[ ],"":""}\r\n'))
    assert.equal(json.null, json.decode("[null]")[1])
    assert.equal(json.null, json.decode("null"))
    assert.is_false(json.decode("false"))
    assert.equal("\127", json.decode('"\127"'))
  end)

  it("says what is wrong, and at which line and column", function()
    for text, reason in pairs {
      [""] = "line 1, column 1: a value expected, got the end",
      ["[1,\n 2 x]"] = "line 2, column 4: ',' or ']' expected, got 'x'",
      ["{\"a\":1\n,\n}"] = "line 3, column 1: a key in quotes expected, got '}'",
      ['{"a" 1}'] = "line 1, column 6: ':' expected, got '1'",
      ['{"a":1 "b":2}'] = "line 1, column 8: ',' or '}' expected, got '\"'",
      ['{"a":1,"a":1}'] = "line 1, column 8: the key 'a' for the second time",
      ['{"a":1,"a":false}'] = "line 1, column 8: the key 'a' for the second time",
      ["[1,]"] = "line 1, column 4: a value expected, got ']'",
      ["nul"] = "line 1, column 1: a value expected, got nul",
      ["NaN"] = "line 1, column 1: a value expected, got NaN",
      ["1 2"] = "line 1, column 3: nothing more expected, got '2'",
      ["01"] = "line 1, column 1: a malformed number",
      ["-"] = "line 1, column 1: a malformed number",
      ["1."] = "line 1, column 1: a malformed number",
      [".5"] = "line 1, column 1: a value expected, got '.'",
      ["0x10"] = "line 1, column 1: a malformed number",
      ["1e"] = "line 1, column 1: a malformed number",
      ["1e999"] = "line 1, column 1: a number that a double does not hold",
      ["9223372036854775808"] = "line 1, column 1: an integer that 64 bits do not hold",
      ['"abc'] = "line 1, column 1: a string that does not end",
      ['"a\nb"'] = "line 1, column 3: a control character in a string",
      ['"\\x"'] = "line 1, column 2: an escape that JSON does not have",
      ['"\\u12"'] = "line 1, column 2: an escape that JSON does not have",
      ['"\\ud83d"'] = "line 1, column 2: half of a surrogate pair",
      ['"\\ude00\\ud83d"'] = "line 1, column 2: half of a surrogate pair",
      ['["\xff"]'] = "line 1, column 3: text that is not UTF-8",
      ['{"$float":"big"}'] = "line 1, column 1: a malformed '$float' or '$bytes'",
      ['{"$float":"inf","a":1}'] = "line 1, column 1: a malformed '$float' or '$bytes'",
      ['[{"$bytes":"0"}]'] = "line 1, column 2: a malformed '$float' or '$bytes'",
    } do
      local value, got = json.decode(text)
      assert.is_nil(value, text)
      assert.equal(reason, got)
    end
    local _, _, line, column = json.decode("[1,\n 2 x]")
    assert.same({ 2, 4 }, { line, column })
    assert.has_error(function() json.decode(nil) end,
      "bad argument #1 to 'decode' (string expected, got nil)")
  end)

  it("reads back every kind of value to the bit, at random", function()
    local seed = os.time()
    math.randomseed(seed)
    local strings = { "", "a", "é\u{10FFFF}", "\0\1\31\127", "\xff\xfe", "\\u0041", '"', "inf",
      "\xed\xa0\x80", "\u{2028}" }
    local function any(depth)
      local kind = math.random(depth > 0 and 8 or 6)
      if kind <= 2 then -- any 64 bits: denormals, infinities and NaN of all kinds among them
        return (("<d"):unpack(("<i8"):pack(math.random(0))))
      elseif kind == 3 then
        return math.random(0) >> math.random(0, 63)
      elseif kind == 4 then
        return ({ 0.0, -0.0, 5e-324, 2.0^-1022, 1e308, 2^53 + 1.0, 0.1, -math.huge, 0/0, 1e15,
          1e16, 1e17, 123456789012345680.0 })[math.random(13)]
      elseif kind == 5 then
        return strings[math.random(#strings)]
      elseif kind == 6 then
        return math.random(2) == 1
      end
      local value = {}
      for i = 1, math.random(0, 6) do
        value[kind == 7 and i or "k" .. strings[math.random(4)] .. i] = any(depth - 1)
      end
      return value
    end
    for round = 1, 500 do
      local value = any(4)
      local text = json.encode(value)
      assert.is_nil(text:find("\n"))
      assert_identical(value, json.decode(text), ("seed %d, round %d"):format(seed, round))
      assert.equal(text, json.encode(json.decode(text)))
    end
  end)

  it("refuses every text that was cut off, and never raises for one that was changed", function()
    local text = json.encode { a = { 1, 2.5, "x\n", false, 0/0 }, b = { c = {} } }
    for i = 0, #text - 1 do
      assert.is_nil((json.decode(text:sub(1, i))))
      for _, byte in ipairs { "\0", '"', "}", "9", "\\", "\xc3" } do
        local ok = pcall(json.decode, text:sub(1, i) .. byte .. text:sub(i + 2))
        assert.is_true(ok)
      end
    end
  end)
end)
