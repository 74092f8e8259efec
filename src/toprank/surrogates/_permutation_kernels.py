# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListNet over the first k places of all permutations: choices one after the other, each a cross entropy."""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list
from ..core.jit import kernel
from ._listwise_kernels import chain, log_target, transformed

FULL_LIMIT = 12
"""Longest list for the full permutation form: its sum runs over all sets of documents."""
STEPS = 1e6
"""Most beginnings of a permutation that the top-k form walks through in one list."""


@kernel
def stage(u, target, used, weight, p, grad, curve):
    """One choice among the documents not used: weight × cross entropy is returned and its gradient added; p = P_y."""
    top_u, top_t = -math.inf, -math.inf
    for i in range(len(u)):
        if not used[i]:
            top_u, top_t = max(top_u, u[i]), max(top_t, target[i])
    total_u, total_t = 0.0, 0.0
    for i in range(len(u)):
        if not used[i]:
            total_u += math.exp(u[i] - top_u)
            p[i] = math.exp(target[i] - top_t)
            total_t += p[i]
    log_total, loss = top_u + math.log(total_u), 0.0
    for i in range(len(u)):
        if not used[i]:
            p[i] /= total_t
            chosen = math.exp(u[i] - log_total)
            loss += p[i] * (log_total - u[i])
            grad[i] += weight * (chosen - p[i])
            if len(curve):
                curve[i] += weight * chosen * (1.0 - chosen)
    return weight * loss


@kernel
def top_k_list(u, target, k, grad, curve):
    """Sum the stages over all ordered beginnings of fewer than k documents, depth first."""
    m = len(u)
    used, p = np.zeros(m, dtype=np.bool_), np.empty((k, m))
    choice, weight = np.full(k, -1), np.ones(k + 1)
    loss, depth = stage(u, target, used, 1.0, p[0], grad, curve), 0
    while depth >= 0 and k > 1:
        if choice[depth] >= 0:
            used[choice[depth]] = False
        following = choice[depth] + 1
        while following < m and used[following]:
            following += 1
        if following == m:
            choice[depth] = -1
            depth -= 1
            continue
        choice[depth] = following
        used[following] = True
        weight[depth + 1] = weight[depth] * p[depth, following]
        loss += stage(u, target, used, weight[depth + 1], p[depth + 1], grad, curve)
        if depth + 2 < k:
            depth += 1
    return loss


@kernel
def full_list(u, target, grad, curve):
    """Sum the stages over all sets of documents already chosen, each by its probability under the truth."""
    m = len(u)
    used, p = np.zeros(m, dtype=np.bool_), np.empty(m)
    weight = np.zeros(1 << m)
    weight[0] = 1.0
    loss = 0.0
    for chosen in range((1 << m) - 1):
        for i in range(m):
            used[i] = (chosen >> i) & 1
        loss += stage(u, target, used, weight[chosen], p, grad, curve)
        for i in range(m):
            if not used[i]:
                weight[chosen | (1 << i)] += weight[chosen] * p[i]
    return loss


@list_function
def listnet_top(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """ℓ = −Σ_π P_y(π) log P_s(π) over the first k places (k = 0: all), its gradient and curvature.

    The code of its own is k. A list that would take too many steps is refused.
    """
    scores, labels, _, _, bounds, choice, params, value, slopes, bends = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    truth, code, k, a, b = choice[1], choice[2], choice[3], params[0], params[1]
    longest = max(longest_list(bounds), 32) + 1
    work, ints = np.empty((6, longest)), np.empty((4, longest), np.int64)
    for q in range(lists):
        first, last = bounds[q], bounds[q + 1]
        n = last - first
        value[q] = 0.0
        if n > FULL_LIMIT and (k == 0 or float(n) ** (k - 1) > STEPS):
            return q
        here, curved_here = slopes[first:last], bends[first:last] if n_curve > 0 else bends[:0]
        here[:] = 0.0
        curved_here[:] = 0.0
        if n == 0:
            continue
        u, v, slope, target = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
        shift = transformed(code, a, b, scores[first:last], u, v, slope)
        if math.isnan(shift) or log_target(truth, code, a, b, labels[first:last], ints, work[4:], target):
            return q
        if n < 2:
            continue
        places = n - 1  # the last place is no choice
        if k == 0 or (k >= places and places < FULL_LIMIT):
            value[q] = full_list(u, target, here, curved_here)
        else:
            value[q] = top_k_list(u, target, min(k, places), here, curved_here)
        chain(code, a, slope, here, curved_here)
    return -1
