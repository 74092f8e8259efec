# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Kernel values between documents and stored documents, and spans of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.jit import kernel

LINEAR, POLYNOMIAL, RBF = range(3)


class KernelForm(NamedTuple):
    """Which kernel k(x, s) is: LINEAR x·s, POLYNOMIAL (γ x·s + coef0)^degree or RBF exp(−γ‖x − s‖²)."""

    kind: int
    gamma: float
    coef0: float
    degree: int

    @classmethod
    def of(cls, name: str, gamma: float, coef0: float, degree: int) -> KernelForm:
        """Return the kernel with this name: "linear", "polynomial" or "rbf"."""
        return cls({"linear": LINEAR, "polynomial": POLYNOMIAL, "rbf": RBF}[name], gamma, coef0, degree)


@kernel
def turn(S, low, T):
    """T = documents of S from `low` on as columns; columns that are left over are 0."""
    for b in range(T.shape[1]):
        for j in range(T.shape[0]):
            T[j, b] = S[low + b, j] if low + b < S.shape[0] else 0.0


@kernel
def kernel_values(form, x, T, out):
    """out_b = k(x, s_b) for documents s_b that are columns, which SIMD adds up side by side."""
    out[:] = 0.0
    for j in range(T.shape[0]):
        if form.kind == RBF:
            for b in range(T.shape[1]):
                difference = x[j] - T[j, b]
                out[b] += difference * difference
        else:
            for b in range(T.shape[1]):
                out[b] += x[j] * T[j, b]
    for b in range(T.shape[1]):
        if form.kind == RBF:
            out[b] = math.exp(-form.gamma * out[b])
        elif form.kind == POLYNOMIAL:
            out[b] = (form.gamma * out[b] + form.coef0) ** form.degree


@kernel
def kernel_scores(form, X, stored, alpha, out):
    """out_i = Σ_b alpha_b k(x_i, s_b), stored documents in blocks that stay in the cache."""
    T, values = np.empty((stored.shape[1], 64)), np.empty(64)
    out[:] = 0.0
    for low in range(0, len(alpha), 64):
        turn(stored, low, T)
        for i in range(X.shape[0]):
            kernel_values(form, X[i], T, values)
            total = 0.0
            for b in range(min(64, len(alpha) - low)):
                total += alpha[low + b] * values[b]
            out[i] += total


@kernel
def span(form, S, flat, marks, coords):
    """Pivoted Cholesky: marks[:r] = documents of S that span the most, coords[:, :r] = S in an orthonormal basis of it.

    Returns r: it ends at as many marks as there is room for, or when every k(s, ·) lies in the span but for `flat` of
    the longest ‖k(s, ·)‖².
    """
    n, d = S.shape
    T, one, values, left = np.empty((d, n)), np.empty((d, 1)), np.empty(n), np.empty(n)
    for i in range(n):
        turn(S, i, one)
        kernel_values(form, S[i], one, left[i : i + 1])
    turn(S, 0, T)
    longest = left.max()
    for r in range(len(marks)):
        p = np.argmax(left)
        if not left[p] > flat * longest:
            return r
        marks[r] = p
        root = math.sqrt(left[p])
        kernel_values(form, S[p], T, values)
        for i in range(n):
            value = values[i]
            for c in range(r):
                value -= coords[i, c] * coords[p, c]
            coords[i, r] = value / root
            left[i] -= coords[i, r] ** 2
        left[p] = 0.0
    return len(marks)


@kernel
def coordinates(form, X, M, basis, out):
    """out_i = coordinates of the projection of k(x_i, ·) on the span of the marks M; basis = those of the marks."""
    T, values = np.empty((M.shape[1], M.shape[0])), np.empty(M.shape[0])
    turn(M, 0, T)
    for i in range(X.shape[0]):
        kernel_values(form, X[i], T, values)
        for r in range(M.shape[0]):
            value = values[r]
            for c in range(r):
                value -= out[i, c] * basis[r, c]
            out[i, r] = value / basis[r, r]
