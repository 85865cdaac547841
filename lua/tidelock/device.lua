--- The methods of a device that measure: written in Lua, added to the class by tidelock. Their
--- modules are loaded at the first use: a script that measures nothing does not wait for them.
local core = require "tidelock.core"

local raise = error

--- Tells the handler of the state. Lua's own `error` as the handler makes an error of a warning.
local function warn(code, message, details)
  local handler = core.on_warning()
  if handler == raise then
    raise(details.where .. code .. ": " .. message, 0)
  elseif handler then
    handler(code, message, details)
  end
end

--- What pure modules are handed of the runtime.
local gpu = { matmul = core.matmul, device = core.device, version = core.version,
  warn = warn }

--- Runs a module's `run`; an error that is a string is raised with the script's place.
local function placed(module, ...)
  local ok, result = pcall(require("tidelock." .. module).run, ...)
  if ok then
    return result
  end
  local message, where = result, require "tidelock.caller".line()
  if type(message) == "string" and where ~= "" and not message:find("^[^%s]+:%d+: ") then
    message = where .. ": " .. message
  end
  raise(message, 0)
end

---@class tidelock.device
local device = {}

--- Times fn(args..., stream) under a policy: see tidelock.bench_options and tidelock.policy. Prints
--- as a short block. Warnings are in the record, and go to gpu.on_warning's handler.
---@param fn fun(...) called once for each operation, with the collector stopped; what it enqueues
---goes to the stream that is its last argument
---@param options tidelock.bench_options?
---@return tidelock.bench
function device:bench(fn, options)
  return placed("bench", self, fn, options, gpu)
end

--- Compares variants with the first one, in rounds in which they take turns: see tidelock.compare.
--- The ratio of each to the first, its 95 % interval, and SAME, FASTER, SLOWER or UNRESOLVED, with
--- the rounds that it would take; the first against itself shows what the machine makes up.
---@param variants { [1]: string, [2]: function, [3]: tidelock.bench_options? }[]
---@param options tidelock.compare_options?
---@return tidelock.comparison
function device:compare(variants, options)
  return placed("compare", self, variants, options, gpu)
end

--- Times an operation at every point of a grid, with a progress line on a terminal.
---@param axes { [1]: string, [2]: any[] }[] {{"n", {512, 1024}}, ...}
---@param make fun(at: table<string, any>): function?, (table | string)? returns what dev:bench
---takes, or nil and the reason for which the point is skipped
---@param options tidelock.bench_options? for all points
---@return tidelock.sweep
function device:sweep(axes, make, options)
  return placed("sweep", self, axes, make, options, gpu)
end

--- Measures spins of known length under each policy: its bias, scale and floor. A minute at most.
---@param options tidelock.calibrate_options?
---@return tidelock.calibration
function device:calibrate(options)
  return placed("calibrate", self, options, gpu)
end

--- Measures what launching and timing cost on the device, and how deep its queue is. Takes about a
--- second, in which nothing else may use the device.
---@return tidelock.probe
function device:probe()
  return placed("probe", self)
end

return device
