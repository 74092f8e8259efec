"""How a ranker is composed: a surrogate on data is an objective, a solver minimises it, a validation set chooses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.validation import check_positive
from ..errors import InputError, WorkersLost
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import LinearFunction
from ..objective import Objective
from ..penalties import L1, L2, Penalty, penalties_of
from ..solvers.ball import BallLBFGS
from ..solvers.base import Solution, Solver, Watch
from ..solvers.bounded import BoundedLBFGS
from ..solvers.bundle import Bundle
from ..solvers.lbfgs import LBFGS
from ..solvers.minibatch import MiniBatch
from ..solvers.newton import Newton
from ..surrogates.base import Surrogate
from .base import Ranker, parameters
from .checking import warn_of_small_features
from .signs import SignsOfFeatures, signs_of
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

    `solver` makes the solver, given who watches its iterates; one that shows none is judged by its solutions, and so
    are several alphas.
    """

    def look(iteration: int, w: Floats, value: float) -> bool:
        return watch.look(LinearFunction(w), w.copy, f"{iteration:5d}  objective {value:.6g}")

    wanted = len(alphas) == 1 and (watch.valid is not None or watch.verbose)
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


SOLVERS: dict[str, type[Solver]] = {"lbfgs": LBFGS, "newton": Newton, "bundle": Bundle, "minibatch": MiniBatch}
"""Solvers by the names that a ranker's parameter takes."""


MINIBATCH_SETTINGS = ("epochs", "batch_size", "eta", "random_state")
"""Settings of `MiniBatch` that were parameters of rankers in earlier versions."""


def parse_solver(solver: str | Solver, choices: Sequence[str], **settings: Any) -> Solver:
    """Return the solver that a parameter names, made with these settings; a solver passes through.

    A name may be followed by settings of its own, as a measure is by its rules.

    >>> parse_solver("minibatch:epochs=3:eta=0.5", ["minibatch"]).epochs
    3
    >>> parse_solver("sgd", ["lbfgs", "minibatch"])
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: solver must be one of 'lbfgs', 'minibatch' or a value of toprank.solvers, got 'sgd'
    """
    if isinstance(solver, Solver) and isinstance(solver, tuple(SOLVERS[choice] for choice in choices)):
        return solver
    name, *given = solver.split(":") if isinstance(solver, str) else ("",)
    if name not in choices:
        wanted = ", ".join(map(repr, choices))
        raise InputError(f"solver must be one of {wanted} or a value of toprank.solvers, got {solver!r}")
    kind = SOLVERS[name]
    types = {part.name: part.type for part in fields(kind) if part.type in ("int", "float")}  # type: ignore[arg-type]
    for part in given:
        key, _, text = part.partition("=")
        if key not in types:
            raise InputError(f"solver={solver!r}: {name} has no setting {key!r}, it has {', '.join(types)}")
        try:
            settings[key] = int(text) if types[key] == "int" else float(text)
        except ValueError:
            raise InputError(f"solver={solver!r}: {key} must be a number, got {text!r}") from None
    return kind(**settings)


