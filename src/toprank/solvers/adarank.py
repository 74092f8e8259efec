"""AdaRank: features as weak rankers, weighed by how well they rank the queries that the ensemble ranks badly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import linear
from ..data.blocks import block_boundaries
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..data.validation import is_sparse
from ..errors import WorkersLost
from ..measures.base import Measure
from .adarank_lists import BOUNDS_AT_ONCE, ROW_PADDING, Columns, Keys, Lists
from .boosting import Rounds, columns_of
from .deadline import out_of_time

AdaRankRule = Literal["paper", "improve"]
Watch: TypeAlias = Callable[[int, int, float], bool]
"""Called after each round with its number, the candidate and its weight; True stops."""

SMALLEST_STEP_SHARE = 1 / 64
"""The rule "improve" ends when it would halve its steps below this share of their full size."""

ALMOST_ONE = 1.0 - 1e-12
"""A measure at or above this is 1, apart from rounding."""

TABLE_VALUES = 1 << 19
"""How many feature values are read at a time for the measure table."""

ROUNDING = 1.0 + 1e-7
"""Bounds are raised by this factor, which is more than the rounding of a bound and of a mean."""

PIECE_DOCS = 1 << 16
"""Documents in a piece: enough that handing a piece to a thread costs little compared with the work on it."""


def measure_table(measure: Measure, data: QueryDataset, *, both: bool = False) -> Floats:
    """E(q, k): the measure of every query ranked by feature k alone; with `both`, the reversed features follow.

    Documents that score alike count as expected over their orders, see `in_training`.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]], [1, 0])
    >>> measure_table(tr.measure("map"), data).tolist()
    [[1.0, 0.5, 0.75]]
    """
    return _lists_table(Lists(measure, data, np.ones(data.n_queries, dtype=bool)), data, both)


def _lists_table(lists: Lists, data: QueryDataset, both: bool) -> Floats:
    starts = block_boundaries(data.ptr, max(1, int(TABLE_VALUES / max(data.row_values, 1))))
    longest = 0 if is_sparse(data.X) else int(np.diff(data.ptr[starts]).max(initial=0))
    buffer = np.empty((data.n_features, longest + ROW_PADDING), data.X.dtype)
    return np.concatenate([_table_rows(lists.part(a, b), data[a:b].X, both, buffer) for a, b in pairwise(starts)])


def _table_rows(lists: Lists, X: Matrix, both: bool, buffer: AnyArray) -> Floats:
    d, scores = X.shape[1], np.zeros(X.shape[0])
    if not is_sparse(X):
        from . import _adarank_kernels as kernels

        kernels.read_columns(X, lists.order, buffer)
        return lists.values_after_steps(scores, buffer, np.arange(d), np.ones(d), reverse=both)
    column, one = columns_of(X[lists.order]), (np.zeros(1, dtype=np.int64), np.ones(1))
    parts = [lists.values_after_steps(scores, column(k)[None, :], *one, reverse=both) for k in range(d)]
    return np.stack(parts, axis=2).reshape(len(lists.ptr) - 1, -1)


@dataclass(frozen=True)
class AdaRankRounds:
    """Fig. 6: h_t = argmax_k Σ_q P_t(q) E(q, k), α_t = ½ ln(Σ P(1+E)/Σ P(1−E)), P_{t+1} ∝ exp(−E(f_t)).

    `rule="paper"` is the figure. `rule="improve"` takes the best candidate that raises the mean of E(f). One that does
    not is set aside until another has been taken; when none is left, all steps are halved from then on, and the run
    ends when no candidate helps even with the smallest step (1/64). A round costs at most one evaluation of f for each
    candidate that it tries. `both` offers every feature reversed too.
    """

    measure: Measure
    rounds: int
    rule: AdaRankRule
    watch: Watch | None = None
    both: bool = False

    def run(
        self,
        data: QueryDataset,
        importance: Floats,
        executor: Executor | None = None,
        before: Rounds | None = None,
    ) -> Rounds:
        """Boost on `data`; `importance` weighs the queries and sums to 1.

        The rounds `before` are played first, as they are.
        """
        ensemble = _Ensemble(self.measure, self.both, data, importance, executor)
        chosen: list[int] = []
        weights: list[float] = []
        phis: list[float] = []
        deltas: list[float] = []
        reached: list[float] = []
        mean, step_share = -np.inf, 1.0
        played = [] if before is None else list(zip(before.candidates.tolist(), before.weights.tolist(), strict=True))
        try:
            performance, _ = ensemble.performance()
            set_aside = np.zeros(len(performance), dtype=bool)
            may_improve = set_aside.copy()
            likely_to_fail = set_aside.copy()  # the last bound ruled it out, or it was just taken
            while len(chosen) < len(played) + self.rounds:
                replayed = len(chosen) < len(played)
                if set_aside.all():
                    set_aside[:] = may_improve[:] = False
                    step_share /= 2
                    if step_share < SMALLEST_STEP_SHARE:
                        break
                best = np.argsort(np.where(set_aside, np.inf, -performance), kind="stable")[: (~set_aside).sum()]
                leading = int(np.argmin(np.append(likely_to_fail[best], False)))  # so many of the best, in a row
                next_best = best[: max(BOUNDS_AT_ONCE, leading + 1)]
                steps = [step_share * step_size(float(performance[k])) for k in next_best]
                k, weight = played[len(chosen)] if replayed else (int(next_best[0]), steps[0])
                alone, must_improve = all(other == k for other in chosen), self.rule == "improve" and not replayed
                if must_improve and not alone and not may_improve[k]:
                    set_aside[next_best] = ensemble.bounds(next_best, steps) <= mean
                    may_improve[next_best] = ~set_aside[next_best]
                    likely_to_fail[next_best] = set_aside[next_best]
                new_mean = mean if set_aside[k] else ensemble.try_step(k, weight, alone=alone)
                if must_improve and not new_mean > mean:
                    set_aside[k] = True
                    if out_of_time():
                        break
                    continue
                ensemble.take_step()
                mean = new_mean
                set_aside[:] = may_improve[:] = False
                likely_to_fail[k] = True
                chosen.append(k)
                weights.append(weight)
                phis.append(float(performance[k]))
                reached.append(mean)
                performance, delta = ensemble.performance()
                deltas.append(delta)
                stop = self.watch is not None and self.watch(len(chosen), k, weight)
                if not replayed and (stop or out_of_time() or mean >= ALMOST_ONE or phis[-1] >= ALMOST_ONE):
                    break
        except WorkersLost as error:
            error.coef = feature_weights(np.array(chosen, dtype=np.int64), np.array(weights), data.n_features)
            raise
        trace = {"measure": np.array(reached), "phi": np.array(phis), "delta": np.array(deltas)}
        return Rounds(np.array(chosen, dtype=np.int64), np.array(weights), trace)


def feature_weights(candidates: Ints, weights: Floats, width: int) -> Floats:
    """Return Σ_t α_t h_t as weights of `width` features; a reversed feature counts against.

    >>> feature_weights(np.array([0, 3]), np.array([1.0, 0.5]), 2).tolist()
    [1.0, -0.5]
    """
    coef = np.zeros(2 * width)
    np.add.at(coef, candidates, weights)
    return coef[:width] - coef[width:]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some queries, how well each feature and the scores so far rank them, and the columns that were tried."""

    lists: Lists
    X: Matrix
    importance: Floats
    table: Floats
    scores: Floats
    values: Floats
    least_gain: float
    """δ: the smallest change of E(f) by the last step, over the queries, less the weight of the step · E(q, k)."""
    columns: Columns
    tried: dict[tuple[int, float], tuple[AnyArray, Floats]]
    """The step that was tried last: its column and what it made of the queries."""

    @classmethod
    def of(cls, measure: Measure, both: bool, block: QueryDataset) -> _Piece:
        assert block.query_weight is not None
        lists = Lists(measure, block, block.query_weight > 0)
        table = _lists_table(lists, block, both)
        scores, values = np.zeros(block.n_docs), np.zeros(block.n_queries)
        return cls(lists, block.X, block.query_weight, table, scores, values, np.inf, Columns(block.X, lists), {})

    @cached_property
    def score_keys(self) -> Keys:
        """The scores so far as keys."""
        keys = self.lists.empty_keys(1, np.dtype(np.int16))
        self.lists.write_keys(self.scores, keys, 0)
        return keys

    def try_step(self, k: int, weight: float, alone: bool) -> tuple[AnyArray, Floats]:
        """Return the column of candidate k and the measure of each query for scores + weight · candidate k.

        While one feature is `alone` in the ensemble, f ranks as that feature does, and its values are in the table.
        """
        if (k, weight) not in self.tried:
            self.tried.clear()
            column = self._column(k % self.X.shape[1])
            step = self.scores, column, self.signed(k, weight)
            self.tried[k, weight] = column, self.table[:, k] if alone else self.lists.values_after_step(*step)
        return self.tried[k, weight]

    def _column(self, k: int) -> AnyArray:
        """Return column k in the order of the lists."""
        if self.lists.has_kernel:
            return self.columns.column(k)
        return np.asarray(self.columns.keys.values[self.columns.rows([k])[0], : len(self.scores)])

    def bounds(self, steps: list[tuple[int, float]]) -> Floats:
        """Return what Σ importance · measure cannot exceed for scores + weight · candidate k, for each step."""
        if not self.lists.has_kernel:
            return np.full(len(steps), self.importance.sum())
        features, weights = [k % self.X.shape[1] for k, _ in steps], np.array([self.signed(*s) for s in steps])
        at_once = len(steps) if self.columns.has_room(features) else BOUNDS_AT_ONCE
        found = []
        for a in range(0, len(steps), at_once):
            rows, part = self.columns.rows(features[a : a + at_once]), weights[a : a + at_once]
            found.append(self.lists.bounds(self.score_keys, self.columns.keys, rows, part, self.importance))
        return np.concatenate(found)

    def signed(self, k: int, weight: float) -> float:
        """Return the weight of the feature itself: candidates from the number of features on are reversed."""
        return weight if k < self.X.shape[1] else -weight


