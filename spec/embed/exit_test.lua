-- Leaves work pending in every way and ends: run by exit_test.sh, as
--   lua exit_test.lua WAY RUN
-- WAY: "end", "error", "exit", "close"; RUN: a number that shifts the moment of
-- the end through that of the matrix product.
-- TIDELOCK_EXIT_DEVICE: the device it leaves its work on ("host").
-- luacheck: globals kept
local gpu = require "tidelock.core"
local way, run = ...

local dev = gpu.device(os.getenv("TIDELOCK_EXIT_DEVICE") or "host")
local s, t = dev:stream(), dev:stream()
local n = 1500
local a, b = dev:full({ n, n }, 1), dev:full({ n, n }, 2)
local kernel = pcall(gpu.matmul, a, b, { kernel = "blas" }) and "blas" or "tiled" -- no BLAS here
dev:synchronize() -- a GPU's first product may wait for all work, gates included
local x = dev:zeros(1000, s)
s:spin(0.5)
x:fill(1, s)
local event = s:record()
t:wait_event(event)
dev:full(1000, 2, t)
local gate = dev:stream():gate { timeout = 30 }

local c = gpu.matmul(a, b, { stream = dev:stream(), kernel = kernel })

local began = dev:now()
while began:elapsed() < (tonumber(run) or 0) % 10 * 0.008 do
end

kept = { x, event, gate, c } -- reachable to the very end
if way == "error" then
  error("on purpose")
elseif way == "exit" then
  os.exit(0)
elseif way == "close" then
  os.exit(3, true)
end
