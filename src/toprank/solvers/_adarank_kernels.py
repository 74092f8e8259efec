# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: average precision or NDCG of every list after one more step, as expected over the orders of ties.

Both read the places of the relevant documents alone. These are counted (Σ over them of the documents with higher
scores, many at a time), which is faster than a sort but for long lists with many relevant documents.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import STEP, count_with_ties
from ..core._order_kernels import sort_down
from ..core._prefetch_kernels import prefetch
from ..core._vector_kernels import exponentials
from ..core.jit import inner_kernel, kernel

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
FEW = 16
"""Rows whose columns are read together."""
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
def close_step(keys, stop):
    """Fill up the last step of keys that are counted; return where it ends."""
    for i in range(STEP):
        keys[stop + i] = BELOW
    return (stop + STEP - 1) // STEP * STEP


@inner_kernel
def extent(t, bits, n):
    """The least and the largest of n numbers; there is room for both behind them.

    `bits` is t as whole numbers: their minimum and maximum are vectors, those of reals are not.
    """
    low = high = bits[0] ^ ((bits[0] >> 63) & LARGEST)
    for i in range(n):
        x = bits[i] ^ ((bits[i] >> 63) & LARGEST)  # in the order of the reals
        low, high = min(low, x), max(high, x)
    bits[n], bits[n + 1] = low ^ ((low >> 63) & LARGEST), high ^ ((high >> 63) & LARGEST)
    return t[n], t[n + 1]


@inner_kernel
def quantise(t, bits, n, m, keys):
    """Write n scores as 16-bit keys in the same order, the first m as steps of their own; False: they have no range."""
    least, largest = extent(t, bits, n)
    scale = LEVELS / (largest - least)
    if not 0.0 < scale < np.inf:
        return False
    write_keys(t[:m], least, scale, keys)
    start = close_step(keys, m)
    write_keys(t[m:n], least, scale, keys[start:])
    close_step(keys, start + n - m)
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
def settle_keys(t, n, m, start, keys, owner, hits, others, same_hits, same_others):
    """Count by scores where unequal scores share a key; return False if a sort would cost less."""
    mixed = 0
    for i in range(n):
        owner[keys[i if i < m else start + i - m] - BELOW] = i
    for i in range(n):
        at = keys[i if i < m else start + i - m] - BELOW
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
    """Count the documents ahead of each relevant one, the first m, and those tied with it.

    Return whether no sort is needed, which may cost less, and whether any are tied.
    """
    start = (m + STEP - 1) // STEP * STEP
    count_with_ties(keys, 0, m, m, hits, same_hits)
    count_with_ties(keys, start, start + n - m, m, others, same_others)
    tied = False
    for c in range(m):
        tied |= same_hits[c] + same_others[c] > 1
    return not tied or settle_keys(t, n, m, start, keys, owner, hits, others, same_hits, same_others), tied


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
def untied_value(precision, m, gains, cut, discounts, hits, others, shares, parts):
    """The same where no relevant document is tied, to the bit: the k-th from the top has k others of them ahead."""
    if precision:
        for c in range(m):
            place = np.int32(hits[c]) + np.int32(others[c]) + np.int32(1)
            shares[c] = (np.int32(hits[c]) + 1.0) / np.float64(place) if place <= cut else 0.0
    else:
        for c in range(m):
            shares[c] = discounts[np.uint16(hits[c] + others[c])]
    for c in range(m):
        parts[np.uint16(hits[c])] = gains[c] * shares[c]
    total = 0.0
    for c in range(m):
        total += parts[c]
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
            counted = m * n <= PAIRS and n < LEVELS // 2 and quantise(t, bits, n, m, keys)
            tied = False
            if counted:
                counted, tied = count_places(t, n, m, keys, owner, hits, others, same_hits, same_others)
            for back in range(2 if reverse else 1):
                if back and counted:
                    for c in range(m):
                        hits[c] = m - hits[c] - same_hits[c]
                        others[c] = n - m - others[c] - same_others[c]
                elif back:
                    for i in range(n):
                        t[i] = -t[i]
                if counted and not tied:
                    total = untied_value(precision, m, own, cut, discounts, hits, others, held, shares)
                elif counted:
                    total = counted_value(
                        precision, m, own, cut, discounts, sums, hits, others, same_hits, same_others, held, shares
                    )
                else:
                    total = sorted_value(precision, t, n, m, own, cut, discounts, sums, held, order, shares, order2)
                values[q, s + back * len(which)] = total / ideal[q]


@kernel
def read_columns(X, order, out):
    """out[k, i] = X[order[i], k], a few rows at a time: behind the last one there must be room for as many."""
    width, few = X.shape[1], np.zeros((FEW, X.shape[1]), X.dtype)
    for first in range(0, len(order), FEW):
        for i in range(min(FEW, len(order) - first)):
            row, copied = X[order[first + i]], few[i]
            for k in range(width):
                copied[k] = row[k]
        for k in range(width):
            column = out[k, first : first + FEW]
            for i in range(FEW):
                column[i] = few[i, k]


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
def e_to_minus(values):
    """e^(−value) of each, the same bits on every type of processor."""
    found = -values
    exponentials(found)
    return found
