"""How a ranker is composed: a surrogate on data is an objective, a solver minimises it, a validation set chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.validation import check_positive
from ..errors import InputError, WorkersLost
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import LinearFunction
from ..objective import Objective
from ..solvers.ball import BallLBFGS
from ..solvers.base import Solution, Solver, Watch
from ..solvers.lbfgs import LBFGS
from ..solvers.minibatch import MiniBatch
from ..surrogates.base import Surrogate
from .base import Ranker, parameters
from .checking import warn_of_small_features
from .watching import BestOnValidation

ValuesOfC = float | Sequence[float]
"""A number, or numbers to choose from by the validation part that `fit_queries` gets."""


@dataclass(frozen=True, eq=False)
class Found:
    """The weights that count, the solution they come from, and the place of its alpha among those that were tried."""

    coef: Floats
    solution: Solution
    place: int


def minimise(
    objective: Objective,
    alphas: Sequence[float],
    solver: Callable[[Watch | None], Solver],
    watch: BestOnValidation[Floats],
    start: Floats | None = None,
) -> Found:
    """Solve for each alpha in turn, and keep what is best on the validation set: an iterate, or a solution.

    `solver` makes the solver, given who watches its iterates; one that shows none is judged by its solutions.
    """

    def look(iteration: int, w: Floats, value: float) -> bool:
        return watch.look(LinearFunction(w), w.copy, f"{iteration:5d}  objective {value:.6g}")

    wanted = watch.valid is not None or watch.verbose
    try:
        solutions = solver(look if wanted else None).path(objective, alphas, start)
    except WorkersLost as error:
        error.coef = objective.best.get("w")
        raise
    if watch.reached:
        assert watch.best is not None
        return Found(watch.best, replace(solutions[-1], chosen=True), len(solutions) - 1)
    if watch.valid is None:
        return Found(solutions[0].w, solutions[0], 0)
    for solution in solutions:
        look(solution.n_iter, solution.w, solution.value)
    best = solutions[watch.best_at]
    return Found(best.w, best, watch.best_at)


@parameters
class MinimisingRanker(Ranker):
    """What rankers share that minimise a loss with a penalty, or in a ball: their parameters, and their solvers."""

    alpha: float = 1e-3
    radius: float | None = None
    max_iter: int = 500
    tol: float = 1e-4
    epochs: int = 20
    batch_size: int = 16
    eta: float = 0.1
    patience: int | None = None
    warm_start: bool = False
    random_state: int = 0
    verbose: bool = False

    def _minimise(
        self, data: QueryDataset, loss: Surrogate, valid: QueryDataset | None, executor: Executor | None
    ) -> None:
        check_positive(eta=self.eta)
        watch = BestOnValidation[Floats](self._judge(), valid, self.patience, self.verbose)
        objective = Objective(data, loss, executor=executor)
        if self.radius is None and self.alpha > 0:
            warn_of_small_features(type(self).__name__, objective, self.alpha)
        found = minimise(objective, [self.alpha], self._solver, watch, self._start())
        self._keep_solution(found.coef, found.solution, watch)

    @abstractmethod
    def _solver(self, look: Watch | None) -> Solver:
        """Return the solver that the parameters name; `look` watches its iterates."""

    def _gradient_solver(self, minibatch: bool, radius: float | None, look: Watch | None) -> Solver:
        """Return a solver that goes by gradients alone: on mini-batches, or L-BFGS, in the ball where there is one."""
        if minibatch:
            return MiniBatch(self.epochs, self.batch_size, self.eta, radius, random_state=self.random_state, watch=look)
        if radius is not None:
            return BallLBFGS(radius, self.max_iter, self.tol, watch=look)
        return LBFGS(self.max_iter, self.tol, watch=look)


def minimise_by_C(
    ranker: Ranker, C: ValuesOfC, objective: Objective, solver: Solver, valid: QueryDataset | None, weight: float = 1.0
) -> float:
    """Solve with alpha = 1/(C · weight) for each C, let the ranker keep the best solution, and return its C."""
    values = values_of_C(C, valid)
    watch = BestOnValidation[Floats](ranker._judge(), valid)
    alphas = [1 / (value * weight) for value in values]
    found = minimise(objective, alphas, lambda look: solver, watch, ranker._start())
    ranker._keep_solution(found.coef, found.solution, watch)
    ranker.trace_ |= {"C": np.array(values), "valid": np.array(watch.reached)}
    return values[found.place]


def values_of_C(C: ValuesOfC, valid: QueryDataset | None) -> list[float]:
    """Return the values of C in rising order (a path from strong to weak regularisation)."""
    values = [C] if isinstance(C, (int, float)) else sorted(C)
    if not values:
        raise InputError("C is an empty list: give at least one number above 0")
    for value in values:
        check_positive(C=value)
    if len(values) > 1 and valid is None:
        raise InputError("several values of C need a validation set to choose by: fit_queries(data, valid=...)")
    return [float(value) for value in values]


def choose_C(
    values: list[float],
    solve: Callable[[list[float]], list[Solution]],
    measure: str | Measure,
    valid: QueryDataset | None,
) -> tuple[float, Solution, list[float]]:
    """Return the C with the best mean `measure` on `valid` (the smallest of equals), its solution, all the means."""
    watch = BestOnValidation[tuple[float, Solution]](parse_measure(measure), valid)
    solutions = solve(values)
    for pair in zip(values, solutions, strict=True):
        watch.look(LinearFunction(pair[1].w), lambda pair=pair: pair)  # type: ignore[misc]
    return *(watch.best or (values[0], solutions[0])), watch.reached
