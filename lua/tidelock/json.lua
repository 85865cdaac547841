--- JSON (RFC 8259) that reads back what was written, bit for bit: integers stay integers, floats
--- stay floats with all their bits. What JSON has no word for is an object of one reserved key:
---
---   {"$float":"inf"}  {"$float":"-inf"}    the infinities
---   {"$float":"7ff8000000000000"}          a NaN: its 64 bits, in hexadecimal
---   {"$bytes":"ff00"}                      a string that is not UTF-8, in hexadecimal
---
--- A table is an array when its keys are 1 to #t; an empty one is written [], and [] and {} both
--- read back as the empty table. null reads as json.null; nothing here writes it by itself.
local json = {}

local MAX_DEPTH = 100 -- of tables in tables; a table within itself ends here too

--- What null reads as, since nil can't stand in a table.
json.null = setmetatable({}, { __tostring = function() return "null" end, __name = "json.null" })

-- ---- writing --------------------------------------------------------------------------------

local short = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n",
  ["\r"] = "\\r", ["\t"] = "\\t",
}

local function escape(character)
  return short[character] or ("\\u%04x"):format(character:byte())
end

local function quote(text)
  return '"' .. text:gsub('[\0-\31"\\]', escape) .. '"' -- not %c: that is the locale's
end

local function hex(bytes)
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

--- The shortest text of 15, 16 or 17 digits that reads back as the same double; 17 always do.
local function shortest(value)
  local text = ("%.15g"):format(value)
  if tonumber(text) ~= value then
    text = ("%.16g"):format(value)
  end
  return tonumber(text) == value and text or ("%.17g"):format(value)
end

--- The exact decimal text of a number, with a point whatever the locale says, and ".0" behind a
--- float that would read as an integer.
---@param value number finite
---@return string
function json.number(value)
  if math.type(value) == "integer" then
    return ("%d"):format(value)
  end
  local text = shortest(value):gsub("[^%d+e-]+", ".")
  return text:find("[.e]") and text or text .. ".0"
end

local function encode_number(value)
  if value ~= value then
    return ('{"$float":"%s"}'):format(hex((">d"):pack(value)))
  elseif value == math.huge or value == -math.huge then
    return ('{"$float":"%s"}'):format(value > 0 and "inf" or "-inf")
  end
  return json.number(value)
end

local function encode_string(value)
  return utf8.len(value) and quote(value) or ('{"$bytes":"%s"}'):format(hex(value))
end

local encode_value

--- Where in the value a fault is: "value.samples[3]".
local function path_of(path)
  return "value" .. table.concat(path)
end

