# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Precision at the top of lists: the losses with their subgradients.

Of equal scores the earlier row ranks higher, everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel, sum_kernel
from ._selection_kernels import COUNTED, fill, kth_largest, sorted_top
from .precision_at_k import Rule


@kernel
def list_k(n_pos, k, kappa):
    """k of one list: min(k, n₊), or ⌈κ n₊⌉ with the dust of rounding taken off."""
    if k > 0:
        return min(k, n_pos)
    return min(n_pos, math.ceil(kappa * n_pos * (1.0 - 1e-12)))


@kernel
def by_class(s, y, pos, neg, a, b):
    """pos and neg are the scores of one class, −∞ elsewhere; a and b the same without gaps; return n₊."""
    n_pos = n_neg = 0
    for i in range(len(s)):
        positive = y[i] > 0.0
        pos[i] = s[i] if positive else -math.inf
        neg[i] = -math.inf if positive else s[i]
    for i in range(len(s)):
        a[n_pos] = s[i]
        b[n_neg] = s[i]
        n_pos += y[i] > 0.0
        n_neg += y[i] <= 0.0
    return n_pos


@sum_kernel
def total(a, n):
    """Σ a[:n]."""
    result = 0.0
    for i in range(n):
        result += a[i]
    return result


@sum_kernel
def dot(a, b):
    """Σ a_i b_i."""
    result = 0.0
    for i in range(len(a)):
        result += a[i] * b[i]
    return result


@kernel
def mark(values, cut, wanted, amount, last, n, g):
    """Add the amount to g on the rows at or above the cut: of the ties at it, the first ones (or `last`) as wanted."""
    count = 0
    for i in range(n):
        inside = values[i] >= cut
        count += inside
        g[i] += amount if inside else 0.0
    i, step = (0, 1) if last else (n - 1, -1)
    while count > wanted:
        if values[i] == cut:
            g[i] -= amount
            count -= 1
        i += step


@kernel
def candidate(s, y, k, bonus, work, g):
    """ŷ in g: 1 on the k rows with the largest s + bonus·(1 − y), else 0."""
    shifted, a = work[0], work[1]
    m = len(s)
    for i in range(m):
        shifted[i] = s[i] + (bonus if y[i] <= 0.0 else 0.0)
        a[i] = shifted[i]
        g[i] = 0.0
    mark(shifted, kth_largest(a, m, k, work[2], work[3]), k, 1.0, False, m, g)


