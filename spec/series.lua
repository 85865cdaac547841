--- Series of which the truth is known, for the specs of the statistics.
local resample = require "tidelock.resample"

local series = {}

--- Normal values of mean 0 and deviation 1, by Box and Muller.
---@param seed integer
---@return fun(): number
function series.normal(seed)
  local next = resample.generator(seed)
  local function uniform()
    return next(1 << 53) * 0x1p-53
  end
  return function()
    return math.sqrt(-2 * math.log(uniform())) * math.cos(2 * math.pi * uniform())
  end
end

--- n values of deviation 1 around 0; neighbours are correlated by rho.
function series.autoregressive(draw, n, rho)
  local values, own = { draw() }, math.sqrt(1 - rho * rho)
  for i = 2, n do
    values[i] = rho * values[i - 1] + own * draw()
  end
  return values
end

return series
