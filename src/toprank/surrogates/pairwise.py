"""Losses over pairs of documents of different grade."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_choice
from ..errors import InputError
from .base import NO_FLOATS, NO_PLACES, CompiledSurrogate, Curvature, TwiceDifferentiable, weighted

if TYPE_CHECKING:
    from ._pairwise_kernels import Arranged, HingeRule

Loss = Literal["hinge", "squared_hinge"]


@dataclass(frozen=True)
class PairwiseHinge(CompiledSurrogate, TwiceDifferentiable):
    """ℓ(s, y) = Σ_{y_i > y_j} [1 − (s_i − s_j)]₊, or the sum of squares: O(n log n) a list, never the pairs.

    `normalize=True` takes the mean over a list's pairs instead of the sum, so that a long list does not count more
    than a short one. Only the squared hinge has a second derivative (a generalised one where it has none).

    >>> value, grad = PairwiseHinge().value_and_grad([0.5, 0.0, 0.0], [2, 1, 0], [0, 3])
    >>> value, grad.tolist()
    (2.0, [-2.0, 0.0, 2.0])
    """

    loss: Loss = "hinge"
    normalize: bool = False
    convex: ClassVar[bool] = True
    weighs_documents: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice(("hinge", "squared_hinge"), loss=self.loss)

    @property
    def smooth(self) -> bool:
        """Whether it is the squared hinge."""
        return self.loss == "squared_hinge"

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
        """Fill the hinges of each list; per document its gradient counts violated pairs, or sums twice their slack."""
        from . import _pairwise_kernels as kernels

        kernels.hinge_of_lists(scores, y, ptr, doc_weight, self._rule, losses, grad)
        return -1

    @property
    def _rule(self) -> HingeRule:
        from ._pairwise_kernels import HingeRule

        return HingeRule(self.loss == "squared_hinge", self.normalize)

    def curvature(
        self, scores: Floats, y: Floats, ptr: Ints, weight: Floats | None, doc_weight: Floats | None = None
    ) -> PairCurvature:
        """Return loss, gradient and Hessian: 2 × the weighted graph Laplacian of the pairs inside the margin."""
        from . import _pairwise_kernels as kernels

        if self.loss != "squared_hinge":
            raise InputError("the hinge has no second derivative: use loss='squared_hinge', or cutting planes")
        weights = NO_FLOATS if doc_weight is None else doc_weight
        losses, slopes = np.empty(len(ptr) - 1), np.empty(len(scores))
        self.fill(scores, y, ptr, losses, slopes, doc_weight=weights)
        loss, slopes = weighted(losses, slopes, ptr, weight)
        order, level = np.empty((2, len(scores)), dtype=np.int32)
        t, c = np.empty((2, len(scores)))
        arranged, factor = kernels.Arranged(order, t, level, c), np.ones(len(ptr) - 1)
        kernels.arrange_lists(scores, y, ptr, weights, self._rule, arranged, factor)
        return PairCurvature(loss, slopes, ptr, arranged, factor if weight is None else factor * weight)


@dataclass(frozen=True, eq=False)
class PairCurvature(Curvature):
    """The pairs inside the margin, known by the documents of each list in an order in which they are quickly found."""

    loss: float
    slopes: Floats
    ptr: Ints
    arranged: Arranged
    factor: Floats

    def product(self, v: Floats) -> Floats:
        """Return 2 factor_q Σ_j c (v_i − v_j) over the pairs of i inside the margin, for each document i."""
        from . import _pairwise_kernels as kernels

        out = np.empty_like(v)
        kernels.hessian_product(v, self.ptr, self.arranged, self.factor, out)
        return out


def pair_counts(y: Floats, ptr: Ints, doc_weight: Floats = NO_FLOATS) -> Floats:
    """Return for each list the number of pairs of different grade, or the sum of the preferred documents' weights.

    >>> pair_counts(np.array([2.0, 1.0, 0.0, 0.0, 1.0]), np.array([0, 4, 5])).tolist()
    [5.0, 0.0]
    """
    from . import _pairwise_kernels as kernels

    pairs = np.empty(len(ptr) - 1)
    kernels.count_pairs(y, ptr, doc_weight, pairs)
    return pairs


def misordered_pairs(scores: Floats, y: Floats, ptr: Ints) -> tuple[Floats, Floats]:
    """Return for each list how many pairs the scores put the wrong way round, and how many they leave tied.

    >>> misordered_pairs(np.array([0.0, 1.0, 1.0]), np.array([2.0, 1.0, 0.0]), np.array([0, 3]))
    (array([2.]), array([1.]))
    """
    from . import _pairwise_kernels as kernels

    wrong, tied = np.empty(len(ptr) - 1), np.empty(len(ptr) - 1)
    kernels.misordered(scores, y, ptr, wrong, tied)
    return wrong, tied
