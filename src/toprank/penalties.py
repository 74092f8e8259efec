"""Penalties: what an objective adds to the mean loss to keep the weights small."""

from __future__ import annotations

from dataclasses import dataclass

from ._typing import Floats


@dataclass(frozen=True)
class L2:
    """(alpha/2) ‖w‖², which makes a convex objective alpha-strongly convex.

    >>> import numpy as np
    >>> penalty, w = L2(2.0), np.array([1.0, 3.0])
    >>> penalty.value(w), penalty.gradient(w).tolist(), penalty.curvature_product(w).tolist()
    (10.0, [2.0, 6.0], [2.0, 6.0])
    """

    alpha: float = 0.0

    def value(self, w: Floats) -> float:
        """Return (alpha/2) ‖w‖²."""
        return 0.5 * self.alpha * float(w @ w)

    def gradient(self, w: Floats) -> Floats:
        """Return alpha w."""
        return self.alpha * w

    def curvature_product(self, v: Floats) -> Floats:
        """Return the second derivative times v, alpha v; it does not depend on w."""
        return self.alpha * v
