# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The rows of one list: their scores, their weighted sum, the spread of their features.

X is handed over as CSR has it: values, indices, indptr. Of a dense X, `values` are all its numbers row by row, and the
other two are empty. A list that stores all its values lies as in a dense X wherever it comes from, and is read as one.

A list is read twice, first for its scores. Memory, not arithmetic, takes the time of the first reading, so what comes
next is asked for early.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._prefetch_kernels import LINE, prefetch
from ..core.jit import inlined_kernel, inner_kernel, inner_sum_kernel

AHEAD = 2048
"""How many values of a full list are asked for before they are read; half as many where indices come along."""
LINES = 6
"""How many lines are asked for while eight rows are added up; more would keep those rows waiting."""


@inlined_kernel
def ask(values, indices, at, lines):
    """Ask for `lines` lines of the list to come, from item `at` on, every third; return the item after them.

    This is for the time in which memory would be idle because a list is ranked or added up. Not every line, for then
    the scores of the next list would find all at hand and memory would be idle meanwhile; of every second to every
    fifth, every third gained most.
    """
    step = 3 * LINE // values.itemsize
    half = lines if len(indices) == 0 else lines // 2
    for k in range(half):
        prefetch(values, np.int64((at + k * step) * values.itemsize))
    for k in range(lines - half):
        prefetch(indices, np.int64((at + k * step) * indices.itemsize))
    return at + half * step


@inner_sum_kernel
def full_scores(values, begin, m, w, r, following):
    """r = X w for a list that stores all its values from `begin` on; the next list begins at `following`.

    Two rows at a time and each by the same sums: equal rows get equal scores.
    """
    d = len(w)
    beyond = begin + m * d
    zero = w[0] * np.float32(0)  # in the type of w
    for row in range(begin, beyond, 2 * d):
        ahead = row + AHEAD if row + AHEAD < beyond else following + row + AHEAD - beyond
        for offset in range(ahead * values.itemsize, (ahead + 2 * d) * values.itemsize, LINE):
            prefetch(values, np.int64(offset))
        one, two = np.uint64(row), np.uint64(min(row + d, beyond - d))
        s0 = s1 = zero
        for j in range(np.uint64(d)):
            s0 += values[one + j] * w[j]
            s1 += values[two + j] * w[j]
        i = (row - begin) // d
        r[min(i + 1, m - 1)] = s1
        r[i] = s0


@inner_sum_kernel
def full_sum(rows, begin, coef, active, n, inverse, scaled, z, values, indices, at):
    """z = Σ coef_p · row active_p of a full list, by columns times `inverse` where scaled; returns ‖z‖².

    Eight rows at a time, so that z is read and written less often; the last first, for they were scored last and may
    still be in the nearest cache. Meanwhile the list to come is asked for, from item `at` on.
    """
    d = len(z)
    z[:] = 0
    whole = n - n % 8
    for p in range(whole, n):
        c0, i0 = coef[p], np.uint64(begin + active[p] * d)
        for j in range(np.uint64(d)):
            z[j] += c0 * rows[i0 + j]
    for p in range(whole - 8, -1, -8):
        at = ask(values, indices, at, LINES)
        c0, c1, c2, c3 = coef[p], coef[p + 1], coef[p + 2], coef[p + 3]
        c4, c5, c6, c7 = coef[p + 4], coef[p + 5], coef[p + 6], coef[p + 7]
        i0, i1 = np.uint64(begin + active[p] * d), np.uint64(begin + active[p + 1] * d)
        i2, i3 = np.uint64(begin + active[p + 2] * d), np.uint64(begin + active[p + 3] * d)
        i4, i5 = np.uint64(begin + active[p + 4] * d), np.uint64(begin + active[p + 5] * d)
        i6, i7 = np.uint64(begin + active[p + 6] * d), np.uint64(begin + active[p + 7] * d)
        for j in range(np.uint64(d)):
            front = (c0 * rows[i0 + j] + c1 * rows[i1 + j]) + (c2 * rows[i2 + j] + c3 * rows[i3 + j])
            z[j] += front + ((c4 * rows[i4 + j] + c5 * rows[i5 + j]) + (c6 * rows[i6 + j] + c7 * rows[i7 + j]))
    if scaled:
        for j in range(d):
            z[j] *= inverse[j]
    total = 0.0
    for j in range(d):
        total += float(z[j]) * float(z[j])
    return total


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


@inner_sum_kernel
def csr_scores(values, indices, indptr, a, b, w, r, following, block):
    """r = X[a:b] w; `block`, unless it is empty, becomes those rows in full. The next list begins at `following`."""
    d, zero = len(w), w[0] * np.float32(0)
    begin, beyond = np.int64(indptr[a]), np.int64(indptr[b])
    # As many lines for each row, whatever it stores: of such a loop the processor knows when it ends.
    line = LINE // min(values.itemsize, indices.itemsize)
    lines = (beyond - begin) // ((b - a) * line) + 1
    ahead = begin + AHEAD // 2
    for i in range(a, b):
        place = ahead if ahead < beyond else following + ahead - beyond
        for k in range(lines):
            prefetch(values, np.int64((place + k * line) * values.itemsize))
            prefetch(indices, np.int64((place + k * line) * indices.itemsize))
        ahead += lines * line
        total = zero
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):  # what has no sign cannot count from the end
            total += values[p] * w[np.uint32(indices[p])]
        r[i - a] = total
        if len(block) > 0:
            row = (i - a) * d
            block[row : row + d] = 0
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                block[np.uint64(row) + np.uint32(indices[p])] = values[p]


@inner_kernel
def csr_sum(values, indices, indptr, a, coef, active, n, inverse, mark, t, touched, z):
    """z = Σ coef_p X[a + active_p] times `inverse`, for zero z; returns ‖z‖² and how many columns were touched.

    Where there are more values than columns, all columns count as touched, which saves looking at each.
    """
    stored = 0
    for p in range(n):
        stored += indptr[a + active[p] + 1] - indptr[a + active[p]]
    few = stored < len(z)
    columns = 0
    for p in range(n):
        c, i = coef[p], a + active[p]
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
        total += float(z[column]) * float(z[column])
    return total, columns


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


@inner_kernel
def all_finite(r, m):
    """Whether every score is finite."""
    good = True
    for i in range(m):
        good &= math.isfinite(r[i])
    return good
