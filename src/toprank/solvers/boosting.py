"""Boosting over features: AdaRank's measure table and RankBoost's presorted columns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import blocks
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..measures.base import Measure

Rule = Literal["paper", "improve"]
Watch: TypeAlias = Callable[[int, int, float], bool]
"""Called after each round with its number, the candidate (or the stump's column) and its weight; True stops."""

SMALLEST_SHARE = 1 / 64
"""How far the rule "improve" halves its steps before it gives up."""

TABLE_VALUES = 1 << 21
"""Feature values in a block of the measure table: large enough that a call costs little beside the work."""


def measure_table(
    measure: Measure, data: QueryDataset, executor: Executor | None = None, *, both: bool = False
) -> Floats:
    """E(q, k): the measure of every query ranked by feature k alone; with `both`, the reversed features follow.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> measure_table(tr.measure("map"), data).tolist()
    [[1.0, 0.5]]
    """
    parts = blocks.map_reduce(partial(_rows, measure, both), blocks.split(data, TABLE_VALUES), executor)
    return np.concatenate(parts)


def _rows(measure: Measure, both: bool, block: QueryDataset) -> list[Floats]:
    signs = (1.0, -1.0) if both else (1.0,)
    table = np.empty((block.n_queries, block.n_features * len(signs)))
    column = columns_of(block.X)
    for k in range(block.n_features):
        values = column(k)
        for n, sign in enumerate(signs):
            table[:, n * block.n_features + k] = values_of(measure, sign * values, block)
    return [table]


def columns_of(X: Matrix) -> Callable[[int], Floats]:
    """Return k ↦ column k as a float64 array, from one transposed copy."""
    if is_sparse(X):
        by_column = X.tocsc()

        def sparse(k: int) -> Floats:
            values = np.zeros(X.shape[0])
            a, b = by_column.indptr[k], by_column.indptr[k + 1]
            values[by_column.indices[a:b]] = by_column.data[a:b]
            return values

        return sparse
    turned = np.ascontiguousarray(X.T, dtype=np.float64)
    return lambda k: turned[k]


@dataclass(frozen=True, eq=False)
class Rounds:
    """What a boosting run did: candidate and weight of each round, and numbers to look at."""

    candidates: Ints
    weights: Floats
    trace: dict[str, Floats] = field(default_factory=dict)


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
        pieces = _pieces(data)
        chosen: list[int] = []
        weights: list[float] = []
        phis: list[float] = []
        deltas: list[float] = []
        reached: list[float] = []
        columns: dict[int, Floats] = {}
        scores = np.zeros(data.n_docs)
        P, mean, aside = importance, -np.inf, np.zeros(table.shape[1], dtype=bool)
        current = np.zeros(data.n_queries)
        share = 1.0
        while len(chosen) < self.rounds:
            if aside.all():
                share /= 2
                aside[:] = False
                if share < SMALLEST_SHARE:
                    break
            performance = P @ table
            performance[aside] = -np.inf
            k = int(np.argmax(performance))
            weight = share * step_size(float(performance[k]))
            if k not in columns:
                columns[k] = candidate_column(data.X, k)
            trial = scores + weight * columns[k]
            # As long as one feature is all there is, f ranks as that feature does, and the table knows how well.
            single = all(other == k for other in chosen)
            values = table[:, k] if single else _evaluate(self.measure, trial, pieces, executor)
            mean_trial = float(importance @ values)
            if self.rule == "improve" and not mean_trial > mean:
                aside[k] = True
                continue
            deltas.append(float((values - current - weight * table[:, k])[importance > 0].min()))
            scores, mean, current = trial, mean_trial, values
            aside[:] = False
            chosen.append(k)
            weights.append(weight)
            phis.append(float(performance[k]))
            reached.append(mean)
            P = importance * np.exp(-current)
            P /= P.sum()
            stop = self.watch is not None and self.watch(len(chosen), k, weight)
            if stop or mean >= 1.0 or phis[-1] >= 1.0:
                break
        trace = {"measure": np.array(reached), "phi": np.array(phis), "delta": np.array(deltas)}
        return Rounds(np.array(chosen, dtype=np.int64), np.array(weights), trace)


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


_Piece: TypeAlias = tuple[int, int, Floats, Ints]


def _pieces(data: QueryDataset) -> list[_Piece]:
    """Runs of queries without their features: (first row, last row, grades, ptr)."""
    found, row = [], 0
    for block in blocks.split(data, TABLE_VALUES):
        found.append((row, row + block.n_docs, block.y, block.ptr))
        row += block.n_docs
    return found


def _evaluate(measure: Measure, scores: Floats, pieces: list[_Piece], executor: Executor | None) -> Floats:
    work = [(scores[a:b], y, ptr) for a, b, y, ptr in pieces]
    return np.concatenate(blocks.map_reduce(partial(_values, measure), work, executor))


def _values(measure: Measure, piece: tuple[Floats, Floats, Ints]) -> list[Floats]:
    scores, y, ptr = piece
    return [np.nan_to_num(measure.per_query(scores, y, ptr))]


@dataclass(frozen=True, eq=False)
class SortedColumns:
    """Rows of every column from high to low, the places where a threshold can be marked; see `best_threshold`."""

    order: AnyArray
    start: Ints
    turn: Ints

    @classmethod
    def of(cls, X: Matrix, thresholds: int | None = None, taught: AnyArray | None = None) -> SortedColumns:
        """Sort once; `thresholds` limits how many places a column keeps (None: all), `taught` says which rows count."""
        from . import _boosting_kernels as kernels

        n_docs, n_features = X.shape
        n_taught = n_docs if taught is None else int(taught.sum())
        orders: list[AnyArray] = []
        turn = np.empty(n_features, dtype=np.int64)
        start = np.zeros(n_features + 1, dtype=np.int64)
        if is_sparse(X):
            by_column = X.tocsc()
        else:
            column = columns_of(X)
        for k in range(n_features):
            if is_sparse(X):
                a, b = by_column.indptr[k], by_column.indptr[k + 1]
                rows, values = by_column.indices[a:b], by_column.data[a:b].astype(np.float64)
            else:
                rows, values = np.arange(n_docs), column(k)
            # The potentials add up to 0, so the documents at 0 need not be looked at: CSR or not, the same pass.
            used = values != 0 if taught is None else (values != 0) & taught[rows]
            rows, values = rows[used], values[used]
            zeros = len(rows) < n_taught
            above = values > 0 if zeros else np.ones(len(values), dtype=bool)
            down = np.argsort(-values[above], kind="stable")
            up = np.argsort(values[~above], kind="stable")
            head, tail = rows[above][down].astype(np.int32), rows[~above][up].astype(np.int32)
            kernels.mark_runs(head, values[above][down], zeros)
            kernels.mark_runs(tail, values[~above][up], zeros)
            if thresholds is not None:
                kernels.keep_marks(head, thresholds)
                kernels.keep_marks(tail, thresholds)
            orders += [head, tail]
            turn[k] = start[k] + len(head)
            start[k + 1] = turn[k] + len(tail)
        return cls(np.concatenate(orders), start, turn)

    def threshold(self, X: Matrix, column: int, place: int) -> float:
        """Return θ between the run that ends at `place` and the next value: x > θ exactly for the rows above it."""
        row, stop = int(self.order[place]), int(self.start[column + 1])
        here = float(X[row if row >= 0 else ~row, column])
        next_row = int(self.order[place + 1]) if place + 1 < stop else None
        if next_row is None or place + 1 == self.turn[column]:
            beyond = 0.0  # the run of zeros that is left out
        else:
            beyond = float(X[next_row if next_row >= 0 else ~next_row, column])
        low, high = min(here, beyond), max(here, beyond)
        middle = low + 0.5 * (high - low)
        return middle if low <= middle < high else low


@dataclass(frozen=True)
class RankBoostRounds:
    """h_t = argmax |r|, r = Σ D(i,j) (h(x_i) − h(x_j)), α_t = ½ ln((1+r)/(1−r)), D ∝ e^{H_j − H_i}."""

    rounds: int
    both: bool = True
    """Whether a stump may also count against its documents (r < 0)."""
    watch: Callable[[int, int, float, float], bool] | None = None
    """Called after each round with its number, column, threshold and weight; True stops."""

    def run(
        self, data: QueryDataset, columns: SortedColumns, pair_weight: Floats, executor: Executor | None = None
    ) -> tuple[Rounds, Floats]:
        """Boost; `pair_weight` is the weight of one pair of each query. Returns the rounds and their thresholds."""
        from . import _boosting_kernels as kernels

        codes = np.empty(data.n_docs, dtype=np.int64)
        levels = kernels.grade_codes(data.y, data.ptr, codes)
        H, potential = np.zeros(data.n_docs), np.empty(data.n_docs)
        start_weight = total = kernels.potentials(H, codes, data.ptr, pair_weight, levels, potential)
        cap = 1.0 - 1e-9
        runs = _column_runs(columns)
        chosen: list[int] = []
        thresholds: list[float] = []
        weights: list[float] = []
        losses: list[float] = []
        edges: list[float] = []
        for t in range(1, self.rounds + 1):
            search = partial(_best, columns, potential, self.both)
            size, r, column, place = blocks.map_reduce(search, runs, executor, combine=_better)
            if not size > 1e-12 * total:
                break
            r = float(np.clip(r / total, -cap, cap))
            weight = float(0.5 * np.log((1 + r) / (1 - r)))
            theta = columns.threshold(data.X, column, place)
            kernels.step(H, columns.order, columns.start, columns.turn, column, place, weight)
            total = kernels.potentials(H, codes, data.ptr, pair_weight, levels, potential)
            chosen.append(column)
            thresholds.append(theta)
            weights.append(weight)
            losses.append(total / start_weight)
            edges.append(abs(r))
            stop = self.watch is not None and self.watch(t, column, theta, weight)
            if stop or abs(r) >= cap:
                break
        trace = {"loss": np.array(losses), "edge": np.array(edges)}
        return Rounds(np.array(chosen, dtype=np.int64), np.array(weights), trace), np.array(thresholds)


def _column_runs(columns: SortedColumns) -> list[tuple[int, int]]:
    """Cut the columns into at most 16 runs of about equal work."""
    d = len(columns.turn)
    size = -(-d // min(16, d))
    return [(k, min(k + size, d)) for k in range(0, d, size)]


_Found: TypeAlias = tuple[float, float, int, int]


def _best(columns: SortedColumns, potential: Floats, both: bool, run: tuple[int, int]) -> _Found:
    from . import _boosting_kernels as kernels

    found: _Found = kernels.best_threshold(columns.order, columns.start, columns.turn, potential, both, *run)
    return found


def _better(left: _Found, right: _Found) -> _Found:
    return right if right[0] > left[0] else left
