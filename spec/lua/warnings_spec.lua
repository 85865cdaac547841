--- The catalog of warnings: every entry is whole, and errors come before the rest.
local warnings = require "tidelock.warnings"

describe("warnings.catalog", function()
  it("has a message, a cause and an action for each code, and no code twice", function()
    local seen = {}
    for _, entry in ipairs(warnings.catalog) do
      assert.matches("^[EWI]%-%u+$", entry.code)
      assert.is_nil(seen[entry.code], entry.code)
      seen[entry.code] = true
      for _, field in ipairs { "message", "cause", "action" } do
        assert.is_true(#entry[field] > 0, entry.code .. "." .. field)
        assert.is_nil(entry[field]:find("%.$"), entry.code .. " ends in a full stop")
      end
    end
  end)

  it("has errors before warnings before information", function()
    local rank, before = { E = 1, W = 2, I = 3 }, 1
    for _, entry in ipairs(warnings.catalog) do
      local now = rank[entry.code:sub(1, 1)]
      assert.is_true(now >= before, entry.code)
      before = now
    end
  end)
end)

describe("warnings.make", function()
  it("puts the evidence into the message, and keeps it", function()
    local w = warnings.make("W-INFLIGHT", { inflight = 20, made = 30 })
    assert.equal("clock stopped with 20 of 30 launches in flight: this is enqueue time, not "
      .. "execution time", w.message)
    assert.same({ "W-INFLIGHT", 20, 30 }, { w.code, w.inflight, w.made })
    assert.equal("launches are asynchronous, and nobody waited", w.cause)
    assert.matches("^for the time of the work use policy", w.action)
  end)

  it("shows four digits of a float", function()
    assert.matches("drifted by 3.142 %", warnings.make("W-DRIFT", { percent = math.pi }).message,
      1, true)
  end)

  it("raises for a code that there is not, and for evidence that lacks", function()
    assert.error_matches(function() warnings.make("W-NONE", {}) end,
      "no warning has the code W%-NONE")
    assert.error_matches(function() warnings.make("W-DRIFT", {}) end,
      "W%-DRIFT lacks its percent")
  end)
end)

describe("warnings.sort", function()
  it("orders by weight, and leaves those of one code as they came", function()
    local function make(code, n)
      return { code = code, n = n }
    end
    local list = warnings.sort { make("I-CAPPED", 1), make("W-FILL", 1), make("E-WRONG", 1),
      make("W-FILL", 2), make("W-INFLIGHT", 1) }
    local codes = {}
    for i, w in ipairs(list) do
      codes[i] = w.code .. w.n
    end
    assert.same({ "E-WRONG1", "W-INFLIGHT1", "W-FILL1", "W-FILL2", "I-CAPPED1" }, codes)
  end)
end)
