"""What a surrogate is: a value that turns scores and grades into a loss per list and its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from .._typing import ArrayLike, Floats, Ints
from ..data import validation
from ..measures.base import Measure


@dataclass(frozen=True, eq=False)
class ListFunction:
    """A loss of lists as a C function, with its parameters: an objective calls it while the rows are in the cache."""

    address: int
    codes: Ints
    numbers: Floats

    def fill(self, scores: Floats, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> int:
        """Fill losses, gradient and (where it has a length) curvature; return −1 or the list it cannot take."""
        from ..core._call_kernels import call

        return int(call(self.address, scores, y, ptr, self.codes, self.numbers, losses, grad, curve))


class Surrogate(ABC):
    """A loss of scores s and grades y, summed over lists; it never sees X.

    Subclasses are frozen dataclasses and implement `per_query` alone.
    """

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether the loss is convex in the scores; a `ClassVar` where no parameter decides it."""

    @property
    def smooth(self) -> bool:
        """Whether the gradient is continuous, so that L-BFGS gets to a minimum; a `ClassVar` as `convex` is."""
        return True

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss (1 − measure, or the count it counts) this surrogate never falls below."""
        return None

    @property
    def list_function(self) -> ListFunction | None:
        """The same loss as a C function, where there is one; it belongs to this process and is not pickled."""
        return None

    @abstractmethod
    def per_query(self, scores: Floats, y: Floats, ptr: Ints) -> tuple[Floats, Floats]:
        """Return the loss of each list and the (sub)gradient in the scores; input is taken as already checked."""

    def value_and_grad(
        self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, weight: ArrayLike | None = None
    ) -> tuple[float, Floats]:
        """Return Σ_q weight_q · loss_q and its (sub)gradient in the scores; blocks of queries add up."""
        s = validation.as_scores(scores)
        labels = validation.as_labels(y, len(s))
        validation.check_grades(labels)
        bounds = validation.as_ptr(ptr, len(s))
        return weighted(*self.per_query(s, labels, bounds), bounds, validation.as_query_weight(weight, len(bounds) - 1))


class Curvature(ABC):
    """The second derivative of a loss at fixed scores, as a product; it must pickle, so that workers can hold it."""

    @abstractmethod
    def product(self, v: Floats) -> Floats:
        """Return H v in score space, each list's part times its weight."""


class TwiceDifferentiable(Surrogate):
    """A surrogate whose Hessian in the scores is known as a product: what Newton-type solvers need."""

    @abstractmethod
    def curvature(self, scores: Floats, y: Floats, ptr: Ints, weight: Floats | None) -> Curvature:
        """Return the (generalised) Hessian of Σ_q weight_q · loss_q at these scores."""


def weighted(losses: Floats, grad: Floats, ptr: Ints, weight: Floats | None) -> tuple[float, Floats]:
    """Weigh each list's loss and gradient, and add the losses up."""
    if weight is None:
        return float(losses.sum()), grad
    return float((losses * weight).sum()), grad * np.repeat(weight, np.diff(ptr))
