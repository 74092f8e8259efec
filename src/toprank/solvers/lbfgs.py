"""Limited-memory BFGS for smooth objectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats
from ..objective import Objective
from .base import STALLED, STOPPED, Solution, Solver, Watch, gradient_gap, refuse_l1
from .deadline import OUT_OF_TIME, out_of_time
from .metric import Metric


@dataclass(frozen=True)
class LBFGS(Solver):
    """v ← v − H ∇f, H from the last `memory` gradient differences, v the weights in the coordinates of `Metric`.

    Stops where the largest slope in v is at most `tol` times what it is at w = 0: neither the scale of the loss nor the
    units of the features change when that is.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> from toprank.penalties import L2
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> objective = Objective(data, tr.surrogates.ListNet(), L2(1.0))
    >>> solution = LBFGS().minimize(objective)
    >>> solution.converged, bool(solution.check(objective).gap < 1e-8)
    (True, True)
    """

    max_iter: int = 500
    tol: float = 1e-6
    memory: int = 20
    watch: Watch | None = None

    def minimize(self, objective: Objective, w0: Floats | None = None) -> Solution:
        """Minimise a differentiable objective with scipy's L-BFGS-B."""
        refuse_l1(self, objective)
        from scipy.optimize import minimize

        at_zero = objective.value_and_grad(np.zeros(objective.n_features))
        metric = Metric.of(objective, at_zero[1])
        start = np.zeros(objective.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        goal = self.tol * max(float(np.abs(metric.gradient(at_zero[1])).max()), 1e-300)
        current = latest = _Point(metric, start, *(at_zero if w0 is None else objective.value_and_grad(start)))
        # scipy's first step has length 1: u is scaled so that this step leads to the minimum that the metric predicts.
        scale = max(float(np.linalg.norm(current.slope)), 1e-300)
        values: list[float] = []
        norms: list[float] = []

        def point(u: Floats) -> _Point:
            w = start + metric.weights(scale * u)
            return _Point(metric, w, *objective.value_and_grad(w))

        def fun(u: Floats) -> tuple[float, Floats]:
            nonlocal latest
            if out_of_time():
                raise _StopError(OUT_OF_TIME)
            if u.any():
                latest = point(u)
            return latest.value, scale * latest.slope

        def callback(intermediate_result: Any) -> None:
            nonlocal current
            current = latest if intermediate_result.fun == latest.value else point(intermediate_result.x)
            values.append(current.value)
            norms.append(float(np.linalg.norm(current.grad)))
            if self.watch is not None and self.watch(len(values), current.w, current.value):
                raise _StopError(STOPPED)

        # ftol is a relative decrease: at machine precision it only ends a search that makes no progress.
        options = {"maxiter": self.max_iter, "gtol": scale * goal, "ftol": 1e-15, "maxcor": self.memory, "maxls": 40}
        try:
            u = np.zeros_like(start)
            result = minimize(fun, u, jac=True, method="L-BFGS-B", callback=callback, options=options)
            message = f"the gradient did not reach tol in {self.max_iter} steps" if result.status == 1 else STALLED
        except _StopError as stop:
            message = str(stop)
        converged = bool(np.abs(current.slope).max() <= goal)
        norm = float(np.linalg.norm(current.grad))
        return Solution(
            w=current.w,
            value=current.value,
            grad_norm=norm,
            gap=gradient_gap(norm, objective),
            n_iter=len(values),
            converged=converged,
            message="" if converged and message != STOPPED else message,
            chosen=message == STOPPED,
            trace={"value": np.array(values), "grad_norm": np.array(norms)},
        )


class _StopError(Exception):
    """Raised inside scipy's loop to leave it."""


class _Point:
    """Weights, and the objective there."""

    def __init__(self, metric: Metric, w: Floats, value: float, grad: Floats) -> None:
        self.w, self.value, self.grad, self.slope = w, value, grad, metric.gradient(grad)
