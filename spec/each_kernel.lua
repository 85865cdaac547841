--- Runs the same product by every kernel of a device, "auto" included, for every dtype.

--- Up to which magnitude a dtype holds every integer. int8, whose products are int32, has specs of
--- its own.
local exact = {
  { "float32", 2 ^ 24 }, { "float64", 2 ^ 53 }, { "float16", 2 ^ 11 }, { "bfloat16", 2 ^ 8 },
  { "int32", 2 ^ 31 - 1 },
}

local function takes(kernel, dtype)
  for _, name in ipairs(kernel.dtypes) do
    if name == dtype then
      return kernel.available
    end
  end
end

--- Calls body(kernel, dtype, label) for each kernel and each type it takes.
---@param dev tidelock.device
---@param body fun(kernel: string, dtype: string, label: string)
---@param needs { largest: number?, floats: boolean? }? largest: the largest integer that the case
--- has in its matrices, which the dtype must hold exactly; floats: fractions, NaN or infinities
return function(dev, body, needs)
  needs = needs or {}
  for _, entry in ipairs(exact) do
    local dtype, most = entry[1], entry[2]
    if (needs.largest or 0) <= most and not (needs.floats and dtype:find("int", 1, true)) then
      body("auto", dtype, "auto " .. dtype)
      for _, kernel in ipairs(dev:matmul_kernels()) do
        if takes(kernel, dtype) then
          body(kernel.name, dtype, kernel.name .. " " .. dtype)
        end
      end
    end
  end
end
