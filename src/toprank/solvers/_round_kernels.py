# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The rows of one round: their scores where rows are given by a list of numbers, their weighted sum, their spread.

X is handed over as `core._row_kernels` says. Sums run from the first document to the last, for dense and sparse rows
alike.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._lane_kernels import add_rows, sparse_dot
from ..core._prefetch_kernels import LINE, prefetch
from ..core._row_kernels import AHEAD, fetch, fetch_row
from ..core.jit import inner_kernel

SOON = 12
"""How many rows ahead of the one that is read a row is prefetched."""
LINES = 6
"""How many cache lines are prefetched while eight rows are added up; with more, those rows would have to wait."""


@inner_kernel
def gather_rows(values, indices, indptr, ids, m, d, most, permuted, coming, block):
    """Write the listed rows out with all their zeros, where they fit and an eighth is not 0; return whether they were.

    Rows that are needed next are prefetched meanwhile; unless `permuted`, also the next list, at value `coming`.
    """
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
    if 8 * stored < m * d:
        return False
    beyond, line = np.int64(indptr[ids[m - 1] + 1]), LINE // min(values.itemsize, indices.itemsize)
    lines, ahead = stored // (m * line) + 1, beyond - stored + AHEAD // 2  # as in `csr_scores`
    for i in range(m):
        if permuted:
            fetch_row(values, indices, indptr, ids[min(i + SOON, m - 1)])
        else:
            place = ahead if ahead < beyond else coming + ahead - beyond
            for k in range(lines):
                prefetch(values, np.int64((place + k * line) * values.itemsize))
                prefetch(indices, np.int64((place + k * line) * indices.itemsize))
            ahead += lines * line
        start = np.uint64(i * d)
        for j in range(np.uint64(d)):
            block[start + j] = 0
        for p in range(np.uint64(indptr[ids[i]]), np.uint64(indptr[ids[i] + 1])):
            block[start + np.uint32(indices[p])] = values[p]
    return True


@inner_kernel
def listed_scores(values, indices, indptr, ids, m, w, r, following):
    """r = the scores of listed CSR rows; the next list begins at `following`."""
    for i in range(m):
        fetch_row(values, indices, indptr, ids[i + SOON] if i + SOON < m else following + i + SOON - m)
        r[i] = sparse_dot(values, indices, np.int64(indptr[ids[i]]), np.int64(indptr[ids[i] + 1]), w)


@inner_kernel
def weighted_sum(rows, begin, coef, active, n, inverse, scaled, z, values, indices, at):
    """z += Σ coef_p · row active_p of rows that lie in full from `begin` on, by columns times `inverse` where scaled.

    Eight rows at a time, so that z is read and written less often. Meanwhile the next list is prefetched, from `at` on.
    """
    d, whole = len(z), n - n % 8
    for p in range(0, whole, 8):
        at = fetch(values, indices, at, LINES)
        starts = (
            begin + active[p] * d, begin + active[p + 1] * d, begin + active[p + 2] * d, begin + active[p + 3] * d,
            begin + active[p + 4] * d, begin + active[p + 5] * d, begin + active[p + 6] * d, begin + active[p + 7] * d,
        )  # fmt: skip
        factors = (
            coef[p], coef[p + 1], coef[p + 2], coef[p + 3], coef[p + 4], coef[p + 5], coef[p + 6], coef[p + 7],
        )  # fmt: skip
        add_rows(rows, starts, factors, z)
    for p in range(whole, n):
        add_rows(rows, (begin + active[p] * d,), (coef[p],), z)
    if scaled:
        for j in range(len(z)):
            z[j] *= inverse[j]


@inner_kernel
def listed_sum(values, indices, indptr, ids, coef, active, n, inverse, mark, t, touched, z):
    """The same for listed CSR rows, z being 0 before; return ‖z‖² and how many columns were touched.

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
    """Add the list to the features' within-list sums of squares; inverse = 1/σ_j (0 for a feature constant so far).

    Returns whether the sums are finite.
    """
    d = len(moment)
    for j in range(d):
        mean[j] = 0.0
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
