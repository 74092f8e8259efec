"""Certificates of online rankers: play the rounds again beside a comparator, then apply the theorems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import pdist

from .._typing import Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..certificates.mistakes import Algorithm, Comparator, Run, ranking_margin
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..errors import InputError
from ..measures import AP, NDCG
from ..objective import Objective
from ..solvers import _list_kernels
from ..solvers.newton import Newton
from ..solvers.online import OnlineDescent, inverse_scale, within_moment
from ..solvers.steps import Rule, Scaling, Steps, Total
from ..surrogates import Minimax, PairwiseHinge, Slam, Surrogate
from .models import LinearModel

if TYPE_CHECKING:
    from .online import OnlineRanker

_SCALES = np.geomspace(1e-4, 1e6, 121)
"""Lengths tried for a comparator whose direction is found and whose length is free."""
_EPOCHS = 20
"""Passes of the search for a comparator."""
_DESCENT = 40
"""Steps of the descent on a bound's own right-hand side."""
_MOST = 2_000_000
"""Values in X up to which a ranking SVM is solved for a comparator."""


def certify_online(ranker: OnlineRanker, data: QueryDataset, comparator: Floats | None) -> list[Certificate]:
    """Return the certificates of a ranker that learned from `data`.

    The rounds are played again with the parameters, order and number of passes that the ranker remembers; that they end
    at the ranker's own weights is the first assumption. Scaled features are certified as the learner saw them: how they
    were scaled does not depend on the weights, so the scaled lists are a stream like any other. A comparator is then a
    weight vector for scaled features. Where none is given, each inequality gets the one at which it says most.
    """
    learner = ranker._learner()
    if not isinstance(learner.measure, (AP, NDCG)):
        raise InputError(f"the theorems speak of ndcg, ndcg@k and map, not of {learner.measure}")
    replay = Replay(ranker, learner, data)
    if not replay.same:
        return [_another_run()]
    assumptions = (
        Assumption(_SAME, True),
        Assumption("the step is constant", learner.steps.rule == Rule.CONSTANT),
    )
    if learner.always:
        return [_listnet_regret(replay, comparator, assumptions)]
    run = replay.run(assumptions)
    if comparator is not None:
        norm = float(np.linalg.norm(comparator))
        margin = replay.margin(comparator) / norm if norm > 0 else 0.0
        given = Comparator(norm**2, replay.loss(comparator)[0], margin if isfinite(margin) else 0.0, comparator)
        return run.certificates(lambda bound: given)
    rivals = Rivals(run.margin, run.zero, np.zeros(data.n_features))
    for direction in (replay.state.last, replay.state.average, *replay.others(run.A)):
        replay.enter(rivals, direction)
    start = rivals.choose(lambda u: u.loss + u.norm2 / (2 * run.eta)).u
    replay.enter(rivals, replay.least(start, 1 / run.eta))
    return run.certificates(rivals.choose)


_SAME = "these lists, in this order, are what the ranker learned from, starting at 0, and lead to its weights"


def _another_run() -> Certificate:
    """What is left where the lists are not those of the run."""
    return Certificate(
        statement="loss while learning ≤ what one fixed ranker would have lost + the price of learning",
        value=inf,
        observed=nan,
        reference="Theorems 6 to 10",
        assumptions=(Assumption(_SAME, False),),
        meaning="the theorems speak of the stream that was learned from, and these lists do not lead to its weights",
    )


class Rivals:
    """Comparators at hand: directions, each at many lengths, with what the bounds need to know of them."""

    def __init__(self, delta: float, zero: float, nothing: Any) -> None:
        self._delta = delta
        self.found = [Comparator(0.0, zero, 0.0, nothing)]

    def add(self, unit: Any, margin: float, losses: Callable[[Floats], Floats], length: float | None = None) -> None:
        """Enter a direction of length 1 with its margin; `losses` are L at many lengths."""
        separates = 0 < margin < inf
        scales = np.concatenate([_SCALES, [self._delta / margin] if separates else [], [length] if length else []])
        for scale, loss in zip(scales.tolist(), losses(scales).tolist(), strict=True):
            loss = 0.0 if separates and scale * margin >= self._delta * (1 - 1e-12) else loss
            kept = scale * unit if isinstance(unit, np.ndarray) else replace(unit, alpha=scale * unit.alpha)
            self.found.append(Comparator(scale**2, loss, margin if isfinite(margin) else 0.0, kept))

    def choose(self, bound: Callable[[Comparator], float]) -> Comparator:
        """Return the comparator at which a bound is smallest."""
        return min(self.found, key=bound)


