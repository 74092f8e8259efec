"""AdaRank: features as weak rankers, weighed by how well they rank the queries that the ensemble ranks badly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..data.validation import is_sparse
from ..errors import WorkersLost
from ..measures import AP, NDCG
from ..measures.base import Measure
from ..measures.plan import discount_table
from ..measures.presets import Gain, Norm, Short
from ..surrogates.direct import in_training
from .boosting import Rounds, columns_of
from .deadline import out_of_time

Rule = Literal["paper", "improve"]
Watch: TypeAlias = Callable[[int, int, float], bool]
"""Called after each round with its number, the candidate and its weight; True stops."""

SMALLEST_SHARE = 1 / 64
"""How far the rule "improve" halves its steps before it gives up."""

PERFECT = 1.0 - 1e-12
"""From here on a measure is 1 but for rounding."""

TABLE_VALUES = 1 << 19
"""Feature values in a block of the measure table."""

KEPT = 0.4
"""Share of the columns whose copies are kept."""

PIECE_DOCS = 1 << 16
"""Documents whose scores are kept together: enough that handing them to a thread costs little beside the work."""


def measure_table(measure: Measure, data: QueryDataset, *, both: bool = False) -> Floats:
    """E(q, k): the measure of every query ranked by feature k alone; with `both`, the reversed features follow.

    Documents that score alike count as expected over their orders, see `in_training`.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]], [1, 0])
    >>> measure_table(tr.measure("map"), data).tolist()
    [[1.0, 0.5, 0.75]]
    """
    return np.concatenate(data.map_reduce(partial(_table_rows, measure, both), values=TABLE_VALUES))


def _table_rows(measure: Measure, both: bool, block: QueryDataset) -> list[Floats]:
    lists = _Lists(measure, block, np.ones(block.n_queries, dtype=bool))
    d, scores, signs = block.n_features, np.zeros(block.n_docs), (1.0, -1.0) if both else (1.0,)
    X = block.X[lists.order]
    if not block.is_sparse:
        features = np.ascontiguousarray(X.T), np.tile(np.arange(d), len(signs)), np.repeat(signs, d)
        return [lists.after(scores, *features)]
    column, first = columns_of(X), np.zeros(len(signs), dtype=np.int64)
    parts = [lists.after(scores, column(k)[None, :], first, np.array(signs)) for k in range(d)]
    return [np.stack(parts, axis=2).reshape(block.n_queries, -1)]


@dataclass(frozen=True)
class AdaRankRounds:
    """Fig. 6: h_t = argmax_k Σ_q P_t(q) E(q, k), α_t = ½ ln(Σ P(1+E)/Σ P(1−E)), P_{t+1} ∝ exp(−E(f_t)).

    `rule="paper"` is the figure. `rule="improve"` takes the best candidate whose addition raises the mean of E(f): one
    that does not is set aside until another has been taken; when none is left, all steps are halved from then on, and
    the run ends when even the smallest step (1/64) of none helps. A round then costs as many evaluations as it tries.
    `both` offers every feature reversed too.
    """

    measure: Measure
    rounds: int
    rule: Rule
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
        mean, share = -np.inf, 1.0
        played = [] if before is None else list(zip(before.candidates.tolist(), before.weights.tolist(), strict=True))
        try:
            performance, _ = ensemble.performance()
            aside = np.zeros(len(performance), dtype=bool)
            while len(chosen) < len(played) + self.rounds:
                given = len(chosen) < len(played)
                if aside.all():
                    aside[:] = False
                    share /= 2
                    if share < SMALLEST_SHARE:
                        break
                k = int(np.argmax(np.where(aside, -np.inf, performance)))
                weight = share * step_size(float(performance[k]))
                if given:
                    k, weight = played[len(chosen)]
                reaches = ensemble.try_step(k, weight, alone=all(other == k for other in chosen))
                if self.rule == "improve" and not given and not reaches > mean:
                    aside[k] = True
                    if out_of_time():
                        break
                    continue
                ensemble.take_step()
                mean = reaches
                aside[:] = False
                chosen.append(k)
                weights.append(weight)
                phis.append(float(performance[k]))
                reached.append(mean)
                performance, delta = ensemble.performance()
                deltas.append(delta)
                stop = self.watch is not None and self.watch(len(chosen), k, weight)
                if not given and (stop or out_of_time() or mean >= PERFECT or phis[-1] >= PERFECT):
                    break
        except WorkersLost as error:
            error.coef = summed(np.array(chosen, dtype=np.int64), np.array(weights), data.n_features)
            raise
        trace = {"measure": np.array(reached), "phi": np.array(phis), "delta": np.array(deltas)}
        return Rounds(np.array(chosen, dtype=np.int64), np.array(weights), trace)


def summed(candidates: Ints, weights: Floats, width: int) -> Floats:
    """Return Σ_t α_t h_t as weights of `width` features; a reversed feature counts against.

    >>> summed(np.array([0, 3]), np.array([1.0, 0.5]), 2).tolist()
    [1.0, -0.5]
    """
    coef = np.zeros(2 * width)
    np.add.at(coef, candidates, weights)
    return coef[:width] - coef[width:]


class _Lists:
    """A run of queries, prepared for many evaluations; only those that count are looked at, the others are 0."""

    def __init__(self, measure: Measure, data: QueryDataset, counts: AnyArray) -> None:
        self.measure, self.y, self.ptr, self.counts = in_training(measure), data.y, data.ptr, counts
        self.order = np.arange(data.n_docs)
        """Documents list by list, the relevant ones first where their places are counted: what `after` wants."""
        tied = self.measure.per_query(np.zeros(data.n_docs), data.y, data.ptr)  # refuses grades it cannot take
        self._otherwise = np.where(counts, np.nan_to_num(tied), 0.0)
        """The value of a query with nothing to find, in whatever order."""
        target, lengths = self.measure, data.lengths
        self._counted = isinstance(target, (AP, NDCG))
        if not isinstance(target, (AP, NDCG)):
            return
        longest, query = int(lengths.max(initial=1)), np.repeat(np.arange(data.n_queries), lengths)
        cut, places = int(target.k or longest), np.arange(1, longest + 1)
        if isinstance(target, AP):
            gains, discounts = (data.y > target.above).astype(np.float64), np.ones(longest)
        else:
            gains = data.y if target.gain == Gain.LINEAR else 2.0**data.y - 1.0
            discounts = discount_table(longest)[target.discount][:longest].copy()
        discounts[cut:] = 0.0
        best = np.lexsort((-gains, query))
        reach = discounts[np.arange(data.n_docs) - data.ptr[query]]
        if isinstance(target, AP) and target.norm == Norm.ALL:
            reach = np.ones(data.n_docs)
        ideal = np.bincount(query, gains[best] * reach, minlength=data.n_queries)
        if isinstance(target, NDCG) and target.short == Short.ZERO:
            ideal[lengths < cut] = 0.0
        self.order = np.lexsort((gains == 0, query))
        relevant = np.bincount(query, gains != 0, minlength=data.n_queries).astype(np.int64)
        sums = np.concatenate(([0.0], np.cumsum(discounts / places if isinstance(target, AP) else discounts)))
        self._precision = isinstance(target, AP)
        self._fixed = (counts, np.array(data.ptr), relevant, gains[self.order], ideal, cut, discounts, sums)

    def after(self, scores: Floats, columns: AnyArray, which: Ints, weights: Floats) -> Floats:
        """Return the measure of each query for scores + weights · columns[which]."""
        from . import _adarank_kernels as kernels

        values = np.repeat(self._otherwise[:, None], len(which), axis=1)
        if self._counted:
            kernels.step_values(self._precision, scores, columns, which, weights, *self._fixed, values)
            return values
        for s, (k, weight) in enumerate(zip(which, weights, strict=True)):
            found = self.measure.per_query(scores + weight * columns[k].astype(np.float64), self.y, self.ptr)
            values[:, s] = np.where(self.counts, np.nan_to_num(found), 0.0)
        return values


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some queries, how well each feature and the scores so far rank them, and copies of the columns used last."""

    lists: _Lists
    X: Matrix
    importance: Floats
    table: Floats
    scores: Floats
    values: Floats
    least: float
    """The least that a query gained by the last step beyond its weight · E(q, k)."""
    columns: dict[int, AnyArray]
    tried: dict[tuple[int, float], Floats]
    """The step that was tried last, and what it made of the queries."""

    @classmethod
    def of(cls, measure: Measure, both: bool, block: QueryDataset) -> _Piece:
        assert block.query_weight is not None
        lists, table = _Lists(measure, block, block.query_weight > 0), measure_table(measure, block, both=both)
        nothing = np.zeros(block.n_docs), np.zeros(block.n_queries)
        return cls(lists, block.X, block.query_weight, table, *nothing, np.inf, {}, {})

    def column(self, k: int) -> AnyArray:
        """Return column k in the order of the lists."""
        if k not in self.columns:
            if len(self.columns) + 1 > max(1.0, KEPT * self.X.shape[1]):
                del self.columns[next(iter(self.columns))]
            whole = candidate_column(self.X, k) if is_sparse(self.X) else self.X[:, k]
            self.columns[k] = whole[None, self.lists.order]
        self.columns[k] = self.columns.pop(k)  # the one used last goes last
        return self.columns[k]

    def after(self, k: int, weight: float, alone: bool) -> Floats:
        """Return the measure of each query for scores + weight · candidate k.

        As long as one feature is `alone` in the ensemble, f ranks as that feature does, and the table knows how well.
        """
        if (k, weight) not in self.tried:
            self.tried.clear()
            self.tried[k, weight] = self.table[:, k] if alone else self._computed(k, weight)
        return self.tried[k, weight]

    def _computed(self, k: int, weight: float) -> Floats:
        column, signed = self.column(k % self.X.shape[1]), self.signed(k, weight)
        return self.lists.after(self.scores, column, np.zeros(1, dtype=np.int64), np.array([signed]))[:, 0]

    def signed(self, k: int, weight: float) -> float:
        """Return the weight of the feature itself: candidates from the number of features on are reversed."""
        return weight if k < self.X.shape[1] else -weight


