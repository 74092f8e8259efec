"""Rankers that learn from one list after the other: the two perceptrons and online ListNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import clone

from ..data.dataset import QueryDataset
from ..data.validation import Missing
from ..errors import InputError
from ..measures.base import Measure
from ..surrogates import ListNet as ListNetLoss
from ..surrogates import Minimax, Slam, Surrogate
from .online import Average, OnlineRanker, Scale


class SlamPerceptron(OnlineRanker):
    """If the ranking by w_t falls short of the measure's best: w ← w − η z, z ∈ ∂ φ_v(X_t w_t, R_t) (Algorithm 2).

    `measure` is ndcg, ndcg@k or map; φ_v is its SLAM surrogate with `margin` Δ (`surrogates.Slam`). The total loss is
    bounded: `toprank.certify`.

    >>> import toprank as tr
    >>> made = tr.datasets.make_separable(n_queries=300, margin=2.0, random_state=0)
    >>> ranker = tr.SlamPerceptron("ndcg@10", eta=0.1, epochs=1, shuffle=False).fit_queries(made.data)
    >>> bool(ranker.trace_["mistake"][-100:].sum() < ranker.trace_["mistake"][:100].sum())
    True
    """

    _always: ClassVar[bool] = False

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        eta: float | str = 0.1,
        epochs: int = 5,
        average: Average = "auto",
        scale: Scale = None,
        margin: float = 1.0,
        shuffle: bool = True,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: int | None = 0,
        verbose: bool = False,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.eta = eta
        self.epochs = epochs
        self.average = average
        self.scale = scale
        self.margin = margin
        self.shuffle = shuffle
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing

    def _loss(self, target: Measure) -> Surrogate:
        return Slam(target, self.margin, within="score")


class MinimaxPerceptron(OnlineRanker):
    """If the ranking by w_t falls short: w ← w − η (x_j − x_i), (i, j) the pair most out of order (Algorithm 3).

    Rankings do not depend on a constant `eta`: it only sets the length of the weights.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> small, large = (tr.MinimaxPerceptron(eta=eta, random_state=0).fit_queries(data) for eta in (1e-3, 1e3))
    >>> bool((small.rank(data) == large.rank(data)).all())
    True
    """

    _always: ClassVar[bool] = False

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        eta: float | str = 1.0,
        epochs: int = 5,
        average: Average = "auto",
        scale: Scale = None,
        margin: float = 1.0,
        shuffle: bool = True,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: int | None = 0,
        verbose: bool = False,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.eta = eta
        self.epochs = epochs
        self.average = average
        self.scale = scale
        self.margin = margin
        self.shuffle = shuffle
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing

    def _loss(self, target: Measure) -> Surrogate:
        return Minimax(self.margin)


class OnlineListNet(OnlineRanker):
    """w ← w − η Xᵀ(softmax(Xw) − softmax(R)) in every round: online gradient descent on the top-one cross entropy.

    `truth` says what the target is the softmax of: the grades or the gains 2^grade − 1.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.OnlineListNet(eta="sqrt:0.5", random_state=0).fit_queries(data)
    >>> bool(ranker.score(data.X, data.y, data.qid) > 0.8)
    True
    """

    _always: ClassVar[bool] = True

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        eta: float | str = 0.1,
        epochs: int = 5,
        average: Average = "auto",
        scale: Scale = None,
        truth: Literal["grades", "gains"] = "grades",
        shuffle: bool = True,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: int | None = 0,
        verbose: bool = False,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.eta = eta
        self.epochs = epochs
        self.average = average
        self.scale = scale
        self.truth = truth
        self.shuffle = shuffle
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing

    def _loss(self, target: Measure) -> Surrogate:
        return ListNetLoss(truth=self.truth)


@dataclass(frozen=True)
class EtaChoice:
    """The step size that did best on past data, and the time-averaged measure of each that was tried."""

    eta: float | str
    averages: dict[float | str, float]


ETAS: tuple[float, ...] = tuple(float(f"1e{power}") for power in range(-4, 4))
"""The step sizes that `choose_eta` tries."""


def choose_eta(ranker: OnlineRanker, past: QueryDataset, etas: Sequence[float | str] = ETAS) -> EtaChoice:
    """Return the step size with the best time-averaged measure over one pass of an earlier part of the stream.

    Each round is ranked before its grades are seen, so the choice is fair to every later round. The ranker itself stays
    as it is; η that overflows counts as the worst.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=60, random_state=0)
    >>> choice = tr.choose_eta(tr.SlamPerceptron(), data[:30], etas=[0.01, 1.0])
    >>> ranker = tr.SlamPerceptron(eta=choice.eta).partial_fit_queries(data[30:])
    """
    if not etas:
        raise InputError("choose_eta needs at least one step size in etas")
    averages: dict[float | str, float] = {}
    for eta in etas:
        candidate = clone(ranker).set_params(eta=eta)
        try:
            totals = candidate.partial_fit_queries(past).totals_
        except InputError as error:
            if "overflow" not in str(error):
                raise
            averages[eta] = -np.inf
            continue
        averages[eta] = totals["measure"] / totals["rounds"] if totals["rounds"] else -np.inf
    best = max(averages, key=lambda eta: averages[eta])
    if averages[best] == -np.inf:
        raise InputError("choose_eta found no step size: no query of the past can teach, or every eta overflows")
    return EtaChoice(best, averages)
