# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The two products with X: four rows at a time, float64 sums whatever the storage.

Our own, not BLAS: its threads change the last bits, and float32 sums would too. On 707,505 × 136 they run at the
speed of one-thread BLAS. The float32 product owes a quarter of that to asking for rows before they are needed: the
conversion to float64 keeps the processor too busy to run ahead by itself.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .._jit import sum_kernel

AHEAD = 12
"""Rows between the one that is read and the one that is asked for."""


@intrinsic
def prefetch(typing_context, X, i, j):
    """Ask the second-level cache for X[i, j]; a hint without effect on any value, also where i is past the end."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        place = [
            context.cast(builder, index, of, types.intp)
            for index, of in zip(arguments[1:], signature.args[1:], strict=True)
        ]
        pointer = cgutils.get_item_pointer(context, builder, kind, array, place, wraparound=False)
        ir = cgutils.ir
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
        )
        read, keep, data = (ir.Constant(number, value) for value in (0, 2, 1))
        builder.call(hint, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(X, i, j), generate


@sum_kernel
def dense_scores(X, w, out):
    """out = X w."""
    n, d = X.shape
    whole = n - n % 4
    line = 64 // X.itemsize
    for i in range(0, whole, 4):
        a = b = c = e = 0.0
        for row in range(i + AHEAD, i + AHEAD + 4):
            for j in range(0, d, line):
                prefetch(X, row, j)
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
def dense_adjoint(X, g, out, ahead):
    """out += Xᵀ g; the rows `ahead` of each are asked for on the way, none where it is 0."""
    n, d = X.shape
    whole = n - n % 4
    line = 64 // X.itemsize
    for i in range(0, whole, 4):
        a, b, c, e = g[i], g[i + 1], g[i + 2], g[i + 3]
        if ahead > 0:
            for row in range(i + ahead, i + ahead + 4):
                for j in range(0, d, line):
                    prefetch(X, row, j)
        for j in range(d):
            out[j] += (a * X[i, j] + b * X[i + 1, j]) + (c * X[i + 2, j] + e * X[i + 3, j])
    for i in range(whole, n):
        a = g[i]
        for j in range(d):
            out[j] += a * X[i, j]


@sum_kernel
def csr_scores(values, indices, indptr, w, out):
    """out = X w for CSR X."""
    for i in range(len(indptr) - 1):
        a = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            a += values[p] * w[indices[p]]
        out[i] = a


@sum_kernel
def csr_adjoint(values, indices, indptr, g, out):
    """out += Xᵀ g for CSR X."""
    for i in range(len(indptr) - 1):
        a = g[i]
        if a != 0.0:
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p]] += a * values[p]


@sum_kernel
def dense_scores_of(X, ptr, chosen, w, out):
    """out = X w for the rows of the chosen queries, one after the other."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        dense_scores(X[ptr[q] : ptr[q + 1]], w, out[at : at + rows])
        at += rows


@sum_kernel
def dense_adjoint_of(X, ptr, chosen, g, out):
    """out += Xᵀ g over the rows of the chosen queries."""
    at = 0
    for q in chosen:
        rows = ptr[q + 1] - ptr[q]
        dense_adjoint(X[ptr[q] : ptr[q + 1]], g[at : at + rows], out, 0)
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