@kernel
def struct(s, y, k, work, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{y=1} s_i (Eq. 3, over ŷ with k ones); g = ŷ − y."""
    candidate(s, y, k, 1.0, work, g)
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
        g[i] -= 1.0 if y[i] > 0.0 else 0.0
    return errors + dot(g, s)


@kernel
def ramp(s, y, k, work, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ of the k best positives (Eq. 4); g = ŷ − ỹ."""
    candidate(s, y, k, 1.0, work, g)
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
    pos, a = work[0], work[1]
    n_pos = by_class(s, y, pos, work[2], a, work[3])
    mark(pos, kth_largest(a, n_pos, k, work[2], work[3]), k, -1.0, False, len(s), g)
    return errors + dot(g, s)


@kernel
def avg(s, y, k, work, g):
    """max_j j + Σ_{i≤j} s⁻_i − D_j Σ_{i>k−j} s⁺_i, D_j = j/(n₊ − k + j) (Eq. 7 with j = k − k'); g for that j."""
    pos, neg, a, b = work[0], work[1], work[2], work[3]
    n_pos = by_class(s, y, pos, neg, a, b)
    n, n_neg = len(s), len(s) - n_pos
    most = min(k, n_neg)
    fill(g, 0, n, 0.0)
    if most == 0:
        return 0.0
    rest = total(a, n_pos)
    sorted_top(a, n_pos, k, work[4], work[5])  # a[j − 1] is s⁺ at place k − j + 1
    sorted_top(b, n_neg, most, work[4], work[5])
    rest -= total(a, k)
    best, swaps, negatives = 0.0, 0, 0.0
    for j in range(1, most + 1):
        rest += a[j - 1]
        negatives += b[most - j]
        value = j + negatives - j / (n_pos - k + j) * rest
        if value > best:
            best, swaps = value, j
    if swaps > 0:
        share = swaps / (n_pos - k + swaps)
        for i in range(n):
            g[i] = -share if y[i] > 0.0 else 0.0
        if swaps < k:
            mark(pos, a[swaps], k - swaps, share, False, n, g)
        mark(neg, b[most - swaps], swaps, 1.0, False, n, g)
    return best


@kernel
def maximum(s, y, k, work, g):
    """Σ_{i≤k} max(0, 1 + s⁻_i − (i-th lowest positive)): Eq. 6, whose terms only fall; g over the terms above 0."""
    low, neg, a, b = work[0], work[1], work[2], work[3]
    n_pos = by_class(s, y, low, neg, a, b)
    n, n_neg = len(s), len(s) - n_pos
    most = min(k, n_neg)
    fill(g, 0, n, 0.0)
    if most == 0:
        return 0.0
    for i in range(n_pos):
        a[i] = -a[i]
    sorted_top(a, n_pos, most, work[4], work[5])
    sorted_top(b, n_neg, most, work[4], work[5])
    value, swaps = 0.0, 0
    while swaps < most:
        term = 1.0 + b[most - 1 - swaps] + a[most - 1 - swaps]
        if term <= 0.0:
            break
        value += term
        swaps += 1
    if swaps > 0:
        for i in range(n):
            low[i] = -s[i] if y[i] > 0.0 else -math.inf
        mark(low, a[most - swaps], swaps, -1.0, True, n, g)
        mark(neg, b[most - swaps], swaps, 1.0, False, n, g)
    return value


@kernel
def perceptron(s, y, k, spread, work, g):
    """Δ = negatives in the top k; g = 1 on them, and −D on the missed positives or −1 on the Δ best of those."""
    candidate(s, y, k, 0.0, work, g)
    missing, a = work[0], work[1]
    n, mistakes, missed = len(s), 0, 0
    for i in range(n):
        positive, chosen = y[i] > 0.0, g[i] > 0.0
        lost = positive & (not chosen)
        a[missed] = s[i]
        missed += lost
        mistakes += chosen & (not positive)
        missing[i] = s[i] if lost else -math.inf
    if mistakes == 0:
        fill(g, 0, n, 0.0)
        return 0.0
    share = mistakes / missed if spread else 0.0
    for i in range(n):
        g[i] = (0.0 if g[i] > 0.0 else -share) if y[i] > 0.0 else g[i]
    if not spread:
        mark(missing, kth_largest(a, missed, mistakes, work[2], work[3]), mistakes, -1.0, False, n, g)
    return float(mistakes)


@kernel
def loss_of_list(rule, s, y, k, work, g):
    """Loss of one list with 1 ≤ k ≤ n₊ and, in g, its subgradient in the scores (or the perceptron's step)."""
    if rule == Rule.AVG:
        return avg(s, y, k, work, g)
    if rule == Rule.MAX:
        return maximum(s, y, k, work, g)
    if rule == Rule.STRUCT:
        return struct(s, y, k, work, g)
    if rule == Rule.RAMP:
        return ramp(s, y, k, work, g)
    return perceptron(s, y, k, rule == Rule.PERCEPTRON_AVG, work, g)


@kernel
def workspace(ptr):
    """Buffers for the longest list; one place more than its rows, for writes that are then not counted."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    return np.empty((6, max(longest + 1, 2 * COUNTED)))


@kernel
def losses_of_lists(rule, scores, y, ptr, k, kappa, losses, ks, grad):
    """Fill each list's loss, its k (0 where it has no positives: then loss and gradient are 0) and the gradient."""
    work = workspace(ptr)
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        labels, g = y[start:stop], grad[start:stop]
        n_pos = 0
        for i in range(stop - start):
            n_pos += labels[i] > 0.0
        ks[q] = list_k(n_pos, k, kappa)
        losses[q] = 0.0
        if ks[q] == 0:
            fill(g, 0, stop - start, 0.0)
        else:
            losses[q] = loss_of_list(rule, scores[start:stop], labels, ks[q], work, g)
