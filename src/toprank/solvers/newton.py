"""Truncated Newton for losses with a known Hessian product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..data.validation import check_count, check_positive
from ..objective import Objective
from .base import STALLED, Solution, Solver, gradient_gap, refuse_l1
from .deadline import OUT_OF_TIME, out_of_time
from .metric import Metric

_SAMPLE_TOL = 1e-2
"""The tolerance on a sample of the queries, whose minimum is not that of all."""
_ROUNDING = 1e-15
"""What rounding may add to a value: near the minimum it is more than a step takes off."""


@dataclass(frozen=True)
class Newton(Solver):
    """w ← w + t p with ∇²f(w) p ≈ −∇f(w) by conjugate gradients, t halved until f falls; needs alpha > 0.

    The surrogate must be `TwiceDifferentiable`. It stops when the gap ‖∇f‖²/(2 alpha), which bounds f(w) − min f, is
    at most tol · f(w), or when steps no longer change the value. With many queries it starts at the
    minimum over a sample of them.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> from toprank.penalties import L2
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> solution = Newton().minimize(Objective(data, tr.surrogates.PairwiseHinge("squared_hinge"), L2(2.0)))
    >>> solution.w.round(6).tolist(), solution.n_iter
    ([0.5], 1)
    """

    tol: float = 1e-6
    max_iter: int = 100
    max_products: int = 500
    """Conjugate gradient steps in one Newton step, at most."""

    def __post_init__(self) -> None:
        check_positive(tol=self.tol)
        check_count(max_iter=self.max_iter, max_products=self.max_products)

    def minimize(self, objective: Objective, w0: Floats | None = None) -> Solution:
        """Minimise from w0 (zero where None)."""
        refuse_l1(self, objective)
        check_positive(alpha=objective.penalty.alpha)
        metric, sample = Metric.of(objective), objective.sample
        w = np.zeros(objective.n_features) if w0 is None else np.array(w0, dtype=np.float64)
        if w0 is None and sample is not objective:
            w = self._iterate(sample, metric, w, _SAMPLE_TOL).w
        return self._iterate(objective, metric, w, self.tol)

    def _iterate(self, objective: Objective, metric: Metric, w: Floats, tol: float) -> Solution:
        value, grad, hessian = objective.expansion(w)
        start = float(np.linalg.norm(grad))
        values, norms, products = [value], [start], 0
        converged, message = False, f"the gap did not reach tol in {self.max_iter} steps"
        for _ in range(self.max_iter):
            norm = norms[-1]
            moved = len(values) > 1 or norm == 0 or bool(w.any())  # w = 0 scores all alike, however near to the minimum
            if moved and gradient_gap(norm, objective) <= tol * value:
                converged, message = True, ""
                break
            if out_of_time():
                message = OUT_OF_TIME
                break
            accuracy = min(0.1, np.sqrt(norm / start))
            p, used = conjugate_gradients(hessian, grad, accuracy, self.max_products, metric.solve)
            products += used
            slope, t = float(grad @ p), 1.0
            trial = objective.expansion(w + p)
            while trial[0] > value * (1 + _ROUNDING) + 1e-4 * t * slope and t > 1e-10:
                t *= 0.5
                trial = objective.expansion(w + t * p)
            if trial[0] >= value and not float(np.linalg.norm(trial[1])) < norm:  # the gradient has more digits
                message = STALLED
                break
            w, (value, grad, hessian) = w + t * p, trial
            values.append(value)
            norms.append(float(np.linalg.norm(grad)))
        return Solution(
            w=w,
            value=value,
            grad_norm=norms[-1],
            gap=gradient_gap(norms[-1], objective),
            n_iter=len(values) - 1,
            converged=converged,
            message=message,
            trace={"value": np.array(values), "grad_norm": np.array(norms), "products": np.array([float(products)])},
        )


def conjugate_gradients(
    hessian: Callable[[Floats], Floats],
    grad: Floats,
    tol: float,
    limit: int,
    precondition: Callable[[Floats], Floats] = np.copy,
) -> tuple[Floats, int]:
    """Return p with ‖H p + g‖ ≤ tol ‖g‖, H positive definite, and how many products with H that took.

    Lengths are measured by `precondition` ≈ H⁻¹.


    >>> conjugate_gradients(lambda v: 2 * v, np.array([1.0, 4.0]), 1e-9, 10)
    (array([-0.5, -2. ]), 1)
    """
    p, residual = np.zeros_like(grad), -grad
    direction = precondition(residual)
    square = float(residual @ direction)
    goal = tol * tol * square
    for used in range(1, limit + 1):
        product = hessian(direction)
        step = square / float(direction @ product)
        p += step * direction
        residual -= step * product
        preconditioned = precondition(residual)
        previous, square = square, float(residual @ preconditioned)
        if square <= goal or out_of_time():
            return p, used
        direction = preconditioned + (square / previous) * direction
    return p, limit
