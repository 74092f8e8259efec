"""Runs of queries, and one way to work through them.

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

from .._typing import AnyArray, Ints
from .dataset import QueryDataset

K = TypeVar("K")
T = TypeVar("T")

BLOCK_VALUES = 1 << 17
"""Feature values in a block: small enough that a second look at it finds it in the cache."""

RUN_VALUES = 1 << 22
"""Feature values in a run of blocks, whose results are added up where they are: one task of an executor."""


def _docs(width: float, values: int) -> int:
    return max(1, int(values / max(width, 1)))


def cuts(ptr: Ints, docs: int) -> list[int]:
    """Return where to cut between queries: those whose first rows have the same quotient by `docs` stay together.

    Whoever holds a part of the rows and knows where it begins cuts at the same places.

    >>> cuts(np.array([0, 2, 4, 9, 10]), 4)
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
        return cls(width, docs, len(cuts(ptr, docs)) - 1)


class Reducible(ABC, Generic[K]):
    """Results that stay where they were made, one for each block of queries."""

    @abstractmethod
    def keep(self, fn: Callable[[K], T]) -> Reducible[T]:
        """Return fn of each, kept where it is made."""

    @abstractmethod
    def map_reduce(
        self, fn: Callable[..., T], combine: Callable[[T, T], T] | None = None, along: AnyArray | None = None
    ) -> T:
        """Combine fn of each in an order that the data alone fix; `combine` None adds them up.

        `along` has one value per query: fn then gets those of its block's queries as a second argument.
        """


@dataclass(frozen=True, eq=False)
class Kept(Reducible[K]):
    """Results in this memory, one for each block, in runs of blocks; `spans` are the queries of each block."""

    runs: list[list[K]]
    spans: list[list[tuple[int, int]]]
    grid: Grid
    executor: Executor | None = None

    @classmethod
    def of(
        cls, data: QueryDataset, values: int, executor: Executor | None = None, grid: Grid | None = None
    ) -> Kept[QueryDataset]:
        """Return the blocks of a data set, or of a part of one at a place of its grid."""
        grid = grid or Grid.of(data.ptr, data.row_values)
        rows = data.ptr + grid.row
        starts = set(cuts(rows, grid.docs))
        runs: list[list[QueryDataset]] = []
        spans: list[list[tuple[int, int]]] = []
        for a, b in pairwise(sorted({*cuts(rows, min(grid.docs, _docs(grid.width, values))), *starts})):
            if a in starts:
                runs.append([])
                spans.append([])
            runs[-1].append(data[a:b])
            spans[-1].append((a, b))
        return Kept(runs, spans, grid, executor)

    def keep(self, fn: Callable[[K], T]) -> Kept[T]:
        """Return fn of each, kept."""
        calls = [[(value,) for value in run] for run in self.runs]
        return Kept(list(self._each(partial(_apply_each, fn), calls)), self.spans, self.grid, self.executor)

    def map_reduce(
        self, fn: Callable[..., T], combine: Callable[[T, T], T] | None = None, along: AnyArray | None = None
    ) -> T:
        """Combine fn of each: first in every run, then the runs two by two."""
        return root(self.nodes(fn, combine, along), combine)

    def nodes(
        self, fn: Callable[..., T], combine: Callable[[T, T], T] | None = None, along: AnyArray | None = None
    ) -> list[Node[T]]:
        """Return what `map_reduce` comes to, as far as it can be combined without the runs of other parts."""
        calls: list[list[tuple[Any, ...]]] = [[(value,) for value in run] for run in self.runs]
        if along is not None:
            cut = [[along[a:b] for a, b in spans] for spans in self.spans]
            calls = [list(zip(run, parts, strict=True)) for run, parts in zip(self.runs, cut, strict=True)]
        found = self._each(partial(_reduce_run, fn, combine or add), calls)
        leaves = (Node(0, number, value) for number, value in enumerate(found, self.grid.run))
        return climb(leaves, self.grid.total, combine)

    def _each(self, fn: Callable[[list[tuple[Any, ...]]], T], calls: list[list[tuple[Any, ...]]]) -> Iterable[T]:
        return map(fn, calls) if self.executor is None else self.executor.map(fn, calls)


class Node(NamedTuple, Generic[T]):
    """What the runs number · 2^level … (number + 1) · 2^level − 1 come to."""

    level: int
    number: int
    value: T


def climb(nodes: Iterable[Node[T]], total: int, combine: Callable[[T, T], T] | None = None) -> list[Node[T]]:
    """Combine neighbours two by two, as in a knock-out tournament of `total` runs: nodes come in order of their runs.

    Who meets whom depends on the numbers of the runs alone, so parts may do this each for itself and the whole with
    what they return, and the result is the same to the bit.

    >>> words = [Node(0, i, letter) for i, letter in enumerate("abcde")]
    >>> join = "({}{})".format
    >>> [node.value for node in climb(words, 5, join)]
    ['(((ab)(cd))e)']
    >>> parts = [*climb(words[:3], 5, join), *climb(words[3:], 5, join)]
    >>> [node.value for node in parts], climb(parts, 5, join)[0].value
    (['(ab)', 'c', 'd', 'e'], '(((ab)(cd))e)')
    """
    join: Callable[[Any, Any], Any] = combine or add
    waiting: list[Node[T]] = []
    for node in nodes:
        while 1 << node.level < total:
            level, number, value = node
            if number % 2 == 1 and waiting and waiting[-1][:2] == (level, number - 1):
                node = Node(level + 1, number // 2, join(waiting.pop().value, value))
            elif number % 2 == 0 and (number + 1) << level >= total:  # nobody stands on its right
                node = Node(level + 1, number // 2, value)
            else:
                break
        waiting.append(node)
    return waiting


def root(nodes: Sequence[Node[T]], combine: Callable[[T, T], T] | None = None, total: int | None = None) -> T:
    """Return the one result of all nodes; those of several parts are put in order and combined first."""
    if not nodes:
        raise ValueError("map_reduce needs at least one block")
    if total is not None:
        nodes = climb(sorted(nodes, key=lambda node: node.number << node.level), total, combine)
    (whole,) = nodes
    return whole.value


def add(left: Any, right: Any) -> Any:
    """Add two results; tuples add member by member."""
    if isinstance(left, tuple):
        return tuple(add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


def _apply_each(fn: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    return [fn(*call) for call in calls]


def _reduce_run(fn: Callable[..., T], join: Callable[[Any, Any], Any], calls: Sequence[tuple[Any, ...]]) -> T:
    return reduce(join, (fn(*call) for call in calls))
