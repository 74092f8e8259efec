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
def lower_sequence(x, shares, delta, lower):
    """Raise lower_t to the largest m tried with max_{s ≤ t} mean_k Π_{i ≤ s} (1 − u_k + u_k x_i/m) ≥ 1/δ.

    The product falls with m, so the m that are rejected are those up to one, and what is rejected once stays so. Each m
    is followed from the first value until it is rejected, and the next m is tried from there: one that is far below the
    mean is rejected soon, and behind the first that is not rejected none is tried. m goes up in steps of 1/2000, later
    of a fraction of what so many values can tell.
    """
    m, step, n = 0.0, 1 / 2000, len(x)
    capital, enough = np.empty(len(shares)), len(shares) / delta
    while m + step < 1:
        capital[:] = 1.0
        t, total = 0, 0.0
        while t < n and total < enough:
            times, total = x[t] / (m + step), 0.0
            for k in range(len(shares)):
                capital[k] *= 1 - shares[k] + shares[k] * times
                total += capital[k]
            t += 1
        if total < enough:
            break
        m += step
        lower[t - 1] = max(lower[t - 1], m)
        step = min(1 / 2000, 1 / (50 * sqrt(t)))
    for t in range(1, n):
        lower[t] = max(lower[t], lower[t - 1])


@kernel
def reach_of_drift(spread, rates, delta):
    """Return g with mean_k exp(λ_k g − (−ln(1 − λ_k) − λ_k) · spread) = 1/δ, by Newton's steps and rounded up.

    The logarithm of the mean is convex in g and rises, so steps from above stay above.
    """
    wanted = log(len(rates) / delta)
    costs, g = np.empty(len(rates)), np.inf
    for k in range(len(rates)):  # one term alone already reaches 1/δ at this g
        costs[k] = (-log1p(-rates[k]) - rates[k]) * spread
        g = min(g, (wanted + costs[k]) / rates[k])
    for _ in range(60):
        top = -np.inf
        for k in range(len(rates)):
            top = max(top, rates[k] * g - costs[k])
        capital = slope = 0.0
        for k in range(len(rates)):
            term = exp(rates[k] * g - costs[k] - top)
            capital += term
            slope += rates[k] * term
        step = (log(capital) + top - wanted) * capital / slope
        if not step > 1e-12 * g:
            break
        g -= step
    return g


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
