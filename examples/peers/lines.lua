--- Lines of JSON on stdout, and the clock of the programs here.
local gpu = require "tidelock"
local stats = require "tidelock.stats"

local lines = {}

-- The host device's clock: it asks no GPU.
local start = gpu.device("host"):now()

--- Seconds of the monotonic clock since this module was loaded.
function lines.clock()
  return (start:elapsed())
end

local function text(value)
  return '"' .. value:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function write(fields)
  io.stdout:write("{", table.concat(fields, ", "), "}\n")
  io.stdout:flush()
end

--- Says what was measured; its value is the samples' median.
function lines.say(measure, samples, unit, n, dtype)
  local fields = { '"program": "tidelock"', '"measure": ' .. text(measure) }
  fields[#fields + 1] = n and ('"n": %d'):format(n)
  fields[#fields + 1] = dtype and '"dtype": ' .. text(dtype)
  local numbers = {}
  for i, sample in ipairs(samples) do
    numbers[i] = ("%.9g"):format(sample)
  end
  fields[#fields + 1] = ('"value": %.9g'):format(stats.median(samples))
  fields[#fields + 1] = '"unit": ' .. text(unit)
  fields[#fields + 1] = '"samples": [' .. table.concat(numbers, ", ") .. "]"
  write(fields)
end

--- Returns a function that says how long it took since its last call, or since now.
function lines.steps(n)
  local last = lines.clock()
  return function(name)
    lines.say(name, { lines.clock() - last }, "s", n, "float32")
    last = lines.clock()
  end
end

--- Says a word instead of a number: a version, or why there is no answer.
function lines.tell(measure, value)
  write { '"program": "tidelock"', '"measure": ' .. text(measure), '"value": ' .. text(value) }
end

return lines
