# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: what the mean of average precision or NDCG cannot exceed after one more step.

Most steps lose, and a bound from above says so in less than half the time: scores and columns are kept as 16-bit keys,
and only a document that is ahead whatever the keys left out counts as ahead.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import KEYS, count_ahead, precisions
from ..core._prefetch_kernels import LINE, prefetch
from ..core.jit import inlined_kernel, inner_kernel, inner_sum_kernel, kernel
from ._adarank_kernels import LEVELS, PAIRS, SPARE, close_step, extent, share, write_keys

UNSURE = 4
"""Mixed keys that differ by no more may belong to scores in the other order (see `mix_keys`)."""
STEADY = float(1 << 30)
"""Scores this many times as large as they differ are rounded too coarsely for their keys to bound anything."""


@kernel
def list_keys(values, ptr, keys, spread, largest):
    """Write the values of each list as keys, which share its range evenly; its range; its largest absolute value.

    A range that is not a float32 number is written as infinite.
    """
    size = 2
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + 2)
    t = np.empty(size)
    bits = t.view(np.int64)
    for q in range(len(ptr) - 1):
        own = values[ptr[q] : ptr[q + 1]]
        n = len(own)
        for i in range(n):
            t[i] = own[i]
        low, high = extent(t, bits, n)
        spread[q], largest[q] = high - low, max(abs(low), abs(high))
        if spread[q] > 0.0:
            write_keys(t[:n], low, LEVELS / (high - low), keys[ptr[q] :])
        elif high > low:
            spread[q] = np.inf


@inlined_kernel
def mix_keys(scores, column, part, rest, keys):
    """keys = (part · scores + rest · column)/2¹⁶, in 16-bit arithmetic.

    In units of the result, where the keys of a list differ by up to 2¹⁵, the true difference of two documents is off by
    less than 1/2 (what the keys left out) + 2 (part and rest rounded down) + 2 (both products rounded down).
    """
    for i in range(len(scores)):
        one = np.int32(np.int32(scores[i]) * np.int32(part)) >> np.int32(16)
        other = np.int32(np.int32(column[i]) * np.int32(rest)) >> np.int32(16)
        keys[i] = np.int16(np.int16(one) + np.int16(other))


@inlined_kernel
def mix_list(scores, columns, at, a, n, part, rest, keys):
    """Mix the keys of n documents from a on, as whole steps; return where these end."""
    b = a + (n + KEYS - 1) // KEYS * KEYS
    mix_keys(scores[0, a:b], columns[at, a:b], part, rest, keys)
    return close_step(keys, n)


@inner_kernel
def places_apart(hits, m, seen):
    """Give relevant documents that share a place different ones, one after the other."""
    for c in range(m):
        seen[c] = 0
    for c in range(m):
        first = hits[c]
        hits[c] += seen[first]
        seen[first] += 1


@inlined_kernel
def precision_bound(scores, columns, at, a, n, m, part, rest, cut, keys, hits, others, seen, sums):
    """Σ over the relevant documents of the precision at their places."""
    start = mix_list(scores, columns, at, a, m, part, rest, keys)
    mix_list(scores, columns, at, a + m, n - m, part, rest, keys[start:])
    count_ahead(keys, 0, m, m, 0, hits)
    count_ahead(keys, start, start + n - m, m, UNSURE, others)
    precisions(hits, others, m, cut, sums)
    if sums[1] < m * (m - 1) // 2:
        places_apart(hits, m, seen)
        precisions(hits, others, m, cut, sums)
    return sums[0]


@inner_sum_kernel
def gain_bound(ahead, m, gains, discounts):
    """Σ over the relevant documents of gain times discount at their places."""
    total = 0.0
    for c in range(m):
        total += gains[c] * discounts[np.uint16(ahead[c])]
    return total


@inlined_kernel
def list_bound(
    precision, scores, columns, at, a, n, m, before, added, sign,
    gains, cut, discounts, keys, hits, others, seen, sums,
):  # fmt: skip
    """What Σ gain · share of one list cannot exceed; the scores spread over `before`, the step over `added`."""
    unit = (LEVELS // 2) / (before + added)
    part, rest = np.int16(before * unit), np.int16(added * unit)
    rest = rest if sign > 0 else np.int16(-rest)
    if precision:
        return precision_bound(scores, columns, at, a, n, m, part, rest, cut, keys, hits, others, seen, sums)
    mix_list(scores, columns, at, a, n, part, rest, keys)
    count_ahead(keys, 0, n, m, UNSURE, others)
    return gain_bound(others, m, gains[a : a + m], discounts)


@inner_kernel
def tied_value(precision, n, m, gains, cut, discounts, sums):
    """Σ gain · share of a list whose documents are all tied."""
    total = 0.0
    for c in range(m):
        total += gains[c]
    return total * share(precision, 0, 0, m, n, cut, discounts, sums)


@kernel
def step_bounds(
    precision, scores, score_spread, score_largest, columns, spread, largest, which, weights,
    counts, ptr, relevant, gains, ideal, cut, discounts, sums, otherwise, importance, bounds,
):  # fmt: skip
    """bounds[s] = Σ_q importance · a bound from above of what `step_values` finds; scores and columns are `list_keys`.

    The i-th relevant document from the top has at least as many others ahead of it as the i-th smallest of the counts
    here, whichever order the keys left open, and both measures fall with the places of the relevant documents.
    """
    size = SPARE
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + SPARE)
    keys, seen, found = np.zeros(size, np.int16), np.empty(size, np.int16), np.empty(2)
    hits, others = np.empty(size, np.int16), np.empty(size, np.int16)
    bounds[:] = 0.0
    for q in range(len(ptr) - 1):
        a, n, m, best = ptr[q], ptr[q + 1] - ptr[q], relevant[q], ideal[q]
        for s in range(len(which) if counts[q] else 0):
            if not best > 0:
                bounds[s] += importance[q] * otherwise[q]
                continue
            weight, at = abs(weights[s]), which[s]
            for i in range(a + n, a + 2 * n, LINE // 2):  # of the next list
                prefetch(columns, np.int64(2 * (at * columns.shape[1] + i)))
            before, added = np.float64(score_spread[q, 0]), weight * np.float64(spread[q, at])
            both = before + added
            steady = score_largest[q, 0] + weight * largest[q, at] < STEADY * both < np.inf
            if both == 0.0:
                value = tied_value(precision, n, m, gains[a:], cut, discounts, sums)
            elif not steady or m * n > PAIRS or n >= LEVELS // 2:
                value = best
            else:
                value = list_bound(
                    precision, scores, columns, at, a, n, m, before, added, weights[s],
                    gains, cut, discounts, keys, hits, others, seen, found,
                )  # fmt: skip
            bounds[s] += importance[q] * (value / best)