@parameters
class MinimisingRanker(Ranker):
    """What rankers share that minimise a loss with a penalty, or in a ball: their parameters, and their solvers.

    Parameters
    ----------
    alpha : weight of the penalty (alpha/2) ‖w‖², where `penalty` is None.
    penalty : `toprank.L2(alpha)`, or `toprank.L1(alpha)`, which sets weights to exactly 0 (`features_` names the
        others), or a text such as "L1:0.001". Of a list, such as [toprank.L1(0.1), toprank.L1(0.01)], the validation
        set takes the best (`penalty_`).
    signs : "+" for features that must never count against a document and "-" for those that must never count for it,
        by name, such as {"price": "-", "bm25": "+"}, or by number from 1 where features have no names. With "ramps:8"
        or "steps:16" the curve of the feature never falls, or never rises.
    radius : the weights stay in ‖w‖ ≤ radius; None is no such limit.
    solver : the name of a solver, or one of `toprank.solvers` with settings of its own, such as
        `toprank.solvers.MiniBatch(epochs=20, batch_size=16, eta=0.1)` or its text "minibatch:epochs=20:eta=0.1".
    max_iter : the most iterations of a solver that is named.
    tol : when a solver that is named stops, as a share of the value or of the slope at w = 0.
    patience : how many iterates in a row that are no better on the validation set end the fit.
    warm_start : whether a fit begins at the weights so far.
    verbose : whether progress is printed.
    """

    MOVED_PARAMETERS: ClassVar[Mapping[str, str]] = {
        name: f"solver=toprank.solvers.MiniBatch({name}=...)" for name in MINIBATCH_SETTINGS
    }

    alpha: float = 1e-3
    penalty: str | L1 | L2 | Sequence[str | L1 | L2] | None = None
    signs: SignsOfFeatures | None = None
    radius: float | None = None
    solver: str | Solver = "lbfgs"
    max_iter: int = 500
    tol: float = 1e-4
    patience: int | None = None
    warm_start: bool = False
    verbose: bool = False
    penalty_: L1 | L2 = field(init=False)
    """The penalty of the last fit; of several, the one that the validation set chose."""

    @classmethod
    def upgraded_parameters(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of an older file as they are written now: settings of a solver belong to it."""
        old = {name: params[name] for name in MINIBATCH_SETTINGS if name in params}
        kept = {name: value for name, value in params.items() if name not in cls.MOVED_PARAMETERS}
        if kept.get("solver") == "minibatch" and "epochs" in old:
            kept["solver"] = MiniBatch(**old)
            for name in ("max_iter", "tol"):  # they did nothing
                kept.pop(name, None)
        return kept

    def _minimise(
        self, data: QueryDataset, loss: Surrogate, valid: QueryDataset | None, executor: Executor | None
    ) -> None:
        watch = BestOnValidation[Floats](self._judge(), valid, self.patience, self.verbose)
        penalties = self._penalties
        if len(penalties) > 1 and valid is None:
            raise InputError("several penalties need a validation set to choose by: fit_queries(data, valid=...)")
        objective = Objective(data, loss, penalties[0], executor)
        if self.radius is None and isinstance(penalties[-1], L2) and penalties[-1].alpha > 0:
            warn_of_small_features(type(self).__name__, objective, penalties[-1].alpha)
        found = minimise(objective, [each.alpha for each in penalties], self._solver, watch, self._start())
        self._keep_solution(found.coef, found.solution, watch)
        self.penalty_ = penalties[found.place]
        if len(penalties) > 1:
            self.trace_ |= {"C": np.array([1 / each.alpha if each.alpha else np.inf for each in penalties])}

    @property
    def _penalties(self) -> list[Penalty]:
        """The penalties to choose from, the strongest first."""
        if self.penalty is None:
            return [L2(self.alpha)]
        if self.alpha != type(self).alpha:
            raise InputError(
                f"alpha={self.alpha!r} and penalty={self.penalty!r}: alpha is short for penalty=toprank.L2(alpha), so "
                "give one of them"
            )
        return penalties_of(self.penalty)

    @property
    def _bounded(self) -> str:
        """What only L-BFGS with bounds can do of what is asked for, in words; empty where there is nothing."""
        l1 = isinstance(self._penalties[0], L1)
        return " and ".join(word for word, wanted in (("signs", bool(self.signs)), ("an L1 penalty", l1)) if wanted)

    def _prepared(self, data: QueryDataset) -> QueryDataset:
        """Return rows as the objective reads them, by lists; mini-batches draw lists from all rows."""
        solver = self.solver
        if isinstance(solver, MiniBatch) or (isinstance(solver, str) and solver.partition(":")[0] == "minibatch"):
            return self.inputs_.prepared(data)
        return self.inputs_.prepared_lazily(data)

    @abstractmethod
    def _solver(self, look: Watch | None) -> Solver:
        """Return the solver that the parameters name; `look` watches its iterates."""

    def _parsed_solver(self, solver: str | Solver, choices: Sequence[str]) -> Solver:
        """Return the solver with `max_iter` and `tol`; these are refused where a solver has settings of its own."""
        own = isinstance(solver, Solver) or solver.partition(":")[0] == "minibatch"
        for name in ("max_iter", "tol") if own else ():
            if getattr(self, name) != getattr(type(self), name):
                raise InputError(f"{name} does nothing with solver={solver!r}, which has settings of its own")
        settings = {} if own else {"max_iter": self.max_iter, "tol": self.tol}
        parsed = parse_solver(solver, choices, **settings)
        if self._bounded and not isinstance(parsed, LBFGS):
            raise InputError(f"solver={solver!r} knows no {self._bounded.removeprefix('an ')}: take solver='lbfgs'")
        return parsed

    def _gradient_solver(self, solver: Solver, radius: float | None, look: Watch | None) -> Solver:
        """Return a solver that goes by gradients alone, watched, and kept in the ball where there is one."""
        if self._bounded:
            assert isinstance(solver, LBFGS)
            return self._bounded_solver(solver, radius)
        if isinstance(solver, LBFGS) and radius is not None:
            return BallLBFGS(radius, solver.max_iter, solver.tol, solver.memory, watch=look)
        if isinstance(solver, MiniBatch):
            return replace(solver, radius=radius if solver.radius is None else solver.radius, watch=look)
        assert isinstance(solver, LBFGS)
        return replace(solver, watch=look)

    def _bounded_solver(self, solver: LBFGS, radius: float | None) -> BoundedLBFGS:
        """Return the solver for signs and L1; its solutions are judged, since iterates have too many weights."""
        if radius is not None:
            why = f"radius={radius:g}" if self.radius is not None else "a linear transform (which needs a radius)"
            raise InputError(f"{self._bounded} and {why} do not go together: leave one of them out")
        if self.patience is not None:
            raise InputError(f"patience does nothing with {self._bounded}: only the solution is judged; leave it out")
        signs = signs_of(self.signs or {}, self.inputs_)
        if len(signs.bends) and isinstance(self._penalties[0], L1):
            raise InputError(
                "signs and an L1 penalty together do not take ramps: take steps, or L2, or leave one of them out"
            )
        return BoundedLBFGS(signs, solver.max_iter, solver.tol, solver.memory)


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
