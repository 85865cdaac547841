--- What a session does before its samples: asks whether launches are asynchronous, measures
-- nothing, sees to the cache, and chooses how many operations a sample has.
local operation = require "tidelock.operation"
local outputs = require "tidelock.outputs"
local stats = require "tidelock.stats"
local units = require "tidelock.units"

local preparation = {}

local LONG_BATCH, SHORT_BATCH = 10e-3, 2e-3 -- seconds: what a batch is made for; what is too short

local function prepare_flush(self, l2)
  if not l2 then
    self:warn("I-CACHE", { what = "nothing was flushed: the device does not tell its cache size" })
    return
  end
  self.scratch = self.dev:empty((2 * l2 + 3) // 4)
end

local function prepare_rotation(self, l2)
  local op = self.op
  local each = operation.footprint(op.args[1])
  if each == 0 or not l2 then
    self:warn("I-CACHE", { what = each == 0 and "nothing was rotated: no buffer is declared in args"
      or "nothing was rotated: the device does not tell its cache size" })
    return
  end
  local bytes = operation.rotate(op, self.fn, self.stream, 3 * l2, self.dev:memory().free // 2)
  for i = 2, #op.args do
    self.outputs[i] = outputs.in_copy(self.outputs[1], op.args[1], op.args[i])
  end
  if bytes < 2 * l2 then
    self:warn("W-WARMCACHE", { what = ("the copies together have %d bytes, less than twice the "
      .. "cache's %d"):format(bytes, l2) })
  end
end

local choose = {}

function choose.each()
  return 1
end

--- Half the queue at most: an operation behind a gate that waits for a slot waits for the gate.
function choose.batch(self, policy)
  local most = math.max(1, self.depth // 2 - 2) // self.op.launches
  local k = policy.k or math.ceil(LONG_BATCH / self.estimate)
  local count = math.max(1, policy.block and math.min(k, most) or k)
  if count < k and count * self.estimate < SHORT_BATCH then
    self:warn("I-CAPPED", { k = count, seconds = units.seconds(count * self.estimate) })
  end
  return count
end

--- Four times what a launch and a wait take, so that the device never runs dry.
function choose.window(self, policy)
  local most = math.max(1, self.depth // (4 * self.op.launches))
  local latency = self.null and self.null.wall or 0
  self.extra = math.min(policy.window or math.max(4, math.ceil(4 * latency / self.estimate) + 2),
    most)
  return policy.k or math.max(4 * self.extra, math.ceil(LONG_BATCH / self.estimate))
end

function choose.all(self, policy)
  local count = policy.k or 2000
  self.extra = {}
  for i = 1, count do
    self.extra[i] = 0.0
  end
  return count
end

--- What an operation that does nothing takes under this policy: the cost of measuring.
function preparation.nothing(self)
  local nothing = operation.new(function() end, self.op.args[1], self.stream)
  local sampler, policy = self.sampler, self.policy
  local each = { isolation = "each", block = policy.block }
  for _ = 1, 20 do
    sampler:take(nothing, 1, each)
  end
  self.null = {}
  for _, name in ipairs { "device", "wall", "enqueue" } do
    local values = sampler:per_operation(name)
    self.null[name] = #values > 0 and stats.summary(values).median or nil
  end
  sampler:clear()
  local began = self.dev:clock()
  operation.run(nothing, 200)
  self.call_cost = (self.dev:clock() - began) / 200
end

--- Whether a launch returns before its work is done; where it does not, no gate is closed. Three
--- tries: a thread that was held up elsewhere also comes back late.
function preparation.asynchrony(self)
  local seconds
  for _ = 1, 3 do
    local began = self.dev:clock()
    self.stream:spin(5e-3)
    local inflight = self.stream:inflight()
    seconds = self.dev:clock() - began
    self.stream:synchronize()
    if inflight > 0 then
      return
    end
  end
  self:warn("W-SYNCLAUNCH", { what = ("a launch of 5 ms of work returned after %s"):format(
    units.seconds(seconds)), seconds = seconds })
  self.policy.block = false
end

--- Sees to the cache as the policy wants it.
---@param self tidelock.session
function preparation.cache(self)
  if self.policy.cache == "flush" then
    prepare_flush(self, self.properties.l2_cache_size)
  elseif self.policy.cache == "rotate" then
    prepare_rotation(self, self.properties.l2_cache_size)
  end
end

--- Chooses how many operations a sample has, by what one takes and the queue holds.
---@param self tidelock.session
function preparation.count(self)
  self.count = choose[self.policy.isolation](self, self.policy)
end

return preparation
