# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: the measure of every list after one more step.

The values are those of `measures`, to the last bit. Average precision and NDCG have shorter ways to them: they read the
ranks of the relevant documents alone, which are counted (Σ over them of the documents with higher scores), and from
step to step NDCG@k reads its top alone, which can only hold documents that reach the least of the last round's top.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inner_kernel, kernel
from ..measures._kernels import (
    count_ranks,
    gain_of,
    ideal_list,
    longest_list,
    needs,
    one_value,
    rank_list,
    tie_groups,
    workspace,
)

LANES = 32
"""Running maxima kept side by side where many documents could be at the top."""
ANY, TOP, GAINS, PRECISION = 0, 1, 2, 3
"""Ways to a value: the measure's own codes; NDCG@k by its top; NDCG and average precision by counted ranks."""
PAIRS, EXACT_PAIRS = 1 << 20, 1 << 18
"""Ranks are counted where no more pairs (relevant document, document) than this are compared: keys, and scores."""
LEVELS = 65534
"""Scores are compared as 16-bit keys, many at a time; what these cannot tell apart is settled by the scores."""
BELOW = -LEVELS // 2 - 1
"""The key of no document."""
LARGEST = (1 << 63) - 1
"""All bits of a real but its sign."""


@kernel
def ideal_gains(y, ptr, k, gain, discounts, gains, out):
    """Write the gain of every document, and out_q = Σ_{r < k} gain_r D_r for those of a query in falling order."""
    for i in range(len(y)):
        gains[i] = gain_of(y[i], gain)
    for q in range(len(ptr) - 1):
        best = np.sort(gains[ptr[q] : ptr[q + 1]])[::-1]
        out[q] = 0.0
        for r in range(min(k, len(best))):
            out[q] += best[r] * discounts[r]


@inner_kernel
def add_step(scores, column, weight, t):
    """t = scores + weight · column."""
    for i in range(len(scores)):
        t[i] = scores[i] + weight * np.float64(column[i])


@inner_kernel
def quantise(t, bits, n, m, keys):
    """Write n scores as 16-bit keys in the same order, the first m in whole eights; return False if they have no range.

    `bits` is t as whole numbers: their minimum and maximum are vectors, those of reals are not.
    """
    low = high = bits[0] ^ ((bits[0] >> 63) & LARGEST)
    for i in range(n):
        x = bits[i] ^ ((bits[i] >> 63) & LARGEST)  # in the order of the reals
        low, high = min(low, x), max(high, x)
    bits[n], bits[n + 1] = low ^ ((low >> 63) & LARGEST), high ^ ((high >> 63) & LARGEST)
    least, scale = t[n], LEVELS / (t[n + 1] - t[n])
    if not 0.0 < scale < np.inf:
        return False
    middle = (m + 7) // 8 * 8
    write_keys(t[:m], least, scale, keys)
    write_keys(t[m:n], least, scale, keys[middle:])
    for i in range(m, middle):
        keys[i] = BELOW
    for i in range(n + middle - m, n + middle - m + 8):
        keys[i] = BELOW
    return True


