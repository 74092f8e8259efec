# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The rows of X: their scores X w, their weighted sum Xᵀ g, their norms; dense and CSR alike.

X is handed over as CSR has it: values, indices, indptr. Of a dense X, `values` are all its numbers row by row, and the
other two are empty. Rows that store all their values lie as in a dense X wherever they come from, and are read as such.

All sums have a fixed order, so that every type of processor gives the same bits, and dense rows those of sparse ones.
Our own products, not BLAS: its threads change the last bits. On 707,505 × 136 they run at the speed of one-thread BLAS.
Memory, not arithmetic, takes the time of a first reading, so what comes next is fetched early. Unsigned indices spare
the check for negative ones.
"""

from __future__ import annotations

import math

import numpy as np

from ._lane_kernels import add_rows, four_dots, sparse_dot
from ._prefetch_kernels import LINE, prefetch
from .jit import inlined_kernel, inner_kernel, kernel

AHEAD = 2048
"""Values between the one that is read and the one that is fetched; half as many where indices come along."""


@inlined_kernel
def fetch(values, indices, at, lines):
    """Fetch `lines` lines of the list to come, from value `at` on, every third; return the value after them.

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


@inner_kernel
def full_scores(values, begin, m, w, out, following, lead, rate):
    """out = X w for m rows that store all their values from `begin` on; what is read next begins at `following`.

    For each four rows, `rate` others are fetched, those `lead` values ahead. Each row by the same sums, whatever rows
    stand beside it: equal rows get equal scores.
    """
    d, last = len(w), m - 1
    end = (begin + m * d) * values.itemsize
    jump = following * values.itemsize - end
    for i in range(0, m, 4):
        ahead = begin + lead + i * rate // 4 * d
        for offset in range(ahead * values.itemsize, (ahead + rate * d) * values.itemsize, LINE):
            prefetch(values, np.int64(offset + (jump if offset >= end else 0)))
        i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        s0, s1, s2, s3 = four_dots(values, begin + i * d, begin + i1 * d, begin + i2 * d, begin + i3 * d, w, d)
        out[i3] = s3
        out[i2] = s2
        out[i1] = s1
        out[i] = s0


@inner_kernel
def fetch_row(values, indices, indptr, row):
    """Fetch a row of a CSR matrix, or the last one where there are not so many."""
    row = min(row, len(indptr) - 2)
    for p in range(np.int64(indptr[row]), np.int64(indptr[row + 1]), LINE // max(values.itemsize, indices.itemsize)):
        prefetch(values, np.int64(p * values.itemsize))
        prefetch(indices, np.int64(p * indices.itemsize))


@inner_kernel
def is_full(indptr, a, b, d):
    """Whether rows a:b store all their values."""
    return len(indptr) == 0 or np.int64(indptr[b]) - np.int64(indptr[a]) == (b - a) * d


@inner_kernel
def start_of(indptr, row, d):
    """Where the values of a row begin."""
    return row * d if len(indptr) == 0 else np.int64(indptr[row])


@inner_kernel
def csr_scores(values, indices, indptr, a, b, w, out, following):
    """out = X[a:b] w for CSR X; what is read next begins at `following`."""
    begin, beyond = np.int64(indptr[a]), np.int64(indptr[b])
    # As many lines for each row, whatever it stores: of such a loop the processor knows when it ends.
    line = LINE // min(values.itemsize, indices.itemsize)
    lines = (beyond - begin) // (max(b - a, 1) * line) + 1
    ahead = begin + AHEAD // 2
    for i in range(a, b):
        place = ahead if ahead < beyond else following + ahead - beyond
        for k in range(lines):
            prefetch(values, np.int64((place + k * line) * values.itemsize))
            prefetch(indices, np.int64((place + k * line) * indices.itemsize))
        ahead += lines * line
        out[i - a] = sparse_dot(values, indices, np.int64(indptr[i]), np.int64(indptr[i + 1]), w)


@inner_kernel
def full_adjoint(values, begin, m, g, out, at, rate):
    """out += Xᵀ g for m rows that store all their values from `begin` on.

    For each four rows, `rate` others are fetched, from value `at` on.
    """
    d = len(out)
    whole = m - m % 4
    for i in range(0, whole, 4):
        ahead = at + i * rate // 4 * d
        for offset in range(ahead * values.itemsize, (ahead + rate * d) * values.itemsize, LINE):
            prefetch(values, np.int64(offset))
        i0 = begin + i * d
        add_rows(values, (i0, i0 + d, i0 + 2 * d, i0 + 3 * d), (g[i], g[i + 1], g[i + 2], g[i + 3]), out)
    for i in range(whole, m):
        add_rows(values, (begin + i * d,), (g[i],), out)


@inner_kernel
def csr_adjoint(values, indices, indptr, a, b, g, out):
    """out += X[a:b]ᵀ g for CSR X."""
    for i in range(a, b):
        c = g[i - a]
        if c != 0.0:
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[np.uint32(indices[p])] += c * values[p]


@inner_kernel
def square_norm(x):
    """‖x‖² in double precision, in four strands."""
    a = b = c = e = 0.0
    whole = len(x) - len(x) % 4
    for j in range(0, whole, 4):
        a += np.float64(x[j]) * np.float64(x[j])
        b += np.float64(x[j + 1]) * np.float64(x[j + 1])
        c += np.float64(x[j + 2]) * np.float64(x[j + 2])
        e += np.float64(x[j + 3]) * np.float64(x[j + 3])
    for j in range(whole, len(x)):
        a += np.float64(x[j]) * np.float64(x[j])
    return (a + b) + (c + e)


@kernel
def square_norms(values, indices, indptr, d, out):
    """out = ‖x‖² of every row."""
    for i in range(len(out)):
        out[i] = square_norm(values[start_of(indptr, i, d) : start_of(indptr, i + 1, d)])


@inner_kernel
def all_finite(x, n):
    """Whether the first n numbers are finite."""
    good = True
    for i in range(n):
        good &= math.isfinite(x[i])
    return good
