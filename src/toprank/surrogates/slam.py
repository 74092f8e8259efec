"""SLAM: large-margin listwise losses that bound 1 − NDCG, 1 − NDCG@k or 1 − AP from above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from .._typing import ArrayLike, Floats, Ints
from ..data import validation
from ..data.validation import check_choice, check_positive
from ..errors import InputError
from ..measures import AP, NDCG, Measure, Norm, measure
from ..measures.order import Ties
from ..measures.plan import discount_table
from ..measures.presets import Short
from .base import NO_FLOATS, NO_PLACES, CompiledSurrogate, gain_too_large

if TYPE_CHECKING:
    from ._margin_kernels import SlamRule


@dataclass(frozen=True)
class Slam(CompiledSurrogate):
    """φ_v(s, R) = Σ_i v_i max(0, max_{j: R_j<R_i} (Δ + s_j − s_i)) (online perceptrons, Eq. 9), O(m log m).

    The weights v make φ_v an upper bound of the measure's loss on every list with a relevant document:
    v_i = 1/r for the r relevant documents (AP, Eq. 10; relevant means a grade above `measure.above`), or
    G(R_i) D(pos(i)) / Z_k for the first k documents by grade (NDCG, NDCG@k; Eq. 11, 24), G and D being the measure's.

    Parameters
    ----------
    measure : ndcg, ndcg@k or map.
    margin : Δ.
    within : the order of the documents of one grade. "index" makes φ_v convex in s. "score" gives the smallest of these
        bounds and is the loss of Algorithm 2, where the order at w_t fixes the weights.
    weights : "paper", or for map "tight": v_i = (m − r)/(r (m − r + i)) for the i-th of r relevant documents among m.
        It is an upper bound of 1 − AP too, and never above the paper's (docs/theory.md has the proof).

    >>> value, grad = Slam("ndcg@10").value_and_grad([0.0, 0.5], [1, 0], [0, 2])
    >>> value, grad.tolist()
    (1.5, [-1.0, 1.0])
    >>> Slam("map").document_weights([2, 1, 0, 0], [0, 4]).tolist()
    [0.5, 0.5, 0.0, 0.0]
    >>> Slam("map", weights="tight").document_weights([2, 1, 0, 0], [0, 4]).round(4).tolist()
    [0.3333, 0.25, 0.0, 0.0]
    >>> scores, y, ptr = [0.0, 2.0, 1.5], [1, 1, 0], [0, 3]
    >>> [round(Slam("ndcg", within=order).value_and_grad(scores, y, ptr)[0], 4) for order in ("index", "score")]
    [1.7263, 1.2737]
    """

    measure: Measure | str = "ndcg"
    margin: float = 1.0
    within: Literal["index", "score"] = "index"
    weights: Literal["paper", "tight"] = "paper"
    smooth: ClassVar[bool] = False
    weighs_documents: ClassVar[bool] = True
    lipschitz: ClassVar[float] = sqrt(2)
    """In the 2-norm of the scores: Σ_i v_i ‖e_k − e_i‖₂ ≤ √2 (the paper's bound by the 1-norm is 2)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", slam_measure(self.measure))
        check_positive(margin=self.margin)
        check_choice(("index", "score"), within=self.within)
        check_choice(("paper", "tight"), weights=self.weights)
        if self.weights == "tight" and not isinstance(self.measure, AP):
            raise InputError(f"weights='tight' are known for map, not for {self.measure}: leave weights out")

    @property
    def convex(self) -> bool:
        """Whether the weights do not depend on the scores: `within="index"`, or AP with equal weights."""
        return self.within == "index" or (isinstance(self.measure, AP) and self.weights == "paper")

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure itself, where Δ ≥ 1 and its rules are the paper's (Theorem 4, Theorem 8).

        A pair with equal scores counts as out of order, so the bound holds for the worst order of tied documents and
        with it for every other and for their mean. It may fail where single precision ties scores that differ.
        """
        target = self.target
        plain = target.ties != Ties.ID
        plain &= target.short != Short.ZERO if isinstance(target, NDCG) else target.norm == Norm.ALL
        return target if plain and self.margin >= 1 else None

    @property
    def target(self) -> AP | NDCG:
        """The measure behind the weights."""
        return slam_measure(self.measure)

    def document_weights(self, y: ArrayLike, ptr: ArrayLike, scores: Floats | None = None) -> Floats:
        """Return v_i of every document, equal grades in input order, or by `scores` where they are given."""
        from . import _margin_kernels as kernels

        labels = validation.as_labels(y)
        validation.check_grades(labels)
        bounds = validation.as_ptr(ptr, len(labels))
        v = np.empty(len(labels))
        rule = replace(self, within="index" if scores is None else "score").rule(int(np.diff(bounds).max(initial=1)))
        refused = kernels.weights_of_lists(labels if scores is None else scores, labels, bounds, rule, v)
        if refused >= 0:
            raise gain_too_large(labels[bounds[refused] : bounds[refused + 1]], int(bounds[refused]))
        return v

    def rule(self, longest: int) -> SlamRule:
        """Return Δ, gains and discounts as the kernels take them, for lists of up to `longest` documents."""
        from ._margin_kernels import SlamRule

        target = self.target
        if isinstance(target, AP):
            return SlamRule(
                self.margin, True, target.above, 0, self.within == "score", self.weights == "tight", NO_FLOATS
            )
        places = longest if target.k is None else min(target.k, longest)
        discounts = discount_table(places)[target.discount, :places]
        return SlamRule(self.margin, False, 0.0, int(target.gain), self.within == "score", False, discounts)

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
        """Fill φ_v of each list and Σ_i v_i (e_k(i) − e_i) over the active hinges (Eq. 13)."""
        from . import _margin_kernels as kernels

        rule = self.rule(int(np.diff(ptr).max(initial=1)))
        return int(kernels.slam_of_lists(scores, y, ptr, doc_weight, rule, losses, grad))

    def refusal(self, scores: Floats, y: Floats, query: int, row: int) -> InputError:
        """Return the error for a list: gains that are too large."""
        return gain_too_large(y, row)


def slam_measure(name: Measure | str) -> AP | NDCG:
    """Return the measure, refusing those for which SLAM has no weights.

    >>> slam_measure("mrr")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: SLAM has weights for ndcg, ndcg@k and map, not for mrr
    """
    parsed = measure(name)
    if isinstance(parsed, NDCG) or (isinstance(parsed, AP) and parsed.k is None):
        return parsed
    raise InputError(f"SLAM has weights for ndcg, ndcg@k and map, not for {parsed}")
