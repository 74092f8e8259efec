"""A sum of curves of single features, as explainable as a linear model; how curved it is, held-out queries decide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.preparation import Knotted, QueryRelative, Step, steps_of
from ..data.validation import check_positive
from ..errors import InputError
from ..measures.base import mean_value
from ..model import Inputs, LinearFunction
from ..objective import Objective
from ..penalties import L2
from ..solvers.base import Solver
from ..solvers.bounded import BoundedLBFGS
from ..solvers.lbfgs import LBFGS
from ..surrogates.listwise import ListNet as ListNetLoss
from ..surrogates.listwise import Truth
from .base import Ranker, parameters
from .composing import minimise
from .signs import SignsOfFeatures, signs_of
from .watching import BestOnValidation

FEW_QUERIES = 30
"""With fewer queries whose documents differ in grade nothing is tried: the ranker is linear."""
MOST_QUERIES = 2000
"""So many queries choose; with more, evenly drawn ones of them."""
ONE_FOLD = 900
"""From so many queries on a third of them is held out once, and each third in turn with fewer."""
_LOOSE = 1e-3


@dataclass(frozen=True)
class Form:
    """A preparation and a weight of the penalty, and what they reached on each query that was held out."""

    prepare: str
    alpha: float
    reached: Floats
    weight: Floats | None = None

    @property
    def mean(self) -> float:
        """The mean over the queries that count, with their weights."""
        return mean_value(self.reached, self.weight)

    def better_than(self, other: Form) -> bool:
        """Whether its mean is above another's by more than one standard error of their differences."""
        difference = self.reached - other.reached
        difference = difference[~np.isnan(difference)]
        if len(difference) < 2:
            return False
        return float(difference.mean()) > float(difference.std(ddof=1)) / math.sqrt(len(difference))