class _Ensemble:
    """The ensemble so far, in pieces that stay where their documents are: only sums over queries leave a piece."""

    def __init__(
        self, measure: Measure, both: bool, data: QueryDataset, importance: Floats, executor: Executor | None
    ) -> None:
        values = int(PIECE_DOCS * max(1.0, data.row_values))
        weighed = data._with(query_weight=importance)
        self.pieces = weighed.keep(partial(_Piece.of, measure, both), executor=executor, values=values)
        self.step = 0, 0.0, True

    def performance(self) -> tuple[Floats, float]:
        """Return Σ_q P(q) E(q, k) of all candidates k, P ∝ importance · e^(−E(f)), and δ of the last step."""
        sums, total, least_gain = self.pieces.map_reduce(_performance, _add_performance)
        return np.asarray(sums / total), float(least_gain)

    def try_step(self, k: int, weight: float, *, alone: bool) -> float:
        """Return the mean of E(f) after one more step."""
        self.step = k, weight, alone
        return float(self.pieces.map_reduce(partial(_mean_after, *self.step)))

    def bounds(self, candidates: Ints, weights: list[float]) -> Floats:
        """Return what the mean of E(f) cannot exceed after one more step, for each of these."""
        steps = list(zip(candidates.tolist(), weights, strict=True))
        return ROUNDING * self.pieces.map_reduce(partial(_Piece.bounds, steps=steps))

    def take_step(self) -> None:
        """Add the step that was tried last to the ensemble."""
        self.pieces = self.pieces.keep(partial(_piece_after_step, *self.step))


