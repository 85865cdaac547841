--- Plots: of positive values against their number as text for the terminal, on a logarithmic
--- axis; of any figure as SVG, where gnuplot is installed.
local axis = require "tidelock.report.axis"
local json = require "tidelock.json"
local stats = require "tidelock.stats"
local units = require "tidelock.units"

local plot = {}

plot.seconds = units.seconds

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

-- ---- figures by gnuplot ---------------------------------------------------------------------

--- A figure: what gnuplot draws. Coordinates are numbers in the axes' own units.
---@class tidelock.figure
---@field title string
---@field xlabel string
---@field ylabel string
---@field x table an axis: see tidelock.report.axis
---@field y table
---@field series { title: string?, style: string, points: number[][] }[] style: a name in `styles`
---@field lines { x: number?, y: number?, label: string? }[]? across the figure; label: with x
---@field bands { x: number[]?, y: number[]? }[]? shaded from low to high

--- How gnuplot draws a series: the columns of its points, and the rest of the plot command.
local styles = {
  dots = { "1:2", "with points pointtype 7 pointsize 0.3" },
  points = { "1:2", "with linespoints pointtype 7 pointsize 0.5" },
  line = { "1:2", "with lines dashtype 2 linecolor rgb '#808080'" },
  errors = { "1:2:3:4", "with yerrorlines pointtype 7 pointsize 0.5" },
  ranges = { "1:2:3:4", "with yerrorbars pointtype 7 pointsize 0.7" },
  bars = { "1:2:3:4:5:6", "with boxxyerror fillstyle solid 0.5 border" },
  boxes = { "1:2:3:4:5", "with candlesticks whiskerbars 0.5 fillstyle solid 0.3 border" },
  medians = { "1:2:2:2:2", "with candlesticks linewidth 2 linecolor rgb '#000000'" },
}

--- In single quotes gnuplot takes everything as it is, but for the quote and the end of the line.
local function gnuplot_string(text)
  return "'" .. text:gsub("%c", " "):gsub("'", "''") .. "'"
end

local function number(value)
  return json.number(value + 0.0) -- a float: gnuplot divides integers as C does
end

local function add_axis(lines, name, ticked)
  if ticked.log then
    lines[#lines + 1] = "set logscale " .. name
  end
  lines[#lines + 1] = ("set %srange [%s:%s]"):format(name, number(ticked.low), number(ticked.high))
  local ticks = {}
  for i, value in ipairs(ticked.ticks) do
    ticks[i] = gnuplot_string(ticked.labels[i]) .. " " .. number(value)
  end
  lines[#lines + 1] = ("set %stics (%s)"):format(name, table.concat(ticks, ", "))
end

--- Lines across the figure; the label of an upright one stands above the frame.
local function add_lines(lines, figure)
  for _, line in ipairs(figure.lines or {}) do
    local ends = line.x and "first %s, graph 0 to first %s, graph 1"
      or "graph 0, first %s to graph 1, first %s"
    local at = number(line.x or line.y)
    lines[#lines + 1] = ("set arrow from %s nohead front dashtype 2"):format(ends:format(at, at))
    if line.label then
      lines[#lines + 1] = ("set label %s at first %s, graph 1.04 center"):format(
        gnuplot_string(line.label), at)
    end
  end
end

--- Shaded stretches of an axis.
local function add_bands(lines, figure)
  for i, band in ipairs(figure.bands or {}) do
    local range = band.x or band.y
    local area = band.x and "first %s, graph 0 to first %s, graph 1"
      or "graph 0, first %s to graph 1, first %s"
    lines[#lines + 1] = ("set object %d rectangle from %s behind fillstyle solid 0.15 noborder "
      .. "fillcolor rgb '#d08000'"):format(i, area:format(number(range[1]), number(range[2])))
  end
end

--- Whether gnuplot can place it: no NaN, no infinities.
local function is_finite(point)
  for _, value in ipairs(point) do
    if value ~= value or math.abs(value) == math.huge then
      return false
    end
  end
  return true
end

local function add_data(lines, index, points)
  lines[#lines + 1] = ("$data%d << END"):format(index)
  for _, point in ipairs(points) do
    if is_finite(point) then
      local cells = {}
      for i, value in ipairs(point) do
        cells[i] = number(value)
      end
      lines[#lines + 1] = table.concat(cells, " ")
    end
  end
  lines[#lines + 1] = "END"
end

--- A figure as gnuplot's commands.
---@param figure tidelock.figure
---@return string
function plot.script(figure)
  local lines = {
    "set encoding utf8",
    "set terminal svg size 800,450 noenhanced background rgb 'white'",
    "set grid",
    "set boxwidth 0.4",
    "set title " .. gnuplot_string(figure.title) .. " offset 0, 0.8",
    "set xlabel " .. gnuplot_string(figure.xlabel),
    "set ylabel " .. gnuplot_string(figure.ylabel),
  }
  add_axis(lines, "x", figure.x)
  add_axis(lines, "y", figure.y)
  add_bands(lines, figure)
  add_lines(lines, figure)
  local commands, titled = {}, false
  for i, series in ipairs(figure.series) do
    add_data(lines, i, series.points)
    local style = styles[series.style]
    local title = series.title and "title " .. gnuplot_string(series.title) or "notitle"
    titled = titled or series.title ~= nil
    commands[i] = ("$data%d using %s %s %s"):format(i, style[1], style[2], title)
  end
  lines[#lines + 1] = titled and "set key below\nset bmargin 6" or "set key off"
  lines[#lines + 1] = "plot " .. table.concat(commands, ", ")
  return table.concat(lines, "\n") .. "\n"
end

local function shell_quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Draws a figure as SVG with gnuplot.
---@param path string
---@param figure tidelock.figure
---@return boolean written, string? reason
function plot.draw(path, figure)
  if not os.execute("command -v gnuplot >/dev/null 2>&1") then
    return false, "gnuplot is not installed"
  end
  local file, reason = io.open(path, "w")
  if not file then
    return false, reason
  end
  file:close()
  -- The shell opens the file: to gnuplot a path can also be a command.
  local gnuplot = io.popen("gnuplot 2>/dev/null >" .. shell_quote(path), "w")
  gnuplot:write(plot.script(figure))
  if not gnuplot:close() then
    return false, "gnuplot failed"
  end
  return true
end

--- Points of values against their number, and the axes for them.
---@param values number[] seconds
---@return number[][] points, table x, table y
function plot.numbered(values)
  local points, low, high = {}, math.huge, 0
  for i, value in ipairs(values) do
    local shown = math.max(value, 1e-9) -- the axis is logarithmic
    points[i] = { i, shown }
    low, high = math.min(low, shown), math.max(high, shown)
  end
  return points, axis.of(0, math.max(#values, 2), { kind = "number" }),
    axis.of(low, high, { kind = "seconds", log = true })
end

--- Draws values against their number as SVG.
---@param path string
---@param values number[] seconds, one at least
---@param options { title: string, xlabel: string?, ylabel: string? }
---@return boolean written, string? reason
function plot.svg(path, values, options)
  local points, x, y = plot.numbered(values)
  return plot.draw(path, { title = options.title, xlabel = options.xlabel or "launch",
    ylabel = options.ylabel or "seconds", x = x, y = y,
    series = { { style = "dots", points = points } } })
end

return plot
