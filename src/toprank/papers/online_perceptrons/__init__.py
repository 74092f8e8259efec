"""Perceptron-like algorithms for online learning to rank: its figures and bounds, recomputed."""

from __future__ import annotations

from collections.abc import Callable

from ..exhibits import Exhibit
from .adversary import upper_and_lower
from .kernels import kernel_or_map
from .separable import fig1, regret
from .streams import eta_dependence, fig2, fig3

FIGURES: dict[str, Callable[..., Exhibit]] = {
    make.__name__: make for make in (fig1, regret, fig2, fig3, eta_dependence, upper_and_lower, kernel_or_map)
}
