"""What a linear learner computes from X: X w and Xᵀ g above all, for dense X and CSR alike."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from .lazy import LazyRows
from .remote import RemoteMatrix
from .validation import is_sparse

_NO_INDICES: AnyArray = np.empty(0, dtype=np.int32)


@cache
def _kernels() -> Any:
    """Return the compiled part: numba loads on first use, and an import statement in each call would cost a fifth."""
    from . import _linear_kernels

    return _linear_kernels


def parts(X: Matrix) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return X as compiled code takes it: values, indices, indptr, the last two empty where X is dense.

    Kernels read one address after the other: of one column of a wider array they would read the other columns too.
    """
    if is_sparse(X):
        return X.data, X.indices, X.indptr
    return np.ascontiguousarray(X.reshape(-1)), _NO_INDICES, _NO_INDICES


def scores(X: Matrix, w: Floats) -> Floats:
    """Return X w in float64, the same bits whatever the number of threads and the other rows.

    >>> scores(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    if isinstance(X, RemoteMatrix):
        return X.collect(partial(_scores_of_part, w))
    out = np.empty(X.shape[0])
    _kernels().scores(rows_of(X), 0, X.shape[0], np.ascontiguousarray(w), out)
    return out


def scores_between(rows: Any, first: int, last: int, w: Floats) -> Floats:
    """Return X[first:last] w for the rows of X as `rows_of` gives them."""
    out = np.empty(last - first)
    _kernels().scores(rows, first, last, w, out)
    return out


def add_adjoint(rows: Any, first: int, g: Floats, out: Floats) -> None:
    """out += X[first:first + len(g)]ᵀ g for the rows of X as `rows_of` gives them."""
    _kernels().adjoint(rows, first, g, out)


def rows_of(X: Matrix) -> Any:
    """Return the rows of X as kernels take them (`core.rows.Dense` or `Sparse`)."""
    return _kernels().rows_of(X)


def _scores_of_part(w: Floats, X: Matrix, ptr: Ints) -> Floats:
    return scores(X, w)


def adjoint(X: Matrix, g: Floats) -> Floats:
    """Return Xᵀ g in float64, the same bits whatever the number of threads.

    >>> adjoint(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([31., 42.])
    """
    out = np.zeros(X.shape[1])
    if isinstance(X, LazyRows):
        for rows, part in X.runs():
            add_adjoint(rows_of(part), 0, np.ascontiguousarray(g[rows]), out)
        return out
    _kernels().adjoint(rows_of(X), 0, np.ascontiguousarray(g), out)
    return out


def scores_of(X: Matrix, w: Floats, ptr: Ints, chosen: Ints) -> Floats:
    """Return X w for the chosen queries, one after the other, without copying their rows.

    >>> scores_of(np.array([[1.0], [2.0], [3.0]]), np.array([10.0]), np.array([0, 1, 3]), np.array([1, 0]))
    array([20., 30., 10.])
    """
    out = np.empty(int((ptr[chosen + 1] - ptr[chosen]).sum()))
    _kernels().scores_of(rows_of(X), ptr, chosen, np.ascontiguousarray(w), out)
    return out


def adjoint_of(X: Matrix, g: Floats, ptr: Ints, chosen: Ints) -> Floats:
    """Return Xᵀ g over the rows of the chosen queries; g is in the order of `scores_of`.

    >>> adjoint_of(np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 1.0]), np.array([0, 1, 3]), np.array([1]))
    array([5.])
    """
    out = np.zeros(X.shape[1])
    _kernels().adjoint_of(rows_of(X), ptr, chosen, np.ascontiguousarray(g), out)
    return out


def square_norms(X: Matrix) -> Floats:
    """Return ‖x‖² of every row, in float64.

    >>> square_norms(np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [25.0, 1.0]
    """
    out = np.empty(X.shape[0])
    _kernels().square_norms(rows_of(X), out)
    return out


def variances(X: Matrix, ptr: Ints, weight: Floats) -> Floats:
    """Return Σ_q c_q · variance of each feature in query q (c_q = 1 where there are no weights).

    >>> variances(np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([0, 2]), np.empty(0)).tolist()
    [1.0, 0.0]
    """
    out = np.zeros(X.shape[1])
    _kernels().variances(rows_of(X), ptr, weight, out)
    return out


def covariances(X: Matrix, ptr: Ints, weight: Floats, step: int = 1, out: Floats | None = None) -> Floats:
    """Return Σ_q c_q · covariance of the features in query q, over every step-th query, on and above the diagonal.

    They are added to `out` where there is one.

    >>> covariances(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 2]), np.empty(0)).round(9).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    out = np.zeros((X.shape[1], X.shape[1])) if out is None else out
    _kernels().covariances(rows_of(X), ptr, step, weight, out)
    return out


def places_by_grade(X: Matrix, y: Floats, ptr: Ints, seed: int) -> Ints:
    """Return each document's place in its list by grade; those of one grade in an order drawn from seed and features.

    The order of the rows does not matter, except among equal rows, which are one document to a linear model.

    >>> X, y, ptr = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0.0, 1.0, 0.0]), np.array([0, 3])
    >>> there, back = places_by_grade(X, y, ptr, 0), places_by_grade(X[::-1].copy(), y, ptr, 0)
    >>> bool((there == back[::-1]).all()), int(there[1])
    (True, 0)
    """
    direction = np.random.default_rng(seed % 2**63).normal(size=(X.shape[1],))
    bits = (scores(X, direction) + 0.0).view(np.uint64)  # −0 and 0 are one number
    bits = (bits + np.uint64(1 << 28)) >> np.uint64(29)  # 24 digits: how sparse and dense sums round is gone
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    places = np.empty(len(bits), dtype=np.int64)
    _kernels().places_in_lists(y, (bits >> np.uint64(11)).astype(np.float64), ptr, places)
    return places
