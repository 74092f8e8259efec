# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Margin losses of lists: SLAM and the largest hinge, both from the best score below each grade.

SLAM. Codes: (count of numbers, grades are binary, gain, k or 0, equal grades in order of score, discount); numbers: (Δ,
threshold of relevance, discounts of the first places). Minimax. Codes: (count of numbers, grades are binary); numbers:
(Δ, threshold of relevance). `ints`, `work`, `keys` and names that end in 2 are scratch arrays.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import list_function
from ..core._order_kernels import number_grades, order_down, scratch_length
from ..core.jit import inner_kernel, kernel
from ..measures._value_kernels import discount_at, gain_of

NO_DISCOUNT = 2
"""No discount: all places count 1."""


@inner_kernel
def levels_of(y, binary, above, level, keys, order, keys2, order2):
    """level = the rank of a document's grade in its list from 0 up, or relevant or not; return the number of levels."""
    if not binary:
        return number_grades(y, level, keys, order, keys2, order2)
    for i in range(len(y)):
        level[i] = y[i] > above
    return 2


@inner_kernel
def slam_weights(s, y, binary, gain, k, by_score, discount, table, level, levels, v, keys, keys2, ints):
    """v_i = G(R_i) D(pos(i)) / Z for pos(i) ≤ k, else 0 (Eq. 10, 11, 24), and the documents by position in ints[0].

    Documents stand by falling grade, inside a grade by index or by score. Returns how many have a weight: 0 where no
    document has a gain, −1 where gains are too large to add up.
    """
    n, n_kept = len(y), 0
    order, kept, place, spare, rank = ints[0], ints[1], ints[2], ints[3], ints[4]
    places = n if k == 0 else min(k, n)
    for g in range(levels):
        place[g] = 0
    for i in range(n):
        place[level[i]] += 1
        v[i] = 0.0
    lowest, above_it = levels - 1, place[levels - 1]
    while above_it < places:
        lowest -= 1
        above_it += place[lowest]
    for i in range(n):  # only documents that can be among the first k need an order
        kept[n_kept] = i
        keys[n_kept] = s[i]
        n_kept += level[i] >= lowest
    if by_score:
        order_down(keys, kept, n_kept, rank, keys2, spare)
    before = 0
    for g in range(levels - 1, lowest - 1, -1):
        count = place[g]
        place[g] = before
        before += count
    for p in range(n_kept):
        g = level[kept[p]]
        order[place[g]] = kept[p]
        place[g] += 1
    norm = 0.0
    for p in range(places):
        i = order[p]
        worth = float(level[i]) if binary else gain_of(y[i], gain)
        v[i] = worth if discount == NO_DISCOUNT else worth * discount_at(p, table, discount)
        norm += v[i]
    if not math.isfinite(norm):
        return -1
    for p in range(places):
        v[order[p]] = v[order[p]] / norm if norm > 0.0 else 0.0
    return places if norm > 0.0 else 0


@inner_kernel
def find_best_below(s, level, levels, best_below):
    """best_below[g] = the best-scored document of a level below g, the first of equals; −1 where there is none."""
    for g in range(levels):
        best_below[g] = -1
    for i in range(len(s)):
        g = level[i]
        if best_below[g] < 0 or s[i] > s[best_below[g]]:
            best_below[g] = i
    best = -1
    for g in range(levels):
        own_best = best_below[g]
        best_below[g] = best
        if own_best >= 0 and (best < 0 or s[own_best] > s[best] or (s[own_best] == s[best] and own_best < best)):
            best = own_best


@inner_kernel
def hinges(s, v, n_weighted, margin, order, level, best_below, grad):
    """Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i) (Eq. 9), and its subgradient (Eq. 13, 16)."""
    value = 0.0
    for p in range(n_weighted):
        i = order[p]
        below = best_below[level[i]]
        if below < 0:
            break
        hinge = margin + s[below] - s[i]
        if hinge > 0.0:
            value += v[i] * hinge
            grad[i] -= v[i]
            grad[below] += v[i]
    return value


