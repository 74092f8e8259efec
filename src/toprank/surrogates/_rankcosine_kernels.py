# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""RankCosine: the cosine between the transformed scores and the transformed truth."""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import list_function
from ..core._order_kernels import largest, scratch_length
from ..core._vector_kernels import dot
from ._listwise_kernels import apply_chain_rule, fill_target, transform_scores

HUGE = 1e100
"""Numbers beyond this, or below its inverse, are scaled before they are squared."""


@list_function
def rank_cosine(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """ℓ = ½ (1 − cos(φ(g), φ(s))); curvature ½ c² (1 − c²) with c = φ/‖φ‖."""
    truth, transform, a, b, table = codes[1], codes[2], numbers[0], numbers[1], numbers[2:]
    longest = scratch_length(ptr, 1)
    work, ints = np.empty((6, longest)), np.empty((4, longest), np.int64)
    for q in range(len(losses)):
        first, last = ptr[q], ptr[q + 1]
        n = last - first
        losses[q] = 0.0
        if n == 0:
            continue
        u, v, slope, target = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
        shift = transform_scores(transform, a, b, s[first:last], u, v, slope)
        if math.isnan(shift) or fill_target(truth, transform, a, b, table, y[first:last], ints, work[4:], target):
            return q
        top = largest(v)
        if not 1 / HUGE < top < HUGE:  # the cosine does not depend on the length of φ(s)
            for i in range(n):
                v[i] /= top
        s_square, target_square, product = dot(v, v), dot(target, target), dot(v, target)
        cosine = product / math.sqrt(s_square * target_square)
        per_score, per_target = 0.5 * cosine / s_square, 0.5 / math.sqrt(s_square * target_square)
        list_grad, list_curve = grad[first:last], curve[first:last] if len(curve) > 0 else curve[:0]
        for i in range(n):
            list_grad[i] = v[i] * (per_score * v[i] - per_target * target[i])
        for i in range(len(list_curve)):
            share = v[i] * v[i] / s_square
            list_curve[i] = 0.5 * share * (1.0 - share)
        losses[q] = 0.5 * max(1.0 - cosine, 0.0)
        apply_chain_rule(transform, a, slope, list_grad, list_curve)
    return -1
