# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sums over pairs of documents of different grade, in O(n log n) per list and without the pairs.

With the scores sorted, the partners of a document inside the margin are a run; a Fenwick tree over the grades tells
how many of them (and with what sum) have a lower or a higher grade.
"""

from __future__ import annotations

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list, number_grades, sort_down
from ..core.jit import inner_kernel, kernel


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
def sort_list(s, keys, order, keys2, order2):
    """Sort one list by falling score, as differences from its first: near zero they lose fewer digits."""
    for i in range(len(s)):
        keys[i], order[i] = s[i] - s[0], i
    sort_down(keys, order, len(s), keys2, order2)


@inner_kernel
def hinge_sweeps(t, order, level, levels, n, squared, weight, number, total, grad, ahead, behind, partners):
    """Σ c_i [1 − (s_i − s_j)]₊ over pairs i above j (or the squares) and its gradient, by two sweeps down and up.

    Where there is room for it, at sorted place i: `ahead` is where the run of possible losers ends, `behind` where the
    run of possible winners begins, `partners` the weight of the pairs inside the margin that the document is in.
    """
    loss, noted = 0.0, len(partners) > 0
    for g in range(levels + 1):
        number[g] = 0.0
        total[g] = 0.0
    p = 0
    for i in range(n):  # each document as the one that should win, against the lower grades less than 1 behind it
        while p < n and t[i] - t[p] < 1.0:
            tree_add(number, levels, level[order[p]], 1.0)
            tree_add(total, levels, level[order[p]], t[p])
            p += 1
        c = weight[order[i]] if len(weight) > 0 else 1.0
        count = c * tree_below(number, level[order[i]])
        slack = count * (1.0 - t[i]) + c * tree_below(total, level[order[i]])
        grad[order[i]] = -2.0 * slack if squared else -count
        loss += slack * (1.0 - t[i]) if squared else slack
        if noted:
            ahead[i], partners[i] = p, count
    for g in range(levels + 1):
        number[g] = 0.0
        total[g] = 0.0
    p = n - 1
    inside, inside_sum = 0.0, 0.0
    for i in range(n - 1, -1, -1):  # each as the one that should lose, against the higher grades less than 1 ahead
        while p >= 0 and t[p] - t[i] < 1.0:
            c = weight[order[p]] if len(weight) > 0 else 1.0
            tree_add(number, levels, level[order[p]], c)
            tree_add(total, levels, level[order[p]], c * t[p])
            inside += c
            inside_sum += c * t[p]
            p -= 1
        count = inside - tree_below(number, level[order[i]] + 1)
        if squared:
            slack = count * (1.0 + t[i]) - (inside_sum - tree_below(total, level[order[i]] + 1))
            grad[order[i]] += 2.0 * slack
            loss += slack * t[i]
        else:
            grad[order[i]] += count
        if noted:
            behind[i] = p
            partners[i] += count
    return loss


@list_function
def pairwise_hinge(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """The (squared) hinge over the pairs of lists, a document's weight for the pairs in which it is preferred.

    Codes of its own: (squared, divide by the pairs).
    """
    scores, grades, doc_weight, _, bounds, choice, _, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    longest = max(longest_list(bounds), 32) + 1
    ints, work = np.empty((4, longest), np.int64), np.empty((4, longest + 1))
    level, order, keys, nowhere = ints[0], ints[1], work[0], np.empty(0, np.int32)
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        n = b - a
        value[q] = 0.0
        if n == 0:
            continue
        levels = number_grades(grades[a:b], level, keys, order, work[1], ints[2])
        own, here = doc_weight[a:b] if n_weights > 0 else doc_weight[:0], slopes[a:b]
        sort_list(scores[a:b], keys, order, work[1], ints[2])
        value[q] = hinge_sweeps(
            keys, order, level, levels, n, choice[1] == 1, own, work[2], work[3], here, nowhere, nowhere, work[0, :0]
        )
        if choice[2] == 1:
            pairs = pairs_of(level, levels, n, own, work[2], work[3])
            scale = 1.0 / pairs if pairs > 0.0 else 0.0
            value[q] *= scale
            for i in range(n):
                here[i] *= scale
    return -1


@kernel
def squared_hinge(scores, y, ptr, weight, normalize, factor, grad, order, codes, ahead, behind, partners):
    """Return Σ_q factor_q · loss_q, and write its gradient and all that a Hessian product needs of the scores.

    That is the order of each list by score with its grades, and the runs of `hinge_sweeps`. `factor` is divided by the
    pairs of each list if `normalize`.
    """
    longest = max(longest_list(ptr), 32) + 1
    ints, work, whole = np.empty((3, longest), np.int64), np.empty((4, longest + 1)), 0.0
    level, here = ints[0], ints[1]
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n == 0:
            continue
        levels = number_grades(y[a:b], level, work[0], here, work[1], ints[2])
        own, slopes = weight[a:b] if len(weight) > 0 else weight, grad[a:b]
        if normalize:
            pairs = pairs_of(level, levels, n, own, work[2], work[3])
            factor[q] *= 1.0 / pairs if pairs > 0.0 else 0.0
        sort_list(scores[a:b], work[0], here, work[1], ints[2])
        loss = hinge_sweeps(
            work[0], here, level, levels, n, True, own, work[2], work[3], slopes, ahead[a:b], behind[a:b], partners[a:b]
        )
        whole += factor[q] * loss
        for i in range(n):
            order[a + i], codes[a + i] = here[i], level[here[i]]
            slopes[i] *= factor[q]
    return whole


@kernel
def hessian_product(v, ptr, weight, order, codes, ahead, behind, partners, factor, out):
    """out_i = 2 factor_q Σ_{active partners j} c (v_i − v_j), c the winner's weight: a product with the Hessian."""
    total, longest = np.empty(max(longest_list(ptr), 32) + 2), longest_list(ptr)
    mine, pull = np.empty(longest), np.empty(longest)
    for q in range(len(ptr) - 1):
        a, n, levels = ptr[q], ptr[q + 1] - ptr[q], np.int32(0)
        for i in range(n):
            levels = max(levels, codes[a + i] + np.int32(1))
            mine[i] = v[a + order[a + i]]
            pull[i] = mine[i] * weight[a + order[a + i]] if len(weight) > 0 else mine[i]
        for g in range(levels + 1):
            total[g] = 0.0
        p = 0
        for i in range(n):
            while p < ahead[a + i]:
                tree_add(total, levels, codes[a + p], mine[p])
                p += 1
            c = weight[a + order[a + i]] if len(weight) > 0 else 1.0
            out[a + order[a + i]] = partners[a + i] * mine[i] - c * tree_below(total, codes[a + i])
        for g in range(levels + 1):
            total[g] = 0.0
        p, inside = n - 1, 0.0
        for i in range(n - 1, -1, -1):
            while p > behind[a + i]:
                tree_add(total, levels, codes[a + p], pull[p])
                inside += pull[p]
                p -= 1
            at = a + order[a + i]
            out[at] = 2.0 * factor[q] * (out[at] - (inside - tree_below(total, codes[a + i] + 1)))


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
