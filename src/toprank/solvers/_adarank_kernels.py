# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: average precision or NDCG of every list after one more step, as expected over the orders of ties.

Both measures need only the places of the relevant documents. A place is found by counting the documents with higher
scores, many at a time. This is faster than a sort, except in long lists with many relevant documents.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import STEP, count_with_ties
from ..core._order_kernels import sort_down
from ..core._prefetch_kernels import prefetch
from ..core._vector_kernels import exponentials
from ..core.jit import inner_kernel, kernel

MOST_KEY_PAIRS, MOST_SCORE_PAIRS = 1 << 20, 1 << 18
"""A list is sorted if counting would compare more pairs (relevant document, document) than this, by keys or scores."""
LEVELS = 65534
"""Scores are compared as 16-bit keys with so many values, many at a time; those with equal keys, by themselves."""
BELOW_ALL_KEYS = -LEVELS // 2 - 1
"""Fills room behind the keys: no document counts it as ahead."""
ALL_BUT_SIGN = (1 << 63) - 1
"""All bits of a float64 number except its sign."""
PADDING = 64
"""Room behind the longest list, because keys are read and written as whole vectors."""
ROWS_AT_ONCE = 16
"""Rows of X that are copied before their columns are written: each row is then read in one go."""
PREFETCH_ROWS = 128
"""How many rows ahead of the one that is read a row is prefetched."""


@inner_kernel
def expected_share(is_ap, h, a, r, g, cut, discounts, discount_sums):
    """What one relevant document adds to the measure, on average over the orders of the g documents with its score.

    a documents have higher scores, h of them relevant; r of the g are relevant. NDCG: (1/g) Σ_p D_{a+p}, p = 1 … g.
    AP: (1/g) Σ_p (h + 1 + (p − 1)(r − 1)/(g − 1))/(a + p), with (p − 1)/(a + p) = 1 − (a + 1)/(a + p).
    `discount_sums` are Σ D, or for AP Σ 1/place, up to the cut-off.
    """
    if g == 1:
        return discounts[a] * (h + 1.0) / (a + 1.0) if is_ap else discounts[a]
    total = discount_sums[a + g] - discount_sums[a]
    if not is_ap:
        return total / g
    places = min(a + g, cut) - min(a, cut)
    return ((h + 1.0) * total + (r - 1.0) / (g - 1.0) * (places - (a + 1.0) * total)) / g


@inner_kernel
def add_step(scores, column, weight, t):
    """t = scores + weight · column."""
    for i in range(len(scores)):
        t[i] = scores[i] + weight * np.float64(column[i])


@inner_kernel
def pad_step(keys, stop):
    """Fill the last step behind the keys, since keys are counted in whole steps; return where it ends."""
    for i in range(STEP):
        keys[stop + i] = BELOW_ALL_KEYS
    return (stop + STEP - 1) // STEP * STEP


@inner_kernel
def least_and_largest(t, bits, n):
    """The least and the largest of n numbers, which are also written behind them.

    `bits` is t read as whole numbers: the compiler finds the minimum of many of these at once, but not of reals.
    """
    low = high = bits[0] ^ ((bits[0] >> 63) & ALL_BUT_SIGN)
    for i in range(n):
        x = bits[i] ^ ((bits[i] >> 63) & ALL_BUT_SIGN)  # whole numbers in the order of the reals
        low, high = min(low, x), max(high, x)
    bits[n], bits[n + 1] = low ^ ((low >> 63) & ALL_BUT_SIGN), high ^ ((high >> 63) & ALL_BUT_SIGN)
    return t[n], t[n + 1]


@inner_kernel
def quantise(t, bits, n, m, keys):
    """Write n scores as 16-bit keys, the first m and the others in separate steps.

    A higher score never has a lower key. Return False, and no keys, if the range of the scores is 0, tiny or infinite.
    """
    least, largest = least_and_largest(t, bits, n)
    scale = LEVELS / (largest - least)
    if not 0.0 < scale < np.inf:
        return False
    write_keys(t[:m], least, scale, keys)
    start = pad_step(keys, m)
    write_keys(t[m:n], least, scale, keys[start:])
    pad_step(keys, start + n - m)
    return True