def _performance(piece: _Piece) -> tuple[Floats, float, float]:
    from . import _adarank_kernels as kernels

    P = piece.importance * kernels.exp_of_minus(piece.values)
    return linear.adjoint(piece.table, P), _dot(P, np.ones(len(P))), piece.least_gain


def _add_performance(left: Any, right: Any) -> Any:
    return left[0] + right[0], left[1] + right[1], min(left[2], right[2])


def _mean_after(k: int, weight: float, alone: bool, piece: _Piece) -> float:
    return _dot(piece.importance, piece.try_step(k, weight, alone)[1])


def _piece_after_step(k: int, weight: float, alone: bool, piece: _Piece) -> _Piece:
    column, values = piece.try_step(k, weight, alone)
    scores = piece.scores + piece.signed(k, weight) * column.astype(np.float64, copy=False)
    gained = (values - piece.values - weight * piece.table[:, k])[piece.importance > 0]
    return replace(piece, scores=scores, values=values, least_gain=float(gained.min(initial=np.inf)), tried={})


def _dot(weights: Floats, values: Floats) -> float:
    """Return Σ weight · value, the same bits wherever it is computed."""
    return float(linear.adjoint(np.ascontiguousarray(values)[:, None], weights)[0])


def replay(measure: Measure, data: QueryDataset, rounds: Rounds, importance: Floats) -> Rounds:
    """Return the rounds with φ, δ and the mean measure of each as they come out on `data`."""
    scores, current, zeros = np.zeros(data.n_docs), np.zeros(data.n_queries), np.zeros(data.n_docs)
    lists, P = Lists(measure, data, importance > 0), importance
    found: dict[str, list[float]] = {"measure": [], "phi": [], "delta": []}
    for k, weight in zip(rounds.candidates, rounds.weights, strict=True):
        column = candidate_column(data.X, int(k))
        feature_values = lists.values_after_step(zeros, column[lists.order], 1.0)
        scores = scores + weight * column
        values = lists.values_after_step(zeros, scores[lists.order], 1.0)
        found["phi"].append(float(P @ feature_values))
        found["delta"].append(float((values - current - weight * feature_values)[importance > 0].min()))
        found["measure"].append(float(importance @ values))
        current = values
        P = importance * np.exp(-current)
        P = P / P.sum()
    return Rounds(rounds.candidates, rounds.weights, {name: np.array(values) for name, values in found.items()})


def step_size(phi: float) -> float:
    """α = ½ ln((1 + φ)/(1 − φ)), held finite for a perfect weak ranker and at 0 or above for a useless one."""
    return float(0.5 * np.log((1.0 + phi) / max(1.0 - phi, 1e-12)))


def candidate_column(X: Matrix, k: int) -> Floats:
    """Column k of X as float64; candidates from the number of features on are the columns reversed."""
    d = X.shape[1]
    if isinstance(X, RemoteMatrix):
        return X.collect(partial(_column_of_part, k))
    column = X[:, [k % d]].toarray().ravel() if is_sparse(X) else X[:, k % d]
    return np.asarray(column, dtype=np.float64) * (1.0 if k < d else -1.0)


def _column_of_part(k: int, X: Matrix, ptr: Ints) -> Floats:
    return candidate_column(X, k)
