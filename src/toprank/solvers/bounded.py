"""L-BFGS with bounds: weights of a given sign, curves that only rise or fall, and penalties that set weights to 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data.validation import check_count, check_positive
from ..objective import Objective
from ..penalties import L1
from .base import STALLED, Solution, Solver
from .deadline import OUT_OF_TIME, out_of_time

_SHARE_OF_L1 = 1e-2
"""The residual is at most this share of the slope of an L1 penalty, below which weights are not told from 0."""


@dataclass(frozen=True, eq=False)
class Signs:
    """Which slopes must not be below 0 (sign 1) or above 0 (sign −1); 0 lets a slope be anything.

    A weight is w_j = f_j (s_j − s_i), f_j its `factor` and s_i the slope `before` it, or w_j = f_j s_j where that is
    −1. Without knots slopes are the weights themselves; the weight of a ramp is how much a curve bends.

    >>> signs = Signs(np.array([1, 1]), before=np.array([-1, 0]), factor=np.array([1.0, 2.0]))  # a ramp of scale 2
    >>> signs.weights(np.array([3.0, 1.0])).tolist(), signs.slopes(np.array([3.0, -4.0])).tolist()
    ([3.0, -4.0], [3.0, 1.0])
    """

    sign: Ints
    before: Ints
    factor: Floats

    @classmethod
    def of(cls, sign: Ints) -> Signs:
        """Return signs of the weights themselves."""
        return cls(sign, np.full(len(sign), -1), np.ones(len(sign)))

    @property
    def bends(self) -> AnyArray:
        """The places of the weights that are changes of slope."""
        return np.flatnonzero(self.before >= 0)

    def weights(self, slopes: Floats) -> Floats:
        """Return the weights of a curve with these slopes."""
        w, bends = slopes.copy(), self.bends
        w[bends] -= slopes[self.before[bends]]
        return self.factor * w

    def slopes(self, w: Floats) -> Floats:
        """Return the slopes of a curve with these weights."""
        found = w / self.factor
        for j in self.bends.tolist():  # the slope before comes first
            found[j] += found[self.before[j]]
        return found

    def gradient(self, grad: Floats) -> Floats:
        """Return the gradient in the slopes, given that in the weights."""
        found, bends = self.factor * grad, self.bends
        found[self.before[bends]] -= self.factor[bends] * grad[bends]  # a slope is before one other at most
        return found

    def variances(self, spread: Floats) -> Floats:
        """Return the diagonal of the spread of the columns that belong to the slopes."""
        factor, bends = self.factor, self.bends
        before = self.before[bends]
        diagonal = spread.diagonal() if spread.ndim == 2 else spread
        found = factor**2 * diagonal
        found[before] += factor[bends] ** 2 * diagonal[bends]
        if spread.ndim == 2:
            # `spread` may hold its upper triangle alone
            low, high = np.minimum(before, bends), np.maximum(before, bends)
            found[before] -= 2 * factor[before] * factor[bends] * spread[low, high]
        return np.maximum(found, 0.0)


@dataclass(frozen=True, eq=False)
class Variables:
    """What L-BFGS-B moves: v ≥ 0 with the slope side · v/scale of place, or v of any sign where nothing bounds it.

    An L1 penalty makes two of a weight, w = w₊ − w₋, and is linear in both: `cost` is its slope. Variables are in units
    in which the loss curves about alike.
    """

    signs: Signs
    place: Ints
    side: Floats
    scale: Floats
    cost: Floats
    free: AnyArray

    @classmethod
    def of(cls, objective: Objective, signs: Signs) -> Variables:
        """Return the variables of an objective; a column that is constant in every list has none with L1."""
        spread, penalty, sign = objective.spread(), objective.measured_penalty, signs.sign
        squares = signs.variances(spread)
        if isinstance(penalty, L1):
            varies = squares > 0
            up, down = np.flatnonzero((sign >= 0) & varies), np.flatnonzero((sign <= 0) & varies)
            place, side = np.concatenate([up, down]), np.repeat([1.0, -1.0], [len(up), len(down)])
            slopes, free = penalty.slopes(len(sign)), np.zeros(len(place), dtype=bool)
        else:
            place, side = np.arange(len(sign)), np.where(sign < 0, -1.0, 1.0)
            slopes, free = np.zeros(len(sign)), sign == 0
            squares = squares + penalty.alpha * signs.variances(np.ones(len(sign)))
        scale = np.sqrt(np.where(squares > 0, squares, 1.0))[place]
        return cls(signs, place, side, scale, slopes[place] / scale, free)

    def weights(self, v: Floats) -> Floats:
        """Return the weights that belong to values of the variables."""
        slopes = np.bincount(self.place, self.side * v / self.scale, len(self.signs.sign)).astype(np.float64)
        return self.signs.weights(slopes)

    def values(self, w: Floats) -> Floats:
        """Return the variables that belong to weights; below 0 where weights have a sign that they must not have."""
        values = self.side * self.signs.slopes(w)[self.place] * self.scale
        two = (self.signs.sign[self.place] == 0) & ~self.free
        return np.where(two, np.maximum(values, 0.0), values)

    def feasible(self, v: Floats) -> Floats:
        """Return the nearest values that are allowed."""
        return np.where(self.free, v, np.maximum(v, 0.0))

    def gradient(self, objective: Objective, w: Floats, loss_grad: Floats) -> Floats:
        """Return the gradient of the objective in the variables, given that of the loss in the weights."""
        penalty = objective.measured_penalty
        grad = loss_grad if isinstance(penalty, L1) else loss_grad + penalty.gradient(w)
        return self.side * self.signs.gradient(grad)[self.place] / self.scale + self.cost

    def residual(self, v: Floats, gradient: Floats) -> Floats:
        """Return the projected gradient, v − P(v − ∇f), which is 0 at the minimum alone where f is convex."""
        return v - self.feasible(v - gradient)


@dataclass(frozen=True, eq=False)
class BoundedSolution(Solution):
    """A solution under signs or an L1 penalty: `grad_norm` is the norm of the projected gradient of its variables."""

    variables: Variables | None = None

    def check(self, objective: Objective) -> BoundedSolution:
        """Return the same weights with value, projected gradient and gap computed anew from the data."""
        assert self.variables is not None
        at = _Point(objective, self.variables, self.w)
        return replace(self, value=at.value, grad_norm=float(np.linalg.norm(at.residual)), gap=at.gap(objective))


class _Point:
    """Weights, and the objective there."""

    def __init__(self, objective: Objective, variables: Variables, w: Floats) -> None:
        self.variables, self.w, self.penalty = variables, w, objective.measured_penalty
        self.loss, self.loss_grad = objective.loss_and_grad(w)
        self.value = self.loss + self.penalty.value(w)
        self.gradient = variables.gradient(objective, w, self.loss_grad)
        self.residual = variables.residual(variables.values(w), self.gradient)

    def gap(self, objective: Objective) -> float:
        """max_v ∇f(w)·(w − v) − (alpha/2) ‖v − w‖² ≥ f(w) − min f, v of the signs asked for, f alpha-strongly convex.

        The maximum is v = P(w − ∇f/alpha), weight by weight; nothing is known where slopes are bound instead.
        """
        alpha, signs = self.penalty.strong_convexity, self.variables.signs
        if alpha == 0 or not objective.surrogate.convex or len(signs.bends):
            return float("inf")
        if (signs.sign * self.w < 0).any():  # not allowed: there is no minimum to compare with
            return float("inf")
        grad = self.loss_grad + self.penalty.gradient(self.w)
        best = self.w - grad / alpha
        best = np.where(signs.sign * best < 0, 0.0, best)
        step = best - self.w
        return float(-(grad @ step) - 0.5 * alpha * (step @ step))


class _StopError(Exception):
    """Raised inside scipy's loop to leave it."""


