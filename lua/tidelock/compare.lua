--- dev:compare: variants in turns. What changes in the machine meanwhile changes for all of them;
-- and the first one against itself says what difference the machine makes up.
local bench = require "tidelock.bench"
local caller = require "tidelock.caller"
local isolated = require "tidelock.isolated"
local policies = require "tidelock.policy"
local records = require "tidelock.record"
local result = require "tidelock.result"
local sampling = require "tidelock.sampling"
local session = require "tidelock.session"
local stats = require "tidelock.stats"
local units = require "tidelock.units"
local verdict = require "tidelock.verdict"
local warnings = require "tidelock.warnings"

local compare = {}

local ROUND_SAMPLES, ROUND_SECONDS = 10, 20e-3

---@class tidelock.compare_options: tidelock.bench_options
---@field rounds integer? at least 10; default 20
---@field margin number? the difference that matters; default 0.01

local more = { rounds = true, margin = true }

local function read(options)
  options = bench.read(options, more)
  local rounds, margin = options.rounds or 20, options.margin or 0.01
  if not (math.tointeger(rounds) and rounds >= 10) then
    error(("option 'rounds': a whole number of at least 10 wanted, got %s"):format(rounds), 0)
  elseif not (type(margin) == "number" and margin > 0 and margin < 1) then
    error(("option 'margin': a number between 0 and 1 wanted, got %s"):format(margin), 0)
  end
  return options, math.tointeger(rounds), margin
end

local function check_variants(variants)
  if type(variants) ~= "table" or #variants < 2 then
    error("bad argument #1 to 'compare' (a list of two variants {name, function} or more expected)",
      0)
  end
  for i, variant in ipairs(variants) do
    if type(variant) ~= "table" or type(variant[1]) ~= "string"
      or type(variant[2]) ~= "function" then
      error(("variant %d: {name, function [, options]} wanted"):format(i), 0)
    end
    bench.read(variant[3])
  end
end

--- Who comes when in a round: each round is turned by one every other time, and runs backwards in
--- between, so that nobody is always early or always behind the same one (ABBA BAAB for two).
---@param count integer
---@param round integer from 1
---@return integer[]
function compare.order(count, round)
  local order = {}
  for i = 1, count do
    order[i] = (i - 1 + (round - 1) // 2) % count + 1
  end
  if round % 2 == 0 then
    for i = 1, count // 2 do
      order[i], order[count + 1 - i] = order[count + 1 - i], order[i]
    end
  end
  return order
end

--- One turn of a variant: the median of its samples.
local function turn(entry, dev)
  local run = entry.run
  local own = run.sampler
  run.sampler = entry.sampler or own
  local values, ends = {}, dev:clock() + ROUND_SECONDS
  repeat
    values[#values + 1] = run:value_of(run:sample())
    isolated.pause()
  until #values >= ROUND_SAMPLES or #values >= 3 and dev:clock() >= ends
  run.sampler = own
  return stats.summary(values).median
end

--- Medians of each entry in each round.
local function take_rounds(entries, rounds, dev)
  local medians = {}
  for round = 1, rounds do
    local row = {}
    for _, i in ipairs(compare.order(#entries, round)) do
      row[i] = turn(entries[i], dev)
    end
    medians[round] = row
  end
  return medians
end

local function log_ratios(medians, i)
  local logs = {}
  for round, row in ipairs(medians) do
    logs[round] = math.log(row[i] / row[1])
  end
  return logs
end

local function ready(run, where)
  run.where = where
  run:prepare()
  if run.policy.warmup.calls > 0 then
    run:warm_up(isolated.pause)
  end
  if run.policy.check == "before_after" then
    run:poison()
  end
end

--- What every variant went through, and the verdicts. A difference that the first variant has with
--- itself is none.
local function judge(record, medians, count, margin)
  local floor = verdict.estimate(log_ratios(medians, count + 1))
  record.floor = { ratio = floor.ratio, ci = floor.ci }
  local noise = verdict.noise(floor)
  for i = 2, count do
    record.ratios[i - 1] = verdict.judge(log_ratios(medians, i), floor, margin)
  end
  if noise > margin then
    record.warnings[#record.warnings + 1] = warnings.make("W-NOISYCOMPARE",
      { floor = units.percent(math.exp(noise) - 1), margin = units.percent(margin) })
  end
end

local function check_policy(policy)
  if policy.clock == "slope" or policy.clock == "none" or policy.isolation == "all"
    or policy.isolation == "process" then
    error(("policy '%s' can't be compared in turns; use cold, batch, events or synchronized")
      :format(policy.name), 0)
  end
end

--- Everything on the device.
local function measure(dev, variants, options, rounds, margin, gpu, where)
  local entries, record = {}, { schema = 1, kind = "compare", names = {}, rounds = rounds,
    where = where, results = {}, ratios = {}, warnings = {} }
  local closing <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
    for _, entry in ipairs(entries) do
      (entry.sampler or entry.run):close()
    end
  end })
  dev:synchronize()
  for i, variant in ipairs(variants) do
    local own = bench.merged(options, variant[3])
    own.rounds, own.margin = nil, nil
    local policy = policies.read(own.policy)
    check_policy(policy)
    entries[i] = { run = session.open(dev, variant[2], own, policy, gpu) }
    record.names[i] = variant[1]
    ready(entries[i].run, where)
  end
  local first = entries[1].run
  entries[#entries + 1] = { run = first, sampler = sampling.new(dev, first.stream) }
  local medians = take_rounds(entries, rounds, dev)
  for i, name in ipairs(record.names) do
    local run = entries[i].run
    if run.policy.check == "before_after" then
      run:verify("after")
    end
    record.results[i] = records.of(run, name, where)
  end
  judge(record, medians, #variants, margin)
  return record
end

--- Compares variants with the first one. Each is {name, fn [, options]}: fn and options as for
--- dev:bench, options over those given for all.
---@param dev tidelock.device
---@param variants { [1]: string, [2]: function, [3]: tidelock.bench_options? }[]
---@param options tidelock.compare_options?
---@param gpu table
---@return tidelock.comparison
function compare.run(dev, variants, options, gpu)
  check_variants(variants)
  local rounds, margin
  options, rounds, margin = read(options)
  local where = caller.line()
  local record = result.new(isolated.run(measure, dev, variants, options, rounds, margin, gpu,
    where))
  for _, part in ipairs(record.results) do
    records.tell(gpu, part)
  end
  records.tell(gpu, record)
  return record
end

return compare
