"""Rankers that learn from one list after the other: the two perceptrons and online ListNet."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import clone

from ..data import linear
from ..data.dataset import QueryDataset
from ..errors import InputError, NumbersOverflowError
from ..measures import AP
from ..measures.base import Measure
from ..model import Inputs
from ..solvers.steps import Steps
from ..surrogates import ListNet as ListNetLoss
from ..surrogates import Minimax, Slam, Surrogate
from .base import parameters
from .online import OnlineRanker


@parameters
class SlamPerceptron(OnlineRanker):
    """A perceptron that learns from each list whose NDCG or MAP is below the best that it could have.

    If the ranking by w_t falls short of the measure's best: w ← w − η z, z ∈ ∂ φ_v(X_t w_t, R_t) (Algorithm 2).

    `measure` is ndcg, ndcg@k or map; φ_v is its SLAM surrogate with `margin` Δ and `weights` v, the paper's or for map
    "tight" ones (`surrogates.Slam`). The total loss is bounded: `toprank.certify`.

    >>> import toprank as tr
    >>> made = tr.datasets.make_separable(n_queries=300, margin=2.0, random_state=0)
    >>> ranker = tr.SlamPerceptron("ndcg@10", eta=0.1, epochs=1, shuffle=False).fit_queries(made.data)
    >>> bool(ranker.trace_["mistake"][-100:].sum() < ranker.trace_["mistake"][:100].sum())
    True
    """

    _always: ClassVar[bool] = False

    margin: float = 1.0
    weights: Literal["paper", "tight"] = "paper"

    def _loss(self, target: Measure) -> Surrogate:
        return Slam(target, self.margin, within="score", weights=self.weights)


@parameters
class MinimaxPerceptron(OnlineRanker):
    """Corrects, in each list that is ranked wrongly, the pair of documents most out of order.

    If the ranking by w_t falls short: w ← w − η (x_j − x_i), (i, j) the pair most out of order (Algorithm 3).

    Rankings do not depend on a constant `eta`: it only sets the length of the weights.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> small, large = (tr.MinimaxPerceptron(eta=eta, random_state=0).fit_queries(data) for eta in (1e-3, 1e3))
    >>> bool((small.rank(data) == large.rank(data)).all())
    True
    """

    _always: ClassVar[bool] = False

    eta: float | str = 1.0
    margin: float = 1.0

    def _loss(self, target: Measure) -> Surrogate:
        return Minimax(self.margin, target.above if isinstance(target, AP) else None)


@parameters
class OnlineListNet(OnlineRanker):
    """ListNet on a stream: one gradient step for each list.

    w ← w − η Xᵀ(softmax(Xw) − softmax(R)) in every round: online gradient descent on the top-one cross entropy.

    `truth` says what the target is the softmax of: the grades or the gains 2^grade − 1.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.OnlineListNet(eta="sqrt:0.5", random_state=0).fit_queries(data)
    >>> bool(ranker.score(data.X, data.y, data.qid) > 0.8)
    True
    """

    _always: ClassVar[bool] = True

    truth: Literal["grades", "gains"] = "grades"

    def _loss(self, target: Measure) -> Surrogate:
        return ListNetLoss(truth=self.truth)


@dataclass(frozen=True)
class EtaChoice:
    """The step size that did best on past data, and the time-averaged measure of each that was tried."""

    eta: float | str
    averages: dict[float | str, float]


ETAS: tuple[float, ...] = tuple(float(f"1e{power}") for power in range(-4, 4))
"""The step sizes that `choose_eta` tries, in units of 1/R_X²."""


def choose_eta(ranker: OnlineRanker, past: QueryDataset, etas: Sequence[float | str] | None = None) -> EtaChoice:
    """Return the step size with the best time-averaged measure over one pass of an earlier part of the stream.

    `etas` are tried as they are; None tries `ETAS` in units of 1/R_X², R_X being the longest document as the ranker
    scales it, so that the units of the features do not matter. Each round is ranked before its grades are seen, so the
    choice is fair to every later round. The ranker itself stays as it is; η that overflows counts as the worst. Where
    the best is at an end of the grid, or all are alike, a warning says so.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=60, random_state=0)
    >>> choice = tr.choose_eta(tr.SlamPerceptron(), data[:30], etas=[0.01, 1.0])
    >>> ranker = tr.SlamPerceptron(eta=choice.eta).partial_fit_queries(data[30:])
    """
    if not isinstance(ranker, OnlineRanker):
        raise InputError(f"choose_eta takes an online ranker, such as SlamPerceptron, not {type(ranker).__name__}")
    if etas is None:
        unit = _unit(ranker, past)
        etas = [eta * unit for eta in ETAS]
    if not etas:
        raise InputError("choose_eta needs at least one step size in etas")
    averages: dict[float | str, float] = {}
    for eta in etas:
        candidate = clone(ranker).set_params(eta=eta)
        try:
            totals = candidate.partial_fit_queries(past).totals_
        except NumbersOverflowError:
            averages[eta] = -np.inf
            continue
        averages[eta] = totals["measure"] / totals["rounds"] if totals["rounds"] else -np.inf
    sizes = {eta: Steps.parse(eta).eta for eta in averages}
    best = max(averages, key=lambda eta: (averages[eta], sizes[eta]))  # of equals the longest steps
    if averages[best] == -np.inf:
        raise InputError("choose_eta found no step size: no query of the past is informative, or every eta overflows")
    if len(averages) > 1 and min(averages.values()) == averages[best]:
        warnings.warn(
            f"all {len(averages)} step sizes reach {averages[best]:.4f}: the choice between them means nothing; try "
            'others (their unit is 1/‖x‖²), scale the features, or set scale="running"',
            stacklevel=2,
        )
    elif len(sizes) > 2 and sizes[best] in (min(sizes.values()), max(sizes.values())):
        warnings.warn(f"the best step size, {best}, is at an end of the grid: try others beyond it", stacklevel=2)
    return EtaChoice(best, averages)


def _unit(ranker: OnlineRanker, past: QueryDataset) -> float:
    """1/R_X² of the documents as the ranker sees them: plain, or divided by spreads or within their list."""
    if ranker.scale == "query":
        return 1.0
    if ranker.scale == "running":
        return 1.0 / past.n_features
    seen = Inputs.fit(past, ranker.missing, ranker.prepare).prepared(past)
    longest = float(linear.square_norms(seen.X).max(initial=0.0))
    return 1.0 / longest if longest > 0 else 1.0
