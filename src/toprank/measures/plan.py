"""Several measures, one pass: what they share (the order of each query) is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from .order import Ties, id_places
from .presets import Discount, Gain, Kind

if TYPE_CHECKING:
    from .base import Measure

_GRADED = (Kind.DCG, Kind.NDCG, Kind.MEAN_NDCG, Kind.ERR)


class Row(NamedTuple):
    """A measure as the compiled pass reads it: seven codes and three reals."""

    kind: Kind
    k: int | None = None
    gain: int = 0
    discount: int = 0
    ties: int = 0
    short: int = 0
    norm: int = 0
    """`Norm` for average precision; for rank-biased precision 1 where grades weigh."""
    blank: float = 0.0
    above: float = 0.0
    parameter: float = 0.0
    """Persistence of rank-biased precision; top of the scale for the expected reciprocal rank."""

    @property
    def order(self) -> Ties:
        """The sort behind the tie rule: averages are read off groups in the order of their grades, so that the order
        of the rows changes no bit."""
        return Ties.BEST if self.ties in (Ties.AVERAGE, Ties.SHARED) else Ties(self.ties)


class Group(NamedTuple):
    """Measures that share one order: their positions in the plan, and their codes as the kernels take them."""

    where: list[int]
    ties: int
    codes: Ints
    reals: Floats


@dataclass(frozen=True)
class Plan:
    """Measures to compute together, sorted into groups that share an order.

    A learner that measures one query at a time takes `codes` and `reals` from the one group of `Plan.of((measure,))`,
    the discounts from `discount_table`, and calls `_kernels.query_values` with `_kernels.workspace`.

    >>> from toprank.measures import AP, NDCG
    >>> Plan.of((NDCG() @ 10, AP())).run([0.3, 0.2, 0.1], [0, 1, 0], [0, 3]).round(4).tolist()
    [[0.6309], [0.5]]
    """

    measures: tuple[Measure, ...]
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]

    @staticmethod
    @lru_cache(maxsize=128)
    def of(measures: tuple[Measure, ...]) -> Plan:
        """Return the plan of these measures; plans are kept."""
        rows = tuple(measure.row() for measure in measures)
        groups = []
        for order in sorted({row.order for row in rows}):
            where = [i for i, row in enumerate(rows) if row.order == order]
            codes = [(r.kind, r.k or 0, r.gain, r.discount, r.ties, r.short, r.norm) for r in (rows[i] for i in where)]
            reals = [(rows[i].blank, rows[i].above, rows[i].parameter) for i in where]
            groups.append(Group(where, int(order), np.array(codes, dtype=np.int64), np.array(reals)))
        return Plan(measures, rows, tuple(groups))

    def run(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the values, measure × query."""
        return self._run(*_checked(scores, y, ptr, doc_ids), want_mixed=False)[0]

    def run_with_ties(
        self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None = None
    ) -> tuple[Floats, AnyArray, Floats]:
        """Return the values, in which queries ties matter to any of them, and the values in the order of the rows.

        Ties matter where the best order of tied documents, the higher grade first, has another value than the worst.
        Only queries in which documents tie that differ in grade are looked at.
        """
        s, labels, bounds, ids = _checked(scores, y, ptr, doc_ids)
        values, mixed = self._run(s, labels, bounds, ids, want_mixed=True)
        matter, in_row_order = np.zeros_like(mixed), values.copy()
        if not mixed.any():
            return values, matter, in_row_order
        rows, part = _rows_of(bounds, mixed)
        s, labels = s[rows], labels[rows]
        single = np.array([row.ties == Ties.ID for row in self.rows])  # scores are compared in single precision
        for seen, which in ((s, ~single), (s.astype(np.float32).astype(np.float64), single)):
            if which.any():
                best, worst, given = (
                    self._settled(seen, labels, part, ties)[which] for ties in (Ties.BEST, Ties.WORST, Ties.INPUT)
                )
                matter[mixed] |= (np.abs(best - worst) > 1e-12 * np.maximum(np.abs(best), 1)).any(axis=0)
                in_row_order[np.ix_(which, mixed)] = given
        return values, matter, in_row_order

    def _settled(self, s: Floats, y: Floats, ptr: Ints, ties: Ties) -> Floats:
        """Return the values of the one order that a tie rule makes."""
        from . import _kernels

        places = np.empty(len(s), dtype=np.int64)
        _kernels.rank_queries(s, y, ptr, int(ties), places)
        return self._run(-places.astype(np.float64), y, ptr, None, want_mixed=False)[0]

    def _run(self, s: Floats, y: Floats, ptr: Ints, ids: AnyArray | None, want_mixed: bool) -> tuple[Floats, AnyArray]:
        top_grade = self._check(y, ptr)
        values = np.empty((len(self.rows), len(ptr) - 1))
        mixed = np.zeros(len(ptr) - 1, dtype=np.bool_)
        for group in self.groups:
            if group.ties == Ties.ID:
                values[group.where], found = _by_id(group, s, y, ptr, ids, top_grade)
            else:
                values[group.where], found = _compiled(group, s, y, ptr, s, top_grade, want_mixed)
            mixed |= found
        return values, mixed

    def _check(self, y: Floats, ptr: Ints) -> int:
        """Refuse grades that a measure cannot take; return the top grade, −1 where grades are not small integers."""
        from . import _kernels

        top_grade, negative = _kernels.scale_of(y)
        for row, measure in zip(self.rows, self.measures, strict=True):
            if negative and (row.kind in _GRADED or (row.kind == Kind.RBP and row.norm)):
                validation.check_grades(y)
            if row.kind == Kind.ERR:
                remedy = f"{measure.name} takes grades up to max_grade={row.parameter:g}, set it higher"
                validation.check_largest_grade(y, row.parameter, remedy)
            elif top_grade < 0 and row.kind in _GRADED and row.gain == Gain.EXP2:
                room = 1023 - log2(int(np.diff(ptr).max(initial=1)))
                remedy = f"2^l − 1 is too large to add up, use {measure.name}:gain=linear or smaller grades"
                validation.check_largest_grade(y, room, remedy)
        return int(top_grade)


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


