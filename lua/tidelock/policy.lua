--- Timing policies: which clock is stopped where, and in what state the device is then. A policy is
-- a plain table of nine fields; a preset is one with a name. Any field of a preset may be replaced:
-- `{ "cold", cache = "warm" }`.
--
-- | field | values | meaning |
-- |---|---|---|
-- | clock | enqueue, wall, events, graph, slope, none | which clock is the headline |
-- | isolation | each, batch, window, all, process | wait after each operation, after each batch,
-- |   with so many in flight, once at the end; or a process for each |
-- | k | operations of a sample; not for `each` | default: as many as suit |
-- | window | operations in flight at most | default: as many as suit |
-- | block | true, false | whether a gate holds the device back until all of a sample is queued |
-- | cache | warm, flush, rotate | what is done about the L2 cache before each sample |
-- | duty | burst, sustained | idle for 10 ms between samples, or back to back |
-- | warmup | { calls, seconds, settle, limit } | calls and seconds at least; then until two
-- |   windows of 0.1 s agree within `settle`, for `limit` seconds at most |
-- | stop | { rel_ci, min_samples, max_samples, min_time, max_time } | when it is enough |
-- | center | median, mean, min | which estimate of a series stands for it |
-- | check | none, before, before_after, each | when the declared outputs are checked |
local policy = {}

---@class tidelock.policy
---@field name string
---@field clock "enqueue"|"wall"|"events"|"graph"|"slope"|"none"
---@field isolation "each"|"batch"|"window"|"all"|"process"
---@field k integer?
---@field window integer?
---@field block boolean
---@field cache "warm"|"flush"|"rotate"
---@field duty "burst"|"sustained"
---@field warmup { calls: integer, seconds: number, settle: number|false, limit: number }
---@field stop { rel_ci: number, min_samples: integer, max_samples: integer, min_time: number,
--- max_time: number }
---@field center "median"|"mean"|"min"
---@field check "none"|"before"|"before_after"|"each"

-- GEMM clocks oscillate for about 3 s: a warm-up counted in milliseconds or calls ends on the ramp.
local WARMUP = { calls = 3, seconds = 0.5, settle = 0.005, limit = 3 }
local NONE = { calls = 0, seconds = 0, settle = false, limit = 0 }
-- 20 samples leave room beside the 6 from which order statistics bracket a median at all.
local STOP = { rel_ci = 0.005, min_samples = 20, max_samples = 10000, min_time = 0.5,
  max_time = 15 }
local ONCE = { rel_ci = 0, min_samples = 1, max_samples = 1, min_time = 0, max_time = 60 }

local defaults = { block = false, cache = "warm", duty = "sustained", warmup = WARMUP, stop = STOP,
  center = "median", check = "before_after" }

--- The presets in the order in which tables show them.
policy.presets = {
  { name = "enqueue", clock = "enqueue", isolation = "each" },
  { name = "first_call", clock = "wall", isolation = "process", warmup = NONE,
    stop = { rel_ci = 0, min_samples = 10, max_samples = 10, min_time = 0, max_time = 600 } },
  { name = "synchronized", clock = "wall", isolation = "each" },
  { name = "events", clock = "events", isolation = "each" },
  { name = "cold", clock = "events", isolation = "each", block = true, cache = "flush" },
  { name = "batch", clock = "events", isolation = "batch", block = true, cache = "rotate" },
  { name = "graph", clock = "graph", isolation = "batch", cache = "rotate" },
  { name = "window", clock = "wall", isolation = "window" },
  { name = "slope", clock = "slope", isolation = "batch",
    stop = { rel_ci = 0.005, min_samples = 10, max_samples = 100, min_time = 0, max_time = 15 } },
  { name = "profile", clock = "none", isolation = "each", warmup = NONE, stop = ONCE,
    check = "none" },
  { name = "unsynced", clock = "wall", isolation = "all", warmup = NONE, stop = ONCE },
}

local choices = {
  clock = { "enqueue", "wall", "events", "graph", "slope", "none" },
  isolation = { "each", "batch", "window", "all", "process" },
  cache = { "warm", "flush", "rotate" },
  duty = { "burst", "sustained" },
  center = { "median", "mean", "min" },
  check = { "none", "before", "before_after", "each" },
}

local tables = { warmup = WARMUP, stop = STOP }

-- What goes together: a gate holds the host's clock too, and one that waits is held by it.
local clocks_of = {
  each = { enqueue = true, wall = true, events = true, none = true },
  batch = { wall = true, events = true, graph = true, slope = true },
  window = { wall = true, events = true },
  all = { wall = true, events = true, enqueue = true },
  process = { wall = true },
}

local function refuse(...)
  error(string.format(...), 0)
end

