# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Kernel values between documents and stored documents, and spans of them."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from ..core.jit import kernel, sum_kernel


class Kind(IntEnum):
    """Kernels: x·s, (γ x·s + c)^p, exp(−γ‖x − s‖²)."""

    LINEAR = 0
    POLYNOMIAL = 1
    RBF = 2


POLYNOMIAL, RBF = int(Kind.POLYNOMIAL), int(Kind.RBF)


@sum_kernel
def inner(x, s):
    """x·s."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * s[j]
    return total


@sum_kernel
def squared_distance(x, s):
    """‖x − s‖²."""
    total = 0.0
    for j in range(len(x)):
        difference = x[j] - s[j]
        total += difference * difference
    return total


@kernel
def kernel_value(kind, gamma, coef0, degree, x, s):
    """k(x, s)."""
    if kind == RBF:
        return math.exp(-gamma * squared_distance(x, s))
    value = inner(x, s)
    return (gamma * value + coef0) ** degree if kind == POLYNOMIAL else value


@kernel
def kernel_scores(kind, gamma, coef0, degree, X, stored, alpha, n, out):
    """out_i = Σ_{b<n} alpha_b k(x_i, s_b), stored documents in blocks that stay in the cache."""
    out[:] = 0.0
    for low in range(0, n, 64):
        for i in range(X.shape[0]):
            total = 0.0
            for b in range(low, min(low + 64, n)):
                total += alpha[b] * kernel_value(kind, gamma, coef0, degree, X[i], stored[b])
            out[i] += total


@kernel
def span(kind, gamma, coef0, degree, S, flat, marks, coords):
    """Pivoted Cholesky: marks[:r] = documents of S that span the most, coords[:, :r] = S in an orthonormal basis of it.

    Returns r: it ends at as many marks as there is room for, or when every k(s, ·) lies in the span but for `flat` of
    the longest ‖k(s, ·)‖².
    """
    left = np.empty(S.shape[0])
    for i in range(len(left)):
        left[i] = kernel_value(kind, gamma, coef0, degree, S[i], S[i])
    longest = left.max()
    for r in range(len(marks)):
        p = np.argmax(left)
        if not left[p] > flat * longest:
            return r
        marks[r] = p
        root = math.sqrt(left[p])
        for i in range(len(left)):
            value = kernel_value(kind, gamma, coef0, degree, S[i], S[p])
            for c in range(r):
                value -= coords[i, c] * coords[p, c]
            coords[i, r] = value / root
            left[i] -= coords[i, r] ** 2
        left[p] = 0.0
    return len(marks)


@kernel
def coordinates(kind, gamma, coef0, degree, X, M, basis, out):
    """out_i = coordinates of the projection of k(x_i, ·) on the span of the marks M; basis = those of the marks."""
    for i in range(X.shape[0]):
        for r in range(M.shape[0]):
            value = kernel_value(kind, gamma, coef0, degree, X[i], M[r])
            for c in range(r):
                value -= out[i, c] * basis[r, c]
            out[i, r] = value / basis[r, r]


@kernel
def next_random(rng):
    """Step a 64-bit xorshift generator in place and return a number ≥ 0."""
    x = rng[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    rng[0] = x
    return np.int64(x >> np.uint64(1))
