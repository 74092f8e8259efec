# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sums over pairs of documents of different grade.

In a short list every pair is looked at, in loops that the compiler turns into SIMD. A long list is put in order of
score: the partners of a document inside the margin then stand next to each other, and a Fenwick tree over the grades
tells how many of them (and with what sum) have a lower or a higher grade, in O(n log n).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel, sum_kernel
from ..core.sorting import grade_levels, order_by_level, sort_down

SHORT = 512
"""In lists up to this length every pair is looked at."""


class HingeRule(NamedTuple):
    """Which hinge it is."""

    squared: bool
    normalize: bool
    """Whether a list's sum is divided by the total weight of its pairs."""


@kernel
def tree_add(tree, level, value):
    """Add a value at a level."""
    k = level + 1
    while k < len(tree):
        tree[k] += value
        k += k & -k


@kernel
def tree_below(tree, level):
    """Sum over the levels below `level`."""
    total, k = 0.0, level
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel
def total_pair_weight(level, levels, weight):
    """Σ over the pairs of different level of the weight of the preferred document; without weights, their number."""
    count, preferred = np.zeros(levels), np.zeros(levels)
    for i in range(len(level)):
        count[level[i]] += 1.0
        preferred[level[i]] += weight[i] if len(weight) > 0 else 1.0
    total = below = 0.0
    for g in range(levels):
        total += preferred[g] * below
        below += count[g]
    return total


