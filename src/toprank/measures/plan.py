"""Several measures, one pass: what they share (the order of each query) is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from ..data.blocks import block_boundaries
from ..data.grouping import bounds_of, query_of_rows, rows_of
from .base import Compiled, Measure
from .order import Ties, id_places
from .presets import Discount

ALL_RANKS = 1 << 40
"""More ranks than any list has."""

BLOCK_DOCS = 1 << 16
"""Queries are ordered and measured in blocks of about so many documents, whose grades by rank stay in the cache."""


@dataclass(frozen=True)
class Plan:
    """Measures to compute together; those with one order of ties share it.

    >>> from toprank.measures import AP, NDCG
    >>> Plan.of((NDCG() @ 10, AP())).run([0.3, 0.2, 0.1], [0, 1, 0], [0, 3]).round(4).tolist()
    [[0.6309], [0.5]]
    """

    measures: tuple[Measure, ...]

    @staticmethod
    @lru_cache(maxsize=128)
    def of(measures: tuple[Measure, ...]) -> Plan:
        """Return the plan of these measures; plans are kept."""
        return Plan(measures)

    def __reduce__(self) -> Any:
        return Plan.of, (self.measures,)

    def run(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the values, measure × query."""
        return self._run(*_checked(scores, y, ptr, doc_ids))[0]

    def run_with_ties(
        self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None = None, *, of_run: bool = False
    ) -> tuple[Floats, AnyArray, Floats]:
        """Return the values, in which queries ties matter to any of them, and the values in the order of the rows.

        Ties matter where the best order of tied documents, the higher grade first, has another value than the worst.
        Only queries in which documents tie that differ in grade are looked at. `of_run` says that documents at the end
        of a query whose score is NaN are judged and not retrieved, and that those with a grade below 0 are not judged.
        """
        s, labels, bounds, ids = _checked(scores, y, ptr, doc_ids, of_run)
        values, mixed = self._run(s, labels, bounds, ids, of_run)
        if not all(isinstance(measure, Compiled) for measure in self.measures):  # one in plain Python reads all ranks
            mixed |= _Group([], [], Ties.INPUT, False).values(s, labels, bounds)[1]
        matter, in_row_order = np.zeros_like(mixed), values.copy()
        if not mixed.any():
            return values, matter, in_row_order
        rows, part = rows_of(bounds, mixed)
        s, labels = s[rows], labels[rows]
        single = np.array([getattr(m, "ties", None) == Ties.ID for m in self.measures])  # sees scores as float32
        for seen, which in ((s, ~single), (s.astype(np.float32).astype(np.float64), single)):
            if which.any():
                best, worst, given = (
                    self._settled(seen, labels, part, ties, of_run)[which]
                    for ties in (Ties.BEST, Ties.WORST, Ties.INPUT)
                )
                matter[mixed] |= (np.abs(best - worst) > 1e-12 * np.maximum(np.abs(best), 1)).any(axis=0)
                in_row_order[np.ix_(which, mixed)] = given
        return values, matter, in_row_order

    def _settled(self, s: Floats, y: Floats, ptr: Ints, ties: Ties, of_run: bool) -> Floats:
        """Return the values of the one order that a tie rule makes."""
        return self._run(-places(s, y, ptr, ties), y, ptr, None, of_run)[0]

    def _run(
        self, s: Floats, y: Floats, ptr: Ints, ids: AnyArray | None, of_run: bool = False
    ) -> tuple[Floats, AnyArray]:
        """Return the values, and in which queries documents of different grade tie."""
        values = np.empty((len(self.measures), len(ptr) - 1))
        mixed = np.zeros(len(ptr) - 1, dtype=np.bool_)
        raw, y = y, np.maximum(y, 0.0) if of_run else y
        lowest, highest = (float(y.min()), float(y.max())) if len(y) else (0.0, 0.0)
        for group in self._groups:
            grades = raw if group.reads_unjudged else y
            for measure in group.measures:
                measure.check(grades, ptr, lowest, highest)
            values[group.where], differ = group.values(s, grades, ptr)
            mixed |= differ
            if group.order == Ties.ID and ids is not None and differ.any():
                rows, part = rows_of(ptr, differ)
                settled = _by_id(s[rows], part, ids[rows])
                values[np.ix_(np.array(group.where), differ)] = group.values(settled, grades[rows], part)[0]
        for i, own in enumerate(self.measures):
            if not isinstance(own, Compiled):
                values[i] = own.per_query(*(_retrieved(s, y, ptr) if of_run else (s, y, ptr)))
        return values, mixed

    @cached_property
    def _groups(self) -> list[_Group]:
        """The compiled measures by the order and the grades they need."""
        found: dict[tuple[Ties, bool], _Group] = {}
        for i, measure in enumerate(self.measures):
            if isinstance(measure, Compiled):
                key = _order_of(measure.ties), measure.reads_unjudged
                group = found.setdefault(key, _Group([], [], *key))
                group.where.append(i)
                group.measures.append(measure)
        return list(found.values())