@inner_kernel
def write_keys(t, least, scale, keys):
    """Write the scores as whole numbers, all above BELOW_ALL_KEYS."""
    for i in range(len(t)):
        keys[i] = np.int16(np.int32((t[i] - least) * scale) - LEVELS // 2)


@inner_kernel
def count_scores(t, c, start, stop):
    """How many of the documents start … stop − 1 have a higher score than document c, and how many the same."""
    above, equal, x = 0, 0, t[c]
    for j in range(start, stop):
        above += int(t[j] > x)
        equal += int(t[j] == x)
    return above, equal


@inner_kernel
def count_by_scores(t, n, m, start, keys, key_owner, hits, others, same_hits, same_others):
    """Count by scores where different scores have the same key; return False if a sort would cost less.

    `key_owner` has a document with each key, or −1 for a key of different scores.
    """
    mixed = 0
    for i in range(n):
        key_owner[keys[i if i < m else start + i - m] - BELOW_ALL_KEYS] = i
    for i in range(n):
        at = keys[i if i < m else start + i - m] - BELOW_ALL_KEYS
        if key_owner[at] < 0 or t[key_owner[at]] != t[i]:
            key_owner[at] = -1
    for c in range(m):
        mixed += int(key_owner[keys[c] - BELOW_ALL_KEYS] < 0)
    if mixed * n > MOST_SCORE_PAIRS:
        return False
    for c in range(m):
        if key_owner[keys[c] - BELOW_ALL_KEYS] < 0:
            hits[c], same_hits[c] = count_scores(t, c, 0, m)
            others[c], same_others[c] = count_scores(t, c, m, n)
    return True


@inner_kernel
def count_places(t, n, m, keys, key_owner, hits, others, same_hits, same_others):
    """Count the documents ahead of each relevant one (the first m are relevant), and those tied with it.

    Return whether the counts are right (if not, a sort costs less), and whether a relevant document shares its key.
    """
    start = (m + STEP - 1) // STEP * STEP
    count_with_ties(keys, 0, m, m, hits, same_hits)
    count_with_ties(keys, start, start + n - m, m, others, same_others)
    tied = False
    for c in range(m):
        tied |= same_hits[c] + same_others[c] > 1
    return not tied or count_by_scores(t, n, m, start, keys, key_owner, hits, others, same_hits, same_others), tied


@inner_kernel
def counted_value(
    is_ap, m, gains, cut, discounts, discount_sums, hits, others, same_hits, same_others, gain_sums, shares
):
    """Σ over the relevant documents of gain times share.

    The sum runs from the top of the list down, so that the order of the rows does not change its last bit.
    """
    for c in range(m):
        gain_sums[c] = 0.0
    for c in range(m):
        h, a, r = np.int64(hits[c]), np.int64(hits[c]) + others[c], np.int64(same_hits[c])
        gain_sums[h] += gains[c]
        shares[h] = expected_share(is_ap, h, a, r, r + same_others[c], cut, discounts, discount_sums)
    total = 0.0
    for c in range(m):
        if gain_sums[c] > 0.0:
            total += gain_sums[c] * shares[c]
    return total


@inner_kernel
def untied_value(is_ap, m, gains, cut, discounts, hits, others, shares, parts):
    """The same bits where no relevant document is tied: `hits` then has each of 0 … m − 1 once."""
    if is_ap:
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
def sorted_value(is_ap, t, n, m, gains, cut, discounts, discount_sums, keys, order, keys2, order2):
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
            total += gain * expected_share(is_ap, h, a, r, b - a, cut, discounts, discount_sums)
        h, a = h + r, b
    return total


@kernel
def step_values(
    is_ap, scores, columns, rows, weights, reverse,
    included, ptr, relevant, gains, ideal, cut, discounts, discount_sums, values,
):  # fmt: skip
    """values[q, s] = E of scores + weight_s · columns[rows_s], for included queries with something to find.

    The relevant documents of a query come first in scores, columns and gains. With `reverse`, the values of the same
    lists read from the bottom up follow: there, the documents ahead are those that were neither ahead nor tied.
    """
    size = PADDING
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + PADDING)
    t, gain_sums, shares = np.empty(size), np.empty(size), np.empty(size)
    keys, key_owner = np.zeros(size, np.int16), np.empty(LEVELS + 2, np.int16)
    hits, others = np.empty(size, np.int16), np.empty(size, np.int16)
    same_hits, same_others = np.empty(size, np.int16), np.empty(size, np.int16)
    order, order2, bits = np.empty(size, np.int64), np.empty(size, np.int64), t.view(np.int64)
    for q in range(len(ptr) - 1):
        a, n, m = ptr[q], ptr[q + 1] - ptr[q], relevant[q]
        list_gains = gains[a : a + m]
        for s in range(len(rows) if included[q] and ideal[q] > 0 else 0):
            add_step(scores[a : a + n], columns[rows[s], a : a + n], weights[s], t)
            counted = m * n <= MOST_KEY_PAIRS and n < LEVELS // 2 and quantise(t, bits, n, m, keys)
            tied = False
            if counted:
                counted, tied = count_places(t, n, m, keys, key_owner, hits, others, same_hits, same_others)
            for upside_down in range(2 if reverse else 1):
                if upside_down and counted:
                    for c in range(m):
                        hits[c] = m - hits[c] - same_hits[c]
                        others[c] = n - m - others[c] - same_others[c]
                elif upside_down:
                    for i in range(n):
                        t[i] = -t[i]
                if counted and not tied:
                    total = untied_value(is_ap, m, list_gains, cut, discounts, hits, others, gain_sums, shares)
                elif counted:
                    total = counted_value(
                        is_ap, m, list_gains, cut, discounts, discount_sums, hits, others, same_hits, same_others,
                        gain_sums, shares,
                    )  # fmt: skip
                else:
                    total = sorted_value(
                        is_ap, t, n, m, list_gains, cut, discounts, discount_sums, gain_sums, order, shares, order2
                    )
                values[q, s + upside_down * len(rows)] = total / ideal[q]


@kernel
def read_columns(X, order, out):
    """out[k, i] = X[order[i], k], ROWS_AT_ONCE at a time: `out` must have room for so many behind the last one."""
    width, block = X.shape[1], np.zeros((ROWS_AT_ONCE, X.shape[1]), X.dtype)
    for first in range(0, len(order), ROWS_AT_ONCE):
        for i in range(min(ROWS_AT_ONCE, len(order) - first)):
            row, copied = X[order[first + i]], block[i]
            for k in range(width):
                copied[k] = row[k]
        for k in range(width):
            column = out[k, first : first + ROWS_AT_ONCE]
            for i in range(ROWS_AT_ONCE):
                column[i] = block[i, k]


@kernel
def read_column(X, k, order, out):
    """out = column k of X in this order; later rows are prefetched, since the processor does not guess their place."""
    width = np.int64(X.shape[1] * X.itemsize)
    ahead = np.int64(k * X.itemsize) + PREFETCH_ROWS * width
    for i in range(len(order)):
        prefetch(X, ahead)
        out[i] = X[order[i], k]
        ahead += width


@kernel
def exp_of_minus(values):
    """e^(−value) of each, the same bits on every type of processor."""
    found = -values
    exponentials(found)
    return found
