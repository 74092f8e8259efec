# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Per-query scaling of columns: two passes over a query's rows while they are in the cache.

`rows` lists the caller's rows query by query, so rows may stand in any order and results land where they came from.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel


@kernel
def min_max(X, ptr, rows, out):
    """out = (x − min) / (max − min) within each query; 0 where a column is constant; a missing cell stays one."""
    d = X.shape[1]
    low, high = np.empty(d), np.empty(d)
    for q in range(len(ptr) - 1):
        _extremes(X, ptr[q], ptr[q + 1], rows, low, high)
        for j in range(d):
            high[j] = high[j] - low[j] if high[j] > low[j] else 1.0
        _shift_and_scale(X, ptr[q], ptr[q + 1], rows, low, high, out)


@kernel
def standard(X, ptr, rows, out):
    """out = (x − mean) / deviation within each query; 0 where a column is constant; a missing cell stays one."""
    d = X.shape[1]
    low, high, mean, square, count = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    for q in range(len(ptr) - 1):
        _extremes(X, ptr[q], ptr[q + 1], rows, low, high)
        mean[:] = 0.0
        square[:] = 0.0
        count[:] = 0.0
        for i in range(ptr[q], ptr[q + 1]):
            r = rows[i]
            for j in range(d):
                if not np.isnan(X[r, j]):
                    mean[j] += X[r, j]
                    count[j] += 1.0
        for j in range(d):
            # Where the extremes meet the column is constant, though its mean may be off by a rounding.
            mean[j] = mean[j] / count[j] if high[j] > low[j] else low[j]
        for i in range(ptr[q], ptr[q + 1]):
            r = rows[i]
            for j in range(d):
                if not np.isnan(X[r, j]):
                    square[j] += (X[r, j] - mean[j]) ** 2
        for j in range(d):
            square[j] = np.sqrt(square[j] / count[j]) if square[j] > 0.0 else 1.0
        _shift_and_scale(X, ptr[q], ptr[q + 1], rows, mean, square, out)


@kernel
def _extremes(X, start, stop, rows, low, high):
    low[:] = np.inf
    high[:] = -np.inf
    for i in range(start, stop):
        r = rows[i]
        for j in range(len(low)):
            v = X[r, j]
            low[j] = v if v < low[j] else low[j]
            high[j] = v if v > high[j] else high[j]


@kernel
def _shift_and_scale(X, start, stop, rows, shift, scale, out):
    for i in range(start, stop):
        r = rows[i]
        for j in range(len(shift)):
            out[r, j] = (X[r, j] - shift[j]) / scale[j]


@kernel
def min_max_csr(values, indices, indptr, n_features, ptr, rows, out):
    """The same for CSR, absent values being 0; returns (query, column) where they would not stay 0, else (-1, -1)."""
    low, high = np.empty(n_features), np.empty(n_features)
    count = np.zeros(n_features, dtype=np.int64)
    for q in range(len(ptr) - 1):
        n = ptr[q + 1] - ptr[q]
        for i in range(ptr[q], ptr[q + 1]):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                j, v = indices[p], values[p]
                low[j] = min(low[j], v) if count[j] else v
                high[j] = max(high[j], v) if count[j] else v
                count[j] += 1
        for i in range(ptr[q], ptr[q + 1]):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                j = indices[p]
                if count[j] < n:
                    if low[j] < 0:
                        return q, j
                    low[j] = 0.0
                out[p] = (values[p] - low[j]) / (high[j] - low[j]) if high[j] > low[j] else 0.0
        for i in range(ptr[q], ptr[q + 1]):
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                count[indices[p]] = 0
    return -1, -1
