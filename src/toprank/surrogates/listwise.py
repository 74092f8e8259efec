"""Listwise losses: ListMLE, ListNet and RankCosine, each with a transform φ of the scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_choice, check_count
from ..errors import InputError
from .base import Surrogate
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


class _Transformed(NamedTuple):
    """Scores as the kernels want them; an empty slope means that u' is the transform's a everywhere."""

    u: Floats
    """log φ(s)."""
    v: Floats
    """φ(s)/e^shift."""
    shift: Floats
    """One for each list, so that v neither overflows nor vanishes."""
    slope: Floats
    """u'(s)."""


def _transformed(transform: Transform, scores: Floats, ptr: Ints) -> _Transformed:
    """Apply φ, with numpy's vectorised exp and log between plain loops."""
    kernels = _kernels()
    a, b = transform.parameters
    v, shift = np.empty_like(scores), np.zeros(len(ptr) - 1)
    if transform.code == TransformCode.EXPONENTIAL:
        kernels.centre(scores, ptr, a, v, shift)
        return _Transformed(scores if a == 1 else a * scores, np.exp(v, out=v), shift, _NONE)
    if transform.code == TransformCode.LINEAR:
        np.multiply(scores, a, out=v)
        v += b
        if not v.min(initial=np.inf) > 0:
            row = int(v.argmin())
            raise InputError(
                f"the score {scores[row]:.6g} in row {row} is outside {transform}, which needs scores above "
                f"{-b / a:.6g}: raise b, or keep the weights in a ball (radius=) so that b > a·B·M"
            )
        return _Transformed(np.log(v), v, shift, a / v)
    e = np.abs(scores)
    e *= -a
    np.exp(e, out=e)
    u, slope = e + 1.0, np.empty_like(scores)
    kernels.sigmoid_parts(scores, ptr, a, e, np.log(u, out=u), v, slope, shift)
    return _Transformed(u, v, shift, slope)


class Listwise(Surrogate):
    """A loss of φ(s) and φ(g) over whole lists, in log space: any finite score gives a finite value."""

    truth: Truth
    transform: Transform

    def __post_init__(self) -> None:
        check_choice(_TRUTHS, truth=self.truth)
        object.__setattr__(self, "transform", parse_transform(self.transform))

    @abstractmethod
    def _run(self, phi: _Transformed, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> int:
        """Fill the arrays; return the query whose order has ties, or −1."""

    def at_epoch(self, epoch: int) -> Self:
        """Return the loss of that epoch: another one only where it samples."""
        return self

    def per_query(self, scores: Floats, y: Floats, ptr: Ints) -> tuple[Floats, Floats]:
        """Return the loss of each list and its gradient in the scores."""
        losses, grad = np.empty(len(ptr) - 1), np.empty_like(scores)
        self._checked_run(scores, y, ptr, losses, grad, _NONE)
        return losses, grad

    def diagonal(self, scores: Floats, y: Floats, ptr: Ints) -> Floats:
        """Return the diagonal of the Gauss-Newton matrix in the scores: the Hessian's part that is never negative."""
        curve = np.empty_like(scores)
        self._checked_run(scores, y, ptr, np.empty(len(ptr) - 1), np.empty_like(scores), curve)
        return curve

    def _checked_run(self, scores: Floats, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> None:
        tied = self._run(_transformed(self.transform, scores, ptr), y, ptr, losses, grad, curve)
        if tied >= 0:
            raise InputError(f'truth="order" needs distinct y in each query, and query {tied} has ties')

    @cached_property
    def _truth(self) -> tuple[int, int, float, float]:
        """Return what kernels need to know of truth and transform."""
        a, b = self.transform.parameters
        return _TRUTHS.index(self.truth), int(self.transform.code), float(a), float(b)


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

    def _run(self, phi: _Transformed, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> int:
        kernels = _kernels()
        if self.k == 1:
            return int(kernels.listnet_top_one(*phi, y, ptr, *self._truth, losses, grad, curve))
        k = 0 if self.k == "full" else int(self.k)
        self._check_lengths(np.diff(ptr), k, kernels.FULL_LIMIT)
        return int(kernels.listnet_top_k(phi.u, phi.slope, y, ptr, k, *self._truth, losses, grad, curve))

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
        if self.ties == "fixed":
            return self
        return replace(self, seed=int(np.random.SeedSequence([self.seed % 2**63, epoch]).generate_state(1)[0]))

    def _run(self, phi: _Transformed, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> int:
        kernels = _kernels()
        strict, sampled = self.truth == "order", self.ties == "sampled"
        seed = int(self.seed) % 2**63
        return int(kernels.listmle(*phi, y, ptr, strict, sampled, seed, self.transform.a, losses, grad, curve))


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

    def _run(self, phi: _Transformed, y: Floats, ptr: Ints, losses: Floats, grad: Floats, curve: Floats) -> int:
        kernels = _kernels()
        return int(kernels.rank_cosine(phi.v, phi.slope, y, ptr, *self._truth, losses, grad, curve))
