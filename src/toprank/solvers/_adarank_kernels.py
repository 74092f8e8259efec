# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: average precision or NDCG of every list after one more step, as expected over the orders of ties.

Both read the places of the relevant documents alone. These are counted (Σ over them of the documents with higher
scores, many at a time), which is faster than a sort but for long lists with many relevant documents. Most steps lose,
and a bound from above says so in less than half the time: scores and columns are kept as 16-bit keys, and only a
document that is ahead whatever the keys left out counts as ahead.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import count_ahead, count_with_ties
from ..core._order_kernels import sort_down
from ..core._prefetch_kernels import prefetch
from ..core._vector_kernels import exponentials
from ..core.jit import inner_kernel, inner_sum_kernel, kernel

PAIRS, EXACT_PAIRS = 1 << 20, 1 << 18
"""Places are counted where no more pairs (relevant document, document) than this are compared: keys, and scores."""
LEVELS = 65534
"""Scores are compared as 16-bit keys, many at a time; what these cannot tell apart is settled by the scores."""
BELOW = -LEVELS // 2 - 1
"""Below every key."""
LARGEST = (1 << 63) - 1
"""All bits of a real but its sign."""
SPARE = 64
"""Room beyond the longest list, for whole vectors of keys."""
UNSURE = 4
"""Mixed keys that differ by no more may belong to scores in the other order (see `mix_keys`)."""
STEADY = float(1 << 30)
"""Scores this many times as large as they differ are rounded too coarsely for their keys to bound anything."""

EARLY = 128
"""Rows between the one that is read of a column and the one that is fetched."""


@inner_kernel
def share(precision, h, a, r, g, cut, discounts, sums):
    """What one relevant document brings, on average over the orders of the g documents that share its score.

    a documents have higher scores, h of them relevant; r of the g are relevant. NDCG: (1/g) Σ_p D_{a+p}, p = 1 … g.
    Precision: (1/g) Σ_p (h + 1 + (p − 1)(r − 1)/(g − 1))/(a + p), with (p − 1)/(a + p) = 1 − (a + 1)/(a + p). `sums`
    are Σ D, or for precision Σ 1/place, up to the cut-off.
    """
    if g == 1:
        return discounts[a] * (h + 1.0) / (a + 1.0) if precision else discounts[a]
    total = sums[a + g] - sums[a]
    if not precision:
        return total / g
    places = min(a + g, cut) - min(a, cut)
    return ((h + 1.0) * total + (r - 1.0) / (g - 1.0) * (places - (a + 1.0) * total)) / g


@inner_kernel
def add_step(scores, column, weight, t):
    """t = scores + weight · column."""
    for i in range(len(scores)):
        t[i] = scores[i] + weight * np.float64(column[i])


