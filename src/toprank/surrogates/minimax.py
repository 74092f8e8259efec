"""The largest hinge over pairs: the loss whose perceptron meets the lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_positive
from ..measures import NDCG, Measure
from .base import Surrogate


@dataclass(frozen=True)
class Minimax(Surrogate):
    """φ_C(s, R) = max_{i,j: R_i>R_j} (Δ + s_j − s_i)₊ (online perceptrons, Eq. 27), O(m log m).

    Where it is below Δ no pair is out of order, so with Δ ≥ 1 it bounds 1 − NDCG, 1 − NDCG@k and 1 − AP alike;
    `upper_bounds` names the first.

    >>> value, grad = Minimax().value_and_grad([0.0, 0.5, 3.0], [1, 0, 2], [0, 3])
    >>> value, grad.tolist()
    (1.5, [-1.0, 1.0, 0.0])
    """

    margin: float = 1.0
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    lipschitz: ClassVar[float] = sqrt(2)

    def __post_init__(self) -> None:
        check_positive(margin=self.margin)

    @property
    def upper_bounds(self) -> Measure | None:
        """NDCG, and with it every measure that is 1 when no pair is out of order, where Δ ≥ 1."""
        return NDCG() if self.margin >= 1 else None

    def per_query(self, scores: Floats, y: Floats, ptr: Ints) -> tuple[Floats, Floats]:
        """Return φ_C of each list and e_j* − e_i* of a pair that attains it (Eq. 29)."""
        from . import _margin_kernels as kernels

        losses, grad = np.empty(len(ptr) - 1), np.empty_like(scores)
        kernels.minimax_lists(scores, y, self.margin, ptr, losses, grad)
        return losses, grad
