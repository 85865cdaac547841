--- dev:sweep: an operation at every point of a grid.
local bench = require "tidelock.bench"
local progress = require "tidelock.progress"
local records = require "tidelock.record"
local result = require "tidelock.result"
local units = require "tidelock.units"

local sweep = {}

local function check_axes(axes)
  if type(axes) ~= "table" or #axes == 0 then
    error("bad argument #1 to 'sweep' (a list of axes {name, values} expected)", 0)
  end
  for i, axis in ipairs(axes) do
    if type(axis) ~= "table" or type(axis[1]) ~= "string" or type(axis[2]) ~= "table"
      or #axis[2] == 0 then
      error(("axis %d: {name, {value, ...}} wanted"):format(i), 0)
    end
  end
end

--- All points, the last axis fastest.
---@param axes { [1]: string, [2]: any[] }[]
---@return table<string, any>[]
function sweep.grid(axes)
  local points = { {} }
  for _, axis in ipairs(axes) do
    local longer = {}
    for _, point in ipairs(points) do
      for _, value in ipairs(axis[2]) do
        local at = {}
        for name, coordinate in pairs(point) do
          at[name] = coordinate
        end
        at[axis[1]] = value
        longer[#longer + 1] = at
      end
    end
    points = longer
  end
  return points
end

local function name_of(axes, at)
  local parts = {}
  for i, axis in ipairs(axes) do
    parts[i] = ("%s=%s"):format(axis[1], tostring(at[axis[1]]))
  end
  return table.concat(parts, " ")
end

--- What a point may fail with and the sweep still go on: what the device has not, not mistakes.
local passing = { out_of_memory = true, unsupported = true, limit = true }

local function measure(dev, at, make, options, name, gpu)
  local fn, own = make(at)
  if fn == nil then
    return nil, own == nil and "skipped by the maker" or tostring(own)
  end
  local settings = bench.merged(options, own)
  settings.name = settings.name or name
  return bench.run(dev, fn, settings, gpu)
end

--- Times an operation at every point of the grid. make(at) returns a function and options as for
--- dev:bench, or nil and the reason why there is nothing to time. A point for which memory runs out
--- or that the device can't do is skipped with the device's own reason.
---@param dev tidelock.device
---@param axes { [1]: string, [2]: any[] }[] {{"n", {512, 1024}}, ...}
---@param make fun(at: table<string, any>): function?, (table | string)?
---@param options tidelock.bench_options? for all points
---@param gpu table
---@return tidelock.sweep
function sweep.run(dev, axes, make, options, gpu)
  check_axes(axes)
  if type(make) ~= "function" then
    error(("bad argument #2 to 'sweep' (function expected, got %s)"):format(type(make)), 0)
  end
  options = bench.read(options)
  local show, began = progress.line(), dev:clock()
  local points, grid = {}, sweep.grid(axes)
  for i, at in ipairs(grid) do
    local name = name_of(axes, at)
    local elapsed = dev:clock() - began
    show(("%d of %d: %s%s"):format(i, #grid, name, i > 1
      and (", about %s left"):format(units.seconds(elapsed / (i - 1) * (#grid - i + 1))) or ""))
    local ok, measured, reason = pcall(measure, dev, at, make, options, name, gpu)
    if not ok and not (type(measured) == "table" and passing[measured.code]) then
      show()
      error(measured, 0)
    elseif not ok then
      measured, reason = nil, tostring(measured)
    end
    points[i] = { at = at, result = measured, skipped = reason }
    collectgarbage() -- the buffers of the point before
  end
  show()
  return result.new { schema = 1, kind = "sweep", axes = axes, points = points,
    environment = records.environment(dev, gpu) }
end

return sweep
