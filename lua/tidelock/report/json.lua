--- JSON lines: one record a line, exact (see tidelock.json).
local json = require "tidelock.json"

--- Keys that a reader of a line wants to see first.
local first = { "schema", "kind", "name", "where", "policy", "headline" }

return {
  name = "json",
  appends = true,

  --- A table by records it was made from, without their metatables: encode reads raw.
  row = function(_, record)
    return json.encode(record, first) .. "\n"
  end,

  finish = function()
    return ""
  end,
}
