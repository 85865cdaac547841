--- Checks of results: arrays that agree to within rounding, and products by Freivalds' method.
local check = {}

local epsilons = { float32 = 2.0 ^ -23, float64 = 2.0 ^ -52, float16 = 2.0 ^ -10,
  bfloat16 = 2.0 ^ -7, int32 = 0, int8 = 0 }

--- Appends the numbers of nested tables to a list.
local function flatten(values, list)
  for _, value in ipairs(values) do
    if type(value) == "table" then
      flatten(value, list)
    else
      list[#list + 1] = value
    end
  end
  return list
end

--- The numbers of a buffer or of a table, the epsilon they were rounded with, the length of a row.
local function numbers_of(array)
  if type(array) == "table" then
    local list = flatten(array, {})
    return list, 0, type(array[1]) == "table" and #array[1] or #list
  end
  local shape = array:shape()
  return flatten(array:totable(), {}), epsilons[array:dtype()], shape[#shape]
end

local function largest(list, start)
  for _, value in ipairs(list) do
    local magnitude = math.abs(value)
    if magnitude < math.huge and magnitude > start then
      start = magnitude
    end
  end
  return start
end

--- Says whether two arrays agree: |a - b| <= atol + rtol * |b| for every element. By default the
--- tolerance is that of a product: rtol is 0 and atol 8 * sqrt(k) * epsilon * scale, where k is the
--- length of a row, epsilon that of the coarser dtype and scale the largest magnitude of the two.
--- Infinities must be the same; NaN agrees with nothing.
---@param a tidelock.buffer | table
---@param b tidelock.buffer | table what is wanted
---@param options { rtol: number?, atol: number? }?
---@return boolean agree
---@return string? reason the worst element, counted from 1 in row order
function check.allclose(a, b, options)
  options = options or {}
  local x, epsilon_a, k = numbers_of(a)
  local y, epsilon_b = numbers_of(b)
  if #x ~= #y then
    return false, ("%d elements against %d"):format(#x, #y)
  end
  local scale = largest(y, largest(x, 0))
  local rtol = options.rtol or 0
  local atol = options.atol
    or (options.rtol and 0 or 8 * math.sqrt(k) * math.max(epsilon_a, epsilon_b) * scale)
  local worst, place = -math.huge, nil
  for i, value in ipairs(x) do
    local wanted = y[i]
    local excess = math.abs(value - wanted) - (atol + rtol * math.abs(wanted))
    if excess ~= excess then -- NaN, or infinities: the same one agrees
      excess = value == wanted and 0 or math.huge
    end
    if excess > 0 and excess > worst then
      worst, place = excess, i
    end
  end
  if not place then
    return true
  end
  return false, ("element %d is %.17g, wanted %.17g (allowed apart: %.3g)"):format(place, x[place],
    y[place], atol + rtol * math.abs(y[place]))
end

--- A vector of random signs: Marsaglia's xorshift with 64 bits of state.
local function signs(n, state)
  local list = {}
  for i = 1, n do
    state = state ~ (state << 13)
    state = state ~ (state >> 7)
    state = state ~ (state << 17)
    list[i] = { state < 0 and -1 or 1 }
  end
  return list, state
end

--- matrix * vector in doubles, for types whose products round too coarsely.
local function times(rows, vector, transposed)
  local result = {}
  local count = transposed and #rows[1] or #rows
  for i = 1, count do
    local sum = 0
    for j = 1, #vector do
      sum = sum + (transposed and rows[j][i] or rows[i][j]) * vector[j][1]
    end
    result[i] = { sum }
  end
  return result
end

local wide = { float32 = true, float64 = true, int32 = true }
local narrow = { float16 = true, bfloat16 = true }

--- op(matrix) * vector, summed in float32, as a table of rows.
local function product(gpu, matrix, vector, rows, transposed)
  local result = matrix:device():empty({ rows, 1 }, "float32")
  return gpu.matmul(matrix, vector, result, { transpose_a = transposed }):totable()
end

--- op(matrix) * values of more digits than the matrix's type has: they are split into three
--- vectors of that type, whose products add up. Scaled to at most 1, so that none overflows.
local function product_split(gpu, matrix, values, rows, transposed)
  local scale = largest(flatten(values, {}), 0)
  scale = scale > 0 and scale < math.huge and 2.0 ^ math.ceil(math.log(scale, 2)) or 1
  local rest, sums = {}, {}
  for i, row in ipairs(values) do
    rest[i] = { row[1] / scale }
  end
  for _ = 1, 3 do
    local part = matrix:device():array(rest, matrix:dtype())
    for i, row in ipairs(part:totable()) do
      rest[i][1] = rest[i][1] - row[1]
    end
    for i, row in ipairs(product(gpu, matrix, part, rows, transposed)) do
      sums[i] = { (sums[i] and sums[i][1] or 0) + row[1] * scale }
    end
  end
  return sums
end

--- op(a) * (op(b) * v) and c * v, on the device where its types are wide enough for that.
local function both_sides(gpu, a, b, c, v, options)
  local dev = a:device()
  if wide[a:dtype()] then
    local vector = dev:array(v, a:dtype())
    local inner = gpu.matmul(b, vector, { transpose_a = options.transpose_b })
    local outer = gpu.matmul(a, inner, { transpose_a = options.transpose_a })
    return outer:totable(), gpu.matmul(c, vector):totable()
  end
  if narrow[a:dtype()] then
    local rows, k = c:shape()[1], a:shape()[options.transpose_a and 1 or 2]
    local inner = product(gpu, b, dev:array(v, b:dtype()), k, options.transpose_b)
    return product_split(gpu, a, inner, rows, options.transpose_a),
      product(gpu, c, dev:array(v, c:dtype()), rows)
  end
  local inner = times(b:totable(), v, options.transpose_b)
  return times(a:totable(), inner, options.transpose_a), times(c:totable(), v)
end

---@class tidelock.check_options
---@field transpose_a boolean?
---@field transpose_b boolean?
---@field vectors integer? default 3
---@field seed integer? not 0; default 1

--- Checks c = op(a) * op(b) by Freivalds' method: for vectors v of random signs, c * v must be
--- op(a) * (op(b) * v), which takes n^2 operations instead of n^3. A wrong product passes one
--- vector with a chance of at most one half, if it is wrong by more than the tolerance
--- 8 * sqrt(k) * epsilon * scale, scale being the largest magnitude of the two sides; int32 is
--- compared exactly. (R. Freivalds, Probabilistic machines can use less running time, 1977.)
---@param gpu table the module, whose matmul makes the products
---@param a tidelock.buffer of 2 dimensions, like b and c
---@param b tidelock.buffer
---@param c tidelock.buffer
---@param options tidelock.check_options?
---@return boolean right
---@return string? reason
function check.matmul(gpu, a, b, c, options)
  options = options or {}
  local shape = a:shape()
  local k = options.transpose_a and shape[1] or shape[2]
  local epsilon = math.max(epsilons[a:dtype()], epsilons[c:dtype()])
  local state = options.seed or 1
  if state == 0 then
    error("bad option 'seed': any integer but 0 wanted", 2)
  end
  for round = 1, options.vectors or 3 do
    local v
    v, state = signs(c:shape()[2], state)
    local wanted, got = both_sides(gpu, a, b, c, v, options)
    local scale = largest(flatten(wanted, {}), largest(flatten(got, {}), 0))
    local tolerance = 8 * math.sqrt(k) * epsilon * scale
    local agree, reason = check.allclose(got, wanted, { atol = tolerance })
    if not agree then
      return false, ("vector %d: row sums with random signs: %s"):format(round, reason)
    end
  end
  return true
end

return check
