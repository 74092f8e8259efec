# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Margin losses of lists: SLAM and the largest hinge, both from the best score below each grade.

Codes of SLAM: (numbers, grades are binary, gain, cut or 0, order in a grade by score, discount); its numbers: (Δ,
threshold of relevance, discounts of the first places). Those of Minimax: (numbers, binary) and (Δ, threshold).
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list, number_grades, order_down
from ..core.jit import inner_kernel, kernel
from ..measures.presets import Discount, Gain

LINEAR, LETOR = int(Gain.LINEAR), int(Discount.LETOR)
NONE = 2
"""No discount: all places count 1."""


@inner_kernel
def gain_of(grade, gain):
    """2^l − 1 (exact for whole grades), or l."""
    if gain == LINEAR:
        return grade
    whole = np.int64(min(grade, 62.0))
    return np.float64((1 << whole) - 1) if whole == grade else 2.0**grade - 1.0


@inner_kernel
def discount_at(place, rule, table):
    """D of a place, from 0: the table's, or computed where a list is longer than the table."""
    if rule == NONE:
        return 1.0
    if place < len(table):
        return table[place]
    return 1.0 / math.log2(place + (1.0 if rule == LETOR else 2.0))


@inner_kernel
def levels_of(y, binary, above, level, keys, order, keys2, order2):
    """Number the grades of a list, or 1 for relevant documents and 0 for the others; return the number of levels."""
    if not binary:
        return number_grades(y, level, keys, order, keys2, order2)
    for i in range(len(y)):
        level[i] = y[i] > above
    return 2


@inner_kernel
def slam_weights(s, y, binary, above, gain, cut, by_score, rule, table, level, levels, v, keys, keys2, ints):
    """v_i = G(R_i) D(pos(i)) / Z for pos(i) ≤ cut, else 0 (Eq. 10, 11, 24), and the documents by position in ints[0].

    Documents stand by falling grade, inside a grade by index or by score. Returns how many have a weight: 0 where no
    document has a gain, −1 where gains are too large to add up.
    """
    n, n_kept = len(y), 0
    order, kept, place, spare, rank = ints[0], ints[1], ints[2], ints[3], ints[4]
    places = n if cut == 0 else min(cut, n)
    for g in range(levels):
        place[g] = 0
    for i in range(n):
        place[level[i]] += 1
        v[i] = 0.0
    lowest, above_it = levels - 1, place[levels - 1]
    while above_it < places:
        lowest -= 1
        above_it += place[lowest]
    for i in range(n):  # only what can come among the first needs an order
        kept[n_kept] = i
        keys[n_kept] = s[i]
        n_kept += level[i] >= lowest
    if by_score:
        order_down(keys, kept, n_kept, rank, keys2, spare)
    total = 0
    for g in range(levels - 1, lowest - 1, -1):
        count = place[g]
        place[g] = total
        total += count
    for p in range(n_kept):
        g = level[kept[p]]
        order[place[g]] = kept[p]
        place[g] += 1
    norm = 0.0
    for p in range(places):
        i = order[p]
        v[i] = (float(level[i]) if binary else gain_of(y[i], gain)) * discount_at(p, rule, table)
        norm += v[i]
    if not math.isfinite(norm):
        return -1
    for p in range(places):
        v[order[p]] = v[order[p]] / norm if norm > 0.0 else 0.0
    return places if norm > 0.0 else 0


@inner_kernel
def leaders(s, level, levels, leader):
    """leader[g] = the best-scored document of a level below g, the first of equals; −1 where there is none."""
    for g in range(levels):
        leader[g] = -1
    for i in range(len(s)):
        g = level[i]
        if leader[g] < 0 or s[i] > s[leader[g]]:
            leader[g] = i
    best = -1
    for g in range(levels):
        here = leader[g]
        leader[g] = best
        if here >= 0 and (best < 0 or s[here] > s[best] or (s[here] == s[best] and here < best)):
            best = here


@inner_kernel
def hinges(s, v, n_weighted, margin, order, level, leader, grad):
    """Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i) (Eq. 9), and its subgradient (Eq. 13, 16)."""
    value = 0.0
    for p in range(n_weighted):
        i = order[p]
        below = leader[level[i]]
        if below < 0:
            break
        hinge = margin + s[below] - s[i]
        if hinge > 0.0:
            value += v[i] * hinge
            grad[i] -= v[i]
            grad[below] += v[i]
    return value


