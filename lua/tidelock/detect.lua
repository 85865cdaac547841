--- What a series of samples shows beside its median: drift, two modes, oscillation, a slow first
--- sample, outliers, and values too small for their clock. Flags, with numbers as evidence: no
--- sample is removed.
local fit = require "tidelock.fit"
local order = require "tidelock.order"
local stats = require "tidelock.stats"

local detect = {}

-- |Z| of a normal value that one series in a thousand passes by chance.
local rare <const> = 3.29

--- Sorts list[first..last] by merging, and returns how many pairs were in descending order: the
--- discordant pairs of Kendall's tau in n log n steps (W. R. Knight, A computer method for
--- calculating Kendall's tau with ungrouped data, 1966).
local function inversions(list, first, last, scratch)
  if first >= last then
    return 0
  end
  local middle = (first + last) // 2
  local count = inversions(list, first, middle, scratch)
    + inversions(list, middle + 1, last, scratch)
  local left, right = first, middle + 1
  for i = first, last do
    if right > last or (left <= middle and list[left] <= list[right]) then
      scratch[i] = list[left]
      left = left + 1
    else
      scratch[i] = list[right]
      right = right + 1
      count = count + middle + 1 - left
    end
  end
  table.move(scratch, first, last, first, list)
  return count
end

--- Sums f(size) over the groups of equal values.
local function over_ties(sorted, f)
  local sum, size = 0, 1
  for i = 2, #sorted + 1 do
    if sorted[i] == sorted[i - 1] then
      size = size + 1
    else
      sum, size = sum + f(size), 1
    end
  end
  return sum
end

--- Mann and Kendall's statistic: ascending pairs less descending ones, in standard deviations of
--- what independent values give (M. G. Kendall, Rank correlation methods, 1975: corrected for ties,
--- and for continuity).
---@param values number[]
---@return number z 0 for a constant series
function detect.mann_kendall(values)
  order.check(values)
  local n = #values
  local sorted = table.move(values, 1, n, 1, {})
  local descending = inversions(sorted, 1, n, {})
  local ties = over_ties(sorted, function(t) return t * (t - 1) / 2 end)
  local score = n * (n - 1) / 2 - ties - 2 * descending
  local variance = (n * (n - 1) * (2 * n + 5)
    - over_ties(sorted, function(t) return t * (t - 1) * (2 * t + 5) end)) / 18
  local continuous = score > 0 and score - 1 or score < 0 and score + 1 or 0
  return variance > 0 and continuous / math.sqrt(variance) or 0.0
end

