"""Listwise losses: ListMLE, ListNet and RankCosine, each with a transform φ of the scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_choice, check_count
from ..errors import InputError
from .base import ListFunction, Surrogate
from .transforms import Exponential, Transform, TransformCode, parse_transform

Truth: TypeAlias = Literal["grades", "gains", "order"]
"""The ground-truth scores g: the grades y, the gains 2^y − 1, or (y being an order without ties) how many documents
stand below."""

_SOFTMAX = Exponential()
_TRUTHS = ("grades", "gains", "order")
_STEPS = 10**6
"""Most beginnings of a permutation that the top-k form walks through in one list."""
_NONE: Floats = np.empty(0)


@cache
def _kernels() -> Any:
    """Return the compiled part: numba loads on first use, and an import statement in each call takes a microsecond."""
    from . import _listwise_kernels

    return _listwise_kernels


class Listwise(Surrogate):
    """A loss of φ(s) and φ(g) over whole lists, in log space: any finite score gives a finite value."""

    truth: Truth
    transform: Transform

    def __post_init__(self) -> None:
        check_choice(_TRUTHS, truth=self.truth)
        object.__setattr__(self, "transform", parse_transform(self.transform))

    @property
    @abstractmethod
    def _loss(self) -> tuple[str, bool, bool, int]:
        """The kernel's name for the loss, whether ties are refused, whether they are sampled, and the seed."""

    def at_epoch(self, epoch: int) -> Self:
        """Return the loss of that epoch: another one only where it samples."""
        return self

    @property
    def list_function(self) -> ListFunction | None:
        """The loss as a C function of a run of lists."""
        return ListFunction(_kernels().listwise.address, *_parameters(self))

    def per_query(self, scores: Floats, y: Floats, ptr: Ints) -> tuple[Floats, Floats]:
        """Return the loss of each list and its gradient in the scores."""
        losses, grad = np.empty(len(ptr) - 1), np.empty_like(scores)
        self._run(scores, y, ptr, losses, grad, _NONE)
        return losses, grad

    def diagonal(self, scores: Floats, y: Floats, ptr: Ints) -> Floats:
        """Return the diagonal of the Gauss-Newton matrix in the scores: the Hessian's part that is never negative."""
        curve = np.empty_like(scores)
        self._run(scores, y, ptr, np.empty(len(ptr) - 1), np.empty_like(scores), curve)
        return curve

    def _run(self, scores: Floats, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> None:
        """Fill the arrays."""
        function = self.list_function
        if function is not None:
            refused = function.fill(scores, y, ptr, losses, grad, curve)
            if refused >= 0:
                self._check_scores(scores)
                raise _has_ties(refused)

    def _check_scores(self, scores: Floats) -> None:
        """Refuse scores that φ does not map above 0."""
        a, b = self.transform.parameters
        if self.transform.code == TransformCode.LINEAR and not (a * scores + b).min(initial=np.inf) > 0:
            row = int((a * scores).argmin())
            raise InputError(
                f"the score {scores[row]:.6g} in row {row} is outside {self.transform}, which needs scores above "
                f"{-b / a:.6g}: raise b, or keep the weights in a ball (radius=) so that b > a·B·M"
            )


@lru_cache(maxsize=256)
def _parameters(surrogate: Listwise) -> tuple[Ints, Floats]:
    """Return what the kernel wants to know: codes, and numbers with the targets of all small grades."""
    kernels = _kernels()
    name, strict, sampled, seed = surrogate._loss
    truth, code = _TRUTHS.index(surrogate.truth), int(surrogate.transform.code)
    codes = np.array([kernels.Loss[name], truth, code, strict, sampled, seed % 2**63], dtype=np.int64)
    numbers = np.empty(2 + kernels.LEVELS**2)
    numbers[:2] = surrogate.transform.parameters
    kernels.target_table(truth, code, *surrogate.transform.parameters, numbers[2:].reshape(kernels.LEVELS, -1))
    return codes, numbers


def _has_ties(query: int) -> InputError:
    return InputError(f'truth="order" needs distinct y in each query, and query {query} has ties')


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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k != "full":
            check_count(k=self.k)

    @property
    def convex(self) -> bool:
        """Convex with the exponential transform."""
        return isinstance(self.transform, Exponential)

    @property
    def _loss(self) -> tuple[str, bool, bool, int]:
        return "LISTNET", False, False, 0

    @property
    def list_function(self) -> ListFunction | None:
        """The top-one form as a C function of a run of lists; None for the others, whose cost grows with m^k."""
        return super().list_function if self.k == 1 else None

    def _run(self, scores: Floats, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> None:
        if self.k == 1:
            super()._run(scores, y, ptr, losses, grad, curve)
            return
        from . import _permutation_kernels as kernels

        k = 0 if self.k == "full" else int(self.k)
        self._check_lengths(np.diff(ptr), k, kernels.FULL_LIMIT)
        self._check_scores(scores)
        target = self.transform.log(self._true_scores(y, ptr))
        kernels.top_k_lists(self.transform.log(scores), target, ptr, k, losses, grad, curve)
        slope = self.transform.log_slope(scores)
        grad *= slope
        if len(curve):
            curve *= slope * slope

    def _true_scores(self, y: Floats, ptr: Ints) -> Floats:
        """Return g: the grades, the gains, or the number of documents below."""
        if self.truth != "order":
            return y if self.truth == "grades" else 2.0**y - 1
        below = np.empty_like(y)
        for q, (a, b) in enumerate(pairwise(ptr.tolist())):
            order = np.argsort(-y[a:b], kind="stable")
            different = np.count_nonzero(np.diff(y[a:b][order]))
            if 0 < different < b - a - 1:
                raise _has_ties(q)
            below[a + order] = np.arange(b - a - 1, -1, -1)
        return below

    def _check_lengths(self, lengths: Ints, k: int, limit: int) -> None:
        q = int(lengths.argmax()) if len(lengths) else 0
        m = int(lengths.max(initial=0))
        if m > limit and (k == 0 or float(m) ** (k - 1) > _STEPS):
            raise InputError(
                f"ListNet(k={self.k!r}) is too much work for query {q} of {m} documents: take a smaller k (1 fits any "
                f"list; the full form is for up to {limit} documents)"
            )


@dataclass(frozen=True)
class ListMLE(Listwise):
    """ℓ(s, y) = −log P_s(y) = −Σ_i [log φ(s_{y(i)}) − log Σ_{j≥i} φ(s_{y(j)})]: the likelihood of the true order.

    Only the order of y counts, so grades and gains are one truth; "order" also refuses ties. Documents of one grade
    keep their order with `ties="fixed"`; with `ties="sampled"` they are shuffled by `seed` and the grades of their
    list, whichever lists stand beside it (rankers change the seed with each epoch).

    >>> value, grad = ListMLE().value_and_grad([0.0, 0.0], [1, 0], [0, 2])
    >>> round(value, 4), grad.tolist()
    (0.6931, [-0.5, 0.5])
    """

    truth: Truth = "grades"
    transform: Transform = _SOFTMAX
    ties: Literal["fixed", "sampled"] = "fixed"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(("fixed", "sampled"), ties=self.ties)

    @property
    def convex(self) -> bool:
        """Convex with the exponential transform."""
        return isinstance(self.transform, Exponential)

    def at_epoch(self, epoch: int) -> Self:
        """Return the same loss with fresh orders inside the grades, where they are sampled."""
        if self.ties == "fixed" or self.truth == "order":
            return self
        return replace(self, seed=int(np.random.SeedSequence([self.seed % 2**63, epoch]).generate_state(1)[0]))

    @property
    def _loss(self) -> tuple[str, bool, bool, int]:
        return "LISTMLE", self.truth == "order", self.ties == "sampled", int(self.seed)


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

    @property
    def _loss(self) -> tuple[str, bool, bool, int]:
        return "RANKCOSINE", False, False, 0
