"""Runs of queries, and one way to work through them.

The split depends on the data alone and results are combined in the order of the blocks, so serial code, threads,
processes and memory-mapped files all give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np

from .dataset import QueryDataset

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
    docs = max(1, int(values / max(width, 1)))
    cuts = [0]
    while cuts[-1] < data.n_queries:
        limit = data.ptr[cuts[-1]] + docs
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(data.ptr, limit, side="right")) - 1))
    return [data[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]


def map_reduce(
    fn: Callable[[QueryDataset], T],
    blocks: Sequence[QueryDataset],
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


def _each(fn: Callable[[QueryDataset], T], blocks: Sequence[QueryDataset]) -> list[T]:
    return [fn(block) for block in blocks]
