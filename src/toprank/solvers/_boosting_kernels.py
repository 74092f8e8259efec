# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""RankBoost: pair weights as document potentials, and the thresholds of a column by a histogram."""

from __future__ import annotations

import math

import numpy as np

from ..core._order_kernels import longest_list, number_grades
from ..core.jit import inner_kernel, kernel

CLEARLY = 1.0 + 1e-12
"""By what factor a threshold must be better than an earlier one to be chosen: more than rounding."""


@kernel
def grade_codes(y, ptr, codes):
    """Number the grades of each list upwards from 0; return one more than the largest number."""
    longest, most = longest_list(ptr), 0
    ints, work = np.empty((2, longest), np.int64), np.empty((2, longest))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        most = max(most, number_grades(y[a:b], codes[a:b], work[0], ints[0], work[1], ints[1]))
    return most


@kernel
def potentials(H, codes, ptr, weight, levels, out):
    """out_i = Σ_j D(i, j) − D(j, i) with D(i, j) = weight_q e^{H_j − H_i} for y_i > y_j; returns Σ D."""
    low, high = np.empty(levels), np.empty(levels)
    total = 0.0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        if weight[q] == 0.0 or a == b:
            for i in range(a, b):
                out[i] = 0.0
            continue
        smallest, largest = H[a], H[a]
        for i in range(a, b):
            smallest, largest = min(smallest, H[i]), max(largest, H[i])
        centre = 0.5 * (
            smallest + largest
        )  # subtracted from H: it cancels in every pair and keeps both factors in range
        low[:] = 0.0
        high[:] = 0.0
        for i in range(a, b):
            out[i] = math.exp(H[i] - centre)
            low[codes[i]] += out[i]
            high[codes[i]] += 1.0 / out[i]
        # low: Σ e^H over the grades below; high: Σ e^{-H} over those above.
        running = 0.0
        for g in range(levels):
            low[g], running = running, running + low[g]
        running = 0.0
        for g in range(levels - 1, -1, -1):
            high[g], running = running, running + high[g]
        for i in range(a, b):
            wins = low[codes[i]] / out[i]
            total += weight[q] * wins
            out[i] = weight[q] * (wins - high[codes[i]] * out[i])
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


@inner_kernel
def add_by_code(codes, potential, sums):
    """sums[i mod 4, codes[i]] += potential[i]: with one row of sums, equal codes would wait for each other.

    Where codes are bytes, eight are read as one number (lowest byte first, as on all processors that numba knows).
    """
    first, second, third, fourth = sums[0], sums[1], sums[2], sums[3]
    n, done, byte = len(potential), 0, np.uint64(255)
    if codes.itemsize == 1:
        words = codes[: n // 8 * 8].view(np.uint64)
        for j in range(len(words)):
            word, i = words[j], 8 * j
            first[word & byte] += potential[i]
            second[(word >> np.uint64(8)) & byte] += potential[i + 1]
            third[(word >> np.uint64(16)) & byte] += potential[i + 2]
            fourth[(word >> np.uint64(24)) & byte] += potential[i + 3]
            first[(word >> np.uint64(32)) & byte] += potential[i + 4]
            second[(word >> np.uint64(40)) & byte] += potential[i + 5]
            third[(word >> np.uint64(48)) & byte] += potential[i + 6]
            fourth[word >> np.uint64(56)] += potential[i + 7]
        done = 8 * len(words)
    for i in range(done, n - 3, 4):
        first[codes[i]] += potential[i]
        second[codes[i + 1]] += potential[i + 1]
        third[codes[i + 2]] += potential[i + 2]
        fourth[codes[i + 3]] += potential[i + 3]
    for i in range(n // 4 * 4, n):
        first[codes[i]] += potential[i]


@kernel
def best_threshold(codes, rows, begin, at_zero, n_edges, potential, both, first, last):
    """Best column in first … last − 1 and its edge: the largest Σ_{x > θ} potential, or with `both` its largest size.

    The codes of column k begin at begin[k]: those of all rows, or up to begin[k + 1] those of `rows`, the other rows
    being 0. All potentials add up to 0, so the sum over the other rows is known. Returns (|r|, r, column, edge).
    """
    best, signed, column, place = 0.0, 0.0, -1, -1
    most = 0
    for k in range(first, last):
        most = max(most, n_edges[k] + 1)
    sums = np.empty((4, most))
    for k in range(first, last):
        low, size = begin[k], n_edges[k] + 1
        if size == 1:
            continue
        sums[:, :size] = 0.0
        if len(rows) == 0:
            add_by_code(codes[low : low + len(potential)], potential, sums)
        else:
            stored = 0.0
            for p in range(low, begin[k + 1]):
                sums[0, codes[p]] += potential[rows[p]]
                stored += potential[rows[p]]
            sums[1, at_zero[k]] -= stored
        total = 0.0
        for edge in range(size - 2, -1, -1):
            total += (sums[0, edge + 1] + sums[1, edge + 1]) + (sums[2, edge + 1] + sums[3, edge + 1])
            value = abs(total) if both else total
            if value > best * CLEARLY:
                best, signed, column, place = value, total, k, edge
    return best, signed, column, place


@kernel
def add_stump(H, codes, rows, begin, at_zero, column, edge, amount):
    """H_i += amount for the rows above the edge.

    Where zeros that are not stored are above it, −amount for the others: differences inside lists change as much.
    """
    low = begin[column]
    for p in range(low, low + len(H) if len(rows) == 0 else begin[column + 1]):
        if len(rows) == 0:
            H[p - low] += amount if codes[p] > edge else 0.0
        elif at_zero[column] <= edge:
            H[rows[p]] += amount if codes[p] > edge else 0.0
        else:
            H[rows[p]] -= amount if codes[p] <= edge else 0.0


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
