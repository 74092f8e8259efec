"""Mini-batch learning of the top: perceptrons and projected subgradient steps, a whole epoch in one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.mapped import in_any_order
from ..data.validation import is_sparse
from ..errors import InputError
from ..surrogates.precision_at_k import (
    MistakesAvg,
    MistakesMax,
    PrecAvg,
    PrecisionSurrogate,
    PrecMax,
    PrecRamp,
    PrecStruct,
    Rule,
)
from .online import CALLED, owned
from .steps import Rule as Rule_
from .steps import Scaling, Total

Shuffle = Literal["batches", "rows"] | None

_NO_ROWS = np.empty(0, dtype=np.int64)
_NONE = np.empty(0)
_LOSSES: dict[Rule, Any] = {
    Rule.STRUCT: PrecStruct,
    Rule.RAMP: PrecRamp,
    Rule.AVG: PrecAvg,
    Rule.MAX: PrecMax,
    Rule.PERCEPTRON_AVG: MistakesAvg,
    Rule.PERCEPTRON_MAX: MistakesMax,
}


@dataclass(frozen=True)
class Steps:
    """w ← Π_radius[w − η_t g_t], η_t = eta · t^−decay: what happens at each batch.

    g_t is the subgradient of the batch's loss (Algorithm 3), or the perceptron's step (Algorithms 1 and 2) for which
    eta = 1 and decay = 0. `normalize` divides it by the batch's k. Of `k` and `kappa` one is 0.
    """

    rule: Rule
    k: int
    kappa: float
    eta: float = 1.0
    decay: float = 0.0
    normalize: bool = False
    radius: float = np.inf

    @property
    def loss(self) -> PrecisionSurrogate:
        """What a batch is stepped on."""
        places = {"k": self.k} if self.k else {"kappa": self.kappa}
        made: PrecisionSurrogate = _LOSSES[self.rule](normalize=self.normalize, **places)
        return made


@dataclass(frozen=True, eq=False)
class State:
    """Weights after t batches, and the drift that gives their average: Σ_τ w_τ = t w − drift."""

    w: Floats
    drift: Floats
    t: int

    @classmethod
    def zero(cls, n_features: int) -> State:
        """Where every run starts."""
        return cls(np.zeros(n_features), np.zeros(n_features), 0)

    @property
    def average(self) -> Floats:
        """(1/t) Σ_τ w_τ."""
        return self.w - self.drift / max(self.t, 1)


@dataclass(frozen=True)
class Totals:
    """What a run over batches added up to."""

    batches: int = 0
    loss: float = 0.0
    """Σ_t loss: the surrogate's, or for a perceptron the mistakes Δ."""
    share: float = 0.0
    """Σ_t loss / k_t."""
    places: int = 0
    """Σ_t k_t, the most mistakes there can be."""
    largest_k: int = 0
    updates: int = 0
    skipped: int = 0
    """Batches with one class only."""

    @classmethod
    def of(cls, rows: Floats, steps: Steps, skipped: int) -> Totals:
        """Add up rounds: (positives, loss, mistake, ‖z‖²) of each."""
        positives = rows[:, 0]
        exact = np.ceil(steps.kappa * positives * (1 - 1e-12))
        ks = np.minimum(positives, steps.k if steps.k else exact)
        share = rows[:, 1] if steps.normalize else rows[:, 1] / ks
        return cls(
            batches=len(rows),
            loss=float((share * ks).sum()) if steps.normalize else float(rows[:, 1].sum()),
            share=float(share.sum()),
            places=int(ks.sum()),
            largest_k=int(ks.max(initial=0)),
            updates=int((rows[:, 3] > 0).sum()),
            skipped=skipped,
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.batches + other.batches,
            self.loss + other.loss,
            self.share + other.share,
            self.places + other.places,
            max(self.largest_k, other.largest_k),
            self.updates + other.updates,
            self.skipped + other.skipped,
        )


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows cut into batches: batch c holds rows bounds[c]:bounds[c+1], of X or of a permutation of its rows.

    Labels are 0 and 1.

    >>> data = QueryDataset.from_arrays(np.zeros((5, 1)), [0, 1, 0, 1, 0])
    >>> Batches.of(data, 2).bounds.tolist()
    [0, 2, 4, 5]
    """

    data: QueryDataset
    bounds: Ints
    rows: Ints
    """The permutation; empty where rows stay as they are."""

    @classmethod
    def of(cls, data: QueryDataset, batch_size: int | None) -> Batches:
        """Cut one list into batches of `batch_size` rows; with None each query is a batch."""
        if batch_size is None:
            return cls(data, data.ptr, _NO_ROWS)
        if batch_size == 1:
            return cls._against_zero(data)
        starts = np.arange(0, data.n_docs, batch_size, dtype=np.int64)
        return cls(data, np.append(starts, data.n_docs), _NO_ROWS)

    @classmethod
    def _against_zero(cls, data: QueryDataset) -> Batches:
        """Pair each row with a row of zeros of the other class, which has the score 0: ŷ = [w·x > 0].

        The positive one stands last, so that equal scores are a mistake. X is copied, unless it is sparse.
        """
        X, n = data.X, data.n_docs
        wide: Any = np.zeros((n + 2, data.n_features), dtype=X.dtype)
        if is_sparse(X):
            from scipy.sparse import csr_array

            wide = csr_array((X.data, X.indices, np.append(X.indptr, X.indptr[-1:].repeat(2))), shape=wide.shape)
        else:
            wide[:n] = X
        own = np.arange(n)
        rows = np.stack([np.where(data.y > 0, n, own), np.where(data.y > 0, own, n + 1)], axis=1).ravel()
        made = QueryDataset.from_arrays(wide, np.append(data.y, [0.0, 1.0]))
        return cls(made, np.arange(0, 2 * n + 1, 2), rows)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return len(self.bounds) - 1

    @property
    def by_query(self) -> bool:
        """Whether each query is a batch."""
        return self.bounds is self.data.ptr

    def labels(self) -> Floats:
        """Return the labels in the order of the batches."""
        return self.data.y if len(self.rows) == 0 else self.data.y[self.rows]

    def informative(self) -> AnyArray:
        """Say which batches hold both classes."""
        sizes = np.diff(self.bounds)
        found = np.zeros(self.count)
        found[sizes > 0] = np.add.reduceat(self.labels(), self.bounds[:-1][sizes > 0])
        return (found > 0) & (found < sizes)

    def in_clumps(self) -> bool:
        """Say whether less than half as many batches hold both classes as would if the rows were mixed."""
        share = float(self.data.y.mean())
        sizes = np.diff(self.bounds)
        expected = float((1 - share**sizes - (1 - share) ** sizes).sum())
        return int(self.informative().sum()) < 0.5 * expected

    def mixed(self, rng: np.random.Generator) -> Batches:
        """Return batches of a random permutation of the rows."""
        if len(self.rows) > self.data.n_docs:  # rows that stand against zero stay with it
            return replace(self, rows=rng.permutation(self.rows.reshape(-1, 2)).ravel())
        return replace(self, rows=rng.permutation(self.data.n_docs))

    def epochs(self, count: int, shuffle: Shuffle, rng: np.random.Generator) -> Iterator[tuple[Batches, Ints]]:
        """Yield, for each epoch, the batches and the order in which they come."""
        for _ in range(count):
            batches = self.mixed(rng) if shuffle == "rows" else self
            yield batches, rng.permutation(self.count) if shuffle == "batches" else np.arange(self.count)


def sweep(batches: Batches, order: Ints, steps: Steps, state: State) -> tuple[State, Totals]:
    """Work through the batches in that order: one pass over X, nothing kept but w, its drift and one batch."""
    from . import _stream_kernels as kernels

    data, loss = batches.data, steps.loss.list_function
    parts = linear.parts(data.X)
    weights, totals = np.stack([state.w, state.drift, np.zeros_like(state.w)]), np.zeros(len(Total))
    totals[Total.ROUNDS] = state.t
    by_query = batches.by_query and data.query_weight is not None
    query_weight = data.query_weight if by_query and data.query_weight is not None else _NONE
    codes = np.array([Rule_.SQRT if steps.decay else Rule_.CONSTANT, Scaling.NONE, True, False, True, -1, 0])
    rows = np.empty((len(order), 4))
    with in_any_order(data.X, order if len(batches.rows) == 0 else batches.rows):
        count, stopped, _ = kernels.epoch(
            *parts, batches.rows, owned(data.y), batches.bounds, order, _NONE, query_weight, _NONE, weights,
            totals, codes, np.array([1.0, steps.eta, steps.radius, 0.0, 0.0]), _NONE, _NONE, 0, None, None, *CALLED,
            len(parts[2]) + len(batches.rows) > 0 or None, loss.address, loss.codes, loss.numbers, _NONE, rows,
        )  # fmt: skip
    if stopped >= 0:
        raise InputError(f"numbers overflow at batch {stopped}: scale the features down or lower eta")
    without = (
        int((query_weight[order] == 0).sum()) if len(query_weight) else 0
    )  # left out on request, not for one class
    return State(weights[0], weights[1], state.t + count), Totals.of(rows[:count], steps, len(order) - count - without)
