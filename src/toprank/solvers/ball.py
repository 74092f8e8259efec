"""Limited-memory BFGS inside a ball of weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._typing import Floats
from ..data.validation import check_count, check_positive
from ..objective import Objective
from .base import STOPPED, Solution, Solver, Watch, gradient_gap, refuse_l1
from .deadline import OUT_OF_TIME, out_of_time

_SUFFICIENT = 1e-4
"""The share of slope × step by which the value must fall, for a step to be accepted."""
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class BallSolution(Solution):
    """A solution of min f(w), ‖w‖ ≤ radius: `grad_norm` is the norm of the projected gradient step."""

    radius: float = np.inf

    def check(self, objective: Objective) -> BallSolution:
        """Return the same weights with value, gradient and gap computed anew from the data."""
        value, grad = objective.value_and_grad(self.w)
        norm = float(np.linalg.norm(_projected_step(self.w, grad, self.radius)))
        return replace(self, value=value, grad_norm=norm, gap=ball_gap(self.w, grad, self.radius, objective))


def ball_gap(w: Floats, grad: Floats, radius: float, objective: Objective) -> float:
    """An upper bound of f(w) − min f in the ball, for a convex f; infinite for others."""
    if not objective.surrogate.convex:
        return float("inf")
    return min(tangent_gap(w, grad, radius), gradient_gap(float(np.linalg.norm(grad)), objective))


def tangent_gap(w: Floats, grad: Floats, radius: float) -> float:
    """max_{‖v‖ ≤ radius} ∇f(w)·(w − v) = ∇f(w)·w + radius ‖∇f(w)‖: how far the tangent at w falls inside the ball."""
    return float(grad @ w) + radius * float(np.linalg.norm(grad))


def project(w: Floats, radius: float) -> Floats:
    """Return the point of the ball nearest to w.

    >>> project(np.array([3.0, 4.0]), 2.5).tolist()
    [1.5, 2.0]
    """
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


def _projected_step(w: Floats, grad: Floats, radius: float) -> Floats:
    return w - project(w - grad, radius)


@dataclass(frozen=True)
class BallLBFGS(Solver):
    """w ← w + t (v − w), v = argmin of the L-BFGS model at w over ‖v‖ ≤ radius; stops at D(w) ≤ tol · D(0).

    D(w) = max_{‖v‖ ≤ radius} ∇f(w)·(w − v) is how far the tangent at w falls inside the ball; it bounds f(w) − min f of
    a convex f. The model's matrix is a multiple of the identity plus one of low rank, so its minimiser in the ball is
    exact and needs no pass over the data. Every iterate stays in the ball.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> solution = BallLBFGS(radius=0.5).minimize(Objective(data, tr.surrogates.ListNet()))
    >>> solution.w.round(6).tolist(), bool(solution.gap < 1e-8)
    ([0.5], True)
    """

    radius: float
    max_iter: int = 500
    tol: float = 1e-6
    memory: int = 20
    watch: Watch | None = None

    def __post_init__(self) -> None:
        check_positive(radius=self.radius, tol=self.tol)
        check_count(max_iter=self.max_iter, memory=self.memory)

    def minimize(self, objective: Objective, w0: Floats | None = None) -> BallSolution:
        """Minimise a differentiable objective over the ball."""
        refuse_l1(self, objective)
        start = np.zeros(objective.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        w = project(start, self.radius)
        value, grad = objective.value_and_grad(w)
        grad_at_zero = grad if w0 is None else objective.value_and_grad(np.zeros_like(w))[1]
        goal = self.tol * self.radius * max(float(np.linalg.norm(grad_at_zero)), 1e-300)
        steps: list[Floats] = []
        changes: list[Floats] = []
        trace: dict[str, list[float]] = {"value": [], "grad_norm": []}
        message, n_iter = f"the gap did not reach tol in {self.max_iter} steps", 0
        for n_iter in range(1, self.max_iter + 1):
            if tangent_gap(w, grad, self.radius) <= goal:
                message, n_iter = "", n_iter - 1
                break
            if out_of_time():
                message, n_iter = OUT_OF_TIME, n_iter - 1
                break
            target = _model_minimiser(w, grad, steps, changes, self.radius)
            found = self._line_search(objective, w, value, grad, target)
            if found is None and steps:
                steps, changes = [], []
                found = self._line_search(objective, w, value, grad, _model_minimiser(w, grad, [], [], self.radius))
            if found is None:
                message, n_iter = "no step decreases the objective further", n_iter - 1
                break
            new, value, new_grad = found
            step, change = new - w, new_grad - grad
            if step @ change > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
                steps, changes = [*steps[1 - self.memory :], step], [*changes[1 - self.memory :], change]
            w, grad = new, new_grad
            trace["value"].append(value)
            trace["grad_norm"].append(float(np.linalg.norm(_projected_step(w, grad, self.radius))))
            if self.watch is not None and self.watch(n_iter, w, value):
                message = STOPPED
                break
        converged = tangent_gap(w, grad, self.radius) <= goal
        return BallSolution(
            w=w,
            value=value,
            grad_norm=float(np.linalg.norm(_projected_step(w, grad, self.radius))),
            gap=ball_gap(w, grad, self.radius, objective),
            n_iter=n_iter,
            converged=converged,
            message="" if converged and message != STOPPED else message,
            chosen=message == STOPPED,
            trace={name: np.array(values) for name, values in trace.items()},
            radius=self.radius,
        )

    def _line_search(
        self, objective: Objective, w: Floats, value: float, grad: Floats, target: Floats
    ) -> tuple[Floats, float, Floats] | None:
        """Return the first point between the target and w where the value falls enough; both ends are in the ball."""
        direction = target - w
        slope = float(grad @ direction)
        if not slope < 0:
            return None
        t = 1.0
        for _ in range(_HALVINGS):
            new = project(w + t * direction, self.radius)
            new_value, new_grad = objective.value_and_grad(new)
            if new_value <= value + _SUFFICIENT * t * slope:
                return new, new_value, new_grad
            # Next, the lowest point of the parabola with this value and slope at 0 and the new value at t.
            t_lowest = -slope * t * t / (2 * (new_value - value - slope * t))
            t = min(max(t_lowest, 0.1 * t), 0.5 * t)
        return None


def _model_minimiser(w: Floats, grad: Floats, steps: list[Floats], changes: list[Floats], radius: float) -> Floats:
    """argmin_{‖v‖ ≤ radius} ∇f·(v − w) + ½ (v − w)ᵀ B (v − w), B the BFGS matrix of these steps and gradient changes.

    With B = σI − U diag(c) Uᵀ the stationary points (B + λI) v = B w − ∇f are known for every λ, and ‖v(λ)‖ falls
    with λ: Newton's method on 1/‖v(λ)‖ finds the one of norm `radius`.
    """
    if steps:
        S, Y = np.array(steps).T, np.array(changes).T
        inner = S.T @ Y
        sigma = float(Y[:, -1] @ Y[:, -1] / inner[-1, -1])
        lower, D = np.tril(inner, -1), np.diag(np.diag(inner))
        middle = np.block([[sigma * S.T @ S, lower], [lower.T, -D]])
        Q, R = np.linalg.qr(np.hstack([sigma * S, Y]))
        middle_R = R @ np.linalg.solve(middle, R.T)
        eigenvalues, V = np.linalg.eigh(sigma * np.eye(len(middle_R)) - 0.5 * (middle_R + middle_R.T))
        U = Q @ V
        eigenvalues = np.maximum(eigenvalues, 1e-10 * sigma)
    else:
        sigma = max(float(np.linalg.norm(grad)) / min(1.0, radius), 1e-300)
        U, eigenvalues = np.zeros((len(w), 0)), np.zeros(0)
    w_in_U = U.T @ w
    b_in_U = eigenvalues * w_in_U - U.T @ grad
    b_outside = sigma * (w - U @ w_in_U) - (grad - U @ (U.T @ grad))
    outside_square = float(b_outside @ b_outside)
    shift = 0.0
    for _ in range(100):
        norm = np.sqrt((b_in_U**2 / (eigenvalues + shift) ** 2).sum() + outside_square / (sigma + shift) ** 2)
        if norm <= radius * (1 + 1e-12):
            break
        slope = ((b_in_U**2 / (eigenvalues + shift) ** 3).sum() + outside_square / (sigma + shift) ** 3) / norm
        shift += (norm - radius) / radius * norm / slope
    return project(U @ (b_in_U / (eigenvalues + shift)) + b_outside / (sigma + shift), radius)