def _compiled(
    group: Group, s: Floats, y: Floats, ptr: Ints, key: Floats, top_grade: int, want_mixed: bool
) -> tuple[Floats, AnyArray]:
    from . import _kernels

    table = discount_table(int(np.diff(ptr).max(initial=1)))
    values, mixed = np.empty((len(ptr) - 1, len(group.where))), np.empty(len(ptr) - 1, dtype=np.bool_)
    _kernels.measure_queries(
        s, y, ptr, key, group.ties, want_mixed, group.codes, group.reals, table, top_grade, values, mixed
    )
    return values.T, mixed


def _by_id(
    group: Group, s: Floats, y: Floats, ptr: Ints, ids: AnyArray | None, top_grade: int
) -> tuple[Floats, AnyArray]:
    """Sort ids only where they decide: in the queries in which documents tie that differ in grade."""
    values, mixed = _compiled(group, s, y, ptr, id_places(None, len(s)), top_grade, True)
    if ids is not None and mixed.any():
        rows, bounds = _rows_of(ptr, mixed)
        places = id_places(ids[rows], len(rows))
        values[:, mixed] = _compiled(group, s[rows], y[rows], bounds, places, top_grade, False)[0]
    return values, mixed


def _rows_of(ptr: Ints, chosen: AnyArray) -> tuple[Ints, Ints]:
    """Return the rows of the chosen queries and where each of these queries begins among them."""
    lengths = np.diff(ptr)[chosen]
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    return np.arange(bounds[-1]) + np.repeat(ptr[:-1][chosen] - bounds[:-1], lengths), bounds


def _checked(
    scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, doc_ids: ArrayLike | None
) -> tuple[Floats, Floats, Ints, AnyArray | None]:
    s = _writeable(validation.as_scores(scores))
    labels = _writeable(validation.as_labels(y, len(s)))
    bounds = _writeable(validation.as_ptr(ptr, len(s)))
    return s, labels, bounds, validation.as_doc_ids(doc_ids, len(s))


def _writeable(array: AnyArray) -> AnyArray:
    """Copy an array that must not be written: to the compiler it is another type, and compiling costs seconds."""
    return array if array.flags.writeable else array.copy()
