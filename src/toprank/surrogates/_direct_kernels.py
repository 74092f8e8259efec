# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Most violated rankings for AP and NDCG, and the hinge over working sets of them.

Conventions: places count from 0, a ranking is the place of each document, and a document at place p of n counts
(n − 1 − 2p)/(n(n − 1)) times in F (Eq. 2): it stands ahead of n − 1 − p documents and behind p.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from ..core.jit import kernel


class Blocks(IntEnum):
    """Which places of a ranking a measure tells apart: each, the relevant from the others, the top from the rest."""

    EACH = 0
    RELEVANT = 1
    TOP = 2


EACH, RELEVANT = int(Blocks.EACH), int(Blocks.RELEVANT)


@kernel
def slot_value(by_precision, i, j, n_pos, s_neg, table, scale, pair_weight, pos_sum):
    """By how much the loss grows when irrelevant j stands just above relevant i (i = P + 1: below all), in O(1).

    AP (`by_precision`) loses Σ_{r=i}^{P} (r/(r+j−1) − r/(r+j))/P, by harmonic numbers, since r/(r+j) = 1 − j/(r+j).
    NDCG loses a sum of differences of discounts, of which only the first and the last remain. F loses
    −2/(PN) Σ_{r ≥ i} (s⁺_r − s⁻_j). i and j count from 1.
    """
    if by_precision:
        late = j * (table[n_pos + j] - table[i + j - 1])
        early = (j - 1) * (table[n_pos + j - 1] - table[i + j - 2]) if j > 1 else 0.0
        value = (late - early) * scale
    else:
        value = (table[i + j - 1] - table[n_pos + j]) * scale
    return value - pair_weight * ((pos_sum[n_pos] - pos_sum[i - 1]) - (n_pos - i + 1) * s_neg)


@kernel
def slots_by_halving(by_precision, n_pos, n_neg, neg, table, scale, pair_weight, pos_sum, slot, stack):
    """slot_j = best i for every irrelevant j, found by divide and conquer: the best i never falls as j grows."""
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 1, n_neg, 1, n_pos + 1
    depth = 1
    while depth > 0:
        depth -= 1
        j_low, j_high, i_low, i_high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        j = (j_low + j_high) // 2
        best, found = -math.inf, i_low
        for i in range(i_low, i_high + 1):
            value = slot_value(by_precision, i, j, n_pos, neg[j - 1], table, scale, pair_weight, pos_sum)
            if value >= best:
                best, found = value, i
        slot[j - 1] = found
        if j > j_low:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = j_low, j - 1, i_low, found
            depth += 1
        if j < j_high:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = j + 1, j_high, found, i_high
            depth += 1


