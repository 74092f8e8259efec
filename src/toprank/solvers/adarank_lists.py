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

KEPT_SHARE = 0.35
"""Columns are kept up to this share of the memory that a dense X takes."""

ROW_PADDING = 16
"""Room behind the last document, because keys are read as whole vectors."""

BOUNDS_AT_ONCE = 4
"""For how many candidates bounds are computed at a time if not all of their columns can be kept."""


class Lists:
    """Some queries, prepared for many evaluations; those that are not included have the value 0."""

    _kernel_inputs: tuple[Any, ...]

    def __init__(self, measure: Measure, data: QueryDataset, included: AnyArray) -> None:
        self.measure, self.y, self.ptr, self.included = in_training(measure), data.y, data.ptr, included
        self.order = np.arange(data.n_docs)
        """The order in which scores and columns are given: list by list, with a kernel the relevant documents first."""
        self._constant_values = np.zeros(data.n_queries)
        """The value of each query in which every order has the same value; 0 for the others."""
        target, lengths = self.measure, data.lengths
        self.has_kernel = isinstance(target, (AP, NDCG))
        """Whether compiled code computes the measure, from the places of the relevant documents."""
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
        constant = included & ~(ideal > 0)
        rows, ptr = rows_of(data.ptr, constant)
        self._constant_values[constant] = np.nan_to_num(self.measure.per_query(np.zeros(len(rows)), data.y[rows], ptr))
        sums = np.concatenate(([0.0], np.cumsum(discounts / places if isinstance(target, AP) else discounts)))
        self._is_ap = isinstance(target, AP)
        cut = min(cut, longest)
        self._kernel_inputs = (included, np.array(data.ptr), relevant, gains[self.order], ideal, cut, discounts, sums)

    def part(self, first: int, last: int) -> Lists:
        """Return queries first … last − 1 of these."""
        made, queries, rows = copy(self), slice(first, last), slice(self.ptr[first], self.ptr[last])
        made.y, made.ptr, made.included = self.y[rows], self.ptr[first : last + 1] - rows.start, self.included[queries]
        made.order, made._constant_values = self.order[rows] - rows.start, self._constant_values[queries]
        if self.has_kernel:
            _, _, relevant, gains, ideal, *rest = self._kernel_inputs
            made._kernel_inputs = (made.included, made.ptr, relevant[queries], gains[rows], ideal[queries], *rest)
        return made

    def values_after_steps(
        self, scores: Floats, columns: AnyArray, rows: Ints, weights: Floats, *, reverse: bool = False
    ) -> Floats:
        """Return the measure of each query for scores + weights · columns[rows]; with `reverse`, also reversed."""
        from . import _adarank_kernels as kernels

        signs = (1.0, -1.0) if reverse else (1.0,)
        values = np.repeat(self._constant_values[:, None], len(signs) * len(rows), axis=1)
        if self.has_kernel:
            kernels.step_values(self._is_ap, scores, columns, rows, weights, reverse, *self._kernel_inputs, values)
            return values
        for at, (sign, s) in enumerate(product(signs, range(len(rows)))):
            after = scores + weights[s] * columns[rows[s], : len(scores)].astype(np.float64)
            found = self.measure.per_query(sign * after, self.y, self.ptr)
            values[:, at] = np.where(self.included, np.nan_to_num(found), 0.0)
        return values

    def values_after_step(self, scores: Floats, column: AnyArray, weight: float) -> Floats:
        """Return the measure of each query for scores + weight · column."""
        return self.values_after_steps(scores, column[None], np.zeros(1, dtype=np.int64), np.array([weight]))[:, 0]

    def column(self, X: Matrix, k: int) -> AnyArray:
        """Return column k of X in the order of the lists."""
        from . import _adarank_kernels as kernels

        if is_sparse(X):
            return np.asarray(X[:, [k]].toarray().ravel()[self.order])
        found = np.empty(len(self.order), X.dtype)
        kernels.read_column(X, k, self.order, found)
        return found

    def empty_keys(self, rows: int, dtype: np.dtype[Any]) -> Keys:
        """Return empty rows for keys; they take memory only when they are written."""
        values = np.zeros((rows, len(self.y) + ROW_PADDING), dtype)
        return Keys(values, *np.zeros((2, len(self.ptr) - 1, rows), np.float32))

    def write_keys(self, numbers: AnyArray, keys: Keys, row: int) -> None:
        """Write one number of every document as the keys of a row."""
        from . import _adarank_bound_kernels as kernels

        kernels.list_keys(numbers, np.array(self.ptr), keys.values[row], keys.spread[:, row], keys.largest[:, row])

    def bounds(self, scores: Keys, columns: Keys, rows: Ints, weights: Floats, importance: Floats) -> Floats:
        """Return an upper bound of Σ importance · measure for scores + weights · columns[rows], given as keys."""
        from . import _adarank_bound_kernels as kernels

        found, rest = np.empty(len(rows)), (self._constant_values, importance)
        kernels.step_bounds(self._is_ap, *scores, *columns, rows, weights, *self._kernel_inputs, *rest, found)
        return found


class Keys(NamedTuple):
    """Numbers of every document as 16-bit keys, which divide the range of each list equally; one row per number.

    `spread` and `largest` have the range and the largest absolute value of each list.
    """

    values: AnyArray
    spread: AnyArray
    largest: AnyArray


class Columns:
    """Columns of X in the order of the lists: as 16-bit keys where the measure has a kernel, else as they are.

    They are kept while there is room. Most rounds try the same columns one after the other, so keeping the first ones
    is as good as keeping those that were used last.
    """

    def __init__(self, X: Matrix, lists: Lists) -> None:
        self.X, self.lists = X, lists
        dtype = np.dtype(np.int16) if lists.has_kernel else X.dtype
        self.kept: dict[int, int] = {}
        self.recent: dict[int, AnyArray] = {}
        self.capacity = int(KEPT_SHARE * X.shape[1] * X.dtype.itemsize / dtype.itemsize)
        self.keys = lists.empty_keys(self.capacity + BOUNDS_AT_ONCE, dtype)  # the last rows: for columns not kept

    def has_room(self, features: list[int]) -> bool:
        """Return whether all of these are kept, or can be."""
        return len(self.kept.keys() | features) <= self.capacity

    def rows(self, features: list[int]) -> Ints:
        """Return in which rows of `keys` these columns are; without room for all, give at most BOUNDS_AT_ONCE."""
        return np.array([self._row(k, self.capacity + s) for s, k in enumerate(features)])

    def column(self, k: int) -> AnyArray:
        """Return column k in the order of the lists; the last few are kept, since they are likely to be tried next."""
        if k not in self.recent:
            if len(self.recent) == BOUNDS_AT_ONCE:
                del self.recent[next(iter(self.recent))]
            self.recent[k] = self.lists.column(self.X, k)
        return self.recent[k]

    def _row(self, k: int, spare: int) -> int:
        if k in self.kept:
            return self.kept[k]
        row = len(self.kept) if len(self.kept) < self.capacity else spare
        if row < self.capacity:
            self.kept[k] = row
        column = self.column(k)
        if self.lists.has_kernel:
            self.lists.write_keys(column, self.keys, row)
        else:
            self.keys.values[row, : len(column)] = column
        return row
