"""PermuRank's outer loop: the most violated rankings join the working sets, and cutting planes fit to these."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import AnyArray, Floats
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.validation import check_count, check_positive
from ..measures.base import Measure
from ..objective import Objective
from ..penalties import L2
from ..surrogates.direct import ALL_ALIKE, WorkingSetHinge, parse_bounded, places_told_apart
from .base import STOPPED, Solution, Watch
from .bundle import Bundle
from .deadline import OUT_OF_TIME, out_of_time

TIGHT_TOL = 1e-7
"""The tolerance to which a round is solved before "no set changes" is said."""


@dataclass(frozen=True)
class WorkingSets:
    """Fig. 7: F_t = argmin L(B_1, C_1, …), then B_q ∪= argmin over perfect π of F_t, C_q ∪= argmax over the others.

    L = (alpha/2)‖w‖² + mean_q 1/|B_q| Σ_{B×C} (E(π*) − E(π)) [1 − (F(π*) − F(π))]₊. Each ranking is kept as one vector
    Φ, so the sets never hold pairs. `graded` sums Φ over the pairs of different level alone (the other definition in
    Sec. 3: relevant × irrelevant for MAP), else over all pairs (Eq. 2). Stops when no set changes, or after `rounds`.
    """

    measure: Measure
    alpha: float
    rounds: int
    graded: bool = True
    inner: Bundle = field(default_factory=Bundle)
    watch: Watch | None = None

    def __post_init__(self) -> None:
        parse_bounded(self.measure)
        check_positive(alpha=self.alpha)
        check_count(rounds=self.rounds)

    def run(self, data: QueryDataset, w0: Floats | None = None) -> Solution:
        """Learn from `data`; the first rankings are the most violated ones at w0 (zero where None)."""
        w = np.zeros(data.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        sets = _Sets(data, self.measure, self.graded)
        sets.add(w)
        if not sets.size:
            return Solution(np.zeros_like(w), 0.0, 0.0, 0.0, 0, True, ALL_ALIKE)
        values: list[float] = []
        perfect: list[float] = []
        imperfect: list[float] = []
        largest: list[float] = []
        converged, message = False, f"the working sets still changed after {self.rounds} rounds"
        for t in range(1, self.rounds + 1):
            objective = sets.objective(self.alpha)
            n_perfect, n_imperfect = sets.sizes()
            solution = self.inner.minimize(objective, w)
            changed = sets.add(solution.w)
            if not changed:  # nearer to the minimum they may change
                solution = replace(self.inner, tol=min(TIGHT_TOL, self.inner.tol)).minimize(objective, solution.w)
                changed = sets.add(solution.w)
            w = solution.w
            values.append(solution.value)
            perfect.append(float(n_perfect.mean()))
            imperfect.append(float(n_imperfect.mean()))
            largest.append(float((n_perfect + n_imperfect).max()))
            if self.watch is not None and self.watch(t, w, solution.value):
                message = STOPPED
                break
            if not changed:
                converged, message = solution.converged, solution.message
                break
            if out_of_time():
                message = OUT_OF_TIME
                break
        return Solution(
            w=w,
            value=solution.value,
            grad_norm=solution.grad_norm,
            gap=solution.gap,
            n_iter=len(values),
            converged=converged,
            message=message,
            trace={
                "value": np.array(values),
                "perfect": np.array(perfect),
                "imperfect": np.array(imperfect),
                "largest": np.array(largest),
            },
        )


class _Sets:
    """The working sets of all queries: Φ and E of each ranking, and a key that tells whether it is already there."""

    def __init__(self, data: QueryDataset, measure: Measure, graded: bool) -> None:
        self.data, self.measure, self.graded = data, measure, graded
        self.blocks, binary = places_told_apart(measure, data.n_docs)
        self.level = np.where(data.y > getattr(measure, "above", 0.0), 1.0, 0.0) if binary else data.y
        self.phi: list[list[Floats]] = [[] for _ in range(data.n_queries)]
        self.value: list[list[float]] = [[] for _ in range(data.n_queries)]
        self.keys: list[set[bytes]] = [set() for _ in range(data.n_queries)]
        self.size = 0
        # Sums run over rows in an order by random scores, so that no bit depends on the caller's order.
        random_scores = linear.scores(data.X, np.random.default_rng(0).normal(size=data.n_features))
        self.order = np.lexsort((random_scores, self.level, np.repeat(np.arange(data.n_queries), data.lengths)))

    def add(self, w: Floats) -> bool:
        """Add the most violated rankings under w; say whether any of them is new."""
        from ..surrogates import _working_set_kernels as kernels

        data = self.data
        scores = linear.scores(data.X, w)
        perfect, imperfect = np.empty(data.n_docs, dtype=np.int64), np.empty(data.n_docs, dtype=np.int64)
        has_imperfect = np.empty(data.n_queries, dtype=np.bool_)
        kernels.most_violated(scores, self.level, data.ptr, self.blocks, perfect, imperfect, has_imperfect)
        E_perfect = self.measure.per_query(-perfect.astype(np.float64), data.y, data.ptr)
        E_imperfect = self.measure.per_query(-imperfect.astype(np.float64), data.y, data.ptr)
        lost = E_perfect - E_imperfect
        c_perfect, c_imperfect = np.empty(data.n_docs), np.empty(data.n_docs)
        kernels.ranking_coefficients(scores, perfect, self.level, data.ptr, self.graded, c_perfect)
        kernels.ranking_coefficients(scores, imperfect, self.level, data.ptr, self.graded, c_imperfect)
        changed = False
        for q in np.flatnonzero(has_imperfect & data.informative & (lost > 0)):
            changed |= self._add_ranking(int(q), c_perfect, 1.0)
            changed |= self._add_ranking(int(q), c_imperfect, 1.0 - float(lost[q]))
        return changed

    def _add_ranking(self, q: int, coefficients: Floats, value: float) -> bool:
        a, b = self.data.ptr[q], self.data.ptr[q + 1]
        list_coefficients = coefficients[a:b]
        key = list_coefficients.tobytes()
        if key in self.keys[q]:
            return False
        self.keys[q].add(key)
        rows = self.order[a:b]
        self.phi[q].append(linear.adjoint(self.data.X[rows], coefficients[rows]))
        self.value[q].append(value)
        self.size += 1
        return True

    def sizes(self) -> tuple[AnyArray, AnyArray]:
        """Return |B_q| and |C_q| of the queries that take part."""
        n_perfect = np.array([sum(v == 1.0 for v in values) for values in self.value if values])
        n_imperfect = np.array([sum(v != 1.0 for v in values) for values in self.value if values])
        return n_perfect, n_imperfect

    def objective(self, alpha: float) -> Objective:
        """Return the loss on the sets, with rankings in the place of documents."""
        used = [q for q, rows in enumerate(self.phi) if rows]
        lengths = [len(self.phi[q]) for q in used]
        weight = None if self.data.query_weight is None else self.data.query_weight[used]
        rankings = QueryDataset(
            X=np.array([row for q in used for row in self.phi[q]]),
            y=np.array([v for q in used for v in self.value[q]]),
            ptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            query_ids=np.array(used),
            query_weight=weight,
        )
        return Objective(rankings, WorkingSetHinge(), L2(alpha))