class _Ensemble:
    """The ensemble so far, where the documents are: sums over queries travel, and nothing that has one value each."""

    def __init__(
        self, measure: Measure, both: bool, data: QueryDataset, importance: Floats, executor: Executor | None
    ) -> None:
        values = int(PIECE_DOCS * max(1.0, data.row_values))
        weighed = data._with(query_weight=importance)
        self.pieces = weighed.keep(partial(_Piece.of, measure, both), executor=executor, values=values)
        self.step = 0, 0.0, True

    def performance(self) -> tuple[Floats, float]:
        """Return Σ_q P(q) E(q, k) of all candidates k, P ∝ importance · e^(−E(f)), and δ of the last step."""
        sums, total, least = self.pieces.map_reduce(_performance, _sums_and_least)
        return np.asarray(sums / total), float(least)

    def try_step(self, k: int, weight: float, *, alone: bool) -> float:
        """Return the mean of E(f) after one more step."""
        self.step = k, weight, alone
        return float(self.pieces.map_reduce(partial(_mean_after, *self.step)))

    def take_step(self) -> None:
        """Go on from what was tried last."""
        self.pieces = self.pieces.keep(partial(_stepped, *self.step))


def _performance(piece: _Piece) -> tuple[Floats, float, float]:
    from . import _adarank_kernels as kernels

    P = piece.importance * kernels.e_to_minus(piece.values)
    return linear.adjoint(piece.table, P), _dot(P, np.ones(len(P))), piece.least


