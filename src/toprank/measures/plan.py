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
        """The sort behind the tie rule: averages and shared ranks are read off input order."""
        return Ties.INPUT if self.ties in (Ties.AVERAGE, Ties.SHARED) else Ties(self.ties)


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
    >>> Plan.of((NDCG() @ 10, AP())).run([0.3, 0.2, 0.1], [0, 1, 0], [0, 3])[0].round(4).tolist()
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

    def run(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        ptr: ArrayLike,
        doc_ids: ArrayLike | None = None,
        want_tied: bool = False,
    ) -> tuple[Floats, AnyArray]:
        """Return the values, measure × query, and (with `want_tied`) which queries hold equal scores."""
        s = _writeable(validation.as_scores(scores))
        labels = _writeable(validation.as_labels(y, len(s)))
        bounds = _writeable(validation.as_ptr(ptr, len(s)))
        ids = validation.as_doc_ids(doc_ids, len(s))
        top_grade = self._check(labels, bounds)
        values = np.empty((len(self.rows), len(bounds) - 1))
        tied = np.zeros(len(bounds) - 1, dtype=np.bool_)
        for group in self.groups:
            if group.ties == Ties.ID:
                values[group.where], tied = _by_id(group, s, labels, bounds, ids, top_grade)
            else:
                values[group.where], tied = _compiled(group, s, labels, bounds, s, top_grade, want_tied)
        return values, tied

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
    group: Group, s: Floats, y: Floats, ptr: Ints, key: Floats, top_grade: int, want_tied: bool
) -> tuple[Floats, AnyArray]:
    from . import _kernels

    table = discount_table(int(np.diff(ptr).max(initial=1)))
    values, tied = np.empty((len(ptr) - 1, len(group.where))), np.empty(len(ptr) - 1, dtype=np.bool_)
    _kernels.measure_queries(
        s, y, ptr, key, group.ties, want_tied, group.codes, group.reals, table, top_grade, values, tied
    )
    return values.T, tied


def _by_id(
    group: Group, s: Floats, y: Floats, ptr: Ints, ids: AnyArray | None, top_grade: int
) -> tuple[Floats, AnyArray]:
    """Sort ids only where they decide: in the queries that hold equal scores."""
    values, tied = _compiled(group, s, y, ptr, id_places(None, len(s)), top_grade, True)
    if ids is not None and tied.any():
        lengths = np.diff(ptr)[tied]
        bounds = np.concatenate(([0], np.cumsum(lengths)))
        rows = np.arange(bounds[-1]) + np.repeat(ptr[:-1][tied] - bounds[:-1], lengths)
        places = id_places(ids[rows], len(rows))
        values[:, tied] = _compiled(group, s[rows], y[rows], bounds, places, top_grade, False)[0]
    return values, tied


def _writeable(array: AnyArray) -> AnyArray:
    """Copy an array that must not be written: to the compiler it is another type, and compiling costs seconds."""
    return array if array.flags.writeable else array.copy()
