# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The products with X over all rows, or over the rows of chosen queries."""

from __future__ import annotations

import math

import numpy as np

from ..core._order_kernels import WHOLE, by_level, longest_list, number_grades, order_down
from ..core._prefetch_kernels import LINE, prefetch
from ..core._row_kernels import AHEAD, csr_adjoint, csr_scores, full_adjoint, full_scores, is_full, start_of
from ..core.jit import kernel

BATCH = 4096
"""Rows that are looked at together for whether they store all their values."""


@kernel
def scores(values, indices, indptr, a, b, w, out):
    """out = X[a:b] w."""
    d = len(w)
    for first in range(a, b, BATCH):
        last = min(first + BATCH, b)
        beyond = start_of(indptr, last, d)
        here = out[first - a : last - a]
        if is_full(indptr, first, last, d):
            full_scores(values, start_of(indptr, first, d), last - first, w, here, beyond, AHEAD, 4)
        else:
            csr_scores(values, indices, indptr, first, last, w, here, beyond)


@kernel
def adjoint(values, indices, indptr, a, b, g, out, rate):
    """out += X[a:b]ᵀ g; for each four rows, `rate` of those behind b are fetched."""
    d = len(out)
    for first in range(a, b, BATCH):
        last = min(first + BATCH, b)
        if is_full(indptr, first, last, d):
            at = start_of(indptr, b, d) + (first - a) * rate // 4 * d
            full_adjoint(values, start_of(indptr, first, d), last - first, g[first - a : last - a], out, at, rate)
        else:
            csr_adjoint(values, indices, indptr, first, last, g[first - a : last - a], out)


@kernel
def scores_of(values, indices, indptr, ptr, chosen, w, out):
    """out = X w for the rows of the chosen queries, one after the other."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        scores(values, indices, indptr, ptr[q], ptr[q + 1], w, out[at : at + rows])
        at += rows


@kernel
def adjoint_of(values, indices, indptr, ptr, chosen, g, out):
    """out += Xᵀ g over the rows of the chosen queries."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        adjoint(values, indices, indptr, ptr[q], ptr[q + 1], g[at : at + rows], out, 0)
        at += rows


@kernel
def places_in_lists(y, keys, ptr, places):
    """places = each document's place in its list by falling grade, then by falling key, from 0; ties as they stand."""
    longest = longest_list(ptr)
    work, rank = np.empty((3, longest)), np.empty(longest, np.int32)
    ints, start = np.empty((4, longest), np.int64), np.empty(max(longest, WHOLE), np.int64)
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        for i in range(n):
            work[0, i], ints[0, i] = keys[a + i], i
        order_down(work[0], ints[0], n, rank, work[1], ints[1])
        for p in range(n):
            work[0, p] = y[a + ints[0, p]]
        levels = number_grades(work[0, :n], ints[1], work[1], ints[2], work[2], ints[3])
        by_level(ints[1], n, levels, start, ints[2])
        for p in range(n):
            places[a + ints[0, ints[2, p]]] = p


@kernel
def variances(values, indices, indptr, ptr, weight, d, out):
    """out += Σ_q weight_q · variance of each feature in query q, taken from its first row where X is dense."""
    sums, squares = np.empty(d), np.empty(d)
    for q in range(len(ptr) - 1):
        a, m = ptr[q], ptr[q + 1] - ptr[q]
        sums[:], squares[:] = 0.0, 0.0
        if len(indptr) > 0:
            for at in range(indptr[a], indptr[a + m]):
                sums[indices[at]] += values[at]
                squares[indices[at]] += np.float64(values[at]) * values[at]
        else:
            first, rest = values[a * d : (a + 1) * d], a + 1 + (m - 1) % 4
            for i in range(a + 1, rest):
                row = values[i * d : (i + 1) * d]
                for j in range(d):
                    z = np.float64(row[j]) - first[j]
                    sums[j] += z
                    squares[j] += z * z
            for i in range(rest, a + m, 4):
                for offset in range((i * d + AHEAD) * values.itemsize, ((i + 4) * d + AHEAD) * values.itemsize, LINE):
                    prefetch(values, np.int64(offset))
                r0, r1 = values[i * d : (i + 1) * d], values[(i + 1) * d : (i + 2) * d]
                r2, r3 = values[(i + 2) * d : (i + 3) * d], values[(i + 3) * d : (i + 4) * d]
                for j in range(d):
                    x = np.float64(first[j])
                    z0, z1, z2, z3 = r0[j] - x, r1[j] - x, r2[j] - x, r3[j] - x
                    sums[j] += (z0 + z1) + (z2 + z3)
                    squares[j] += (z0 * z0 + z1 * z1) + (z2 * z2 + z3 * z3)
        share = (weight[q] if len(weight) else 1.0) / m
        for j in range(d):
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
def covariances(values, indices, indptr, ptr, step, weight, d, out):
    """out += Σ_q weight_q · covariance of the features in query q, on and above the diagonal, over every step-th q."""
    mean, Z, full = np.empty(d), np.zeros((8, d)), 0
    for q in range(0, len(ptr) - 1, step):
        m = ptr[q + 1] - ptr[q]
        share = math.sqrt((weight[q] if len(weight) else 1.0) / m)
        mean[:] = 0.0
        for centred in range(2):
            for i in range(ptr[q], ptr[q + 1]):
                row = Z[full]
                if len(indptr) == 0:
                    for j in range(d):
                        row[j] = values[i * d + j]
                else:
                    row[:] = 0.0
                    for at in range(indptr[i], indptr[i + 1]):
                        row[indices[at]] = values[at]
                if not centred:
                    for j in range(d):
                        mean[j] += row[j] / m
                    continue
                for j in range(d):
                    row[j] = share * (row[j] - mean[j])
                full += 1
                if full == 8:
                    add_products(Z, out)
                    full = 0
    Z[full:] = 0.0
    add_products(Z, out)
