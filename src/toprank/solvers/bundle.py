"""Cutting planes for convex regularised risks, smooth or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_count, check_positive
from ..errors import InputError
from ..objective import Objective
from ..penalties import L2
from .base import Cuts, Solution, Solver, refuse_l1
from .deadline import OUT_OF_TIME, out_of_time

SHRINK, GROW = 0.5, 1.2
"""Factors of mu (see `Bundle`), after a step that lowered the value about as predicted, and after one that did not."""
STALLED_STEPS = 50
"""After so many steps in which neither value nor bound improved, rounding has been reached."""


@dataclass(frozen=True)
class Bundle(Solver):
    """min_w (alpha/2)‖w‖² + max_i (a_i·w + b_i), the cuts (a_i, b_i) tangents of the risk R, more at every step.

    Each evaluation at w adds the cut R(w') ≥ R(w) + ∂R(w)·(w' − w). The dual over the simplex,
    max_λ Σ λ_i b_i − ‖Σ λ_i a_i‖²/(2 alpha), bounds the minimum from below. The next point minimises the model plus
    (mu/2)‖w − best‖², lengths measured by the spread of the features inside lists: near the best point the model is
    good. It stops when f(w) − lower bound ≤ tol · max(f(w), f(0)/1000): `gap` is that difference, and `Solution.check`
    computes it again from the data. With the first mu the tangent at the start plus this term has the minimum 0,
    whatever the scale of the features.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> from toprank.penalties import L2
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> objective = Objective(data, tr.surrogates.PairwiseHinge(), L2(0.5))
    >>> solution = Bundle().minimize(objective)
    >>> solution.w.round(4).tolist(), round(solution.value, 4), bool(solution.check(objective).gap < 1e-4)
    ([1.0], 0.25, True)
    """

    tol: float = 1e-4
    max_iter: int = 2000
    idle: int = 20
    """A cut that had weight 0 in this many steps in a row is dropped."""

    def __post_init__(self) -> None:
        check_positive(tol=self.tol)
        check_count(max_iter=self.max_iter, idle=self.idle)

    def minimize(self, objective: Objective, w0: Floats | None = None) -> Solution:
        """Minimise a convex objective with alpha > 0 from w0 (zero where None)."""
        refuse_l1(self, objective)
        return self._run(objective, w0, _Model.empty(_Axes.of(objective)))[0]

    def path(self, objective: Objective, alphas: Sequence[float], w0: Floats | None = None) -> list[Solution]:
        """Minimise for each alpha in turn; a cut of the risk holds for every alpha, so each run keeps the cuts so far.

        >>> import toprank as tr
        >>> from toprank.objective import Objective
        >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
        >>> path = Bundle(tol=1e-6).path(Objective(data, tr.surrogates.PairwiseHinge()), [4.0, 2.0, 1.0])
        >>> [solution.w.round(2).tolist() for solution in path]
        [[0.25], [0.5], [1.0]]
        """
        solutions: list[Solution] = []
        model = _Model.empty(_Axes.of(objective))
        for alpha in alphas:
            start = solutions[-1].w if solutions else w0
            solution, model = self._run(replace(objective, penalty=L2(alpha)), start, model)
            solutions.append(solution)
        return solutions

    def _run(self, objective: Objective, w0: Floats | None, model: _Model) -> tuple[Solution, _Model]:
        alpha = objective.penalty.alpha
        check_positive(alpha=alpha)
        if not objective.surrogate.convex:
            raise InputError(f"cutting planes need a convex loss, and {type(objective.surrogate).__name__} is not")
        w = np.zeros(objective.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        value, grad = objective.value_and_grad(w)
        model = model.add(w, value, grad, alpha)
        best, best_grad, best_value = w, grad, value
        floor = 1e-3 * (value if not w.any() else objective.value_and_grad(np.zeros_like(w))[0])
        lower, cuts = -np.inf, model.cuts(np.ones(len(model.b))[-1:], np.array([len(model.b) - 1]))
        slope_square = float((model.A[-1] ** 2 / model.axes.spread).sum())
        mu = slope_square / (2 * value) if value > 0 and slope_square > 0 else alpha
        trace, message, stalled = _Trace(), f"the gap did not reach tol in {self.max_iter} steps", 0
        for _ in range(self.max_iter):
            model = model.solved(alpha)
            bound = model.bound(alpha)
            stalled = 0 if bound > lower else stalled + 1
            if bound > lower:
                lower, cuts = bound, model.cuts(model.weights, np.flatnonzero(model.weights))
            trace.add(best_value, lower, len(model.b))
            moved = len(trace.values) > 1 or bool(best.any())  # w = 0 scores all alike, however near to the minimum
            if moved and best_value - lower <= self.tol * max(best_value, floor):
                message = ""
                break
            if out_of_time():
                message = OUT_OF_TIME
                break
            if stalled > STALLED_STEPS:
                message = "neither the value nor the bound improves any more: rounding has been reached"
                break
            model = model.without_idle(self.idle)
            w, predicted, model = model.step(alpha, mu, best)
            value, grad = objective.value_and_grad(w)
            model = model.add(w, value, grad, alpha)
            predicted_drop, drop = best_value - predicted, best_value - value
            mu *= GROW if drop < 0.3 * predicted_drop else SHRINK if drop > 0.7 * predicted_drop else 1.0
            if value < best_value:
                best, best_value, best_grad, stalled = w, value, grad, 0
        solution = Solution(
            w=best,
            value=best_value,
            grad_norm=float(np.linalg.norm(best_grad)),
            gap=max(best_value - lower, 0.0),
            n_iter=len(trace.values),
            converged=not message,
            message=message,
            trace=trace.arrays(),
            cuts=cuts,
        )
        return solution, model


@dataclass(frozen=True, eq=False)
class _Axes:
    """The directions in which the features spread inside lists, and how far: slopes are kept in these coordinates."""

    Q: Floats | None
    spread: Floats

    @classmethod
    def of(cls, objective: Objective) -> _Axes:
        found, Q = objective.spread(), None
        if found.ndim == 2:
            found, Q = np.linalg.eigh(found, UPLO="U")
        return cls(Q, np.maximum(found, max(1e-12 * float(found.max()), np.finfo(np.float64).tiny)))

    def to_axes(self, w: Floats) -> Floats:
        return w if self.Q is None else np.asarray(w @ self.Q)

    def from_axes(self, w: Floats) -> Floats:
        return w if self.Q is None else np.asarray(self.Q @ w)


@dataclass(frozen=True, eq=False)
class _Model:
    """The cuts so far: their points, slopes A and offsets b, the products A Aᵀ, and for how many steps each was idle.

    `weights` solve the dual and `step_weights` the problem of the next point; each is where the next search starts.
    """

    axes: _Axes
    points: Floats
    A: Floats
    b: Floats
    gram: Floats
    idle: Ints
    weights: Floats
    step_weights: Floats

    @classmethod
    def empty(cls, axes: _Axes) -> _Model:
        none, rows = np.empty(0), np.empty((0, len(axes.spread)))
        return cls(axes, rows, rows, none, np.empty((0, 0)), np.empty(0, dtype=np.int64), none, none)

    def add(self, w: Floats, value: float, grad: Floats, alpha: float) -> _Model:
        slope, offset = cut(w, value, grad, alpha)
        slope = self.axes.to_axes(slope)
        products = self.A @ slope
        square = np.array([[slope @ slope]])
        return _Model(
            self.axes,
            np.vstack([self.points, w]),
            np.vstack([self.A, slope]),
            np.append(self.b, offset),
            np.block([[self.gram, products[:, None]], [products[None, :], square]]),
            np.append(self.idle, 0),
            np.append(self.weights, 0.0),
            np.append(self.step_weights, 0.0),
        )

    def without_idle(self, limit: int) -> _Model:
        used = (self.weights > 0) | (self.step_weights > 0)
        idle = np.where(used, 0, self.idle + 1)
        keep = np.flatnonzero(idle < limit)
        if len(keep) == len(idle):
            return replace(self, idle=idle)
        rows = (self.points[keep], self.A[keep], self.b[keep], self.gram[np.ix_(keep, keep)], idle[keep])
        return _Model(self.axes, *rows, self.weights[keep], self.step_weights[keep])

    def solved(self, alpha: float) -> _Model:
        """Return the model with the λ of its dual."""
        return replace(self, weights=simplex_qp(self.gram / alpha, self.b, self.weights))

    def bound(self, alpha: float) -> float:
        """Return the lower bound that the dual proves: any λ on the simplex proves one."""
        slope = self.weights @ self.A
        return float(self.weights @ self.b - slope @ slope / (2 * alpha))

    def step(self, alpha: float, mu: float, centre: Floats) -> tuple[Floats, float, _Model]:
        """Return argmin of the model plus (mu/2)‖w − centre‖², lengths by the spread; its value; the new model."""
        mus = mu * self.axes.spread
        scaled_A, origin = self.A / (alpha + mus), mus * self.axes.to_axes(centre) / (alpha + mus)
        step_weights = simplex_qp(scaled_A @ self.A.T, self.b + self.A @ origin, self.step_weights)
        w = origin - step_weights @ scaled_A
        value = float(0.5 * alpha * (w @ w) + (self.A @ w + self.b).max())
        return self.axes.from_axes(w), value, replace(self, step_weights=step_weights)

    def cuts(self, weights: Floats, which: Ints) -> Cuts:
        return Cuts(self.points[which], weights[which] if len(weights) > 1 else weights)


@dataclass
class _Trace:
    values: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    size: list[float] = field(default_factory=list)

    def add(self, value: float, lower: float, size: int) -> None:
        self.values.append(value)
        self.lower.append(lower)
        self.size.append(float(size))

    def arrays(self) -> dict[str, Floats]:
        return {"value": np.array(self.values), "lower_bound": np.array(self.lower), "cuts": np.array(self.size)}


def simplex_qp(H: Floats, c: Floats, start: Floats | None = None) -> Floats:
    """argmax_λ c·λ − ½ λᵀHλ over λ ≥ 0, Σ λ = 1 (H positive semidefinite), by active sets from `start`.

    For the coordinates in use the conditions are linear equations. A coordinate that they would make negative is taken
    out; when there is none, the one with the largest slope is added. From the answer to a similar problem this takes a
    few rounds. Whatever rounding does, a point of the simplex is returned, so that its bound is a true one.

    >>> simplex_qp(np.array([[2.0, 0.0], [0.0, 1.0]]), np.zeros(2)).round(6).tolist()
    [0.333333, 0.666667]
    """
    diagonal = H.diagonal()
    scale = max(float(diagonal.max()), float(np.ptp(c)), np.finfo(np.float64).tiny)
    weights = np.zeros(len(c)) if start is None else np.array(start)
    if not weights.any():
        weights[np.argmax(c - 0.5 * diagonal)] = 1.0
    used: list[int] = np.flatnonzero(weights).tolist()
    for _ in range(10 * len(c) + 50):
        m = len(used)
        system = np.full((m + 1, m + 1), scale)
        system[:m, :m] = H[np.ix_(used, used)]
        system[range(m), range(m)] += 1e-15 * scale  # solvable also where cuts depend on each other
        system[m, m] = 0.0
        try:
            goal = np.linalg.solve(system, np.append(c[used] - c[used].max(), scale))[:m]
        except np.linalg.LinAlgError:
            break
        now = weights[used]
        if (goal > 0).all():
            weights[used] = goal
            slopes = c - H[:, used] @ goal
            best_used = slopes[used].max()
            slopes[used] = -np.inf
            if not slopes.max() > best_used + 1e-15 * scale:
                break
            used.append(int(np.argmax(slopes)))
        else:
            how_far = np.where(goal > 0, np.inf, now / np.maximum(now - goal, np.finfo(np.float64).tiny))
            leaving = int(np.argmin(how_far))
            weights[used] = np.maximum(now + how_far[leaving] * (goal - now), 0.0)
            weights[used.pop(leaving)] = 0.0
    return np.asarray(weights / weights.sum())


def cut(w: Floats, value: float, grad: Floats, alpha: float) -> tuple[Floats, float]:
    """Return the tangent of the risk R = f − (alpha/2)‖·‖² at w: R(w') ≥ slope·w' + offset."""
    slope = grad - alpha * w
    return slope, float(value - 0.5 * alpha * (w @ w) - slope @ w)
