"""The only place where X meets a surrogate: its mean over the queries plus a penalty."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from ._typing import Floats, Ints
from .data import blocks, linear
from .data.blocks import BlockResults
from .data.dataset import QueryDataset
from .data.validation import check_informative
from .errors import InputError
from .surrogates.base import (
    NO_FLOATS,
    NO_PLACES,
    CompiledSurrogate,
    Curvature,
    Surrogate,
    TwiceDifferentiable,
    no_doc_weight,
    weighted,
)

_Part: TypeAlias = tuple[QueryDataset, Ints]
"""A block with the weights of its queries, and the places of documents by grade where a loss draws them among ties."""


WHOLE = 500
"""Up to this many features the spread is a whole matrix; with more, one number for each feature."""


SAMPLE = 1 << 12
"""At least this many documents are read to see how features vary together."""


_WATCHERS: list[Callable[[float], None]] = []


@contextmanager
def watched(tell: Callable[[int, float], None]) -> Iterator[None]:
    """Call `tell` with the number and the value of each evaluation meanwhile."""
    count = itertools.count(1)
    _WATCHERS.append(lambda value: tell(next(count), value))
    try:
        yield
    finally:
        _WATCHERS.pop()


@dataclass(frozen=True, eq=False)
class Objective:
    """f(w) = Σ_q c_q ℓ(X_q w, y_q) / Σ_q c_q + (alpha/2) ‖w‖².

    Queries whose grades are all equal are not informative and count in neither sum. The sum runs over blocks of queries
    in a fixed order, so an executor changes the time it takes and not one bit of the result.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> value, grad = Objective(data, tr.surrogates.ListNet()).value_and_grad(np.zeros(1))
    >>> round(value, 4), grad.round(4).tolist()
    (0.6931, [-0.2311])
    """

    data: QueryDataset
    surrogate: Surrogate
    alpha: float = 0.0
    executor: Executor | None = None
    best: dict[str, Any] = field(default_factory=dict, repr=False)
    """The `alpha`, `value` and weights `w` of the lowest value so far: what is left where workers are lost."""

    @cached_property
    def weight(self) -> Floats:
        """Weight of each query: 0 where all grades are equal."""
        return _weight(self.data)

    @cached_property
    def total_weight(self) -> float:
        """Σ_q c_q over the informative queries."""
        total = float(self.weight.sum())
        check_informative(self.weight, self.data.n_docs, ", or its weight is 0")
        return total

    @cached_property
    def _parts(self) -> BlockResults[_Part]:
        """The blocks with the weights of their queries, where they lie."""
        compiled = isinstance(self.surrogate, CompiledSurrogate)
        if self.data.doc_weight is not None and not self.surrogate.weighs_documents:
            raise no_doc_weight(self.surrogate)
        prepare = partial(_prepare, self.surrogate)
        return self.data.keep(
            prepare, executor=self.executor, values=blocks.RUN_VALUES if compiled else blocks.BLOCK_VALUES
        )

    @property
    def n_features(self) -> int:
        """Length of w."""
        return self.data.n_features

    def value_and_grad(self, w: Floats) -> tuple[float, Floats]:
        """Return f(w) and a (sub)gradient: X w and Xᵀ g, the second from the cache."""
        total = self.total_weight
        try:
            loss, grad = self._parts.map_reduce(partial(_loss_and_grad, self.surrogate, w), _add_parts)
        except _RefusedError:  # per_query says why, in the rows of the whole data set
            self.surrogate.per_query(linear.scores(self.data.X, w), self.data.y, self.data.ptr)
            raise
        return self._note(loss, w), grad / total + self.alpha * w

    def _note(self, loss: float, w: Floats) -> float:
        """Return f(w), call the watchers, and keep the lowest value so far."""
        value = loss / self.total_weight + 0.5 * self.alpha * float(w @ w)
        for tell in _WATCHERS:
            tell(value)
        if not value >= self.best.get("value", np.inf) or self.alpha != self.best["alpha"]:
            self.best.update(alpha=self.alpha, value=value, w=w.copy())
        return value

    def spread(self) -> Floats:
        """Return the mean covariance of the features inside lists, d × d, or its diagonal for many features.

        It is the curvature of ListNet at w = 0, and near that of other losses up to a factor. The variances are those
        of all queries; a part of them is enough to know the correlations by.
        """
        step = max(1, self.data.n_docs // max(SAMPLE, 32 * self.n_features))
        diagonal = self._parts.map_reduce(_variances) / self.total_weight
        if self.n_features > WHOLE:
            return diagonal
        found = self._parts.map_reduce(partial(_covariances, step))
        seen = found.diagonal()
        factor = np.sqrt(np.divide(diagonal, seen, out=np.zeros_like(seen), where=seen > 0))
        found *= factor[:, None] * factor
        np.fill_diagonal(found, diagonal)
        return found

    def expansion(self, w: Floats) -> tuple[float, Floats, Callable[[Floats], Floats]]:
        """Return f(w), ∇f(w) and v ↦ ∇²f(w) v for a `TwiceDifferentiable` surrogate, two passes over X each."""
        if not isinstance(self.surrogate, TwiceDifferentiable):
            raise InputError(f"{type(self.surrogate).__name__} has no second derivative: use another solver")
        total = self.total_weight
        curved = self._parts.keep(partial(_curvature, self.surrogate, w))
        loss, grad = curved.map_reduce(_loss_and_slope, _add_parts)

        def product(v: Floats) -> Floats:
            return curved.map_reduce(partial(_apply, v)) / total + self.alpha * v

        return self._note(loss, w), grad / total + self.alpha * w, product

    @cached_property
    def sample(self) -> Objective:
        """The same on some of the queries, the first of each block, for a cheap look; itself where queries are few."""
        share = min(32, self.data.n_docs // (64 * self.n_features), self.data.n_queries // 64)
        if share < 4:
            return self
        parts = self._parts.keep(partial(_first_queries, share))
        total = float(parts.map_reduce(_weight_of_part))
        if total == 0:
            return self
        made = replace(self, best={})
        vars(made).update(_parts=parts, total_weight=total, sample=made)
        return made


def _first_queries(share: int, part: _Part) -> _Part:
    block, place = part
    first = block[: -(-block.n_queries // share)]
    return first, place[: first.n_docs]


def _weight_of_part(part: _Part) -> float:
    block, _ = part
    return float(block.n_queries if block.query_weight is None else block.query_weight.sum())


def _variances(part: _Part) -> Floats:
    block, _ = part
    return linear.variances(block.X, block.ptr, NO_FLOATS if block.query_weight is None else block.query_weight)


def _covariances(step: int, part: _Part) -> Floats:
    block, _ = part
    return linear.covariances(block.X, block.ptr, NO_FLOATS if block.query_weight is None else block.query_weight, step)


class _RefusedError(InputError):
    """A list function did not take a list."""


def _weight(data: QueryDataset) -> Floats:
    weight = data.informative.astype(np.float64)
    return weight if data.query_weight is None else weight * data.query_weight


def _prepare(surrogate: Surrogate, block: QueryDataset) -> _Part:
    weight: Floats | None = _weight(block)
    if np.all(weight == 1):
        weight = None  # the same bits in less time
    seed = surrogate.tie_seed if isinstance(surrogate, CompiledSurrogate) else None
    place = NO_PLACES if seed is None else linear.places_by_grade(block.X, block.y, block.ptr, seed)
    return block._with(query_weight=weight), place


def _loss_and_grad(surrogate: Surrogate, w: Floats, part: _Part) -> tuple[float, Floats]:
    block, place = part
    if isinstance(surrogate, CompiledSurrogate):
        from ._objective_kernels import loss_and_adjoint

        function, grad = surrogate.list_function, np.zeros(len(w))
        weight = NO_FLOATS if block.query_weight is None else block.query_weight
        doc_weight = NO_FLOATS if block.doc_weight is None else block.doc_weight
        loss, refused = loss_and_adjoint(
            *linear.parts(block.X), w, block.y, block.ptr, weight, doc_weight, place, function.address, function.codes,
            function.numbers, grad,
        )  # fmt: skip
        if refused >= 0:
            raise _RefusedError(f"{surrogate} does not take query {block.query_ids[refused]}")
        return loss, grad
    s = linear.scores(block.X, w)
    loss, slopes = weighted(*surrogate.per_query(s, block.y, block.ptr), block.ptr, block.query_weight)
    return loss, linear.adjoint(block.X, slopes, next_rows=True)


def _add_parts(left: tuple[float, Floats], right: tuple[float, Floats]) -> tuple[float, Floats]:
    """Add the right part to the left one, whose gradient is ours to overwrite."""
    return left[0] + right[0], np.add(left[1], right[1], out=left[1])


def _curvature(surrogate: TwiceDifferentiable, w: Floats, part: _Part) -> tuple[QueryDataset, Curvature]:
    block, _ = part
    s = linear.scores(block.X, w)
    return block, surrogate.curvature(s, block.y, block.ptr, block.query_weight, block.doc_weight)


def _loss_and_slope(part: tuple[QueryDataset, Curvature]) -> tuple[float, Floats]:
    block, curvature = part
    return curvature.loss, linear.adjoint(block.X, curvature.slopes)


def _apply(v: Floats, part: tuple[QueryDataset, Curvature]) -> Floats:
    block, curvature = part
    return linear.adjoint(block.X, curvature.product(linear.scores(block.X, v)))
