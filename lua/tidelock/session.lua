--- One operation on its own stream, made ready to be sampled: looked at, checked, warmed up, its
-- arguments copied for rotation, the cache flushed. What is found on the way is kept as warnings.
local operation = require "tidelock.operation"
local outputs = require "tidelock.outputs"
local policies = require "tidelock.policy"
local preparation = require "tidelock.preparation"
local sampling = require "tidelock.sampling"
local stats = require "tidelock.stats"
local units = require "tidelock.units"
local warnings = require "tidelock.warnings"

local session = {}

---@class tidelock.session
---@field dev tidelock.device
---@field fn function
---@field options table
---@field policy tidelock.policy
---@field gpu table
---@field stream tidelock.stream
---@field op tidelock.operation
---@field sampler tidelock.sampler
---@field found tidelock.warning[]
---@field outputs tidelock.buffer[][]? for each copy of the arguments, once looked at
---@field estimate number? seconds of one operation, once looked at
---@field count integer operations of a sample
---@field extra any what the isolation needs beside
local methods = {}
methods.__index = methods

--- What a queue holds where the device does not tell: CUDA's own is 1021 behind a gate.
local UNTOLD_DEPTH = 1000

---@param dev tidelock.device
---@param fn function
---@param options table as bench.run takes
---@param policy tidelock.policy
---@param gpu table with matmul
---@return tidelock.session
function session.open(dev, fn, options, policy, gpu)
  local stream = dev:stream()
  local properties = dev:properties()
  return setmetatable({ dev = dev, fn = fn, options = options, policy = policy, gpu = gpu,
    stream = stream, op = operation.new(fn, options.args or {}, stream), found = {}, count = 1,
    sampler = sampling.new(dev, stream), properties = properties,
    depth = properties.queue_depth or UNTOLD_DEPTH }, methods)
end

--- Closes what it has made on the device.
function methods:close()
  self.sampler:close()
  operation.close(self.op)
  if self.scratch then
    self.scratch:close()
  end
  self.stream:close()
end

