# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The two products with X: four rows at a time, float64 sums whatever the storage.

Our own, not BLAS: its threads change the last bits, and float32 sums would too. On 707,505 × 136 they run at the
speed of one-thread BLAS. The float32 product owes a quarter of that to asking for rows before they are needed: the
conversion to float64 keeps the processor too busy to run ahead by itself.
"""

from __future__ import annotations

import numpy as np

from ..core._call_kernels import call
from ..core._prefetch_kernels import LINE, prefetch
from ..core.jit import sum_kernel

AHEAD = 12
"""Rows between the one that is read and the one that is asked for."""

AT_ONCE = 1 << 15
"""Bytes of X, or one list, that are scored, judged and added up before the next."""

IN_CACHE = 1 << 20
"""Bytes of X that are still in the cache when they are read for the second time."""


@sum_kernel
def dense_scores(X, w, out, ahead, rows):
    """out = X w; for each four rows, `rows` others are asked for, the first of them `ahead` of the first here."""
    n, d = X.shape
    whole = n - n % 4
    width = d * X.itemsize
    for i in range(0, whole, 4):
        a = b = c = e = 0.0
        first = ahead + i * rows // 4
        for offset in range(first * width, (first + rows) * width, LINE):
            prefetch(X, np.int64(offset))
        for j in range(d):
            weight = w[j]
            a += X[i, j] * weight
            b += X[i + 1, j] * weight
            c += X[i + 2, j] * weight
            e += X[i + 3, j] * weight
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, e
    for i in range(whole, n):
        a = 0.0
        for j in range(d):
            a += X[i, j] * w[j]
        out[i] = a


@sum_kernel
def dense_adjoint(X, g, out, ahead, rows):
    """out += Xᵀ g; rows are asked for as in `dense_scores`."""
    n, d = X.shape
    whole = n - n % 4
    width = d * X.itemsize
    for i in range(0, whole, 4):
        a, b, c, e = g[i], g[i + 1], g[i + 2], g[i + 3]
        first = ahead + i * rows // 4
        for offset in range(first * width, (first + rows) * width, LINE):
            prefetch(X, np.int64(offset))
        for j in range(d):
            out[j] += (a * X[i, j] + b * X[i + 1, j]) + (c * X[i + 2, j] + e * X[i + 3, j])
    for i in range(whole, n):
        a = g[i]
        for j in range(d):
            out[j] += a * X[i, j]


@sum_kernel
def longest_of(ptr):
    """Rows of the longest list."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@sum_kernel
def run_of_lists(ptr, first, rows, bounds):
    """Put the boundaries of lists first, first + 1, … (at most `rows` rows, or one list) into `bounds`; count them."""
    count = 0
    bounds[0] = 0
    while first + count + 1 < len(ptr):
        length = ptr[first + count + 1] - ptr[first]
        if count > 0 and (length > rows or count + 1 == len(bounds)):
            break
        count += 1
        bounds[count] = length
    return count


@sum_kernel
def weigh(bounds, count, weight, first, losses, g):
    """Multiply losses and gradients of lists by their weights (none where `weight` is empty); return Σ losses."""
    total = 0.0
    for q in range(count):
        if len(weight) > 0:
            losses[q] *= weight[first + q]
            for i in range(bounds[q], bounds[q + 1]):
                g[i] *= weight[first + q]
        total += losses[q]
    return total


@sum_kernel
def dense_through(X, w, y, ptr, weight, address, codes, numbers, out):
    """out += Xᵀ g, g the gradient of the lists' losses at X w: X comes from memory once; return (Σ losses, refused).

    Memory is never idle: of the rows that come later, three in four are asked for while others are scored, and one in
    four while they are added up. The lead is such that no row is needed before it was asked for.
    """
    longest = longest_of(ptr)
    width = X.shape[1] * X.itemsize
    rows = max(1, AT_ONCE // width)
    lead = longest // 4 + AHEAD if longest * width <= IN_CACHE else 0
    s, g = np.empty(max(rows, longest)), np.empty(max(rows, longest))
    bounds, losses, none = np.empty(rows + 1, np.int64), np.empty(rows), np.empty(0)
    first, total = 0, 0.0
    while first < len(ptr) - 1:
        count = run_of_lists(ptr, first, rows, bounds)
        start, n = ptr[first], bounds[count]
        run = X[start : start + n]
        if lead > 0:
            dense_scores(run, w, s, lead, 3)
        else:
            dense_scores(run, w, s, AHEAD, 4)
        refused = call(address, s, y[start:], bounds[: count + 1], codes, numbers, losses, g, none)
        if refused >= 0:
            return total, first + refused
        total += weigh(bounds, count, weight, first, losses, g)
        dense_adjoint(run, g, out, lead + 3 * n // 4, 1 if lead > 0 else 0)
        first += count
    return total, -1


@sum_kernel
def csr_scores(values, indices, indptr, w, out):
    """out = X w for CSR X; an unsigned place is not asked whether it counts from the end."""
    for i in range(len(indptr) - 1):
        score = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            score += values[p] * w[np.uint32(indices[p])]
        out[i] = score


@sum_kernel
def csr_adjoint(values, indices, indptr, g, out):
    """out += Xᵀ g for CSR X."""
    for i in range(len(indptr) - 1):
        a = g[i]
        if a != 0.0:
            for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[np.uint32(indices[p])] += a * values[p]


@sum_kernel
def csr_through(values, indices, indptr, w, y, ptr, weight, address, codes, numbers, out):
    """`dense_through` for CSR X."""
    longest = longest_of(ptr)
    s, g = np.empty(longest), np.empty(longest)
    bounds, losses, none = np.empty(2, np.int64), np.empty(1), np.empty(0)
    total = 0.0
    for q in range(len(ptr) - 1):
        count = run_of_lists(ptr, q, 1, bounds)
        start, n = ptr[q], bounds[1]
        run = indptr[start : start + n + 1]
        csr_scores(values, indices, run, w, s)
        refused = call(address, s, y[start:], bounds, codes, numbers, losses, g, none)
        if refused >= 0:
            return total, q
        total += weigh(bounds, count, weight, q, losses, g)
        csr_adjoint(values, indices, run, g, out)
    return total, -1


@sum_kernel
def dense_scores_of(X, ptr, chosen, w, out):
    """out = X w for the rows of the chosen queries, one after the other."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        dense_scores(X[ptr[q] : ptr[q + 1]], w, out[at : at + rows], 0, 0)
        at += rows


@sum_kernel
def dense_adjoint_of(X, ptr, chosen, g, out):
    """out += Xᵀ g over the rows of the chosen queries."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        dense_adjoint(X[ptr[q] : ptr[q + 1]], g[at : at + rows], out, 0, 0)
        at += rows


@sum_kernel
def csr_scores_of(values, indices, indptr, ptr, chosen, w, out):
    """out = X w for the rows of the chosen queries of CSR X."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        csr_scores(values, indices, indptr[ptr[q] : ptr[q + 1] + 1], w, out[at : at + rows])
        at += rows


@sum_kernel
def csr_adjoint_of(values, indices, indptr, ptr, chosen, g, out):
    """out += Xᵀ g over the rows of the chosen queries of CSR X."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        csr_adjoint(values, indices, indptr[ptr[q] : ptr[q + 1] + 1], g[at : at + rows], out)
        at += rows
