# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What a linear learner computes from the rows of X, dense or sparse."""

from __future__ import annotations

import math

import numpy as np
from numba.extending import overload

from ..core.jit import kernel, sum_kernel
from ..core.rows import Dense, add_rows, rows_of, score_list
from ..core.sorting import grade_levels, order_by_level, order_down

__all__ = ["rows_of"]


@kernel
def scores(rows, first, last, w, s):
    """s = X[first:last] w."""
    score_list(rows, first, last, w, s)


@kernel
def adjoint(rows, first, g, out):
    """out += X[first:first + len(g)]ᵀ g."""
    add_rows(rows, first, g, 1.0, out)


@kernel
def scores_of(rows, ptr, chosen, w, s):
    """s = X w for the rows of the chosen queries, one after the other."""
    at = 0
    for q in chosen:
        n = ptr[q + 1] - ptr[q]
        score_list(rows, ptr[q], ptr[q + 1], w, s[at : at + n])
        at += n


@kernel
def adjoint_of(rows, ptr, chosen, g, out):
    """out += Xᵀ g over the rows of the chosen queries."""
    at = 0
    for q in chosen:
        n = ptr[q + 1] - ptr[q]
        add_rows(rows, ptr[q], g[at : at + n], 1.0, out)
        at += n


@kernel
def places_in_lists(y, keys, ptr, places):
    """places = each document's place in its list by falling grade, then by falling key, from 0; ties as they stand."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        by_key = order_down(keys[a:b])
        level = np.empty(b - a, np.int64)
        levels = grade_levels(y[a:b][by_key], level)
        by_grade = order_by_level(level, levels)
        for p in range(b - a):
            places[a + by_key[by_grade[p]]] = p


@sum_kernel
def dense_square_norms(X, out):
    """out_i = ‖x_i‖²."""
    for i in range(len(out)):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * X[i, j]
        out[i] = total


@sum_kernel
def sparse_square_norms(data, indptr, out):
    """out_i = ‖x_i‖²."""
    for i in range(len(out)):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[p]) * data[p]
        out[i] = total


def fill_square_norms(rows, out):
    """out_i = ‖x_i‖², inside a kernel."""
    raise NotImplementedError("fill_square_norms is called by kernels")


@overload(fill_square_norms)
def _fill_square_norms(rows, out):
    if rows.instance_class is Dense:
        return lambda rows, out: dense_square_norms(rows.X, out)
    return lambda rows, out: sparse_square_norms(rows.data, rows.indptr, out)


@kernel
def square_norms(rows, out):
    """out_i = ‖x_i‖²."""
    fill_square_norms(rows, out)


@kernel
def dense_moments(X, first, last, sums, squares):
    """Sums and sums of squares of each feature over the rows, taken from the first row, so that few digits are lost."""
    sums[:] = 0.0
    squares[:] = 0.0
    for i in range(first + 1, last):
        for j in range(len(sums)):
            z = np.float64(X[i, j]) - X[first, j]
            sums[j] += z
            squares[j] += z * z


@kernel
def sparse_moments(data, indices, indptr, first, last, sums, squares):
    """Sums and sums of squares of each feature over the rows."""
    sums[:] = 0.0
    squares[:] = 0.0
    for p in range(indptr[first], indptr[last]):
        sums[indices[p]] += data[p]
        squares[indices[p]] += np.float64(data[p]) * data[p]


def moments(rows, first, last, sums, squares):
    """Sums and sums of squares of each feature, up to a shift of the feature, inside a kernel."""
    raise NotImplementedError("moments is called by kernels")


@overload(moments)
def _moments(rows, first, last, sums, squares):
    if rows.instance_class is Dense:
        return lambda rows, first, last, sums, squares: dense_moments(rows.X, first, last, sums, squares)
    return lambda rows, first, last, sums, squares: sparse_moments(
        rows.data, rows.indices, rows.indptr, first, last, sums, squares
    )


@kernel
def variances(rows, ptr, weight, out):
    """out += Σ_q weight_q · variance of each feature in query q; `weight` has length 0 where there are none."""
    sums, squares = np.empty(len(out)), np.empty(len(out))
    for q in range(len(ptr) - 1):
        m = ptr[q + 1] - ptr[q]
        moments(rows, ptr[q], ptr[q + 1], sums, squares)
        share = (weight[q] if len(weight) > 0 else 1.0) / m
        for j in range(len(out)):
            out[j] += share * max(squares[j] - sums[j] * sums[j] / m, 0.0)


@kernel
def add_products(Z, out):
    """out += ZᵀZ on and above the diagonal, Z of eight rows: one pass over `out` for all of them."""
    d = Z.shape[1]
    for j in range(d):
        a, b, c, e, f, g, h, i = Z[0, j], Z[1, j], Z[2, j], Z[3, j], Z[4, j], Z[5, j], Z[6, j], Z[7, j]
        for k in range(j, d):
            first = (a * Z[0, k] + b * Z[1, k]) + (c * Z[2, k] + e * Z[3, k])
            out[j, k] += first + ((f * Z[4, k] + g * Z[5, k]) + (h * Z[6, k] + i * Z[7, k]))


@kernel
def covariances(rows, ptr, step, weight, out):
    """out += Σ_q weight_q · covariance of the features in query q, on and above the diagonal, over every step-th q."""
    d, one = len(out), np.ones(1)
    mean, Z, full = np.empty(d), np.zeros((8, d)), 0
    for q in range(0, len(ptr) - 1, step):
        m = ptr[q + 1] - ptr[q]
        share = math.sqrt((weight[q] if len(weight) > 0 else 1.0) / m)
        mean[:] = 0.0
        add_rows(rows, ptr[q], np.ones(m), 1.0 / m, mean)
        for i in range(ptr[q], ptr[q + 1]):
            row = Z[full]
            for j in range(d):
                row[j] = -share * mean[j]
            add_rows(rows, i, one, share, row)
            full += 1
            if full == 8:
                add_products(Z, out)
                full = 0
    Z[full:] = 0.0
    add_products(Z, out)