def _sums_and_least(left: Any, right: Any) -> Any:
    return left[0] + right[0], left[1] + right[1], min(left[2], right[2])


def _mean_after(k: int, weight: float, alone: bool, piece: _Piece) -> float:
    return _dot(piece.importance, piece.after(k, weight, alone))


def _stepped(k: int, weight: float, alone: bool, piece: _Piece) -> _Piece:
    column = piece.column(k % piece.X.shape[1])[0].astype(np.float64, copy=False)
    scores, values = piece.scores + piece.signed(k, weight) * column, piece.after(k, weight, alone)
    gained = (values - piece.values - weight * piece.table[:, k])[piece.importance > 0]
    return replace(piece, scores=scores, values=values, least=float(gained.min(initial=np.inf)), tried={})


def _dot(weights: Floats, values: Floats) -> float:
    """Return Σ weight · value, the same bits wherever it is computed."""
    return float(linear.adjoint(np.ascontiguousarray(values)[:, None], weights)[0])


def replay(measure: Measure, data: QueryDataset, rounds: Rounds, importance: Floats) -> Rounds:
    """Return the rounds with φ, δ and the mean measure of each as they come out on `data`."""
    scores, current = np.zeros(data.n_docs), np.zeros(data.n_queries)
    lists, P = _Lists(measure, data, importance > 0), importance
    found: dict[str, list[float]] = {"measure": [], "phi": [], "delta": []}
    for k, weight in zip(rounds.candidates, rounds.weights, strict=True):
        column = candidate_column(data.X, int(k))
        alone = _of(lists, column)
        scores = scores + weight * column
        values = _of(lists, scores)
        found["phi"].append(float(P @ alone))
        found["delta"].append(float((values - current - weight * alone)[importance > 0].min()))
        found["measure"].append(float(importance @ values))
        current = values
        P = importance * np.exp(-current)
        P = P / P.sum()
    return Rounds(rounds.candidates, rounds.weights, {name: np.array(values) for name, values in found.items()})


def _of(lists: _Lists, scores: Floats) -> Floats:
    """Return the measure of each query for scores in the order of the rows."""
    return lists.after(np.zeros(len(scores)), scores[None, lists.order], np.zeros(1, np.int64), np.ones(1))[:, 0]


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
