"""Rows that are computed from others list by list, whenever they are read, and never all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from .blocks import BlockResults, LocalResults, block_boundaries
from .csr import is_sparse, rows
from .dataset import QueryDataset
from .remote import NotInMemoryError, RemoteMatrix

S = TypeVar("S")
T = TypeVar("T")

RUN_BYTES = 1 << 20
"""Bytes of the rows that are computed together, or one list: they are in the cache while they are used."""


class LazyRows(RemoteMatrix):
    """The rows of a data set as `prepare` makes them, of some lists at a time.

    Objectives, linear functions and all that goes over blocks of lists take it as their X. What needs all rows at once
    is refused.

    >>> data = QueryDataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], [7, 7, 8])
    >>> X = LazyRows(data, lambda part: part.with_X(np.hstack([part.X, part.X**2])), 2)
    >>> X.shape, X.lists(1, 2).tolist(), X[:2].lists(0, 1).tolist()
    ((3, 2), [[3.0, 9.0]], [[1.0, 1.0], [2.0, 4.0]])
    """

    def __init__(self, base: QueryDataset, prepare: Callable[[QueryDataset], QueryDataset], width: int) -> None:
        self.base, self.prepare = base, prepare
        self.shape, self.dtype, self.row_values = (base.n_docs, width), np.dtype(np.float64), float(width)
        self._known: Matrix | None = None

    def lists(self, first: int, last: int) -> Matrix:
        """Return the rows of some lists."""
        if self._known is not None:
            return rows(self._known, int(self.base.ptr[first]), int(self.base.ptr[last]))
        return self.prepare(self.base[first:last]).X

    def keep_rows_in_memory(self) -> None:
        """Compute all rows once: for few rows, which are read many times."""
        if not is_sparse(self.base.X):
            self._known = np.concatenate([np.asarray(X) for _, X in self.runs()])

    def runs(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield the rows of some lists after the other, about `RUN_BYTES` at a time, and where they stand."""
        docs = max(1, RUN_BYTES // (8 * self.shape[1]))
        for first, last in pairwise(block_boundaries(self.base.ptr, docs)):
            yield slice(int(self.base.ptr[first]), int(self.base.ptr[last])), self.lists(first, last)

    def __getitem__(self, chosen: Any) -> Any:
        """Return the rows of whole lists, still to be computed."""
        if not isinstance(chosen, slice):
            self.refuse()
        start, stop, step = chosen.indices(self.shape[0])
        first, last = np.searchsorted(self.base.ptr, (start, stop)).tolist()
        if step != 1 or start > stop or (self.base.ptr[[first, last]] != (start, stop)).any():
            self.refuse()
        made = LazyRows(self.base[first:last], self.prepare, self.shape[1])
        if self._known is not None:
            made._known = rows(self._known, start, stop)
        return made

    def keep(self, data: QueryDataset, fn: Callable[[QueryDataset], T], values: int) -> BlockResults[T]:
        """Return fn of each block of `data`, whose rows are computed for it."""
        return LocalResults.of(data, values).keep(lambda block: fn(block._with(X=self._all_of(block))))

    @staticmethod
    def _all_of(block: QueryDataset) -> Matrix:
        X = block.X
        return X.lists(0, block.n_queries) if isinstance(X, LazyRows) else X

    def collect(self, fn: Callable[[Matrix, Ints], AnyArray]) -> AnyArray:
        """Return fn(X, ptr) of the runs, concatenated."""
        ptr = self.base.ptr
        parts = []
        for place, X in self.runs():
            first, last = np.searchsorted(ptr, (place.start, place.stop)).tolist()
            parts.append(fn(X, ptr[first : last + 1] - place.start))
        return np.concatenate(parts) if parts else fn(self.lists(0, 0), np.zeros(1, dtype=np.int64))

    def walk_parts(
        self, data: QueryDataset, fn: Callable[[S, QueryDataset], tuple[S, T]], state: S
    ) -> tuple[S, list[T]]:
        """Take a state from run to run in order."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """Say that the rows are not all there at once."""
        raise NotInMemoryError("prepared columns are computed list by list, and here all rows are needed at once")
