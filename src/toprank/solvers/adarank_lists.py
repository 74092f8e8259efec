"""AdaRank's lists: their measure after one more step, an upper bound of it, and the columns that both read."""

from __future__ import annotations

from copy import copy
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data.dataset import QueryDataset
from ..data.grouping import rows_of
from ..data.validation import is_sparse
from ..measures import AP, NDCG
from ..measures.base import Measure
from ..measures.plan import discount_table
from ..measures.presets import Gain, Norm, Short
from ..surrogates.direct import in_training

KEPT = 0.35
"""Columns are kept up to this share of the memory that a dense X takes."""

ROW_END = 16
"""Keys after the last document, so that the last one can be read as part of a whole vector."""

TOGETHER = 4
"""For how many candidates bounds are computed at a time."""


class Lists:
    """Some queries, prepared for many evaluations; those that do not count have the value 0."""

    _fixed: tuple[Any, ...]

    def __init__(self, measure: Measure, data: QueryDataset, counts: AnyArray) -> None:
        self.measure, self.y, self.ptr, self.counts = in_training(measure), data.y, data.ptr, counts
        self.order = np.arange(data.n_docs)
        """Documents list by list, the relevant ones first where their places are counted: what `after` wants."""
        self._otherwise = np.zeros(data.n_queries)
        """The value of a query in which every order is worth the same."""
        target, lengths = self.measure, data.lengths
        self.counted = isinstance(target, (AP, NDCG))
        if not isinstance(target, (AP, NDCG)):
            return
        target.check(data.y, data.ptr, float(data.y.min(initial=0.0)), float(data.y.max(initial=0.0)))
        longest, query = int(lengths.max(initial=1)), np.repeat(np.arange(data.n_queries), lengths)
        cut, places = int(target.k or longest), np.arange(1, longest + 1)
        if isinstance(target, AP):
            gains, discounts = (data.y > target.above).astype(np.float64), np.ones(longest)
        else:
            gains = data.y if target.gain == Gain.LINEAR else 2.0**data.y - 1.0
            discounts = discount_table(longest)[target.discount][:longest].copy()
        discounts[cut:] = 0.0
        self.order = np.lexsort((gains == 0, query))
        relevant = np.bincount(query, gains != 0, minlength=data.n_queries).astype(np.int64)
        if isinstance(target, AP):
            ideal = np.minimum(relevant, np.inf if target.norm == Norm.ALL else float(cut))
        else:
            best = gains[np.lexsort((-gains, query))] * discounts[np.arange(data.n_docs) - data.ptr[query]]
            ideal = np.bincount(query, best, minlength=data.n_queries)
            ideal[(lengths < cut) & (target.short == Short.ZERO)] = 0.0
        blank = counts & ~(ideal > 0)
        rows, ptr = rows_of(data.ptr, blank)
        self._otherwise[blank] = np.nan_to_num(self.measure.per_query(np.zeros(len(rows)), data.y[rows], ptr))
        sums = np.concatenate(([0.0], np.cumsum(discounts / places if isinstance(target, AP) else discounts)))
        self._precision = isinstance(target, AP)
        cut = min(cut, longest)
        self._fixed = (counts, np.array(data.ptr), relevant, gains[self.order], ideal, cut, discounts, sums)

    def part(self, first: int, last: int) -> Lists:
        """Return queries first … last − 1 of these."""
        made, queries, rows = copy(self), slice(first, last), slice(self.ptr[first], self.ptr[last])
        made.y, made.ptr, made.counts = self.y[rows], self.ptr[first : last + 1] - rows.start, self.counts[queries]
        made.order, made._otherwise = self.order[rows] - rows.start, self._otherwise[queries]
        if self.counted:
            _, _, relevant, gains, ideal, *rest = self._fixed
            made._fixed = (made.counts, made.ptr, relevant[queries], gains[rows], ideal[queries], *rest)
        return made

    def after(
        self, scores: Floats, columns: AnyArray, which: Ints, weights: Floats, *, reverse: bool = False
    ) -> Floats:
        """Return the measure of each query for scores + weights · columns[which]; with `reverse`, also reversed."""
        from . import _adarank_kernels as kernels

        signs = (1.0, -1.0) if reverse else (1.0,)
        values = np.repeat(self._otherwise[:, None], len(signs) * len(which), axis=1)
        if self.counted:
            kernels.step_values(self._precision, scores, columns, which, weights, reverse, *self._fixed, values)
            return values
        for at, (sign, s) in enumerate(product(signs, range(len(which)))):
            made = scores + weights[s] * columns[which[s], : len(scores)].astype(np.float64)
            found = self.measure.per_query(sign * made, self.y, self.ptr)
            values[:, at] = np.where(self.counts, np.nan_to_num(found), 0.0)
        return values

    def column(self, X: Matrix, k: int) -> AnyArray:
        """Return column k of X in the order of the lists."""
        from . import _adarank_kernels as kernels

        if is_sparse(X):
            return np.asarray(X[:, [k]].toarray().ravel()[self.order])
        found = np.empty(len(self.order), X.dtype)
        kernels.read_column(X, k, self.order, found)
        return found

    def no_keys(self, rows: int, kind: np.dtype[Any]) -> Keys:
        """Return empty rows for keys; they take memory only when they are written."""
        room = np.zeros((rows, len(self.y) + ROW_END), kind)
        return Keys(room, *np.zeros((2, len(self.ptr) - 1, rows), np.float32))

    def write_keys(self, numbers: AnyArray, keys: Keys, row: int) -> None:
        """Write one number of every document as the keys of a row."""
        from . import _adarank_bound_kernels as kernels

        kernels.list_keys(numbers, np.array(self.ptr), keys.values[row], keys.spread[:, row], keys.largest[:, row])

    def bounds(self, scores: Keys, columns: Keys, which: Ints, weights: Floats, importance: Floats) -> Floats:
        """Return an upper bound of Σ importance · measure for scores + weights · columns[which], given as keys."""
        from . import _adarank_bound_kernels as kernels

        found, rest = np.empty(len(which)), (self._otherwise, importance)
        kernels.step_bounds(self._precision, *scores, *columns, which, weights, *self._fixed, *rest, found)
        return found


