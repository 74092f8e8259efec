# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The structural hinge: the most violated ranking of relevant and irrelevant documents for AP or NDCG.

That ranking keeps relevant and irrelevant documents in order of score. It is known by the slot of each irrelevant
document: the relevant one that it stands just above. i counts relevant documents and j irrelevant ones, from 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel
from ..core.sorting import order_down


class StructuralRule(NamedTuple):
    """What the structural hinge has besides scores and relevance."""

    by_precision: bool
    """Whether E is AP, instead of NDCG@k of 0/1 grades."""
    k: int
    """NDCG: the places that count."""
    short_is_zero: bool
    """NDCG: whether a list of fewer than k documents counts 0."""
    by_halving: bool
    """Whether the best slot never falls from one irrelevant document to the next, so that the search may halve."""
    table: Any
    """AP: harmonic numbers H_0, H_1, …; NDCG: the discount of each rank from index 1, 0 beyond k."""


class TwoClasses(NamedTuple):
    """The documents of one list by class, each by falling score."""

    pos: Any
    neg: Any
    """Scores of the relevant and of the irrelevant documents."""
    pos_sum: Any
    neg_sum: Any
    """Sums of the first 0, 1, 2, … of them."""
    scale: float
    """What a unit of the sums in E counts: one over its best value."""
    pair_weight: float
    """What a pair counts in F(π*) − F(π) when it is turned round: 2/(PN)."""


@kernel
def split_classes(s, relevant, order, rule):
    """Return the two classes of a list, and the rows of their documents."""
    n, n_pos = len(s), np.sum(relevant)
    pos, neg, pos_at, neg_at = (
        np.empty(n_pos),
        np.empty(n - n_pos),
        np.empty(n_pos, np.int64),
        np.empty(n - n_pos, np.int64),
    )
    pos_sum, neg_sum = np.zeros(n_pos + 1), np.zeros(n - n_pos + 1)
    p = m = 0
    for i in order:
        if relevant[i]:
            pos[p], pos_at[p], pos_sum[p + 1] = s[i], i, pos_sum[p] + s[i]
            p += 1
        else:
            neg[m], neg_at[m], neg_sum[m + 1] = s[i], i, neg_sum[m] + s[i]
            m += 1
    best = float(n_pos)
    if not rule.by_precision:
        best = np.sum(rule.table[1 : n_pos + 1])
    pair_weight = 2.0 / (float(n_pos) * (n - n_pos))
    return TwoClasses(pos, neg, pos_sum, neg_sum, 1.0 / best, pair_weight), pos_at, neg_at


@kernel
def slot_value(two, rule, i, j):
    """By how much the loss grows when irrelevant j stands just above relevant i (i = P + 1: below all), in O(1).

    AP loses Σ_{r=i}^{P} (r/(r+j−1) − r/(r+j))/P, by harmonic numbers, since r/(r+j) = 1 − j/(r+j). NDCG loses a sum of
    differences of discounts, of which only the first and the last remain. F loses −2/(PN) Σ_{r ≥ i} (s⁺_r − s⁻_j).
    """
    P, table = len(two.pos), rule.table
    if rule.by_precision:
        late = j * (table[P + j] - table[i + j - 1])
        early = (j - 1) * (table[P + j - 1] - table[i + j - 2]) if j > 1 else 0.0
        value = (late - early) * two.scale
    else:
        value = (table[i + j - 1] - table[P + j]) * two.scale
    turned = (two.pos_sum[P] - two.pos_sum[i - 1]) - (P - i + 1) * two.neg[j - 1]
    return value - two.pair_weight * turned


@kernel
def slots_by_halving(two, rule, slot):
    """slot_j = best i for every irrelevant j, found by divide and conquer: the best i never falls as j grows."""
    waiting = [(1, len(two.neg), 1, len(two.pos) + 1)]
    while len(waiting) > 0:
        j_low, j_high, i_low, i_high = waiting.pop()
        j = (j_low + j_high) // 2
        best, found = -math.inf, i_low
        for i in range(i_low, i_high + 1):
            value = slot_value(two, rule, i, j)
            if value >= best:
                best, found = value, i
        slot[j - 1] = found
        if j > j_low:
            waiting.append((j_low, j - 1, i_low, found))
        if j < j_high:
            waiting.append((j + 1, j_high, found, i_high))


