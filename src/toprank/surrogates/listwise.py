"""Listwise losses: ListMLE, ListNet and RankCosine, each with a transform φ of the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import LARGEST_GRADE, check_choice, check_count
from ..errors import InputError
from .base import NO_FLOATS, NO_PLACES, CompiledSurrogate, gain_too_large
from .transforms import Exponential, Transform, TransformCode, parse_transform

if TYPE_CHECKING:
    from ._listwise_kernels import ListwiseRule

Truth: TypeAlias = Literal["grades", "gains", "order"]
"""The ground-truth scores g: the grades y, the gains 2^y − 1, or (y being an order without ties) how many documents
stand below."""

_SOFTMAX = Exponential()
_TRUTHS = ("grades", "gains", "order")


class Listwise(CompiledSurrogate):
    """A loss of φ(s) and φ(g) over whole lists, computed from logarithms: any finite score gives a finite value."""

    truth: Truth
    transform: Transform

    def __post_init__(self) -> None:
        check_choice(_TRUTHS, truth=self.truth)
        object.__setattr__(self, "transform", parse_transform(self.transform))

    @property
    def rule(self) -> ListwiseRule:
        """The truth and the transform, as the kernels take them."""
        from ._listwise_kernels import ListwiseRule

        return ListwiseRule(_TRUTHS.index(self.truth), int(self.transform.code), *self.transform.parameters)

    def diagonal(self, scores: Floats, y: Floats, ptr: Ints) -> Floats:
        """Return the diagonal of the Gauss-Newton matrix in the scores: the Hessian's part that is never negative."""
        curve = np.empty_like(scores)
        self._fill_or_raise(scores, y, ptr, np.empty(len(ptr) - 1), np.empty_like(scores), curve)
        return curve

    def refusal(self, scores: Floats, y: Floats, query: int, row: int) -> InputError:
        """Return the error for a list: scores outside φ, an order with ties, or gains that are too large."""
        a, b = self.transform.parameters
        if self.transform.code == TransformCode.LINEAR:
            with np.errstate(over="ignore"):
                values = a * scores + b
            if not values.min() > 0 or np.isinf(values.max()):
                worst = int(scores.argmax() if values.min() > 0 else scores.argmin())
                return InputError(
                    f"the score {scores[worst]:.6g} in row {row + worst} is outside {self.transform}, which needs "
                    f"scores above {-b / a:.6g}: raise b, or keep the weights in a ball (radius=) so that b > a·B·M"
                )
        if self.truth == "order":
            return InputError(f'truth="order" needs distinct y in each query, and query {query} has ties')
        if self.truth == "gains" and y.max() > LARGEST_GRADE:
            return gain_too_large(y, row)
        return super().refusal(scores, y, query, row)