@dataclass(frozen=True)
class BoundedLBFGS(Solver):
    """scipy's L-BFGS-B on `Variables`: signs are bounds, and |w| = w₊ + w₋ makes an L1 penalty linear.

    Stops where the largest part of the projected gradient is at most `tol` times the largest slope of the loss at
    w = 0. Weights are exactly 0 where both parts are at their bound.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> data = tr.QueryDataset.from_arrays([[1.0, 0.0], [0.0, 0.2]], [1, 0])
    >>> objective = Objective(data, tr.surrogates.ListNet(), L1(0.1))
    >>> solution = BoundedLBFGS(Signs.of(np.array([0, 1])), tol=1e-6).minimize(objective)
    >>> solution.w.round(3).tolist(), solution.converged, bool(solution.check(objective).grad_norm < 1e-6)
    ([0.759, 0.0], True, True)
    """

    signs: Signs | None = None
    max_iter: int = 500
    tol: float = 1e-6
    memory: int = 20

    def __post_init__(self) -> None:
        check_positive(tol=self.tol)
        check_count(max_iter=self.max_iter, memory=self.memory)

    def minimize(self, objective: Objective, w0: Floats | None = None) -> BoundedSolution:
        """Minimise a differentiable loss plus its penalty from w0 (zero where None)."""
        from scipy.optimize import minimize

        d = objective.n_features
        variables = Variables.of(objective, Signs.of(np.zeros(d, dtype=np.int64)) if self.signs is None else self.signs)
        zero = _Point(objective, variables, np.zeros(d))
        slope_of_loss = np.abs(zero.gradient - variables.cost).max(initial=0.0)
        goal = max(self.tol * float(slope_of_loss), 1e-300)
        if (variables.cost > 0).any():
            goal = min(goal, _SHARE_OF_L1 * float(variables.cost[variables.cost > 0].min()))
        start = variables.feasible(variables.values(np.zeros(d) if w0 is None else np.asarray(w0, dtype=np.float64)))
        # scipy's first step has length 1: variables are scaled so that this step leads to the minimum of a parabola.
        scale = max(float(np.linalg.norm(variables.residual(np.zeros_like(zero.gradient), zero.gradient))), 1e-300)
        values: list[float] = []
        norms: list[float] = []
        best = latest = zero if w0 is None else _Point(objective, variables, variables.weights(start))
        best_value = best.value

        def fun(u: Floats) -> tuple[float, Floats]:
            nonlocal best, latest, best_value
            if out_of_time():
                raise _StopError(OUT_OF_TIME)
            v = scale * u
            latest = _Point(objective, variables, variables.weights(v))
            # Both parts of a weight may be above 0 on the way: scipy's value is linear in each.
            value = float(latest.loss + variables.cost @ v) if variables.cost.any() else latest.value
            if value < best_value:
                best, best_value = latest, value
            return value, scale * latest.gradient

        def callback(intermediate_result: Any) -> None:
            values.append(best.value)
            norms.append(float(np.linalg.norm(best.residual)))

        options = {"maxiter": self.max_iter, "gtol": scale * goal, "ftol": 1e-15, "maxcor": self.memory, "maxls": 40}
        options["maxfun"] = 50 * self.max_iter
        bounds = [(None, None) if free else (0.0, None) for free in variables.free.tolist()]
        try:
            result = minimize(
                fun, start / scale, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options
            )
            message = f"the gradient did not reach tol in {self.max_iter} steps" if result.status == 1 else STALLED
        except _StopError as stop:
            message = str(stop)
        converged = bool(np.abs(best.residual).max(initial=0.0) <= goal)
        return BoundedSolution(
            w=best.w,
            value=best.value,
            grad_norm=float(np.linalg.norm(best.residual)),
            gap=best.gap(objective),
            n_iter=len(values),
            converged=converged,
            message="" if converged else message,
            trace={"value": np.array(values), "grad_norm": np.array(norms)},
            variables=variables,
        )