@kernel
def slots_by_rows(two, rule, slot):
    """The same by dynamic programming over (relevant i, number of irrelevant ones above it): any discount, O(k·N).

    Relevant documents from k on stand beyond the cut-off wherever they are placed: only F counts for them. Each takes
    the number of irrelevant ones above it that is best for itself, but no fewer than the one before it.
    """
    P, N = len(two.pos), len(two.neg)
    rows = min(P, rule.k)
    best, came_from, above = np.zeros(N + 1), np.empty((rows, N + 1), np.int32), np.empty(P, np.int64)
    for i in range(rows):
        lead, lead_at = -math.inf, 0
        for a in range(N + 1):
            if best[a] > lead:
                lead, lead_at = best[a], a
            best[a] = lead - rule.table[i + 1 + a] * two.scale - two.pair_weight * (a * two.pos[i] - two.neg_sum[a])
            came_from[i, a] = lead_at
    chosen = number_above_the_others(two, rows, best, above)
    for i in range(rows, P):
        above[i] = max(above[i], chosen)
    for i in range(rows - 1, -1, -1):
        above[i] = chosen
        chosen = came_from[i, chosen]
    j = N
    for i in range(P, 0, -1):
        while j > above[i - 1]:  # these stay below relevant i
            slot[j - 1] = i + 1
            j -= 1
    slot[:j] = 1


@kernel
def number_above_the_others(two, rows, best, above):
    """Return how many irrelevant documents stand above relevant number `rows`, the last one that E counts.

    `best` is the value of each such number for the relevant documents up to there. above_i of the others becomes
    #{j: s⁻_j > s⁺_i}, which is best for itself and never falls from one to the next.
    """
    P, N, earned, j = len(two.pos), len(two.neg), 0.0, 0
    for i in range(rows, P):
        while j < N and two.neg[j] > two.pos[i]:
            j += 1
        above[i] = j
        earned += two.neg_sum[j] - j * two.pos[i]
    chosen, top = 0, -math.inf
    pushed, pushed_sum, i = 0, 0.0, rows  # those who would take fewer than a above them
    for a in range(N + 1):
        while i < P and above[i] < a:
            earned -= two.neg_sum[above[i]] - above[i] * two.pos[i]
            pushed += 1
            pushed_sum += two.pos[i]
            i += 1
        value = best[a] + two.pair_weight * (earned + pushed * two.neg_sum[a] - a * pushed_sum)
        if value > top:
            chosen, top = a, value
    return chosen


@kernel
def average_ties(sorted_values, at, out):
    """Give documents `at` with equal values the mean of their `out`: the order of the rows must not decide."""
    start = 0
    while start < len(at):
        stop, total = start, 0.0
        while stop < len(at) and sorted_values[stop] == sorted_values[start]:
            total += out[at[stop]]
            stop += 1
        for p in range(start, stop if stop > start + 1 else start):
            out[at[p]] = total / (stop - start)
        start = max(stop, start + 1)


@kernel
def structural_hinge_of_list(s, relevant, rule, g):
    """ℓ = max_π (1 − E(π)) − (F(π*) − F(π)), F over relevant × irrelevant pairs (Eq. 10); g is its subgradient.

    At the most violated ranking that is −2/(PN) times the number of irrelevant documents above a relevant one, and
    2/(PN) times the number of relevant ones below an irrelevant one.
    """
    g[:] = 0.0
    n_pos = np.sum(relevant)
    if n_pos == 0 or n_pos == len(s) or (rule.short_is_zero and len(s) < rule.k):
        return 0.0
    two, pos_at, neg_at = split_classes(s, relevant, order_down(s), rule)
    P, N = len(two.pos), len(two.neg)
    slot = np.empty(N, np.int64)
    if rule.by_halving:
        slots_by_halving(two, rule, slot)
    else:
        slots_by_rows(two, rule, slot)
    measured, turned, j = 0.0, 0.0, 0
    for i in range(1, P + 1):
        while j < N and slot[j] <= i:
            j += 1
        measured += i / (i + j) if rule.by_precision else rule.table[i + j]
        turned += j * two.pos[i - 1] - two.neg_sum[j]
        g[pos_at[i - 1]] = -two.pair_weight * j
    for j in range(N):
        g[neg_at[j]] = two.pair_weight * (P + 1 - slot[j])
    average_ties(two.pos, pos_at, g)
    average_ties(two.neg, neg_at, g)
    return max(1.0 - measured * two.scale - two.pair_weight * turned, 0.0)


@kernel
def structural_hinge_of_lists(s, relevant, ptr, rule, losses, grad):
    """The structural hinge of each list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = structural_hinge_of_list(s[a:b], relevant[a:b], rule, grad[a:b])
