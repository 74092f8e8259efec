"""What a solver is: it makes an objective small and returns a solution whose promise can be checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import Floats
from ..errors import InputError
from ..objective import Objective
from ..penalties import L1


@dataclass(frozen=True, eq=False)
class Cuts:
    """Points and weights that add up to 1: the tangents of the risk there, so weighted, bound min f from below."""

    points: Floats
    weights: Floats

    def lower_bound(self, objective: Objective) -> float:
        """min f ≥ Σ λ_i b_i − ‖Σ λ_i a_i‖²/(2 alpha), the risk's tangents (a_i, b_i) computed anew from the data."""
        slope, offset = np.zeros(objective.n_features), 0.0
        for w, weight in zip(self.points, self.weights, strict=True):
            value, grad = objective.value_and_grad(w)
            a = grad - objective.penalty.gradient(w)
            slope += weight * a
            offset += weight * (value - objective.penalty.value(w) - float(a @ w))
        return float(offset - slope @ slope / (2 * objective.penalty.strong_convexity))


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights, the value they reach, and how far from the best they can be.

    `gap` is what the solver promises: an upper bound on f(w) − min f where the objective is strongly convex
    (‖∇f‖²/(2 alpha), or the bound that the `cuts` prove), infinite where nothing is known.
    """

    w: Floats
    value: float
    grad_norm: float
    gap: float
    n_iter: int
    converged: bool
    message: str = ""
    """Why the solver stopped; empty where it converged and there is nothing else to say."""
    trace: dict[str, Floats] = field(default_factory=dict)
    cuts: Cuts | None = field(default=None, repr=False)
    chosen: bool = False
    """Whether the weights were chosen on a validation set or averaged: then they need not be near the minimum."""

    @property
    def falls_short(self) -> bool:
        """Whether the minimum was asked for and the value may be above it by more than a millionth of itself."""
        return not self.converged and not self.chosen and not self.gap <= 1e-6 * abs(self.value)

    def check(self, objective: Objective) -> Solution:
        """Return the same weights with value, gradient and gap computed anew from the data."""
        value, grad = objective.value_and_grad(self.w)
        norm = float(np.linalg.norm(grad))
        gap = gradient_gap(norm, objective) if self.cuts is None else value - self.cuts.lower_bound(objective)
        return replace(self, value=value, grad_norm=norm, gap=gap)


def gradient_gap(grad_norm: float, objective: Objective) -> float:
    """f(w) − min f ≤ ‖∇f(w)‖² / (2 alpha) for an alpha-strongly convex f."""
    alpha = objective.penalty.strong_convexity
    if alpha > 0 and objective.surrogate.convex:
        return float(grad_norm**2 / (2 * alpha))
    return float("inf")


def refuse_l1(solver: Solver, objective: Objective) -> None:
    """Refuse an L1 penalty, which has corners that a solver does not know."""
    if isinstance(objective.penalty, L1):
        raise InputError(f"{type(solver).__name__} knows no L1 penalty: take BoundedLBFGS")


def warn_of_failure(who: str, solution: Solution) -> None:
    """Warn in one line, as scikit-learn does, where the minimum was not reached or all documents score the same."""
    if solution.falls_short:
        left = f" (at most {solution.gap:.2g} above the minimum)" if np.isfinite(solution.gap) else ""
        _warn(f"{who} did not converge: {solution.message}{left}; scale the features, penalise more or raise max_iter")
    elif not solution.w.any():
        warn_nothing_learned(who, solution.message or "the penalty outweighs the loss")


def warn_nothing_learned(who: str, why: str) -> None:
    """Warn that all weights are 0."""
    _warn(f"{who} learned nothing, all documents score the same: {why}")


def _warn(text: str) -> None:
    from warnings import warn

    from sklearn.exceptions import ConvergenceWarning

    warn(text, ConvergenceWarning, stacklevel=6)


Watch = Callable[[int, Floats, float], bool]
"""Called after each iteration with its number, the weights and the value; True stops the solver."""

STOPPED = "stopped on the validation set"
STALLED = "the value no longer falls: rounding has been reached"


class Solver(ABC):
    """Hyper-parameters of a minimiser; subclasses are frozen dataclasses."""

    @abstractmethod
    def minimize(self, objective: Objective, w0: Floats | None = None) -> Solution:
        """Minimise the objective from w0 (zero where None)."""

    def path(self, objective: Objective, alphas: Sequence[float], w0: Floats | None = None) -> list[Solution]:
        """Minimise for each alpha in turn, each from the weights of the one before."""
        solutions: list[Solution] = []
        for alpha in alphas:
            start = solutions[-1].w if solutions else w0
            penalty = replace(objective.penalty, alpha=alpha)
            solutions.append(self.minimize(objective.with_penalty(penalty), start))
        return solutions
