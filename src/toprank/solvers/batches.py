"""Rows cut into batches: what the learners of precision at the top play one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse

Shuffle = Literal["batches", "rows"] | None

_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows cut into batches: batch c holds rows bounds[c]:bounds[c+1], of X or of a permutation of its rows.

    Labels are 0 and 1.

    >>> data = QueryDataset.from_arrays(np.zeros((5, 1)), [0, 1, 0, 1, 0])
    >>> Batches.of(data, 2).bounds.tolist()
    [0, 2, 4, 5]
    """

    data: QueryDataset
    bounds: Ints
    rows: Ints
    """The permutation; empty where rows stay as they are."""

    @classmethod
    def of(cls, data: QueryDataset, batch_size: int | None) -> Batches:
        """Cut one list into batches of `batch_size` rows; with None each query is a batch."""
        if batch_size is None:
            return cls(data, data.ptr, _NO_ROWS)
        if batch_size == 1:
            return cls._against_zero(data)
        starts = np.arange(0, data.n_docs, batch_size, dtype=np.int64)
        return cls(data, np.append(starts, data.n_docs), _NO_ROWS)

    @classmethod
    def _against_zero(cls, data: QueryDataset) -> Batches:
        """Pair each row with a row of zeros of the other class, whose score is 0: then ŷ = [w·x > 0].

        The positive one stands last, so that equal scores count as a mistake. X is copied, unless it is sparse.
        """
        X, n = data.X, data.n_docs
        wide: Any = np.zeros((n + 2, data.n_features), dtype=X.dtype)
        if is_sparse(X):
            from scipy.sparse import csr_array

            wide = csr_array((X.data, X.indices, np.append(X.indptr, X.indptr[-1:].repeat(2))), shape=wide.shape)
        else:
            wide[:n] = X
        own = np.arange(n)
        rows = np.stack([np.where(data.y > 0, n, own), np.where(data.y > 0, own, n + 1)], axis=1).ravel()
        made = QueryDataset.from_arrays(wide, np.append(data.y, [0.0, 1.0]))
        return cls(made, np.arange(0, 2 * n + 1, 2), rows)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return len(self.bounds) - 1

    @property
    def by_query(self) -> bool:
        """Whether each query is a batch."""
        return self.bounds is self.data.ptr

    @property
    def weight(self) -> Floats | None:
        """Weights of the batches: those of the queries where each is one."""
        return self.data.query_weight if self.by_query else None

    def labels(self) -> Floats:
        """Return the labels in the order of the batches."""
        return self.data.y if len(self.rows) == 0 else self.data.y[self.rows]

    @cached_property
    def is_positive(self) -> AnyArray:
        """Which rows are positive, in the order of the batches."""
        return self.labels() > 0

    @cached_property
    def positives(self) -> Ints:
        """How many positives each batch holds."""
        return np.diff(np.append(0, np.cumsum(self.is_positive))[self.bounds])

    @property
    def informative(self) -> AnyArray:
        """Which batches hold both classes."""
        return (self.positives > 0) & (self.positives < np.diff(self.bounds))

    @property
    def is_played(self) -> AnyArray:
        """Which batches are learned from: they hold both classes and their weight is not 0."""
        return self.informative if self.weight is None else self.informative & (self.weight != 0)

    def in_clumps(self) -> bool:
        """Say whether less than half as many batches hold both classes as would if the rows were mixed."""
        share = float(self.data.y.mean())
        sizes = np.diff(self.bounds)
        expected = float((1 - share**sizes - (1 - share) ** sizes).sum())
        return int(self.informative.sum()) < 0.5 * expected

    def mixed(self, rng: np.random.Generator) -> Batches:
        """Return batches of a random permutation of the rows."""
        if len(self.rows) > self.data.n_docs:  # a row stays with its row of zeros
            return replace(self, rows=rng.permutation(self.rows.reshape(-1, 2)).ravel())
        return replace(self, rows=rng.permutation(self.data.n_docs))

    def epochs(self, count: int, shuffle: Shuffle, rng: np.random.Generator) -> Iterator[tuple[Batches, Ints]]:
        """Yield, for each epoch, the batches and the order in which they come."""
        for _ in range(count):
            batches = self.mixed(rng) if shuffle == "rows" else self
            yield batches, rng.permutation(self.count) if shuffle == "batches" else np.arange(self.count)

    def skipped(self, order: Ints) -> int:
        """How many batches of that order hold one class only; those of weight 0, left out on request, do not count."""
        wanted = np.ones(self.count, dtype=bool) if self.weight is None else self.weight != 0
        return int((wanted & ~self.informative)[order].sum())
