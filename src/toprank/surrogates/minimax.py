"""The largest hinge over pairs: the loss whose perceptron meets the lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from .._typing import Floats, Ints
from ..data.validation import check_finite, check_positive
from ..measures import AP, NDCG, Measure
from .base import NO_FLOATS, NO_PLACES, CompiledSurrogate

if TYPE_CHECKING:
    from ._margin_kernels import MinimaxRule


@dataclass(frozen=True)
class Minimax(CompiledSurrogate):
    """φ_C(s, R) = max_{i,j: R_i>R_j} (Δ + s_j − s_i)₊ (online perceptrons, Eq. 27), O(m log m).

    Where it is below Δ no pair is out of order, so with Δ ≥ 1 it bounds 1 − NDCG, 1 − NDCG@k and 1 − AP alike;
    `upper_bounds` names the first.

    >>> value, grad = Minimax().value_and_grad([0.0, 0.5, 3.0], [1, 0, 2], [0, 3])
    >>> value, grad.tolist()
    (1.5, [-1.0, 1.0, 0.0])
    """

    margin: float = 1.0
    above: float | None = None
    """Where given, grades are relevant (above this) or not, as AP reads them: two relevant documents are no pair."""
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    lipschitz: ClassVar[float] = sqrt(2)

    def __post_init__(self) -> None:
        check_positive(margin=self.margin)
        if self.above is not None:
            check_finite(above=self.above)

    @property
    def upper_bounds(self) -> Measure | None:
        """NDCG (AP of binary grades), and with it every measure that is 1 when no pair is out of order, where Δ ≥ 1."""
        if self.margin < 1:
            return None
        return NDCG() if self.above is None else AP(above=self.above)

    @property
    def rule(self) -> MinimaxRule:
        """Δ, and how grades are read, as the kernels take them."""
        from ._margin_kernels import MinimaxRule

        return MinimaxRule(self.margin, self.above is not None, self.above or 0.0)

    def fill(
        self,
        scores: Floats,
        y: Floats,
        ptr: Ints,
        losses: Floats,
        grad: Floats,
        curve: Floats = NO_FLOATS,
        doc_weight: Floats = NO_FLOATS,
        place: Ints = NO_PLACES,
    ) -> int:
        """Fill φ_C of each list and e_j* − e_i* of a pair that attains it (Eq. 29)."""
        from . import _margin_kernels as kernels

        kernels.largest_hinge_of_lists(scores, y, ptr, self.rule, losses, grad)
        return -1
