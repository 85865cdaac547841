--- A run against an earlier one. The two were not interleaved: what changed between them (clocks,
--- temperature, neighbours, drivers) is in the ratio, and no interval from within a run covers it.
--- dev:compare is the measurement; this is the guard of a test suite.
---
--- Method: ratio of the headlines' medians, new to old. Its 95 % interval comes from the two
--- intervals of the medians, on the logarithmic scale, by the method of variance estimates recovery
--- (G. Y. Zou, A. Donner, Construction of confidence limits about effect measures: a general
--- approach, Statistics in Medicine 27, 2008): with d = ln(new) - ln(old), the distances from each
--- median to its nearer limits add up as squares. Verdicts as in dev:compare.
local clocks = require "tidelock.report.clocks"
local runs = require "tidelock.report.runs"

local against = {}

-- Between two runs of the same code on one machine 1 to 3 % are usual; the margin of interleaved
-- rounds, 1 %, would cry wolf.
against.MARGIN = 0.05

against.METHOD = "ratio of medians, not interleaved; 95 % interval from both medians' intervals "
  .. "on the logarithmic scale (variance estimates recovery, Zou and Donner 2008)"

-- ---- what may be compared -------------------------------------------------------------------

-- Fields of a policy that say what was measured. k and window follow from the measured time, and
-- warm-up, stop and check do not change what a sample is.
local policy_fields = { "clock", "isolation", "block", "cache", "duty", "center" }

local function policy_name(bench)
  return bench.policy and bench.policy.name or "unknown"
end

