--- An operation as it is timed: a function with its arguments and the stream, bound once, so that
--- the loop makes a plain call; its copies for rotation; and what calls of it do.
local operation = {}

---@class tidelock.operation
---@field calls (fun(): any)[] one for each copy of the arguments
---@field args any[][] the arguments of each copy
---@field next integer the copy whose turn it is
---@field fresh boolean whether a call returns a new buffer, which is closed at once
---@field launches integer that one call makes on the stream; at least 1

--- Whether the value is a buffer, open or not.
---@param value any
---@return boolean
function operation.is_buffer(value)
  return getmetatable(value) == "tidelock.buffer"
end

local binders = {
  [0] = function(fn, stream)
    return function() return fn(stream) end
  end,
  function(fn, stream, a)
    return function() return fn(a, stream) end
  end,
  function(fn, stream, a, b)
    return function() return fn(a, b, stream) end
  end,
  function(fn, stream, a, b, c)
    return function() return fn(a, b, c, stream) end
  end,
}

--- fn(args..., stream) as a function of no arguments.
---@param fn function
---@param args any[]
---@param stream tidelock.stream
---@return fun(): any
function operation.bind(fn, args, stream)
  local binder = binders[#args]
  if binder then
    return binder(fn, stream, table.unpack(args))
  end
  local list = table.move(args, 1, #args, 1, {})
  local count = #list + 1
  list[count] = stream
  return function() return fn(table.unpack(list, 1, count)) end
end

---@param fn function
---@param args any[]
---@param stream tidelock.stream
---@return tidelock.operation
function operation.new(fn, args, stream)
  return { calls = { operation.bind(fn, args, stream) }, args = { args }, next = 1, fresh = false,
    launches = 1 }
end

--- Bytes of the buffers among the arguments, each counted once.
---@param args any[]
---@return integer
function operation.footprint(args)
  local bytes, seen = 0, {}
  for _, value in ipairs(args) do
    if operation.is_buffer(value) and not seen[value] then
      seen[value] = true
      bytes = bytes + value:nbytes()
    end
  end
  return bytes
end

--- The arguments with every buffer copied on the stream; one that comes twice is one copy.
local function copy_args(args, stream)
  local copies, copy = {}, {}
  for i, value in ipairs(args) do
    if operation.is_buffer(value) then
      copies[value] = copies[value] or value:clone(stream)
      value = copies[value]
    end
    copy[i] = value
  end
  return copy
end

--- Makes copies until the buffers together have so many bytes, within the limit on bytes; calls
--- take their turns. Returns the bytes of all copies.
---@param op tidelock.operation
---@param fn function
---@param stream tidelock.stream
---@param wanted integer bytes
---@param limit integer bytes
---@return integer bytes
function operation.rotate(op, fn, stream, wanted, limit)
  local each = operation.footprint(op.args[1])
  local bytes = each
  while each > 0 and bytes < wanted and bytes + each <= limit do
    local args = copy_args(op.args[1], stream)
    op.args[#op.args + 1] = args
    op.calls[#op.calls + 1] = operation.bind(fn, args, stream)
    bytes = bytes + each
  end
  return bytes
end

--- Closes the copies, so that their memory does not wait for the collector.
---@param op tidelock.operation
function operation.close(op)
  for i = 2, #op.args do
    for k, value in ipairs(op.args[i]) do
      if operation.is_buffer(value) and value ~= op.args[1][k] then
        value:close()
      end
    end
  end
end

--- Calls it so many times.
---@param op tidelock.operation
---@param count integer
function operation.run(op, count)
  local calls, turn, copies, fresh = op.calls, op.next, #op.calls, op.fresh
  for _ = 1, count do
    local returned = calls[turn]()
    turn = turn % copies + 1
    if fresh and operation.is_buffer(returned) then
      returned:close()
    end
  end
  op.next = turn
end

--- What one call did, watched from outside the clock.
---@class tidelock.look
---@field returned any
---@field allocations integer buffers made, the returned one included
---@field own integer launches on the stream
---@field stray integer launches on other streams
---@field seconds number host time of the call

--- Calls it once and looks at what it did. Does not wait.
---@param op tidelock.operation
---@param dev tidelock.device
---@param stream tidelock.stream
---@return tidelock.look
function operation.look(op, dev, stream)
  local allocations = dev:memory().allocations
  local own, all = stream:launches(), dev:launches()
  local began = dev:clock()
  local returned = op.calls[op.next]()
  local seconds = dev:clock() - began
  op.next = op.next % #op.calls + 1
  own, all = stream:launches() - own, dev:launches() - all
  return { returned = returned, allocations = dev:memory().allocations - allocations, own = own,
    stray = all - own, seconds = seconds }
end

return operation
