# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Precision at the top of lists: the losses with their subgradients, and the steps of the perceptrons.

Of equal scores the earlier row ranks higher, everywhere. Codes: (numbers, k or 0, divide by k, one of the loss's own);
numbers: (κ, threshold of relevance).
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list
from ..core._selection_kernels import COUNTED, fill, kth_largest, sorted_top
from ..core._vector_kernels import dot, total
from ..core.jit import kernel


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
def workspace(longest):
    """Buffers for a list; one place more than its rows, for writes that are then not counted."""
    return np.empty((7, max(longest + 1, 2 * COUNTED)))


@kernel
def start(grades, choice, params, labels, g):
    """Read the labels of a list and set its gradient to 0; return its k, which is 0 where it has no positives."""
    n_pos = 0
    for i in range(len(grades)):
        labels[i] = 1.0 if grades[i] > params[1] else 0.0
        n_pos += grades[i] > params[1]
    fill(g, 0, len(g), 0.0)
    return list_k(n_pos, choice[1], params[0])


@kernel
def divide(value, k, wanted, g):
    """Divide a loss and its gradient by k, where that is wanted; return the loss."""
    share = 1.0 / k
    if wanted == 1:
        for i in range(len(g)):
            g[i] *= share
    return value * share if wanted == 1 else value


@list_function
def prec_struct(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """`struct` of lists."""
    scores, grades, _, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    work = workspace(longest_list(bounds))
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        labels, g = work[6, : b - a], slopes[a:b]
        k = start(grades[a:b], choice, params, labels, g)
        value[q] = divide(struct(scores[a:b], labels, k, work, g), k, choice[2], g) if k > 0 else 0.0
    return -1


@list_function
def prec_ramp(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """`ramp` of lists."""
    scores, grades, _, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    work = workspace(longest_list(bounds))
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        labels, g = work[6, : b - a], slopes[a:b]
        k = start(grades[a:b], choice, params, labels, g)
        value[q] = divide(ramp(scores[a:b], labels, k, work, g), k, choice[2], g) if k > 0 else 0.0
    return -1


@list_function
def prec_avg(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """`avg` of lists."""
    scores, grades, _, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    work = workspace(longest_list(bounds))
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        labels, g = work[6, : b - a], slopes[a:b]
        k = start(grades[a:b], choice, params, labels, g)
        value[q] = divide(avg(scores[a:b], labels, k, work, g), k, choice[2], g) if k > 0 else 0.0
    return -1


@list_function
def prec_max(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """`maximum` of lists."""
    scores, grades, _, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    work = workspace(longest_list(bounds))
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        labels, g = work[6, : b - a], slopes[a:b]
        k = start(grades[a:b], choice, params, labels, g)
        value[q] = divide(maximum(scores[a:b], labels, k, work, g), k, choice[2], g) if k > 0 else 0.0
    return -1


@list_function
def perceptron_top(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """`perceptron` of lists; the last code says whether the reward is spread over all missed positives."""
    scores, grades, _, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    work = workspace(longest_list(bounds))
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        labels, g = work[6, : b - a], slopes[a:b]
        k = start(grades[a:b], choice, params, labels, g)
        value[q] = (
            divide(perceptron(scores[a:b], labels, k, choice[3] == 1, work, g), k, choice[2], g) if k > 0 else 0.0
        )
    return -1
