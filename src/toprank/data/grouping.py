"""Bringing the rows of one query together, and numbering ids as they appear."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import Any

import numpy as np

from .._typing import AnyArray, ArrayLike, Ints
from .validation import as_qid


def group_rows(qid: ArrayLike | None, n_docs: int) -> tuple[Ints, AnyArray, Ints | None]:
    """Group rows by query, stably, in order of first appearance.

    Returns `(ptr, query_ids, order)`; `order` lists the caller's rows group by group, or is None when every query's
    rows already stand together.

    >>> group_rows(["b", "b", "a"], 3)[1].tolist()
    ['b', 'a']
    >>> group_rows([1, 2, 1], 3)[2].tolist()
    [0, 2, 1]
    """
    if qid is None:
        return np.array([0, n_docs], dtype=np.int64), np.zeros(1, dtype=np.int64), None
    ids = as_qid(qid, n_docs)
    starts = np.flatnonzero(np.concatenate(([True], np.asarray(ids[1:] != ids[:-1], dtype=bool))))
    return group_runs(ids[starts], starts, n_docs)


def group_runs(heads: AnyArray, starts: Ints, n_docs: int) -> tuple[Ints, AnyArray, Ints | None]:
    """Do what `group_rows` does for ids given once per run of rows: run r begins at row `starts[r]`."""
    number = numbered(heads)
    first = np.unique(number, return_index=True)[1]
    if len(first) == len(heads):
        return np.append(starts, n_docs).astype(np.int64), heads, None
    row_number = np.repeat(number, np.diff(np.append(starts, n_docs)))
    order = np.argsort(row_number, kind="stable").astype(np.int64)
    return bounds_of(np.bincount(row_number)), heads[first], order


def bounds_of(lengths: Any) -> Ints:
    """Return where each list begins among all of them, one behind the other, and where the last one ends.

    >>> bounds_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def query_of_rows(ptr: Ints) -> Ints:
    """Return the number of the query that each row belongs to.

    >>> query_of_rows(np.array([0, 2, 3])).tolist()
    [0, 0, 1]
    """
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def in_order(values: Any, order: Ints | None) -> Any:
    """Return values in another order; as they are without one, or where there are none."""
    return values if values is None or order is None else values[order]


def rows_of(ptr: Ints, queries: AnyArray) -> tuple[Ints, Ints]:
    """Return the rows of the queries that a mask or a list chooses, and where each of these begins among them.

    >>> rows, bounds = rows_of(np.array([0, 2, 3, 5]), np.array([2, 0]))
    >>> rows.tolist(), bounds.tolist()
    ([3, 4, 0, 1], [0, 2, 4])
    """
    lengths = np.diff(ptr)[queries]
    bounds = bounds_of(lengths)
    return np.arange(bounds[-1]) + np.repeat(ptr[:-1][queries] - bounds[:-1], lengths), bounds


def numbered(ids: AnyArray) -> Ints:
    """Number distinct ids 0, 1, … by first appearance.

    >>> numbered(np.array(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """
    number: defaultdict[object, int] = defaultdict(count().__next__)
    return np.fromiter(map(number.__getitem__, ids.tolist()), dtype=np.int64, count=len(ids))
