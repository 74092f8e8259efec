"""What a step costs in each direction, guessed from the spread of the features: solvers walk in these units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..objective import Objective

_NUDGE = 1e-3
"""How far the scores are moved to see how the loss bends, as a share of their spread."""
_RIDGE = 1e-10
"""Features that depend on each other leave this much of their own, so that the matrix has a root."""


@dataclass(frozen=True, eq=False)
class Metric:
    """M = c S + alpha I, S the spread of the features inside lists and c the bend of the loss at w = 0: M ≈ ∇²f(0).

    With M = D⁻¹ UᵀU D⁻¹ a solver walks in v = U D⁻¹ w, in which the objective bends about alike in all directions,
    whatever the units of the features. Beyond `objective.WHOLE` features S is its diagonal, and U is None.
    """

    scale: Floats
    U: Floats | None
    zero: tuple[float, Floats]
    """f(0) and ∇f(0): how steep it is before anything is learned, which a tolerance is a share of."""

    @classmethod
    def of(cls, objective: Objective) -> Metric:
        """Look at the objective twice, at w = 0 and beside it."""
        spread = objective.spread()
        zero = objective.value_and_grad(np.zeros(objective.n_features))
        rough = cls._made(spread, 0.0, zero)
        slope = rough.gradient(zero[1])
        way, length = rough.weights(slope), float(np.linalg.norm(slope))  # the length in units of the spread
        bend = 0.0
        if length > 0:
            _, beside = objective.value_and_grad(-_NUDGE / length * way)
            bend = float((zero[1] - beside) @ way) / (_NUDGE * length) - objective.alpha * float(way @ way) / length**2
        return cls._made((bend if 0 < bend < np.inf else max(length, 1e-300)) * spread, objective.alpha, zero)

    @classmethod
    def _made(cls, spread: Floats, alpha: float, zero: tuple[float, Floats]) -> Metric:
        from . import _metric_kernels as kernels

        diagonal = (spread.diagonal() if spread.ndim == 2 else spread) + alpha
        scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        U = None
        if spread.ndim == 2:
            U = scale[:, None] * spread * scale
            np.fill_diagonal(U, 1.0 + _RIDGE)
            if not kernels.factorise(U):
                U = None
        return cls(scale, U, zero)

    def gradient(self, g: Floats) -> Floats:
        """Return a gradient in w as one in v."""
        from . import _metric_kernels as kernels

        out = self.scale * g
        if self.U is not None:
            kernels.forward(self.U, out)
        return out

    def weights(self, v: Floats) -> Floats:
        """Return v as weights w."""
        from . import _metric_kernels as kernels

        out = np.array(v)
        if self.U is not None:
            kernels.backward(self.U, out)
        return np.asarray(self.scale * out)

    def solve(self, r: Floats) -> Floats:
        """Return M⁻¹ r."""
        return self.weights(self.gradient(r))
