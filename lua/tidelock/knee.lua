--- Back-pressure: from some launch on, each waits for a slot of the queue, and costs on the host
--- what the work costs on the device. Finds that launch, and says where the queue's model has it.
local order = require "tidelock.order"

local knee = {}

local block = 8 -- launches: their median does not see one spike, nor two

--- Medians of successive blocks, as logarithms.
local function log_blocks(values)
  local blocks = {}
  for i = 1, #values // block do
    local median = order.median(values, (i - 1) * block + 1, i * block)
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

--- The first value from a place on that is above the limit together with 6 of the 8 that it begins.
local function first_above(values, limit, from)
  for i = from, #values - 7 do
    local above = 0
    for j = i, i + 7 do
      above = above + (values[j] > limit and 1 or 0)
    end
    if above >= 6 and values[i] > limit then
      return i
    end
  end
end

--- Finds the place from which a series stays at a higher level: launch costs, once the queue is
--- full. Two levels are fitted to the logarithms of medians of blocks of 8 (spikes and slow drift
--- make no step); the step must be at least half as much again.
---@param values number[] positive
---@return { first: integer, before: number, after: number }? step first: the
--- first value of the higher level; before and after: medians
function knee.step(values)
  local split = best_split(log_blocks(values), 8, 2)
  if not split then
    return nil
  end
  local before = order.median(values, 5, math.min(64, block * split))
  local after = order.median(values, block * split + 1)
  if after < 1.5 * before then
    return nil
  end
  -- The split is off by a block or two at most; farther ahead a stall of 8 launches is no knee.
  local from = math.max(1, block * (split - 3) + 1)
  local first = first_above(values, math.sqrt(before * after), from)
  return first and { first = first, before = before, after = after }
end

--- The first launch that waits for a slot: launch i waits until launch i - depth has run. Exact to
--- two launches; which one depends on when in its call a launch takes its slot.
---@param depth number launches that a stream's queue holds: slots over slots per launch
---@param launch number seconds of host time per launch, the mean: spikes fill the queue later too
---@param device number seconds of device time per launch
---@return integer? first nil where launches are slower than the work: the queue never fills
function knee.predict(depth, launch, device)
  if launch >= device then
    return nil
  end
  return math.ceil(depth / (1 - launch / device))
end

local function mean(values, first, last)
  local sum = 0
  for i = first, last do
    sum = sum + values[i]
  end
  return sum / (last - first + 1)
end

---@class tidelock.knee
---@field first integer first launch that waited
---@field before number seconds per launch before it, median
---@field after number seconds per launch from it on, median
---@field predicted integer? first launch that waits by the model; nil: depth not known

--- Finds back-pressure in the host times of launches. A step counts when the launches behind it
--- cost what the device takes for one, within a factor of 2: that is what waiting for a slot looks
--- like.
---@param launches number[] host seconds of each launch, in order
---@param options { device: number?, depth: number? }? device: seconds of device time per launch
--- (not given: any step counts); depth: launches that the queue holds
---@return tidelock.knee? knee
---@return string? reason why a step is no knee
function knee.find(launches, options)
  order.check(launches)
  options = options or {}
  local step = knee.step(launches)
  if not step then
    return nil
  end
  -- Launches wait for the first operations of the loop, which on a busy machine took up to a third
  -- more or less than the mean of all, so a factor of 2. (Loops without a knee raise no alarm even
  -- where no device time is known.)
  local device, waiting = options.device, mean(launches, step.first, #launches)
  if device and (waiting > 2 * device or 2 * waiting < device) then
    return nil, ("launches cost %.3g s from launch %d on, and the device takes %.3g s for one")
      :format(waiting, step.first, device)
  end
  step.predicted = options.depth
    and knee.predict(options.depth, mean(launches, 1, step.first - 1), device or step.after)
  return step
end

return knee
