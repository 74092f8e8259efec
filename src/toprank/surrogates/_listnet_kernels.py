# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListNet over the first place: the cross entropy of two distributions over the documents of a list."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel
from ._listwise_kernels import apply_chain_rule, fill_target, transform_scores


@kernel
def weighted_listnet_of_list(s, y, doc_weight, rule, g, curve):
    """ℓ = −Σ_i P_y(i) log P_s(i), ∂ℓ/∂u = P_s − P_y, curvature P_s (1 − P_s); weights multiply the targets.

    `doc_weight` and `curve` have length 0 where there are no weights and no curvature is wanted. NaN says that the
    list is refused: a score outside φ, an order with ties, or a gain that is too large.
    """
    n = len(s)
    g[:] = 0.0
    curve[:] = 0.0
    if n == 0:
        return 0.0
    u, v, slope, target = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    shift = transform_scores(rule, s, u, v, slope)
    if math.isnan(shift) or fill_target(rule, y, target):
        return math.nan
    for i in range(len(doc_weight)):
        target[i] *= doc_weight[i]
    sum_v = sum_target = cross = 0.0
    for i in range(n):
        sum_v += v[i]
        sum_target += target[i]
        cross += target[i] * u[i]
    if sum_target == 0.0:  # all weights are 0
        return 0.0
    per_v, per_target = 1.0 / sum_v, 1.0 / sum_target
    for i in range(n):
        g[i] = v[i] * per_v - target[i] * per_target
    for i in range(len(curve)):
        curve[i] = v[i] * per_v * (1.0 - v[i] * per_v)
    apply_chain_rule(slope, g, curve)
    return shift + math.log(sum_v) - cross / sum_target


@kernel
def listnet_of_list(s, y, rule, g):
    """ℓ = −Σ_i P_y(i) log P_s(i), P(i) = φ(s_i)/Σ_j φ(s_j); g is its gradient, P_s − P_y where φ is e^s.

    NaN says that the list is refused.
    """
    return weighted_listnet_of_list(s, y, s[:0], rule, g, s[:0])


@kernel
def listnet_of_lists(s, y, ptr, doc_weight, rule, losses, grad, curve):
    """The loss of each list; return −1 or the number of a list that is refused."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        c = doc_weight[a:b] if len(doc_weight) > 0 else doc_weight[:0]
        list_curve = curve[a:b] if len(curve) > 0 else curve[:0]
        losses[q] = weighted_listnet_of_list(s[a:b], y[a:b], c, rule, grad[a:b], list_curve)
        if math.isnan(losses[q]):
            return q
    return -1
