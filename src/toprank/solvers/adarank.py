"""AdaRank: features as weak rankers, weighed by how well they rank the queries that the ensemble ranks badly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import blocks, linear
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..measures.base import Measure
from ..measures.order import Ties, id_places
from ..measures.plan import Plan, discount_table
from ..measures.presets import Kind, Short
from .boosting import Rounds, columns_of

Rule = Literal["paper", "improve"]
Watch: TypeAlias = Callable[[int, int, float], bool]
"""Called after each round with its number, the candidate and its weight; True stops."""

SMALLEST_SHARE = 1 / 64
"""How far the rule "improve" halves its steps before it gives up."""

TABLE_VALUES = 1 << 19
"""Feature values in a block of the measure table."""

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
    fill = partial(_sparse_rows if data.is_sparse else _dense_rows, measure, both)
    return np.concatenate(blocks.map_reduce(fill, blocks.split(data, TABLE_VALUES), executor))


def _dense_rows(measure: Measure, both: bool, block: QueryDataset) -> list[Floats]:
    from . import _adarank_kernels as kernels

    table = np.empty((block.n_queries, block.n_features * (2 if both else 1)))
    y, ptr, key, codes = _codes(measure, block)
    kernels.feature_values(block.X, y, ptr, both, key, *codes, table)
    return [table]


def _sparse_rows(measure: Measure, both: bool, block: QueryDataset) -> list[Floats]:
    signs = (1.0, -1.0) if both else (1.0,)
    table = np.empty((block.n_queries, block.n_features * len(signs)))
    column = columns_of(block.X)
    for k in range(block.n_features):
        values = column(k)
        for n, sign in enumerate(signs):
            table[:, n * block.n_features + k] = values_of(measure, sign * values, block)
    return [table]


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


class _Ensemble:
    """The scores so far and what one more step would make of them; only the queries that count are looked at."""

    def __init__(self, measure: Measure, data: QueryDataset, importance: Floats, executor: Executor | None) -> None:
        from . import _adarank_kernels as kernels

        self.X, self.executor = data.X, executor
        self.columns: dict[int, AnyArray] = {}
        self.scores = np.zeros(data.n_docs)
        y, ptr, key, codes = _codes(measure, data)
        row = measure.row()
        top = row.kind == Kind.NDCG and row.k is not None and row.ties == Ties.INPUT
        precise = row.kind == Kind.AP and row.k is None and row.ties == Ties.INPUT
        way = kernels.TOP if top else kernels.PRECISION if precise else kernels.ANY
        k = int(row.k or 1) if top else 1
        discounts = np.ascontiguousarray(codes[3][row.discount])
        gains, ideal = np.zeros(data.n_docs), np.zeros(data.n_queries)
        if top:
            kernels.ideal_gains(y, ptr, k, int(row.gain), discounts, gains, ideal)
            if row.short == Short.ZERO:
                ideal[data.lengths < k] = 0.0
        self.work = partial(_piece_values, way, (row.above, k, discounts, *codes))
        self.pieces: list[_Piece] = []
        self.heads: list[AnyArray] = []
        for a, b in pairwise(blocks.cuts(ptr, PIECE_DOCS)):
            rows = slice(int(ptr[a]), int(ptr[b]))
            fixed = (y[rows], ptr[a : b + 1] - ptr[a], importance[a:b] > 0, gains[rows], ideal[a:b], key[rows])
            self.pieces.append((rows, fixed))
            self.heads.append(np.tile(np.arange(k, dtype=np.int32), (b - a, 1)))
        self.step: tuple[AnyArray, float, list[AnyArray]] | None = None

    def try_step(self, k: int, weight: float, known: Floats | None = None) -> Floats:
        """Return the measure of each query for scores + weight · column k; `known` where it need not be computed."""
        if k not in self.columns:
            self.columns[k] = _column(self.X, k)
        column = self.columns[k]
        self.step = column, weight, self.heads
        if known is not None:
            return known
        work = [
            (self.scores[rows], column[rows], weight, head, fixed)
            for (rows, fixed), head in zip(self.pieces, self.heads, strict=True)
        ]
        parts = blocks.map_reduce(self.work, work, self.executor if len(work) > 1 else None)
        self.step = column, weight, [head for _, head in parts]
        return parts[0][0] if len(parts) == 1 else np.concatenate([values for values, _ in parts])

    def take_step(self) -> None:
        """Go on from what was tried last."""
        assert self.step is not None
        column, weight, self.heads = self.step
        self.scores = self.scores + weight * column.astype(np.float64, copy=False)


_Fixed: TypeAlias = tuple[AnyArray, ...]
_Piece: TypeAlias = tuple[slice, _Fixed]
_Step: TypeAlias = tuple[Floats, AnyArray, float, AnyArray, _Fixed]


def _piece_values(way: int, codes: tuple[Any, ...], piece: _Step) -> list[tuple[Floats, AnyArray]]:
    """Return the measure of each query of a run after a step, and the documents at its top."""
    from . import _adarank_kernels as kernels

    scores, column, weight, head, (y, ptr, counts, gains, ideal, key) = piece
    values, new_head = np.empty(len(ptr) - 1), head.copy()
    kernels.step_values(way, scores, column, weight, y, ptr, counts, gains, ideal, head, key, *codes, values, new_head)
    return [(values, new_head)]


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


def _column(X: Matrix, k: int) -> AnyArray:
    """Candidate k in the precision of X, which costs half the memory of `candidate_column` for float32."""
    if is_sparse(X):
        return candidate_column(X, k)
    d = X.shape[1]
    column = np.ascontiguousarray(X[:, k % d])
    return column if k < d else -column
