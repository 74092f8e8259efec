# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Precision at the top of lists: the losses with their subgradients, and the steps of the perceptrons.

Of equal scores the earlier row ranks higher, everywhere. Codes: (count of numbers, k or 0, divide by k); numbers: (κ,
threshold of relevance). `work` are scratch arrays.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..core._call_kernels import list_function
from ..core._order_kernels import longest_list
from ..core._selection_kernels import COUNTED, fill, kth_largest, sorted_top
from ..core._vector_kernels import dot, total
from ..core.jit import kernel


@kernel
def list_k(n_pos, k, kappa):
    """k of one list: min(k, n₊), or ⌈κ n₊⌉, where a product a little above a whole number by rounding counts as it."""
    if k > 0:
        return min(k, n_pos)
    return min(n_pos, math.ceil(kappa * n_pos * (1.0 - 1e-12)))


@kernel
def workspace(longest):
    """Scratch for a list: a place more than it has rows, because a filter writes before it knows whether to keep."""
    return np.empty((7, max(longest + 1, 2 * COUNTED)))


@kernel
def read_list(y, codes, numbers, label, g):
    """Write the labels of a list and set its gradient to 0; return its k, which is 0 where it has no positives."""
    n_pos = 0
    for i in range(len(y)):
        label[i] = 1.0 if y[i] > numbers[1] else 0.0
        n_pos += y[i] > numbers[1]
    fill(g, 0, len(g), 0.0)
    return list_k(n_pos, codes[1], numbers[0])


@kernel
def normalised(value, k, wanted, g):
    """Return a loss, divided by k with its gradient where that is wanted."""
    share = 1.0 / k
    if wanted == 1:
        for i in range(len(g)):
            g[i] *= share
    return value * share if wanted == 1 else value


