# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""RankCosine: the angle between the transformed scores and the transformed truth."""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import largest, longest_list
from ..core._vector_kernels import dot
from ._listwise_kernels import chain, fill_target, transformed

HUGE = 1e100
"""Numbers beyond this, or below its inverse, are scaled before they are squared."""


@list_function
def rank_cosine(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """ℓ = ½ (1 − cos(φ(g), φ(s))); curvature ½ c² (1 − c²) with c = φ/‖φ‖."""
    scores, labels, _, _, bounds, choice, params, value, slopes, bends = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    truth, code, a, b, table = choice[1], choice[2], params[0], params[1], params[2:]
    longest = max(longest_list(bounds), 32) + 1
    work, ints = np.empty((6, longest)), np.empty((4, longest), np.int64)
    for q in range(lists):
        first, last = bounds[q], bounds[q + 1]
        n = last - first
        value[q] = 0.0
        if n == 0:
            continue
        u, v, slope, target = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
        shift = transformed(code, a, b, scores[first:last], u, v, slope)
        if math.isnan(shift) or fill_target(truth, code, a, b, table, labels[first:last], ints, work[4:], target):
            return q
        top = largest(v)
        if not 1 / HUGE < top < HUGE:  # the length of φ(s) does not matter
            for i in range(n):
                v[i] /= top
        ours, theirs, inner = dot(v, v), dot(target, target), dot(v, target)
        cosine = inner / math.sqrt(ours * theirs)
        own, other = 0.5 * cosine / ours, 0.5 / math.sqrt(ours * theirs)
        here, curved_here = slopes[first:last], bends[first:last] if n_curve > 0 else bends[:0]
        for i in range(n):
            here[i] = v[i] * (own * v[i] - other * target[i])
        for i in range(len(curved_here)):
            share = v[i] * v[i] / ours
            curved_here[i] = 0.5 * share * (1.0 - share)
        value[q] = 0.5 * max(1.0 - cosine, 0.0)
        chain(code, a, slope, here, curved_here)
    return -1
