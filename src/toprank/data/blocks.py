"""Blocks of queries, and one way to compute something from all of them.

The split depends on the data alone and so does the order in which results are combined, so serial code, threads,
processes, memory-mapped files and the workers of a cluster all give the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from .._typing import Ints
from .dataset import QueryDataset

K = TypeVar("K")
T = TypeVar("T")

BLOCK_VALUES = 1 << 17
"""Feature values in a block: small enough that a second look at it finds it in the cache."""

RUN_VALUES = 1 << 22
"""Feature values in a run of blocks, whose results are added up where they are: one task of an executor."""


def _docs(width: float, values: int) -> int:
    return max(1, int(values / max(width, 1)))


def block_boundaries(ptr: Ints, docs: int) -> list[int]:
    """Return the queries at which blocks begin, and their number: first rows with one quotient by `docs` stay together.

    Whoever holds a part of the rows and knows where it begins cuts at the same places.

    >>> block_boundaries(np.array([0, 2, 4, 9, 10]), 4)
    [0, 2, 3, 4]
    """
    number = ptr[:-1] // docs
    return [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(ptr) - 1] if len(ptr) > 1 else [0]


@dataclass(frozen=True)
class Grid:
    """Where the rows of a part begin in the whole, and how the whole is cut: enough to cut the part at the same places.

    `total` runs of about `docs` rows; the part begins at row `row`, which is where run `run` begins.
    """

    width: float
    docs: int
    total: int
    row: int = 0
    run: int = 0

    @classmethod
    def of(cls, ptr: Ints, width: float) -> Grid:
        """Return the grid of whole data with so many feature values in a row."""
        docs = _docs(width, RUN_VALUES)
        return cls(width, docs, len(block_boundaries(ptr, docs)) - 1)


class BlockResults(ABC, Generic[K]):
    """Results that stay where they were made, one for each block of queries."""

    @abstractmethod
    def keep(self, fn: Callable[[K], T]) -> BlockResults[T]:
        """Return fn of each, kept where it is made."""

    @abstractmethod
    def map_reduce(self, fn: Callable[[K], T], combine: Callable[[T, T], T] | None = None) -> T:
        """Combine fn of each in an order that the data alone decide; `combine` None adds them up."""


@dataclass(frozen=True, eq=False)
class LocalResults(BlockResults[K]):
    """Results in this memory, one for each block, in runs of blocks."""

    runs: list[list[K]]
    grid: Grid
    executor: Executor | None = None

    @classmethod
    def of(
        cls, data: QueryDataset, values: int, executor: Executor | None = None, grid: Grid | None = None
    ) -> LocalResults[QueryDataset]:
        """Return the blocks of a data set, or of a part of one at a place of its grid."""
        grid = grid or Grid.of(data.ptr, data.row_values)
        rows = data.ptr + grid.row
        starts = set(block_boundaries(rows, grid.docs))
        blocks = {*block_boundaries(rows, min(grid.docs, _docs(grid.width, values))), *starts}
        runs: list[list[QueryDataset]] = []
        for a, b in pairwise(sorted(blocks)):
            if a in starts:
                runs.append([])
            runs[-1].append(data[a:b])
        return LocalResults(runs, grid, executor)

    def keep(self, fn: Callable[[K], T]) -> LocalResults[T]:
        """Return fn of each, kept."""
        return LocalResults(list(self._each_run(partial(_apply_each, fn))), self.grid, self.executor)

    def map_reduce(self, fn: Callable[[K], T], combine: Callable[[T, T], T] | None = None) -> T:
        """Combine fn of each: first in every run, then the runs two by two."""
        return combined(self.partial_results(fn, combine), combine)

    def partial_results(
        self, fn: Callable[[K], T], combine: Callable[[T, T], T] | None = None
    ) -> list[PartialResult[T]]:
        """Return what `map_reduce` gives, as far as it can be combined without the runs of other parts."""
        found = self._each_run(partial(_reduce_run, fn, combine or add))
        results = (PartialResult(0, number, value) for number, value in enumerate(found, self.grid.run))
        return combine_neighbours(results, self.grid.total, combine)

    def _each_run(self, fn: Callable[[list[K]], T]) -> Iterable[T]:
        return map(fn, self.runs) if self.executor is None else self.executor.map(fn, self.runs)


class PartialResult(NamedTuple, Generic[T]):
    """The combined result of the runs number · 2^level … (number + 1) · 2^level − 1."""

    level: int
    number: int
    value: T


def combine_neighbours(
    results: Iterable[PartialResult[T]], total: int, combine: Callable[[T, T], T] | None = None
) -> list[PartialResult[T]]:
    """Combine neighbours two by two, as in a tournament of `total` runs: results come in the order of their runs.

    Which results are combined depends on the numbers of the runs alone. So each part may do this for itself, and then
    it is done with what they return: the result is the same to the bit.

    >>> letters = [PartialResult(0, i, letter) for i, letter in enumerate("abcde")]
    >>> join = "({}{})".format
    >>> [result.value for result in combine_neighbours(letters, 5, join)]
    ['(((ab)(cd))e)']
    >>> parts = [*combine_neighbours(letters[:3], 5, join), *combine_neighbours(letters[3:], 5, join)]
    >>> [result.value for result in parts], combine_neighbours(parts, 5, join)[0].value
    (['(ab)', 'c', 'd', 'e'], '(((ab)(cd))e)')
    """
    join: Callable[[Any, Any], Any] = combine or add
    waiting: list[PartialResult[T]] = []
    for result in results:
        while 1 << result.level < total:
            level, number, value = result
            if number % 2 == 1 and waiting and waiting[-1][:2] == (level, number - 1):
                result = PartialResult(level + 1, number // 2, join(waiting.pop().value, value))
            elif number % 2 == 0 and (number + 1) << level >= total:  # it has no right neighbour
                result = PartialResult(level + 1, number // 2, value)
            else:
                break
        waiting.append(result)
    return waiting


def combined(
    results: Sequence[PartialResult[T]], combine: Callable[[T, T], T] | None = None, total: int | None = None
) -> T:
    """Return the one result of all; those of several parts are put in order and combined first."""
    if not results:
        raise ValueError("map_reduce needs at least one block")
    if total is not None:
        ordered = sorted(results, key=lambda result: result.number << result.level)
        results = combine_neighbours(ordered, total, combine)
    (whole,) = results
    return whole.value


def add(left: Any, right: Any) -> Any:
    """Add two results; tuples add member by member."""
    if isinstance(left, tuple):
        return tuple(add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


def _apply_each(fn: Callable[[K], T], run: Sequence[K]) -> list[T]:
    return [fn(each) for each in run]


def _reduce_run(fn: Callable[[K], T], join: Callable[[Any, Any], Any], run: Sequence[K]) -> T:
    return reduce(join, map(fn, run))
