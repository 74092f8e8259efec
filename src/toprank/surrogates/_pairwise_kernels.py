# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sums over pairs of documents of different grade, without the pairs, in O(n log n) for long lists.

In order of score, the partners of a document inside the margin stand next to each other; a Fenwick tree over the grades
tells how many of them (and with what sum) have a lower or a higher grade. In a short list every pair is looked at. The
level of a document is the number of its grade in its list, from 0 up. `ints`, `work` and names that end in 2 are
scratch arrays.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import REALS, near_above, near_below
from ..core._call_kernels import list_function
from ..core._order_kernels import number_grades, scratch_length, sort_down
from ..core.jit import inner_kernel, kernel

SHORT = 512
"""Lists up to this length are not sorted: a document is compared with all of other grades, many at a time."""


@inner_kernel
def tree_add(tree, levels, level, value):
    """Add a value at a level."""
    k = level + 1
    while k <= levels:
        tree[k] += value
        k += k & -k


@inner_kernel
def tree_below(tree, level):
    """Sum over the levels below `level`."""
    total, k = 0.0, level
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@inner_kernel
def total_pair_weight(level, levels, n, weight, count, ahead):
    """Σ over the pairs of different level of the weight of the preferred document; without weights, their number."""
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
    longest = scratch_length(ptr, 1)
    ints, work = np.empty((3, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        levels = number_grades(y[a:b], ints[0], work[0], ints[1], work[1], ints[2])
        pairs[q] = total_pair_weight(ints[0], levels, b - a, weight[a:b], work[0], work[1])


@inner_kernel
def arrange(s, level, levels, order, t, keys2, next_place, sorted_level):
    """Put a list in order: by falling score, or a short one by falling level.

    In that order, t are the scores minus that of the first row, because numbers near 0 lose fewer digits, and
    `sorted_level` are the levels.
    """
    n = len(s)
    for i in range(n):
        t[i], order[i] = s[i] - s[0], i
    if n > SHORT:
        sort_down(t, order, n, keys2, next_place)
    else:
        for g in range(levels + 1):
            next_place[g] = 0
        for i in range(n):
            next_place[levels - 1 - level[i]] += 1
        before = 0
        for g in range(levels):
            next_place[g], before = before, before + next_place[g]
        for i in range(n):
            place = next_place[levels - 1 - level[i]]
            next_place[levels - 1 - level[i]] += 1
            order[place], t[place] = i, s[i] - s[0]
    for i in range(n):
        sorted_level[i] = level[order[i]]


@inner_kernel
def end_of_level(level, start, n):
    """Where the documents of the level that begins at `start` end, in a list by falling level."""
    stop = start + 1
    while stop < n and level[stop] == level[start]:
        stop += 1
    return stop


@inner_kernel
def hinge_blocks(t, order, level, n, squared, weight, work, grad, partners):
    """Σ c_i [1 − (s_i − s_j)]₊ over pairs i above j (or the squares) and its gradient, of a list by falling level.

    All pairs of different level are looked at, a block of documents at a time: up to some hundred documents this is
    faster than sorting. partners[p] is the total weight of the pairs inside the margin with the document at place p.
    """
    c, c_slack, one, above, above_sum, below, below_sum = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    for i in range(n):
        c[i] = weight[order[i]] if len(weight) > 0 else 1.0
        c_slack[i], one[i] = c[i] * (1.0 - t[i]), 1.0
    start, loss = 0, 0.0
    while start < n:
        stop = end_of_level(level, start, n)
        for first in range(start, stop, REALS):
            near_above(t, 0, start, first, (c, c_slack), (above, above_sum))
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
def hinge_sweeps(t, order, level, levels, n, squared, weight, number, total, grad, partners):
    """The same of a list by falling score, in two passes: down and up."""
    loss, wanted = 0.0, len(partners) > 0
    for g in range(levels + 1):
        number[g] = 0.0
        total[g] = 0.0
    p = 0
    for i in range(n):  # as the one that should win, against lower grades that are less than 1 behind it
        while p < n and t[i] - t[p] < 1.0:
            tree_add(number, levels, level[p], 1.0)
            tree_add(total, levels, level[p], t[p])
            p += 1
        c = weight[order[i]] if len(weight) > 0 else 1.0
        count = c * tree_below(number, level[i])
        slack = count * (1.0 - t[i]) + c * tree_below(total, level[i])
        grad[order[i]] = -2.0 * slack if squared else -count
        loss += slack * (1.0 - t[i]) if squared else slack
        if wanted:
            partners[i] = count
    for g in range(levels + 1):
        number[g] = 0.0
        total[g] = 0.0
    p = n - 1
    inside, inside_sum = 0.0, 0.0
    for i in range(n - 1, -1, -1):  # as the one that should lose, against higher grades that are less than 1 ahead
        while p >= 0 and t[p] - t[i] < 1.0:
            c = weight[order[p]] if len(weight) > 0 else 1.0
            tree_add(number, levels, level[p], c)
            tree_add(total, levels, level[p], c * t[p])
            inside += c
            inside_sum += c * t[p]
            p -= 1
        count = inside - tree_below(number, level[i] + 1)
        if squared:
            slack = count * (1.0 + t[i]) - (inside_sum - tree_below(total, level[i] + 1))
            grad[order[i]] += 2.0 * slack
            loss += slack * t[i]
        else:
            grad[order[i]] += count
        if wanted:
            partners[i] += count
    return loss


@inner_kernel
def hinge(s, y, weight, squared, normalize, ints, work, grad, t, sorted_level, partners):
    """Return the loss of one list, and by what it was multiplied: one over its pairs if `normalize`, else 1."""
    n, level, order = len(s), ints[0], ints[1]
    levels = number_grades(y, level, work[0], order, work[1], ints[2])
    arrange(s, level, levels, order, t, work[0], ints[2], sorted_level)
    if n > SHORT:
        loss = hinge_sweeps(t, order, sorted_level, levels, n, squared, weight, work[0], work[1], grad, partners)
    else:
        loss = hinge_blocks(t, order, sorted_level, n, squared, weight, work, grad, partners)
    if not normalize:
        return loss, 1.0
    pairs = total_pair_weight(level, levels, n, weight, work[0], work[1])
    scale = 1.0 / pairs if pairs > 0.0 else 0.0
    for i in range(n):
        grad[i] *= scale
    return loss * scale, scale


@list_function
def pairwise_hinge(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """The (squared) hinge over the pairs of lists; a document's weight counts for the pairs in which it is preferred.

    Codes of its own: (squared, divide by the pairs).
    """
    longest = scratch_length(ptr, REALS)
    ints, work, no_partners = np.empty((4, longest), np.int64), np.empty((8, longest)), np.empty(0)
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        if a < b:
            list_weight = weight[a:b] if len(weight) > 0 else weight[:0]
            losses[q], _ = hinge(
                s[a:b], y[a:b], list_weight, codes[1] == 1, codes[2] == 1, ints, work, grad[a:b], work[7],
                ints[3], no_partners,
            )  # fmt: skip
    return -1


@kernel
def squared_hinge(scores, y, ptr, weight, codes, factor, grad, order, level, t, partners):
    """Return Σ_q factor_q · loss_q, and write its gradient and all that a Hessian product needs of the scores.

    That is what `arrange` wrote of each list, and `partners`. `codes` are those of the list function; `factor` is
    divided by the number of pairs of each list if they say so.
    """
    longest = scratch_length(ptr, REALS)
    ints, work, total = np.empty((4, longest), np.int64), np.empty((8, longest)), 0.0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        if a == b:
            continue
        list_weight, list_grad = weight[a:b] if len(weight) > 0 else weight, grad[a:b]
        loss, scale = hinge(
            scores[a:b], y[a:b], list_weight, codes[1] == 1, codes[2] == 1, ints, work, list_grad, work[7], ints[3],
            partners[a:b],
        )  # fmt: skip
        total += factor[q] * loss
        for i in range(b - a):
            list_grad[i] *= factor[q]
            order[a + i], level[a + i], t[a + i] = ints[1, i], ints[3, i], work[7, i]
        factor[q] *= scale
    return total


@kernel
def hessian_product(v, ptr, weight, order, level, t, partners, factor, out):
    """out_i = 2 factor_q Σ_j c (v_i − v_j) over the pairs inside the margin, c the preferred document's weight: H v."""
    longest = scratch_length(ptr, REALS)
    work = np.empty((7, longest))
    own_v, weighted_v, c, above, below, s = work[0], work[1], work[2], work[3], work[4], work[5]
    for q in range(len(ptr) - 1):
        a, n, levels = ptr[q], ptr[q + 1] - ptr[q], np.int32(0)
        list_level = level[a : a + n]
        for i in range(n):
            levels, s[i], own_v[i] = max(levels, list_level[i] + np.int32(1)), t[a + i], v[a + order[a + i]]
            c[i] = weight[a + order[a + i]] if len(weight) > 0 else 1.0
            weighted_v[i] = c[i] * own_v[i]
        if n > SHORT:
            sweep_products(s, list_level, levels, n, own_v, weighted_v, work[6], above, below)
        else:
            start = 0
            while start < n:
                stop = end_of_level(list_level, start, n)
                for first in range(start, stop, REALS):
                    near_above(s, 0, start, first, (weighted_v,), (above,))
                    near_below(s, stop, n, first, (own_v,), (below,))
                start = stop
        for i in range(n):
            out[a + order[a + i]] = 2.0 * factor[q] * (partners[a + i] * own_v[i] - c[i] * below[i] - above[i])


@inner_kernel
def sweep_products(t, level, levels, n, own_v, weighted_v, total, above, below):
    """above, below = Σ of weighted_v over higher and of own_v over lower levels inside the margin; by falling score."""
    for g in range(levels + 1):
        total[g] = 0.0
    p = 0
    for i in range(n):
        while p < n and t[i] - t[p] < 1.0:
            tree_add(total, levels, level[p], own_v[p])
            p += 1
        below[i] = tree_below(total, level[i])
    for g in range(levels + 1):
        total[g] = 0.0
    p, inside = n - 1, 0.0
    for i in range(n - 1, -1, -1):
        while p >= 0 and t[p] - t[i] < 1.0:
            tree_add(total, levels, level[p], weighted_v[p])
            inside += weighted_v[p]
            p -= 1
        above[i] = inside - tree_below(total, level[i] + 1)


@kernel
def misordered(scores, y, ptr, wrong, tied):
    """Count the pairs of different grade that the scores put the wrong way round, and those they leave tied."""
    longest = scratch_length(ptr, 1)
    ints, work = np.empty((3, longest), np.int64), np.empty((4, longest + 1))
    level, order, t, number, in_group = ints[0], ints[1], work[0], work[2], work[3]
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        wrong[q] = tied[q] = 0.0
        levels = number_grades(y[a:b], level, t, order, work[1], ints[2])
        for i in range(n):
            t[i], order[i] = scores[a + i], i
        sort_down(t, order, n, work[1], ints[2])
        for g in range(levels + 1):
            number[g] = in_group[g] = 0.0
        start = 0
        while start < n:
            stop = start
            while stop < n and t[stop] == t[start]:
                wrong[q] += tree_below(number, level[order[stop]])
                stop += 1
            for i in range(start, stop):
                tied[q] += (i - start) - in_group[level[order[i]]]
                in_group[level[order[i]]] += 1.0
                tree_add(number, levels, level[order[i]], 1.0)
            for i in range(start, stop):
                in_group[level[order[i]]] = 0.0
            start = stop