@dataclass(frozen=True)
class _Group:
    """Measures that share one order, and their positions in the plan."""

    where: list[int]
    measures: list[Compiled]
    order: Ties
    reads_unjudged: bool

    def values(self, s: Floats, y: Floats, ptr: Ints) -> tuple[Floats, AnyArray]:
        """Return measure × query, and in which queries documents of different grade tie at ranks that are read."""
        from ._rank_kernels import rank_lists

        if self.order == Ties.ID:  # trec_eval reads scores in single precision
            s = s.astype(np.float32).astype(np.float64)
        depth = max((measure.depth or ALL_RANKS for measure in self.measures), default=ALL_RANKS)
        values, mixed = np.empty((len(self.measures), len(ptr) - 1)), np.empty(len(ptr) - 1, dtype=np.bool_)
        for first, last in pairwise(block_boundaries(ptr, BLOCK_DOCS)):
            rows = slice(ptr[first], ptr[last])
            lists = rank_lists(s[rows], y[rows], ptr[first : last + 1] - ptr[first], int(self.order), depth)
            mixed[first:last] = lists.mixed
            for i, measure in enumerate(self.measures):
                values[i, first:last] = measure.values_of(lists)
        return values, mixed


def places(s: Floats, y: Floats, ptr: Ints, ties: Ties) -> Floats:
    """Return the rank of each document in its query, from 1, under a rule that makes one order; NaN stays NaN."""
    from ._rank_kernels import places_of_documents

    found: Floats = places_of_documents(_writeable(s), _writeable(y), _writeable(ptr), int(ties))
    return found


def _order_of(ties: Ties) -> Ties:
    """Return the order that measures with this tie rule read: one and the same where groups of ties count as such."""
    return Ties.AVERAGE if ties == Ties.SHARED else Ties(ties)


def discount_table(longest: int) -> Floats:
    """Return the discounts of at least `longest` ranks, one row per `Discount`; tables are kept.

    >>> discount_table(4)[:, :4].round(3).tolist()
    [[1.0, 0.631, 0.5, 0.431], [1.0, 1.0, 0.631, 0.5]]
    """
    return _table(1 << max(longest - 1, 1).bit_length())


@lru_cache(maxsize=8)
def _table(length: int) -> Floats:
    log = np.log2(np.arange(1, length + 2, dtype=np.float64))
    table = np.empty((len(Discount), length))
    table[Discount.LOG2] = 1.0 / log[1:]
    table[Discount.LETOR] = 1.0 / np.maximum(log[:-1], 1.0)
    return table


def _by_id(s: Floats, ptr: Ints, ids: AnyArray) -> Floats:
    """Return scores that put documents in the order of trec_eval: single precision, then ids descending."""
    order = np.lexsort((id_places(ids, len(s)), -s.astype(np.float32), query_of_rows(ptr)))
    scores = np.empty(len(s))
    scores[order] = -np.arange(len(s)) + np.repeat(ptr[:-1], np.diff(ptr))
    return np.where(np.isnan(s), s, scores)


def _retrieved(s: Floats, y: Floats, ptr: Ints) -> tuple[Floats, Floats, Ints]:
    """Return the documents that a run holds."""
    held = ~np.isnan(s)
    return s[held], y[held], bounds_of(held)[ptr]


def _checked(
    scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None, of_run: bool = False
) -> tuple[Floats, Floats, Ints, AnyArray | None]:
    s = _writeable(np.asarray(scores, dtype=np.float64) if of_run else validation.as_scores(scores))
    labels = _writeable(validation.as_labels(y, len(s)))
    bounds = _writeable(validation.as_ptr(ptr, len(s)))
    return s, labels, bounds, validation.as_doc_ids(doc_ids, len(s))


def _writeable(array: AnyArray) -> AnyArray:
    """Copy an array that must not be written: to the compiler it is another type, and compiling costs seconds."""
    return array if array.flags.writeable else array.copy()
