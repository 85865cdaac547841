--- Records of measurements: what dev:bench, compare, sweep and calibrate return, and what a file
--- of them reads back as. A record is a plain table of data with one metatable: print it, write
--- it, compare it with an earlier one.
local against = require "tidelock.against"
local clocks = require "tidelock.report.clocks"
local figure = require "tidelock.report.figure"
local file = require "tidelock.report.file"
local json = require "tidelock.json"
local plot = require "tidelock.plot"
local raise = require "tidelock.report.raise"
local report = require "tidelock.report"
local text = require "tidelock.report.text"

local result = {}

result.SCHEMA = 1

-- ---- the classes of records -----------------------------------------------------------------

---@alias tidelock.kind "bench" | "compare" | "sweep" | "calibration" | "against"

---@class tidelock.interval
---@field low number
---@field high number

--- Of one clock, per operation; times in seconds.
---@class tidelock.statistics
---@field n integer samples
---@field median number
---@field ci tidelock.interval? 95 %, of the median
---@field mean number
---@field min number
---@field max number
---@field q1 number
---@field q3 number
---@field mad number 1.4826 times the median distance from the median
---@field rho number lag-1 autocorrelation
---@field n_eff number samples that count, for rho
---@field mild integer samples beyond 1.5 interquartile ranges
---@field severe integer samples beyond 3
---@field rel_ci number half-width of ci / median

---@class tidelock.warning
---@field code string "E-WRONG", "W-DRIFT", "I-GRAPHED"
---@field message string what, with the evidence
---@field cause string?
---@field action string?
---@field where string? "script.lua:12"

--- Columns, one value for each sample and of the whole sample, not of an operation.
---@class tidelock.samples
---@field enqueue number[] seconds, like the next four
---@field device (number | false)[]? false where it could not be measured
---@field sync number[]?
---@field wall number[]?
---@field start number[]? on the host's clock
---@field inflight integer[]? launches in flight when the enqueueing ended
---@field slots integer[]?
---@field ops integer[]? operations

---@class tidelock.record
---@field schema integer 1
---@field kind tidelock.kind
---@field warnings tidelock.warning[]? errors before warnings before information

---@class tidelock.bench: tidelock.record
---@field name string
---@field where string?
---@field policy table
---@field headline "device" | "enqueue" | "wall" | "sync" | "slope" the statistics to print first
---@field device tidelock.statistics?
---@field enqueue tidelock.statistics?
---@field wall tidelock.statistics?
---@field sync tidelock.statistics?
---@field slope tidelock.statistics?
---@field samples tidelock.samples?
---@field launches number[]? seconds: host time of each launch (policy "unsynced")
---@field knee { first: integer, before: number, after: number, predicted: number? }?
---@field flops number? per operation
---@field bytes number? per operation
---@field environment table? device, name, backend, driver, lua, date, ...
---@field calibration { bias: number, scale: number, floor: number? }?
---@field corrected number? seconds: (median - bias) / scale

---@class tidelock.comparison: tidelock.record
---@field names string[]
---@field rounds integer
---@field results tidelock.bench[]
---@field ratios { ratio: number, ci: tidelock.interval, verdict: string, needed: number? }[]
---@field floor { ratio: number, ci: tidelock.interval }? the first against itself

---@class tidelock.sweep: tidelock.record
---@field axes { [1]: string, [2]: any[] }[]
---@field points { at: table<string, any>, result: tidelock.record?, skipped: string? }[]

---@class tidelock.calibration: tidelock.record
---@field policies { policy: string | table, bias: number, scale: number, floor: number?,
---residual: number, points: { spin: number, measured: number }[] }[]

---@class tidelock.against: tidelock.record
---@field interleaved false
---@field method string how the intervals are made
---@field margin number
---@field ratios { name: string, policy: string, verdict: "SAME" | "FASTER" | "SLOWER" |
---"UNRESOLVED" | "NOT COMPARED", reason: string?, clock: string?, new: number?, old: number?,
---ratio: number?, ci: tidelock.interval? }[] medians in seconds; ratio = new / old
---@field changed string[] what else differs, "driver: 580 against 575"
---@field summary string how many of each verdict
---@field status 0 | 1 | 2 for os.exit: same, faster or unresolved; slower; could not be compared

-- ---- methods --------------------------------------------------------------------------------

local methods = {}

--- Writes one line of JSON, exact: result.read gives back an equal record. Raises code "io" for a
--- file that can't be written, with path and reason; the file is then as it was.
---@param path string
---@param options { append: boolean? }? append: behind what the file has; default: replace it
function methods:json(path, options)
  report.write(path, self, "json", options)
end

--- Writes CSV, a row for each sample (of a calibration: point; against: ratio), times in seconds.
--- Raises as `json` does, and code "io" for appending to a file of other columns.
---@param path string
---@param options { append: boolean? }?
function methods:csv(path, options)
  report.write(path, self, "csv", options)
end

--- Returns the record as a Markdown table and a list of warnings, and writes it where a path is
--- given. Raises as `json` does.
---@param path string?
---@return string
function methods:markdown(path)
  if path ~= nil then
    report.write(path, self, "markdown")
  end
  return report.text(self, "markdown")
end

--- Writes a trace for Perfetto or chrome://tracing: see tidelock.report.trace. Raises as `json`.
---@param path string
function methods:trace(path)
  report.write(path, self, "trace")
end

