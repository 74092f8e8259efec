"""The only two ways a linear learner touches X: X w and Xᵀ g, dense or CSR alike."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .._typing import Floats, Ints, Matrix
from .validation import is_sparse

_NO_WEIGHT: Floats = np.empty(0)


@cache
def _kernels() -> Any:
    """Return the compiled part: numba loads on first use, and an import statement in each call would cost a fifth."""
    from . import _linear_kernels

    return _linear_kernels


def scores(X: Matrix, w: Floats) -> Floats:
    """Return X w in float64, the same bits whatever the number of threads.

    A row's score may differ in the last bit with the rows that stand beside it in a block of four.

    >>> scores(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    kernels = _kernels()
    out = np.empty(X.shape[0])
    if is_sparse(X):
        kernels.csr_scores(X.data, X.indices, X.indptr, w, out)
    else:
        kernels.dense_scores(X, w, out, kernels.AHEAD, 4)
    return out


def adjoint(X: Matrix, g: Floats, *, next_rows: bool = False) -> Floats:
    """Return Xᵀ g in float64, the same bits whatever the number of threads.

    `next_rows` says that the rows behind X in memory will be needed next: one in four is fetched on the way.

    >>> adjoint(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([31., 42.])
    """
    kernels = _kernels()
    out = np.zeros(X.shape[1])
    if is_sparse(X):
        kernels.csr_adjoint(X.data, X.indices, X.indptr, g, out)
    else:
        kernels.dense_adjoint(X, g, out, len(X), 1 if next_rows else 0)
    return out


def through(
    X: Matrix, w: Floats, y: Floats, ptr: Ints, weight: Floats | None, function: tuple[int, Ints, Floats]
) -> tuple[float, Floats, int]:
    """Return Σ weighted losses of the lists at the scores X w, Xᵀ of their gradient, and −1 or a list that was refused.

    `function` is the loss as a C function: its address, its codes and its numbers. A run of lists is scored, judged
    and added up while its rows are in the cache, so that X comes from memory once.
    """
    kernels = _kernels()
    out = np.zeros(X.shape[1])
    rest = (w, y, ptr, _NO_WEIGHT if weight is None else weight, *function, out)
    if is_sparse(X):
        loss, refused = kernels.csr_through(X.data, X.indices, X.indptr, *rest)
    else:
        loss, refused = kernels.dense_through(X, *rest)
    return loss, out, refused


def scores_of(X: Matrix, w: Floats, ptr: Ints, chosen: Ints) -> Floats:
    """Return X w for the chosen queries, one after the other, without copying their rows.

    >>> scores_of(np.array([[1.0], [2.0], [3.0]]), np.array([10.0]), np.array([0, 1, 3]), np.array([1, 0]))
    array([20., 30., 10.])
    """
    kernels = _kernels()
    out = np.empty(int((ptr[chosen + 1] - ptr[chosen]).sum()))
    if is_sparse(X):
        kernels.csr_scores_of(X.data, X.indices, X.indptr, ptr, chosen, w, out)
    else:
        kernels.dense_scores_of(X, ptr, chosen, w, out)
    return out


def adjoint_of(X: Matrix, g: Floats, ptr: Ints, chosen: Ints) -> Floats:
    """Return Xᵀ g over the rows of the chosen queries; g is in the order of `scores_of`.

    >>> adjoint_of(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 1.0]), np.array([0, 1, 3]), np.array([1]))
    array([5.])
    """
    kernels = _kernels()
    out = np.zeros(X.shape[1])
    if is_sparse(X):
        kernels.csr_adjoint_of(X.data, X.indices, X.indptr, ptr, chosen, g, out)
    else:
        kernels.dense_adjoint_of(X, ptr, chosen, g, out)
    return out