@kernel
def slots_by_rows(n_pos, n_neg, rows, pos, neg, neg_sum, table, scale, pair_weight, slot, best, back, above):
    """The same by dynamic programming over (relevant i, number of irrelevant ones above it): any discount, O(rows·N).

    Relevant documents from `rows` on stand beyond the cut-off wherever they are placed: only F counts for them. Each
    takes the number of irrelevant ones above it that is best for itself, but no fewer than the one before it.
    """
    for a in range(n_neg + 1):
        best[a] = 0.0
    for i in range(1, rows + 1):
        lead, from_a = -math.inf, 0
        for a in range(n_neg + 1):
            if best[a] > lead:
                lead, from_a = best[a], a
            best[a] = lead - table[i + a] * scale - pair_weight * (a * pos[i - 1] - neg_sum[a])
            back[i - 1, a] = from_a
    # Beyond the rows: above[i] = #{j: s⁻_j > s⁺_i}, which never falls, and what that adds to F.
    earned, j = 0.0, 0
    for i in range(rows, n_pos):
        while j < n_neg and neg[j] > pos[i]:
            j += 1
        above[i] = j
        earned += neg_sum[j] - j * pos[i]
    chosen, top = 0, -math.inf
    pushed, pushed_sum, i = 0, 0.0, rows  # those who would take fewer than a above them
    for a in range(n_neg + 1):
        while i < n_pos and above[i] < a:
            earned -= neg_sum[above[i]] - above[i] * pos[i]
            pushed += 1
            pushed_sum += pos[i]
            i += 1
        value = best[a] + pair_weight * (earned + pushed * neg_sum[a] - a * pushed_sum)
        if value > top:
            chosen, top = a, value
    for i in range(rows, n_pos):
        above[i] = max(above[i], chosen)
    for i in range(rows, 0, -1):
        above[i - 1] = chosen
        chosen = back[i - 1, chosen]
    j = n_neg
    for i in range(n_pos, 0, -1):
        while j > above[i - 1]:  # these stay below relevant i
            slot[j - 1] = i + 1
            j -= 1
    while j > 0:
        slot[j - 1] = 1
        j -= 1


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
def structural_hinge(scores, relevant, ptr, by_precision, k, discounts, shrinking, short_is_zero, losses, grad):
    """ℓ_q = max_π (1 − E(π)) − (F(π*) − F(π)), F over relevant × irrelevant pairs; E is AP or NDCG@k of 0/1 grades.

    `by_precision` means AP. `discounts` has one entry per rank, from index 1; `shrinking` says that the difference from
    rank to rank falls, so that the search may halve.
    """
    longest = 1
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    table = np.zeros(longest + 2)
    for r in range(1, longest + 2):
        if by_precision:
            table[r] = table[r - 1] + 1.0 / r
        elif r <= k and r < len(discounts):
            table[r] = discounts[r]
    stack = np.empty((128, 4), dtype=np.int64)
    slot, above = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    best, back = np.empty(longest + 1), np.empty((1, 1), dtype=np.int32)
    pos_sum, neg_sum = np.zeros(longest + 1), np.zeros(longest + 1)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        for i in range(a, b):
            grad[i] = 0.0
        order = np.argsort(-scores[a:b], kind="mergesort")
        n_pos = 0
        for i in range(a, b):
            n_pos += relevant[i]
        n_neg = b - a - n_pos
        if n_pos == 0 or n_neg == 0 or (short_is_zero and b - a < k):
            continue
        pos, neg = np.empty(n_pos), np.empty(n_neg)
        pos_at, neg_at = np.empty(n_pos, dtype=np.int64), np.empty(n_neg, dtype=np.int64)
        p = m = 0
        for r in range(b - a):
            i = a + order[r]
            if relevant[i]:
                pos[p], pos_at[p] = scores[i], i
                pos_sum[p + 1] = pos_sum[p] + scores[i]
                p += 1
            else:
                neg[m], neg_at[m] = scores[i], i
                neg_sum[m + 1] = neg_sum[m] + scores[i]
                m += 1
        pair_weight = 2.0 / (float(n_pos) * n_neg)
        scale = 1.0 / n_pos
        if not by_precision:
            ideal = 0.0
            for r in range(1, n_pos + 1):
                ideal += table[r]
            scale = 1.0 / ideal
        if by_precision or shrinking:
            slots_by_halving(by_precision, n_pos, n_neg, neg, table, scale, pair_weight, pos_sum, slot, stack)
        else:
            rows = min(n_pos, k)
            if back.shape[0] < rows or back.shape[1] < n_neg + 1:
                back = np.empty((max(rows, back.shape[0]), max(n_neg + 1, back.shape[1])), dtype=np.int32)
            slots_by_rows(n_pos, n_neg, rows, pos, neg, neg_sum, table, scale, pair_weight, slot, best, back, above)
        measured, drop, j = 0.0, 0.0, 0
        for i in range(1, n_pos + 1):
            while j < n_neg and slot[j] <= i:
                j += 1
            if by_precision:
                measured += i / (i + j)
            else:
                measured += table[i + j]
            drop += j * pos[i - 1] - neg_sum[j]
            grad[pos_at[i - 1]] = -pair_weight * j
        for j in range(n_neg):
            grad[neg_at[j]] = pair_weight * (n_pos + 1 - slot[j])
        average_ties(pos, pos_at, grad)
        average_ties(neg, neg_at, grad)
        losses[q] = max(1.0 - measured * scale - pair_weight * drop, 0.0)


@kernel
def block_ends(blocks, first, k, relevant, n, ends):
    """ends = the places where blocks of a perfect ranking end; return how many. Order matters between blocks only.

    EACH: places 0 … first − 1 share one discount, then each has its own, and those from k on count nothing. RELEVANT:
    one boundary after the relevant documents, or after k places where they are more. TOP: one after k places.
    """
    if blocks != EACH:
        ends[0] = min(k, relevant) if blocks == RELEVANT else k
        return 1 if 0 < ends[0] < n and relevant > 0 else 0
    count, e = 0, min(max(first, 1), k)
    while e < n and e <= k:
        ends[count] = e
        count += 1
        e += 1
    return count


