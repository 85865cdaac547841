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

--- The value below which a share q of the sorted values lies, by linear interpolation between
--- neighbours (R's type 7, NumPy's default).
---@param sorted number[] ascending
---@param q number 0 to 1
---@return number
function stats.quantile(sorted, q)
  local place = 1 + q * (#sorted - 1)
  local low = math.floor(place)
  return sorted[low] + (place - low) * ((sorted[low + 1] or sorted[low]) - sorted[low])
end

---@param values number[]
---@return number
function stats.mean(values)
  local sum = 0
  for _, value in ipairs(values) do
    sum = sum + value
  end
  return sum / #values
end

-- What a time of microseconds may lose as the difference of two clock readings of seconds: less is
-- no spread.
local ROUNDING = 1e-8

local MOST_RHO = 0.95 -- the inflation is 39 there; more cannot be told from drift

--- The correlation of each value with the one before it, clipped to 0 .. 0.95.
---
--- The plain estimate is too low where there are few values, by about (1 + 3 rho) / n (Marriott and
--- Pope 1954), and one that is too low makes an interval that is too narrow. So that bias is taken
--- out, and a part of the estimate's standard error is added, which matters up to n = 50 or so.
--- Coverage of the interval of stats.summary, 2000 series of each kind, true correlation 0, 0.5 and
--- 0.8: n = 31 0.98, 0.98, 0.98; n = 107 0.97, 0.98, 0.98; without both it falls to 0.91 at n = 31.
---@param values number[] in order of time
---@return number
function stats.correlation(values)
  local n, mean = #values, stats.mean(values)
  local top, bottom = 0, 0
  for i, value in ipairs(values) do
    bottom = bottom + (value - mean) ^ 2
    top = top + (i > 1 and (value - mean) * (values[i - 1] - mean) or 0)
  end
  if n < 6 or bottom <= n * (ROUNDING * mean) ^ 2 then
    return 0
  end
  local rho = math.max(0, math.min(1, (n * top / bottom + 1) / (n - 4)))
  return math.min(MOST_RHO, rho + 40 / n * rho * math.sqrt((1 - rho * rho) / n))
end

--- The ranks of the 95 % interval of a median, by order statistics; n_eff is what n correlated
--- values are worth. Below six values no pair of ranks has that level: then it is the range.
local function ranks(n, inflation)
  local half = 1.96 * math.sqrt(n * inflation)
  local low = n < 6 and 1 or math.max(1, math.floor((n - half) / 2 + 0.5))
  return low, n + 1 - low
end

local function check(values)
  if #values == 0 then
    error("stats.summary: at least one value wanted", 3)
  end
  for i, value in ipairs(values) do
    if value ~= value then
      error(("stats.summary: value %d is not a number"):format(i), 3)
    end
  end
end

---@class tidelock.statistics
---@field n integer
---@field median number
---@field ci { low: number, high: number } 95 % interval of the median, allowing for correlation
---@field mean number
---@field min number
---@field max number
---@field q1 number quartiles
---@field q3 number
---@field mad number median absolute deviation, times 1.4826: the deviation of a normal series
---@field rho number correlation of neighbours in time, 0 .. 0.95
---@field n_eff number so many independent values would say as much about the median
---@field mild integer values beyond 1.5 quartile distances, but not 3
---@field severe integer values beyond 3
---@field outliers integer[] where the severe ones are
---@field rel_ci number half of the interval, as a share of the median

--- What a series says about its median. Nothing is left out of it.
---@param values number[] in order of time
---@return tidelock.statistics
function stats.summary(values)
  check(values)
  local n = #values
  local sorted = table.move(values, 1, n, 1, {})
  table.sort(sorted)
  local median = stats.quantile(sorted, 0.5)
  local q1, q3 = stats.quantile(sorted, 0.25), stats.quantile(sorted, 0.75)
  local apart, mild, outliers = {}, 0, {}
  local spread = math.max(q3 - q1, ROUNDING * math.abs(median))
  for i, value in ipairs(values) do
    apart[i] = math.abs(value - median)
    local beyond = math.max(q1 - value, value - q3)
    if beyond > 3 * spread then
      outliers[#outliers + 1] = i
    elseif beyond > 1.5 * spread then
      mild = mild + 1
    end
  end
  table.sort(apart)
  local rho = stats.correlation(values)
  local inflation = (1 + rho) / (1 - rho)
  local low, high = ranks(n, inflation)
  local ci = { low = sorted[low], high = sorted[high] }
  local half = (ci.high - ci.low) / 2
  return { n = n, median = median, ci = ci, mean = stats.mean(values), min = sorted[1],
    max = sorted[n], q1 = q1, q3 = q3, mad = 1.4826 * stats.quantile(apart, 0.5), rho = rho,
    n_eff = n / inflation, mild = mild, severe = #outliers, outliers = outliers,
    rel_ci = half == 0 and 0 or half / math.abs(median) }
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
