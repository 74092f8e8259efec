"""Bounds on means by betting, straight from the definitions, and the exact binomial ones."""

import itertools
import math


def capital(values, m, delta, weights=None):
    """Capital of one order: bets √(2 (T − ln K)/((n − t + 1) σ̂²)) up to 0.9/m, none once ln K ≥ T = ln(1/(0.8 δ))."""
    n, K, goal = len(values), 1.0, math.log(1 / (0.8 * delta))
    weights = [1.0] * n if weights is None else weights
    for t in range(1, n + 1):
        past = 0.25
        for i in range(1, t):
            center = (0.5 + sum(v * x for v, x in zip(weights[:i], values[:i], strict=True))) / (1 + sum(weights[:i]))
            past += (weights[i - 1] * (values[i - 1] - center)) ** 2
        if math.log(K) >= goal:
            break
        bet = min(math.sqrt(2 * (goal - math.log(K)) / ((n - t + 1) * past / t)), 0.9 / m)
        K *= 1 + bet * weights[t - 1] * (values[t - 1] - m)
    return K


def lower_bound(values, orders, delta, weights=None, places=2000):
    """Go up the grid while the capital, averaged over the orders, is at least 1/δ."""
    best = 0.0
    for j in range(1, places):
        m = j / places
        found = [
            capital([values[i] for i in order], m, delta, None if weights is None else [weights[i] for i in order])
            for order in orders
        ]
        if sum(found) / len(found) < 1 / delta:
            break
        best = m
    return best


def hedged_capital_lower(values, delta, places=2000):
    """The published interval for a fixed n: λ_t = √(2 ln(2/δ)/(n σ̂²_{t−1})) cut at 1/(2m), in the order given."""
    n = len(values)
    rates, past, total = [], 0.25, 0.5
    for t, x in enumerate(values, start=1):
        rates.append(math.sqrt(2 * math.log(2 / delta) / (n * past / t)))
        total += x
        past += (x - total / (t + 1)) ** 2
    kept = []
    for j in range(1, places):
        m, log_up, log_down = j / places, 0.0, 0.0
        for rate, x in zip(rates, values, strict=True):
            log_up += math.log(1 + min(rate, 0.5 / m) * (x - m))
            log_down += math.log(1 - min(rate, 0.5 / (1 - m)) * (x - m))
        if max(math.log(0.5) + log_up, math.log(0.5) + log_down) < math.log(1 / delta):
            kept.append(m)
    return min(kept), max(kept)


def mixture(values, m):
    """(1/24) Σ_k Π_i (1 + u_k (x_i − m)/m)."""
    shares = [0.0003 * (0.02 / 0.0003) ** (k / 7) for k in range(8)] + [(k + 0.5) / 16 for k in range(16)]
    return sum(math.prod(1 + u * (x - m) / m for x in values) for u in shares) / 24


def binomial_tail(successes, n, p):
    """P(at least so many successes in n)."""
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(successes, n + 1))


def outcomes(support, n):
    """Yield every sample of n from {value: probability}, with its probability."""
    for sample in itertools.product(support.items(), repeat=n):
        yield [x for x, _ in sample], math.prod(p for _, p in sample)


def mean_capital(values, weights, orders, m, delta):
    """Mean over the orders of Π_t (1 + min(λ_t, .9/m) v_t (x_t − m)), λ_t = √(2 ln(1/δ)/(n σ̂²_{t−1}))."""
    found = []
    for order in orders:
        capital, total, weight, spread = 1.0, 0.5, 1.0, 0.25
        for t, at in enumerate(order):
            x, v = values[at], weights[at]
            bet = (2 * math.log(1 / delta) * (t + 1) / (len(order) * spread)) ** 0.5
            capital *= 1 + min(bet, 0.9 / m) * v * (x - m)
            total, weight = total + v * x, weight + v
            spread += (v * (x - total / weight)) ** 2
        found.append(capital)
    return sum(found) / len(found)
