# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Most violated rankings for any measure, and the hinge over working sets of them.

Conventions: places count from 0, a ranking is the place of each document, and a document at place p of n counts
(n − 1 − 2p)/(n(n − 1)) times in F (Eq. 2): it stands ahead of n − 1 − p documents and behind p.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ..core.jit import kernel
from ..core.sorting import order_down
from ._structural_kernels import average_ties


class Blocks(IntEnum):
    """Which places of a ranking a measure tells apart: each, the relevant from the others, the top from the rest."""

    EACH = 0
    RELEVANT = 1
    TOP = 2


EACH, RELEVANT = int(Blocks.EACH), int(Blocks.RELEVANT)


class BlockRule(NamedTuple):
    """How a measure cuts a ranking into blocks of places that it does not tell apart."""

    blocks: int
    first: int
    """EACH: the places 0 … first − 1 share one discount, then each has its own."""
    k: int
    """Places from here on count nothing."""


@kernel
def block_ends(level, rule):
    """Return the places where blocks of a perfect ranking end; order matters between blocks only.

    RELEVANT: one boundary after the relevant documents, or after k places where they are more. TOP: one after k places.
    """
    n, relevant = len(level), np.sum(level > 0)
    if rule.blocks == EACH:
        return np.arange(min(max(rule.first, 1), rule.k), min(n, rule.k + 1))
    end = min(rule.k, relevant) if rule.blocks == RELEVANT else rule.k
    return np.arange(end, end + 1 if 0 < end < n and relevant > 0 else end)


@kernel
def lowest_perfect_ranking(s, level, ends, place):
    """place = the perfect ranking with the smallest F.

    A ranking is perfect when each block of equal discounts holds the levels of the ideal order. The smallest F has each
    level's lower scores in its earlier blocks and every block in rising order.
    """
    rising = order_down(-s)
    by_level, start = rising[order_down(level[rising])], 0
    for e in range(len(ends) + 1):
        stop = ends[e] if e < len(ends) else len(s)
        block = by_level[start:stop]
        block = block[order_down(-s[block])]
        for p in range(start, stop):
            place[block[p - start]] = p
        start = stop


@kernel
def is_perfect(level, order, ends):
    """Whether each block of a ranking, given as an order of documents, holds the levels of the ideal order."""
    ideal, start = level[order_down(level)], 0
    for e in range(len(ends) + 1):
        stop = ends[e] if e < len(ends) else len(level)
        block = level[order[start:stop]]
        block = block[order_down(block)]
        for p in range(start, stop):
            if block[p - start] != ideal[p]:
                return False
        start = stop
    return True


@kernel
def cheapest_exchange(s, level, order, ends):
    """Return the end of a block across which two documents of a perfect ranking are exchanged, and their places.

    A document i above the end must move below it and a document j of another level from below to above it; F falls by
    the difference of every pair that turns round, and the end with the smallest fall is taken. The end is −1 where no
    two documents can be exchanged.
    """
    n, cheapest, move_i, move_j, at = len(s), math.inf, -1, -1, -1
    for end in ends:
        level_above, level_below = level[order[end - 1]], level[order[end]]
        # The next document below the end that is of another level than the one just above it.
        j, passed = end, 0.0
        while j < n and level[order[j]] == level_above:
            passed += s[order[j]]
            j += 1
        if j < n:
            cost = passed - (j - end) * s[order[j]] + s[order[end - 1]] - s[order[j]]
            if cost < cheapest:
                cheapest, move_i, move_j, at = cost, end - 1, j, end
        if level_above != level_below:
            continue
        i, passed = end - 1, 0.0
        while i >= 0 and level[order[i]] == level_below:
            passed += s[order[i]]
            i -= 1
        if i >= 0:
            cost = (end - 1 - i) * s[order[i]] - passed + s[order[i]] - s[order[end]]
            if cost < cheapest:
                cheapest, move_i, move_j, at = cost, i, end, end
    return at, move_i, move_j


@kernel
def highest_imperfect_ranking(s, level, ends, place):
    """place = the imperfect ranking with the largest F; return whether there is one.

    The largest F of all is the order by score, with equal scores in their worst order. Where that is perfect, two
    documents are exchanged.
    """
    order = order_down(-level)
    order = order[order_down(s[order])]
    at, move_i, move_j = 0, -1, -1
    if is_perfect(level, order, ends):
        at, move_i, move_j = cheapest_exchange(s, level, order, ends)
    for p in range(len(s)):
        moved = p
        if move_i >= 0:
            if p == move_i:
                moved = at
            elif move_i < p < at:
                moved = p - 1
            elif p == move_j:
                moved = at - 1
            elif at <= p < move_j:
                moved = p + 1
        place[order[p]] = moved
    return at >= 0


