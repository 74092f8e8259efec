# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sums over pairs of documents of different grade, without the pairs, in O(n log n) for long lists.

With the scores sorted, the partners of a document inside the margin are a run; a Fenwick tree over the grades tells
how many of them (and with what sum) have a lower or a higher grade. In a short list all partners are looked at.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import REALS, near_above, near_below
from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list, number_grades, sort_down
from ..core.jit import inner_kernel, kernel

SHORT = 512
"""Lists up to this length are not sorted: a document is held against all of other grades, many at a time."""


@inner_kernel
def tree_add(tree, levels, code, value):
    """Add a value at a grade."""
    k = code + 1
    while k <= levels:
        tree[k] += value
        k += k & -k


@inner_kernel
def tree_below(tree, code):
    """Sum over the grades below `code`."""
    total, k = 0.0, code
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@inner_kernel
def pairs_of(level, levels, n, weight, count, ahead):
    """Σ over the pairs of different grade of the weight of the preferred document; without weights, their number."""
    for g in range(levels):
        count[g] = 0.0
        ahead[g] = 0.0
    for i in range(n):
        count[level[i]] += 1.0
        ahead[level[i]] += weight[i] if len(weight) > 0 else 1.0
    total = below = 0.0
    for g in range(levels):
        total += ahead[g] * below
        below += count[g]
    return total


