-- A state whose device was opened before fork: in the child every call raises
-- and says why, closing and collecting are quiet, and a device of the child's
-- own works. Run by lua_host, which has fork, wait, getpid and _exit.
-- luacheck: globals fork wait getpid _exit
local gpu = require "tidelock.core"

local count, failed = 0, 0

local function test(sentence, ok, why)
  count = count + 1
  if not ok then
    failed = failed + 1
    print("# " .. tostring(why))
  end
  print((ok and "ok " or "not ok ") .. count .. " - " .. sentence)
end

local M, N, K = 17, 19, 23

local function matrix(dev, rows, columns, modulus)
  local t = {}
  for i = 1, rows do
    t[i] = {}
    for j = 1, columns do
      t[i][j] = ((i - 1) * columns + j - 1) % modulus
    end
  end
  return dev:array(t)
end

local function sum(c)
  local total = 0
  for _, row in ipairs(c:totable()) do
    for _, x in ipairs(row) do
      total = total + x
    end
  end
  return total
end

local parent = getpid()
local dev = gpu.device("host")
local s = dev:stream()
local a, b = matrix(dev, M, K, 7), matrix(dev, K, N, 5)
local stamp = dev:now()
local gate = s:gate { timeout = 60 }
local c = gpu.matmul(a, b, { stream = s, kernel = "tiled" })
local event = s:record()

--- Runs the function in a child, which ends with 0 if it returns true, and
-- prints what is wrong otherwise. The other way out is os.exit.
local function in_child(body)
  local child = fork()
  if child ~= 0 then
    local status = wait(child, 30)
    return status == 0, "the child's status is " .. tostring(status)
  end
  local ran, ok, why = pcall(body)
  if not (ran and ok) then
    print("# in the child: " .. tostring(ran and why or ok))
  end
  _exit(ran and ok and 0 or 1)
end

local function refused(name, f, ...)
  local ok, why = pcall(f, ...)
  local wanted = ("host was opened in process %d, this is process %d: open it after fork"):format(
    parent, getpid())
  if not ok and tostring(why):find(wanted, 1, true) then
    return true
  end
  print(("# %s: %s"):format(name, ok and "no error" or tostring(why)))
  return false
end

test("every call says where the device was opened", in_child(function()
  local calls = {
    { "matmul", gpu.matmul, a, b }, { "matmul into c", gpu.matmul, a, b, c },
    { "zeros", dev.zeros, dev, 3 }, { "array", dev.array, dev, { 1 } },
    { "memory", dev.memory, dev }, { "trim", dev.trim, dev },
    { "properties", dev.properties, dev }, { "now", dev.now, dev },
    { "elapsed", stamp.elapsed, stamp },
    { "synchronize", dev.synchronize, dev }, { "stream", dev.stream, dev },
    { "event", dev.event, dev }, { "default_stream", dev.default_stream, dev },
    { "stream synchronize", s.synchronize, s }, { "done", s.done, s },
    { "inflight", s.inflight, s }, { "spin", s.spin, s, 0 },
    { "record", s.record, s }, { "wait_event", s.wait_event, s, event },
    { "gate", s.gate, s }, { "open", gate.open, gate },
    { "event done", event.done, event },
    { "event synchronize", event.synchronize, event },
    { "totable", c.totable, c }, { "tobytes", c.tobytes, c },
    { "get", c.get, c, 1, 1 }, { "set", c.set, c, 1, 1, 1 },
    { "fill", c.fill, c, 1 }, { "clone", c.clone, c },
    { "copy_from", c.copy_from, c, c }, { "upload", c.upload, c, ("x"):rep(c:nbytes()) },
    { "view", c.view, c, { offset = 0, shape = 1 } },
  }
  local all = true
  for _, call in ipairs(calls) do
    all = refused(table.unpack(call)) and all
  end
  return all, "see above"
end))

test("closing and collecting are quiet and do not wait", in_child(function()
  c:close()
  gate:close()
  a, b, c, event, stamp = nil, nil, nil, nil, nil
  collectgarbage()
  s:close()
  dev:close()
  dev, s = nil, nil
  collectgarbage()
  return true
end))

test("a device of its own multiplies in the child", in_child(function()
  dev:close()
  local own = gpu.device("host")
  local product = gpu.matmul(matrix(own, M, K, 7), matrix(own, K, N, 5), { kernel = "tiled" })
  return sum(product) == 44316, "the sum is " .. sum(product)
end))

test("the inherited device does not stand in the way of one", in_child(function()
  local own = gpu.device("host")
  return own ~= dev and sum(gpu.matmul(matrix(own, M, K, 7), matrix(own, K, N, 5))) == 44316
end))

test("the child may close its state and exit", (function()
  local child = fork()
  if child == 0 then
    os.exit(0, true)
  end
  local status = wait(child, 30)
  return status == 0, "the child's status is " .. tostring(status)
end)())

test("the parent's work is not disturbed", (function()
  local opened = gate:open()
  return opened and sum(c) == 44316, "opened: " .. tostring(opened)
end)())

print("1.." .. count)
os.exit(failed == 0, true)
