"""Several measures, one pass: what they share (the order of each query) is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from ..data.grouping import bounds_of, query_of_rows, rows_of
from .base import Compiled, Measure
from .function import NO_SCRATCH, MeasureFunction, called_back
from .order import Ties, id_places
from .presets import Discount

ALL_RANKS = 1 << 40
"""More ranks than any list has."""

Packed: TypeAlias = tuple[str, tuple[int, ...], tuple[float, ...]]
"""A function of `_value_kernels`, its codes and its numbers."""


class Recipe(NamedTuple):
    """A measure as compiled code knows it: a function of `_value_kernels` and what it reads."""

    function: str
    codes: tuple[int, ...]
    """What follows k and the tie rule."""
    numbers: tuple[float, ...]
    """The value of a blank query, the grade that relevant documents lie above, and what follows."""
    depth: int | None
    """How many ranks it reads; None for all."""

    def packed(self, ties: Ties) -> Packed:
        """Return the function with all its codes, under a tie rule."""
        rule = {Ties.AVERAGE: 1, Ties.SHARED: 2}.get(ties, 0)
        return self.function, (self.depth or 0, rule, *self.codes), self.numbers


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
        return Plan.of, (self.measures,)  # addresses belong to a process

    def run(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the values, measure × query."""
        return self._run(*_checked(scores, y, ptr, doc_ids), want_mixed=False)[0]

    def run_with_ties(
        self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None = None, *, of_run: bool = False
    ) -> tuple[Floats, AnyArray, Floats]:
        """Return the values, in which queries ties matter to any of them, and the values in the order of the rows.

        Ties matter where the best order of tied documents, the higher grade first, has another value than the worst.
        Only queries in which documents tie that differ in grade are looked at. `of_run` says that documents at the end
        of a query whose score is NaN are judged and not retrieved, and that those with a grade below 0 are not judged.
        """
        s, labels, bounds, ids = _checked(scores, y, ptr, doc_ids, of_run)
        values, mixed = self._run(s, labels, bounds, ids, want_mixed=True, of_run=of_run)
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
        ranked = np.where(np.isnan(s), s, -places(s, y, ptr, ties))
        return self._run(ranked, y, ptr, None, want_mixed=False, of_run=of_run)[0]

    def _run(
        self, s: Floats, y: Floats, ptr: Ints, ids: AnyArray | None, *, want_mixed: bool, of_run: bool = False
    ) -> tuple[Floats, AnyArray]:
        values = np.empty((len(self.measures), len(ptr) - 1))
        mixed = np.zeros(len(ptr) - 1, dtype=np.bool_)
        raw, y = y, np.maximum(y, 0.0) if of_run else y
        lowest, highest = (float(y.min()), float(y.max())) if len(y) else (0.0, 0.0)
        for group in self._groups:
            order, grades = group.order, raw if group.reads_unjudged else y
            for measure in group.measures:
                measure.check(grades, ptr, lowest, highest)
            found = group.values(s, grades, ptr, want_mixed or (order == Ties.ID and ids is not None))
            values[group.where] = found[: len(group.where)]
            if len(found) > len(group.where):
                mixed |= (differ := found[-1] > 0)
                if order == Ties.ID and ids is not None and differ.any():
                    rows, part = rows_of(ptr, differ)
                    settled = _by_id(s[rows], part, ids[rows])
                    values[np.ix_(group.where, differ)] = group.values(settled, grades[rows], part, False)
        for i, own in enumerate(self.measures):
            if not isinstance(own, Compiled):
                values[i] = own.per_query(*(_retrieved(s, y, ptr) if of_run else (s, y, ptr)))
        if want_mixed and not self._groups:
            mixed |= _Group([], [], Ties.INPUT, False).values(s, y, ptr, True)[-1] > 0
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

    @cached_property
    def list_function(self) -> MeasureFunction:
        """The one measure of this plan as a C function."""
        (measure,) = self.measures
        if isinstance(measure, Compiled):
            (group,) = self._groups
            return group.function(False)
        return called_back(measure)


@dataclass(frozen=True)
class _Group:
    """Measures that share one order, and their positions in the plan."""

    where: list[int]
    measures: list[Compiled]
    order: Ties
    reads_unjudged: bool

    def values(self, s: Floats, y: Floats, ptr: Ints, want_mixed: bool) -> Floats:
        """Return measure × query, and with `want_mixed` a row that is 1 where documents of different grade tie."""
        function, n = self.function(want_mixed), len(ptr) - 1
        out = np.empty((len(self.measures) + want_mixed, n))
        function.fill(s, y, ptr, out.reshape(-1))
        return out

    def function(self, want_mixed: bool) -> MeasureFunction:
        """Return the C function that computes all of them."""
        recipes = [measure.recipe() for measure in self.measures]
        packed = [recipe.packed(measure.ties) for measure, recipe in zip(self.measures, recipes, strict=True)]
        if want_mixed:
            packed.append(("mixed_ties", (0, 1), (0.0,)))
        deepest = max((recipe.depth or ALL_RANKS for recipe in recipes), default=ALL_RANKS)
        return _function(tuple(packed), int(self.order), ALL_RANKS if want_mixed else deepest)


@lru_cache(maxsize=256)
def _function(recipes: tuple[Packed, ...], order: int, depth: int, places: bool = False) -> MeasureFunction:
    from . import _judge_kernels as judge
    from . import _order_kernels, _value_kernels

    ideal = max((own[0] or ALL_RANKS for function, own, _ in recipes if function == "ndcg"), default=0)
    head = [_order_kernels.order_list.address, order, depth, ideal, int(places), len(recipes)]
    entries: list[int] = []
    codes: list[int] = []
    numbers: list[float] = [0.0]
    for function, own, params in recipes:
        start = judge.HEAD + judge.ENTRY * len(recipes) + len(codes)
        entries += [getattr(_value_kernels, function).address, start, start + len(own), len(numbers), len(params)]
        codes += [*own, own[0], 0, *own[2:]]
        numbers += params
    return MeasureFunction(judge.judge.address, np.array(head + entries + codes), np.array(numbers))


def places(s: Floats, y: Floats, ptr: Ints, ties: Ties) -> Floats:
    """Return the rank of each document in its query, from 1, under a rule that makes one order."""
    found = np.empty(len(s))
    _function((), int(ties), ALL_RANKS, places=True).fill(s, y, ptr, NO_SCRATCH, found)
    return found


def _order_of(ties: Ties) -> Ties:
    """Return the sort behind a tie rule: averages are read off groups in the order of their grades, so that the order
    of the rows changes no bit."""
    return Ties.BEST if ties in (Ties.AVERAGE, Ties.SHARED) else Ties(ties)


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