class Replay:
    """The rounds of a ranker, played again."""

    def __init__(self, ranker: OnlineRanker, learner: OnlineDescent, data: QueryDataset) -> None:
        self.data, self._ranker, self._scaling = data, ranker, learner.scaling
        self.learner = replace(learner, scaling=Scaling.NONE, compare=False)
        self.state, rows, self.seen = self.learner.start(data.n_features), [], list[_Seen]()
        rival, scales = (None, None) if learner.always else (np.zeros(data.n_docs), np.ones(1))
        for shown, order in self.passes():
            lists = (shown.X, shown.y, shown.ptr, order, shown.query_weight)
            played = self.learner.play(self.state, *lists, rival=rival, scales=scales)
            rows.append(played.rows)
            if learner.always:
                continue
            if self.seen and self.seen[-1].data is shown:
                self.seen[-1] = replace(self.seen[-1], weights=self.seen[-1].weights + played.weights)
            else:
                level = _list_kernels.number_grades(self.grades, np.array(shown.ptr))[0]
                self.seen.append(_Seen(shown, level, played.weights))
        self.rounds = np.concatenate(rows)
        # Scaling rows beforehand, or another type of processor, rounds otherwise than the learner's own loop did.
        own = ranker._state
        learned = own.average if ranker.averaged_ else own.last
        self.same = bool(ranker._passes["fresh"]) and _near(self.state.weights[0], own.weights[0])
        self.same &= int(own.totals[Total.ROUNDS]) == len(self.rounds) and _near(learned, ranker.coef_)

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

    def run(self, assumptions: tuple[Assumption, ...]) -> Run:
        """Return the numbers of the run and the constants of Lemma 5."""
        radius = max(longest_row(seen) for seen, _ in self.distinct())
        found = observed_run(self.learner, self.data, self.rounds, radius, assumptions)
        tight = max(tightest(self.learner.surrogate, one.data, one.weights) for one in self.seen)
        return replace(found, tight=tight, zero=self.loss(np.zeros(self.data.n_features))[0])

    def loss(self, u: Floats) -> tuple[float, Floats]:
        """L(u) = Σ_t f_t(u), and a subgradient."""
        total, slope = 0.0, np.zeros(len(u))
        for one in self.seen:
            g = np.empty(one.data.n_docs)
            scores = linear.scores(one.data.X, u)
            lists = (one.weights, one.level, np.array(one.data.ptr))
            total += float(_list_kernels.rival_slope(*self._kind, scores, *lists, g))
            slope += linear.adjoint(one.data.X, g)
        return total, slope

    def losses_at(self, u: Floats, scales: Floats) -> Floats:
        """L(c·u) for every c in `scales`."""
        losses = np.zeros(len(scales))
        for one in self.seen:
            scores = linear.scores(one.data.X, u)
            ptr = np.array(one.data.ptr)
            _list_kernels.rival_losses(*self._kind, scores, one.weights, one.level, ptr, scales, losses)
        return losses

    @property
    def _kind(self) -> tuple[bool, float]:
        loss = self.learner.surrogate
        return isinstance(loss, Minimax), float(getattr(loss, "margin", 1.0))

    def enter(self, rivals: Rivals, direction: Floats) -> None:
        """Enter a direction among the rivals, also at the length that it has."""
        norm = float(np.linalg.norm(direction))
        if norm > 0:
            unit = direction / norm
            rivals.add(unit, self.margin(unit), partial(self.losses_at, unit), norm)

    def others(self, A: float) -> Iterator[Floats]:
        """Yield directions that it did not find itself: of a longer run, and of a ranking SVM with hardly a penalty."""
        *_, (data, _) = self.distinct()
        yield from longer_run(self.learner, data, A)
        if data.X.shape[0] * data.n_features <= _MOST and not is_sparse(data.X):
            part = data if data.query_weight is None else data._but(query_weight=None)
            coded = part._but(y=self.grades, mapped=None)
            objective = Objective(
                coded, PairwiseHinge("squared_hinge"), alpha=1e-7 * max(longest_row(data), 1e-12) ** 2
            )
            yield Newton(tol=1e-6, max_iter=50).minimize(objective).w

    def least(self, start: Floats, alpha: float) -> Floats:
        """Return u with a small L(u) + (alpha/2)‖u‖²: subgradient steps 2/(alpha (t + 1)) from the best one known."""
        w, best, found = start.copy(), inf, start
        for t in range(_DESCENT):
            value, slope = self.loss(w)
            value += alpha / 2 * float(w @ w)
            if value < best:
                best, found = value, w.copy()
            w = w - (slope + alpha * w) * 2 / (alpha * (t + _DESCENT))
        return found