@parameters
class AdditiveRanker(Ranker):
    """A sum of curves: one for each feature, for its rank and for its place between the extremes of the query.

    min_w mean_q ℓ(Z_q w, y_q) + (alpha/2) ‖w‖², ℓ the cross entropy of `ListNet`, Z the columns that `prepare` makes.

    A third of the queries is held out (each third in turn where queries are few) to choose alpha, and whether the
    scores are straight or curved and whether they look at the query: what is not better than the linear model by more
    than one standard error is not taken, so that few queries do not bend curves. `choice_` says what was chosen and
    why. With `valid`, its queries choose.

    Parameters
    ----------
    measure : what chooses, and what `score` reports.
    prepare : the most that may be done to the features (see `Ranker`); parts of it are tried too.
    alphas : weights of the penalty to choose from.
    truth : what the true scores are: "grades", "gains" (2^grade − 1) or "order".
    signs : "+" for features whose curves must never fall, "-" for those that must never rise, as at `ListNet`.
    max_iter, tol : L-BFGS takes at most `max_iter` iterations, until the gradient is below `tol` times that at w = 0.
    random_state : draws the queries that are held out.

    >>> import toprank as tr
    >>> made = tr.datasets.make_graded(n_queries=90, n_features=2, random_state=0)
    >>> grades = (np.abs(made.X) < 0.7).sum(axis=1)  # the best documents are in the middle
    >>> bent = tr.QueryDataset.from_arrays(made.X, grades, made.qid)
    >>> curved, straight = (kind().fit_queries(bent[:60]) for kind in (tr.AdditiveRanker, tr.ListNet))
    >>> curved.choice_["prepare"]
    'ramps:8'
    >>> values = [tr.evaluate(ranker, bent[60:]).mean["ndcg@10"] for ranker in (curved, straight)]
    >>> bool(values[0] > values[1])
    True
    """

    needs_all_rows: ClassVar[bool] = True
    state_attributes: ClassVar[tuple[str, ...]] = ("choice_",)

    prepare: str | Sequence[str] = "+rank,+minmax,ramps:8"
    alphas: Sequence[float] = (1e-1, 1e-2, 1e-3, 1e-4)
    truth: Truth = "grades"
    signs: SignsOfFeatures | None = None
    max_iter: int = 500
    tol: float = 1e-4
    random_state: int = 0
    choice_: dict[str, Any] = field(init=False)
    """What was chosen: "prepare", "alpha", and "why" in words."""

    @property
    def _loss(self) -> ListNetLoss:
        return ListNetLoss(truth=self.truth)

    def _learn(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        vars(self)["_valid"] = valid  # which chooses before anything is learned
        try:
            super()._learn(data, valid, executor)
        finally:
            vars(self).pop("_valid", None)

    def _fitted_inputs(self, data: QueryDataset) -> Inputs:
        """Choose what the model looks at, and learn it from the rows."""
        alphas = _sound_alphas(self.alphas)
        self.choice_, vars(self)["_tried"] = self._choose(data, vars(self).get("_valid"), alphas)
        return Inputs.fit(data, self.missing, self.choice_["prepare"])

    @property
    def _wanted_words(self) -> tuple[str, ...]:
        return self.inputs_.words

    def _prepared(self, data: QueryDataset) -> QueryDataset:
        return self.inputs_.prepared_lazily(data)

    def _choose(
        self, data: QueryDataset, valid: QueryDataset | None, alphas: tuple[float, ...]
    ) -> tuple[dict[str, Any], list[Form]]:
        """Return the choice, and the settings that were tried where a validation set chose."""
        straight, *others = forms_of(self.prepare)
        n = int(data.informative.sum())
        if valid is None and n < FEW_QUERIES:
            why = f"too few queries for curves: {n} have documents of different grades, and {FEW_QUERIES} are needed"
            return {"prepare": straight, "alpha": alphas[len(alphas) // 2], "why": why}, []
        BestOnValidation[Floats](self._judge(), valid)  # refuses one that cannot choose
        parts = [(data, valid)] if valid is not None else list(_folds(data, self.random_state))
        tried = self._reached_with(straight, parts, alphas)
        linear = max(tried, key=lambda form: form.mean)
        for form in others:
            try:
                tried += self._reached_with(form, parts, alphas)
            except InputError:  # too few values for so many knots
                continue
        best = max(tried, key=lambda form: form.mean)
        chosen = best if best is linear or best.better_than(linear) else linear
        on = f"{self.measure} on {len(linear.reached)} queries held out: straight {linear.mean:.4f}"
        if best is not linear:
            on += f", {best.prepare} {best.mean:.4f}"
        if chosen is linear and best is not linear:
            on += ", better by less than one standard error: too few queries for curves"
        choice = {"prepare": chosen.prepare, "alpha": chosen.alpha, "why": on}
        return choice, [] if valid is None else tried

    def _reached_with(
        self, prepare: str, parts: list[tuple[QueryDataset, QueryDataset]], alphas: tuple[float, ...]
    ) -> list[Form]:
        """Return what the preparation reaches on the queries held out with each alpha."""
        reached: list[list[Floats]] = [[] for _ in alphas]
        for train, held_out in parts:
            inputs = Inputs.fit(train, self.missing, prepare)
            seen, rows = inputs.prepared_lazily(held_out), inputs.prepared_lazily(train)
            objective = Objective(rows, self._loss)
            solver = self._solver(inputs, max(self.tol, _LOOSE))
            for i, solution in enumerate(solver.path(objective, alphas)):
                scores = LinearFunction(solution.w).scores(seen.X)
                reached[i].append(self._judge().per_query(scores, seen.y, seen.ptr, doc_ids=seen.doc_ids))
        weights = [np.ones(part.n_queries) if part.query_weight is None else part.query_weight for _, part in parts]
        weight = np.concatenate(weights)
        return [Form(prepare, alpha, np.concatenate(v), weight) for alpha, v in zip(alphas, reached, strict=True)]

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        objective = Objective(data, self._loss, L2(self.choice_["alpha"]), executor)
        watch = BestOnValidation[Floats](self._judge(), None)
        found = minimise(objective, [self.choice_["alpha"]], lambda look: self._solver(self.inputs_, self.tol), watch)
        self._keep_solution(found.coef, found.solution, watch)
        tried = vars(self).pop("_tried")
        if tried:  # along a path of settings, as "C" says: it is no learning curve
            self.trace_ |= {"C": np.array([1 / form.alpha for form in tried])}
            self.trace_ |= {"valid": np.array([form.mean for form in tried])}

    def _solver(self, inputs: Inputs, tol: float) -> Solver:
        """Return L-BFGS, with bounds where features have signs."""
        if not self.signs:
            return LBFGS(self.max_iter, tol)
        names = vars(self).get("feature_names_in_")
        named = replace(inputs, names=None if names is None else tuple(map(str, names)))
        return BoundedLBFGS(signs_of(self.signs, named), self.max_iter, tol)

    def _check_state(self) -> None:
        choice = self.choice_
        sound = isinstance(choice, dict) and set(choice) == {"prepare", "alpha", "why"}
        if not sound or not isinstance(choice["alpha"], float) or not isinstance(choice["why"], str):
            raise InputError("$.state.choice_ is not the choice of an AdditiveRanker")
        if choice["prepare"] != ",".join(self.inputs_.words):
            raise InputError("$.state.choice_ is not the preparation in $.inputs.steps")


def forms_of(prepare: str | Sequence[str]) -> list[str]:
    """Return the preparations to try: without copies and knots, with either, with both.

    >>> forms_of("log,+rank,ramps:8")
    ['log', 'log,+rank', 'log,ramps:8', 'log,+rank,ramps:8']
    """
    steps = steps_of(prepare)
    plain = [step for step in steps if not isinstance(step, (QueryRelative, Knotted))]
    found = []
    for knots, copies in product((False, True), repeat=2):
        extra: list[Step] = [step for step in steps if (copies and isinstance(step, QueryRelative))]
        extra += [step for step in steps if (knots and isinstance(step, Knotted))]
        text = ",".join(word for step in (*plain, *extra) for word in step.words)
        if text not in found:
            found.append(text)
    return found


def _folds(data: QueryDataset, seed: int) -> Iterator[tuple[QueryDataset, QueryDataset]]:
    """Yield what to learn from and what is held out, of queries in an order drawn from the seed."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(data.informative))[:MOST_QUERIES]
    parts = [np.sort(order[i::3]) for i in range(3)]
    for i in range(1 if len(order) >= ONE_FOLD else 3):
        yield data[np.sort(np.concatenate(parts[:i] + parts[i + 1 :]))], data[parts[i]]


def _sound_alphas(alphas: Any) -> tuple[float, ...]:
    values = (alphas,) if isinstance(alphas, (int, float)) else tuple(alphas)
    if not values:
        raise InputError("alphas is an empty list: give at least one number above 0")
    for alpha in values:
        check_positive(alphas=alpha)
    return tuple(sorted((float(alpha) for alpha in values), reverse=True))
