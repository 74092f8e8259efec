# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Bets against a mean of people's values, with a machine's values beside them."""

from __future__ import annotations

from math import exp, log, log1p, sqrt

import numpy as np

from ..core.jit import kernel

LARGEST_SLOPE = 1.5
"""The machine's values count at most so many times."""
PRIOR_ROUNDS = 1.0
"""The slope is shrunk towards 0 as if so many pairs without relation, of the largest variance, had been seen before."""

ROUNDING = 1e-12
"""A mean of what is left is impossible where it is below 0 by more than rounding."""


@kernel
def slopes_and_variances(h, f, slope, variance):
    """Fill what is known before each draw t: c_t, the regression of h on f, and the variance of h − c_t f.

    Both start from a prior: no relation, and the largest variance that values in [0, 1] have.
    """
    h_sum, f_sum, hh, ff, hf = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(len(h)):  # t draws have been seen
        count = max(t, 1)
        var_h = hh / count - (h_sum / count) ** 2
        var_f = ff / count - (f_sum / count) ** 2
        cov = hf / count - h_sum * f_sum / count**2
        shrunk = var_f * t + 0.25 * PRIOR_ROUNDS
        c = min(max(cov * t / shrunk, 0.0), LARGEST_SLOPE)
        residual = max(var_h - 2 * c * cov + c * c * var_f, 0.0)
        slope[t] = c
        variance[t] = (0.25 + t * residual) / (t + 1)
        h_sum += h[t]
        f_sum += f[t]
        hh += h[t] * h[t]
        ff += f[t] * f[t]
        hf += h[t] * f[t]


@kernel
def log_capital(h, f, slope, variance, m, judge_mean, size, target):
    """Return ln K, K = Π_t (1 + b_t [(h_t − m_t) − c_t (f_t − φ_t)]), after all draws or as soon as it is `target`.

    m_t and φ_t are the means of what is left in a population of `size` queries, over which people's values have the
    mean m and the machine's the mean `judge_mean`; in an unlimited one (`size` 0) they stay m and `judge_mean`. The bet
    is b_t = √(2 (target − ln K)/(draws left · variance)), but never so large that K could fall below a tenth of itself.
    A mean that what was drawn already exceeds is impossible: K is infinite.
    """
    n, grown, h_sum, f_sum = len(h), 0.0, 0.0, 0.0
    for t in range(n):
        m_t, phi_t = m, judge_mean
        if size > 0:
            left = size - t
            m_t, phi_t = (size * m - h_sum) / left, (size * judge_mean - f_sum) / left
            if m_t < -ROUNDING:
                return np.inf
            m_t = max(m_t, 0.0)
        c = slope[t]
        most = 0.9 / max(m_t + c * (1.0 - phi_t), 1e-12)
        bet = min(sqrt(2.0 * (target - grown) / ((n - t) * variance[t])), most)
        grown += log1p(bet * ((h[t] - m_t) - c * (f[t] - phi_t)))
        if grown >= target:
            break
        h_sum += h[t]
        f_sum += f[t]
    return grown


@kernel
def largest_rejected_mean(h, f, judge_mean, size, delta, places):
    """Go up m = 1/places, 2/places, … while the mean capital of the orders is at least 1/δ; return the last such m.

    Each row of h and f is one order of the draws.
    """
    orders = len(h)
    slope, variance = np.empty(h.shape), np.empty(h.shape)
    for p in range(orders):
        slopes_and_variances(h[p], f[p], slope[p], variance[p])
    target, enough, reached = log(1.25 / delta), orders / delta, 0
    while reached + 1 < places:
        m, total = (reached + 1) / places, 0.0
        for p in range(orders):
            total += exp(log_capital(h[p], f[p], slope[p], variance[p], m, judge_mean, size, target))
            if total >= enough:
                break
        if total < enough:
            break
        reached += 1
    return reached / places