--- Keeps a warning, once for each code.
---@param code string
---@param evidence table
function methods:warn(code, evidence)
  for _, warning in ipairs(self.found) do
    if warning.code == code then
      return
    end
  end
  self.found[#self.found + 1] = warnings.make(code, evidence)
end

-- ---- looking at the operation ---------------------------------------------------------------

--- Restores what the operation changes in place, and waits.
function methods:restore()
  if self.options.setup then
    local list = table.move(self.op.args[self.op.next], 1, #self.op.args[1], 1, {})
    list[#list + 1] = self.stream
    self.options.setup(table.unpack(list))
  end
end

--- One look, done when it returns; with its time.
local function look(self)
  self:restore()
  self.stream:synchronize()
  local began = self.dev:clock()
  local seen = operation.look(self.op, self.dev, self.stream)
  self.stream:synchronize()
  seen.wall = self.dev:clock() - began
  return seen
end

--- Whether launches on other streams ran ahead of this one: behind a gate on it they did, if they
--- come to an end. What waits for this stream does not.
local function runs_ahead(self)
  local dev, stream = self.dev, self.stream
  self:restore()
  stream:synchronize()
  local from = dev:now()
  local gate <close> = stream:gate { timeout = 2 * sampling.GATE }
  local seen = operation.look(self.op, dev, stream)
  local ends = dev:clock() + math.max(0.02, 4 * self.estimate)
  local held
  repeat
    local _, all = from:elapsed()
    local _, own = stream:inflight()
    held = all - own
  until held < seen.stray or dev:clock() > ends
  gate:open()
  stream:synchronize()
  from:close()
  return held < seen.stray
end

local function judge_look(self, seen)
  local made = seen.own + seen.stray
  if seen.stray > 0 then
    -- Work that is still running when this stream is done was not waited for.
    if seen.own == 0 or not self.dev:synchronize(0) or runs_ahead(self) then
      self:warn("E-OTHERSTREAM", { stray = seen.stray, made = made })
    end
    self.dev:synchronize()
  end
  local count = seen.allocations - (self.op.fresh and 1 or 0)
  if count > 0 then
    self:warn("E-ALLOC", { count = count })
  end
end

local function find_outputs(self, returned)
  local op, given = self.op, self.options.outputs
  local list = given or outputs.guess(op.args[1], returned, op.fresh)
  self.outputs = { list }
  if #list == 0 then
    self:warn("I-UNCHECKED", { why = op.fresh and "it returns new buffers, which nobody keeps"
      or "no output is declared" })
  end
end

--- Calls it a few times: the first may load code, the second shows what every call does.
function methods:look()
  local op = self.op
  local first = look(self)
  local second = look(self)
  op.fresh = operation.is_buffer(second.returned) and second.allocations > 0
    and not rawequal(first.returned, second.returned)
  op.launches = math.max(1, second.own)
  self.first_call = first.wall
  self.estimate = math.max(second.wall, 1e-9)
  for _ = 1, 3 do
    self.estimate = math.max(math.min(self.estimate, look(self).wall), 1e-9)
  end
  judge_look(self, second)
  find_outputs(self, second.returned)
  if op.fresh then
    second.returned:close()
  end
end

-- ---- checking -------------------------------------------------------------------------------

--- Fills the outputs of all copies with what the operation has to replace, and waits: the script's
--- own streams may use them next.
function methods:poison()
  for _, list in ipairs(self.outputs) do
    outputs.poison(list, self.stream)
  end
  self.stream:synchronize()
end

--- Looks at the outputs of the copy that was used last.
---@return boolean right
function methods:verify(when)
  local op = self.op
  local last = (op.next - 2) % #op.calls + 1
  local list = self.outputs[last]
  if #list == 0 then
    return true
  end
  local reason = outputs.unwritten(list)
  if reason and not self.options.outputs then
    reason = reason .. " (the last buffer of args is taken for the output; outputs says otherwise)"
  end
  local verifier = outputs.verifier(self.options.verify, self.fn, self.gpu)
  if not reason and verifier then
    local right, why = verifier(op.args[last], list)
    reason = not right and (why or "the script's verify says no")
  end
  if reason then
    self:warn("E-WRONG", { reason = when .. " the samples: " .. reason })
  end
  return not reason
end

--- One call on poisoned outputs. An argument that was only taken for an output, and is not written
--- by the operation, gets its contents back.
---@param when "before" | "after" the samples
function methods:check(when)
  local list = self.outputs[1]
  if #list == 0 then
    return
  end
  local guessed = not self.options.outputs and list[1]
  local kept <close> = guessed and guessed:clone(self.stream) or nil
  self:poison()
  self:restore()
  operation.run(self.op, 1)
  self.stream:synchronize()
  if not self:verify(when) and guessed and outputs.unwritten(list) then
    guessed:copy_from(kept, self.stream)
    self.stream:synchronize()
    self.outputs = { {} }
  end
end

-- ---- before the samples ----------------------------------------------------------------------

--- Whether nothing may be called before the first sample.
local function untouched(policy)
  return policy.warmup.calls == 0 and policy.isolation == "each"
end

--- Looks at the operation and checks it: before the samples, unless the first of them is to be the
--- first call.
---@param early boolean whether the samples are still to come
function methods:examine(early)
  local policy = self.policy
  if early == untouched(policy) then
    return
  end
  self:look()
  if policy.check ~= "none" then
    self:check(early and "before" or "after")
  end
end

--- Gets everything ready but the warm-up.
function methods:prepare()
  preparation.asynchrony(self)
  self:examine(true)
  preparation.cache(self)
  preparation.nothing(self)
  preparation.count(self)
end

-- ---- samples --------------------------------------------------------------------------------

local IDLE = 10e-3 -- seconds: the gap of duty "burst"

--- Takes one sample, with what belongs before it.
---@param count integer? default: that of the policy
function methods:sample(count)
  local policy, stream = self.policy, self.stream
  if policy.check == "each" then
    self:poison()
  end
  self:restore()
  if self.scratch then
    self.scratch:fill(0, stream)
  end
  stream:synchronize()
  if policy.duty == "burst" then
    self.dev:sleep(IDLE)
  end
  local timed_out = self.sampler.timed_out
  local sample = self.sampler:take(self.op, count or self.count, policy, self.extra)
  if self.sampler.timed_out > timed_out then
    policy.block = false -- or every further sample would wait for its gate
  end
  if policy.check == "each" then
    self:verify("in")
  end
  return sample
end

--- The policy's headline in a sample, for each operation.
function methods:value_of(sample)
  local key = policies.headline(self.policy)
  local value = key == "slope" and sample.wall or sample[key] or sample.wall
  return value / sample.ops
end

--- Samples without noting them until two successive windows of 0.1 s agree: shorter ones where the
--- limit would not hold four.
---@param pause fun() called between samples
function methods:warm_up(pause)
  local warmup, clock = self.policy.warmup, self.dev
  local began, calls = clock:clock(), 0
  local length = math.min(0.1, warmup.limit / 4)
  local before, difference
  repeat
    local window, values = clock:clock(), {}
    repeat
      values[#values + 1] = self:value_of(self:sample())
      calls = calls + 1
      pause()
      local now = clock:clock()
    until now - window >= length or not warmup.settle and calls >= warmup.calls
      and now - began >= warmup.seconds
    local median = stats.summary(values).median
    difference = before and math.abs(median / before - 1) or math.huge
    before = median
    local seconds = clock:clock() - began
    local enough = calls >= warmup.calls and seconds >= warmup.seconds
    local settled = not warmup.settle or difference <= warmup.settle
  until enough and (settled or seconds >= warmup.limit)
  if warmup.settle and difference > warmup.settle then
    self:warn("W-NOTSETTLED", { seconds = units.seconds(clock:clock() - began),
      percent = difference < math.huge and 100 * difference or 100.0 })
  end
  self.sampler:clear()
end

return session
