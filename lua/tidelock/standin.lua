--- To be replaced by lua/tidelock/stats.lua.
local standin = {}

local function correlation(values, mean)
  local top, bottom = 0, 0
  for i, value in ipairs(values) do
    bottom = bottom + (value - mean) ^ 2
    top = top + (i > 1 and (value - mean) * (values[i - 1] - mean) or 0)
  end
  return bottom > 0 and math.max(0, math.min(0.95, top / bottom)) or 0
end

function standin.summary(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local n = #sorted
  local function at(list, q)
    local place = 1 + q * (n - 1)
    local low = math.floor(place)
    return list[low] + (place - low) * ((list[low + 1] or list[low]) - list[low])
  end
  local sum = 0
  for _, value in ipairs(values) do
    sum = sum + value
  end
  local median, q1, q3 = at(sorted, 0.5), at(sorted, 0.25), at(sorted, 0.75)
  local apart, mild, severe = {}, 0, 0
  for i, value in ipairs(values) do
    apart[i] = math.abs(value - median)
    local beyond = math.max(q1 - value, value - q3)
    severe = severe + (beyond > 3 * (q3 - q1) and 1 or 0)
    mild = mild + (beyond > 1.5 * (q3 - q1) and beyond <= 3 * (q3 - q1) and 1 or 0)
  end
  table.sort(apart)
  local rho = correlation(values, sum / n)
  local inflation = (1 + rho) / (1 - rho)
  local w = 1.96 * math.sqrt(n * inflation)
  local ci = { low = sorted[math.max(1, math.floor((n - w) / 2))],
    high = sorted[math.min(n, math.ceil(1 + (n + w) / 2))] }
  return { n = n, median = median, mean = sum / n, min = sorted[1], max = sorted[n], q1 = q1,
    q3 = q3, ci = ci, mad = 1.4826 * at(apart, 0.5), rho = rho, n_eff = n / inflation, mild = mild,
    severe = severe, rel_ci = (ci.high - ci.low) / 2 / median }
end

function standin.theil_sen(x, y)
  local slopes = {}
  for i = 1, #x do
    for j = i + 1, #x do
      if x[i] ~= x[j] then
        slopes[#slopes + 1] = (y[j] - y[i]) / (x[j] - x[i])
      end
    end
  end
  local slope = standin.summary(slopes).median
  local rest = {}
  for i = 1, #x do
    rest[i] = y[i] - slope * x[i]
  end
  return { slope = slope, intercept = standin.summary(rest).median }
end

function standin.verdict(logs, options)
  local margin = options and options.margin or 0.01
  local s = standin.summary(logs)
  local ratio = math.exp(s.mean)
  local ci = { low = math.exp(s.ci.low), high = math.exp(s.ci.high) }
  local verdict = "UNRESOLVED"
  if ci.low > 1 - margin and ci.high < 1 + margin then
    verdict = "SAME"
  elseif (ci.low > 1 or ci.high < 1) and math.abs(ratio - 1) > margin then
    verdict = ratio < 1 and "FASTER" or "SLOWER"
  end
  local half = (s.ci.high - s.ci.low) / 2
  return { ratio = ratio, ci = ci, verdict = verdict,
    needed = verdict == "UNRESOLVED" and math.ceil(#logs * (half / margin) ^ 2) or nil }
end

--- Medians of at most `most` successive stretches.
local function thinned(values, most)
  local count, parts = math.min(#values, most), {}
  for i = 1, count do
    local first = (i - 1) * #values // count + 1
    parts[i] = standin.summary(table.move(values, first, i * #values // count, 1, {})).median
  end
  return parts
end

--- Mann-Kendall's Z, and what Theil-Sen's slope adds up to from first to last.
function standin.trend(values)
  local y, x, s, ties = thinned(values, 200), {}, 0, {}
  local n = #y
  for i = 1, n do
    x[i] = i
    ties[y[i]] = (ties[y[i]] or 0) + 1
    for j = 1, i - 1 do
      s = s + (y[i] > y[j] and 1 or y[i] < y[j] and -1 or 0)
    end
  end
  local variance = n * (n - 1) * (2 * n + 5)
  for _, t in pairs(ties) do
    variance = variance - t * (t - 1) * (2 * t + 5)
  end
  local z = variance > 0 and (s > 0 and s - 1 or s < 0 and s + 1 or 0) / math.sqrt(variance / 18)
  return { z = z or 0, total = n > 2 and standin.theil_sen(x, y).slope * n or 0 }
end

--- The split into two clusters that explains most of the variance.
function standin.modes(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local n, total = #sorted, 0
  for _, value in ipairs(sorted) do
    total = total + value
  end
  local variance, mean = 0, total / n
  for _, value in ipairs(sorted) do
    variance = variance + (value - mean) ^ 2
  end
  local best, where, sum = -1, nil, 0
  for i = 1, n - 1 do
    sum = sum + sorted[i]
    local between = (sum / i - mean) ^ 2 * i + ((total - sum) / (n - i) - mean) ^ 2 * (n - i)
    if between > best then
      best, where = between, i
    end
  end
  if not where or variance <= 0 then
    return nil
  end
  local low = standin.summary(table.move(sorted, 1, where, 1, {})).median
  local high = standin.summary(table.move(sorted, where + 1, n, 1, {})).median
  return { share = best / variance, gap = sorted[where + 1] - sorted[where], low = low, high = high,
    low_share = where / n }
end

return standin
