--- Options of a script, written name=value on its command line.
local options = {}

--- Raises without a position: the message is for whoever typed the command.
local function refuse(...)
  error(string.format(...), 0)
end

local function names_of(known)
  local names = {}
  for name in pairs(known) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, ", ")
end

--- Reads the arguments of a script. Each known option has a default (nil where it has none),
--- a least value for whole numbers, `number = true` for any positive number, `text = true` for
--- text.
---@param arguments string[]
---@param known table<string, { default: any, least: integer?, number: boolean?, text: boolean? }>
---@return table<string, any> values
function options.read(arguments, known)
  local values = {}
  for name, option in pairs(known) do
    values[name] = option.default
  end
  for _, argument in ipairs(arguments) do
    local name, value = argument:match("^(%w+)=(.*)$")
    local option = known[name]
    if not option then
      refuse("'%s': options are written name=value; there are: %s", argument, names_of(known))
    elseif option.text then
      values[name] = value ~= "" and value or nil
    else
      local number = tonumber(value)
      local whole = number and math.tointeger(number)
      if option.number and not (number and number > 0 and number < math.huge) then
        refuse("%s: a number above 0 wanted", argument)
      elseif not option.number and not (whole and whole >= option.least) then
        refuse("%s: a whole number of at least %d wanted", argument, option.least)
      end
      values[name] = option.number and number or whole
    end
  end
  return values
end

return options
