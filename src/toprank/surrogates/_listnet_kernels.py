# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListNet over the first place: the cross entropy of two softmaxes."""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list
from ..core._vector_kernels import dot, total
from ..core.jit import inner_kernel
from ._listwise_kernels import ORDER, chain, fill_target, transformed


@inner_kernel
def cross_entropies(code, scores, labels, doc_weight, bounds, choice, params, value, slopes, bends, work, ints):
    """ℓ = −Σ_i P_y(i) log P_s(i), ∂ℓ/∂u = P_s − P_y, curvature P_s (1 − P_s); weights multiply the targets."""
    truth, a, b, table = choice[1], params[0], params[1], params[2:]
    for q in range(len(value)):
        first, last = bounds[q], bounds[q + 1]
        n = last - first
        value[q] = 0.0
        if n == 0:
            continue
        u, v, slope, target = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
        shift = transformed(code, a, b, scores[first:last], u, v, slope)
        if math.isnan(shift) or fill_target(truth, code, a, b, table, labels[first:last], ints, work[4:], target):
            return q
        if len(doc_weight) > 0:
            for i in range(n):
                target[i] *= doc_weight[first + i]
        sum_v, mass, cross = total(v, n), total(target, n), dot(target, u)
        here, curved_here = slopes[first:last], bends[first:last] if len(bends) > 0 else bends[:0]
        if mass == 0.0:  # no document weighs anything
            here[:] = 0.0
            curved_here[:] = 0.0
            continue
        over, under = 1.0 / sum_v, 1.0 / mass
        for i in range(n):
            here[i] = v[i] * over - target[i] * under
        for i in range(len(curved_here)):
            p = v[i] * over
            curved_here[i] = p * (1.0 - p)
        value[q] = shift + math.log(sum_v) - cross / mass
        chain(code, a, slope, here, curved_here)
    return -1


@list_function
def listnet(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """The loss of ListNet; its lists are a function of their own, in which no references are counted."""
    scores, labels, doc_weight, _, bounds, choice, params, value, slopes, bends = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    longest = max(longest_list(bounds), 32) + 1
    work, ints = np.empty((6, longest)), np.empty((4, longest if choice[1] == ORDER else 0), np.int64)
    return cross_entropies(
        choice[2], scores, labels, doc_weight, bounds, choice, params, value, slopes, bends, work, ints
    )
