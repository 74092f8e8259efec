"""Certificates of online rankers: play the rounds again beside a comparator, then apply the theorems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from math import isfinite, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from .._typing import Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..certificates.mistakes import Algorithm, Comparator, Run, best_bound, ranking_margin
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..errors import InputError
from ..measures import AP, NDCG
from ..solvers.online import OnlineDescent, OnlineState, Rounds, inverse_scale, within_moment
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
    at the ranker's own weights is the first assumption. Scaled features are certified as the learner saw them: how they
    were scaled does not depend on the weights, so the scaled lists are a stream like any other. A comparator is then a
    weight vector for scaled features.
    """
    learner = ranker._learner()
    if comparator is not None and comparator.shape != (data.n_features,):
        raise InputError(f"the comparator must have {data.n_features} weights, got shape {comparator.shape}")
    if not isinstance(learner.measure, (AP, NDCG)):
        raise InputError(f"the theorems speak of ndcg, ndcg@k and map, not of {learner.measure}")
    replay = Replay(ranker, learner, data)
    assumptions = (
        Assumption("these lists, in this order, are what the ranker learned from, starting at 0", replay.same),
        Assumption("the step is constant", learner.steps.rule == Rule.CONSTANT),
    )
    if learner.always:
        return [_listnet_regret(replay, comparator, assumptions)]
    run = replay.run(assumptions)
    u, scale, loss = replay.best(run) if comparator is None else (comparator, 1.0, replay.losses(comparator, 1.0))
    norm = float(np.linalg.norm(u))
    margin = replay.margin(u) / norm if norm > 0 else 0.0
    rival = Comparator(float(norm * scale) ** 2, loss, margin if isfinite(margin) else 0.0)
    return run.certificates(rival)


class Replay:
    """The rounds of a ranker, played again."""

    def __init__(self, ranker: OnlineRanker, learner: OnlineDescent, data: QueryDataset) -> None:
        self.data, self._ranker, self._scaling = data, ranker, learner.scaling
        self.learner = replace(learner, scaling=Scaling.NONE, compare=False)
        self.state, self.rounds, _ = self._play(None, None)
        own = ranker._state
        if learner.scaling == Scaling.NONE:
            same = np.array_equal(self.state.weights[0], own.weights[0])
        else:  # scaling rows beforehand rounds otherwise than the learner's own loop
            size = 1 + float(np.abs(own.weights[0]).max())
            same = np.allclose(self.state.weights[0], own.weights[0], rtol=1e-6, atol=1e-9 * size)
        self.same = bool(ranker._passes["fresh"]) and bool(same)

    def passes(self) -> Iterator[tuple[QueryDataset, Ints]]:
        """Yield the data of each pass, scaled as the learner saw them, and the order of its lists."""
        passes, data = self._ranker._passes, self.data
        rng = np.random.default_rng(int(passes["seed"]))
        if self._scaling == Scaling.QUERY:
            data = _centred(data)
        moment, docs = np.zeros(data.n_features), 0
        for _ in range(int(passes["epochs"])):
            order = rng.permutation(data.n_queries) if passes["shuffle"] else np.arange(data.n_queries)
            if self._scaling == Scaling.RUNNING:
                data, docs = self._running(order, moment, docs)
            yield data, order

    def _running(self, order: Ints, moment: Floats, docs: int) -> tuple[QueryDataset, int]:
        """Divide each list by the spread of the features up to it; `moment` goes on."""
        source = self.data
        X = np.array(source.X.toarray() if is_sparse(source.X) else source.X, dtype=np.float64)
        rounds = self.learner.rounds(source.y, source.ptr)
        for q in order.tolist():
            a, b = int(source.ptr[q]), int(source.ptr[q + 1])
            if rounds[q] and (source.query_weight is None or source.query_weight[q] > 0):
                moment += within_moment(X[a:b])
                docs += b - a
            X[a:b] *= inverse_scale(moment, docs)
        return source.with_X(X), docs

    @property
    def grades(self) -> Floats:
        """Grades as the loss compares them: binary for SLAM with AP."""
        target = self.learner.measure
        if isinstance(self.learner.surrogate, Slam) and isinstance(target, AP):
            return (self.data.y > target.above).astype(np.float64)
        return self.data.y

    def margin(self, u: Floats) -> float:
        """Return γ‖u‖: the margin of u on all lists as the learner saw them (Eq. 21)."""
        margins = [ranking_margin(linear.scores(data.X, u), self.grades, data.ptr) for data, _ in self.distinct()]
        return min(margins)

    def distinct(self) -> Iterator[tuple[QueryDataset, Ints]]:
        """Yield the passes whose data differ: all with the running scale, else one."""
        return self.passes() if self._scaling == Scaling.RUNNING else islice(self.passes(), 1)

    def _play(self, u: Floats | None, scales: Floats | None) -> tuple[OnlineState, Floats, Floats]:
        state = self.learner.start(self.data.n_features)
        played: list[Rounds] = []
        for data, order in self.passes():
            rival = None if u is None else linear.scores(data.X, u)
            lists = (data.X, data.y, data.ptr, order, data.query_weight)
            played.append(self.learner.play(state, *lists, rival=rival, scales=scales))
        losses = np.sum([rounds.rival for rounds in played], axis=0)
        return state, np.concatenate([rounds.rows for rounds in played]), losses

    def run(self, assumptions: tuple[Assumption, ...]) -> Run:
        """Return the numbers of the run and the constant of Lemma 5."""
        radius = max(longest_row(seen) for seen, _ in self.distinct())
        return observed_run(self.learner, self.data, self.rounds, radius, assumptions)

    def losses(self, u: Floats, scale: float) -> float:
        """L(u) = Σ_t f_t(scale·u)."""
        return float(self.losses_at(u, np.array([scale]))[0])

    def losses_at(self, u: Floats, scales: Floats) -> Floats:
        """L(c·u) for every c in `scales`."""
        return self._play(u, scales)[2]

    def best(self, run: Run) -> tuple[Floats, float, float]:
        """Return the comparator with the smallest bound among those found: direction, length and L.

        Directions are the ranker's last and averaged weights and the averaged weights of a longer run that steps on the
        margin loss in every round; each is tried at many lengths.
        """
        *_, (data, _) = self.distinct()
        found: tuple[float, Floats, float, float] | None = None
        for direction in (self.state.last, self.state.average, *longer_run(self.learner, data, run.A)):
            norm = float(np.linalg.norm(direction))
            if norm == 0:
                continue
            u = direction / norm
            bound, scale, loss = best_length(run, self.margin(u), partial(self.losses_at, u))
            if found is None or bound < found[0]:
                found = bound, u, scale, loss
        if found is None:
            return np.zeros(data.n_features), 1.0, self.losses(np.zeros(data.n_features), 1.0)
        return found[1:]


