"""Learners of precision at the top: perceptrons and projected subgradient steps, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._typing import Floats, Ints
from ..data.mapped import read_in_any_order
from ..errors import NumbersOverflowError
from ..surrogates.precision_at_k import (
    MistakesAvg,
    MistakesMax,
    PrecAvg,
    PrecisionSurrogate,
    PrecMax,
    PrecStruct,
)
from .batches import Batches
from .steps import Rule, Steps

ALGORITHMS: dict[type[PrecisionSurrogate], str] = {
    MistakesAvg: "perceptron_at_k_avg",
    MistakesMax: "perceptron_at_k_max",
    PrecAvg: "sgd_at_k_avg",
    PrecMax: "sgd_at_k_max",
    PrecStruct: "one_pass_mini_batch",
}
"""The kernel (`_at_k_kernels`) that learns with each loss."""


@dataclass(eq=False)
class State:
    """w after T batches; its mean over them is w − drift/T."""

    w: Floats
    drift: Floats
    """Σ_{t≤T} (t − 1)(w_t − w_{t−1})."""
    batches: int = 0
    """T."""
    updates: int = 0
    """How many of the batches moved w."""

    @property
    def average(self) -> Floats:
        """w̄ = (1/T) Σ_t w_t."""
        return self.w - self.drift / self.batches if self.batches else self.w


@dataclass(frozen=True)
class Lost:
    """What batches lost: sums of the losses ℓ_t at the weights before each step."""

    batches: int
    loss: float
    """Σ_t ℓ_t: the surrogate's, or for a perceptron the mistakes Δ_t."""
    share: float
    """Σ_t ℓ_t / k_t."""
    places: int
    """Σ_t k_t, the most mistakes there can be."""
    largest_k: int

    @classmethod
    def of(cls, losses: Floats, k: Ints) -> Lost:
        """Add up the losses of batches with these k."""
        return cls(len(k), float(losses.sum()), float((losses / k).sum()), int(k.sum()), int(k.max(initial=0)))

    @classmethod
    def total(cls, parts: Iterable[Lost]) -> Lost:
        """Add up what parts of a run lost."""
        found = list(parts)
        return cls(
            sum(part.batches for part in found),
            sum(part.loss for part in found),
            sum(part.share for part in found),
            sum(part.places for part in found),
            max((part.largest_k for part in found), default=0),
        )


@dataclass(frozen=True)
class LearnerAtK:
    """One of Algorithms 1 to 3 of precision at the top or 1PMB: the one that steps on this surrogate.

    `steps` are those of the subgradient learners; the perceptrons add and subtract rows as they are.

    >>> from toprank.data.dataset import QueryDataset
    >>> data = QueryDataset.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> learner, batches = LearnerAtK(MistakesAvg(k=1)), Batches.of(data, 2)
    >>> state = learner.start(2)
    >>> learner.play(state, batches, np.arange(batches.count)).loss, state.w.tolist()
    (1.0, [-1.0, 1.0])
    """

    surrogate: PrecisionSurrogate
    steps: Steps = field(default_factory=lambda: Steps(1.0))

    def start(self, n_features: int) -> State:
        """Return the state before the first batch: w = 0."""
        return State(np.zeros(n_features), np.zeros(n_features))

    @property
    def is_perceptron(self) -> bool:
        """Whether it learns from mistakes alone, without step sizes."""
        return isinstance(self.surrogate, (MistakesAvg, MistakesMax))

    def play(self, state: State, batches: Batches, order: Ints) -> Lost:
        """Play the batches in the given order, stepping on `state`; batches that are not played are no rounds."""
        from ..core.rows import rows_of
        from . import _at_k_kernels as kernels

        order = order[batches.is_played[order]]
        k, weight, X = self.surrogate.k_of(batches.positives), batches.weight, batches.data.X
        stream = kernels.Stream(
            rows_of(X), batches.rows, batches.bounds, batches.is_positive, k,
            np.ones(batches.count) if weight is None else np.array(weight),
        )  # fmt: skip
        iterates, losses = kernels.Iterates(state.w, state.drift), np.empty(len(order))
        learn = getattr(kernels, ALGORITHMS[type(self.surrogate)])
        steps = () if self.is_perceptron else (self._step_sizes(kernels),)
        with read_in_any_order(X, batches.rows if len(batches.rows) else order):
            updates, stopped = learn(stream, order, *steps, iterates, state.batches, losses)
        finite = np.isfinite(state.w).all() and np.isfinite(state.drift).all()
        if stopped >= 0 or not finite:
            at = int(order[stopped])  # where all scores were finite, the last step is to blame
            raise NumbersOverflowError(f"numbers overflow at batch {at}: scale the features down or lower eta")
        state.batches += len(order)
        state.updates += updates
        return Lost.of(losses, k[order])

    def _step_sizes(self, kernels: Any) -> Any:
        falls, normalize = self.steps.rule == Rule.SQRT, self.surrogate.normalize
        return kernels.StepSizes(self.steps.eta, falls, normalize, float(self.steps.radius))