--- The keys of an object in order: those that rank first, then by their bytes.
local function keys_of(object, path, rank)
  local keys = {}
  for key in next, object do
    if type(key) ~= "string" then
      return nil, path_of(path) .. " is neither an array without holes nor a table of names"
    elseif not utf8.len(key) then
      return nil, ("%s has the key %q, which is not UTF-8"):format(path_of(path), key)
    elseif key == "$float" or key == "$bytes" then
      return nil, ("%s has the key '%s', which is reserved"):format(path_of(path), key)
    end
    keys[#keys + 1] = key
  end
  local last = math.huge
  table.sort(keys, function(a, b)
    local rank_a, rank_b = rank[a] or last, rank[b] or last
    if rank_a ~= rank_b then
      return rank_a < rank_b
    end
    return a < b
  end)
  return keys
end

local function encode_array(array, path, rank)
  local parts = {}
  for i = 1, #array do
    path[#path + 1] = "[" .. i .. "]"
    local text, reason = encode_value(rawget(array, i), path, rank)
    if not text then
      return nil, reason
    end
    path[#path] = nil
    parts[i] = text
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function encode_object(object, path, rank)
  local keys, reason = keys_of(object, path, rank)
  if not keys then
    return nil, reason
  end
  local parts = {}
  for i, key in ipairs(keys) do
    path[#path + 1] = "." .. key
    local text
    text, reason = encode_value(rawget(object, key), path, rank)
    if not text then
      return nil, reason
    end
    path[#path] = nil
    parts[i] = quote(key) .. ":" .. text
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

--- Whether the keys are 1 to n, each there.
local function is_array(value)
  local count = 0
  for _ in next, value do
    count = count + 1
  end
  for i = 1, count do
    if rawget(value, i) == nil then
      return false
    end
  end
  return true
end

function encode_value(value, path, rank)
  local kind = type(value)
  if kind == "number" then
    return encode_number(value)
  elseif kind == "string" then
    return encode_string(value)
  elseif kind == "boolean" then
    return tostring(value)
  elseif rawequal(value, json.null) then
    return "null"
  elseif kind ~= "table" then
    return nil, ("%s is a %s, which JSON can't hold"):format(path_of(path), kind)
  elseif #path >= MAX_DEPTH then
    return nil, ("value is nested deeper than %d tables (a table within itself?)"):format(MAX_DEPTH)
  end
  return (is_array(value) and encode_array or encode_object)(value, path, rank)
end

--- Writes a value on one line. Keys are sorted, so that equal values give equal text. Tables are
--- read raw. Raises for what JSON can't hold (functions, keys that are neither strings nor 1 to n),
--- for reserved keys and for more than 100 tables in each other, and says where in the value.
---@param value any
---@param first string[]? keys that come before the others, at every depth
---@return string
function json.encode(value, first)
  local rank = {}
  for i, key in ipairs(first or {}) do
    rank[key] = i
  end
  local text, reason = encode_value(value, {}, rank)
  return text or error("can't write JSON: " .. reason, 2)
end

-- ---- reading --------------------------------------------------------------------------------

--- Raises a fault at a place; decode turns it into a message.
local function fault(text, position, what)
  local _, breaks = text:sub(1, position - 1):gsub("\n", "")
  local start = text:sub(1, position - 1):match(".*\n()") or 1
  error({ line = breaks + 1, column = position - start + 1, what = what }, 0)
end

local function skip_space(text, position)
  return text:match("^[ \t\r\n]*()", position)
end

local function shown(text, position)
  local character = text:match("^[%g ]", position)
  return character and ("'%s'"):format(character)
    or position > #text and "the end" or ("byte %d"):format(text:byte(position))
end

local unescaped = {
  ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
}

--- The character of the escape at `position`, which is behind the backslash, and what follows.
local function decode_escape(text, position)
  local plain = unescaped[text:sub(position, position)]
  if plain then
    return plain, position + 1
  end
  local unit = tonumber(text:match("^u(%x%x%x%x)", position) or "", 16)
  if not unit then
    fault(text, position - 1, "an escape that JSON does not have")
  elseif unit < 0xd800 or unit > 0xdfff then
    return utf8.char(unit), position + 5
  end
  local low = tonumber(text:match("^\\u(%x%x%x%x)", position + 5) or "", 16)
  if unit > 0xdbff or not low or low < 0xdc00 or low > 0xdfff then
    fault(text, position - 1, "half of a surrogate pair")
  end
  return utf8.char(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)), position + 11
end

local function decode_string(text, position)
  local start, parts = position, {}
  position = position + 1
  while true do
    local plain, stop = text:match('^([^\0-\31"\\]*)()', position)
    parts[#parts + 1] = plain
    local character = text:sub(stop, stop)
    if character == '"' then
      return table.concat(parts), stop + 1
    elseif character == "\\" then
      parts[#parts + 1], position = decode_escape(text, stop + 1)
    elseif character == "" then
      fault(text, start, "a string that does not end")
    else
      fault(text, stop, "a control character in a string")
    end
  end
end

local function decode_number(text, position)
  local whole, stop = text:match("^(-?%d+)()", position)
  if not whole or whole:find("^-?0%d") then
    fault(text, position, "a malformed number")
  end
  local fraction, behind = text:match("^(%.%d+)()", stop)
  stop = behind or stop
  local exponent, after = text:match("^([eE][+-]?%d+)()", stop)
  stop = after or stop
  local number = tonumber(whole .. (fraction or "") .. (exponent or ""))
  if text:find("^[%w.+-]", stop) then
    fault(text, position, "a malformed number")
  elseif not fraction and not exponent and math.type(number) ~= "integer" then
    fault(text, position, "an integer that 64 bits do not hold")
  elseif number == math.huge or number == -math.huge then
    fault(text, position, "a number that a double does not hold")
  end
  return number, stop
end

local decode_value

local function decode_array(text, position, depth)
  local array = {}
  position = skip_space(text, position + 1)
  if text:find("^]", position) then
    return array, position + 1
  end
  while true do
    array[#array + 1], position = decode_value(text, position, depth)
    position = skip_space(text, position)
    if text:find("^]", position) then
      return array, position + 1
    elseif not text:find("^,", position) then
      fault(text, position, "',' or ']' expected, got " .. shown(text, position))
    end
    position = position + 1
  end
end

local function from_hex(digits)
  return (digits:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

--- What an object with a reserved key stands for.
local function decode_reserved(object, text, position)
  local float, bytes = object["$float"], object["$bytes"]
  local alone = next(object, (next(object))) == nil
  if alone and (float == "inf" or float == "-inf") then
    return float == "inf" and math.huge or -math.huge
  elseif alone and type(float) == "string" and float:find("^%x+$") and #float == 16 then
    return ((">d"):unpack(from_hex(float)))
  elseif alone and type(bytes) == "string" and bytes:find("^%x*$") and #bytes % 2 == 0 then
    return from_hex(bytes)
  end
  fault(text, position, "a malformed '$float' or '$bytes'")
end

local function decode_member(object, text, position, depth)
  position = skip_space(text, position)
  if not text:find('^"', position) then
    fault(text, position, "a key in quotes expected, got " .. shown(text, position))
  end
  local key, stop = decode_string(text, position)
  if object[key] ~= nil then
    fault(text, position, ("the key '%s' for the second time"):format(key))
  end
  stop = skip_space(text, stop)
  if not text:find("^:", stop) then
    fault(text, stop, "':' expected, got " .. shown(text, stop))
  end
  object[key], stop = decode_value(text, stop + 1, depth)
  return skip_space(text, stop)
end

local function decode_object(text, start, depth)
  local object = {}
  local position = skip_space(text, start + 1)
  if text:find("^}", position) then
    return object, position + 1
  end
  while true do
    position = decode_member(object, text, position, depth)
    if text:find("^}", position) then
      break
    elseif not text:find("^,", position) then
      fault(text, position, "',' or '}' expected, got " .. shown(text, position))
    end
    position = position + 1
  end
  if object["$float"] ~= nil or object["$bytes"] ~= nil then
    return decode_reserved(object, text, start), position + 1
  end
  return object, position + 1
end

local words = { ["true"] = true, ["false"] = false, null = json.null }

function decode_value(text, position, depth)
  position = skip_space(text, position)
  local character = text:sub(position, position)
  if character == '"' then
    return decode_string(text, position)
  elseif character == "{" or character == "[" then
    if depth >= MAX_DEPTH then
      fault(text, position, ("nested deeper than %d"):format(MAX_DEPTH))
    end
    return (character == "{" and decode_object or decode_array)(text, position, depth + 1)
  elseif character:find("^[%d-]") then
    return decode_number(text, position)
  end
  local word = text:match("^%a+", position)
  if words[word] == nil then
    fault(text, position, "a value expected, got " .. (word or shown(text, position)))
  end
  return words[word], position + #word
end

local function decode_text(text)
  local length, invalid = utf8.len(text)
  if not length then
    fault(text, invalid, "text that is not UTF-8")
  end
  local value, position = decode_value(text, 1, 0)
  position = skip_space(text, position)
  if position <= #text then
    fault(text, position, "nothing more expected, got " .. shown(text, position))
  end
  return value
end

--- Reads one value; strict: no comments, no trailing commas, no key twice, no integer beyond 64
--- bits. Returns nil, the reason and the place (counted from 1, columns in bytes) where the text is
--- not JSON; null is json.null, so that nil is never a value.
---@param text string
---@return any value
---@return string? reason "line 3, column 17: ',' or ']' expected, got 'x'"
---@return integer? line
---@return integer? column
function json.decode(text)
  if type(text) ~= "string" then
    error(("bad argument #1 to 'decode' (string expected, got %s)"):format(type(text)), 2)
  end
  local ok, value = pcall(decode_text, text)
  if ok then
    return value
  elseif type(value) ~= "table" then
    error(value, 0)
  end
  return nil, ("line %d, column %d: %s"):format(value.line, value.column, value.what), value.line,
    value.column
end

return json
