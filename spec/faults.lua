--- Runs the device specs with failures injected: every back-end call and every
-- allocation fails at its first use, at its last, and at up to `spread` uses in
-- between, each in another spec, over the whole suite. A spec may then pass or raise; what is
-- asserted is that nothing is left alive and that the spec passes afterwards.
--
--   lua5.4 spec/faults.lua          TIDELOCK_FAULT_SPREAD=50 for the long run
local spread = tonumber(os.getenv("TIDELOCK_FAULT_SPREAD") or 3)
local luassert = require "luassert"

-- ---- the specs, collected with a small stand-in for busted ------------------

local specs, hooks, path = {}, {}, {}

local function describe(title, body)
  path[#path + 1] = title
  hooks[#hooks + 1] = { before = {}, after = {} }
  body()
  hooks[#hooks] = nil
  path[#path] = nil
end

local function it(title, body)
  specs[#specs + 1] = {
    name = table.concat(path, " ") .. " " .. title,
    body = body,
    hooks = table.move(hooks, 1, #hooks, 1, {}),
  }
end

local skipped = {}

local api = {
  describe = describe,
  it = it,
  before_each = function(f) table.insert(hooks[#hooks].before, f) end,
  after_each = function(f) table.insert(hooks[#hooks].after, f) end,
  pending = function() error(skipped) end,
  assert = luassert,
}
package.loaded.busted = api
for name, value in pairs(api) do
  _G[name] = value
end

local each_device = require "spec.each_device"
local gpu = require "tidelock"
each_device.faults = gpu.faults()

local files = io.popen("ls spec/device/*_spec.lua")
for file in files:lines() do
  dofile(file)
end
files:close()

-- ---- running one ------------------------------------------------------------

--- Runs a spec with its hooks; true, or false and why.
local function run(spec)
  local why
  local function attempt(f)
    local ok, message = pcall(f)
    if not ok and message ~= skipped then
      why = why or message
    end
  end
  for _, level in ipairs(spec.hooks) do
    for _, f in ipairs(level.before) do
      attempt(f)
    end
  end
  attempt(spec.body)
  for i = #spec.hooks, 1, -1 do
    for _, f in ipairs(spec.hooks[i].after) do
      attempt(f)
    end
  end
  collectgarbage()
  gpu.on_warning(nil)
  return why == nil, why
end

--- What is alive on a device that a failed spec has left open.
local function leftovers()
  for _, id in ipairs(each_device.ids()) do
    each_device.faults:reset()
    local ok, dev = pcall(gpu.device, id)
    if not ok then
      return tostring(dev)
    end
    local objects, live, pending = each_device.close(dev)
    if objects + live + pending > 0 then
      return ("%s: %d objects, %d bytes live, %d pending"):format(id, objects, live, pending)
    end
  end
end

-- ---- counting, then failing -------------------------------------------------

local number = 0

local function report(ok, title, why)
  number = number + 1
  print(("%sok %d - %s"):format(ok and "" or "not ", number, title))
  if not ok then
    print("# " .. tostring(why):gsub("\n", "\n# "))
  end
end

-- For each site: the specs that use it, in order, and how often.
local uses, total = {}, {}
for index, spec in ipairs(specs) do
  each_device.faults:reset()
  run(spec)
  for site, count in pairs(each_device.faults:sites()) do
    uses[site] = uses[site] or {}
    table.insert(uses[site], { spec = specs[index], count = count })
    total[site] = (total[site] or 0) + count
  end
end

--- The uses of a site to fail: the first of the first spec, the last of the last one, and one
--- in the middle of each of up to `spread` others, evenly chosen.
local function chosen(site)
  local users = uses[site]
  local list = { { spec = users[1].spec, use = 1 } }
  local between = math.min(spread, #users)
  for i = 1, between do
    local user = users[1 + (#users - 1) * i // between]
    list[#list + 1] = { spec = user.spec, use = 1 + user.count // 2 }
  end
  local last = users[#users]
  list[#list + 1] = { spec = last.spec, use = last.count }
  return list
end

local codes = { ["execute"] = "device_lost" }

--- Fails one use of a site; returns what went wrong, if anything.
local function fail_use(site, spec, use)
  local code = codes[site] or (site:match("^allocate") and "out_of_memory") or "driver"
  each_device.faults:reset()
  each_device.faults:arm(site, use, code)
  run(spec)
  local left = leftovers()
  if left then
    return ("%s, use %d in '%s': left behind: %s"):format(site, use, spec.name, left)
  end
  each_device.faults:reset()
  local ok, why = run(spec)
  if not ok then
    return ("%s, use %d in '%s': the correct run afterwards: %s"):format(site, use, spec.name, why)
  end
end

local sites, runs = {}, 0
for site in pairs(uses) do
  sites[#sites + 1] = site
end
table.sort(sites)
for _, site in ipairs(sites) do
  local wrong
  local list = chosen(site)
  for _, one in ipairs(list) do
    runs = runs + 1
    wrong = wrong or fail_use(site, one.spec, one.use)
  end
  report(not wrong, ("%s: %d of %d uses failed in turn"):format(site, #list, total[site]), wrong)
end
print(("# %d sites, %d failures injected, %d specs"):format(#sites, runs, #specs))
print("1.." .. number)
