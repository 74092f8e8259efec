"""How steeply an objective curves in each direction, estimated from the spread of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..objective import Objective

_SMALL_STEP = 1e-3
"""How far the scores are moved to estimate the curvature of the loss, as a share of their spread."""
_RIDGE = 1e-10
"""Added to the diagonal, so that the matrix has a root where features depend on each other."""


@dataclass(frozen=True, eq=False)
class Metric:
    """M = c S + alpha I ≈ ∇²f(0), S the spread of the features inside lists and c the curvature of the loss at w = 0.

    With M = D⁻¹ UᵀU D⁻¹ a solver works on v = U D⁻¹ w, in which the objective curves about alike in all directions,
    whatever the units of the features. Beyond `objective.WHOLE` features S is its diagonal, and U is None.
    """

    scale: Floats
    U: Floats | None

    @classmethod
    def of(cls, objective: Objective, grad_at_zero: Floats | None = None) -> Metric:
        """Evaluate a sample of the queries at w = 0 and near it; `grad_at_zero` is ∇f(0), where it is known."""
        spread, sample = objective.spread(), objective.sample
        if grad_at_zero is None or sample is not objective:
            _, grad_at_zero = sample.value_and_grad(np.zeros(objective.n_features))
        by_spread = cls._factorised(spread, 0.0)
        slope = by_spread.gradient(grad_at_zero)
        direction, slope_norm = by_spread.weights(slope), float(np.linalg.norm(slope))  # in units of the spread
        curvature = 0.0
        if slope_norm > 0:
            _, grad_beside = sample.value_and_grad(-_SMALL_STEP / slope_norm * direction)
            curvature = float((grad_at_zero - grad_beside) @ direction) / (_SMALL_STEP * slope_norm)
            curvature -= float(objective.penalty.curvature_product(direction) @ direction) / slope_norm**2
        scale = curvature if 0 < curvature < np.inf else max(slope_norm, 1e-300)
        return cls._factorised(scale * spread, objective.penalty.strong_convexity)

    @classmethod
    def _factorised(cls, spread: Floats, alpha: float) -> Metric:
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