--- Draws an SVG with gnuplot: launch cost against launch number where launches were timed, else
--- the distribution of the samples; of a comparison one box for each variant; of a sweep time
--- against size; of a calibration measured against real time; against an earlier run the ratios.
---@param path string
---@return boolean written
---@return string? reason gnuplot is not installed, nothing to draw, the file can't be opened
function methods:plot(path)
  local drawing, reason = figure.of(self)
  if not drawing then
    return false, reason
  end
  return plot.draw(path, drawing)
end

--- Compares with an earlier record: result.against(self, old, options).
---@param old tidelock.record | tidelock.record[]
---@param options { margin: number?, strict: boolean? }?
---@return tidelock.against
function methods:against(old, options)
  return result.against(self, old, options)
end

local record = { __index = methods, __name = "tidelock.record" }

function record.__tostring(self)
  return text.of(self)
end

-- ---- making and reading ---------------------------------------------------------------------

--- Checks for each kind that the parts are there which printing and writing rely on; returns what
--- is wrong.
local checks = {}

function checks.bench(fields)
  if type(fields.name) ~= "string" then
    return "a bench needs a name"
  elseif not clocks.names[fields.headline] then
    return ("headline '%s' is none of the clocks device, slope, enqueue, wall, sync"):format(
      tostring(fields.headline))
  end
  local statistics = fields[fields.headline]
  if type(statistics) ~= "table" or type(statistics.median) ~= "number" then
    return ("the headline's statistics, '%s', have no median"):format(fields.headline)
  end
end

local function needs(...)
  local names = { ... }
  return function(fields)
    for _, name in ipairs(names) do
      if type(fields[name]) ~= "table" then
        return ("'%s' is missing"):format(name)
      end
    end
  end
end

checks.compare = needs("names", "results", "ratios")
checks.sweep = needs("axes", "points")
checks.calibration = needs("policies")
checks.against = needs("ratios", "changed")

local function fault_in(fields)
  local check = checks[fields.kind]
  if not check then
    return ("kind '%s' is none of bench, compare, sweep, calibration, against"):format(
      tostring(fields.kind))
  elseif fields.schema ~= nil and fields.schema ~= result.SCHEMA then
    return ("schema %s: this version has schema %d"):format(tostring(fields.schema), result.SCHEMA)
  end
  return check(fields)
end

local adopt

--- Makes the records within a record.
local function adopt_parts(fields)
  for _, part in ipairs(fields.kind == "compare" and fields.results or {}) do
    local reason = adopt(part)
    if reason then
      return reason
    end
  end
  for _, point in ipairs(fields.kind == "sweep" and fields.points or {}) do
    local reason = point.result and adopt(point.result)
    if reason then
      return reason
    end
  end
end

--- Makes a table a record; returns what is wrong with it.
function adopt(fields)
  if type(fields) ~= "table" then
    return ("a record is a table, not a %s"):format(type(fields))
  end
  local reason = fault_in(fields) or adopt_parts(fields)
  if not reason then
    fields.schema = result.SCHEMA
    setmetatable(fields, record)
  end
  return reason
end

--- Makes a record of its fields: sets the metatable, of the records in it too, and `schema` where
--- it is left out. Raises for an unknown kind and for what printing would miss.
---@generic T: tidelock.record
---@param fields T
---@return T fields the same table
function result.new(fields)
  local reason = adopt(fields)
  return reason and raise.argument("bad record: " .. reason) or fields
end

--- Reads a file of JSON lines. Raises code "io" for a file that can't be read or a line that is
--- no record, naming file, line and column; "unsupported" for another schema.
---@param path string
---@return tidelock.record[] records
function result.read(path)
  local records, number = {}, 0
  for line in file.read(path):gmatch("([^\n]*)\n?") do
    number = number + 1
    if line:find("%S") then
      local fields, fault, _, column = json.decode(line)
      local place = ("%s:%d"):format(path, number)
      if fields == nil then
        raise.failure(path, ("%s: column %d: %s"):format(place, column, fault:gsub("^.-: ", "", 1)))
      end
      fault = adopt(fields)
      if fault then
        raise.failure(path, ("%s: %s"):format(place, fault),
          fault:find("^schema") and "unsupported" or "io")
      end
      records[#records + 1] = fields
    end
  end
  return records
end

--- Writes several records into one file, which result.read reads, or into one table.
---@param path string
---@param records tidelock.record[]
---@param format "json" | "csv" | "markdown" | "trace"
---@param options { append: boolean? }?
function result.write(path, records, format, options)
  report.write(path, records, format, options)
end

--- Compares a run with an earlier one, bench by bench, by name, point and policy: method, margin
--- and verdicts are those of tidelock.against. For CI: os.exit(result.against(new, old).status).
---@param new tidelock.record | tidelock.record[]
---@param old tidelock.record | tidelock.record[] of several with one name the last counts
---@param options { margin: number?, strict: boolean? }? margin: default 0.05; strict: what is
---unresolved gives status 2
---@return tidelock.against
function result.against(new, old, options)
  for name, value in pairs(options or {}) do
    if name ~= "margin" and name ~= "strict" then
      raise.argument(("unknown option '%s'; there are: margin, strict"):format(tostring(name)))
    elseif name == "margin" and not (type(value) == "number" and value > 0 and value < 1) then
      raise.argument(("bad option 'margin' (a number between 0 and 1 expected, got %s)"):format(
        tostring(value)))
    end
  end
  for i, run in ipairs { new or false, old or false } do
    if type(run) ~= "table" then
      raise.argument(("bad argument #%d to 'against' (a record or a list of them expected, got %s)")
        :format(i, run and type(run) or "nil"))
    end
  end
  return result.new(against.fields(new, old, options))
end

return result
