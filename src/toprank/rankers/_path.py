"""One regularisation constant or several: how the rankers with a C choose it on a validation set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..data.dataset import QueryDataset
from ..data.validation import check_positive
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..solvers.base import Solution
from .models import LinearModel
from .watching import BestOnValidation

Constant = float | Sequence[float]
"""A number, or numbers to choose from by the validation part that `fit_queries` gets."""


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
