-- A launch from Lua against the same launch from C, in turns in one process: see launch_pair.c.
--   lua5.4 launch_ratio.lua kernels.fatbin [rounds [current]]
-- current: C's context stays current to the thread, as in a program that embeds Lua.
local gpu = require "tidelock"
local measure, nothing = require "launch_pair"(arg[1], arg[3] == "current")

local rounds = math.tointeger(arg[2] or 101)
local dev = gpu.device("cuda:0")
local stream = dev:stream()
local matmul = gpu.matmul

local function wait() stream:synchronize() end

-- What calling any C function from Lua costs.
measure("empty", 1, rounds, function(calls)
  for _ = 1, calls do nothing() end
end, wait)

measure("spin", 1, rounds, function(calls)
  for _ = 1, calls do stream:spin(0) end
end, wait)

for _, case in ipairs { { "naive", 32 }, { "blas", 32 }, { "blas", 256 }, { "blas", 1024 } } do
  local kernel, n = case[1], case[2]
  local a, b = dev:rand({ n, n }, { seed = 1 }), dev:rand({ n, n }, { seed = 2 })
  local c = dev:empty { n, n }
  -- The default kernel is the BLAS: then the stream says all.
  local options = kernel == "blas" and stream or { stream = stream, kernel = kernel }
  dev:synchronize()
  measure(kernel, n, rounds, function(calls)
    for _ = 1, calls do matmul(a, b, c, options) end
  end, wait)
end
