--- Every bench in a record, whatever kind the record is, with its point where it is of a sweep.
local runs = {}

--- One bench, or a point that was left out.
---@class tidelock.run
---@field at { [1]: string, [2]: any }[] axis and value, in the order of the axes; empty elsewhere
---@field label string "n=512, kernel=tiled"; empty elsewhere
---@field bench table? a record of kind "bench"
---@field skipped string? why there is none

--- A value of an axis as a script would write it.
local function text_of(value)
  return type(value) == "number" and ("%.14g"):format(value) or tostring(value)
end

local function place_of(axes, at)
  local place, labels = {}, {}
  for i, axis in ipairs(axes) do
    local value = at[axis[1]]
    place[i] = { axis[1], value }
    labels[i] = axis[1] .. "=" .. text_of(value)
  end
  return place, table.concat(labels, ", ")
end

local collect

local function collect_sweep(sweep, list)
  for _, point in ipairs(sweep.points) do
    local at, label = place_of(sweep.axes, point.at)
    if point.result then
      local first = #list + 1
      collect(point.result, list)
      for i = first, #list do
        list[i].at, list[i].label = at, label
      end
    else
      list[#list + 1] = { at = at, label = label, skipped = point.skipped or "no result" }
    end
  end
end

function collect(record, list)
  if record.kind == "bench" then
    list[#list + 1] = { at = {}, label = "", bench = record }
  elseif record.kind == "compare" then
    for _, bench in ipairs(record.results) do
      collect(bench, list)
    end
  elseif record.kind == "sweep" then
    collect_sweep(record, list)
  end
end

--- Lists the benches of a record; none for a calibration.
---@param record table
---@return tidelock.run[]
function runs.of(record)
  local list = {}
  collect(record, list)
  return list
end

runs.text_of = text_of

return runs
