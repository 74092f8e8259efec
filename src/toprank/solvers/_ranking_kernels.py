# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""One list in order: its best documents by score and by grade, the measure of that order, and SLAM on it.

Of equal scores the earlier row comes first. Scratch arrays come from the caller, with 2·LANES places more than the list
has documents: a filter writes before it knows whether to keep, and counting fills the last group of lanes.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._order_kernels import COUNTED, count_ranks, sort_down, whole_levels
from ..core.jit import inner_kernel
from .steps import Target

AP = int(Target.AP)
FEW_LEVELS = 8
"""Up to this many levels are counted in one vectorised pass each, more in one plain pass for all."""
LANES = 16
"""Up to this many places are found through running maxima, more by ranking the whole list."""
FEW_DOCUMENTS = 64
"""Up to this many documents are put in order by grade and score by counting, more by sorting."""


@inner_kernel
def make_levels(y, target, above, level):
    """Levels of a list: relevant or not, or the grades themselves; return how many, 0 where grades are not whole."""
    if target == AP:
        for i in range(len(y)):
            level[i] = y[i] > above
        return 2
    levels = whole_levels(y)
    for i in range(len(y) if levels > 0 else 0):
        level[i] = np.int32(y[i])
    return levels


@inner_kernel
def count_levels(level, m, n_levels, count):
    """Count the documents of each level; return how many levels occur."""
    for g in range(n_levels):
        number = np.int32(0)
        if n_levels <= FEW_LEVELS:
            for i in range(m):
                number += np.int32(level[i] == g)
        count[g] = number
    if n_levels > FEW_LEVELS:
        for i in range(m):
            count[level[i]] += 1
    present = 0
    for g in range(n_levels):
        present += count[g] > 0
    return present


@inner_kernel
def rank_all(values, n, rank):
    """As `count_ranks`, but quicker for few values; the 2·LANES places after the values are overwritten."""
    if n > 2 * LANES:
        count_ranks(values, n, rank)
        return
    whole = (n + LANES - 1) // LANES * LANES  # looks at every pair twice, but all loops have one length
    for j in range(n, whole):
        values[j] = -math.inf
    for i in range(n):
        x, ahead = values[i], np.int32(0)
        for j in range(whole):
            ahead += np.int32((values[j] > x) | ((values[j] == x) & (j < i)))
        rank[i] = ahead


@inner_kernel
def order_top(r, m, k, order, chosen, rank, kept, keys, keys2, spare):
    """order[:k] = the best documents by score, ties in input order."""
    n = 0
    if k <= LANES and m >= 2 * LANES:
        # At least k scores reach the k-th best of LANES running maxima: the others are not among the k best.
        for lane in range(LANES):
            kept[lane] = r[lane]
        for start in range(LANES, m - m % LANES, LANES):
            for lane in range(LANES):
                kept[lane] = r[start + lane] if r[start + lane] > kept[lane] else kept[lane]
        rank_all(kept, LANES, rank)
        kth_of_lanes = kept[0]
        for lane in range(LANES):
            kth_of_lanes = kept[lane] if rank[lane] == k - 1 else kth_of_lanes
        for i in range(m):
            chosen[n] = i
            kept[n] = r[i]
            n += r[i] >= kth_of_lanes
    else:
        for i in range(m):
            chosen[i] = i
            kept[i] = r[i]
        n = m
    if n <= COUNTED:
        rank_all(kept, n, rank)
        for p in range(n):  # all others are written to place k, which saves a branch
            order[min(rank[p], k)] = chosen[p]
        return
    for p in range(n):
        keys[p] = kept[p]
    sort_down(keys, chosen, n, keys2, spare)
    for p in range(k):
        order[p] = chosen[p]


