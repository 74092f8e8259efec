# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""RankBoost: pair weights as document potentials, and the thresholds of a column by a histogram."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel
from ..core.sorting import number_grades

CLEARLY = 1.0 + 1e-12
"""By what factor a threshold must be better than an earlier one to be chosen: more than rounding."""
ROWS_OF_SUMS = 4
"""Documents in turn add to so many sums per code: most values of a column may be equal, and additions to one and the
same sum wait for each other, which takes nine times as long."""


class Pairs(NamedTuple):
    """The pairs of documents of each list that differ in grade, without writing them out."""

    level: Any
    """The grades of each list, numbered upwards from 0."""
    levels: int
    """One more than the largest number."""
    ptr: Any
    weight: Any
    """What one pair of each list weighs."""


class Codes(NamedTuple):
    """Every value of X as a code, column after column (`BinnedColumns`)."""

    codes: Any
    rows: Any
    """The row of each code, where X is sparse; else empty, since all rows follow each other."""
    begin: Any
    """Where the codes of each column begin, and where the last ends."""
    at_zero: Any
    """The code of 0 in each column: that of the rows which a sparse X leaves out."""
    n_edges: Any
    """The thresholds of each column."""


@kernel
def number_grades_of_lists(y, ptr, level):
    """Number the grades of each list upwards from 0; return one more than the largest number."""
    most = 0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        most = max(most, number_grades(y[a:b], level[a:b]))
    return most


@kernel
def potentials(H, pairs, out):
    """out_i = Σ_j D(i, j) − D(j, i) with D(i, j) = weight_q e^{H_j − H_i} for y_i > y_j; return Σ D.

    Both factors e^{H_j} and e^{−H_i} are kept in range by the middle of the scores, which cancels in every pair.
    """
    low, high = np.empty(pairs.levels), np.empty(pairs.levels)
    total = 0.0
    for q in range(len(pairs.ptr) - 1):
        a, b, weight = pairs.ptr[q], pairs.ptr[q + 1], pairs.weight[q]
        if weight == 0.0 or a == b:
            out[a:b] = 0.0
            continue
        middle = 0.5 * (H[a:b].min() + H[a:b].max())
        low[:] = 0.0  # Σ e^H of each grade, then of the grades below
        high[:] = 0.0  # Σ e^{−H} of each grade, then of the grades above
        for i in range(a, b):
            out[i] = math.exp(H[i] - middle)
            low[pairs.level[i]] += out[i]
            high[pairs.level[i]] += 1.0 / out[i]
        below = above = 0.0
        for g in range(pairs.levels):
            low[g], below = below, below + low[g]
        for g in range(pairs.levels - 1, -1, -1):
            high[g], above = above, above + high[g]
        for i in range(a, b):
            wins = low[pairs.level[i]] / out[i]
            total += weight * wins
            out[i] = weight * (wins - high[pairs.level[i]] * out[i])
    return total


@kernel
def write_codes(X, edges, start, codes):
    """codes[k, i] = number of edges of column k below X[i, k].

    All rows search by halving at the same time: without branches, the processor works on several rows at once.
    """
    n = X.shape[0]
    x, low = np.empty(n, X.dtype), np.empty(n, np.uint32)
    for k in range(X.shape[1]):
        own_edges, size = edges[start[k] : start[k + 1]], start[k + 1] - start[k]
        for i in range(n):
            x[i], low[i] = X[i, k], 0
        while size > 0:
            half = np.uint32((size + 1) >> 1)
            for i in range(n):
                middle = np.uint32(low[i] + half)
                low[i] = middle if own_edges[middle - np.uint32(1)] < x[i] else low[i]
            size >>= 1
        for i in range(n):
            codes[k, i] = low[i]


@kernel
def sum_by_code(columns, k, potential, sums):
    """Fill the sums: those of code c together are Σ of the potentials of the documents with that code in column k."""
    sums[:] = 0.0
    first, last = columns.begin[k], columns.begin[k + 1]
    if len(columns.rows) == 0:
        codes = columns.codes[first:last]
        for i in range(len(codes)):
            sums[i % ROWS_OF_SUMS, codes[i]] += potential[i]
        return
    stored = 0.0
    for p in range(first, last):
        sums[0, columns.codes[p]] += potential[columns.rows[p]]
        stored += potential[columns.rows[p]]
    sums[0, columns.at_zero[k]] -= stored  # all potentials add up to 0, so this is the sum over the other documents


@kernel
def best_threshold(columns, potential, both, first, last):
    """The best stump on columns first … last − 1: the largest r = Σ_{x > θ} potential, or with `both` the largest |r|.

    Returns (|r|, r, column, edge).
    """
    best, best_r, best_column, best_edge = 0.0, 0.0, -1, -1
    sums = np.empty((ROWS_OF_SUMS, columns.n_edges[first:last].max() + 1))
    for k in range(first, last):
        if columns.n_edges[k] == 0:
            continue
        sum_by_code(columns, k, potential, sums)
        r = 0.0
        for edge in range(columns.n_edges[k] - 1, -1, -1):
            for row in range(ROWS_OF_SUMS):
                r += sums[row, edge + 1]
            size = abs(r) if both else r
            if size > best * CLEARLY:
                best, best_r, best_column, best_edge = size, r, k, edge
    return best, best_r, best_column, best_edge


@kernel
def add_stump(H, columns, k, edge, alpha):
    """H_i += alpha for the rows above the edge of column k.

    Where zeros that are not stored are above it, −alpha for the others: differences inside lists change as much.
    """
    first, last = columns.begin[k], columns.begin[k + 1]
    if len(columns.rows) == 0:
        for i in range(len(H)):
            H[i] += alpha if columns.codes[first + i] > edge else 0.0
        return
    for p in range(first, last):
        if columns.at_zero[k] <= edge:
            H[columns.rows[p]] += alpha if columns.codes[p] > edge else 0.0
        else:
            H[columns.rows[p]] -= alpha if columns.codes[p] <= edge else 0.0


@kernel
def stump_scores_dense(X, feature, threshold, weight, start, out):
    """out_i = Σ_t weight_t [x_i,feature_t > threshold_t]; stumps by feature and threshold, weights summed so far."""
    for i in range(X.shape[0]):
        total = 0.0
        for f in range(len(feature)):
            total += stump_value(X[i, feature[f]], threshold, weight, start[f], start[f + 1])
        out[i] = total


@kernel
def stump_scores_csr(values, indices, indptr, number, threshold, weight, start, at_zero, out):
    """The same for CSR rows: the score of a row of zeros, plus the difference that each stored value makes."""
    at_zero_sum = at_zero.sum()
    for i in range(len(indptr) - 1):
        total = at_zero_sum
        for p in range(indptr[i], indptr[i + 1]):
            f = number[indices[p]]
            if f >= 0:
                total += stump_value(values[p], threshold, weight, start[f], start[f + 1]) - at_zero[f]
        out[i] = total


@kernel
def stump_value(x, threshold, weight, low, high):
    """Return the sum of the weights of the thresholds below x, by halving."""
    first = low
    while low < high:
        middle = (low + high) // 2
        if threshold[middle] < x:
            low = middle + 1
        else:
            high = middle
    return weight[low - 1] if low > first else 0.0
