# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: what the mean of average precision or NDCG cannot exceed after one more step.

Most steps do not improve the mean, and an upper bound shows this in less than half the time. Scores and columns are
kept as 16-bit keys, which are rounded; a document counts as ahead only if no rounding could have put it there.
"""

from __future__ import annotations

import numpy as np

from ..core._block_kernels import KEYS, count_ahead, precisions
from ..core._prefetch_kernels import LINE, prefetch
from ..core.jit import inlined_kernel, inner_kernel, inner_sum_kernel, kernel
from ._adarank_kernels import LEVELS, MOST_KEY_PAIRS, PADDING, expected_share, least_and_largest, pad_step, write_keys

KEY_ERROR = 4
"""Scores may be in the other order than their mixed keys if these differ by no more than this (see `mix_keys`)."""
LARGEST_RATIO = float(1 << 30)
"""Scores that are this many times as large as their range are rounded too coarsely: their keys bound nothing."""


@kernel
def list_keys(values, ptr, keys, spread, largest):
    """Write the values of each list as keys (equal parts of its range), its range, and its largest absolute value.

    A range that is too small or too large for a float32 number is written as infinite.
    """
    size = 2
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + 2)
    t = np.empty(size)
    bits = t.view(np.int64)
    for q in range(len(ptr) - 1):
        list_values = values[ptr[q] : ptr[q + 1]]
        n = len(list_values)
        for i in range(n):
            t[i] = list_values[i]
        low, high = least_and_largest(t, bits, n)
        spread[q], largest[q] = high - low, max(abs(low), abs(high))
        if spread[q] > 0.0:
            write_keys(t[:n], low, LEVELS / (high - low), keys[ptr[q] :])
        elif high > low:
            spread[q] = np.inf


@inlined_kernel
def mix_keys(scores, column, score_factor, column_factor, keys):
    """keys = (score_factor · scores + column_factor · column)/2¹⁶, in 16-bit arithmetic.

    The keys of a list differ by up to 2¹⁵. In these units, the true difference of two documents is off by less than
    1/2 (the given keys are rounded) + 2 (both factors are rounded down) + 2 (both products are rounded down).
    """
    for i in range(len(scores)):
        score_term = np.int32(np.int32(scores[i]) * np.int32(score_factor)) >> np.int32(16)
        column_term = np.int32(np.int32(column[i]) * np.int32(column_factor)) >> np.int32(16)
        keys[i] = np.int16(np.int16(score_term) + np.int16(column_term))


@inlined_kernel
def mix_list(scores, columns, row, a, n, score_factor, column_factor, keys):
    """Mix the keys of n documents from a on and fill the last step; return where it ends."""
    b = a + (n + KEYS - 1) // KEYS * KEYS
    mix_keys(scores[0, a:b], columns[row, a:b], score_factor, column_factor, keys)
    return pad_step(keys, n)


@inner_kernel
def separate_places(hits, m, taken):
    """Give relevant documents with the same place different places, one after the other."""
    for c in range(m):
        taken[c] = 0
    for c in range(m):
        first = hits[c]
        hits[c] += taken[first]
        taken[first] += 1


@inlined_kernel
def precision_bound(scores, columns, row, a, n, m, score_factor, column_factor, cut, keys, hits, others, taken, sums):
    """Σ over the relevant documents of the precision at their places."""
    start = mix_list(scores, columns, row, a, m, score_factor, column_factor, keys)
    mix_list(scores, columns, row, a + m, n - m, score_factor, column_factor, keys[start:])
    count_ahead(keys, 0, m, m, 0, hits)
    count_ahead(keys, start, start + n - m, m, KEY_ERROR, others)
    precisions(hits, others, m, cut, sums)
    if sums[1] < m * (m - 1) // 2:  # some have the same place
        separate_places(hits, m, taken)
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
    is_ap, scores, columns, row, a, n, m, score_range, step_range, sign,
    gains, cut, discounts, keys, hits, others, taken, precision_sums,
):  # fmt: skip
    """What Σ gain · share of one list cannot exceed; the scores have the range `score_range`, the step `step_range`."""
    unit = (LEVELS // 2) / (score_range + step_range)
    score_factor, column_factor = np.int16(score_range * unit), np.int16(step_range * unit)
    column_factor = column_factor if sign > 0 else np.int16(-column_factor)
    if is_ap:
        return precision_bound(
            scores, columns, row, a, n, m, score_factor, column_factor, cut, keys, hits, others, taken, precision_sums
        )
    mix_list(scores, columns, row, a, n, score_factor, column_factor, keys)
    count_ahead(keys, 0, n, m, KEY_ERROR, others)
    return gain_bound(others, m, gains[a : a + m], discounts)


@inner_kernel
def tied_value(is_ap, n, m, gains, cut, discounts, discount_sums):
    """Σ gain · share of a list whose documents are all tied."""
    total = 0.0
    for c in range(m):
        total += gains[c]
    return total * expected_share(is_ap, 0, 0, m, n, cut, discounts, discount_sums)


@kernel
def step_bounds(
    is_ap, scores, score_spread, score_largest, columns, column_spread, column_largest, rows, weights,
    included, ptr, relevant, gains, ideal, cut, discounts, discount_sums, constant_values, importance, bounds,
):  # fmt: skip
    """bounds[s] = Σ_q importance · an upper bound of what `step_values` finds; scores and columns are `list_keys`.

    The i-th relevant document from the top has at least as many others ahead of it as the i-th smallest of the counts
    here, whatever the keys lost by rounding. Fewer documents ahead never make either measure smaller.
    """
    size = PADDING
    for q in range(len(ptr) - 1):
        size = max(size, ptr[q + 1] - ptr[q] + PADDING)
    keys, taken, precision_sums = np.zeros(size, np.int16), np.empty(size, np.int16), np.empty(2)
    hits, others = np.empty(size, np.int16), np.empty(size, np.int16)
    bounds[:] = 0.0
    for q in range(len(ptr) - 1):
        a, n, m, best = ptr[q], ptr[q + 1] - ptr[q], relevant[q], ideal[q]
        for s in range(len(rows) if included[q] else 0):
            if not best > 0:
                bounds[s] += importance[q] * constant_values[q]
                continue
            weight, row = abs(weights[s]), rows[s]
            for i in range(a + n, a + 2 * n, LINE // 2):  # the next list, taken to be as long
                prefetch(columns, np.int64(2 * (row * columns.shape[1] + i)))
            score_range, step_range = np.float64(score_spread[q, 0]), weight * np.float64(column_spread[q, row])
            total_range = score_range + step_range
            fine_enough = score_largest[q, 0] + weight * column_largest[q, row] < LARGEST_RATIO * total_range < np.inf
            if total_range == 0.0:
                value = tied_value(is_ap, n, m, gains[a:], cut, discounts, discount_sums)
            elif not fine_enough or m * n > MOST_KEY_PAIRS or n >= LEVELS // 2:
                value = best
            else:
                value = list_bound(
                    is_ap, scores, columns, row, a, n, m, score_range, step_range, weights[s],
                    gains, cut, discounts, keys, hits, others, taken, precision_sums,
                )  # fmt: skip
            bounds[s] += importance[q] * (value / best)
