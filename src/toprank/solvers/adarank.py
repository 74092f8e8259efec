"""AdaRank: features as weak rankers, weighed by how well they rank the queries that the ensemble ranks badly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import blocks, linear
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..measures.base import Measure
from ..measures.order import Ties, id_places
from ..measures.plan import Plan, discount_table
from ..measures.presets import Kind, Norm, Short
from .boosting import Rounds, columns_of

Rule = Literal["paper", "improve"]
Watch: TypeAlias = Callable[[int, int, float], bool]
"""Called after each round with its number, the candidate and its weight; True stops."""

SMALLEST_SHARE = 1 / 64
"""How far the rule "improve" halves its steps before it gives up."""

TABLE_VALUES = 1 << 19
"""Feature values in a block of the measure table."""

TOGETHER = 16
"""Columns that are copied from X at one time: neighbours in a row come from memory together."""

PIECE_DOCS = 1 << 16
"""Documents that one task of a round evaluates: enough that handing it to a thread costs little beside the work."""


def measure_table(
    measure: Measure, data: QueryDataset, executor: Executor | None = None, *, both: bool = False
) -> Floats:
    """E(q, k): the measure of every query ranked by feature k alone; with `both`, the reversed features follow.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> measure_table(tr.measure("map"), data).tolist()
    [[1.0, 0.5]]
    """
    fill = partial(_table_rows, measure, both)
    return np.concatenate(blocks.map_reduce(fill, blocks.split(data, TABLE_VALUES), executor))


def _table_rows(measure: Measure, both: bool, block: QueryDataset) -> list[Floats]:
    lists = _Lists(measure, block, np.ones(block.n_queries, dtype=bool))
    d, scores, signs = block.n_features, np.zeros(block.n_docs), (1.0, -1.0) if both else (1.0,)
    X = block.X[lists.order]
    if not block.is_sparse:
        features = np.ascontiguousarray(X.T), np.tile(np.arange(d), len(signs)), np.repeat(signs, d)
        return [lists.after(scores, *features)[0]]
    column, first = columns_of(X), np.zeros(len(signs), dtype=np.int64)
    parts = [lists.after(scores, column(k)[None, :], first, np.array(signs))[0] for k in range(d)]
    return [np.stack(parts, axis=2).reshape(block.n_queries, -1)]


def _codes(measure: Measure, data: QueryDataset) -> tuple[Floats, Ints, Floats, tuple[Any, ...]]:
    """Return grades, ptr, tie-breakers, and the measure as kernels read it: ties, codes, reals, discounts, top."""
    from ..measures import _kernels

    measure.per_query(np.zeros(data.n_docs), data.y, data.ptr)  # refuses grades that the measure cannot take
    (group,) = Plan.of((measure,)).groups
    y, ptr = np.require(data.y, requirements="W"), np.require(data.ptr, requirements="W")
    key = id_places(None, data.n_docs) if group.ties == Ties.ID else y
    table = discount_table(int(data.lengths.max(initial=1)))
    return y, ptr, key, (group.ties, group.codes, group.reals, table, int(_kernels.scale_of(y)[0]))


@dataclass(frozen=True)
class AdaRankRounds:
    """Fig. 6: h_t = argmax_k Σ_q P_t(q) E(q, k), α_t = ½ ln(Σ P(1+E)/Σ P(1−E)), P_{t+1} ∝ exp(−E(f_t)).

    `rule="paper"` is the figure. `rule="improve"` takes the best candidate whose addition raises the mean of E(f): one
    that does not is set aside until another has been taken; when none is left, all steps are halved from then on, and
    the run ends when even the smallest step (1/64) of none helps. A round then costs as many evaluations as it tries.
    """

    measure: Measure
    rounds: int
    rule: Rule
    watch: Watch | None = None

    def run(self, data: QueryDataset, table: Floats, importance: Floats, executor: Executor | None = None) -> Rounds:
        """Boost on `data` with its measure table; `importance` weighs the queries and sums to 1."""
        ensemble = _Ensemble(self.measure, data, importance, executor)
        chosen: list[int] = []
        weights: list[float] = []
        phis: list[float] = []
        deltas: list[float] = []
        reached: list[float] = []
        P, mean, aside = importance, -np.inf, np.zeros(table.shape[1], dtype=bool)
        current = np.zeros(data.n_queries)
        share = 1.0
        counted = np.flatnonzero(importance > 0)
        performance = linear.adjoint(table, P)
        while len(chosen) < self.rounds:
            if aside.all():
                aside[:] = False
                share /= 2
                if share < SMALLEST_SHARE:
                    break
            k = int(np.argmax(np.where(aside, -np.inf, performance)))
            weight = share * step_size(float(performance[k]))
            # As long as one feature is all there is, f ranks as that feature does, and the table knows how well.
            known = table[:, k] if all(other == k for other in chosen) else None
            values = ensemble.try_step(k, weight, known)
            mean_trial = float(importance @ values)
            if self.rule == "improve" and not mean_trial > mean:
                aside[k] = True
                continue
            ensemble.take_step()
            deltas.append(float((values - current - weight * table[:, k])[counted].min()))
            mean, current = mean_trial, values
            aside[:] = False
            chosen.append(k)
            weights.append(weight)
            phis.append(float(performance[k]))
            reached.append(mean)
            P = importance * np.exp(-current)
            P /= P.sum()
            performance = linear.adjoint(table, P)
            stop = self.watch is not None and self.watch(len(chosen), k, weight)
            if stop or mean >= 1.0 or phis[-1] >= 1.0:
                break
        trace = {"measure": np.array(reached), "phi": np.array(phis), "delta": np.array(deltas)}
        return Rounds(np.array(chosen, dtype=np.int64), np.array(weights), trace)


class _Lists:
    """A run of queries, prepared for many evaluations; only those that count are looked at, the others are 0."""

    def __init__(self, measure: Measure, data: QueryDataset, counts: AnyArray, *, keep_tops: bool = False) -> None:
        from . import _adarank_kernels as kernels

        y, ptr, key, codes = _codes(measure, data)
        row = measure.row()
        by_gain = kernels.TOP if keep_tops and row.k else kernels.GAINS
        way = {Kind.NDCG: by_gain, Kind.AP: kernels.PRECISION}.get(row.kind, kernels.ANY)
        longest = int(data.lengths.max(initial=1))
        cut, discounts = int(row.k or longest), np.ascontiguousarray(codes[3][row.discount])
        gains, ideal = np.zeros(data.n_docs), np.zeros(data.n_queries)
        if row.ties != Ties.INPUT:
            way = kernels.ANY
        elif row.kind == Kind.NDCG:
            kernels.ideal_gains(y, ptr, cut, int(row.gain), discounts, gains, ideal)
            if row.short == Short.ZERO:
                ideal[data.lengths < cut] = 0.0
        elif row.kind == Kind.AP:
            gains[y > row.above], discounts = 1.0, np.ones(longest)
            ideal += np.diff(np.concatenate(([0.0], gains.cumsum()))[ptr])
            if row.norm == Norm.CUT:
                ideal = np.minimum(ideal, cut)
        discounts = np.where(np.arange(longest) < cut, discounts[:longest], 0.0)
        starts = np.repeat(ptr[:-1], data.lengths)
        self.order = np.lexsort((gains == 0, starts)) if way > kernels.TOP else np.arange(data.n_docs)
        """Documents list by list, the relevant ones first: the order that `after` wants scores and columns in."""
        place = (self.order - starts).astype(np.uint32)
        relevant = np.diff(np.concatenate(([0], np.cumsum(gains != 0)))[ptr])
        width = min(cut, longest) if way == kernels.TOP else 1
        self.head = np.tile(np.arange(width, dtype=np.int32), (data.n_queries, 1))
        """Documents of each list that may stand at its top: a start for NDCG@k."""
        self._way = way
        self._fixed = (counts, y, ptr, key, place, relevant, gains[self.order], ideal)
        self._codes = (cut, discounts, *codes)

    def after(
        self, scores: Floats, columns: AnyArray, which: Ints, weights: Floats, head: AnyArray | None = None
    ) -> tuple[Floats, AnyArray]:
        """Return the measure of each query for scores + weights · columns[which], and the documents at its top."""
        from . import _adarank_kernels as kernels

        old = self.head if head is None else head
        values, new = np.empty((len(old), len(which))), old.copy()
        step = (scores, columns, which, weights, *self._fixed, old, *self._codes)
        kernels.step_values(self._way, *step, values, new)
        return values, new


class _Ensemble:
    """The scores so far, run by run, and what one more step would make of them."""

    def __init__(self, measure: Measure, data: QueryDataset, importance: Floats, executor: Executor | None) -> None:
        self.X, self.executor = data.X, executor
        runs = list(pairwise(blocks.cuts(data.ptr, PIECE_DOCS)))
        self.lists = [_Lists(measure, data[a:b], importance[a:b] > 0, keep_tops=True) for a, b in runs]
        self.rows = [data.ptr[a] + lists.order for (a, _), lists in zip(runs, self.lists, strict=True)]
        self.scores = [np.zeros(len(rows)) for rows in self.rows]
        self.heads = [lists.head for lists in self.lists]
        self.columns: dict[int, list[AnyArray]] = {}
        self.step: tuple[list[AnyArray], int, float, list[AnyArray]] | None = None

    def try_step(self, k: int, weight: float, known: Floats | None = None) -> Floats:
        """Return the measure of each query for scores + weight · candidate k; `known` where it need not be computed."""
        d = self.X.shape[1]
        columns, row = self._columns(k % d)
        weight = weight if k < d else -weight
        self.step = columns, row, weight, self.heads
        if known is not None:
            return known
        step = repeat(np.array([row])), repeat(np.array([weight]))
        work = list(zip(self.lists, self.scores, columns, *step, self.heads, strict=False))
        parts = blocks.map_reduce(_run_values, work, self.executor if len(work) > 1 else None)
        self.step = columns, row, weight, [head for _, head in parts]
        return np.concatenate([values[:, 0] for values, _ in parts])

    def take_step(self) -> None:
        """Go on from what was tried last."""
        assert self.step is not None
        columns, row, weight, self.heads = self.step
        for scores, values in zip(self.scores, columns, strict=True):
            scores += weight * values[row].astype(np.float64, copy=False)

    def _columns(self, k: int) -> tuple[list[AnyArray], int]:
        """Return some columns of every run, copied on first use, and which of them is column k."""
        group, row = (k, 0) if is_sparse(self.X) else divmod(k, TOGETHER)
        if group not in self.columns:
            if is_sparse(self.X):
                column = candidate_column(self.X, k)
                self.columns[group] = [column[None, rows] for rows in self.rows]
            else:
                near = slice(group * TOGETHER, (group + 1) * TOGETHER)
                self.columns[group] = [np.ascontiguousarray(self.X[rows, near].T) for rows in self.rows]
        return self.columns[group], row


def _run_values(work: tuple[_Lists, Floats, AnyArray, Ints, Floats, AnyArray]) -> list[tuple[Floats, AnyArray]]:
    lists, scores, columns, which, weights, head = work
    return [lists.after(scores, columns, which, weights, head)]


def replay(measure: Measure, data: QueryDataset, rounds: Rounds, importance: Floats) -> Rounds:
    """Return the rounds with φ, δ and the mean measure of each as they come out on `data`."""
    scores, current = np.zeros(data.n_docs), np.zeros(data.n_queries)
    P = importance
    found: dict[str, list[float]] = {"measure": [], "phi": [], "delta": []}
    for k, weight in zip(rounds.candidates, rounds.weights, strict=True):
        column = candidate_column(data.X, int(k))
        alone = values_of(measure, column, data)
        scores = scores + weight * column
        values = values_of(measure, scores, data)
        found["phi"].append(float(P @ alone))
        found["delta"].append(float((values - current - weight * alone)[importance > 0].min()))
        found["measure"].append(float(importance @ values))
        current = values
        P = importance * np.exp(-current)
        P = P / P.sum()
    return Rounds(rounds.candidates, rounds.weights, {name: np.array(values) for name, values in found.items()})


def values_of(measure: Measure, scores: Floats, data: QueryDataset) -> Floats:
    """Return the measure of each query, 0 where it is undefined (such queries carry no weight)."""
    return np.nan_to_num(measure.per_query(scores, data.y, data.ptr))


def step_size(phi: float) -> float:
    """α = ½ ln((1 + φ)/(1 − φ)), held finite for a perfect weak ranker and at 0 or above for a useless one."""
    return float(0.5 * np.log((1.0 + phi) / max(1.0 - phi, 1e-12)))


def candidate_column(X: Matrix, k: int) -> Floats:
    """Column k of X as float64; candidates from the number of features on are the columns reversed."""
    d = X.shape[1]
    column = X[:, [k % d]].toarray().ravel() if is_sparse(X) else X[:, k % d]
    return np.asarray(column, dtype=np.float64) * (1.0 if k < d else -1.0)
