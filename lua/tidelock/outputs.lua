--- Whether the work was done: outputs are filled with NaN before the clock runs, and looked at
-- after. A launch that failed, was skipped, or wrote elsewhere leaves NaN; a wrong product is found
-- by Freivalds' method.
local check = require "tidelock.check"
local operation = require "tidelock.operation"

local outputs = {}

-- What stands for NaN where the type has none: a value that results rarely consist of wholly.
local poisons = { int32 = -1234567891, int8 = -113 }

--- Enqueues the poison.
---@param list tidelock.buffer[]
---@param stream tidelock.stream
function outputs.poison(list, stream)
  for _, buffer in ipairs(list) do
    buffer:fill(poisons[buffer:dtype()] or 0 / 0, stream)
  end
end

--- The element at a place counted from 0 in row order.
local function element(buffer, place)
  local shape, index = buffer:shape(), {}
  for i = #shape, 1, -1 do
    index[i] = place % shape[i] + 1
    place = place // shape[i]
  end
  return buffer:get(table.unpack(index))
end

--- Elements spread over the buffer: all of a small one, else so many, the first and the last too.
---@param buffer tidelock.buffer
---@param most integer
---@return number[]
function outputs.sample(buffer, most)
  local size = buffer:size()
  local count = math.min(size, most)
  local values = {}
  for i = 0, count - 1 do
    -- A step that is no multiple of a row visits all columns.
    values[i + 1] = element(buffer, count < 2 and 0 or i * (size - 1) // (count - 1))
  end
  return values
end

--- Whether the buffer still holds poison: among floats one is enough, integers must all be it.
local function poisoned(buffer)
  local poison = poisons[buffer:dtype()]
  local values = outputs.sample(buffer, 64)
  local count = 0
  for _, value in ipairs(values) do
    if value == poison or not poison and value ~= value then
      count = count + 1
    end
  end
  return count > 0 and (not poison or count == #values), count, #values
end

--- What is wrong with the outputs after a call; nil: nothing was found.
---@param list tidelock.buffer[] poisoned before the call
---@return string? reason
function outputs.unwritten(list)
  for i, buffer in ipairs(list) do
    local is, count, of = poisoned(buffer)
    if is then
      return ("output %d (%s) was not written: %d of %d elements looked at still hold what it was "
        .. "filled with before"):format(i, tostring(buffer), count, of)
    end
  end
end

--- The buffers that the operation writes, as far as that is known without being told: what a call
--- returns if it is an argument, else the last buffer among the arguments. None where a call
--- returns a new buffer: the arguments are then its inputs.
---@param args any[]
---@param returned any what a call returned
---@param fresh boolean whether it was a new buffer
---@return tidelock.buffer[]
function outputs.guess(args, returned, fresh)
  if fresh then
    return {}
  end
  local last
  for _, value in ipairs(args) do
    if operation.is_buffer(value) then
      if rawequal(value, returned) then
        return { value }
      end
      last = value
    end
  end
  return { last }
end

--- The same outputs in another copy of the arguments; those that are no arguments are shared.
---@param list tidelock.buffer[]
---@param args any[]
---@param copy any[]
---@return tidelock.buffer[]
function outputs.in_copy(list, args, copy)
  local same = {}
  for i, buffer in ipairs(list) do
    same[i] = buffer
    for k, value in ipairs(args) do
      if rawequal(value, buffer) then
        same[i] = copy[k]
      end
    end
  end
  return same
end

--- The function that verifies: the script's own, or Freivalds' for gpu.matmul and where the script
--- says "matmul": the first argument times the second is the output. nil: none.
---@param verify (fun(...): boolean, string?) | "matmul" | nil
---@param fn function
---@param gpu table with matmul
---@return (fun(args: any[], list: tidelock.buffer[]): boolean, string?)?
function outputs.verifier(verify, fn, gpu)
  if type(verify) == "function" then
    return function(args)
      return verify(table.unpack(args))
    end
  elseif verify == "matmul" or fn == gpu.matmul then
    return function(args, list)
      local c = list[1]
      if not c or #c:shape() ~= 2 then
        return true
      end
      local right, reason = check.matmul(gpu, args[1], args[2], c)
      return right, reason and "the product is wrong: " .. reason
    end
  end
end

return outputs
