# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The rows of one round: the sum of those that move, rows that are listed one by one, the spread of features.

X is handed over as `core._row_kernels` says. Sums run from the first document to the last, for dense and sparse rows
alike.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._lane_kernels import sparse_dot
from ..core._row_kernels import fetch
from ..core.jit import inner_kernel

LINES = 6
"""How many lines are fetched while eight rows are added up; more would keep those rows waiting."""


@inner_kernel
def gather_rows(values, indices, indptr, ids, m, d, most, block):
    """Write the listed rows out in full, where they fit and a quarter of them is not 0; return whether it was done."""
    if m > most or len(block) == 0:
        return False
    if len(indptr) == 0:
        for i in range(m):
            start = np.uint64(ids[i] * d)
            for j in range(np.uint64(d)):
                block[np.uint64(i * d) + j] = values[start + j]
        return True
    stored = 0
    for i in range(m):
        stored += indptr[ids[i] + 1] - indptr[ids[i]]
    if 4 * stored < m * d:
        return False
    for p in range(np.uint64(m * d)):
        block[p] = 0
    for i in range(m):
        for p in range(np.uint64(indptr[ids[i]]), np.uint64(indptr[ids[i] + 1])):
            block[np.uint64(i * d) + np.uint32(indices[p])] = values[p]
    return True


@inner_kernel
def listed_scores(values, indices, indptr, ids, m, w, r):
    """r = the scores of listed CSR rows."""
    for i in range(m):
        r[i] = sparse_dot(values, indices, np.int64(indptr[ids[i]]), np.int64(indptr[ids[i] + 1]), w)


@inner_kernel
def weighted_sum(rows, begin, coef, active, n, inverse, scaled, z, values, indices, at):
    """z += Σ coef_p · row active_p of rows that lie in full from `begin` on, by columns times `inverse` where scaled.

    Eight rows at a time, so that z is read and written less often. Meanwhile the list to come is fetched, from `at` on.
    """
    d = np.uint64(len(z))
    whole = n - n % 8
    for p in range(0, whole, 8):
        at = fetch(values, indices, at, LINES)
        c0, c1, c2, c3 = coef[p], coef[p + 1], coef[p + 2], coef[p + 3]
        c4, c5, c6, c7 = coef[p + 4], coef[p + 5], coef[p + 6], coef[p + 7]
        i0, i1 = np.uint64(begin + active[p] * len(z)), np.uint64(begin + active[p + 1] * len(z))
        i2, i3 = np.uint64(begin + active[p + 2] * len(z)), np.uint64(begin + active[p + 3] * len(z))
        i4, i5 = np.uint64(begin + active[p + 4] * len(z)), np.uint64(begin + active[p + 5] * len(z))
        i6, i7 = np.uint64(begin + active[p + 6] * len(z)), np.uint64(begin + active[p + 7] * len(z))
        for j in range(d):
            x = ((z[j] + c0 * rows[i0 + j]) + c1 * rows[i1 + j]) + c2 * rows[i2 + j]
            x = ((x + c3 * rows[i3 + j]) + c4 * rows[i4 + j]) + c5 * rows[i5 + j]
            z[j] = (x + c6 * rows[i6 + j]) + c7 * rows[i7 + j]
    for p in range(whole, n):
        c0, i0 = coef[p], np.uint64(begin + active[p] * len(z))
        for j in range(d):
            z[j] += c0 * rows[i0 + j]
    if scaled:
        for j in range(len(z)):
            z[j] *= inverse[j]


@inner_kernel
def listed_sum(values, indices, indptr, ids, coef, active, n, inverse, mark, t, touched, z):
    """The same for listed CSR rows, z being 0; return ‖z‖² and how many columns were touched.

    Where there are more values than columns, all columns count as touched, which saves looking at each.
    """
    stored = 0
    for p in range(n):
        stored += indptr[ids[active[p]] + 1] - indptr[ids[active[p]]]
    few = stored < len(z)
    columns = 0
    for p in range(n):
        c, i = coef[p], ids[active[p]]
        if few:
            for e in range(indptr[i], indptr[i + 1]):
                j = np.uint32(indices[e])
                if mark[j] != t:
                    mark[j] = t
                    touched[columns] = j
                    columns += 1
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            z[np.uint32(indices[e])] += c * values[e]
    if not few:
        columns = len(z)
        for p in range(columns):
            touched[p] = p
    total = 0.0
    for p in range(columns):
        column = touched[p]
        z[column] *= inverse[column]
        total += np.float64(z[column]) * np.float64(z[column])
    return total, columns


@inner_kernel
def full_inverse(values, begin, m, moment, docs, inverse, mean):
    """Add the list to the features' within-list sums of squares; inverse = 1/σ_j (0 for a feature yet constant).

    Returns whether the sums are finite.
    """
    d = len(moment)
    mean[:] = 0
    for i in range(begin, begin + m * d, d):
        for j in range(d):
            mean[j] += values[i + j]
    for j in range(d):
        mean[j] /= m
    for i in range(begin, begin + m * d, d):
        for j in range(d):
            moment[j] += (values[i + j] - mean[j]) ** 2
    good = True
    for j in range(d):
        inverse[j] = math.sqrt((docs + m) / moment[j]) if moment[j] > 0 else 0.0
        good &= math.isfinite(moment[j])
    return good


@inner_kernel
def csr_inverse(values, indices, low, high, m, moment, docs, round_, seen, total, number, inverse):
    """As `full_inverse`, for the columns that the list stores; the others have no spread in it."""
    for p in range(low, high):
        j = indices[p]
        if seen[j] != round_:
            seen[j], total[j], number[j] = round_, 0.0, 0
        total[j] += values[p]
        number[j] += 1
    for p in range(low, high):
        j = indices[p]
        moment[j] += (values[p] - total[j] / m) ** 2
        if number[j] > 0:  # once per column: the documents where it is zero
            moment[j] += (m - number[j]) * (total[j] / m) ** 2
            number[j] = 0
    good = True
    for p in range(low, high):
        j = indices[p]
        inverse[j] = math.sqrt((docs + m) / moment[j]) if moment[j] > 0 else 0.0
        good &= math.isfinite(moment[j])
    return good
