--- The two distributions that intervals are made of: the normal one and Student's t.
local distribution = {}

--- The normal distribution function, by its Taylor series (G. Marsaglia, Evaluating the normal
--- distribution, Journal of Statistical Software 11, 2004). Good to 1e-15 for |x| up to 6.
---@param x number
---@return number probability of a value up to x
function distribution.normal(x)
  if math.abs(x) > 8 then
    return x > 0 and 1 or 0
  end
  local sum, term, i = x, x, 1
  while math.abs(term) > 1e-17 * math.abs(sum) do
    i = i + 2
    term = term * x * x / i
    sum = sum + term
  end
  return 0.5 + sum * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
end

--- Student's t distribution for whole degrees of freedom, as a finite sum (Abramowitz and Stegun,
--- 26.7.3 and 26.7.4).
---@param t number at least 0
---@param freedom integer at least 1
---@return number probability of a value of magnitude up to t
local function within(t, freedom)
  local angle = math.atan(t / math.sqrt(freedom))
  local cosine = math.cos(angle)
  local odd = freedom % 2 == 1
  local term, sum = odd and cosine or 1, 0
  for i = odd and 3 or 2, freedom, 2 do
    sum = sum + term
    term = term * (i - 1) / i * cosine * cosine
  end
  sum = sum * math.sin(angle)
  return odd and 2 / math.pi * (angle + sum) or sum
end

--- The value of Student's t that is not exceeded with probability p.
---@param p number above 0.5 and below 1
---@param freedom integer at least 1
---@return number
function distribution.student(p, freedom)
  local low, high = 0.0, 1.0
  while within(high, freedom) < 2 * p - 1 do
    low, high = high, 2 * high
  end
  repeat
    local middle = (low + high) / 2
    if within(middle, freedom) < 2 * p - 1 then
      low = middle
    else
      high = middle
    end
  until high - low <= 1e-12 * high
  return high
end

return distribution