@dataclass(frozen=True)
class ListNet(Listwise):
    """ℓ(s, y) = −Σ_π P_g(π) log P_s(π), P(π) = Π_i φ(s_π(i)) / Σ_{j≥i} φ(s_π(j)): cross entropy of permutations.

    π runs over the first `k` places: 1 is the well-known top-one form −Σ_i P_g(i) log P_s(i) at the cost of a softmax,
    a small k costs m^k, and "full" is the paper's loss over whole permutations, for lists of up to 12 documents.
    `truth` says what g is: the grades, the gains 2^grade − 1, or the order of y. `transform` may be a name.

    >>> value, grad = ListNet().value_and_grad([0.0, 0.0], [1, 0], [0, 2])
    >>> round(value, 4), grad.round(4).tolist()
    (0.6931, [-0.2311, 0.2311])
    >>> ListNet(transform="sigmoid", k="full").value_and_grad([1e4, -1e4], [0, 1], [0, 2])[0] > 4000
    True
    """

    truth: Truth = "grades"
    transform: Transform = _SOFTMAX
    k: int | Literal["full"] = 1
    weighs_documents: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k != "full":
            check_count(k=self.k)

    @property
    def convex(self) -> bool:
        """Convex with the exponential transform."""
        return isinstance(self.transform, Exponential)

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
        """Fill the cross entropy of each list and its gradient P_s − P_g, in scores."""
        if self.k == 1:
            from ._listnet_kernels import listnet_of_lists

            return int(listnet_of_lists(scores, y, ptr, doc_weight, self.rule, losses, grad, curve))
        from ._permutation_kernels import listnet_top_k_of_lists

        k = 0 if self.k == "full" else int(self.k)
        return int(listnet_top_k_of_lists(scores, y, ptr, k, self.rule, losses, grad, curve))

    def per_query(
        self, scores: Floats, y: Floats, ptr: Ints, doc_weight: Floats | None = None, place: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """Return the loss of each list and its gradient; weights multiply the targets of the top-one form."""
        if doc_weight is not None and self.k != 1:
            raise InputError(f"ListNet(k={self.k!r}) takes no weights of documents: the top-one form (k=1) does")
        return super().per_query(scores, y, ptr, doc_weight, place)

    def refusal(self, scores: Floats, y: Floats, query: int, row: int) -> InputError:
        """Return the error for a list: too long for this k, or what no listwise loss takes."""
        from ._permutation_kernels import FULL_LIMIT, MOST_BEGINNINGS

        m = len(y)
        if self.k != 1 and m > FULL_LIMIT and (self.k == "full" or float(m) ** (self.k - 1) > MOST_BEGINNINGS):
            return InputError(
                f"ListNet(k={self.k!r}) is too much work for query {query} of {m} documents: take a smaller k (1 fits "
                f"any list; the full form is for up to {FULL_LIMIT} documents)"
            )
        return super().refusal(scores, y, query, row)


@dataclass(frozen=True)
class ListMLE(Listwise):
    """ℓ(s, y) = −log P_s(y) = −Σ_i [log φ(s_{y(i)}) − log Σ_{j≥i} φ(s_{y(j)})]: the likelihood of the true order.

    Only the order of y counts, so `truth` "grades" and "gains" are the same; "order" also refuses ties. With
    `ties="fixed"` documents of equal grade stay in the order of the rows. With `ties="sampled"` the loss is the mean
    over `orders` orders of them: one that `seed` draws, and others in which each grade is rotated, so that a document
    takes places all over its grade. In an objective the features of the documents decide what is drawn, so that the
    order of the rows does not matter; given scores alone, the rows decide.

    >>> value, grad = ListMLE().value_and_grad([0.0, 0.0], [1, 0], [0, 2])
    >>> round(value, 4), grad.tolist()
    (0.6931, [-0.5, 0.5])
    """

    truth: Truth = "grades"
    transform: Transform = _SOFTMAX
    ties: Literal["fixed", "sampled"] = "fixed"
    seed: int = 0
    orders: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("fixed", "sampled"), ties=self.ties)
        check_count(orders=self.orders)

    @property
    def convex(self) -> bool:
        """Convex with the exponential transform."""
        return isinstance(self.transform, Exponential)

    @property
    def tie_seed(self) -> int | None:
        """The seed, where documents of one grade are put in random orders."""
        return int(self.seed) if self.ties == "sampled" and self.truth != "order" else None

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
        """Fill −log of the likelihood of each list's order, or its mean over several orders, and the gradient."""
        from ._listmle_kernels import OrderRule, listmle_of_lists

        orders = OrderRule(self.truth == "order", 0 if self.tie_seed is None else self.orders, int(self.seed) % 2**63)
        return int(listmle_of_lists(scores, y, ptr, place, self.rule, orders, losses, grad, curve))


@dataclass(frozen=True)
class RankCosine(Listwise):
    """ℓ(s, y) = ½ (1 − φ(g)·φ(s) / (‖φ(g)‖ ‖φ(s)‖)): the cosine between true and predicted scores, in [0, ½].

    >>> value, grad = RankCosine().value_and_grad([2.0, 0.0], [2, 0], [0, 2])
    >>> round(value, 12), bool(abs(grad).max() < 1e-12)
    (0.0, True)
    """

    truth: Truth = "grades"
    transform: Transform = _SOFTMAX
    convex: ClassVar[bool] = False

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
        """Fill half of one minus the cosine of each list, and its gradient."""
        from ._rankcosine_kernels import rank_cosine_of_lists

        return int(rank_cosine_of_lists(scores, y, ptr, self.rule, losses, grad, curve))
