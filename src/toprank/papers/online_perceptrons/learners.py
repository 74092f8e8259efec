"""The three learners of the paper, how they are drawn, and the step sizes that each may choose from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...certificates.generalization import largest_norm
from ...data.dataset import QueryDataset
from ...rankers import MinimaxPerceptron, OnlineListNet, SlamPerceptron
from ...rankers.online import Scale

TWO, THREE, LISTNET = "Algorithm 2 (SLAM)", "Algorithm 3 (minimax)", "ListNet"
NAMES: dict[type[Any], str] = {SlamPerceptron: TWO, MinimaxPerceptron: THREE, OnlineListNet: LISTNET}
STYLES = {TWO: "C0", THREE: "C1", LISTNET: "C2"}
"""The same colours in all figures."""
MULTIPLES = (1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)


def etas(kind: type[Any], past: QueryDataset, scale: Scale = None) -> tuple[float | str, ...]:
    """Return the step sizes to try, in units of 1/R_X², the same for everybody; Algorithm 3 does not depend on it.

    R_X is the largest norm of a document: a grid of fixed numbers would miss by orders of magnitude on raw features.
    Scaled features are about 1 each, so that R_X² is their number.
    """
    if kind is MinimaxPerceptron:
        return (1.0,)
    unit = 1 / (max(largest_norm(past) ** 2, 1e-300) if scale is None else past.n_features)
    constant = tuple(multiple * unit for multiple in MULTIPLES)
    return constant if kind is SlamPerceptron else (*constant, *(f"sqrt:{eta!r}" for eta in constant))


def thin(n: int, points: int = 400) -> Any:
    """Return round numbers at even steps of their logarithm, for curves over many rounds."""
    return np.unique(np.geomspace(1, n, points).astype(np.int64)) - 1
