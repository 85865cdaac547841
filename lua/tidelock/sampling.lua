--- Samples: one way of enqueueing for each isolation, and the five marks on every sample.
---
---     host:   prepare | E0  start ==operations== stop  E1 [gate opens] .... wait .... end
---     device:           E0 |============== work ==============| E1
---
--- enqueue = stop - start, sync = end - stop, wall = end - start, device = E1 - E0. The first event
--- is recorded before the host's clock starts, the second after it stops: neither is in the enqueue
--- time, and one is in the wall time.
local operation = require "tidelock.operation"

local sampling = {}

---@class tidelock.sampler
---@field dev tidelock.device
---@field stream tidelock.stream
---@field first tidelock.event
---@field last tidelock.event
---@field ring tidelock.event[] untimed, for windows
---@field columns table<string, number[]>
---@field timed_out integer samples whose gate gave up
---@field contradictions table<string, integer>
---@field busy number seconds of the device, or else of the wall clock, in all samples
local sampler = {}
sampler.__index = sampler

local names = { "enqueue", "device", "sync", "wall", "inflight", "slots", "ops", "start" }

--- A launch takes microseconds to reach the device: the gate opens when the last one has.
local ARRIVAL = 10e-6

--- Seconds for which a gate holds the device back; the device itself counts them.
sampling.GATE = 1

---@param dev tidelock.device
---@param stream tidelock.stream
---@return tidelock.sampler
function sampling.new(dev, stream)
  local self = setmetatable({ dev = dev, stream = stream, first = dev:event(), last = dev:event(),
    ring = {} }, sampler)
  self:clear()
  return self
end

--- Forgets all samples.
function sampler:clear()
  self.columns = {}
  for _, name in ipairs(names) do
    self.columns[name] = {}
  end
  self.timed_out, self.contradictions, self.busy = 0, {}, 0
end

--- Closes what it has made.
function sampler:close()
  self.first:close()
  self.last:close()
  for _, event in ipairs(self.ring) do
    event:close()
  end
end

-- ---- how operations are enqueued ------------------------------------------------------------

--- Each takes the sampler, the operation, how many, and the policy's window or list of launches.
local enqueue = {}

function enqueue.each(_, op, count)
  operation.run(op, count)
end

enqueue.batch = enqueue.each

--- Waits before each step until no more than so many operations are in flight: one untimed event,
--- which takes no slot of the queue, for every quarter of the window.
function enqueue.window(self, op, count, window)
  local step = math.max(1, window // 4)
  local size, ring, stream = window // step, self.ring, self.stream
  for i = #ring + 1, size do
    ring[i] = self.dev:event { timing = false }
  end
  local steps = (count + step - 1) // step
  for i = 0, steps - 1 do
    local event = ring[i % size + 1]
    if i >= size then
      event:synchronize()
    end
    operation.run(op, math.min(step, count - i * step))
    stream:record(event)
  end
end

--- Keeps the host time of each launch, in a list that has its length already.
function enqueue.all(self, op, count, launches)
  local dev = self.dev
  local before = dev:clock()
  for i = 1, count do
    operation.run(op, 1)
    local now = dev:clock()
    launches[i], before = now - before, now
  end
end

-- ---- one sample -----------------------------------------------------------------------------

--- Notes where the marks contradict each other. The first event is recorded after `began`, the last
--- one done before the end: so no device time is longer than that.
local function contradict(self, enqueued, device, wall, since)
  local which = enqueued > wall and "enqueue time above wall time"
    or device and device < 0 and "negative device time"
    or device and device > since + 2e-6 + 5e-5 * since and "device time above wall time"
  if which then
    self.contradictions[which] = (self.contradictions[which] or 0) + 1
  end
end

local function note(self, sample)
  local columns = self.columns
  local row = #columns.wall + 1
  for _, name in ipairs(names) do
    columns[name][row] = sample[name]
  end
  self.busy = self.busy + (sample.device or sample.wall)
end

--- Takes one sample of so many operations and notes it. The stream is idle before and after.
---@param op tidelock.operation
---@param count integer operations
---@param policy tidelock.policy
---@param extra any what the isolation needs: the window, or a list for the times of launches
---@return table sample
function sampler:take(op, count, policy, extra)
  local dev, stream, first, last = self.dev, self.stream, self.first, self.last
  local fill = enqueue[policy.isolation]
  local made = stream:launches()
  local began = dev:clock()
  local gate <close> = policy.block and stream:gate { timeout = sampling.GATE } or nil
  stream:record(first)
  local start = dev:clock()
  fill(self, op, count, extra)
  local stop = dev:clock()
  -- A record waits for a slot where the queue may be full; elsewhere nothing comes before it, since
  -- a short operation ends meanwhile.
  local _, inflight
  if policy.isolation == "all" then
    _, inflight = stream:inflight()
  end
  stream:record(last)
  if not inflight then
    _, inflight = stream:inflight()
  end
  if gate then
    dev:sleep(ARRIVAL)
  end
  local opened = not gate or gate:open()
  stream:synchronize()
  local finish = dev:clock()
  local device = last - first
  local launches = stream:launches() - made
  if not opened then
    self.timed_out = self.timed_out + 1
    device = false
  end
  contradict(self, stop - start, device, finish - start, finish - began)
  local sample = { enqueue = stop - start, device = device, sync = finish - stop,
    wall = finish - start, inflight = inflight, slots = launches + 2, ops = count, start = start }
  note(self, sample)
  return sample
end

--- One call and nothing else: no event, no gate, for a profiler.
---@param op tidelock.operation
function sampler:bare(op)
  local dev, stream = self.dev, self.stream
  local made, start = stream:launches(), dev:clock()
  operation.run(op, 1)
  local stop = dev:clock()
  stream:synchronize()
  local finish = dev:clock()
  note(self, { enqueue = stop - start, device = false, sync = finish - stop, wall = finish - start,
    inflight = 0, slots = stream:launches() - made, ops = 1, start = start })
end

--- One clock's samples as seconds for each operation; what could not be measured is left out.
---@param name "enqueue"|"device"|"sync"|"wall"
---@return number[]
function sampler:per_operation(name)
  local values, ops = {}, self.columns.ops
  for i, value in ipairs(self.columns[name]) do
    if value then
      values[#values + 1] = value / ops[i]
    end
  end
  return values
end

return sampling
