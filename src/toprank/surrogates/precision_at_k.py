"""Surrogates of precision at k: struct, ramp, avg and max.

A list has n₊ positives (grades above `above`); s⁺ and s⁻ are the scores of its positives and negatives, largest first,
and Δ is the number of negatives among its k best scores. Every loss adds up the k largest or smallest scores of a
class, which takes O(n + k log k): no list is sorted as a whole.

    Δ ≤ ramp ≤ avg ≤ max,    avg = struct at k = n₊,    struct is no bound where k < n₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_count
from ..errors import InputError
from ..measures.base import Measure
from ..measures.binary import P, places_at_share
from .base import NO_FLOATS, NO_PLACES, CompiledSurrogate

KAPPA = 0.25
"""The share of the positives that the paper's experiments put on top."""


def cutoff(k: int | None, kappa: float | None) -> tuple[int, float]:
    """Return (k, 0) or (0, kappa), checked: what a kernel turns into the k of each list.

    >>> cutoff(10, None), cutoff(None, 0.5), cutoff(None, None)
    ((10, 0.0), (0, 0.5), (0, 0.25))
    >>> cutoff(10, 0.5)
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: give k (a number of places) or kappa (a share of the positives), not both
    """
    if k is not None and kappa is not None:
        raise InputError("give k (a number of places) or kappa (a share of the positives), not both")
    if k is not None:
        check_count(k=k)
        return int(k), 0.0
    if kappa is None:
        return 0, KAPPA
    if isinstance(kappa, bool) or not isinstance(kappa, (int, float, np.number)) or not 0 < kappa <= 1:
        raise InputError(f"kappa must be a share above 0 and at most 1, got {kappa!r}")
    return 0, float(kappa)


@dataclass(frozen=True)
class PrecisionSurrogate(CompiledSurrogate):
    """A loss of the top k: `k` places, or `kappa` of the positives, k = ⌈κ n₊⌉ (neither: κ = 0.25).

    A list with fewer than k positives is judged at k = n₊, one without positives counts 0. `normalize` divides each
    list's loss by its k, which is the paper's κ-form (Section 5).
    """

    k: int | None = None
    kappa: float | None = None
    normalize: bool = False
    above: float = 0.0
    """Grades above this are positive."""
    function: ClassVar[str]
    """The kernel of the loss, in `_at_k_kernels`."""
    is_upper_bound: ClassVar[bool] = True
    """Whether the loss is never below the mistakes Δ."""

    def __post_init__(self) -> None:
        cutoff(self.k, self.kappa)

    @property
    def upper_bounds(self) -> Measure | None:
        """P@k, whose loss k · (1 − P@k) = Δ this is never below on a list with at least k positives."""
        return None if self.k is None or not self.is_upper_bound else P(k=self.k, above=self.above)

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
        """Fill the loss of each list and a subgradient in the scores; return −1, or the list with infinite scores."""
        from . import _at_k_kernels as kernels

        infinite = np.flatnonzero(~np.isfinite(scores))
        if len(infinite):
            return int(np.searchsorted(ptr, infinite[0], side="right")) - 1
        labels = y > self.above
        k = self.k_of(np.diff(np.append(0, np.cumsum(labels))[ptr]))
        getattr(kernels, self.function)(scores, labels, ptr, k, losses, grad)
        if self.normalize:
            share = 1 / np.maximum(k, 1)
            losses *= share
            grad *= np.repeat(share, np.diff(ptr))
        return -1

    def k_of(self, positives: Ints) -> Ints:
        """Return the k of lists with so many positives."""
        k, kappa = cutoff(self.k, self.kappa)
        return np.minimum(positives, k if k else places_at_share(kappa, positives)).astype(np.int64)


@dataclass(frozen=True)
class PrecStruct(PrecisionSurrogate):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{y=1} s_i (Eq. 3, over ŷ with exactly k ones): the loss of SVMperf.

    Where k < n₊ it is no upper bound of Δ and can be any negative number: positives outside the top k lower it.

    >>> PrecStruct(k=1).value_and_grad([2.0, 0.0, 0.5], [1, 1, 0], [0, 3])
    (0.0, array([ 0., -1.,  0.]))
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    function: ClassVar[str] = "prec_struct_of_lists"
    is_upper_bound: ClassVar[bool] = False


@dataclass(frozen=True)
class PrecRamp(PrecisionSurrogate):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{i≤k} s⁺_i (Eq. 4): tight, but not convex.

    >>> PrecRamp(k=1).value_and_grad([2.0, 0.0, 0.5], [1, 1, 0], [0, 3])[0]
    0.0
    """

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    function: ClassVar[str] = "prec_ramp_of_lists"


@dataclass(frozen=True)
class PrecAvg(PrecisionSurrogate):
    """max_{k'≤k} (k − k') + Σ_{i≤k−k'} s⁻_i − D Σ_{i>k'} s⁺_i, D = (k − k')/(n₊ − k') (Eq. 7): the tight convex bound.

    >>> value, grad = PrecAvg(k=1).value_and_grad([2.0, 0.0, 0.5], [1, 1, 0], [0, 3])
    >>> value, grad.tolist()
    (0.5, [-0.5, -0.5, 1.0])
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    function: ClassVar[str] = "prec_avg_of_lists"


@dataclass(frozen=True)
class PrecMax(PrecisionSurrogate):
    """max_{j≤k} Σ_{i≤j} (1 + s⁻_i − i-th lowest positive score) (Eq. 6): convex, the loosest bound.

    >>> PrecMax(k=1).value_and_grad([2.0, 0.0, 0.5], [1, 1, 0], [0, 3])
    (1.5, array([ 0., -1.,  1.]))
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False
    function: ClassVar[str] = "prec_max_of_lists"


@dataclass(frozen=True)
class MistakesAvg(PrecisionSurrogate):
    """Δ, the negatives in the top k; its "gradient" is the step of the perceptron that rewards on average (Alg. 1).

    1 on the negatives in the top k, −D on the missed positives, D = Δ/(n₊ − true positives).

    >>> MistakesAvg(k=1).value_and_grad([2.0, 0.0, 2.5], [1, 1, 0], [0, 3])
    (1.0, array([-0.5, -0.5,  1. ]))
    """

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    function: ClassVar[str] = "mistakes_avg_of_lists"


@dataclass(frozen=True)
class MistakesMax(PrecisionSurrogate):
    """Δ, with the step of the perceptron that rewards the Δ best of the missed positives (Algorithm 2).

    >>> MistakesMax(k=1).value_and_grad([2.0, 0.0, 2.5], [1, 1, 0], [0, 3])
    (1.0, array([-1.,  0.,  1.]))
    """

    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    function: ClassVar[str] = "mistakes_max_of_lists"
