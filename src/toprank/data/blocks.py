"""Runs of queries, and one way to work through them.

The split depends on the data alone and results are combined in the order of the blocks, so serial code, threads,
processes and memory-mapped files all give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from .._typing import Ints
from .dataset import QueryDataset

B = TypeVar("B")
K = TypeVar("K")
T = TypeVar("T")

BLOCK_VALUES = 1 << 17
"""Feature values in a block: small enough that a second look at it finds it in the cache."""

RUN_VALUES = 1 << 22
"""Feature values in a run of blocks, whose results are added up where they are: one task of an executor."""

TASKS = 64
"""How many tasks an executor gets, whatever the number of blocks: a task costs more than a block."""


def split(data: QueryDataset, values: int = BLOCK_VALUES) -> list[QueryDataset]:
    """Cut a data set into runs of whole queries with about `values` feature values each.

    >>> data = QueryDataset.from_arrays(np.zeros((6, 2)), range(6), qid=[0, 0, 1, 1, 2, 2])
    >>> [block.n_docs for block in split(data, values=8)]
    [4, 2]
    """
    return [data[a:b] for a, b in pairwise(cuts(data.ptr, _docs(data, values)))]


def _docs(data: QueryDataset, values: int) -> int:
    width = data.X.nnz / max(1, data.n_docs) if data.is_sparse else data.n_features
    return max(1, int(values / max(width, 1)))


def cuts(ptr: Ints, docs: int) -> list[int]:
    """Return where to cut between queries: those whose first rows have the same quotient by `docs` stay together.

    Whoever holds a part of the rows and knows where it begins cuts at the same places.

    >>> cuts(np.array([0, 2, 4, 9, 10]), 4)
    [0, 2, 3, 4]
    """
    number = ptr[:-1] // docs
    return [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(ptr) - 1] if len(ptr) > 1 else [0]


@dataclass(frozen=True, eq=False)
class Kept(Generic[K]):
    """Results that stay where they were made, one for each block, in runs of blocks."""

    runs: list[list[K]]
    executor: Executor | None = None

    @classmethod
    def of(cls, data: QueryDataset, values: int, executor: Executor | None) -> Kept[QueryDataset]:
        """Return the blocks of a data set."""
        size = _docs(data, max(values, RUN_VALUES))
        starts = set(cuts(data.ptr, size))
        runs: list[list[QueryDataset]] = []
        for a, b in pairwise(sorted({*cuts(data.ptr, _docs(data, values)), *starts})):
            if a in starts:
                runs.append([])
            runs[-1].append(data[a:b])
        return Kept(runs, executor)

    def keep(self, fn: Callable[[K], T]) -> Kept[T]:
        """Return fn of each, kept."""
        return Kept(list(self._each(partial(_apply_each, fn))), self.executor)

    def map_reduce(self, fn: Callable[[K], T], combine: Callable[[T, T], T] | None = None) -> T:
        """Combine fn of each: first in every run, where it lies, then run after run."""
        join: Callable[[Any, Any], Any] = combine or add
        return reduce(join, self._each(partial(_reduce_run, fn, join)))

    def _each(self, fn: Callable[[list[K]], T]) -> Iterable[T]:
        return map(fn, self.runs) if self.executor is None else self.executor.map(fn, self.runs)


def map_reduce(
    fn: Callable[[B], T],
    blocks: Sequence[B],
    executor: Executor | None = None,
    *,
    combine: Callable[[T, T], T] | None = None,
) -> T:
    """Return fn(block 0) + fn(block 1) + …, added in that order wherever the parts were computed.

    `executor` is None (this thread) or any `concurrent.futures.Executor`; for processes `fn` must pickle. `combine`
    replaces the addition, which works on numbers, arrays and tuples of them.

    >>> data = QueryDataset.from_arrays(np.zeros((6, 2)), range(6), qid=[0, 0, 1, 1, 2, 2])
    >>> float(map_reduce(lambda block: block.y.sum(), split(data, values=4)))
    15.0
    """
    if not blocks:
        raise ValueError("map_reduce needs at least one block")
    join: Callable[[Any, Any], Any] = combine or add
    if executor is None:
        return reduce(join, map(fn, blocks))
    size = -(-len(blocks) // TASKS)
    runs = [blocks[i : i + size] for i in range(0, len(blocks), size)]
    parts = executor.map(partial(_apply_each, fn), runs)
    return reduce(join, (part for run in parts for part in run))


def add(left: Any, right: Any) -> Any:
    """Add two results; tuples add member by member."""
    if isinstance(left, tuple):
        return tuple(add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


def _apply_each(fn: Callable[[B], T], blocks: Sequence[B]) -> list[T]:
    return [fn(block) for block in blocks]


def _reduce_run(fn: Callable[[B], T], join: Callable[[Any, Any], Any], blocks: Sequence[B]) -> T:
    return reduce(join, map(fn, blocks))
