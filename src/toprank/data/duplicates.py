"""Rows that stand twice in a query."""

from __future__ import annotations

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from .csr import dense, is_sparse
from .dataset import QueryDataset
from .grouping import numbered

_BLOCK_VALUES = 1 << 20
_ODD = np.uint64(0x9E3779B97F4A7C15)


def duplicate_rows(data: QueryDataset) -> Ints:
    """Return the rows that repeat an earlier one of their query.

    They have its document id; where no row has an id, its features and its grade.

    >>> data = QueryDataset.from_arrays([[1.0], [1.0], [1.0]], [0, 0, 1], doc_ids=["a", "a", "b"])
    >>> duplicate_rows(data).tolist()
    [1]
    """
    if data.doc_ids is not None:
        named = np.asarray(data.doc_ids != "", dtype=bool)
        rows = np.flatnonzero(named)
        key = data.query_of_rows[rows] * np.int64(data.n_docs + 1) + numbered(data.doc_ids[rows])
        again = _repeated(key)[0]
        return np.asarray(rows[again])
    mixed = _hashes(data.X)
    mixed = _mixed(_mixed(mixed ^ (data.y + 0.0).view(np.uint64)) ^ data.query_of_rows.astype(np.uint64))
    again, first = _repeated(mixed)
    same = [_equal(data, int(row), int(other)) for row, other in zip(again, first, strict=True)]
    return np.asarray(again[np.array(same, dtype=bool)])


def _repeated(keys: AnyArray) -> tuple[Ints, Ints]:
    """Return the rows whose key stood before, and the first row of that key."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[number] != np.arange(len(keys)))
    return again, first[number][again]


def _equal(data: QueryDataset, row: int, other: int) -> bool:
    """Compare two rows whose hashes are equal."""
    if data.y[row] != data.y[other] or data.query_of_rows[row] != data.query_of_rows[other]:
        return False
    one, two = (dense(data.X[[each]]) if is_sparse(data.X) else dense(data.X)[each] for each in (row, other))
    return bool(np.array_equal(one, two))


def _hashes(X: Matrix) -> AnyArray:
    """Return a number per row that equal rows share: the bits of its values, each times a number of its column."""
    n_rows = X.shape[0]
    if is_sparse(X):
        values = _mixed((X.data.astype(np.float64) + 0.0).view(np.uint64))
        cells = np.where(X.data == 0, np.uint64(0), values * _column_numbers(X.indices.astype(np.uint64)))
        sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(cells, dtype=np.uint64)))
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    rows = dense(X)
    numbers = _column_numbers(np.arange(X.shape[1], dtype=np.uint64))
    out = np.empty(n_rows, dtype=np.uint64)
    step = max(1, _BLOCK_VALUES // max(1, X.shape[1]))
    for start in range(0, n_rows, step):
        bits = (rows[start : start + step].astype(np.float64) + 0.0).view(np.uint64)
        out[start : start + step] = (_mixed(bits) * numbers).sum(axis=1, dtype=np.uint64)
    return out


def _column_numbers(columns: AnyArray) -> AnyArray:
    return np.asarray(_mixed((columns + np.uint64(1)) * _ODD) | np.uint64(1))


def _mixed(bits: AnyArray) -> AnyArray:
    """Return other bits, each of which depends on all that were given (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
