"""Rankers that minimise a type-two bound: SVMmap and PermuRank."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import field, replace
from typing import ClassVar, Literal

import numpy as np

from .._progress import track
from .._typing import Floats
from ..certificates import learned
from ..certificates.base import Assumption, Certificate
from ..data.dataset import QueryDataset
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import LinearFunction
from ..objective import Objective
from ..penalties import L2
from ..solvers.base import Solution
from ..solvers.bundle import Bundle
from ..solvers.working_set import WorkingSets
from ..surrogates.direct import ALL_ALIKE, StructuralHinge, in_training, is_informative, parse_bounded
from .base import Ranker, parameters
from .boosting import AdaRank, query_importance
from .composing import choose_C, minimise_by_C, values_of_C
from .watching import BestOnValidation, mean_on


@parameters
class SVMMap(Ranker):
    """A support vector machine that maximises average precision (or NDCG) of whole rankings.

    min_w ½‖w‖² + (C/m) Σ_q max_π [(E(π*) − E(π)) − (F(π*) − F(π))]: a structural SVM for average precision (Eq. 10).

    `measure` is MAP, or NDCG (with or without a cut-off, 0/1 gains); documents from grade `threshold` on are relevant
    (None: as the measure says). Solved by cutting planes, at most `max_iter`, to a gap that `solution_` reports;
    alpha = 1/C. C may be a list: the path is solved with warm starts and the value with the best `measure` on the
    validation set is kept as `C_`.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.SVMMap(C=10).fit_queries(data)
    >>> ranker.solution_.converged
    True
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("C_",)

    measure: str | Measure = field(default="map", kw_only=False)
    C: float | Sequence[float] = 10.0
    threshold: float | None = None
    tol: float = 1e-4
    max_iter: int = 2000
    warm_start: bool = False
    C_: float = field(init=False)

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        loss = StructuralHinge(self.measure, self.threshold)
        objective = Objective(data, loss, executor=executor)
        self.C_ = minimise_by_C(self, self.C, objective, Bundle(tol=self.tol, max_iter=self.max_iter), valid)
        if not is_informative(parse_measure("map"), replace(data, y=loss.relevant(data.y).astype(np.float64))):
            self.solution_ = replace(self.solution_, message=ALL_ALIKE)

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        objective = Objective(data, StructuralHinge(self.measure, self.threshold), L2(1 / self.C_))
        solved = learned.optimality(objective, self.coef_, here, self.tol, self.max_iter)
        return [*learned.ranking_bounds(self.measure, self.threshold, self.coef_, data), solved]


@parameters
class PermuRank(Ranker):
    """A support vector machine over whole rankings; the most violated ones join in every round.

    min_w ½‖w‖² + (C/m) Σ_q 1/|B_q| Σ_{B_q × C_q} (E(π*) − E(π)) [1 − (F(π*) − F(π))]₊, the sets growing (Fig. 7).

    Each round fits to the working sets of perfect (B) and imperfect (C) rankings by cutting planes, then
    adds the most violated ranking of each kind, found exactly for each of the library's measures in [0, 1]; `trace_`
    has the sizes of the sets. `pairs` says which pairs of documents make up F: those of different grade (relevant ×
    irrelevant for MAP), or all (Eq. 2), where perfect rankings with the documents of a grade reversed count as violated
    too. `start="adarank"` begins at an AdaRank model: the type-one bound first, then the type-two bound, as the paper
    proposes at its end. Weights jump from round to round until the sets hold enough, so `average` takes their mean over
    the rounds; without it the last round counts, or with a validation set the best. A validation set also chooses C
    where it is a list. `warm_start` begins at the weights so far. The defaults were chosen on validation parts of LETOR
    alone (`python -m benchmarks.designs`).

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=30, random_state=0)
    >>> ranker = tr.PermuRank(rounds=5).fit_queries(data)
    >>> bool((np.diff(ranker.trace_["imperfect"]) >= 0).all())  # the sets only grow
    True
    """

    needs_all_rows = True

    state_attributes: ClassVar[tuple[str, ...]] = ("C_",)

    measure: str | Measure = field(default="map", kw_only=False)
    rounds: int = 50
    C: float | Sequence[float] = 10.0
    pairs: Literal["graded", "all"] = "graded"
    start: Literal["zero", "adarank"] = "zero"
    average: bool = True
    tol: float = 1e-2
    max_iter: int = 2000
    warm_start: bool = False
    verbose: bool = False
    C_: float = field(init=False)

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        measure = parse_bounded(self.measure)
        query_importance(data)  # refuses data from which nothing can be learned
        w0 = self._start()
        if w0 is None and self.start == "adarank":
            w0 = AdaRank(measure).fit_queries(data, valid, executor).coef_
        values = values_of_C(self.C, valid)
        watched: list[_RoundValues] = []

        def solve(path: list[float]) -> list[Solution]:
            solutions = []
            for C in track(path, "PermuRank", show=bool(self.verbose)):
                watched.append(_RoundValues(measure, data, valid))
                inner = Bundle(tol=self.tol, max_iter=self.max_iter)
                sets = WorkingSets(measure, 1 / C, self.rounds, self.pairs == "graded", inner, watched[-1])
                solutions.append(watched[-1].kept(sets.run(data, w0), bool(self.average)))
            return solutions

        self.C_, self.solution_, reached = choose_C(values, solve, measure, valid)
        seen = watched[values.index(self.C_)]
        self.function_ = LinearFunction(self.solution_.w)
        self.n_iter_ = self.solution_.n_iter
        self.trace_ = {**self.solution_.trace, "C": np.array(values), "valid": np.array(reached), **seen.trace()}

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        graded = self.pairs == "graded"
        return learned.ranking_bounds(self.measure, None, self.coef_, data, minimised=False, graded=graded)


class _RoundValues:
    """Measures every round on the training part and, where there is one, the validation part."""

    def __init__(self, measure: Measure, data: QueryDataset, valid: QueryDataset | None) -> None:
        self.measure, self.data = in_training(measure), data
        self.watch = BestOnValidation[Floats](self.measure, valid)
        self.train_curve: list[float] = []
        self.total = np.zeros(data.n_features)

    def __call__(self, t: int, w: Floats, value: float) -> bool:
        model = LinearFunction(w)
        self.total += w
        self.train_curve.append(mean_on(self.measure, model.scores(self.data.X), self.data))
        return self.watch.look(model, lambda: w)

    def kept(self, solution: Solution, average: bool) -> Solution:
        """Return the solution with the weights that count."""
        rounds, best = len(self.train_curve), self.watch.best
        if average and rounds > 1:
            message = f"mean of {rounds} rounds: {solution.message or 'the last changed no set'}"
            solution = replace(solution, w=self.total / rounds, message=message)
            return replace(solution, gap=np.inf, converged=False, chosen=True)
        if average or best is None or best is solution.w:
            return solution
        message = f"round {self.watch.best_at + 1} of {solution.n_iter}, the best on the validation set"
        return replace(solution, w=best, gap=np.inf, converged=False, message=message, chosen=True)

    def trace(self) -> dict[str, Floats]:
        """Return the curves."""
        return {"measure": np.array(self.train_curve), "valid_rounds": np.array(self.watch.reached)}
