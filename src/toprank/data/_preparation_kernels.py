# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Columns beside the features: ranks within each query, ramps and thresholds at knots."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel
from ..core.sorting import sort_down


@kernel
def ranks_in_queries(X, ptr, rows, out):
    """out = (values below + half of the other equal ones) / (n − 1) in each query; 0 where a column is constant.

    `rows` lists the rows query by query.
    """
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        keys, items = np.empty(n), np.empty(n, np.int64)
        for j in range(X.shape[1]):
            for i in range(n):
                keys[i], items[i] = X[rows[a + i], j], i
            sort_down(keys, items)
            first = 0
            while first < n:
                last = first + 1
                while last < n and keys[last] == keys[first]:
                    last += 1
                constant = last - first == n
                rank = 0.0 if constant else ((n - last) + 0.5 * (last - first - 1)) / (n - 1)
                for place in range(first, last):
                    out[rows[a + items[place]], j] = rank
                first = last


@kernel
def ramps(X, starts, knot, scale, out):
    """out = the columns of X, then (max(x, t) − max(0, t))/s for the knots t of each column j."""
    d = X.shape[1]
    for i in range(X.shape[0]):
        for j in range(d):
            x = np.float64(X[i, j])
            out[i, j] = x
            for k in range(starts[j], starts[j + 1]):
                out[i, d + k] = (max(x, knot[k]) - max(0.0, knot[k])) / scale[k]


@kernel
def thresholds(X, starts, knot, out):
    """out = the columns of X, then [x > t] − [0 > t] for the knots t of each column."""
    d = X.shape[1]
    for i in range(X.shape[0]):
        for j in range(d):
            x = np.float64(X[i, j])
            out[i, j] = x
            for k in range(starts[j], starts[j + 1]):
                out[i, d + k] = np.float64(x > knot[k]) - np.float64(knot[k] < 0.0)
