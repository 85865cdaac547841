"""Ratios of two programs' samples with their 95 % intervals, and what they say of a target."""
import random
import statistics

RESAMPLES = 2000


def order_interval(values):
    """The median's order-statistic interval: no assumption but that rounds are independent."""
    count, outside = len(values), 0
    term = below = 0.5 ** count
    while below <= 0.025:
        outside += 1
        term *= (count - outside + 1) / outside
        below += term
    outside = max(outside - 1, 0)
    ordered = sorted(values)
    return ordered[outside], ordered[-1 - outside]


def ratio_of_rounds(over, under):
    ratios = [x / y for x, y in zip(over, under)]
    return (statistics.median(ratios), *order_interval(ratios))


def ratio_of_medians(over, under):
    pairs, rng = list(zip(over, under)), random.Random(1)
    resampled = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        resampled.append(statistics.median(x for x, _ in drawn) /
                         statistics.median(y for _, y in drawn))
    resampled.sort()
    tail = RESAMPLES // 40
    return (statistics.median(x for x, _ in pairs) / statistics.median(y for _, y in pairs),
            resampled[tail], resampled[-1 - tail])


def verdict(ratio, most=None, least=None):
    middle, low, high = ratio
    missed = low > most if least is None else high < least
    met = middle <= most if least is None else middle >= least
    return "missed" if missed else "met" if met else "open"