@list_function
def slam(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """SLAM of lists; a document's weight multiplies its v."""
    longest = scratch_length(ptr, 1)
    ints, work = np.empty((7, longest), np.int64), np.empty((3, longest))
    level, best_below, v, keys, keys2 = ints[5], ints[6], work[0], work[1], work[2]
    binary, margin, above = codes[1] == 1, numbers[0], numbers[1]
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        for i in range(a, b):
            grad[i] = 0.0
        if b - a < 2:
            continue
        list_s, list_y = s[a:b], y[a:b]
        levels = levels_of(list_y, binary, above, level, keys, ints[0], keys2, ints[1])
        n_weighted = slam_weights(
            list_s, list_y, binary, codes[2], codes[3], codes[4] == 1, codes[5], numbers[2:], level, levels, v, keys,
            keys2, ints,
        )  # fmt: skip
        if n_weighted < 0:
            return q
        if len(weight) > 0:
            for i in range(b - a):
                v[i] *= weight[a + i]
        find_best_below(list_s, level, levels, best_below)
        losses[q] = hinges(list_s, v, n_weighted, margin, ints[0], level, best_below, grad[a:b])
    return -1


@kernel
def weights_of_lists(s, y, ptr, codes, numbers, v):
    """v = the SLAM weights of every document; return −1 or the list whose gains are too large."""
    longest = scratch_length(ptr, 1)
    ints, work = np.empty((7, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        if a == b:
            continue
        list_y, level = y[a:b], ints[5]
        levels = levels_of(list_y, codes[1] == 1, numbers[1], level, work[0], ints[0], work[1], ints[1])
        found = slam_weights(
            s[a:b], list_y, codes[1] == 1, codes[2], codes[3], codes[4] == 1, codes[5], numbers[2:], level, levels,
            v[a:b], work[0], work[1], ints,
        )  # fmt: skip
        if found < 0:
            return q
    return -1


@kernel
def best_below_of_lists(s, y, ptr, codes, numbers, best_below):
    """best_below[i] = the best-scored document of a grade below that of i in its list; −1 where there is none.

    Codes and numbers are those of SLAM or Minimax.
    """
    longest = scratch_length(ptr, 1)
    ints, work = np.empty((4, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        level, of_level = ints[0], ints[1]
        levels = levels_of(y[a:b], codes[1] == 1, numbers[1], level, work[0], ints[2], work[1], ints[3])
        find_best_below(s[a:b], level, levels, of_level)
        for i in range(b - a):
            best_below[a + i] = a + of_level[level[i]] if of_level[level[i]] >= 0 else -1


@inner_kernel
def largest_hinges(s, y, ptr, codes, numbers, losses, grad, ints, work):
    """max_{R_i>R_j} (Δ + s_j − s_i)₊ of lists (Eq. 27): the best score below each grade against its worst (Eq. 29)."""
    level, high, low = ints[0], work[0], work[1]
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        for i in range(a, b):
            grad[i] = 0.0
        if b - a < 2:
            continue
        list_s = s[a:b]
        levels = levels_of(y[a:b], codes[1] == 1, numbers[1], level, high, ints[1], low, ints[2])
        for g in range(levels):
            high[g], low[g] = -math.inf, math.inf
        for i in range(b - a):
            g, x = level[i], list_s[i]
            high[g] = x if x > high[g] else high[g]
            low[g] = x if x < low[g] else low[g]
        best = gap = -math.inf
        for g in range(levels):  # high[g] becomes the best score of all levels below g
            gap = max(gap, best - low[g])
            high[g], best = best, max(best, high[g])
        if not numbers[0] + gap > 0.0:
            continue
        i = j = 0  # the first pair with the largest hinge
        while high[level[i]] - list_s[i] != gap:
            i += 1
        while level[j] >= level[i] or list_s[j] != high[level[i]]:
            j += 1
        losses[q] = numbers[0] + gap
        grad[a + i] = -1.0
        grad[a + j] = 1.0
    return -1


@list_function
def minimax(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """The loss of Minimax; the loop is a function of its own, because numba counts references in this one."""
    longest = scratch_length(ptr, 1)
    ints, work = np.empty((3, longest), np.int64), np.empty((2, longest))
    return largest_hinges(s, y, ptr, codes, numbers, losses, grad, ints, work)