@inner_kernel
def write_keys(t, least, scale, keys):
    """Write the scores as whole numbers above BELOW."""
    for i in range(len(t)):
        keys[i] = np.int16(np.int32((t[i] - least) * scale) - LEVELS // 2)


@inner_kernel
def count_keys(keys, start, stop, m, ahead, same):
    """ahead[c] = #{j: key_j > key_c}, same[c] += #{j: key_j = key_c} for c < m and eights of j from start to stop."""
    for c in range(m):
        ahead[c] = 0
    for j in range(start, stop, 8):
        k0, k1, k2, k3, k4, k5, k6, k7 = (
            keys[j], keys[j + 1], keys[j + 2], keys[j + 3], keys[j + 4], keys[j + 5], keys[j + 6], keys[j + 7]
        )  # fmt: skip
        for c in range(m):
            x = keys[c]
            ahead[c] += (
                np.int16(k0 > x) + np.int16(k1 > x) + np.int16(k2 > x) + np.int16(k3 > x)
                + np.int16(k4 > x) + np.int16(k5 > x) + np.int16(k6 > x) + np.int16(k7 > x)
            )  # fmt: skip
            same[c] += (
                np.int16(k0 == x) + np.int16(k1 == x) + np.int16(k2 == x) + np.int16(k3 == x)
                + np.int16(k4 == x) + np.int16(k5 == x) + np.int16(k6 == x) + np.int16(k7 == x)
            )  # fmt: skip


@inner_kernel
def count_seats(keys, seats, start, stop, m, ahead):
    """ahead[c] += #{j: key_j = key_c, seat_j < seat_c} for c < m and j from start to stop."""
    for j in range(start, stop, 4):
        k0, k1, k2, k3 = keys[j], keys[j + 1], keys[j + 2], keys[j + 3]
        s0, s1, s2, s3 = seats[j], seats[j + 1], seats[j + 2], seats[j + 3]
        for c in range(m):
            x, s = keys[c], seats[c]
            ahead[c] += (
                (np.int16(k0 == x) & np.int16(s0 < s)) + (np.int16(k1 == x) & np.int16(s1 < s))
                + (np.int16(k2 == x) & np.int16(s2 < s)) + (np.int16(k3 == x) & np.int16(s3 < s))
            )  # fmt: skip


@inner_kernel
def settle_ties(t, place, n, m, keys, seats, owner, hits, others, same):
    """Count what stands before relevant documents also where keys are equal; return False if a sort would cost less."""
    padded, middle = (m + 15) // 16 * 16, (m + 7) // 8 * 8
    gap, tied = middle - m, 0
    for c in range(m):
        tied += int(same[c] > 1)
    if 16 * tied > m + 32:
        # Many ties: most of them will be real ones, and seats settle these. `same` becomes 1 where they do.
        for i in range(n):
            owner[keys[i if i < m else i + gap] - BELOW] = i
        for i in range(n):
            at = i if i < m else i + gap
            seats[at], first = place[i], owner[keys[at] - BELOW]
            if first < 0 or t[first] != t[i]:
                owner[keys[at] - BELOW] = -1
        count_seats(keys, seats, 0, middle, padded, hits)
        count_seats(keys, seats, middle, n + gap, padded, others)
        tied = 0
        for c in range(m):
            same[c] = 2 if owner[keys[c] - BELOW] < 0 else 1
            tied += same[c] - 1
    for c in range(m if tied * n <= EXACT_PAIRS else 0):
        if same[c] > 1:
            hits[c], others[c] = before(t, place, c, 0, m), before(t, place, c, m, n)
    return tied * n <= EXACT_PAIRS


@inner_kernel
def counted_value(way, t, place, n, m, gains, discounts, keys, seats, owner, hits, others, same, parts, shown):
    """Σ over the relevant documents, the first m, of D_rank times the precision there, or times their gain.

    −1 where so many scores are nearly alike that a sort costs less.
    """
    padded, middle = (m + 15) // 16 * 16, (m + 7) // 8 * 8  # whole vectors, whole eights
    for c in range(padded):
        same[c] = 0
    count_keys(keys, 0, middle, padded, hits, same)
    count_keys(keys, middle, n + middle - m, padded, others, same)
    tied = False
    for c in range(m):
        tied |= same[c] > 1
    if tied and not settle_ties(t, place, n, m, keys, seats, owner, hits, others, same):
        return -1.0
    for c in range(m):
        rank = hits[c] + others[c]
        if way == PRECISION:
            parts[c] = discounts[rank] * (hits[c] + 1.0) / (rank + 1.0)
        else:
            parts[c] = discounts[rank] * gains[c]
    for c in range(m):
        shown[np.uint64(hits[c])] = parts[c]
    total = 0.0
    for c in range(m):
        total += shown[c]
    return total


@inner_kernel
def before(t, place, c, start, stop):
    """Number of documents of a stretch that stand before document c: higher scores, and equal ones given first."""
    count, x, p = 0, t[c], place[c]
    for j in range(start, stop):
        count += int(t[j] > x) | (int(t[j] == x) & int(place[j] < p))
    return count


@inner_kernel
def top_value(t, n, gains, k, discounts, head, new_head, listed, rank, near, shown):
    """DCG@k of the scores t; `head` lists documents of the last top and gets a successor."""
    size = min(k, n)
    bound = np.inf
    for r in range(size):
        bound = min(bound, t[head[r]])
    found = np.uint64(0)  # unsigned: a signed index is checked for being negative
    for i in range(n):
        listed[found] = i
        found += np.uint64(t[i] >= bound)
    m = int(found)
    for c in range(m):
        near[c] = t[listed[c]]
    if m > 2 * LANES >= 2 * size:
        # The step moved the last top far down. The k-th largest of LANES maxima is a better bound.
        for lane in range(LANES):
            shown[lane] = near[lane]
        for c in range(LANES, m):
            shown[c % LANES] = max(shown[c % LANES], near[c])
        count_ranks(shown, LANES, rank)
        for lane in range(LANES):
            if rank[lane] == size - 1:
                bound = shown[lane]
        kept = 0
        for c in range(m):
            near[kept], listed[kept] = near[c], listed[c]
            kept += int(near[c] >= bound)
        m = kept
    count_ranks(near, m, rank)
    for c in range(m):
        if rank[c] < size:
            new_head[rank[c]] = listed[c]
            shown[rank[c]] = gains[listed[c]]
    total = 0.0
    for r in range(size):
        total += shown[r] * discounts[r]
    return total


@inner_kernel
def value_of(s, g, key, ties, needed, codes, reals_of, table, ints, reals, rank, single):
    """Return the one measure of `codes` for one query whose ideal order stands in the scratch; 0 where undefined."""
    top, _, groups = needed
    m = rank_list(s, g, key, ties, top, ints, reals, rank, single)
    if groups:
        tie_groups(m, ints, reals)
    value = one_value(g, m, codes, reals_of, 0, table, ints, reals)
    return value if value == value else 0.0


@kernel
def step_values(
    way, scores, columns, which, weights, counts, y, ptr, key, place, relevant, gains, ideal, head, cut, discounts,
    ties, codes, reals_of, table, top_grade, values, new_head,
):  # fmt: skip
    """values[q, s] = E of scores + weight_s · column which_s for the queries that count; new tops for the last step.

    Scores, columns, places and gains have the relevant documents of a query first where ranks are counted.
    """
    size = longest_list(ptr) + LANES
    scratch = workspace(size)
    t, near, shown = np.empty(size), np.empty(size), np.empty(size)
    keys, hits, others = np.zeros(size, np.int16), np.empty(size, np.int16), np.empty(size, np.int16)
    same, seats, owner = np.empty(size, np.int16), np.zeros(size, np.int16), np.empty(LEVELS + 2, np.int16)
    listed = np.empty(size, np.int64)
    each_list(
        way, scores, columns, which, weights, counts, y, ptr, key, place, relevant, gains, ideal, head, cut, discounts,
        ties, codes, reals_of, table, top_grade, values, new_head,
        needs(codes), *scratch, t, t.view(np.int64), near, shown, keys, seats, owner, hits, others, same, listed,
    )  # fmt: skip


@inner_kernel
def each_list(
    way, scores, columns, which, weights, counts, y, ptr, key, place, relevant, gains, ideal, head, cut, discounts,
    ties, codes, reals_of, table, top_grade, values, new_head,
    needed, ints, reals, rank, single, t, bits, near, shown, keys, seats, owner, hits, others, same, listed,
):  # fmt: skip
    """Fill `values` and `new_head`, see `step_values`."""
    for q in range(len(ptr) - 1):
        a, b, m = ptr[q], ptr[q + 1], relevant[q]
        n, prepared = b - a, False
        counted = way > TOP and ideal[q] > 0 and m * n <= PAIRS and n < LEVELS // 2
        for s in range(len(which)):
            if not counts[q]:
                values[q, s] = 0.0
                continue
            add_step(scores[a:b], columns[which[s], a:b], weights[s], t)
            total = -1.0
            if way == TOP and ideal[q] > 0:
                total = top_value(t, n, gains[a:b], cut, discounts, head[q], new_head[q], listed, rank, near, shown)
            elif counted and quantise(t, bits, n, m, keys):
                total = counted_value(
                    way, t, place[a:b], n, m, gains[a:b], discounts, keys, seats, owner, hits, others, same, near, shown
                )
            if total >= 0:
                values[q, s] = total / ideal[q]
                continue
            for i in range(n):
                near[place[a + i]] = t[i]
            if needed[1] > 0 and not prepared:
                ideal_list(y[a:b], needed[1], top_grade, reals)
                prepared = True
            values[q, s] = value_of(
                near[:n], y[a:b], key[a:b], ties, needed, codes, reals_of, table, ints, reals, rank, single
            )