@kernel
def most_violated(scores, level, ptr, blocks, first, k, perfect, imperfect, has_imperfect):
    """Places of the perfect ranking with the smallest F and of the imperfect one with the largest F, for each list.

    A ranking is perfect when each block of equal discounts holds the levels of the ideal order. The smallest F has
    each level's lower scores in its earlier blocks and every block in rising order. The largest F of all is the order
    by score, with equal scores in their worst order. Where that is perfect, a document i above the end of a block must
    move below it and a document j of another level from below to above it; F falls by the difference of every pair
    that turns round, and the end with the smallest fall is taken. `has_imperfect` is false for lists without such a
    ranking.
    """
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n == 0:
            has_imperfect[q] = False
            continue
        s, g = scores[a:b], level[a:b]
        ends = np.empty(n + 1, dtype=np.int64)
        n_ends = block_ends(blocks, first, k, (g > 0).sum(), n, ends)
        # Perfect, smallest F: by level (high first), inside a level by rising score, then each block by rising score.
        rising = np.argsort(s, kind="mergesort")
        by_level = rising[np.argsort(-g[rising], kind="mergesort")]
        start = 0
        for e in range(n_ends + 1):
            stop = ends[e] if e < n_ends else n
            part = by_level[start:stop]
            part = part[np.argsort(s[part], kind="mergesort")]
            for p in range(start, stop):
                perfect[a + part[p - start]] = p
            start = stop
        # Imperfect, largest F.
        order = np.argsort(g, kind="mergesort")
        order = order[np.argsort(-s[order], kind="mergesort")]
        ideal = np.sort(g)[::-1]
        is_perfect = True
        start = 0
        for e in range(n_ends + 1):
            stop = ends[e] if e < n_ends else n
            block_levels = np.sort(g[order[start:stop]])[::-1]
            for p in range(start, stop):
                if block_levels[p - start] != ideal[p]:
                    is_perfect = False
            start = stop
        has_imperfect[q] = True
        if not is_perfect:
            for p in range(n):
                imperfect[a + order[p]] = p
            continue
        cheapest, move_i, move_j, at = math.inf, -1, -1, -1
        for e in range(n_ends):
            end = ends[e]
            # The pair next to the end of the block; if of one level, the next document of another level on either side.
            level_above = g[order[end - 1]]
            level_below = g[order[end]]
            if level_above != level_below:
                cost = s[order[end - 1]] - s[order[end]]
                if cost < cheapest:
                    cheapest, move_i, move_j, at = cost, end - 1, end, end
                continue
            j, passed = end, 0.0
            while j < n and g[order[j]] == level_above:
                passed += s[order[j]]
                j += 1
            if j < n:
                cost = passed - (j - end) * s[order[j]] + s[order[end - 1]] - s[order[j]]
                if cost < cheapest:
                    cheapest, move_i, move_j, at = cost, end - 1, j, end
            i, passed = end - 1, 0.0
            while i >= 0 and g[order[i]] == level_below:
                passed += s[order[i]]
                i -= 1
            if i >= 0:
                cost = (end - 1 - i) * s[order[i]] - passed + s[order[i]] - s[order[end]]
                if cost < cheapest:
                    cheapest, move_i, move_j, at = cost, i, end, end
        has_imperfect[q] = at >= 0
        for p in range(n):
            place = p
            if at >= 0:
                if p == move_i:
                    place = at
                elif move_i < p < at:
                    place = p - 1
                elif p == move_j:
                    place = at - 1
                elif at <= p < move_j:
                    place = p + 1
            imperfect[a + order[p]] = place


@kernel
def ranking_coefficients(scores, places, level, ptr, graded, out):
    """∂F/∂s of a ranking: (documents behind − documents ahead)/pairs, over all pairs or those of different level.

    Documents of equal level and score get the mean of theirs: F and E do not depend on the order among these.
    """
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n, s, g, own = b - a, scores[a:b], level[a:b], out[a:b]
        rising = np.argsort(s, kind="mergesort")
        rising = rising[np.argsort(g[rising], kind="mergesort")]
        if graded:
            graded_coefficients(places[a:b], g, rising, own)
        else:
            for i in range(n):
                own[i] = (n - 1.0 - 2.0 * places[a + i]) / (n * (n - 1.0))
        start = 0
        for p in range(n):
            if p + 1 == n or g[rising[p + 1]] != g[rising[p]]:
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
def working_set_hinge(scores, y, ptr, losses, grad):
    """ℓ_q = 1/|B| Σ_{b: y=1} Σ_{c: y<1} (1 − y_c) [1 − (s_b − s_c)]₊ by sorting, never the pairs."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        n_perfect = 0
        for i in range(a, b):
            grad[i] = 0.0
            n_perfect += y[i] == 1.0
        if n_perfect == 0 or n_perfect == b - a:
            continue
        rising = a + np.argsort(scores[a:b], kind="mergesort")
        # Upwards, an imperfect ranking meets the perfect ones less than 1 above it; downwards, the other way round.
        p, count, total = 0, 0.0, 0.0
        for r in range(b - a):
            i = rising[r]
            if y[i] == 1.0:
                continue
            while p < b - a and scores[rising[p]] - scores[i] < 1.0:
                if y[rising[p]] == 1.0:
                    count += 1.0
                    total += scores[rising[p]]
                p += 1
            weight = (1.0 - y[i]) / n_perfect
            losses[q] += weight * (count * (1.0 + scores[i]) - total)
            grad[i] = weight * count
        p, count = b - a - 1, 0.0
        for r in range(b - a - 1, -1, -1):
            i = rising[r]
            if y[i] != 1.0:
                continue
            while p >= 0 and scores[i] - scores[rising[p]] < 1.0:
                if y[rising[p]] != 1.0:
                    count += (1.0 - y[rising[p]]) / n_perfect
                p -= 1
            grad[i] = -count
