# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Preferences that clicks on one page tell, each with its weight (pairwise differentiable gradient descent)."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel

SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""


@kernel
def log_add(x, y):
    """log(e^x + e^y)."""
    if x == -math.inf:
        return y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@kernel
def gradient(scores, shown, clicked, grad):
    """grad += Σ over pairs clicked k, not clicked l of ρ e^{s_k} e^{s_l}/(e^{s_k} + e^{s_l})² (e_k − e_l).

    Pairs reach to the place after the last click. ρ = P(R*)/(P(R) + P(R*)), R* being the page R with k and l
    exchanged: between their places i < j, what is left to draw from is e^{s_i} − e^{s_j} larger. Return the pairs.
    """
    n = len(shown)
    last = -1
    for i in range(n):
        if clicked[i]:
            last = i
    if last < 0:
        return 0
    # log Σ e^s of what is left to draw from at each place: behind the page first, then the page from its end.
    on_page = np.zeros(len(scores), np.bool_)
    for i in range(n):
        on_page[shown[i]] = True
    left, rest = np.empty(n), -math.inf
    for i in range(len(scores)):
        if not on_page[i]:
            rest = log_add(rest, scores[i])
    for i in range(n - 1, -1, -1):
        rest = log_add(rest, scores[shown[i]])
        left[i] = rest
    pairs = 0
    for a in range(min(last + 2, n)):
        for b in range(a + 1, min(last + 2, n)):
            if clicked[a] == clicked[b]:
                continue
            upper, lower, log_ratio = scores[shown[a]], scores[shown[b]], 0.0
            for t in range(a + 1, b + 1):
                comes, goes = min(upper - left[t], 700.0), lower - left[t]
                log_ratio -= math.log(max(1.0 + math.exp(comes) - math.exp(goes), math.exp(comes), SMALLEST))
            gap = math.exp(-abs(upper - lower))
            value = gap / ((1.0 + gap) * (1.0 + gap)) / (1.0 + math.exp(min(-log_ratio, 700.0)))
            better, worse = (shown[a], shown[b]) if clicked[a] else (shown[b], shown[a])
            grad[better] += value
            grad[worse] -= value
            pairs += 1
    return pairs
