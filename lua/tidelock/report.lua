--- Writing records: the registry of formats, and what they have in common. A format is a table:
---
---   name      what scripts call it
---   appends   whether its text can be put behind an earlier text of the same format
---   row       (state, record) -> text, or nil and why this record can't stand behind the others
---   finish    (state) -> text
---
--- `state` is a table that starts with `header`, the first line of the file that is appended to.
local csv = require "tidelock.report.csv"
local file = require "tidelock.report.file"
local json = require "tidelock.report.json"
local markdown = require "tidelock.report.markdown"
local raise = require "tidelock.report.raise"
local trace = require "tidelock.report.trace"

local report = {}

report.formats = { json, csv, markdown, trace }

local function format_named(name)
  local names = {}
  for i, format in ipairs(report.formats) do
    if format.name == name then
      return format
    end
    names[i] = format.name
  end
  raise.argument(("unknown format '%s'; there are: %s"):format(name, table.concat(names, ", ")))
end

--- The text of records, one after the other; nil and the reason where they don't go together.
local function render(format, records, state)
  local parts = {}
  for i, record in ipairs(records) do
    local text, reason = format.row(state, record)
    if not text then
      return nil, reason
    end
    parts[i] = text
  end
  parts[#parts + 1] = format.finish(state)
  return table.concat(parts)
end

--- A record, or a list of records, as a list.
local function list_of(records)
  return records.kind and { records } or records
end

--- The text of one record or of a list of them.
---@param records table
---@param name "json" | "csv" | "markdown" | "trace"
---@return string
function report.text(records, name)
  local text, reason = render(format_named(name), list_of(records), {})
  return text or raise.argument(reason)
end

local function check_options(options, format)
  for key, value in pairs(options) do
    if key ~= "append" then
      raise.argument(("unknown option '%s'; there is: append"):format(tostring(key)))
    elseif type(value) ~= "boolean" then
      raise.argument(("bad option 'append' (boolean expected, got %s)"):format(type(value)))
    end
  end
  if options.append and not format.appends then
    raise.argument(("bad option 'append': %s is written as a whole"):format(format.name))
  end
end

--- Writes one record or a list of them. Without `append` the file is replaced in one step, or
--- left as it was; with it (json, csv) the text is put behind what is there. Raises code "io" for
--- a file that can't be opened or written, and for CSV with other columns than the file has.
---@param path string
---@param records table
---@param name "json" | "csv" | "markdown" | "trace"
---@param options { append: boolean? }?
function report.write(path, records, name, options)
  local format = format_named(name)
  options = options or {}
  check_options(options, format)
  local header = options.append and file.ends(path) or nil
  local text, reason = render(format, list_of(records), { header = header })
  if not text then
    raise.failure(path, ("%s: %s"):format(path, reason))
  end
  (options.append and file.append or file.replace)(path, text)
end

return report
