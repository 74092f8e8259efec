# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""RankBoost: pair weights as document potentials, and all thresholds of a column in one presorted pass."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel


@kernel
def grade_codes(y, ptr, codes):
    """Number the grades of each list 0, 1, … in rising order; returns the largest number of grades in a list."""
    most = 0
    for q in range(len(ptr) - 1):
        values = np.unique(y[ptr[q] : ptr[q + 1]])
        for i in range(ptr[q], ptr[q + 1]):
            codes[i] = np.searchsorted(values, y[i])
        most = max(most, len(values))
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
        centre = 0.5 * (smallest + largest)  # a shift cancels in every pair and keeps both factors in range
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
def best_threshold(order, start, turn, potential, both, first, last):
    """Best column and place in first … last − 1: the largest Σ_{x > θ} potential, or with `both` its largest size.

    A column lists its rows from high to low up to `turn`, then (below the zeros, which are left out) from the lowest
    up; ~row marks the last row of a run of equal values with something beyond it: a place where a threshold can be.
    Returns (|r|, r, column, place).
    """
    best, signed, column, place = 0.0, 0.0, -1, -1
    for k in range(first, last):
        total = 0.0
        for p in range(start[k], turn[k]):
            row = order[p]
            if row >= 0:
                total += potential[row]
            else:
                total += potential[~row]
                size = abs(total) if both else total
                if size > best:
                    best, signed, column, place = size, total, k, p
        total = 0.0
        for p in range(turn[k], start[k + 1]):
            row = order[p]
            if row >= 0:
                total -= potential[row]
            else:
                total -= potential[~row]
                size = abs(total) if both else total
                if size > best:
                    best, signed, column, place = size, total, k, p
    return best, signed, column, place


@kernel
def step(H, order, start, turn, column, place, amount):
    """H_i += amount for the rows above the threshold (or −amount for those below it: the same up to a constant)."""
    begin = start[column] if place < turn[column] else turn[column]
    change = amount if place < turn[column] else -amount
    for p in range(begin, place + 1):
        row = order[p]
        H[row if row >= 0 else ~row] += change


@kernel
def mark_runs(order, values, beyond):
    """Mark with ~ the last row of each run of equal values; the last run only if there is something `beyond` it."""
    for p in range(len(order)):
        if (p + 1 < len(order) and values[p + 1] != values[p]) or (p + 1 == len(order) and beyond):
            order[p] = ~order[p]


@kernel
def keep_marks(order, limit):
    """Take marks away until at most `limit` are left, as evenly over the rows as runs allow."""
    n, kept = len(order), 0
    for p in range(n):
        if order[p] < 0:
            if kept < limit and p + 1 >= (kept + 1) * n / (limit + 1.0):
                while kept < limit and p + 1 >= (kept + 1) * n / (limit + 1.0):
                    kept += 1
            else:
                order[p] = ~order[p]


@kernel
def stump_scores_dense(X, feature, threshold, weight, start, out):
    """out_i = Σ_t weight_t [x_i,feature_t > threshold_t]; stumps sorted by feature and threshold, weights cumulated."""
    for i in range(X.shape[0]):
        total = 0.0
        for f in range(len(feature)):
            total += stump_value(X[i, feature[f]], threshold, weight, start[f], start[f + 1])
        out[i] = total


@kernel
def stump_scores_csr(values, indices, indptr, where, threshold, weight, start, at_zero, out):
    """The same for CSR rows: the score of a row of zeros, corrected at the stored values."""
    base = at_zero.sum()
    for i in range(len(indptr) - 1):
        total = base
        for p in range(indptr[i], indptr[i + 1]):
            f = where[indices[p]]
            if f >= 0:
                total += stump_value(values[p], threshold, weight, start[f], start[f + 1]) - at_zero[f]
        out[i] = total


@kernel
def stump_value(x, threshold, weight, low, high):
    """Return the cumulated weight of the thresholds below x, by halving."""
    first = low
    while low < high:
        middle = (low + high) // 2
        if threshold[middle] < x:
            low = middle + 1
        else:
            high = middle
    return weight[low - 1] if low > first else 0.0