def of_lists(loss):
    """Return the loss of every list of a run, from that of one list: loss(s, y, k, work, gradient)."""

    def run(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
        work = workspace(longest_list(ptr))
        for q in range(len(losses)):
            a, b = ptr[q], ptr[q + 1]
            label, g = work[6, : b - a], grad[a:b]
            k = read_list(y[a:b], codes, numbers, label, g)
            losses[q] = normalised(loss(s[a:b], label, k, work, g), k, codes[2], g) if k > 0 else 0.0
        return -1

    return run


loss_of_list = partial(list_function, of_lists=of_lists)


@kernel
def split_by_class(s, y, pos, neg, pos_only, neg_only):
    """Write the scores of each class: `pos` and `neg` by row with −∞ elsewhere, `…_only` without gaps; return n₊."""
    n_pos = n_neg = 0
    for i in range(len(s)):
        is_positive = y[i] > 0.0
        pos[i] = s[i] if is_positive else -math.inf
        neg[i] = -math.inf if is_positive else s[i]
    for i in range(len(s)):
        pos_only[n_pos] = s[i]
        neg_only[n_neg] = s[i]
        n_pos += y[i] > 0.0
        n_neg += y[i] <= 0.0
    return n_pos


@kernel
def add_at_top(values, threshold, wanted, amount, prefer_last, n, g):
    """Add the amount to g on the `wanted` rows with the largest values, of which `threshold` is the smallest.

    Of rows that tie with it the first are taken, or the last.
    """
    count = 0
    for i in range(n):
        inside = values[i] >= threshold
        count += inside
        g[i] += amount if inside else 0.0
    i, step = (0, 1) if prefer_last else (n - 1, -1)
    while count > wanted:
        if values[i] == threshold:
            g[i] -= amount
            count -= 1
        i += step


@kernel
def choose_top(s, y, k, bonus, work, g):
    """ŷ in g: 1 on the k rows with the largest s + bonus·(1 − y), else 0."""
    shifted, copy = work[0], work[1]
    m = len(s)
    for i in range(m):
        shifted[i] = s[i] + (bonus if y[i] <= 0.0 else 0.0)
        copy[i] = shifted[i]
        g[i] = 0.0
    add_at_top(shifted, kth_largest(copy, m, k, work[2], work[3]), k, 1.0, False, m, g)


@loss_of_list
def prec_struct(s, y, k, work, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{y=1} s_i (Eq. 3, over ŷ with k ones); g = ŷ − y."""
    choose_top(s, y, k, 1.0, work, g)
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
        g[i] -= 1.0 if y[i] > 0.0 else 0.0
    return errors + dot(g, s)


@loss_of_list
def prec_ramp(s, y, k, work, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ of the k best positives (Eq. 4); g = ŷ − ỹ."""
    choose_top(s, y, k, 1.0, work, g)
    errors = 0.0
    for i in range(len(s)):
        errors += g[i] if y[i] <= 0.0 else 0.0
    pos, pos_only = work[0], work[1]
    n_pos = split_by_class(s, y, pos, work[2], pos_only, work[3])
    add_at_top(pos, kth_largest(pos_only, n_pos, k, work[2], work[3]), k, -1.0, False, len(s), g)
    return errors + dot(g, s)


@loss_of_list
def prec_avg(s, y, k, work, g):
    """max_j j + Σ_{i≤j} s⁻_i − D_j Σ_{i>k−j} s⁺_i, D_j = j/(n₊ − k + j) (Eq. 7 with j = k − k'); g for that j."""
    pos, neg, pos_only, neg_only = work[0], work[1], work[2], work[3]
    n_pos = split_by_class(s, y, pos, neg, pos_only, neg_only)
    n, n_neg = len(s), len(s) - n_pos
    most_swaps = min(k, n_neg)
    fill(g, 0, n, 0.0)
    if most_swaps == 0:
        return 0.0
    rest = total(pos_only, n_pos)
    sorted_top(pos_only, n_pos, k, work[4], work[5])  # pos_only[j − 1] is now s⁺ at place k − j + 1
    sorted_top(neg_only, n_neg, most_swaps, work[4], work[5])
    rest -= total(pos_only, k)
    best, swaps, negatives = 0.0, 0, 0.0
    for j in range(1, most_swaps + 1):
        rest += pos_only[j - 1]
        negatives += neg_only[most_swaps - j]
        value = j + negatives - j / (n_pos - k + j) * rest
        if value > best:
            best, swaps = value, j
    if swaps > 0:
        share = swaps / (n_pos - k + swaps)
        for i in range(n):
            g[i] = -share if y[i] > 0.0 else 0.0
        if swaps < k:
            add_at_top(pos, pos_only[swaps], k - swaps, share, False, n, g)
        add_at_top(neg, neg_only[most_swaps - swaps], swaps, 1.0, False, n, g)
    return best


@loss_of_list
def prec_max(s, y, k, work, g):
    """Σ_{i≤k} max(0, 1 + s⁻_i − (i-th lowest positive)): Eq. 6, whose terms fall with i; g over the terms above 0."""
    pos, neg, pos_only, neg_only = work[0], work[1], work[2], work[3]
    n_pos = split_by_class(s, y, pos, neg, pos_only, neg_only)
    n, n_neg = len(s), len(s) - n_pos
    most_swaps = min(k, n_neg)
    fill(g, 0, n, 0.0)
    if most_swaps == 0:
        return 0.0
    for i in range(n_pos):  # the lowest come first
        pos_only[i] = -pos_only[i]
    sorted_top(pos_only, n_pos, most_swaps, work[4], work[5])
    sorted_top(neg_only, n_neg, most_swaps, work[4], work[5])
    value, swaps = 0.0, 0
    while swaps < most_swaps:
        term = 1.0 + neg_only[most_swaps - 1 - swaps] + pos_only[most_swaps - 1 - swaps]
        if term <= 0.0:
            break
        value += term
        swaps += 1
    if swaps > 0:
        for i in range(n):
            pos[i] = -s[i] if y[i] > 0.0 else -math.inf
        add_at_top(pos, pos_only[most_swaps - swaps], swaps, -1.0, True, n, g)
        add_at_top(neg, neg_only[most_swaps - swaps], swaps, 1.0, False, n, g)
    return value


@kernel
def perceptron(s, y, k, spread_reward, work, g):
    """Δ = negatives in the top k; g = 1 on them, and −D on the missed positives or −1 on the Δ best of those."""
    choose_top(s, y, k, 0.0, work, g)
    missed_scores, missed_only = work[0], work[1]
    n, mistakes, missed = len(s), 0, 0
    for i in range(n):
        positive, chosen = y[i] > 0.0, g[i] > 0.0
        is_missed = positive & (not chosen)
        missed_only[missed] = s[i]
        missed += is_missed
        mistakes += chosen & (not positive)
        missed_scores[i] = s[i] if is_missed else -math.inf
    if mistakes == 0:
        fill(g, 0, n, 0.0)
        return 0.0
    share = mistakes / missed if spread_reward else 0.0
    for i in range(n):
        g[i] = (0.0 if g[i] > 0.0 else -share) if y[i] > 0.0 else g[i]
    if not spread_reward:
        threshold = kth_largest(missed_only, missed, mistakes, work[2], work[3])
        add_at_top(missed_scores, threshold, mistakes, -1.0, False, n, g)
    return float(mistakes)


@loss_of_list
def mistakes_avg(s, y, k, work, g):
    """Δ and the step of Algorithm 1."""
    return perceptron(s, y, k, True, work, g)


@loss_of_list
def mistakes_max(s, y, k, work, g):
    """Δ and the step of Algorithm 2."""
    return perceptron(s, y, k, False, work, g)
