# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListNet over the first place: the cross entropy of two softmaxes."""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import list_function
from ..core._order_kernels import scratch_length
from ..core._vector_kernels import dot, total
from ..core.jit import inner_kernel
from ._listwise_kernels import ORDER, apply_chain_rule, fill_target, transform_scores


@inner_kernel
def cross_entropies(transform, s, y, doc_weight, ptr, codes, numbers, losses, grad, curve, work, ints):
    """ℓ = −Σ_i P_y(i) log P_s(i), ∂ℓ/∂u = P_s − P_y, curvature P_s (1 − P_s); weights multiply the targets."""
    truth, a, b, table = codes[1], numbers[0], numbers[1], numbers[2:]
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
        if len(doc_weight) > 0:
            for i in range(n):
                target[i] *= doc_weight[first + i]
        sum_v, sum_target, cross = total(v, n), total(target, n), dot(target, u)
        list_grad, list_curve = grad[first:last], curve[first:last] if len(curve) > 0 else curve[:0]
        if sum_target == 0.0:  # all weights are 0
            list_grad[:] = 0.0
            list_curve[:] = 0.0
            continue
        inverse_v, inverse_target = 1.0 / sum_v, 1.0 / sum_target
        for i in range(n):
            list_grad[i] = v[i] * inverse_v - target[i] * inverse_target
        for i in range(len(list_curve)):
            p = v[i] * inverse_v
            list_curve[i] = p * (1.0 - p)
        losses[q] = shift + math.log(sum_v) - cross / sum_target
        apply_chain_rule(transform, a, slope, list_grad, list_curve)
    return -1


@list_function
def listnet(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """The loss of ListNet; the loop is a function of its own, because numba counts references in this one."""
    longest = scratch_length(ptr, 1)
    work, ints = np.empty((6, longest)), np.empty((4, longest if codes[1] == ORDER else 0), np.int64)
    return cross_entropies(codes[2], s, y, weight, ptr, codes, numbers, losses, grad, curve, work, ints)
