# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Bets against means of values between 0 and 1: capital that grows on every path but that of a true mean."""

from __future__ import annotations

from math import exp, log, log1p, sqrt

import numpy as np

from ..core.jit import kernel


@kernel
def largest_rejected(x, v, rate, delta, places):
    """Go up m = 1/places, 2/places, … while the mean capital of the orders is at least 1/δ; return the last such m.

    In each row of x (one order of the values, v their weights) the capital K starts at 1 and is multiplied by
    1 + λ_t v_t (x_t − m), λ_t = min(√(rate_t (T − ln K)), 0.9/m), until ln K reaches T = ln(1/(0.8 δ)).
    """
    orders, n = x.shape
    target, enough = log(1.25 / delta), orders / delta
    reached = 0
    while reached + 1 < places:
        m = (reached + 1) / places
        total = 0.0
        for p in range(orders):
            grown = 0.0
            for t in range(n):
                bet = min(sqrt(rate[p, t] * (target - grown)), 0.9 / m)
                grown += log1p(bet * v[p, t] * (x[p, t] - m))
                if grown >= target:
                    break
            total += exp(grown)
            if total >= enough:
                break
        if total < enough:
            break
        reached += 1
    return reached / places


@kernel
def lower_sequence(x, shares, delta, places, lower):
    """lower_t = the largest m = 1/places, 2/places, … with max_{s ≤ t} mean_k Π_{i ≤ s} (1 − u_k + u_k x_i/m) ≥ 1/δ.

    The product falls with m, so the m that are rejected are those up to one, and what is rejected once stays so.
    """
    count = places - 1
    capital = np.ones((count, len(shares)))
    first, enough = 0, len(shares) / delta
    for t in range(len(x)):
        for j in range(first, count):
            times = x[t] * places / (j + 1)
            for k in range(len(shares)):
                capital[j, k] *= 1 - shares[k] + shares[k] * times
        while first < count and capital[first].sum() >= enough:
            first += 1
        lower[t] = first / places


@kernel
def reach_of_drift(spread, rates, delta):
    """Return g with mean_k exp(λ_k g − (−ln(1 − λ_k) − λ_k) · spread) = 1/δ, by bisection and rounded up."""
    wanted = log(len(rates) / delta)
    low, high = 0.0, np.inf
    for rate in rates:  # one term alone already reaches 1/δ at this g
        high = min(high, (wanted + (-log1p(-rate) - rate) * spread) / rate)
    for _ in range(60):
        g = 0.5 * (low + high)
        top = -np.inf
        for rate in rates:
            top = max(top, rate * g - (-log1p(-rate) - rate) * spread)
        capital = 0.0
        for rate in rates:
            capital += exp(rate * g - (-log1p(-rate) - rate) * spread - top)
        if log(capital) + top >= wanted:
            high = g
        else:
            low = g
    return high


@kernel
def lower_drift(x, rates, delta, lower):
    """lower_t = (Σ_{i ≤ t} x_i − g)/t, g = `reach_of_drift` of V_t = Σ_{i ≤ t} (x_i − x̂_i)², not below 0.

    x̂_i is the mean of a ½ and the values before i.
    """
    total, spread = 0.0, 0.0
    for t in range(len(x)):
        guess = (0.5 + total) / (t + 1)
        spread += (x[t] - guess) ** 2
        total += x[t]
        lower[t] = max(0.0, (total - reach_of_drift(spread, rates, delta)) / (t + 1))
