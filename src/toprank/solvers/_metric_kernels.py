# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""M = UᵀU, and solving with U: sums in a fixed order, so that the number of threads of a BLAS changes no bit."""

from __future__ import annotations

import math

from ..core.jit import kernel


@kernel
def factorise(M):
    """Write U with M = UᵀU on and above the diagonal of M; return False where M is not positive definite."""
    d = len(M)
    for k in range(d):
        if not M[k, k] > 0.0:
            return False
        root = math.sqrt(M[k, k])
        top = M[k]
        for j in range(k, d):
            top[j] /= root
        for i in range(k + 1, d):
            factor, row = top[i], M[i]
            for j in range(i, d):
                row[j] -= factor * top[j]
    return True


@kernel
def forward(U, x):
    """x ← U⁻ᵀ x."""
    for k in range(len(x)):
        x[k] /= U[k, k]
        own, row = x[k], U[k]
        for j in range(k + 1, len(x)):
            x[j] -= own * row[j]


@kernel
def backward(U, x):
    """x ← U⁻¹ x."""
    for k in range(len(x) - 1, -1, -1):
        rest, row = x[k], U[k]
        for j in range(k + 1, len(x)):
            rest -= row[j] * x[j]
        x[k] = rest / U[k, k]