@kernel
def count_pairs(y, ptr, weight, pairs):
    """pairs_q = number of document pairs of different grade in each list, or the sum of their weights."""
    longest = max(longest_list(ptr), 32) + 1
    ints, work = np.empty((3, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        levels = number_grades(y[a:b], ints[0], work[0], ints[1], work[1], ints[2])
        pairs[q] = pairs_of(ints[0], levels, b - a, weight[a:b], work[0], work[1])


@inner_kernel
def arranged(s, level, levels, order, t, keys2, order2, codes):
    """Arrange a list by falling score, or a short one by falling level; t are its scores as differences from the first.

    Near zero they lose fewer digits. `codes` are the levels in that order.
    """
    n = len(s)
    for i in range(n):
        t[i], order[i] = s[i] - s[0], i
    if n > SHORT:
        sort_down(t, order, n, keys2, order2)
    else:
        for g in range(levels + 1):
            order2[g] = 0
        for i in range(n):
            order2[levels - 1 - level[i]] += 1
        place = 0
        for g in range(levels):
            order2[g], place = place, place + order2[g]
        for i in range(n):
            at = order2[levels - 1 - level[i]]
            order2[levels - 1 - level[i]] += 1
            order[at], t[at] = i, s[i] - s[0]
    for i in range(n):
        codes[i] = level[order[i]]


@inner_kernel
def end_of_level(codes, start, n):
    """Where the documents of the level that begins at `start` end, in a list by falling level."""
    stop = start + 1
    while stop < n and codes[stop] == codes[start]:
        stop += 1
    return stop


@inner_kernel
def hinge_blocks(t, order, codes, n, squared, weight, work, grad, partners):
    """Σ c_i [1 − (s_i − s_j)]₊ over pairs i above j (or the squares) and its gradient, of a list by falling level.

    All pairs of different level are looked at, a block of documents at a time: up to some hundred documents this is
    faster than to sort them. `partners` is the weight of the pairs inside the margin that a document is in, by place.
    """
    c, lift, one, above, above_sum, below, below_sum = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    for i in range(n):
        c[i] = weight[order[i]] if len(weight) > 0 else 1.0
        lift[i], one[i] = c[i] * (1.0 - t[i]), 1.0
    start, loss = 0, 0.0
    while start < n:
        stop = end_of_level(codes, start, n)
        for first in range(start, stop, REALS):
            near_above(t, 0, start, first, (c, lift), (above, above_sum))
            near_below(t, stop, n, first, (one, t), (below, below_sum))
        start = stop
    for i in range(n):
        won = c[i] * (below[i] * (1.0 - t[i]) + below_sum[i])
        lost = above[i] * t[i] + above_sum[i]
        grad[order[i]] = 2.0 * (lost - won) if squared else above[i] - c[i] * below[i]
        loss += won * (1.0 - t[i]) + lost * t[i] if squared else won
        if len(partners) > 0:
            partners[i] = above[i] + c[i] * below[i]
    return loss


@inner_kernel
def hinge_sweeps(t, order, codes, levels, n, squared, weight, number, total, grad, partners):
    """The same of a list by falling score: two sweeps, down and up."""
    loss, noted = 0.0, len(partners) > 0
    for g in range(levels + 1):
        number[g] = 0.0
        total[g] = 0.0
    p = 0
    for i in range(n):  # each document as the one that should win, against the lower grades less than 1 behind it
        while p < n and t[i] - t[p] < 1.0:
            tree_add(number, levels, codes[p], 1.0)
            tree_add(total, levels, codes[p], t[p])
            p += 1
        c = weight[order[i]] if len(weight) > 0 else 1.0
        count = c * tree_below(number, codes[i])
        slack = count * (1.0 - t[i]) + c * tree_below(total, codes[i])
        grad[order[i]] = -2.0 * slack if squared else -count
        loss += slack * (1.0 - t[i]) if squared else slack
        if noted:
            partners[i] = count
    for g in range(levels + 1):
        number[g] = 0.0
        total[g] = 0.0
    p = n - 1
    inside, inside_sum = 0.0, 0.0
    for i in range(n - 1, -1, -1):  # each as the one that should lose, against the higher grades less than 1 ahead
        while p >= 0 and t[p] - t[i] < 1.0:
            c = weight[order[p]] if len(weight) > 0 else 1.0
            tree_add(number, levels, codes[p], c)
            tree_add(total, levels, codes[p], c * t[p])
            inside += c
            inside_sum += c * t[p]
            p -= 1
        count = inside - tree_below(number, codes[i] + 1)
        if squared:
            slack = count * (1.0 + t[i]) - (inside_sum - tree_below(total, codes[i] + 1))
            grad[order[i]] += 2.0 * slack
            loss += slack * t[i]
        else:
            grad[order[i]] += count
        if noted:
            partners[i] += count
    return loss


@inner_kernel
def hinge(s, y, weight, squared, normalize, ints, work, grad, t, codes, partners):
    """Return the loss of one list and what it was multiplied by: one over its pairs if `normalize`, else 1."""
    n, level, order = len(s), ints[0], ints[1]
    levels = number_grades(y, level, work[0], order, work[1], ints[2])
    arranged(s, level, levels, order, t, work[0], ints[2], codes)
    if n > SHORT:
        loss = hinge_sweeps(t, order, codes, levels, n, squared, weight, work[0], work[1], grad, partners)
    else:
        loss = hinge_blocks(t, order, codes, n, squared, weight, work, grad, partners)
    if not normalize:
        return loss, 1.0
    pairs = pairs_of(level, levels, n, weight, work[0], work[1])
    scale = 1.0 / pairs if pairs > 0.0 else 0.0
    for i in range(n):
        grad[i] *= scale
    return loss * scale, scale


@list_function
def pairwise_hinge(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """The (squared) hinge over the pairs of lists, a document's weight for the pairs in which it is preferred.

    Codes of its own: (squared, divide by the pairs).
    """
    scores, grades, doc_weight, _, bounds, choice, _, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    longest = max(longest_list(bounds), 32) + REALS
    ints, work, inside = np.empty((4, longest), np.int64), np.empty((8, longest)), np.empty(0)
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        value[q] = 0.0
        if a < b:
            own = doc_weight[a:b] if n_weights > 0 else doc_weight[:0]
            value[q], _ = hinge(
                scores[a:b], grades[a:b], own, choice[1] == 1, choice[2] == 1, ints, work, slopes[a:b], work[7],
                ints[3], inside,
            )  # fmt: skip
    return -1


@kernel
def squared_hinge(scores, y, ptr, weight, choice, factor, grad, order, codes, t, partners):
    """Return Σ_q factor_q · loss_q, and write its gradient and all that a Hessian product needs of the scores.

    That is each list as it was `arranged`, and the `partners`. `choice` are the codes of the list function; `factor` is
    divided by the pairs of each list if they say so.
    """
    longest = max(longest_list(ptr), 32) + REALS
    ints, work, whole = np.empty((4, longest), np.int64), np.empty((8, longest)), 0.0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        if a == b:
            continue
        own, slopes = weight[a:b] if len(weight) > 0 else weight, grad[a:b]
        loss, scale = hinge(
            scores[a:b], y[a:b], own, choice[1] == 1, choice[2] == 1, ints, work, slopes, work[7], ints[3],
            partners[a:b],
        )  # fmt: skip
        whole += factor[q] * loss
        for i in range(b - a):
            slopes[i] *= factor[q]
            order[a + i], codes[a + i], t[a + i] = ints[1, i], ints[3, i], work[7, i]
        factor[q] *= scale
    return whole


@kernel
def hessian_product(v, ptr, weight, order, codes, t, partners, factor, out):
    """out_i = 2 factor_q Σ_{active partners j} c (v_i − v_j), c the winner's weight: a product with the Hessian."""
    longest = max(longest_list(ptr), 32) + REALS
    work = np.empty((7, longest))
    mine, pull, c, above, below, s = work[0], work[1], work[2], work[3], work[4], work[5]
    for q in range(len(ptr) - 1):
        a, n, levels = ptr[q], ptr[q + 1] - ptr[q], np.int32(0)
        level = codes[a : a + n]
        for i in range(n):
            levels, s[i], mine[i] = max(levels, level[i] + np.int32(1)), t[a + i], v[a + order[a + i]]
            c[i] = weight[a + order[a + i]] if len(weight) > 0 else 1.0
            pull[i] = c[i] * mine[i]
        if n > SHORT:
            sweep_products(s, level, levels, n, mine, pull, work[6], above, below)
        else:
            start = 0
            while start < n:
                stop = end_of_level(level, start, n)
                for first in range(start, stop, REALS):
                    near_above(s, 0, start, first, (pull,), (above,))
                    near_below(s, stop, n, first, (mine,), (below,))
                start = stop
        for i in range(n):
            out[a + order[a + i]] = 2.0 * factor[q] * (partners[a + i] * mine[i] - c[i] * below[i] - above[i])


@inner_kernel
def sweep_products(t, codes, levels, n, mine, pull, total, above, below):
    """Σ of `pull` over the higher and of `mine` over the lower levels inside the margin of each, by falling score."""
    for g in range(levels + 1):
        total[g] = 0.0
    p = 0
    for i in range(n):
        while p < n and t[i] - t[p] < 1.0:
            tree_add(total, levels, codes[p], mine[p])
            p += 1
        below[i] = tree_below(total, codes[i])
    for g in range(levels + 1):
        total[g] = 0.0
    p, inside = n - 1, 0.0
    for i in range(n - 1, -1, -1):
        while p >= 0 and t[p] - t[i] < 1.0:
            tree_add(total, levels, codes[p], pull[p])
            inside += pull[p]
            p -= 1
        above[i] = inside - tree_below(total, codes[i] + 1)


@kernel
def misordered(scores, y, ptr, wrong, tied):
    """Count the pairs of different grade that the scores put the wrong way round, and those they leave tied."""
    longest = max(longest_list(ptr), 32) + 1
    ints, work = np.empty((3, longest), np.int64), np.empty((4, longest + 1))
    level, order, t, number, here = ints[0], ints[1], work[0], work[2], work[3]
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        wrong[q] = tied[q] = 0.0
        levels = number_grades(y[a:b], level, t, order, work[1], ints[2])
        for i in range(n):
            t[i], order[i] = scores[a + i], i
        sort_down(t, order, n, work[1], ints[2])
        for g in range(levels + 1):
            number[g] = here[g] = 0.0
        start = 0
        while start < n:
            stop = start
            while stop < n and t[stop] == t[start]:
                wrong[q] += tree_below(number, level[order[stop]])
                stop += 1
            for i in range(start, stop):
                tied[q] += (i - start) - here[level[order[i]]]
                here[level[order[i]]] += 1.0
                tree_add(number, levels, level[order[i]], 1.0)
            for i in range(start, stop):
                here[level[order[i]]] = 0.0
            start = stop