@list_function
def slam(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """SLAM of lists; a document's weight multiplies its v."""
    scores, grades, doc_weight, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    longest = max(longest_list(bounds), 32) + 1
    ints, work = np.empty((7, longest), np.int64), np.empty((3, longest))
    level, leader, v, keys, keys2 = ints[5], ints[6], work[0], work[1], work[2]
    binary, margin, above = choice[1] == 1, params[0], params[1]
    for q in range(lists):
        a, b = bounds[q], bounds[q + 1]
        value[q] = 0.0
        for i in range(a, b):
            slopes[i] = 0.0
        if b - a < 2:
            continue
        here, labels = scores[a:b], grades[a:b]
        levels = levels_of(labels, binary, above, level, keys, ints[0], keys2, ints[1])
        n_weighted = slam_weights(
            here, labels, binary, above, choice[2], choice[3], choice[4] == 1, choice[5], params[2:], level, levels, v,
            keys, keys2, ints,
        )  # fmt: skip
        if n_weighted < 0:
            return q
        if n_weights > 0:
            for i in range(b - a):
                v[i] *= doc_weight[a + i]
        leaders(here, level, levels, leader)
        value[q] = hinges(here, v, n_weighted, margin, ints[0], level, leader, slopes[a:b])
    return -1


@kernel
def weights_of_lists(s, y, ptr, codes, numbers, v):
    """v = the SLAM weights of every document; return −1 or the list whose gains are too large."""
    longest = max(longest_list(ptr), 32) + 1
    ints, work = np.empty((7, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        if a == b:
            continue
        labels, level = y[a:b], ints[5]
        levels = levels_of(labels, codes[1] == 1, numbers[1], level, work[0], ints[0], work[1], ints[1])
        found = slam_weights(
            s[a:b], labels, codes[1] == 1, numbers[1], codes[2], codes[3], codes[4] == 1, codes[5], numbers[2:], level,
            levels, v[a:b], work[0], work[1], ints,
        )  # fmt: skip
        if found < 0:
            return q
    return -1


@kernel
def leaders_of_lists(s, y, ptr, codes, numbers, leader):
    """leader[i] = the best-scored document below the grade of document i, in its list; −1 where there is none.

    Codes and numbers are those of SLAM or Minimax.
    """
    longest = max(longest_list(ptr), 32) + 1
    ints, work = np.empty((4, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        level, best = ints[0], ints[1]
        levels = levels_of(y[a:b], codes[1] == 1, numbers[1], level, work[0], ints[2], work[1], ints[3])
        leaders(s[a:b], level, levels, best)
        for i in range(b - a):
            leader[a + i] = a + best[level[i]] if best[level[i]] >= 0 else -1


@inner_kernel
def largest_hinges(scores, grades, bounds, choice, params, value, slopes, ints, work):
    """max_{R_i>R_j} (Δ + s_j − s_i)₊ of lists (Eq. 27): the best below each grade against the worst of it (Eq. 29)."""
    level, high, low = ints[0], work[0], work[1]
    for q in range(len(value)):
        a, b = bounds[q], bounds[q + 1]
        value[q] = 0.0
        for i in range(a, b):
            slopes[i] = 0.0
        if b - a < 2:
            continue
        here = scores[a:b]
        levels = levels_of(grades[a:b], choice[1] == 1, params[1], level, high, ints[1], low, ints[2])
        for g in range(levels):
            high[g], low[g] = -math.inf, math.inf
        for i in range(b - a):
            g, x = level[i], here[i]
            high[g] = x if x > high[g] else high[g]
            low[g] = x if x < low[g] else low[g]
        best = gap = -math.inf
        for g in range(levels):  # from the best of each level to the best of all lower ones
            gap = max(gap, best - low[g])
            high[g], best = best, max(best, high[g])
        if not params[0] + gap > 0.0:
            continue
        i = j = 0  # the first pair that attains the maximum
        while high[level[i]] - here[i] != gap:
            i += 1
        while level[j] >= level[i] or here[j] != high[level[i]]:
            j += 1
        value[q] = params[0] + gap
        slopes[a + i] = -1.0
        slopes[a + j] = 1.0
    return -1


@list_function
def minimax(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """The loss of Minimax; its lists are a function of their own, in which no references are counted."""
    scores, grades, _, _, bounds, choice, params, value, slopes, _ = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    longest = max(longest_list(bounds), 32) + 1
    ints, work = np.empty((3, longest), np.int64), np.empty((2, longest))
    return largest_hinges(scores, grades, bounds, choice, params, value, slopes, ints, work)
