"""What a surrogate is: a value that turns scores and grades into a loss per list and its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from .._typing import ArrayLike, Floats, Ints
from ..data import validation
from ..errors import InputError
from ..measures.base import Measure

NO_FLOATS: Floats = np.empty(0)
"""Given where there are no weights of documents, or where no curvature is wanted."""
NO_PLACES: Ints = np.empty(0, dtype=np.int64)


class Surrogate(ABC):
    """A loss of scores s and grades y, summed over lists; it never sees X.

    Subclasses are frozen dataclasses and implement `per_query`; those of the library are `CompiledSurrogate`s.
    """

    weighs_documents: ClassVar[bool] = False
    """Whether the loss is a sum over preferred documents, each of which may weigh more or less."""

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

    @abstractmethod
    def per_query(
        self, scores: Floats, y: Floats, ptr: Ints, doc_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the loss of each list and the (sub)gradient in the scores; input is taken as already checked.

        `doc_weight` is given to losses that weigh documents alone; the others call `refuse_doc_weight`.
        """

    def value_and_grad(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        ptr: ArrayLike,
        weight: ArrayLike | None = None,
        doc_weight: ArrayLike | None = None,
    ) -> tuple[float, Floats]:
        """Return Σ_q weight_q · loss_q and its (sub)gradient in the scores; blocks of queries add up.

        `doc_weight` is one weight per document, for losses that are sums over preferred documents.
        """
        s = validation.as_scores(scores)
        check_finite_scores(s)
        labels = validation.as_labels(y, len(s))
        validation.check_grades(labels)
        bounds = validation.as_ptr(ptr, len(s))
        weights = validation.as_query_weight(weight, len(bounds) - 1)
        if doc_weight is None:
            return weighted(*self.per_query(s, labels, bounds), bounds, weights)
        doc_weights = validation.as_doc_weight(doc_weight, len(s))
        refuse_doc_weight(self, doc_weights)
        return weighted(*self.per_query(s, labels, bounds, doc_weights), bounds, weights)


class CompiledSurrogate(Surrogate):
    """A surrogate whose loss is a compiled function of lists: `per_query` and the objective both call `fill`."""

    @abstractmethod
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
        """Fill the loss of each list and the gradient in the scores; return −1 or the number of a list it refuses.

        `curve`, where it has a length and the loss has one, gets the diagonal of the curvature. `doc_weight` and
        `place` have length 0 where there are no weights of documents and no drawn order of documents of one grade.
        """

    @property
    def tie_seed(self) -> int | None:
        """The seed of the order of documents of one grade, where the loss wants a random one; else None."""
        return None

    def per_query(
        self, scores: Floats, y: Floats, ptr: Ints, doc_weight: Floats | None = None, place: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """Return the loss of each list and the (sub)gradient in the scores; input is taken as already checked.

        `place`, for losses with a `tie_seed`, is each document's place in its list by grade (`places_by_grade`).
        """
        losses, grad = np.empty(len(ptr) - 1), np.empty_like(scores)
        self._fill_or_raise(scores, y, ptr, losses, grad, NO_FLOATS, doc_weight, place)
        return losses, grad

    def _fill_or_raise(
        self,
        scores: Floats,
        y: Floats,
        ptr: Ints,
        losses: Floats,
        grad: Floats,
        curve: Floats,
        doc_weight: Floats | None = None,
        place: Ints | None = None,
    ) -> None:
        refuse_doc_weight(self, doc_weight)
        doc_weights, places = NO_FLOATS if doc_weight is None else doc_weight, NO_PLACES if place is None else place
        refused = self.fill(scores, y, ptr, losses, grad, curve, doc_weights, places)
        if refused >= 0:
            a, b = int(ptr[refused]), int(ptr[refused + 1])
            raise self.refusal(scores[a:b], y[a:b], refused, a)

    def refusal(self, scores: Floats, y: Floats, query: int, row: int) -> InputError:
        """Return the error for a list that `fill` refused, by its scores, grades, number and first row."""
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            return InputError(f"the score in row {row + bad[0]} is {scores[bad[0]]}: scores must be finite")
        return InputError(f"{type(self).__name__} cannot take query {query}")


class Curvature(ABC):
    """Σ_q weight_q · loss_q at some scores with its derivatives; it must pickle, so that workers can hold it."""

    loss: float
    slopes: Floats

    @abstractmethod
    def product(self, v: Floats) -> Floats:
        """Return the Hessian times v, one value per document."""


class TwiceDifferentiable(Surrogate):
    """A surrogate whose Hessian in the scores is known as a product: what Newton-type solvers need."""

    @abstractmethod
    def curvature(
        self, scores: Floats, y: Floats, ptr: Ints, weight: Floats | None, doc_weight: Floats | None = None
    ) -> Curvature:
        """Return Σ_q weight_q · loss_q at these scores with its gradient and (generalised) Hessian."""


def weighted(losses: Floats, grad: Floats, ptr: Ints, weight: Floats | None) -> tuple[float, Floats]:
    """Weigh each list's loss and gradient, and add the losses up."""
    if weight is None:
        return float(losses.sum()), grad
    return float((losses * weight).sum()), grad * np.repeat(weight, np.diff(ptr))


def check_finite_scores(scores: Floats) -> None:
    """Refuse scores that are infinite or missing.

    >>> check_finite_scores(np.array([0.0, np.inf]))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: the score in row 1 is inf: a loss needs finite scores
    """
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise InputError(f"the score in row {bad[0]} is {scores[bad[0]]}: a loss needs finite scores")


def refuse_doc_weight(surrogate: Surrogate, doc_weight: Floats | None) -> None:
    """Refuse weights of documents where the loss is not a sum over preferred documents."""
    if doc_weight is not None and not surrogate.weighs_documents:
        raise InputError(
            f"{type(surrogate).__name__} takes no weights of documents: it is not a sum over preferred documents, as "
            "Slam, ListNet and PairwiseHinge are"
        )


def gain_too_large(y: Floats, row: int) -> InputError:
    """Return the error for a list whose gains 2^grade − 1 are too large to add up."""
    worst = int(y.argmax())
    return InputError(
        f"y has the grade {y[worst]:g} in row {row + worst}: 2^grade − 1 is too large to add up, use smaller grades"
    )