@inner_kernel
def order_ideal(
    target, r, m, k, n_levels, level, count, order, ideal, next_place, chosen, rank, kept, kept_level, keys, keys2,
    spare,
):  # fmt: skip
    """ideal[:k] = the best documents by grade, then score, ties in input order; return how many have a weight.

    For AP, whose weights are equal, these are the relevant documents in input order.
    """
    lowest, n_above = n_levels - 1, count[n_levels - 1]
    while target != AP and n_above < k:
        lowest -= 1
        n_above += count[lowest]
    n = 0
    for i in range(m):
        chosen[n] = i
        kept[n] = r[i]
        kept_level[n] = level[i]
        n += level[i] >= lowest
    if target == AP:
        for p in range(n):
            ideal[p] = chosen[p]
        return n
    if k < m and n <= FEW_DOCUMENTS:  # rank = how many come before, each pair looked at once
        for i in range(n):
            x, g, ahead = kept[i], kept_level[i], np.int32(0)
            for j in range(i):
                before = np.int32((kept_level[j] > g) | ((kept_level[j] == g) & (kept[j] >= x)))
                ahead += before
                rank[j] += np.int32(1) - before
            rank[i] = ahead
        for p in range(n):
            ideal[min(rank[p], k)] = chosen[p]
        return k
    if k < m:  # `order` holds only the first k: sort all that are kept
        for p in range(n):
            keys[p] = kept[p]
        sort_down(keys, chosen, n, keys2, spare)
    place = 0
    for g in range(n_levels - 1, lowest - 1, -1):
        next_place[g] = place
        place += count[g]
    for p in range(n):
        i = chosen[p] if k < m else order[p]
        ideal[next_place[level[i]]] = i
        next_place[level[i]] += 1
    return k


@inner_kernel
def best_total(target, k, n_levels, discount, count, gain):
    """Return what `read_total` returns for the best order: the best DCG, or the number of relevant documents."""
    best, p = 0.0, 0
    for g in range(n_levels - 1, -1, -1):
        if target == AP:
            best += gain[g] * count[g]
            continue
        for _ in range(min(count[g], k - p)):
            best += gain[g] * discount[p]
            p += 1
    return best


@inner_kernel
def read_total(target, k, discount, order, level, gain):
    """DCG of the order, or Σ over relevant documents of precision at their rank.

    Added up place by place as the best is, so that a perfect order reaches it to the last bit.
    """
    total, hits = 0.0, 0.0
    if target == AP:
        for p in range(k):
            relevant = gain[np.uint32(level[np.uint64(order[p])])]
            hits += relevant
            total += relevant * (hits / (p + 1))
        return total
    for p in range(k):
        total += gain[np.uint32(level[np.uint64(order[p])])] * discount[p]
    return total


@inner_kernel
def best_scored_below(r, m, level, g):
    """Return the best document of a grade below g, −1 where there is none."""
    below = -1
    for i in range(m):
        if level[i] < g and (below < 0 or r[i] > r[below]):
            below = i
    return below


@inner_kernel
def tied(r, m, k, order):
    """Whether documents of equal score stand among the first places, or on both sides of the last of them."""
    same = 0
    for p in range(1, k):
        same += r[order[p]] == r[order[p - 1]]
    last, equal = r[order[k - 1]], 0
    for i in range(m):
        equal += r[i] == last
    return same > 0 or equal > 1


@inner_kernel
def slam(target, k, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active):
    """Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i), weights by the order at s = scale·r (Eq. 9).

    active[p] moves by coef[p], which is the subgradient in its score (Eq. 16). Returns the loss and how many move.
    """
    n = 0
    value = 0.0
    g = place = below = below_at = -1
    for p in range(weighted):
        i = ideal[p]
        if level[i] != g:  # the next lower grade: find the best-scored document below it
            g = level[i]
            place = max(place, 0)
            while place < k and level[order[place]] >= g:
                place += 1
            below = order[place] if place < k else best_scored_below(r, m, level, g)
            below_at = -1
        if gain[g] == 0.0 or below < 0:
            break
        v = (1.0 if target == AP else gain[g] * discount[p]) / best
        hinge = margin + scale * (r[below] - r[i])
        if hinge > 0.0:
            value += v * hinge
            coef[n], active[n] = -v, i
            n += 1
            if below_at < 0:
                below_at = n
                coef[n], active[n] = 0.0, below
                n += 1
            coef[below_at] += v
    return value, n
