"""Runs of queries, and one way to work through them.

The split depends on the data alone and results are combined in the order of the blocks, so serial code, threads,
processes and memory-mapped files all give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial, reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from .._typing import Ints
from .dataset import QueryDataset

B = TypeVar("B")
T = TypeVar("T")

BLOCK_VALUES = 1 << 17
"""Feature values in a block: small enough that a second look at it finds it in the cache."""

TASKS = 64
"""How many tasks an executor gets, whatever the number of blocks: a task costs more than a block."""


def split(data: QueryDataset, values: int = BLOCK_VALUES) -> list[QueryDataset]:
    """Cut a data set into runs of whole queries with about `values` feature values each.

    >>> data = QueryDataset.from_arrays(np.zeros((6, 2)), range(6), qid=[0, 0, 1, 1, 2, 2])
    >>> [block.n_docs for block in split(data, values=8)]
    [4, 2]
    """
    width = data.X.nnz / max(1, data.n_docs) if data.is_sparse else data.n_features
    return [data[a:b] for a, b in pairwise(cuts(data.ptr, max(1, int(values / max(width, 1)))))]


def cuts(ptr: Ints, docs: int) -> list[int]:
    """Return where to cut between queries for runs of at most `docs` documents (or one longer query).

    >>> cuts(np.array([0, 2, 4, 9, 10]), 4)
    [0, 2, 3, 4]
    """
    places = [0]
    while places[-1] < len(ptr) - 1:
        limit = ptr[places[-1]] + docs
        places.append(max(places[-1] + 1, int(np.searchsorted(ptr, limit, side="right")) - 1))
    return places


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
    parts = executor.map(partial(_each, fn), runs)
    return reduce(join, (part for run in parts for part in run))


def add(left: Any, right: Any) -> Any:
    """Add two results; tuples add member by member."""
    if isinstance(left, tuple):
        return tuple(add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


def _each(fn: Callable[[B], T], blocks: Sequence[B]) -> list[T]:
    return [fn(block) for block in blocks]
