--- dev:probe: what launching and timing cost on a device, and how deep its queue is.
local stats = require "tidelock.stats"

local probe = {}

---@class tidelock.probe
---@field clock { cost: number, step: number } seconds: of reading the host's clock, and the
---smallest difference that it shows
---@field event_null number seconds between two events with nothing between them
---@field empty_launch number seconds by the device's clock of a launch that does nothing
---@field launch_cost number seconds until a launch returns
---@field round_trip number seconds for a launch that does nothing and the wait for it
---@field asynchronous boolean whether a launch returns before its work is done
---@field depth { launch: integer?, event: integer? } how many a stream holds before one waits; nil:
---more than were tried
---@field shared boolean? whether a full stream holds up another one

local GATE = 0.2 -- seconds: a launch that waits behind it takes about as long
local WAITS = 0.05
local MOST = 20000

local function median_of(count, f)
  local values = {}
  for i = 1, count do
    values[i] = f()
  end
  return stats.summary(values).median
end

local function clock(dev)
  local began, step = dev:clock(), math.huge
  local before = began
  for _ = 1, 10000 do
    local now = dev:clock()
    if now > before then
      step = math.min(step, now - before)
    end
    before = now
  end
  return { cost = (before - began) / 10000, step = step }
end

--- The device's time of what f enqueues, held back until all is queued.
local function behind_gate(dev, stream, f)
  local first <close> = dev:event()
  local last <close> = dev:event()
  return median_of(50, function()
    local gate <close> = stream:gate()
    stream:record(first)
    f()
    stream:record(last)
    gate:open()
    stream:synchronize()
    return last - first
  end)
end

--- How many times f goes into a stream that is held back before one waits.
local function fill(dev, stream, f, other)
  stream:synchronize()
  local gate <close> = stream:gate { timeout = GATE }
  local count, shared
  for i = 1, MOST do
    local before = dev:clock()
    f()
    if dev:clock() - before > WAITS then
      count = i - 1
      break
    end
  end
  gate:open()
  stream:synchronize()
  if count and other then
    shared = other(count)
  end
  return count, shared
end

--- Whether a launch on another stream waits too, once this one is full.
local function holds_up(dev, stream, count)
  local other <close> = dev:stream()
  local gate <close> = stream:gate { timeout = GATE }
  for _ = 1, count do
    stream:spin(0)
  end
  local before = dev:clock()
  other:spin(0)
  local seconds = dev:clock() - before
  gate:open()
  stream:synchronize()
  other:synchronize()
  return seconds > WAITS
end

--- Measures them. The stream and the events are closed when it returns.
---@param dev tidelock.device
---@return tidelock.probe
function probe.run(dev)
  dev:synchronize()
  local stream <close> = dev:stream()
  local event <close> = dev:event()
  local found = { clock = clock(dev), depth = {} }
  stream:spin(5e-3)
  found.asynchronous = stream:inflight() > 0
  stream:synchronize()
  local function launch()
    stream:spin(0)
  end
  found.launch_cost = median_of(200, function()
    local before = dev:clock()
    launch()
    local cost = dev:clock() - before
    stream:synchronize()
    return cost
  end)
  found.round_trip = median_of(200, function()
    local before = dev:clock()
    launch()
    stream:synchronize()
    return dev:clock() - before
  end)
  if not found.asynchronous then
    return found -- a gate would hold each launch, and this thread with it
  end
  found.event_null = behind_gate(dev, stream, function() end)
  found.empty_launch = behind_gate(dev, stream, launch)
  found.depth.launch, found.shared = fill(dev, stream, launch, function(count)
    return holds_up(dev, stream, count)
  end)
  found.depth.event = fill(dev, stream, function()
    stream:record(event)
  end)
  return found
end

return probe
