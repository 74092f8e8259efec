"""CSR matrices: made and cut without a copy, and checked once before a kernel follows their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._typing import CSR, AnyArray, Matrix
from ..errors import InputError
from .remote import RemoteMatrix

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_sparse(X: object) -> TypeIs[CSR]:
    """Say whether X is a scipy sparse container, without importing scipy."""
    return type(X).__module__.startswith("scipy.sparse")


def dense(X: Matrix) -> AnyArray:
    """Return X as an ndarray; a sparse X is written out in full."""
    if isinstance(X, RemoteMatrix):
        X.refuse()
    return X.toarray() if is_sparse(X) else X


def csr_of(values: AnyArray, columns: AnyArray, indptr: AnyArray, width: int) -> CSR:
    """Return a canonical CSR matrix of these parts as they are (scipy's own constructor may copy mapped indices).

    >>> csr_of(np.array([5.0]), np.array([1]), np.array([0, 0, 1]), 3).toarray().tolist()
    [[0.0, 0.0, 0.0], [0.0, 5.0, 0.0]]
    """
    from scipy.sparse import csr_array

    X: Any = csr_array((max(0, len(indptr) - 1), width), dtype=values.dtype)
    X.data, X.indices, X.indptr = values, columns, indptr
    X.has_canonical_format = True
    return cast("CSR", X)


def rows(X: Matrix, start: int, stop: int) -> Matrix:
    """Return rows start:stop without a copy (scipy's own slicing copies a CSR matrix)."""
    if not is_sparse(X):
        return X[start:stop]
    a, b = X.indptr[start], X.indptr[stop]
    return _mark(csr_of(X.data[a:b], X.indices[a:b], X.indptr[start : stop + 1] - a, X.shape[1]))


def as_csr(X: Any) -> CSR:
    """Return any sparse X as canonical CSR of float32 or float64, with no index that points outside."""
    from scipy.sparse import csr_array

    if _is_marked(X):
        return cast("CSR", X)
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (documents × features), got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise InputError("Complex data not supported: X must be real" if X.dtype.kind == "c" else "X must hold numbers")
    try:
        if X.format == "coo":
            X = type(X)((X.data, (X.row, X.col)), shape=X.shape)  # checks what it is given
        elif X.format in ("csc", "bsr"):
            X.check_format(full_check=True)
        if X.format == "csr":  # its arrays in a matrix of our own, which can be marked as checked
            stored = int(X.indptr[-1])
            matrix = csr_of(X.data[:stored], X.indices[:stored], X.indptr, X.shape[1])
        else:
            matrix = csr_array(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"X is a damaged sparse matrix: {error}") from None
    if not is_canonical(matrix.data, matrix.indices, matrix.indptr, X.shape):
        matrix = matrix.copy()  # the caller's buffers stay as they are
        matrix.has_canonical_format = matrix.has_sorted_indices = False
        matrix.sum_duplicates()
    return _mark(matrix)


def is_canonical(values: AnyArray, columns: AnyArray, indptr: AnyArray, shape: tuple[int, int]) -> bool:
    """Say whether the columns of every row rise; refuse parts that do not fit together, and columns that are not there.

    >>> is_canonical(np.ones(2), np.array([1, 7]), np.array([0, 1, 2]), (2, 3))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: X is a damaged sparse matrix: row 1 has a column outside 0 to 2
    """
    from ._rows_kernels import row_outside

    fault = None
    if {part.ndim for part in (values, columns, indptr)} != {1} or len(values) != len(columns):
        fault = f"{values.shape} values have {columns.shape} columns"
    elif not all(part.dtype in (np.int32, np.int64) for part in (columns, indptr)):
        fault = f"indices are int32 or int64, not {columns.dtype} and {indptr.dtype}"
    elif len(indptr) != shape[0] + 1 or indptr[0] != 0 or indptr[-1] != len(values) or (np.diff(indptr) < 0).any():
        fault = f"indptr must rise from 0 to {len(values)} in {shape[0] + 1} steps"
    if fault is None:
        row, rising = row_outside(np.asarray(columns), np.asarray(indptr), shape[1])
        if row < 0:
            return bool(rising)
        fault = f"row {row} has a column outside 0 to {shape[1] - 1}"
    raise InputError(f"X is a damaged sparse matrix: {fault}")


def _mark(X: Any) -> CSR:
    """Remember that X was checked, or is a part of what was."""
    X.checked = (X.data, X.indices, X.indptr)
    return cast("CSR", X)


def _is_marked(X: Any) -> bool:
    """Say whether X consists of arrays that were checked; a copy, or other arrays, are checked again."""
    checked = getattr(X, "checked", None)
    return checked is not None and all(a is b for a, b in zip(checked, (X.data, X.indices, X.indptr), strict=True))
