"""Perceptron-like algorithms for online learning to rank: its figures and bounds, recomputed."""

from __future__ import annotations

from ..exhibits import by_name
from .separable import fig1, regret, upper_and_lower
from .streams import eta_dependence, fig2, fig3, kernel_or_map

FIGURES = by_name(fig1, regret, fig2, fig3, eta_dependence, upper_and_lower, kernel_or_map)