def observed_run(
    learner: OnlineDescent, data: QueryDataset, rounds: Floats, radius: float, assumptions: tuple[Assumption, ...]
) -> Run:
    """Return the numbers of rounds that were played, and the constant of Lemma 5 for documents of norm ≤ `radius`."""
    measure, surrogate, _, znorm2 = rounds.T
    weight = 1.0 if data.query_weight is None else max(1.0, float(data.query_weight.max()))
    if weight != 1.0 or (data.query_weight is not None and data.query_weight.min() < 1):
        assumptions = (*assumptions, Assumption("all queries weigh 1", False))
    algorithm: Algorithm = "minimax"
    A = 4 * radius**2
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
        mistakes=int(rounds[:, 2].sum()),
        surrogate=float(surrogate.sum()),
        znorm2=float(znorm2.sum()),
        largest_ratio=float((znorm2[active] / surrogate[active]).max(initial=0.0)),
        margin=margin,
        assumptions=assumptions,
    )


def longer_run(learner: OnlineDescent, data: QueryDataset, A: float) -> tuple[Floats, Floats]:
    """Return the last and the averaged weights of a longer run that steps on the margin loss in every round."""
    longer = replace(learner, always=True, steps=Steps(1.0 / max(sqrt(A), 1e-300), Rule.SQRT))
    state = longer.start(data.n_features)
    rng = np.random.default_rng(0)
    for _ in range(_EPOCHS):
        longer.play(state, data.X, data.y, data.ptr, rng.permutation(data.n_queries), data.query_weight)
    return state.last, state.average


def best_length(run: Run, margin: float, losses: Callable[[Floats], Floats]) -> tuple[float, float, float]:
    """Return the smallest bound over the lengths of a unit comparator with this margin, that length, and L there."""
    scales = np.append(_SCALES, run.margin / margin) if 0 < margin < np.inf else _SCALES
    tried = []
    for scale, loss in zip(scales.tolist(), losses(scales).tolist(), strict=True):
        loss = 0.0 if margin > 0 and scale * margin >= run.margin * (1 - 1e-12) else loss
        tried.append((best_bound(run.A / run.margin, Comparator(scale**2, loss)), scale, loss))
    return min(tried, key=itemgetter(0))


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
    u, loss = replay.state.average if u is None else u, 0.0
    for data, _ in replay.passes():
        losses, _ = replay.learner.surrogate.per_query(LinearModel(u).scores(data.X), data.y, data.ptr)
        weight = replay.learner.rounds(data.y, data.ptr).astype(np.float64)
        loss += float((losses * (weight if data.query_weight is None else weight * data.query_weight)).sum())
    eta, totals = replay.learner.steps.eta, replay.rounds.sum(axis=0)
    return Certificate(
        statement="Σ f_t(w_t) ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖²",
        value=loss + float(u @ u) / (2 * eta) + eta / 2 * float(totals[3]),
        observed=float(totals[1]),
        reference="Eq. 17",
        assumptions=assumptions,
    )


def longest_row(data: QueryDataset) -> float:
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
