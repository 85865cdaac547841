--- Statistics of measured series. Pure functions; values in time order.
local stats = {}

--- The median of values[first..last].
---@param values number[]
---@param first integer? default 1
---@param last integer? default #values
---@return number
function stats.median(values, first, last)
  local part = table.move(values, first or 1, last or #values, 1, {})
  table.sort(part)
  local middle = (#part + 1) // 2
  return #part % 2 == 1 and part[middle] or (part[middle] + part[middle + 1]) / 2
end

--- Medians of successive blocks, as logarithms.
local function log_blocks(values, size)
  local blocks = {}
  for i = 1, #values // size do
    local median = stats.median(values, (i - 1) * size + 1, i * size)
    blocks[i] = math.log(math.max(median, 1e-12))
  end
  return blocks
end

--- How many blocks to put before the step, so that two constant levels fit with
--- the least squared error; at least `before` on one side and `after` on the other.
local function best_split(blocks, before, after)
  local sum, total = 0, 0
  for _, value in ipairs(blocks) do
    total = total + value
  end
  local best, where = -math.huge, nil
  for i, value in ipairs(blocks) do
    sum = sum + value
    local rest = #blocks - i
    if i >= before and rest >= after then
      local explained = sum * sum / i + (total - sum) ^ 2 / rest
      if explained > best then
        best, where = explained, i
      end
    end
  end
  return where
end

--- The first value that is above the limit together with 6 of the 8 from it on.
local function first_above(values, limit)
  for i = 1, #values - 7 do
    local above = 0
    for j = i, i + 7 do
      above = above + (values[j] > limit and 1 or 0)
    end
    if above >= 6 and values[i] > limit then
      return i
    end
  end
end

--- Finds the place from which a series stays at a higher level: launch costs,
--- once the queue is full. Two levels are fitted to the logarithms of medians of
--- blocks of 8 (outliers and slow drift do not make a step); the step must be at
--- least half as much again.
---@param values number[] positive
---@return { first: integer, before: number, after: number }? step first: the
--- first value of the higher level; before and after: medians
function stats.step(values)
  local blocks = log_blocks(values, 8)
  local split = best_split(blocks, 8, 2)
  if not split then
    return nil
  end
  local before = stats.median(values, 5, math.min(64, 8 * split))
  local after = stats.median(values, 8 * split + 1)
  if after < 1.5 * before then
    return nil
  end
  local first = first_above(values, math.sqrt(before * after))
  return first and { first = first, before = before, after = after }
end

return stats