--- What a cubic in time leaves of a series: least squares on polynomials made orthogonal one after
--- the other.
local function without_cubic(values)
  local n = #values
  local left, basis = table.move(values, 1, n, 1, {}), {}
  for degree = 0, 3 do
    local term = {}
    for i = 1, n do
      term[i] = ((2 * i - n - 1) / n) ^ degree
    end
    basis[#basis + 1] = term
    for k, other in ipairs(basis) do -- the term from those before it, then the rest from the term
      local target = k == #basis and left or term
      local product, square = 0, 0
      for i = 1, n do
        product = product + target[i] * other[i]
        square = square + other[i] * other[i]
      end
      for i = 1, n do
        target[i] = target[i] - product / square * other[i]
      end
    end
  end
  return left
end

--- Up to 200 medians of equal stretches: all pairs of those are quickly done.
local function condense(values)
  local n, count = #values, math.min(#values, 200)
  local times, medians = {}, {}
  for i = 1, count do
    local first, last = (i - 1) * n // count + 1, i * n // count
    times[i], medians[i] = (first + last) / 2, order.median(values, first, last)
  end
  return times, medians
end

---@class tidelock.drift
---@field z number Mann and Kendall's, corrected for autocorrelation
---@field slope number per sample, by Theil and Sen; of 200 stretches where there are more samples
---@field change number slope times the number of samples, as a part of the median

--- Drift: a trend that is certain, and large enough to matter. Mann and Kendall's test takes the
--- samples for independent; at a correlation of 0.8 it alone calls a quarter of steady series
--- drifting (1500 simulated runs, 47 to 200 samples). So its Z is divided by the root of what the
--- correlation multiplies its variance by (Hamed and Rao, A modified Mann-Kendall trend test for
--- autocorrelated data, Journal of Hydrology 204, 1998), and the correlation is taken of what a
--- cubic in time leaves, or a drift would pass for correlation: with a straight line instead, an
--- exponential drift of 10 standard deviations was missed in 47 of 100 series of 47.
---@param values number[]
---@return tidelock.drift? drift nil: none, or fewer than 10 samples
function detect.drift(values)
  order.check(values)
  if #values < 10 then
    return nil
  end
  local z = detect.mann_kendall(values)
  if math.abs(z) <= rare then
    return nil
  end
  local r = stats.autocorrelation(without_cubic(values), { low = -math.huge, high = math.huge })
  z = z / math.sqrt(stats.inflation(#values, r, 4))
  local slope = fit.theil_sen(condense(values))
  local change = slope * #values / math.abs(order.median(values))
  if math.abs(z) <= rare or math.abs(change) <= 0.005 then
    return nil
  end
  return { z = z, slope = slope, change = change }
end

--- The split of sorted values into two clusters with the least variance inside them, each with
--- `least` values or more; and the part of the variance that is between them. Values farther out
--- than those count as the `least`-th from their end, so that a few spikes do not decide.
local function best_clusters(sorted, least)
  local n = #sorted
  local origin, low, high = sorted[(n + 1) // 2], sorted[least], sorted[n + 1 - least]
  local clipped, total, square = {}, 0, 0
  for i, value in ipairs(sorted) do
    local x = math.min(math.max(value, low), high) - origin -- from the origin: squares keep digits
    clipped[i], total, square = x, total + x, square + x * x
  end
  local sum, best, where = 0, -1, nil
  for i, x in ipairs(clipped) do
    sum = sum + x
    if i >= least and n - i >= least then
      local between = sum * sum / i + (total - sum) ^ 2 / (n - i) - total * total / n
      if between > best then
        best, where = between, i
      end
    end
  end
  local variance = square - total * total / n
  return where, variance > 0 and best / variance or 0
end

local function cluster(sorted, first, last)
  local median = order.median(sorted, first, last)
  return median, order.mad(table.move(sorted, first, last, 1, {}), median)
end

---@class tidelock.modes
---@field medians number[] of the lower and the upper mode
---@field shares number[] of the samples
---@field eta number part of the variance that is between the modes
---@field gap number between the medians, as a part of the median of all

--- Two modes: the best split into two clusters explains more than 85 % of the variance (of normal
--- values it explains 64 %, of evenly spread ones 75 %), their medians are more than 2 % apart and
--- more than two steps of the clock, and the smaller has 5 % of the samples, and 5 of them. Few
--- values look like two clusters by chance: with 3 for a mode and 85 % for any number, 7 to 30 of
--- 100 smooth series of 20 showed two modes. 85 % + 1.5/n leaves 3 of 1000. It must hold for the
--- clusters' own spreads by MAD too, in which far values keep their places.
---@param values number[]
---@param resolution number? seconds, the clock's step; default 0
---@return tidelock.modes? modes nil: one, or fewer than 20 samples
function detect.modes(values, resolution)
  order.check(values)
  local n = #values
  if n < 20 then
    return nil
  end
  local sorted = order.sorted(values)
  local split, eta = best_clusters(sorted, math.max(5, math.ceil(0.05 * n)))
  local low, low_spread = cluster(sorted, 1, split)
  local high, high_spread = cluster(sorted, split + 1, n)
  local share, apart, wanted = split / n, high - low, 0.85 + 1.5 / n
  local gap = apart / math.abs(order.median(sorted))
  local inside = share * low_spread ^ 2 + (1 - share) * high_spread ^ 2
  local between = share * (1 - share) * apart ^ 2
  if eta <= wanted or between <= wanted * (between + inside)
    or gap <= 0.02 or apart <= 2 * (resolution or 0) then
    return nil
  end
  return { medians = { low, high }, shares = { share, 1 - share }, eta = eta, gap = gap }
end

--- Oscillation: successive samples are alike (lag-1 autocorrelation above 0.3, and more than chance
--- gives to one series in a thousand), without a drift that makes them so, and the samples spread
--- by more than 0.1 % of the median: below that it is nobody's concern.
---@param summary tidelock.summary
---@param drift tidelock.drift? of the same series
---@return { rho: number }?
function detect.oscillation(summary, drift)
  local certain = math.max(0.3, rare / math.sqrt(summary.n))
  if drift or summary.rho <= certain or summary.mad <= 0.001 * math.abs(summary.median) then
    return nil
  end
  return { rho = summary.rho }
end

--- A slow first sample: severely beyond the others and 0.5 % above the median.
---@param values number[]
---@param summary tidelock.summary
---@return { first: number, ratio: number }? slow ratio: to the median
function detect.first_slow(values, summary)
  local fences = order.fences(summary.q1, summary.median, summary.q3)
  local first = values[1]
  if first <= fences.severe.high or first <= summary.median + 0.005 * math.abs(summary.median) then
    return nil
  end
  return { first = first, ratio = first / summary.median }
end

--- Outliers worth a word: severe ones that are more than 1 % of the samples, the farthest by more
--- than 0.5 % of the median. Others are in the summary's counts, and do not move a median.
---@param summary tidelock.summary
---@return { mild: integer, severe: integer, share: number, places: integer[] }?
function detect.outliers(summary)
  local share, median = summary.severe / summary.n, summary.median
  local farthest = math.max(summary.max - median, median - summary.min)
  if share <= 0.01 or farthest <= 0.005 * math.abs(median) then
    return nil
  end
  return { mild = summary.mild, severe = summary.severe, share = share, places = summary.outliers }
end

---@class tidelock.flag
---@field code string W-DRIFT, W-BIMODAL, W-OSCILLATES, W-FIRSTSLOW or W-OUTLIERS;
--- beside it the fields of what the function that found it returns

--- All flags of a series.
---@param values number[] in time order
---@param options { summary: tidelock.summary?, resolution: number? }? the summary of these values,
--- if there is one already; the clock's step, in seconds
---@return tidelock.flag[]
function detect.flags(values, options)
  options = options or {}
  order.check(values)
  local summary, flags = options.summary or stats.summary(values), {}
  local function add(code, evidence)
    if evidence then
      evidence.code = code
      flags[#flags + 1] = evidence
    end
  end
  local drift = detect.drift(values)
  add("W-DRIFT", drift)
  add("W-BIMODAL", detect.modes(values, options.resolution))
  add("W-OSCILLATES", detect.oscillation(summary, drift))
  add("W-FIRSTSLOW", detect.first_slow(values, summary))
  add("W-OUTLIERS", detect.outliers(summary))
  return flags
end

return detect
