"""AdaRank: features as weak rankers, weighed by how well they rank the queries that the ensemble ranks badly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import Floats, Ints, Matrix
from ..data import linear
from ..data.blocks import BlockResults, block_boundaries
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..data.validation import is_sparse
from ..errors import WorkersLost
from ..measures.base import Measure
from ..surrogates.direct import in_training
from .boosting import Rounds
from .deadline import out_of_time

AdaRankRule = Literal["paper", "improve"]
Watch: TypeAlias = Callable[[int, int, float], bool]
"""Called after each round with its number, the candidate and its weight; True stops."""

SMALLEST_STEP_SHARE = 1 / 64
"""The rule "improve" ends when it would halve its steps below this share of their full size."""

ALMOST_ONE = 1.0 - 1e-12
"""A measure at or above this is 1, apart from rounding; two measures with a ratio between this and 1 are equal."""

TABLE_VALUES = 1 << 16
"""How many feature values are read at a time for the measure table."""

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
    measure = in_training(measure)
    starts = block_boundaries(data.ptr, max(1, TABLE_VALUES // data.n_features))
    return np.concatenate([_rows_of_table(measure, data[a:b], both) for a, b in pairwise(starts)])


def _rows_of_table(measure: Measure, block: QueryDataset, both: bool) -> Floats:
    """Measure many columns at once: the lists of the block by the first column, then by the second, and so on."""
    at_once, found = max(1, 2 * TABLE_VALUES // block.n_docs), []
    for sign in (1.0, -1.0) if both else (1.0,):
        for k in range(0, block.n_features, at_once):
            columns = sign * dense(block.X[:, k : k + at_once]).T.astype(np.float64)
            y, lengths = np.tile(block.y, len(columns)), np.tile(block.lengths, len(columns))
            values = _measured(measure, columns.ravel(), y, np.concatenate(([0], np.cumsum(lengths))))
            found.append(values.reshape(len(columns), -1).T)
    return np.concatenate(found, axis=1)


def _measured(measure: Measure, f: Floats, y: Floats, ptr: Ints) -> Floats:
    """Return E(q, f) of every query; a query that the measure leaves out counts as 0."""
    return np.nan_to_num(measure.per_query(f, y, ptr))


@dataclass(frozen=True)
class AdaRankRounds:
    """Fig. 6: h_t = argmax_k Σ_q P_t(q) E(q, k), α_t = ½ ln(Σ P(1+E)/Σ P(1−E)), P_{t+1} ∝ exp(−E(f_t)).

    `rule="paper"` is the figure. `rule="improve"` takes the best candidate that raises the mean of E(f) by more than
    rounding. One that does not is set aside until another has been taken; when none is left, all steps are halved from
    then on, and the run ends when no candidate helps even with the smallest step (1/64). A round costs one evaluation
    of f for each candidate that it tries. `both` offers every feature reversed too.
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
        """AdaRank (Fig. 6), with the `importance` of the queries, which sums to 1, as P_1.

        For t = 1, …, T:
            choose the weak ranker h_t with the largest φ(t) = Σ_q P_t(q) E(q, h_t)
            α_t = ½ ln(Σ_q P_t(q) (1 + E(q, h_t)) / Σ_q P_t(q) (1 − E(q, h_t)))
            f_t = f_{t−1} + α_t h_t
            P_{t+1}(q) = P_1(q) e^{−E(q, f_t)} / Σ_q P_1(q) e^{−E(q, f_t)}

        The rounds `before` are played first, as they are.
        """
        played = [] if before is None else list(zip(before.candidates.tolist(), before.weights.tolist(), strict=True))
        h: list[int] = []
        alpha: list[float] = []
        trace: dict[str, list[float]] = {"measure": [], "phi": [], "delta": []}
        f = _Ensemble.without_features(in_training(self.measure), self.both, data, importance, executor)
        step_share = 1.0
        try:
            set_aside = np.zeros(len(f.phi), dtype=bool)
            while len(h) < len(played) + self.rounds:
                replayed = len(h) < len(played)
                if replayed:
                    k, step = played[len(h)]
                else:
                    k = _first_of_the_best(np.where(set_aside, -np.inf, f.phi))
                    step = step_share * step_size(float(f.phi[k]))
                after = f.plus(k, step, alone=set(h) <= {k})
                better = after.mean * ALMOST_ONE > f.mean
                if self.rule == "improve" and not replayed and not better:
                    set_aside[k] = True
                    if set_aside.all():
                        set_aside[:] = False
                        step_share /= 2
                    if step_share < SMALLEST_STEP_SHARE or out_of_time():
                        break
                    continue
                h.append(k)
                alpha.append(step)
                trace["phi"].append(float(f.phi[k]))
                f = after
                trace["measure"].append(f.mean)
                trace["delta"].append(f.delta)
                set_aside[:] = False
                stop = self.watch is not None and self.watch(len(h), k, step)
                if not replayed and (stop or out_of_time() or max(f.mean, trace["phi"][-1]) >= ALMOST_ONE):
                    break
        except WorkersLost as error:
            error.coef = feature_weights(np.array(h, dtype=np.int64), np.array(alpha), data.n_features)
            raise
        found = {name: np.array(values) for name, values in trace.items()}
        return Rounds(np.array(h, dtype=np.int64), np.array(alpha), found)


