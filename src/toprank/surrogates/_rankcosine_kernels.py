# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""RankCosine: the cosine between the transformed scores and the transformed truth."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel
from ._listwise_kernels import apply_chain_rule, fill_target, largest, transform_scores

HUGE = 1e100
"""Numbers beyond this, or below its inverse, are scaled before they are squared."""


@kernel
def rank_cosine_of_list(s, y, rule, g, curve):
    """ℓ = ½ (1 − cos(φ(g), φ(s))); curvature ½ c² (1 − c²) with c = φ/‖φ‖; g is its gradient.

    NaN says that the list is refused: a score outside φ, an order with ties, or a gain that is too large.
    """
    n = len(s)
    if n == 0:
        return 0.0
    u, v, slope, target = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    shift = transform_scores(rule, s, u, v, slope)
    if math.isnan(shift) or fill_target(rule, y, target):
        return math.nan
    top = largest(v)
    if not 1 / HUGE < top < HUGE:  # the cosine does not depend on the length of φ(s)
        for i in range(n):
            v[i] /= top
    s_square = target_square = product = 0.0
    for i in range(n):
        s_square += v[i] * v[i]
        target_square += target[i] * target[i]
        product += v[i] * target[i]
    cosine = product / math.sqrt(s_square * target_square)
    per_score, per_target = 0.5 * cosine / s_square, 0.5 / math.sqrt(s_square * target_square)
    for i in range(n):
        g[i] = v[i] * (per_score * v[i] - per_target * target[i])
    for i in range(len(curve)):
        share = v[i] * v[i] / s_square
        curve[i] = 0.5 * share * (1.0 - share)
    apply_chain_rule(slope, g, curve)
    return 0.5 * max(1.0 - cosine, 0.0)


@kernel
def rank_cosine_of_lists(s, y, ptr, rule, losses, grad, curve):
    """The loss of each list; return −1 or the number of a list that is refused."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        list_curve = curve[a:b] if len(curve) > 0 else curve[:0]
        losses[q] = rank_cosine_of_list(s[a:b], y[a:b], rule, grad[a:b], list_curve)
        if math.isnan(losses[q]):
            return q
    return -1
