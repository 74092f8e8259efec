"""Limited-memory BFGS for smooth objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..objective import Objective
from .base import Solution, Solver, gradient_gap
from .deadline import OUT_OF_TIME, out_of_time

Watch = Callable[[int, Floats, float], bool]
"""Called after each iteration with its number, the weights and the value; True stops the solver."""


STOPPED = "stopped on the validation set"


@dataclass(frozen=True)
class LBFGS(Solver):
    """w ← w − H ∇f(w), H from the last `memory` gradient differences; stops at ‖∇f‖∞ ≤ tol.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> objective = Objective(data, tr.surrogates.ListNet(), alpha=1.0)
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
        from scipy.optimize import minimize

        values: list[float] = []
        norms: list[float] = []
        last: dict[str, float] = {}

        def fun(w: Floats) -> tuple[float, Floats]:
            value, grad = objective.value_and_grad(w)
            last["value"], last["norm"] = value, float(np.linalg.norm(grad))
            return value, grad

        ended: list[str] = []

        def callback(w: Floats) -> None:
            values.append(last["value"])
            norms.append(last["norm"])
            if self.watch is not None and self.watch(len(values), w, last["value"]):
                ended.append(STOPPED)
            elif out_of_time():
                ended.append(OUT_OF_TIME)
            if ended:
                raise StopIteration

        start = np.zeros(objective.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        result = minimize(
            fun,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            # ftol is a relative decrease: at machine precision it only ends a search that has stalled.
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-14, "maxcor": self.memory, "maxls": 40},
        )
        norm = float(np.linalg.norm(result.jac))
        converged = bool(np.abs(result.jac).max() <= self.tol)
        if not ended and not converged:
            stalled = "the value no longer falls: rounding has been reached"
            ended.append(f"the gradient did not reach tol in {self.max_iter} steps" if result.status == 1 else stalled)
        return Solution(
            w=np.asarray(result.x, dtype=np.float64),
            value=float(result.fun),
            grad_norm=norm,
            gap=gradient_gap(norm, objective),
            n_iter=int(result.nit),
            converged=converged,
            message=ended[0] if ended else "",
            chosen=STOPPED in ended,
            trace={"value": np.array(values), "grad_norm": np.array(norms)},
        )