def _first_of_the_best(phi: Floats) -> int:
    """Return the first of the candidates with the largest φ; rounding does not decide between them."""
    return int(np.argmax(phi >= phi.max() * ALMOST_ONE))


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
    """Some queries, how well each feature ranks them, and the ensemble so far."""

    measure: Measure
    queries: QueryDataset
    """Weighed by their importance."""
    table: Floats
    f: Floats
    E: Floats
    """E(q, f) of each query."""
    delta: float
    """The smallest E(q, f_t) − E(q, f_{t−1}) − α_t E(q, h_t) in the last round."""

    @classmethod
    def of(cls, measure: Measure, both: bool, queries: QueryDataset) -> _Piece:
        table = measure_table(measure, queries, both=both)
        return cls(measure, queries, table, np.zeros(queries.n_docs), np.zeros(queries.n_queries), np.inf)

    @property
    def importance(self) -> Floats:
        assert self.queries.query_weight is not None
        return self.queries.query_weight

    def plus(self, k: int, alpha: float, alone: bool) -> _Piece:
        """Return the piece with f + α · candidate k; `alone` in f, it ranks as the table says."""
        f = self.f + alpha * candidate_column(self.queries.X, k)
        E = self.table[:, k] if alone else _measured(self.measure, f, self.queries.y, self.queries.ptr)
        change = (E - self.E - alpha * self.table[:, k])[self.importance > 0]
        return replace(self, f=f, E=E, delta=float(change.min(initial=np.inf)))

    def mean(self) -> float:
        """Return Σ_q importance · E(q, f)."""
        return float((self.importance * self.E).sum())

    def weighted(self) -> tuple[Floats, float, float]:
        """Return Σ_q p(q) E(q, k) of each candidate k and Σ_q p(q), p = importance · e^{−E(f)}, and δ."""
        p = self.importance * np.exp(-self.E)
        return linear.adjoint(self.table, p), float(p.sum()), self.delta


@dataclass(frozen=True, eq=False)
class _Ensemble:
    """f = Σ_t α_t h_t, in pieces that stay where their documents are: only sums over queries leave a piece."""

    pieces: BlockResults[_Piece]
    empty: bool

    @classmethod
    def without_features(
        cls, measure: Measure, both: bool, data: QueryDataset, importance: Floats, executor: Executor | None
    ) -> _Ensemble:
        values = int(PIECE_DOCS * max(1.0, data.row_values))
        weighed = data._with(query_weight=importance)
        return cls(weighed.keep(partial(_Piece.of, measure, both), executor=executor, values=values), True)

    def plus(self, k: int, alpha: float, *, alone: bool) -> _Ensemble:
        """Return f + α · candidate k; `alone` says that f has no other candidate."""
        return _Ensemble(self.pieces.keep(partial(_Piece.plus, k=k, alpha=alpha, alone=alone)), False)

    @cached_property
    def mean(self) -> float:
        """The mean of E(f) over the queries by their importance."""
        return -np.inf if self.empty else self.pieces.map_reduce(_Piece.mean)

    @property
    def phi(self) -> Floats:
        """Σ_q P(q) E(q, k) of each candidate k, P ∝ importance · e^{−E(f)}."""
        return self._weighted[0]

    @property
    def delta(self) -> float:
        """The smallest E(q, f_t) − E(q, f_{t−1}) − α_t E(q, h_t) of any query in the last round."""
        return self._weighted[1]

    @cached_property
    def _weighted(self) -> tuple[Floats, float]:
        sums, total, delta = self.pieces.map_reduce(_Piece.weighted, _add_weighted)
        return sums / total, delta


def _add_weighted(left: Any, right: Any) -> Any:
    return left[0] + right[0], left[1] + right[1], min(left[2], right[2])


def replay(measure: Measure, data: QueryDataset, rounds: Rounds, importance: Floats) -> Rounds:
    """Return the rounds with φ, δ and the mean measure of each as they come out on `data`."""
    measure, P = in_training(measure), importance
    f, E = np.zeros(data.n_docs), np.zeros(data.n_queries)
    found: dict[str, list[float]] = {"measure": [], "phi": [], "delta": []}
    for k, alpha in zip(rounds.candidates, rounds.weights, strict=True):
        h = candidate_column(data.X, int(k))
        alone, before = _measured(measure, h, data.y, data.ptr), E
        f = f + alpha * h
        E = _measured(measure, f, data.y, data.ptr)
        found["phi"].append(float(P @ alone))
        found["delta"].append(float((E - before - alpha * alone)[importance > 0].min()))
        found["measure"].append(float(importance @ E))
        P = importance * np.exp(-E)
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
