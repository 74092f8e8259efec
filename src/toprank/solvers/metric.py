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

    @classmethod
    def of(cls, objective: Objective, zero: Floats | None = None) -> Metric:
        """Look at a sample of the objective at w = 0 and beside it; `zero`, where it is known, is ∇f(0)."""
        spread, look = objective.spread(), objective.sample
        if zero is None or look is not objective:
            _, zero = look.value_and_grad(np.zeros(objective.n_features))
        rough = cls._made(spread, 0.0)
        slope = rough.gradient(zero)
        way, length = rough.weights(slope), float(np.linalg.norm(slope))  # the length in units of the spread
        bend = 0.0
        if length > 0:
            _, beside = look.value_and_grad(-_NUDGE / length * way)
            bend = float((zero - beside) @ way) / (_NUDGE * length) - objective.alpha * float(way @ way) / length**2
        return cls._made((bend if 0 < bend < np.inf else max(length, 1e-300)) * spread, objective.alpha)

    @classmethod
    def _made(cls, spread: Floats, alpha: float) -> Metric:
        from . import _metric_kernels as kernels

        diagonal = (spread.diagonal() if spread.ndim == 2 else spread) + alpha
        scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        U = None
        if spread.ndim == 2:
            U = scale[:, None] * spread * scale
            np.fill_diagonal(U, 1.0 + _RIDGE)
            if not kernels.factorise(U):
                U = None
        return cls(scale, U)

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
