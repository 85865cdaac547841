--- Plots of positive values against their number, on a logarithmic axis: as
-- text for the terminal, and as SVG where gnuplot is installed.
local stats = require "tidelock.stats"

local plot = {}

local scales = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" } }

--- Seconds with a unit and three digits: 0.00205 gives "2.05 ms".
---@param seconds number
---@return string
function plot.seconds(seconds)
  for _, scale in ipairs(scales) do
    if math.abs(seconds) >= 0.9995 * scale[1] then -- what three digits round up to the unit
      return string.format("%.3g %s", seconds / scale[1], scale[2])
    end
  end
  return string.format("%.3g ns", seconds / 1e-9)
end

--- Medians of `count` equal stretches of the values.
local function condense(values, count)
  local columns = {}
  for i = 1, count do
    local first = (i - 1) * #values // count + 1
    columns[i] = stats.median(values, first, math.max(first, i * #values // count))
  end
  return columns
end

local function range_of(values)
  local low, high = math.huge, 0
  for _, value in ipairs(values) do
    low, high = math.min(low, value), math.max(high, value)
  end
  return math.log(math.max(low, 1e-9)), math.log(math.max(high, 1e-9))
end

--- Draws as many columns as fit, each the median of its stretch of values.
---@param values number[] seconds, one at least
---@param options { title: string, width: integer?, height: integer? }
---@return string
function plot.text(values, options)
  local width = math.min(options.width or 64, #values)
  local columns = condense(values, width)
  local low, high = range_of(columns)
  local height = high > low and (options.height or 8) or 1
  local step = math.max(high - low, 1e-9) / math.max(height - 1, 1)
  local lines = { options.title }
  for row = height - 1, 0, -1 do
    local cells = {}
    for i, value in ipairs(columns) do
      local level = math.floor((math.log(math.max(value, 1e-9)) - low) / step + 0.5)
      cells[i] = level == row and "*" or " "
    end
    local label = plot.seconds(math.exp(low + row * step))
    lines[#lines + 1] = (string.format("%10s |%s", label, table.concat(cells)):gsub("%s+$", ""))
  end
  lines[#lines + 1] = string.rep(" ", 11) .. "+" .. string.rep("-", width)
  local last = #values > 1 and tostring(#values) or ""
  lines[#lines + 1] = string.rep(" ", 12) .. "1"
    .. string.rep(" ", math.max(width - 1 - #last, 1)) .. last
  return (table.concat(lines, "\n"):gsub("%s+$", ""))
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Writes an SVG with gnuplot.
---@param path string
---@param values number[] seconds
---@param options { title: string, xlabel: string?, ylabel: string? } plain words
---@return boolean written, string? reason
function plot.svg(path, values, options)
  if not os.execute("command -v gnuplot >/dev/null 2>&1") then
    return false, "gnuplot is not installed"
  end
  local file, reason = io.open(path, "w")
  if not file then
    return false, reason
  end
  file:close()
  -- The shell opens the file: to gnuplot a path can also be a command.
  local gnuplot = io.popen("gnuplot 2>/dev/null >" .. quote(path), "w")
  gnuplot:write(string.format(
    "set terminal svg size 800,400\nset logscale y\nset grid\nset key off\n"
      .. "set title '%s'\nset xlabel '%s'\nset ylabel '%s'\n"
      .. "plot '-' using 1:2 with points pointtype 7 pointsize 0.3\n",
    options.title, options.xlabel or "launch", options.ylabel or "seconds"))
  for i, value in ipairs(values) do
    gnuplot:write(string.format("%d %.9g\n", i, math.max(value, 1e-9)))
  end
  gnuplot:write("e\n")
  if not gnuplot:close() then
    return false, "gnuplot failed"
  end
  return true
end

return plot