@inner_kernel
def quantise(t, bits, n, keys):
    """Write n scores as 16-bit keys in the same order; return False if they have no range.

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
    write_keys(t[:n], least, scale, keys)
    return True


@inner_kernel
def write_keys(t, least, scale, keys):
    """Write the scores as whole numbers above BELOW."""
    for i in range(len(t)):
        keys[i] = np.int16(np.int32((t[i] - least) * scale) - LEVELS // 2)


@inner_kernel
def count_scores(t, c, start, stop):
    """Number of documents of a stretch whose score is above that of document c, and equal to it."""
    above, equal, x = 0, 0, t[c]
    for j in range(start, stop):
        above += int(t[j] > x)
        equal += int(t[j] == x)
    return above, equal


@inner_kernel
def settle_keys(t, n, m, keys, owner, hits, others, same_hits, same_others):
    """Count by scores where unequal scores share a key; return False if a sort would cost less."""
    mixed = 0
    for i in range(n):
        owner[keys[i] - BELOW] = i
    for i in range(n):
        at = keys[i] - BELOW
        if owner[at] < 0 or t[owner[at]] != t[i]:
            owner[at] = -1
    for c in range(m):
        mixed += int(owner[keys[c] - BELOW] < 0)
    if mixed * n > EXACT_PAIRS:
        return False
    for c in range(m):
        if owner[keys[c] - BELOW] < 0:
            hits[c], same_hits[c] = count_scores(t, c, 0, m)
            others[c], same_others[c] = count_scores(t, c, m, n)
    return True


@inner_kernel
def count_places(t, n, m, keys, owner, hits, others, same_hits, same_others):
    """Count the documents ahead of each relevant one, the first m, and those tied with it; False: a sort costs less."""
    count_with_ties(keys, 0, m, m, hits, same_hits)
    count_with_ties(keys, m, n, m, others, same_others)
    tied = False
    for c in range(m):
        tied |= same_hits[c] + same_others[c] > 1
    return not tied or settle_keys(t, n, m, keys, owner, hits, others, same_hits, same_others)


@inner_kernel
def counted_value(precision, m, gains, cut, discounts, sums, hits, others, same_hits, same_others, held, shares):
    """Σ over the relevant documents of gain times share.

    Added up from the top down, so that the order of the rows does not reach the last bit.
    """
    for c in range(m):
        held[c] = 0.0
    for c in range(m):
        h, a, r = np.int64(hits[c]), np.int64(hits[c]) + others[c], np.int64(same_hits[c])
        held[h] += gains[c]
        shares[h] = share(precision, h, a, r, r + same_others[c], cut, discounts, sums)
    total = 0.0
    for c in range(m):
        if held[c] > 0.0:
            total += held[c] * shares[c]
    return total


@inner_kernel
def sorted_value(precision, t, n, m, gains, cut, discounts, sums, keys, order, keys2, order2):
    """The same by sorting."""
    for i in range(n):
        keys[i], order[i] = t[i], i
    sort_down(keys, order, n, keys2, order2)
    total, h, a = 0.0, 0, 0
    while a < n:
        b, r, gain = a, 0, 0.0
        while b < n and keys[b] == keys[a]:
            if order[b] < m:
                r += 1
                gain += gains[order[b]]
            b += 1
        if b == a:  # not a number
            return 0.0
        if r > 0:
            total += gain * share(precision, h, a, r, b - a, cut, discounts, sums)
        h, a = h + r, b
    return total


@kernel
def step_values(
    precision,
    scores,
    columns,
    which,
    weights,
    reverse,
    counts,
    ptr,
    relevant,
    gains,
    ideal,
    cut,
    discounts,
    sums,
    values,
):
    """values[q, s] = E of scores + weight_s · column which_s for the queries that count and have something to find.

    The relevant documents of a query stand first in scores, columns and gains. With `reverse` the values of the same
    lists from the bottom up follow: who is not ahead and not tied is behind.
    """
    size = SPARE
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + SPARE)
    t, held, shares = np.empty(size), np.empty(size), np.empty(size)
    keys, owner = np.zeros(size, np.int16), np.empty(LEVELS + 2, np.int16)
    hits, others = np.empty(size, np.int16), np.empty(size, np.int16)
    same_hits, same_others = np.empty(size, np.int16), np.empty(size, np.int16)
    order, order2, bits = np.empty(size, np.int64), np.empty(size, np.int64), t.view(np.int64)
    for q in range(len(ptr) - 1):
        a, n, m = ptr[q], ptr[q + 1] - ptr[q], relevant[q]
        own = gains[a : a + m]
        for s in range(len(which) if counts[q] and ideal[q] > 0 else 0):
            add_step(scores[a : a + n], columns[which[s], a : a + n], weights[s], t)
            counted = m * n <= PAIRS and n < LEVELS // 2 and quantise(t, bits, n, keys)
            counted = counted and count_places(t, n, m, keys, owner, hits, others, same_hits, same_others)
            for back in range(2 if reverse else 1):
                if back and counted:
                    for c in range(m):
                        hits[c] = m - hits[c] - same_hits[c]
                        others[c] = n - m - others[c] - same_others[c]
                elif back:
                    for i in range(n):
                        t[i] = -t[i]
                if counted:
                    total = counted_value(
                        precision, m, own, cut, discounts, sums, hits, others, same_hits, same_others, held, shares
                    )
                else:
                    total = sorted_value(precision, t, n, m, own, cut, discounts, sums, held, order, shares, order2)
                values[q, s + back * len(which)] = total / ideal[q]


@kernel
def read_column(X, k, order, out):
    """out = column k of X in this order: the lines of later rows are fetched early, as no processor guesses them."""
    width = np.int64(X.shape[1] * X.itemsize)
    ahead = np.int64(k * X.itemsize) + EARLY * width
    for i in range(len(order)):
        prefetch(X, ahead)
        out[i] = X[order[i], k]
        ahead += width


@kernel
def list_keys(values, ptr, keys, spread, largest):
    """Write the values of each list as keys, which share its range evenly; its range; its largest absolute value.

    A range that is not a float32 number is written as infinite.
    """
    for q in range(len(ptr) - 1):
        own = values[ptr[q] : ptr[q + 1]]
        low, high = np.inf, -np.inf
        for i in range(len(own)):
            x = np.float64(own[i])
            low, high = min(low, x), max(high, x)
        spread[q], largest[q] = high - low, max(abs(low), abs(high))
        if spread[q] > 0.0:
            write_keys(own, low, LEVELS / (high - low), keys[ptr[q] :])
        elif high > low:
            spread[q] = np.inf


@inner_kernel
def mix_keys(scores, column, share, rest, keys):
    """keys = (share · scores + rest · column)/2¹⁶, in 16-bit arithmetic.

    In units of the result, where the keys of a list differ by up to 2¹⁵, the true difference of two documents is off by
    less than 1/2 (what the keys left out) + 2 (share and rest rounded down) + 2 (both products rounded down).
    """
    for i in range(len(scores)):
        one = np.int32(np.int32(scores[i]) * np.int32(share)) >> np.int32(16)
        other = np.int32(np.int32(column[i]) * np.int32(rest)) >> np.int32(16)
        keys[i] = np.int16(np.int16(one) + np.int16(other))


@inner_kernel
def places_apart(hits, m, seen):
    """Give relevant documents that share a place different ones, one after the other."""
    total = 0
    for c in range(m):
        total += hits[c]
    if total < m * (m - 1) // 2:
        for c in range(m):
            seen[c] = 0
        for c in range(m):
            first = hits[c]
            hits[c] += seen[first]
            seen[first] += 1


@inner_sum_kernel
def precision_bound(hits, others, m, worth):
    """Σ over the relevant documents of the precision at their places; `worth` is discount/place."""
    total = 0.0
    for c in range(m):
        total += worth[np.uint16(hits[c] + others[c])] * (hits[c] + 1.0)
    return total


@inner_sum_kernel
def gain_bound(ahead, m, gains, discounts):
    """Σ over the relevant documents of gain times discount at their places."""
    total = 0.0
    for c in range(m):
        total += gains[c] * discounts[np.uint16(ahead[c])]
    return total


@kernel
def step_bounds(
    precision, scores, score_spread, score_largest, columns, spread, largest, which, weights,
    counts, ptr, relevant, gains, ideal, cut, discounts, sums, values,
):  # fmt: skip
    """Raise values[q, s] to a bound from above of what `step_values` finds; scores and columns are `list_keys`.

    The i-th relevant document from the top has at least as many others ahead of it as the i-th smallest of the counts
    here, whichever order the keys left open, and both measures fall with the places of the relevant documents.
    """
    size = SPARE
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + SPARE)
    worth = np.empty(len(discounts))
    for place in range(len(discounts)):
        worth[place] = discounts[place] / (place + 1.0)
    keys, seen = np.zeros(size, np.int16), np.empty(size, np.int16)
    hits, others = np.empty(size, np.int16), np.empty(size, np.int16)
    for q in range(len(ptr) - 1):
        a, n, m = ptr[q], ptr[q + 1] - ptr[q], relevant[q]
        whole = (n + 15) // 16 * 16
        for s in range(len(which) if counts[q] and ideal[q] > 0 else 0):
            weight, at = abs(weights[s]), which[s]
            before, added = np.float64(score_spread[0, q]), weight * np.float64(spread[at, q])
            both = before + added
            if both == 0.0:
                continue  # all are tied
            steady = score_largest[0, q] + weight * largest[at, q] < STEADY * both < np.inf
            if not steady or m * n > PAIRS or n >= LEVELS // 2:
                values[q, s] = 1.0
                continue
            share, rest = np.int16(before / both * (LEVELS // 2)), np.int16(added / both * (LEVELS // 2))
            rest = rest if weights[s] > 0 else np.int16(-rest)
            mix_keys(scores[0, a : a + whole], columns[at, a : a + whole], share, rest, keys)
            if not precision:
                count_ahead(keys, 0, n, m, UNSURE, others)
                values[q, s] = gain_bound(others, m, gains[a : a + m], discounts) / ideal[q]
                continue
            count_ahead(keys, 0, m, m, 0, hits)
            count_ahead(keys, m, n, m, UNSURE, others)
            places_apart(hits, m, seen)
            values[q, s] = precision_bound(hits, others, m, worth) / ideal[q]


@kernel
def e_to_minus(values):
    """e^(−value) of each, the same bits on every type of processor."""
    found = -values
    exponentials(found)
    return found
