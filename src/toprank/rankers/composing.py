"""How a ranker is composed: a surrogate on data is an objective, a solver minimises it, a validation set chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.validation import check_positive
from ..errors import InputError, WorkersLost
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..objective import Objective
from ..solvers.base import Solution, Solver
from ..solvers.lbfgs import Watch
from .models import LinearModel
from .watching import BestOnValidation

Constant = float | Sequence[float]
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
        return watch.look(LinearModel(w), w.copy, f"{iteration:5d}  objective {value:.6g}")

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


def constants(C: Constant, valid: QueryDataset | None) -> list[float]:
    """Return the values of C in rising order (a path from strong to weak regularisation)."""
    values = [C] if isinstance(C, (int, float)) else sorted(C)
    if not values:
        raise InputError("C is an empty list: give at least one number above 0")
    for value in values:
        check_positive(C=value)
    if len(values) > 1 and valid is None:
        raise InputError("several values of C need a validation set to choose by: fit_queries(data, valid=...)")
    return [float(value) for value in values]


def choose(
    values: list[float],
    solve: Callable[[list[float]], list[Solution]],
    measure: str | Measure,
    valid: QueryDataset | None,
) -> tuple[float, Solution, list[float]]:
    """Return the C with the best mean `measure` on `valid` (the smallest of equals), its solution, all the means."""
    watch = BestOnValidation[tuple[float, Solution]](parse_measure(measure), valid)
    solutions = solve(values)
    for pair in zip(values, solutions, strict=True):
        watch.look(LinearModel(pair[1].w), lambda pair=pair: pair)  # type: ignore[misc]
    return *(watch.best or (values[0], solutions[0])), watch.reached