@kernel
def count_pairs(y, ptr, weight, pairs):
    """pairs_q = number of document pairs of different grade in each list, or the sum of their weights."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        level = np.empty(b - a, np.int64)
        levels = grade_levels(y[a:b], level)
        pairs[q] = total_pair_weight(level, levels, weight[a:b])


@kernel
def arrange(s, level, levels, weight):
    """Return an order of the documents, and in that order their scores t, levels and weights c.

    A short list stands by falling level, a long one by falling score. The scores are taken from that of the first row,
    because numbers near 0 lose fewer digits.
    """
    n = len(s)
    t, by_place, c = np.empty(n), np.empty(n, np.int64), np.ones(n)
    if n > SHORT:
        order, falling = np.arange(n), s.copy()
        sort_down(falling, order)
    else:
        order = order_by_level(level, levels)
    for p in range(n):
        t[p], by_place[p] = s[order[p]] - s[0], level[order[p]]
        if len(weight) > 0:
            c[p] = weight[order[p]]
    return order, t, by_place, c


@sum_kernel
def hinges_below(t_i, c_i, t, lost):
    """Compare a document with those below its grade: return the number and the sum of its hinges [1 − (t_i − t_j)]₊.

    lost_j += c_i where the hinge is not 0.
    """
    number = total = 0.0
    for j in range(len(t)):
        hinge = 1.0 - (t_i - t[j])
        inside = 1.0 if hinge > 0.0 else 0.0
        number += inside
        total += inside * hinge
        lost[j] += c_i * inside
    return number, total


@sum_kernel
def squared_hinges_below(t_i, c_i, t, lost):
    """The same for squares: return the sum of the hinges and that of their squares; lost_j += c_i · hinge."""
    total = squares = 0.0
    for j in range(len(t)):
        hinge = 1.0 - (t_i - t[j])
        hinge = hinge if hinge > 0.0 else 0.0
        total += hinge
        squares += hinge * hinge
        lost[j] += c_i * hinge
    return total, squares


@kernel
def end_of_level(level, start):
    """Where the documents of the level that begins at `start` end, in a list by falling level."""
    stop = start + 1
    while stop < len(level) and level[stop] == level[start]:
        stop += 1
    return stop


@kernel
def hinge_by_pairs(t, level, c, squared, won, lost):
    """Return Σ c_i [1 − (t_i − t_j)]₊ over pairs i above j, or the sum of squares, of a list by falling level.

    won_i and lost_j are the numbers of hinges that are not 0, those of lost weighted by c; of squares, their sums.
    """
    loss, start = 0.0, 0
    while start < len(t):
        stop = end_of_level(level, start)
        lower, lost_by_lower = t[stop:], lost[stop:]
        for i in range(start, stop):
            if squared:
                won[i], value = squared_hinges_below(t[i], c[i], lower, lost_by_lower)
            else:
                won[i], value = hinges_below(t[i], c[i], lower, lost_by_lower)
            loss += c[i] * value
        start = stop
    return loss


@kernel
def hinge_by_score(t, level, levels, c, squared, won, lost):
    """The same of a list by falling score, in two passes: down and up."""
    n, loss, p = len(t), 0.0, 0
    number, total = np.zeros(levels + 1), np.zeros(levels + 1)
    for i in range(n):  # as the one that should win, against lower grades that are less than 1 behind it
        while p < n and t[i] - t[p] < 1.0:
            tree_add(number, level[p], 1.0)
            tree_add(total, level[p], t[p])
            p += 1
        count = tree_below(number, level[i])
        hinges = count * (1.0 - t[i]) + tree_below(total, level[i])
        won[i] = hinges if squared else count
        loss += c[i] * hinges * (1.0 - t[i] if squared else 1.0)
    number[:] = 0.0
    total[:] = 0.0
    p, all_number, all_total = n - 1, 0.0, 0.0
    for i in range(n - 1, -1, -1):  # as the one that should lose, against higher grades that are less than 1 ahead
        while p >= 0 and t[p] - t[i] < 1.0:
            tree_add(number, level[p], c[p])
            tree_add(total, level[p], c[p] * t[p])
            all_number += c[p]
            all_total += c[p] * t[p]
            p -= 1
        lost[i] = all_number - tree_below(number, level[i] + 1)
        if squared:  # Σ c h² = Σ c h (1 − t_i) + Σ c h t_j
            lost[i] = lost[i] * (1.0 + t[i]) - (all_total - tree_below(total, level[i] + 1))
            loss += lost[i] * t[i]
    return loss


@kernel
def hinge_of_list(s, y, doc_weight, rule, g):
    """Σ_{y_i>y_j} c_i [1 − (s_i − s_j)]₊ or the sum of squares, c_i the weight of document i; g is its gradient.

    `doc_weight` has length 0 where there are no weights.
    """
    n = len(s)
    if n == 0:
        return 0.0
    level = np.empty(n, np.int64)
    levels = grade_levels(y, level)
    order, t, by_place, c = arrange(s, level, levels, doc_weight)
    won, lost = np.empty(n), np.zeros(n)
    if n > SHORT:
        loss = hinge_by_score(t, by_place, levels, c, rule.squared, won, lost)
    else:
        loss = hinge_by_pairs(t, by_place, c, rule.squared, won, lost)
    scale = list_scale(level, levels, doc_weight, rule)
    factor = 2.0 * scale if rule.squared else scale
    for p in range(n):
        g[order[p]] = factor * (lost[p] - c[p] * won[p])
    return scale * loss


@kernel
def list_scale(level, levels, doc_weight, rule):
    """By what a list's sum is multiplied: one over the total weight of its pairs if `normalize`, else 1."""
    if not rule.normalize:
        return 1.0
    pairs = total_pair_weight(level, levels, doc_weight)
    return 1.0 / pairs if pairs > 0.0 else 0.0


@kernel
def hinge_of_lists(s, y, ptr, doc_weight, rule, losses, grad):
    """The hinge of each list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        c = doc_weight[a:b] if len(doc_weight) > 0 else doc_weight[:0]
        losses[q] = hinge_of_list(s[a:b], y[a:b], c, rule, grad[a:b])


@sum_kernel
def differences_below(t_i, v_i, c_i, t, v, out):
    """Return Σ_j (v_i − v_j) over the lower-graded documents less than 1 behind t_i; out_j −= c_i (v_i − v_j)."""
    total = 0.0
    for j in range(len(t)):
        difference = v_i - v[j] if t_i - t[j] < 1.0 else 0.0
        total += difference
        out[j] -= c_i * difference
    return total


@kernel
def differences_by_pairs(t, level, c, v, out):
    """out_i += Σ_j c (v_i − v_j) over the pairs inside the margin, c the preferred one's weight, by falling level."""
    start = 0
    while start < len(t):
        stop = end_of_level(level, start)
        lower, v_lower, out_lower = t[stop:], v[stop:], out[stop:]
        for i in range(start, stop):
            out[i] += c[i] * differences_below(t[i], v[i], c[i], lower, v_lower, out_lower)
        start = stop