local function names()
  local list = {}
  for i, preset in ipairs(policy.presets) do
    list[i] = preset.name
  end
  return table.concat(list, ", ")
end

local function preset_of(name)
  for _, preset in ipairs(policy.presets) do
    if preset.name == name then
      return preset
    end
  end
  refuse("option 'policy': unknown policy '%s' (there are: %s)", tostring(name), names())
end

local function copy(t)
  local new = {}
  for key, value in pairs(t) do
    new[key] = value
  end
  return new
end

--- A value as an error shows it.
local function shown(value)
  return type(value) == "string" and '"' .. value .. '"' or tostring(value)
end

local function check_choice(field, value)
  for _, choice in ipairs(choices[field]) do
    if value == choice then
      return
    end
  end
  refuse("policy field '%s': one of %s wanted, got %s", field,
    table.concat(choices[field], ", "), shown(value))
end

local whole = { calls = true, min_samples = true, max_samples = true }

--- Replaces fields of warmup or stop by those given.
local function merge(field, given, into)
  if type(given) ~= "table" then
    refuse("policy field '%s': a table wanted, got %s", field, shown(given))
  end
  local merged = copy(into)
  for key, value in pairs(given) do
    local name = field .. "." .. tostring(key)
    if tables[field][key] == nil then
      refuse("unknown policy field '%s'", name)
    elseif not (type(value) == "number" and value >= 0) and not (key == "settle" and not value) then
      refuse("policy field '%s': a number of at least 0 wanted, got %s", name, shown(value))
    elseif whole[key] and not math.tointeger(value) then
      refuse("policy field '%s': a whole number wanted, got %s", name, shown(value))
    end
    merged[key] = whole[key] and math.tointeger(value) or value
  end
  return merged
end

local function check_field(field, value, into)
  if choices[field] then
    check_choice(field, value)
  elseif tables[field] then
    return merge(field, value, into[field])
  elseif field == "block" then
    if type(value) ~= "boolean" then
      refuse("policy field 'block': true or false wanted, got %s", shown(value))
    end
  elseif field == "k" or field == "window" then
    if not (math.tointeger(value) and value >= 1) then
      refuse("policy field '%s': a whole number of at least 1 wanted, got %s", field, shown(value))
    end
    return math.tointeger(value)
  else
    refuse("unknown policy field '%s' (there are: block, cache, center, check, clock, duty, "
      .. "isolation, k, stop, warmup, window)", tostring(field))
  end
  return value
end

--- Refuses what no sampling can do.
local function check_together(p)
  if not clocks_of[p.isolation][p.clock] then
    refuse("policy '%s': clock \"%s\" does not go with isolation \"%s\"", p.name, p.clock,
      p.isolation)
  elseif p.block and p.clock ~= "events" then
    refuse("policy '%s': a gate (block=true) goes with clock \"events\" only", p.name)
  elseif p.block and p.isolation ~= "each" and p.isolation ~= "batch" then
    refuse("policy '%s': behind a gate (block=true) an operation can't wait for an earlier one",
      p.name)
  elseif p.k and (p.isolation == "each" or p.isolation == "process" or p.clock == "slope") then
    refuse("policy '%s': k goes with isolation \"batch\", \"window\" or \"all\"", p.name)
  elseif p.window and p.isolation ~= "window" then
    refuse("policy '%s': window goes with isolation \"window\"", p.name)
  elseif p.stop.max_samples < math.max(p.stop.min_samples, 1) then
    refuse("policy '%s': stop.max_samples %d is less than stop.min_samples %d", p.name,
      p.stop.max_samples, p.stop.min_samples)
  end
end

--- Makes a whole policy of a preset's name, or of a table: the name of a preset at index 1 and
--- fields to replace. Raises a string that names the field for what is no policy.
---@param given string | table | nil default "cold"
---@return tidelock.policy
function policy.read(given)
  local base, fields = given or "cold", {}
  if type(given) == "table" then
    base, fields = rawget(given, 1) or given.name or "cold", given
  elseif given ~= nil and type(given) ~= "string" then
    refuse("option 'policy': a name or a table wanted, got %s", shown(given))
  end
  local p = copy(defaults)
  for field, value in pairs(preset_of(base)) do
    p[field] = value
  end
  for field, value in pairs(fields) do
    if field ~= 1 and field ~= "name" then
      p[field] = check_field(field, value, p)
    end
  end
  for field in pairs(tables) do
    p[field] = copy(p[field])
  end
  check_together(p)
  return p
end

--- Which block of statistics a policy's headline is in.
---@param p tidelock.policy
---@return "device"|"enqueue"|"wall"|"slope"
function policy.headline(p)
  local headlines = { events = "device", graph = "device", none = "wall" }
  return headlines[p.clock] or p.clock
end

return policy