@kernel
def most_violated(scores, level, ptr, rule, perfect, imperfect, has_imperfect):
    """Fill the perfect ranking with the smallest F and the imperfect one with the largest F of each list, as places.

    `has_imperfect` is false for lists without such a ranking.
    """
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        has_imperfect[q] = False
        if a < b:
            ends = block_ends(level[a:b], rule)
            lowest_perfect_ranking(scores[a:b], level[a:b], ends, perfect[a:b])
            has_imperfect[q] = highest_imperfect_ranking(scores[a:b], level[a:b], ends, imperfect[a:b])


@kernel
def ranking_coefficients(scores, places, level, ptr, graded, out):
    """∂F/∂s of a ranking: (documents behind − documents ahead)/pairs, over all pairs or those of different level.

    Documents of equal level and score get the mean of theirs: F and E do not depend on the order among these.
    """
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n, s, list_level, own = b - a, scores[a:b], level[a:b], out[a:b]
        rising = order_down(-s)
        rising = rising[order_down(-list_level[rising])]
        if graded:
            graded_coefficients(places[a:b], list_level, rising, own)
        else:
            for i in range(n):
                own[i] = (n - 1.0 - 2.0 * places[a + i]) / (n * (n - 1.0))
        start = 0
        for p in range(n):
            if p + 1 == n or list_level[rising[p + 1]] != list_level[rising[p]]:
                average_ties(s[rising[start : p + 1]], rising[start : p + 1], own)
                start = p + 1


@kernel
def graded_coefficients(places, level, by_level, out):
    """The coefficients of one list over its pairs of different level; `by_level` lists its documents by level."""
    n, number, at = len(places), np.empty(len(places), dtype=np.int64), np.empty(len(places), dtype=np.int64)
    last = 0
    for p in range(n):
        last += p > 0 and level[by_level[p]] != level[by_level[p - 1]]
        number[by_level[p]] = last
        at[places[p]] = p
    size, passed = np.zeros(last + 1), np.zeros(last + 1)
    for i in range(n):
        size[number[i]] += 1
    pairs = float(n) * (n - 1) / 2
    for count in size:
        pairs -= count * (count - 1) / 2
    for p in range(n):
        last = number[at[p]]
        ahead = p - passed[last]
        out[at[p]] = (n - size[last] - 2.0 * ahead) / pairs if pairs > 0 else 0.0
        passed[last] += 1


@kernel
def working_set_hinge_of_list(F, E, g):
    """ℓ = 1/|B| Σ_{b: E=1} Σ_{c: E<1} (1 − E_c) [1 − (F_b − F_c)]₊ by sorting, never the pairs; g is its gradient."""
    n, n_perfect, loss = len(F), np.sum(E == 1.0), 0.0
    g[:] = 0.0
    if n_perfect == 0 or n_perfect == n:
        return 0.0
    rising = order_down(-F)
    # Upwards, an imperfect ranking meets the perfect ones less than 1 above it; downwards, the other way round.
    p, count, total = 0, 0.0, 0.0
    for c in rising:
        if E[c] == 1.0:
            continue
        while p < n and F[rising[p]] - F[c] < 1.0:
            if E[rising[p]] == 1.0:
                count += 1.0
                total += F[rising[p]]
            p += 1
        weight = (1.0 - E[c]) / n_perfect
        loss += weight * (count * (1.0 + F[c]) - total)
        g[c] = weight * count
    p, lost = n - 1, 0.0
    for b in rising[::-1]:
        if E[b] != 1.0:
            continue
        while p >= 0 and F[b] - F[rising[p]] < 1.0:
            if E[rising[p]] != 1.0:
                lost += (1.0 - E[rising[p]]) / n_perfect
            p -= 1
        g[b] = -lost
    return loss


@kernel
def working_set_hinge_of_lists(F, E, ptr, losses, grad):
    """The hinge of each working set."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = working_set_hinge_of_list(F[a:b], E[a:b], grad[a:b])
