# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The step of pairwise differentiable gradient descent (Oosterhuis and de Rijke 2018) on the clicks of one page."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel
from ..core.rows import add_rows

SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""
LARGEST_EXPONENT = 700.0
"""e to a higher power would overflow."""


@kernel
def pdgd_step(rows, s, R, clicked, eta, theta):
    """PDGD, Algorithm 1 of Oosterhuis and de Rijke (2018), lines 7 to 12, on a page R with its clicks.

    7: ∇f = 0. 8: for each pair d_k > d_l that the clicks tell, 9: w = ρ(d_k, d_l, R),
    10: w ← w e^{s_k} e^{s_l}/(e^{s_k} + e^{s_l})², 11: ∇f ← ∇f + w (x_k − x_l). 12: θ ← θ + η ∇f.

    s are the scores of all documents of the list, by θ. A clicked document is preferred to each one without a click, up
    to the place after the last click. Returns how many pairs there are.
    """
    g, pairs = np.zeros(len(s)), 0
    left = log_left_to_draw(s, R)
    reach = 0  # how many places the pairs are made of
    for i in range(len(R)):
        if clicked[i]:
            reach = min(i + 2, len(R))
    for i in range(reach):
        for j in range(i + 1, reach):
            if clicked[i] != clicked[j]:
                d_k, d_l = (R[i], R[j]) if clicked[i] else (R[j], R[i])
                odds = math.exp(-abs(s[d_k] - s[d_l]))  # of the lower score against the higher: it cannot overflow
                w = share_of_swapped(s, R, left, i, j) * (odds / ((1.0 + odds) * (1.0 + odds)))
                g[d_k] += w
                g[d_l] -= w
                pairs += 1
    add_rows(rows, 0, g, eta, theta)
    return pairs


@kernel
def share_of_swapped(s, R, left, i, j):
    """ρ = P(R*)/(P(R) + P(R*)), R* being the page R with the documents at the places i < j exchanged (Eq. 5 and 6).

    R* has the same factors e^s, and between the two places e^{s_i} − e^{s_j} more is left to draw from than R has.
    """
    log_ratio = 0.0
    for t in range(i + 1, j + 1):
        comes, goes = min(s[R[i]] - left[t], LARGEST_EXPONENT), s[R[j]] - left[t]
        log_ratio -= math.log(max(1.0 + math.exp(comes) - math.exp(goes), math.exp(comes), SMALLEST))
    return 1.0 / (1.0 + math.exp(min(-log_ratio, LARGEST_EXPONENT)))


@kernel
def log_left_to_draw(s, R):
    """Return log Σ e^s over the documents that are left to draw from at each place of the page R."""
    on_page = np.zeros(len(s), np.bool_)
    for i in range(len(R)):
        on_page[R[i]] = True
    left, total = np.empty(len(R)), -math.inf
    for i in range(len(s)):
        if not on_page[i]:
            total = log_add(total, s[i])
    for i in range(len(R) - 1, -1, -1):
        total = log_add(total, s[R[i]])
        left[i] = total
    return left


@kernel
def log_add(x, y):
    """log(e^x + e^y)."""
    if x == -math.inf:
        return y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))