class Keys(NamedTuple):
    """A number of every document as a 16-bit key: the range of its list in equal parts. One row per column of X."""

    values: AnyArray
    spread: AnyArray
    largest: AnyArray


class Columns:
    """Columns as steps are tried on them: as 16-bit keys where places are counted, else as they are.

    They are kept while there is room. Rounds try the same columns one after the other, so what was kept first is as
    good as what was used last.
    """

    def __init__(self, X: Matrix, lists: Lists) -> None:
        self.X, self.lists = X, lists
        kind = np.dtype(np.int16) if lists.counted else X.dtype
        self.kept: dict[int, int] = {}
        self.last: dict[int, AnyArray] = {}
        self.most = int(KEPT * X.shape[1] * X.dtype.itemsize / kind.itemsize)
        self.keys = lists.no_keys(self.most + TOGETHER, kind)  # the last ones for what is not kept

    def has_room(self, features: list[int]) -> bool:
        """Return whether all of these are kept, or can be."""
        return len(self.kept.keys() | features) <= self.most

    def rows(self, features: list[int]) -> Ints:
        """Return in which rows of `keys` these columns are; of those without room, no more than TOGETHER."""
        return np.array([self._row(k, self.most + s) for s, k in enumerate(features)])

    def column(self, k: int) -> AnyArray:
        """Return column k in the order of the lists; the last few are kept, to be tried next."""
        if k not in self.last:
            if len(self.last) == TOGETHER:
                del self.last[next(iter(self.last))]
            self.last[k] = self.lists.column(self.X, k)
        return self.last[k]

    def _row(self, k: int, spare: int) -> int:
        if k in self.kept:
            return self.kept[k]
        row = len(self.kept) if len(self.kept) < self.most else spare
        if row < self.most:
            self.kept[k] = row
        column = self.column(k)
        if self.lists.counted:
            self.lists.write_keys(column, self.keys, row)
        else:
            self.keys.values[row, : len(column)] = column
        return row
