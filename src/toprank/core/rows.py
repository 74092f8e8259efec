# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The rows of X, dense or sparse: their scores X w, and their weighted sum Xᵀ g.

A kernel takes `Dense` or `Sparse` rows and calls `score_list` and `add_rows`, which numba resolves by the type of the
rows. Every row is summed by itself, so equal rows have equal scores whatever stands beside them. Our own products, not
BLAS: its threads change the last bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from .jit import kernel, sum_kernel


class Dense(NamedTuple):
    """All values of X."""

    X: Any


class Sparse(NamedTuple):
    """X as CSR has it: row i stores data[indptr[i]:indptr[i + 1]] in the columns indices[indptr[i]:indptr[i + 1]]."""

    data: Any
    indices: Any
    indptr: Any


def rows_of(X: Any) -> Dense | Sparse:
    """Return the rows of an array or of a CSR matrix as kernels take them."""
    if hasattr(X, "indptr"):
        return Sparse(X.data, X.indices, X.indptr)
    return Dense(np.ascontiguousarray(X))


@sum_kernel
def dense_scores(X, first, last, w, s):
    """s = X[first:last] w."""
    for i in range(first, last):
        total = 0.0
        for j in range(len(w)):
            total += X[i, j] * w[j]
        s[i - first] = total


@sum_kernel
def sparse_scores(data, indices, indptr, first, last, w, s):
    """s = X[first:last] w."""
    for i in range(first, last):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * w[indices[p]]
        s[i - first] = total


@sum_kernel
def dense_scores_of(X, chosen, w, s):
    """s = X[chosen] w."""
    for i in range(len(chosen)):
        row, total = chosen[i], 0.0
        for j in range(len(w)):
            total += X[row, j] * w[j]
        s[i] = total


@sum_kernel
def sparse_scores_of(data, indices, indptr, chosen, w, s):
    """s = X[chosen] w."""
    for i in range(len(chosen)):
        total = 0.0
        for p in range(indptr[chosen[i]], indptr[chosen[i] + 1]):
            total += data[p] * w[indices[p]]
        s[i] = total


@kernel
def add_dense_rows(X, first, g, factor, out):
    """out += factor · X[first:first + len(g)]ᵀ g, leaving out rows whose g is 0.

    Four rows are added at a time: `out` is read and written once for all of them.
    """
    rows, n = np.empty(len(g), np.int64), 0
    for i in range(len(g)):
        rows[n] = i
        n += g[i] != 0.0
    for p in range(0, n - n % 4, 4):
        i, j, k, m = rows[p], rows[p + 1], rows[p + 2], rows[p + 3]
        a, b, c, d = factor * g[i], factor * g[j], factor * g[k], factor * g[m]
        x, y, z, u = X[first + i], X[first + j], X[first + k], X[first + m]
        for column in range(len(out)):
            out[column] += (a * x[column] + b * y[column]) + (c * z[column] + d * u[column])
    for p in range(n - n % 4, n):
        a, x = factor * g[rows[p]], X[first + rows[p]]
        for column in range(len(out)):
            out[column] += a * x[column]


@kernel
def add_sparse_rows(data, indices, indptr, first, g, factor, out):
    """out += factor · X[first:first + len(g)]ᵀ g, leaving out rows whose g is 0."""
    for i in range(len(g)):
        if g[i] != 0.0:
            coefficient = factor * g[i]
            for p in range(indptr[first + i], indptr[first + i + 1]):
                out[indices[p]] += coefficient * data[p]


@sum_kernel
def add_chosen_dense_rows(X, chosen, g, factor, out):
    """out += factor · X[chosen]ᵀ g, two rows at a time: `out` is read and written half as often."""
    n = len(chosen)
    for i in range(0, n - 1, 2):
        first, second, a, b = chosen[i], chosen[i + 1], factor * g[i], factor * g[i + 1]
        for j in range(len(out)):
            out[j] += a * X[first, j] + b * X[second, j]
    if n % 2 == 1:
        last, a = chosen[n - 1], factor * g[n - 1]
        for j in range(len(out)):
            out[j] += a * X[last, j]


@kernel
def add_chosen_sparse_rows(data, indices, indptr, chosen, g, factor, out):
    """out += factor · X[chosen]ᵀ g."""
    for i in range(len(chosen)):
        coefficient = factor * g[i]
        for p in range(indptr[chosen[i]], indptr[chosen[i] + 1]):
            out[indices[p]] += coefficient * data[p]


def score_list(rows, first, last, w, s):
    """s = X[first:last] w, inside a kernel."""
    raise NotImplementedError("score_list is called by kernels")


@overload(score_list)
def _score_list(rows, first, last, w, s):
    if rows.instance_class is Dense:
        return lambda rows, first, last, w, s: dense_scores(rows.X, first, last, w, s)
    return lambda rows, first, last, w, s: sparse_scores(rows.data, rows.indices, rows.indptr, first, last, w, s)


def add_rows(rows, first, g, factor, out):
    """out += factor · X[first:first + len(g)]ᵀ g, inside a kernel; rows whose g is 0 cost nothing."""
    raise NotImplementedError("add_rows is called by kernels")


@overload(add_rows)
def _add_rows(rows, first, g, factor, out):
    if rows.instance_class is Dense:
        return lambda rows, first, g, factor, out: add_dense_rows(rows.X, first, g, factor, out)
    return lambda rows, first, g, factor, out: add_sparse_rows(
        rows.data, rows.indices, rows.indptr, first, g, factor, out
    )


def score_rows(rows, chosen, w, s):
    """s = X[chosen] w, inside a kernel; `chosen` are numbers of rows, in any order."""
    raise NotImplementedError("score_rows is called by kernels")


@overload(score_rows)
def _score_rows(rows, chosen, w, s):
    if rows.instance_class is Dense:
        return lambda rows, chosen, w, s: dense_scores_of(rows.X, chosen, w, s)
    return lambda rows, chosen, w, s: sparse_scores_of(rows.data, rows.indices, rows.indptr, chosen, w, s)


def add_chosen_rows(rows, chosen, g, factor, out):
    """out += factor · X[chosen]ᵀ g, inside a kernel; leave out of `chosen` rows whose g is 0."""
    raise NotImplementedError("add_chosen_rows is called by kernels")


@overload(add_chosen_rows)
def _add_chosen_rows(rows, chosen, g, factor, out):
    if rows.instance_class is Dense:
        return lambda rows, chosen, g, factor, out: add_chosen_dense_rows(rows.X, chosen, g, factor, out)
    return lambda rows, chosen, g, factor, out: add_chosen_sparse_rows(
        rows.data, rows.indices, rows.indptr, chosen, g, factor, out
    )
