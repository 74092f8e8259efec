# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListNet over the first k places of all permutations: one choice after the other, each with its cross entropy."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel
from ._listwise_kernels import apply_chain_rule, fill_log_target, transform_scores

FULL_LIMIT = 12
"""Longest list for the full form: its sum runs over all sets of documents."""
MOST_BEGINNINGS = 1e6
"""How many beginnings of permutations the top-k form sums over in one list, at most."""


@kernel
def choose_next(u, target, used, weight, p, grad, curve):
    """Choose among the documents not used: return weight × cross entropy and add its gradient; p = P_y."""
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
def sum_over_beginnings(u, target, k, grad, curve):
    """Sum the choices after all ordered beginnings of fewer than k documents, depth first."""
    m = len(u)
    used, p = np.zeros(m, dtype=np.bool_), np.empty((k, m))
    tried, weight = np.full(k, -1), np.ones(k + 1)
    loss, depth = choose_next(u, target, used, 1.0, p[0], grad, curve), 0
    while depth >= 0 and k > 1:
        if tried[depth] >= 0:
            used[tried[depth]] = False
        next_one = tried[depth] + 1
        while next_one < m and used[next_one]:
            next_one += 1
        if next_one == m:
            tried[depth] = -1
            depth -= 1
            continue
        tried[depth] = next_one
        used[next_one] = True
        weight[depth + 1] = weight[depth] * p[depth, next_one]
        loss += choose_next(u, target, used, weight[depth + 1], p[depth + 1], grad, curve)
        if depth + 2 < k:
            depth += 1
    return loss


@kernel
def sum_over_sets(u, target, grad, curve):
    """Sum the choices after all sets of documents already chosen, each by its probability under the truth."""
    m = len(u)
    used, p = np.zeros(m, dtype=np.bool_), np.empty(m)
    weight = np.zeros(1 << m)
    weight[0] = 1.0
    loss = 0.0
    for chosen in range((1 << m) - 1):
        for i in range(m):
            used[i] = (chosen >> i) & 1
        loss += choose_next(u, target, used, weight[chosen], p, grad, curve)
        for i in range(m):
            if not used[i]:
                weight[chosen | (1 << i)] += weight[chosen] * p[i]
    return loss


@kernel
def listnet_top_k_of_list(s, y, k, rule, g, curve):
    """ℓ = −Σ_π P_y(π) log P_s(π) over the first k places (k = 0: all); g is its gradient.

    NaN says that the list is refused: too many beginnings, or what no listwise loss takes.
    """
    n = len(s)
    g[:] = 0.0
    curve[:] = 0.0
    if n == 0:
        return 0.0
    if n > FULL_LIMIT and (k == 0 or float(n) ** (k - 1) > MOST_BEGINNINGS):
        return math.nan
    u, v, slope, log_target = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    shift = transform_scores(rule, s, u, v, slope)
    if math.isnan(shift) or fill_log_target(rule, y, log_target):
        return math.nan
    if n == 1:
        return 0.0
    places = n - 1  # the last document is not chosen, it is left
    if k == 0 or (k >= places and places < FULL_LIMIT):
        loss = sum_over_sets(u, log_target, g, curve)
    else:
        loss = sum_over_beginnings(u, log_target, min(k, places), g, curve)
    apply_chain_rule(slope, g, curve)
    return loss


@kernel
def listnet_top_k_of_lists(s, y, ptr, k, rule, losses, grad, curve):
    """The loss of each list; return −1 or the number of a list that is refused."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        list_curve = curve[a:b] if len(curve) > 0 else curve[:0]
        losses[q] = listnet_top_k_of_list(s[a:b], y[a:b], k, rule, grad[a:b], list_curve)
        if math.isnan(losses[q]):
            return q
    return -1
