# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The products with X over all rows, or over the rows of chosen queries."""

from __future__ import annotations

import numpy as np

from ..core._order_kernels import longest_list, order_down
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
def places_in_lists(keys, ptr, places):
    """places = each document's place in its list by falling key, from 0; ties as they stand."""
    longest = longest_list(ptr)
    work, ints, rank = np.empty((2, longest)), np.empty((2, longest), np.int64), np.empty(longest, np.int32)
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        for i in range(n):
            work[0, i], ints[0, i] = keys[a + i], i
        order_down(work[0], ints[0], n, rank, work[1], ints[1])
        for p in range(n):
            places[a + ints[0, p]] = p