@dataclass(frozen=True, eq=False)
class _Seen:
    """Lists as the learner saw them, their grades by number, and what each document weighed in all rounds together."""

    data: QueryDataset
    level: Ints
    weights: Floats


def _near(a: Floats, b: Floats) -> bool:
    """Whether two vectors are the same up to what another processor rounds otherwise."""
    return a.shape == b.shape and bool(
        np.allclose(a, b, rtol=1e-6, atol=1e-9 * (1 + float(np.abs(b).max(initial=0.0))))
    )


def tightest(surrogate: Surrogate, data: QueryDataset, weights: Floats) -> float:
    """max diam²/vmin over the lists with a mistake: ‖z_t‖ ≤ diam_t, and f_t ≥ vmin_t Δ (docs/theory.md).

    A list of more than 300 documents counts twice its largest distance from the mean for its diameter.
    """
    v = surrogate.weights(data.y, data.ptr) if isinstance(surrogate, Slam) else np.ones(data.n_docs)
    largest = 0.0
    own = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    for a, b, c in zip(data.ptr[:-1].tolist(), data.ptr[1:].tolist(), own.tolist(), strict=True):
        if weights[a:b].any():
            rows = data.X[a:b]
            rows = np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
            if b - a <= 300:
                squares = float(pdist(rows, "sqeuclidean").max(initial=0.0))
            else:
                squares = 4 * float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max())
            largest = max(largest, c * squares / float(v[a:b][v[a:b] > 0].min()))
    return largest


def observed_run(
    learner: OnlineDescent, data: QueryDataset, rounds: Floats, radius: float, assumptions: tuple[Assumption, ...]
) -> Run:
    """Return the numbers of rounds that were played, and the constant of Lemma 5 for documents of norm ≤ `radius`."""
    measure, surrogate, _, znorm2 = rounds.T
    weight = 1.0 if data.query_weight is None else float(data.query_weight.max())
    algorithm: Algorithm = "minimax"
    A = 4 * radius**2 * max(weight, 1e-300)  # c²‖z‖² ≤ c A · c f for a query of weight c
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
        rounds=float(len(rounds)),
        radius=radius,
        weighted=data.query_weight is not None and bool((data.query_weight != 1).any()),
    )


def longer_run(learner: OnlineDescent, data: QueryDataset, A: float) -> tuple[Floats, Floats]:
    """Return the last and the averaged weights of a longer run that steps on the margin loss in every round."""
    longer = replace(learner, always=True, steps=Steps(1.0 / max(sqrt(A), 1e-300), Rule.SQRT))
    state = longer.start(data.n_features)
    rng = np.random.default_rng(0)
    for _ in range(_EPOCHS):
        longer.play(state, data.X, data.y, data.ptr, rng.permutation(data.n_queries), data.query_weight)
    return state.last, state.average


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
    u = replay.state.average if u is None else u
    loss = zero = 0.0
    for data, _ in replay.passes():
        weight = replay.learner.rounds(data.y, data.ptr).astype(np.float64)
        weight = weight if data.query_weight is None else weight * data.query_weight
        loss += float(replay.learner.surrogate.per_query(LinearModel(u).scores(data.X), data.y, data.ptr)[0] @ weight)
        zero += float(replay.learner.surrogate.per_query(np.zeros(data.n_docs), data.y, data.ptr)[0] @ weight)
    eta, totals = replay.learner.steps.eta, replay.rounds.sum(axis=0)
    return Certificate(
        statement="Σ f_t(w_t) ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖²",
        value=loss + float(u @ u) / (2 * eta) + eta / 2 * float(totals[3]),
        observed=float(totals[1]),
        reference="Eq. 17",
        assumptions=assumptions,
        vacuous_from=zero + eta / 2 * float(totals[3]),
        meaning="while it learned it lost little more than one fixed ranker would have",
        terms={"u": u, "‖u‖": float(np.linalg.norm(u)), "L(u)": loss, "η": eta, "Σ‖z_t‖²": float(totals[3])},
        arithmetic=f"{loss:.6g} + {float(u @ u) / (2 * eta):.6g} + {eta / 2 * float(totals[3]):.6g}",
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