--- Why two benches can't be compared, as "what: new against old"; nil where they can.
local function difference(new, old)
  local pairs_of = { { "policy", policy_name(new), policy_name(old) } }
  local function add(what, a, b)
    pairs_of[#pairs_of + 1] = { what, a, b }
  end
  for _, field in ipairs(policy_fields) do
    add("policy." .. field, (new.policy or {})[field], (old.policy or {})[field])
  end
  local a, b = new.environment or {}, old.environment or {}
  add("device", a.backend, b.backend)
  add("device", a.name or a.device, b.name or b.device)
  add("headline", new.headline, old.headline)
  add("flops", new.flops, old.flops)
  add("bytes", new.bytes, old.bytes)
  for _, pair in ipairs(pairs_of) do
    if pair[2] ~= pair[3] then
      return ("%s: %s against %s"):format(pair[1], tostring(pair[2]), tostring(pair[3]))
    end
  end
end

--- Why a bench's number is no measurement; nil where it is one.
local function fault_of(bench, which)
  for _, warning in ipairs(bench.warnings or {}) do
    if warning.code:sub(1, 2) == "E-" then
      return ("%s in the %s run"):format(warning.code, which)
    end
  end
  local median = bench[bench.headline].median
  if not median or median ~= median or median <= 0 or median == math.huge then
    return ("the %s run has no %s"):format(which, clocks.names[bench.headline])
  end
end

-- ---- the ratio ------------------------------------------------------------------------------

--- The interval of new/old from both medians' intervals; nil where one is missing, or reaches 0.
local function interval_of(new, old)
  if not new.ci or not old.ci or new.ci.low <= 0 or old.ci.low <= 0 then
    return nil
  end
  local function apart(x, y)
    return math.log(x / y)
  end
  local d = apart(new.median, old.median)
  local down = math.sqrt(apart(new.median, new.ci.low) ^ 2 + apart(old.ci.high, old.median) ^ 2)
  local up = math.sqrt(apart(new.ci.high, new.median) ^ 2 + apart(old.median, old.ci.low) ^ 2)
  return { low = math.exp(d - down), high = math.exp(d + up) }
end

local function verdict_of(ratio, ci, margin)
  if ci and ci.low > 1 - margin and ci.high < 1 + margin then
    return "SAME"
  elseif ci and ci.low > 1 and ratio > 1 + margin then
    return "SLOWER"
  elseif ci and ci.high < 1 and ratio < 1 - margin then
    return "FASTER"
  end
  return "UNRESOLVED"
end

local function ratio_of(new, old, margin)
  local a, b = new[new.headline], old[old.headline]
  local ratio, ci = a.median / b.median, interval_of(a, b)
  return { clock = clocks.names[new.headline], new = a.median, old = b.median, ratio = ratio,
    ci = ci, verdict = verdict_of(ratio, ci, margin) }
end

-- ---- pairing two runs -----------------------------------------------------------------------

local function name_of(run)
  return run.bench.name .. (run.label ~= "" and ", " .. run.label or "")
end

--- The benches by name, then by policy. A file may hold several runs: the last one counts.
local function index(records)
  local names, by_name = {}, {}
  for _, record in ipairs(records.kind and { records } or records) do
    for _, run in ipairs(runs.of(record)) do
      if run.bench then
        local name, policy = name_of(run), policy_name(run.bench)
        if not by_name[name] then
          by_name[name] = { policies = {}, benches = {} }
          names[#names + 1] = name
        end
        local entry = by_name[name]
        if not entry.benches[policy] then
          table.insert(entry.policies, policy)
        end
        entry.benches[policy] = run.bench
      end
    end
  end
  return names, by_name
end

--- Compares one bench with what the other run has under its name.
local function pair(name, bench, others, margin)
  local result = { name = name, policy = policy_name(bench), verdict = "NOT COMPARED" }
  local other = others
    and (others.benches[result.policy] or others.benches[others.policies[1]])
  result.reason = not other and "not in the old run" or difference(bench, other)
    or fault_of(bench, "new") or fault_of(other, "old")
  if not result.reason then
    for key, value in pairs(ratio_of(bench, other, margin)) do
      result[key] = value
    end
  end
  return result, other
end

local function add_missing(ratios, new, old_names, old)
  for _, name in ipairs(old_names) do
    for _, policy in ipairs(old[name].policies) do
      if not new[name] or not new[name].benches[policy] then
        ratios[#ratios + 1] = { name = name, policy = policy, verdict = "NOT COMPARED",
          reason = "not in the new run" }
      end
    end
  end
end

local environment_fields = { "driver", "tidelock", "lua", "device" }

--- What differs in the environment though the numbers may be compared: "driver: 580 against 575".
local function add_changes(changed, seen, new, old)
  local a, b = new.environment or {}, old.environment or {}
  for _, field in ipairs(environment_fields) do
    local change = ("%s: %s against %s"):format(field, tostring(a[field] or "unknown"),
      tostring(b[field] or "unknown"))
    if a[field] ~= b[field] and not seen[change] then
      seen[change] = true
      changed[#changed + 1] = change
    end
  end
end

--- 1: something is slower. 2: something could not be compared, or nothing was there to compare.
local function status_of(ratios, strict)
  local counts = { SAME = 0, FASTER = 0, SLOWER = 0, UNRESOLVED = 0, ["NOT COMPARED"] = 0 }
  for _, ratio in ipairs(ratios) do
    counts[ratio.verdict] = counts[ratio.verdict] + 1
  end
  local status = counts.SLOWER > 0 and 1
    or (counts["NOT COMPARED"] > 0 or #ratios == 0 or strict and counts.UNRESOLVED > 0) and 2 or 0
  return status, ("%d same, %d faster, %d slower, %d unresolved, %d not compared"):format(
    counts.SAME, counts.FASTER, counts.SLOWER, counts.UNRESOLVED, counts["NOT COMPARED"])
end

--- Compares each bench of a run with that of an earlier run that has its name, point and policy.
---@param new table a record, or a list of records
---@param old table
---@param options { margin: number?, strict: boolean? }? margin: see MARGIN; strict: what is
---unresolved counts as not compared
---@return table fields of a record of kind "against"
function against.fields(new, old, options)
  options = options or {}
  local margin = options.margin or against.MARGIN
  local new_names, news = index(new)
  local old_names, olds = index(old)
  local ratios, changed, seen = {}, {}, {}
  for _, name in ipairs(new_names) do
    for _, policy in ipairs(news[name].policies) do
      local ratio, other = pair(name, news[name].benches[policy], olds[name], margin)
      ratios[#ratios + 1] = ratio
      if ratio.ratio then
        add_changes(changed, seen, news[name].benches[policy], other)
      end
    end
  end
  add_missing(ratios, news, old_names, olds)
  local status, summary = status_of(ratios, options.strict)
  return { schema = 1, kind = "against", interleaved = false, method = against.METHOD,
    margin = margin, ratios = ratios, changed = changed, status = status, summary = summary,
    warnings = {} }
end

return against
