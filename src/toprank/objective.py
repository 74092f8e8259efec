"""The only place where X meets a surrogate: its mean over the queries plus a penalty."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ._typing import Floats, Ints
from .data import blocks, linear
from .data.blocks import BlockResults, LocalResults
from .data.dataset import QueryDataset
from .data.lazy import LazyRows
from .data.validation import check_informative
from .errors import InputError
from .penalties import L2, Penalty
from .surrogates.base import (
    NO_FLOATS,
    NO_PLACES,
    CompiledSurrogate,
    Curvature,
    Surrogate,
    TwiceDifferentiable,
    refuse_doc_weight,
    weighted,
)

IN_CACHE = 1 << 20
"""Bytes of X, or one list, that are scored, judged and added up before the next: they are in the cache the second
time."""


class _Run(NamedTuple):
    """Lists of a block, together about `IN_CACHE` bytes of X: their numbers, rows and boundaries."""

    lists: slice
    rows: slice
    ptr: Ints


class _Part(NamedTuple):
    """A block with the weights of its queries, and what does not change from one w to the next."""

    block: QueryDataset
    place: Ints
    """The places of documents by grade, where a loss draws them among ties."""
    runs: list[_Run]


_NO_PENALTY = L2()

WHOLE = 500
"""Up to this many features the spread is a whole matrix; with more, one number for each feature."""


WHOLE_OF_COPIES = 2000
"""The same for columns that copies and knots make, which without it take hundreds of iterations."""


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
    """f(w) = Σ_q c_q ℓ(X_q w, y_q) / Σ_q c_q + penalty(w).

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
    penalty: Penalty = _NO_PENALTY
    executor: Executor | None = None
    best: dict[str, Any] = field(default_factory=dict, repr=False)
    """The `penalty`, `value` and weights `w` of the lowest value so far: what is left where workers are lost."""

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
        refuse_doc_weight(self.surrogate, self.data.doc_weight)
        prepare = partial(_prepare, self.surrogate)
        if isinstance(self.data.X, LazyRows):  # blocks of rows that are computed whenever they are read
            return LocalResults.of(self.data, blocks.RUN_VALUES, self.executor).keep(prepare)
        return self.data.keep(prepare, executor=self.executor, values=blocks.RUN_VALUES)

    def with_penalty(self, penalty: Penalty) -> Objective:
        """Return the same with another penalty; what was computed of the rows is not computed again."""
        made = replace(self, penalty=penalty)
        known = ("weight", "total_weight", "_parts", "_spread")
        vars(made).update({name: value for name, value in vars(self).items() if name in known})
        return made

    @property
    def n_features(self) -> int:
        """Length of w."""
        return self.data.n_features

    @cached_property
    def measured_penalty(self) -> Penalty:
        """The penalty with the units of the weights, where it has none of its own: the spreads of the features."""
        return self.penalty.measured(self.spreads)

    def value_and_grad(self, w: Floats) -> tuple[float, Floats]:
        """Return f(w) and a (sub)gradient: X w and Xᵀ g, the second from the cache."""
        loss, grad = self.loss_and_grad(w)
        return loss + self.measured_penalty.value(w), grad + self.measured_penalty.gradient(w)

    def loss_and_grad(self, w: Floats) -> tuple[float, Floats]:
        """Return the mean loss at w and its (sub)gradient, without the penalty."""
        total = self.total_weight
        try:
            loss, grad = self._parts.map_reduce(partial(_loss_and_grad, self.surrogate, w), _add_parts)
        except _RefusedError:  # per_query says why, in the rows of the whole data set
            self.surrogate.per_query(linear.scores(self.data.X, w), self.data.y, self.data.ptr)
            raise
        self._note(loss / total, w)
        return loss / total, grad / total

    def _note(self, loss: float, w: Floats) -> float:
        """Return f(w), given the mean loss there; call the watchers, and keep the lowest value so far."""
        value = loss + self.measured_penalty.value(w)
        for tell in _WATCHERS:
            tell(value)
        if not value >= self.best.get("value", np.inf) or self.penalty != self.best["penalty"]:
            self.best.update(penalty=self.penalty, value=value, w=w.copy())
        return value

    def spreads(self) -> Floats:
        """Return how far each feature spreads inside lists: the root of its mean variance."""
        spread = self.spread()
        return np.sqrt(spread.diagonal() if spread.ndim == 2 else spread)

    def spread(self) -> Floats:
        """Return the mean covariance of the features inside lists, d × d, or its diagonal for many features.

        It is the curvature of ListNet at w = 0, and near that of other losses up to a factor. The variances are those
        of all queries; a part of them is enough to know the correlations by.
        """
        return self._spread

    @cached_property
    def _spread(self) -> Floats:
        step = max(1, self.data.n_docs // max(SAMPLE, 32 * self.n_features))
        whole = WHOLE
        if isinstance(self.data.X, LazyRows):  # copies and knots nearly depend on each other: a sample misses how far
            step, whole = 1, WHOLE_OF_COPIES
        diagonal = self._parts.map_reduce(_variances) / self.total_weight
        if self.n_features > whole:
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
            return curved.map_reduce(partial(_apply, v)) / total + self.measured_penalty.curvature_product(v)

        return self._note(loss / total, w), grad / total + self.measured_penalty.gradient(w), product

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
    first = part.block[: -(-part.block.n_queries // share)]
    return _Part(first, part.place[: first.n_docs], _runs(first))


def _weight_of_part(part: _Part) -> float:
    block = part.block
    return float(block.n_queries if block.query_weight is None else block.query_weight.sum())


def _variances(part: _Part) -> Floats:
    block = part.block
    if isinstance(block.X, LazyRows):
        return sum((_variances(each) for each in _computed(part, block.X)), np.zeros(block.n_features))
    return linear.variances(block.X, block.ptr, NO_FLOATS if block.query_weight is None else block.query_weight)


def _covariances(step: int, part: _Part) -> Floats:
    block = part.block
    if isinstance(block.X, LazyRows):
        found = np.zeros((block.n_features, block.n_features))
        for each in _computed(part, block.X):
            linear.covariances(each.block.X, each.block.ptr, _weights_of(each.block), step, found)
        return found
    return linear.covariances(block.X, block.ptr, _weights_of(block), step)


def _weights_of(block: QueryDataset) -> Floats:
    return NO_FLOATS if block.query_weight is None else block.query_weight


def _computed(part: _Part, X: LazyRows) -> Iterator[_Part]:
    """Yield the runs of a block as blocks, with the rows computed."""
    for run in part.runs:
        rows = X.lists(run.lists.start, run.lists.stop)
        yield _Part(part.block[run.lists]._with(X=rows), part.place[run.rows], [])


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
    return _Part(block._with(query_weight=weight), place, _runs(block))


def _runs(block: QueryDataset) -> list[_Run]:
    """Cut a block into runs of lists that stay in the cache; the data alone decide where."""
    docs = max(1, int(IN_CACHE / max(1.0, block.row_values * block.X.dtype.itemsize)))
    runs = []
    for first, last in pairwise(blocks.block_boundaries(block.ptr, docs)):
        a, b = int(block.ptr[first]), int(block.ptr[last])
        runs.append(_Run(slice(first, last), slice(a, b), block.ptr[first : last + 1] - a))
    return runs


def _loss_and_grad(surrogate: Surrogate, w: Floats, part: _Part) -> tuple[float, Floats]:
    """Return Σ_q c_q ℓ(X_q w, y_q) over a block, and its gradient Xᵀ g."""
    X, total, grad = part.block.X, 0.0, np.zeros(len(w))
    for run in part.runs:
        if isinstance(X, LazyRows):
            rows, first = linear.rows_of(X.lists(run.lists.start, run.lists.stop)), 0
        else:
            rows, first = linear.rows_of(X), run.rows.start
        s = linear.scores_between(rows, first, first + int(run.ptr[-1]), w)
        losses, g = _losses(surrogate, s, run, part)
        loss, g = weighted(losses, g, run.ptr, _at(part.block.query_weight, run.lists))
        linear.add_adjoint(rows, first, g, grad)
        total += loss
    return total, grad


def _losses(surrogate: Surrogate, s: Floats, run: _Run, part: _Part) -> tuple[Floats, Floats]:
    """Return the loss of each list of a run, and the gradient in the scores."""
    block, y, doc_weight = part.block, part.block.y[run.rows], _at(part.block.doc_weight, run.rows)
    if not isinstance(surrogate, CompiledSurrogate):
        return (
            surrogate.per_query(s, y, run.ptr) if doc_weight is None else surrogate.per_query(s, y, run.ptr, doc_weight)
        )
    losses, g = np.empty(len(run.ptr) - 1), np.empty(len(s))
    weights, places = NO_FLOATS if doc_weight is None else doc_weight, part.place[run.rows]
    refused = surrogate.fill(s, y, run.ptr, losses, g, NO_FLOATS, weights, places)
    if refused >= 0:
        raise _RefusedError(f"{surrogate} does not take query {block.query_ids[run.lists.start + refused]}")
    return losses, g


def _at(values: Floats | None, which: slice) -> Floats | None:
    return None if values is None else values[which]


def _add_parts(left: tuple[float, Floats], right: tuple[float, Floats]) -> tuple[float, Floats]:
    """Add the right part to the left one, whose gradient is ours to overwrite."""
    return left[0] + right[0], np.add(left[1], right[1], out=left[1])


def _curvature(surrogate: TwiceDifferentiable, w: Floats, part: _Part) -> tuple[QueryDataset, Curvature]:
    block = part.block
    s = linear.scores(block.X, w)
    return block, surrogate.curvature(s, block.y, block.ptr, block.query_weight, block.doc_weight)


def _loss_and_slope(part: tuple[QueryDataset, Curvature]) -> tuple[float, Floats]:
    block, curvature = part
    return curvature.loss, linear.adjoint(block.X, curvature.slopes)


def _apply(v: Floats, part: tuple[QueryDataset, Curvature]) -> Floats:
    block, curvature = part
    return linear.adjoint(block.X, curvature.product(linear.scores(block.X, v)))
