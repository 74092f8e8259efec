"""Certificates of online rankers: play the rounds again beside a comparator, then apply the theorems."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite, sqrt
from typing import TYPE_CHECKING

import numpy as np

from .._typing import Floats
from ..certificates.base import Assumption, Certificate
from ..certificates.mistakes import Algorithm, Comparator, Run, best_bound, ranking_margin
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..errors import InputError
from ..measures import AP, NDCG
from ..solvers.online import OnlineDescent, OnlineState, Rounds
from ..solvers.steps import Rule, Scaling, Steps
from ..surrogates import Slam
from .models import LinearModel

if TYPE_CHECKING:
    from .online import OnlineRanker

_SCALES = np.geomspace(1e-4, 1e6, 121)
"""Lengths tried for a comparator whose direction is found and whose length is free."""
_EPOCHS = 20
"""Passes of the search for a comparator."""


def certify_online(ranker: OnlineRanker, data: QueryDataset, comparator: Floats | None) -> list[Certificate]:
    """Return the certificates of a ranker that learned from `data`.

    The rounds are played again with the parameters, order and number of passes that the ranker remembers; that they end
    at the ranker's own weights is the first assumption. Features that are scaled as the stream goes by have no fixed
    comparator, and no certificate.
    """
    learner = ranker._learner()
    if learner.scaling == Scaling.RUNNING:
        return []
    if comparator is not None and comparator.shape != (data.n_features,):
        raise InputError(f"the comparator must have {data.n_features} weights, got shape {comparator.shape}")
    if learner.scaling == Scaling.QUERY:
        data, learner = _centred(data), replace(learner, scaling=Scaling.NONE)
    replay = Replay(ranker, learner, data)
    assumptions = (
        Assumption("these lists, in this order, are what the ranker learned from, starting at 0", replay.same),
        Assumption("the step is constant", learner.steps.rule == Rule.CONSTANT),
    )
    if not isinstance(learner.measure, (AP, NDCG)):
        raise InputError(f"the theorems speak of ndcg, ndcg@k and map, not of {learner.measure}")
    if learner.always:
        return [_listnet_regret(replay, comparator, assumptions)]
    run = replay.run(assumptions)
    u, scale, loss = replay.best(run) if comparator is None else (comparator, 1.0, replay.losses(comparator, 1.0))
    scores = linear.scores(data.X, u)
    norm = float(np.linalg.norm(u))
    margin = ranking_margin(scores, replay.grades, data.ptr) / norm if norm > 0 else 0.0
    rival = Comparator(float(norm * scale) ** 2, loss, margin if isfinite(margin) else 0.0)
    return run.certificates(rival)


class Replay:
    """The rounds of a ranker, played again."""

    def __init__(self, ranker: OnlineRanker, learner: OnlineDescent, data: QueryDataset) -> None:
        self.learner, self.data, self._ranker = learner, data, ranker
        state, self.rounds, _ = self._play(None, None)
        own = ranker._state
        # The query scale is undone row by row beforehand, which rounds otherwise than the learner's own loop.
        close = np.allclose(state.last, own.last, rtol=1e-6, atol=1e-9 * (1 + float(np.abs(own.last).max())))
        exact = np.array_equal(state.weights[0], own.weights[0])
        fresh = bool(ranker._passes["fresh"])
        self.same = fresh and (exact if own.scaling == Scaling.NONE else bool(close))
        self.state = state

    @property
    def grades(self) -> Floats:
        """Grades as the loss compares them: binary for SLAM with AP."""
        target = self.learner.measure
        if isinstance(self.learner.surrogate, Slam) and isinstance(target, AP):
            return (self.data.y > target.above).astype(np.float64)
        return self.data.y

    def _play(self, rival: Floats | None, scales: Floats | None) -> tuple[OnlineState, Floats, Floats]:
        passes = self._ranker._passes
        rng = np.random.default_rng(int(passes["seed"]))
        state = self.learner.start(self.data.n_features)
        played: list[Rounds] = []
        for _ in range(int(passes["epochs"])):
            order = rng.permutation(self.data.n_queries) if passes["shuffle"] else np.arange(self.data.n_queries)
            lists = (self.data.X, self.data.y, self.data.ptr, order, self.data.query_weight)
            played.append(self.learner.play(state, *lists, rival=rival, scales=scales))
        losses = np.sum([rounds.rival for rounds in played], axis=0)
        return state, np.concatenate([rounds.rows for rounds in played]), losses

    def run(self, assumptions: tuple[Assumption, ...]) -> Run:
        """Return the numbers of the run and the constant of Lemma 5."""
        learner, data = self.learner, self.data
        measure, surrogate, _, znorm2 = self.rounds.T
        weight = 1.0 if data.query_weight is None else max(1.0, float(data.query_weight.max()))
        if weight != 1.0 or (data.query_weight is not None and data.query_weight.min() < 1):
            assumptions = (*assumptions, Assumption("all queries weigh 1", False))
        radius = _radius(data)
        algorithm: Algorithm = "minimax"
        A = 4 * radius**2
        margin = 1.0
        if isinstance(learner.surrogate, Slam):
            target, margin = learner.surrogate.target, learner.surrogate.margin
            longest = int(data.lengths[data.informative].max(initial=1))
            cut = target.k if isinstance(target, NDCG) else None
            algorithm = "slam" if cut is None else "slam@k"
            A *= (longest if cut is None else min(cut, longest)) * largest_weight_ratio(learner.surrogate, data)
        else:
            margin = float(getattr(learner.surrogate, "margin", 1.0))
        active = surrogate > 0
        return Run(
            algorithm=algorithm,
            A=A,
            eta=learner.steps.eta,
            loss=float((1 - measure).sum()),
            mistakes=int(self.rounds[:, 2].sum()),
            surrogate=float(surrogate.sum()),
            znorm2=float(znorm2.sum()),
            largest_ratio=float((znorm2[active] / surrogate[active]).max(initial=0.0)),
            margin=margin,
            assumptions=assumptions,
        )

    def losses(self, u: Floats, scale: float) -> float:
        """L(u) = Σ_t f_t(scale·u)."""
        return float(self._play(linear.scores(self.data.X, u), np.array([scale]))[2][0])

    def best(self, run: Run) -> tuple[Floats, float, float]:
        """Return the comparator with the smallest bound among those found: direction, length and L.

        Directions are the ranker's last and averaged weights and the averaged weights of a longer run that steps on the
        margin loss in every round; each is tried at many lengths.
        """
        data = self.data
        longer = replace(self.learner, always=True, steps=Steps(1.0 / max(sqrt(run.A), 1e-300), Rule.SQRT))
        state = longer.start(data.n_features)
        rng = np.random.default_rng(0)
        for _ in range(_EPOCHS):
            longer.play(state, data.X, data.y, data.ptr, rng.permutation(data.n_queries), data.query_weight)
        found: tuple[float, Floats, float, float] | None = None
        for direction in (self.state.last, self.state.average, state.last, state.average):
            norm = float(np.linalg.norm(direction))
            if norm == 0:
                continue
            u = direction / norm
            scores = linear.scores(data.X, u)
            margin = ranking_margin(scores, self.grades, data.ptr)
            scales = np.append(_SCALES, run.margin / margin) if 0 < margin < np.inf else _SCALES
            losses = self._play(scores, scales)[2]
            for scale, loss in zip(scales.tolist(), losses.tolist(), strict=True):
                loss = 0.0 if margin > 0 and scale * margin >= run.margin * (1 - 1e-12) else loss
                bound = best_bound(run.A / run.margin, Comparator(scale**2, loss))
                if found is None or bound < found[0]:
                    found = bound, u, scale, loss
        if found is None:
            return np.zeros(data.n_features), 1.0, self.losses(np.zeros(data.n_features), 1.0)
        return found[1:]


def largest_weight_ratio(surrogate: Slam, data: QueryDataset) -> float:
    """vmax: the largest ratio of two positive weights of one list."""
    v = surrogate.weights(data.y, data.ptr)
    ratio = 1.0
    for a, b in zip(data.ptr[:-1].tolist(), data.ptr[1:].tolist(), strict=True):
        positive = v[a:b][v[a:b] > 0]
        if len(positive):
            ratio = max(ratio, float(positive.max() / positive.min()))
    return ratio


def _listnet_regret(replay: Replay, u: Floats | None, assumptions: tuple[Assumption, ...]) -> Certificate:
    """Σ f_t(w_t) ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖² for the cross entropy; u is the averaged weights if not given."""
    data = replay.data
    u = replay.state.average if u is None else u
    losses, _ = replay.learner.surrogate.per_query(LinearModel(u).scores(data.X), data.y, data.ptr)
    weight = data.informative.astype(np.float64)
    weight = weight if data.query_weight is None else weight * data.query_weight
    loss = int(replay._ranker._passes["epochs"]) * float((losses * weight).sum())
    eta, totals = replay.learner.steps.eta, replay.rounds.sum(axis=0)
    return Certificate(
        statement="Σ f_t(w_t) ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖²",
        value=loss + float(u @ u) / (2 * eta) + eta / 2 * float(totals[3]),
        observed=float(totals[1]),
        reference="Eq. 17",
        assumptions=assumptions,
    )


def _radius(data: QueryDataset) -> float:
    """R_X: the largest row norm among the lists that can teach."""
    squares = data.X.multiply(data.X).sum(axis=1) if is_sparse(data.X) else np.einsum("ij,ij->i", data.X, data.X)
    teaching = np.repeat(data.informative, data.lengths)
    return sqrt(float(np.asarray(squares, dtype=np.float64).ravel()[teaching].max(initial=0.0)))


def _centred(data: QueryDataset) -> QueryDataset:
    """Return each list centred and divided by its largest row norm, as `scale="query"` learns from it."""
    X = np.asarray(data.X.toarray() if is_sparse(data.X) else data.X, dtype=np.float64).copy()
    for a, b in zip(data.ptr[:-1].tolist(), data.ptr[1:].tolist(), strict=True):
        if b > a:
            X[a:b] -= X[a:b].mean(axis=0)
            radius = float(np.sqrt((X[a:b] ** 2).sum(axis=1).max()))
            X[a:b] /= radius if radius > 0 else 1.0
    return data.with_X(X)