@kernel
def differences_by_score(t, level, c, v, out):
    """The same of a list by falling score, in two passes: down and up."""
    n, levels, p = len(t), level.max() + 1, 0
    number, total = np.zeros(levels + 1), np.zeros(levels + 1)
    for i in range(n):
        while p < n and t[i] - t[p] < 1.0:
            tree_add(number, level[p], 1.0)
            tree_add(total, level[p], v[p])
            p += 1
        out[i] += c[i] * (tree_below(number, level[i]) * v[i] - tree_below(total, level[i]))
    number[:] = 0.0
    total[:] = 0.0
    p, all_number, all_total = n - 1, 0.0, 0.0
    for i in range(n - 1, -1, -1):
        while p >= 0 and t[p] - t[i] < 1.0:
            tree_add(number, level[p], c[p])
            tree_add(total, level[p], c[p] * v[p])
            all_number += c[p]
            all_total += c[p] * v[p]
            p -= 1
        above = all_number - tree_below(number, level[i] + 1)
        out[i] += above * v[i] - (all_total - tree_below(total, level[i] + 1))


class Arranged(NamedTuple):
    """Lists as `arrange` puts them: for each place the document's row in its list, score, level and weight."""

    order: Any
    t: Any
    level: Any
    c: Any


@kernel
def arrange_lists(s, y, ptr, doc_weight, rule, arranged, factor):
    """Fill `arranged`, all that a Hessian product needs of the scores; factor_q *= the list's scale."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        if a == b:
            continue
        weight = doc_weight[a:b] if len(doc_weight) > 0 else doc_weight[:0]
        level = np.empty(b - a, np.int64)
        levels = grade_levels(y[a:b], level)
        order, t, by_place, c = arrange(s[a:b], level, levels, weight)
        for i in range(b - a):
            arranged.order[a + i], arranged.t[a + i] = order[i], t[i]
            arranged.level[a + i], arranged.c[a + i] = by_place[i], c[i]
        factor[q] *= list_scale(level, levels, weight, rule)


@kernel
def hessian_product(v, ptr, arranged, factor, out):
    """out_i = 2 factor_q Σ_j c (v_i − v_j) over the pairs inside the margin, c the preferred document's weight: H v."""
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        if n == 0:
            continue
        order, t, level, c = arranged.order[a:], arranged.t[a : a + n], arranged.level[a : a + n], arranged.c[a : a + n]
        own_v, product = np.empty(n), np.zeros(n)
        for p in range(n):
            own_v[p] = v[a + order[p]]
        if n > SHORT:
            differences_by_score(t, level, c, own_v, product)
        else:
            differences_by_pairs(t, level, c, own_v, product)
        for p in range(n):
            out[a + order[p]] = 2.0 * factor[q] * product[p]


@kernel
def misordered(scores, y, ptr, wrong, tied):
    """Count the pairs of different grade that the scores put the wrong way round, and those they leave tied."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        level, order, s = np.empty(b - a, np.int64), np.arange(b - a), scores[a:b].copy()
        levels = grade_levels(y[a:b], level)
        sort_down(s, order)
        ahead, in_group = np.zeros(levels + 1), np.zeros(levels)
        wrong[q] = tied[q] = 0.0
        start = 0
        while start < b - a:
            stop = start
            while stop < b - a and s[stop] == s[start]:
                wrong[q] += tree_below(ahead, level[order[stop]])
                stop += 1
            for i in range(start, stop):
                tied[q] += (i - start) - in_group[level[order[i]]]
                in_group[level[order[i]]] += 1.0
                tree_add(ahead, level[order[i]], 1.0)
            for i in range(start, stop):
                in_group[level[order[i]]] = 0.0
            start = stop
