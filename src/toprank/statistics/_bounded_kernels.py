# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Bets against the mean of values between 0 and 1 that do not depend on the mean: capital falls as the mean rises."""

from __future__ import annotations

from math import exp, log, log1p, sqrt

import numpy as np

from ..core.jit import kernel


@kernel
def fill_bets(x, v, order, delta, bets):
    """λ_t = √(2 ln(1/δ) / (n σ̂²_{t−1})), σ̂²_t = (¼ + Σ_{i ≤ t} v_i² (x_i − μ̂_i)²)/(t + 1), in the order given."""
    n = len(order)
    total, weight, spread = 0.5, 1.0, 0.25
    for t in range(n):
        bets[t] = sqrt(2 * log(1 / delta) / (n * spread / (t + 1)))
        at = order[t]
        total += v[at] * x[at]
        weight += v[at]
        spread += (v[at] * (x[at] - total / weight)) ** 2


@kernel
def mean_capital(x, v, orders, bets, m):
    """The mean over the orders of Π_t (1 + min(λ_t, 0.9/m) v_t (x_t − m)), which falls as m rises."""
    capital = 0.0
    for p in range(len(orders)):
        grown = 0.0
        for t in range(len(orders[p])):
            at = orders[p, t]
            grown += log1p(min(bets[p, t], 0.9 / m) * v[at] * (x[at] - m))
        capital += exp(min(grown, 600.0))
    return capital / len(orders)


@kernel
def lower_bounds(rows, v, orders, deltas, halvings, lower):
    """lower[r, l] = the largest m at which the mean capital of row r is 1/δ or more, δ = deltas[r, l], by halving."""
    bets = np.empty(orders.shape)
    for r in range(len(rows)):
        for level in range(deltas.shape[1]):
            delta = deltas[r, level]
            for p in range(len(orders)):
                fill_bets(rows[r], v, orders[p], delta, bets[p])
            low, high = 0.0, 1.0
            for _ in range(halvings):
                middle = 0.5 * (low + high)
                if mean_capital(rows[r], v, orders, bets, middle) >= 1 / delta:
                    low = middle
                else:
                    high = middle
            lower[r, level] = low


@kernel
def capitals(rows, v, orders, m, delta, found):
    """found[r] = the mean capital of row r against the mean m; bets are sized for a test at δ."""
    bets = np.empty(orders.shape)
    for r in range(len(rows)):
        for p in range(len(orders)):
            fill_bets(rows[r], v, orders[p], delta, bets[p])
        found[r] = mean_capital(rows[r], v, orders, bets, m)
