# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""An objective over a block: score a run of lists, take its losses, add up, all while its rows are in the cache."""

from __future__ import annotations

import numpy as np

from .core._call_kernels import call
from .core._order_kernels import longest_list
from .core._row_kernels import AHEAD, csr_adjoint, csr_scores, full_adjoint, full_scores, is_full, start_of
from .core.jit import inner_kernel, kernel

AT_ONCE = 1 << 15
"""Bytes of X, or one list, that are scored, judged and added up before the next."""

IN_CACHE = 1 << 20
"""Bytes of X that are still in the cache when they are read for the second time."""


@inner_kernel
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


@inner_kernel
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


@kernel
def loss_and_adjoint(
    values, indices, indptr, w, y, ptr, weight, doc_weight, place, address, codes, numbers, out
):  # fmt: skip
    """out += Xᵀ g, g the gradient of the lists' losses at X w: X comes from memory once; return (Σ losses, refused).

    Memory is never idle: of the rows that come later, three in four are fetched while others are scored, and one in
    four while they are added up. The lead is such that no row is needed before it was fetched.
    """
    longest, d = longest_list(ptr), len(w)
    width = d * values.itemsize
    rows = max(1, AT_ONCE // width)
    lead = longest // 4 * d + AHEAD if longest * width <= IN_CACHE else 0
    s, g = np.empty(max(rows, longest)), np.empty(max(rows, longest))
    bounds, losses, none = np.empty(rows + 1, np.int64), np.empty(rows), np.empty(0)
    first, total = 0, 0.0
    while first < len(ptr) - 1:
        count = run_of_lists(ptr, first, rows, bounds)
        n, a = bounds[count], ptr[first]
        begin, beyond = start_of(indptr, a, d), start_of(indptr, a + n, d)
        full = is_full(indptr, a, a + n, d)
        if full:
            full_scores(values, begin, n, w, s, beyond, lead if lead > 0 else AHEAD, 3 if lead > 0 else 4)
        else:
            csr_scores(values, indices, indptr, a, a + n, w, s, beyond)
        own = doc_weight[a : a + n] if len(doc_weight) > 0 else doc_weight
        at = place[a : a + n] if len(place) > 0 else place
        refused = call(address, s, y[a:], own, at, bounds[: count + 1], codes, numbers, losses, g, none)
        if refused >= 0:
            return total, first + refused
        total += weigh(bounds, count, weight, first, losses, g)
        if full:
            full_adjoint(values, begin, n, g, out, begin + lead + 3 * n // 4 * d, 1 if lead > 0 else 0)
        else:
            csr_adjoint(values, indices, indptr, a, a + n, g, out)
        first += count
    return total, -1
