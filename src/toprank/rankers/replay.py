"""Certificates of online rankers: play the rounds again beside a comparator, then apply the theorems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import pdist

from .._typing import Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..certificates.mistakes import Algorithm, Choice, Run, ranking_margin
from ..certificates.replay import Direction, Replay, another_run
from ..certificates.worst import worst_values
from ..data import linear
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..errors import InputError
from ..measures import AP, NDCG
from ..objective import Objective
from ..penalties import L2
from ..solvers.newton import Newton
from ..solvers.steps import Rule, Scaling, Steps, Total
from ..solvers.stream import OnlineDescent, inverse_scale, longest_list, owned, within_moment
from ..surrogates import Minimax, PairwiseHinge, Slam, Surrogate, _margin_kernels
from .stream_notes import constant_of

if TYPE_CHECKING:
    from .online import OnlineRanker

_EPOCHS = 20
"""Passes of the search for a comparator."""
_DESCENT = 40
"""Steps of the descent on a bound's own right-hand side."""
_MOST = 2_000_000
"""Values in X up to which a ranking SVM is solved for a comparator."""


def certify_online(
    ranker: OnlineRanker, data: QueryDataset, here: Assumption, comparator: Floats | None
) -> list[Certificate]:
    """Return the certificates of a ranker that learned from `data`.

    The rounds are played again with the parameters, order and number of passes that the ranker remembers; that they end
    at the ranker's own weights is the first assumption. Scaled features are certified as the learner saw them: how they
    were scaled does not depend on the weights, so the scaled lists are a stream like any other. A comparator is then a
    weight vector for scaled features. Where none is given, each inequality gets the one at which it says most.
    """
    learner = ranker._learner()
    if not isinstance(learner.measure, (AP, NDCG)):
        return [another_run(Assumption(f"the measure is ndcg, ndcg@k or map, not {learner.measure}", False))]
    return certify_replay(here, comparator, lambda: OnlineReplay(ranker, learner, data))


def certify_replay(here: Assumption, comparator: Any, play: Callable[[], Replay]) -> list[Certificate]:
    """Return the certificates of the run played again; lists that were not all learned from need not be played."""
    if here.verified is False:
        return [another_run(Assumption(SAME_RUN, False))]
    return play().certificates(comparator)


SAME_RUN = "these lists, in this order, are what the ranker learned from, starting at 0, and lead to its weights"


class SeenLists:
    """Lists as the learner saw them, and what its surrogates were there, all rounds together."""

    def __init__(self, learner: OnlineDescent, data: QueryDataset) -> None:
        self.data, self._y, self._loss = data, owned(data.y), learner.surrogate
        self._rule = learner.rules(longest_list(data.ptr))[1]
        self._ptr, self._margin = np.array(data.ptr), float(getattr(learner.surrogate, "margin", 1.0))
        self.weights, self.slopes = np.zeros(data.n_docs), np.zeros(data.n_docs)
        """What each document weighed, and Σ_t of the subgradient in its score."""

    def add(self, scores: Floats, loss_weight: Floats) -> float:
        """Add rounds, at most one of each list, with what their losses weigh and the scores seen; return Σ z_t·w_t."""
        loss, y = self._loss, self.data.y
        each = np.repeat(loss_weight, self.data.lengths)
        slopes = np.where(each > 0, each * loss.per_query(scores, y, self._ptr)[1], 0.0)
        if isinstance(loss, Slam):
            each = each * loss.document_weights(y, self._ptr, scores if loss.within == "score" else None)
        self.weights += each
        self.slopes += slopes
        return float(slopes @ scores)

    def losses(self, scores: Floats, scales: Floats) -> Floats:
        """L(c·u) = Σ_t f_t(c·u) for every c in `scales`, from the scores of u."""
        if isinstance(self._loss, Slam):
            weights, gaps = self.weights, self._gaps(scores)[0]
        elif isinstance(self._loss, Minimax):  # of each list the pair most out of order
            filled = self.data.lengths > 0
            weights, gaps = (
                self._list_weights[filled],
                np.maximum.reduceat(self._gaps(scores)[0], self._ptr[:-1][filled]),
            )
        else:
            return np.array([self.loss(c * scores)[0] for c in scales])
        lost = (weights > 0) & (gaps > -np.inf)
        weights, gaps = weights[lost], gaps[lost]
        return np.array([float(weights @ np.maximum(0.0, self._margin + c * gaps)) for c in scales])

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """L(u) and a subgradient in the scores of u."""
        if not isinstance(self._loss, Slam):
            loss_weight, (values, slopes) = self._list_weights, self._loss.per_query(scores, self.data.y, self._ptr)
            return float(loss_weight @ values), np.repeat(loss_weight, self.data.lengths) * slopes
        gaps, best_below = self._gaps(scores)
        weights = np.where(self._margin + gaps > 0, self.weights, 0.0)  # as they were, not as they would be at u
        lost = np.flatnonzero(weights)
        slope = -weights
        np.add.at(slope, best_below[lost], weights[lost])
        return float(weights[lost] @ (self._margin + gaps[lost])), slope

    @property
    def _list_weights(self) -> Floats:
        """What each list weighed, where all its documents weigh the same."""
        return np.append(self.weights, 0.0)[self._ptr[:-1]] * (self.data.lengths > 0)

    def _gaps(self, scores: Floats) -> tuple[Floats, Ints]:
        """How far the best of lower grades is ahead of each document (−∞ where there is none), and which it is."""
        best_below = np.empty(len(scores), dtype=np.int64)
        _margin_kernels.best_below_of_lists(scores, self._y, self._ptr, self._rule, best_below)
        return np.where(best_below >= 0, scores[best_below] - scores, -np.inf), best_below


class OnlineReplay(Replay):
    """The rounds of a linear online ranker, played again."""

    def __init__(self, ranker: OnlineRanker, learner: OnlineDescent, data: QueryDataset) -> None:
        self.data, self._ranker, self._scaling = data, ranker, learner.scaling
        self.learner = replace(learner, scaling=Scaling.NONE, compare=False)
        self.state, rows, self.seen, self._along = self.learner.start(data.n_features), [], list[SeenLists](), 0.0
        if learner.always:
            self.lengths = np.empty(0)  # its own right-hand side is smooth: the minimiser has its best length
        for shown, order in self.passes():
            scores = np.zeros(shown.n_docs)
            lists = (shown.X, shown.y, shown.ptr, order, shown.query_weight)
            rows.append(self.learner.play(self.state, *lists, seen=scores))
            if not self.seen or self.seen[-1].data is not shown:
                self.seen.append(SeenLists(self.learner, shown))
            self._along += self.seen[-1].add(scores, loss_weights(self.learner, shown, order, rows[-1]))
        self.rounds = np.concatenate(rows)
        # Scaling rows beforehand, or another type of processor, rounds otherwise than the learner's own loop did.
        own = ranker._state
        learned = own.average if ranker.averaged_ else own.last
        same = bool(ranker._passes["fresh"]) and nearly_equal(self.state.weights[0], own.weights[0])
        same &= int(own.totals[Total.ROUNDS]) == len(self.rounds) and nearly_equal(learned, ranker.coef_)
        self.same = Assumption(SAME_RUN, same)

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
        X = np.array(dense(source.X), dtype=np.float64)
        rounds = self.learner.rounds(source.y, source.ptr)
        for q in order.tolist():
            a, b = int(source.ptr[q]), int(source.ptr[q + 1])
            if rounds[q] and (source.query_weight is None or source.query_weight[q] > 0):
                moment += within_moment(X[a:b])
                docs += b - a
            X[a:b] *= inverse_scale(moment, docs)
        return source.with_X(X), docs

    def distinct(self) -> Iterator[tuple[QueryDataset, Ints]]:
        """Yield the passes whose data differ: all with the running scale, else one."""
        return self.passes() if self._scaling == Scaling.RUNNING else islice(self.passes(), 1)

    @cached_property
    def run(self) -> Run:
        """The numbers of the run and the constants of Lemma 5."""
        radius = max(longest_row(seen) for seen, _ in self.distinct())
        found = observed_run(self.learner, self.data, self.rounds, radius, (self.same,))
        zero = sum(one.loss(np.zeros(one.data.n_docs))[0] for one in self.seen)
        tight = inf
        if found.algorithm != "listnet":
            tight = max(tightest_constant(self.learner.surrogate, one.data, one.weights) for one in self.seen)
        rest = 0.0 if found.constant else self._along - (found.half or 0.0)
        return replace(found, zero=zero, tight=tight, rest=rest)

    def direction(self, u: Floats) -> Direction:
        """Measure a weight vector."""
        norm = float(np.linalg.norm(u))
        unit = u / norm if norm > 0 else u
        scores = [linear.scores(one.data.X, unit) for one in self.seen]
        pairs = list(zip(self.seen, scores, strict=True))
        grades = self.learner.compared(self.data.y)
        return Direction(
            unit,
            norm,
            0.0 if self.learner.always else min(ranking_margin(s, grades, one.data.ptr) for one, s in pairs),
            lambda lengths: np.sum([one.losses(s, lengths) for one, s in pairs], axis=0),
            0.0 if self.run.constant else -sum(float(one.slopes @ s) for one, s in pairs),
        )

    def directions(self) -> Iterator[Floats]:
        """Yield the learner's weights, and directions that it did not find itself: a longer run's, a ranking SVM's."""
        yield from (self.state.last, self.state.average)
        if self.learner.always:
            return
        *_, (data, _) = self.distinct()
        yield from longer_run(self.learner, data, self.run.A)
        if data.X.shape[0] * data.n_features <= _MOST and not is_sparse(data.X):
            part = data if data.query_weight is None else data._with(query_weight=None)
            coded = part._with(y=self.learner.compared(data.y), mapped=None)
            alpha = 1e-7 * max(longest_row(data), 1e-12) ** 2
            yield (
                Newton(tol=1e-6, max_iter=50).minimize(Objective(coded, PairwiseHinge("squared_hinge"), L2(alpha))).w
            )

    def better_directions(self, choose: Choice) -> Iterator[Floats]:
        """Yield what a descent on the price of learning, which is convex in u, finds from the best u so far."""
        from scipy.optimize import minimize

        alpha = 1 / self.run.eta if self.run.constant else 0.0
        start = choose(self.run.price).u
        yield minimize(partial(self._price, alpha), start, jac=True, method="L-BFGS-B", options={"maxiter": _DESCENT}).x

    def _price(self, alpha: float, u: Floats) -> tuple[float, Floats]:
        """L(u) + (alpha/2)‖u‖², or L(u) − u·Σz_t where steps change, and its slope."""
        total, slope = alpha / 2 * float(u @ u), alpha * u
        for one in self.seen:
            scores = linear.scores(one.data.X, u)
            value, g = one.loss(scores)
            if not self.run.constant:
                value, g = value - float(one.slopes @ scores), g - one.slopes
            total, slope = total + value, slope + linear.adjoint(one.data.X, g)
        return total, slope


def loss_weights(learner: OnlineDescent, data: QueryDataset, order: Ints, rows: Floats) -> Floats:
    """Return what the loss of each list weighed in the pass that `rows` are of: 0 where it took none."""
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    counted, loss_weight = learner.rounds(data.y, data.ptr) & (weight > 0), np.zeros(data.n_queries)
    loss_weight[order[counted[order]]] = (rows[:, 2] > 0) | learner.always
    return loss_weight * weight


def nearly_equal(a: Floats, b: Floats) -> bool:
    """Whether two vectors are the same up to what another processor rounds otherwise."""
    return a.shape == b.shape and bool(
        np.allclose(a, b, rtol=1e-6, atol=1e-9 * (1 + float(np.abs(b).max(initial=0.0))))
    )


def tightest_constant(
    surrogate: Surrogate, data: QueryDataset, weights: Floats, square: Callable[[float], float] = float
) -> float:
    """max diam²/vmin over the lists with a mistake: ‖z_t‖ ≤ diam_t, and f_t ≥ vmin_t Δ (docs/theory.md).

    A list of more than 300 documents counts twice its largest distance from the mean for its diameter. `square` says
    what the square of a distance is in the space of a kernel.
    """
    v = surrogate.document_weights(data.y, data.ptr) if isinstance(surrogate, Slam) else np.ones(data.n_docs)
    largest = 0.0
    own = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    for a, b, c in zip(data.ptr[:-1].tolist(), data.ptr[1:].tolist(), own.tolist(), strict=True):
        if weights[a:b].any():
            rows = np.asarray(dense(data.X[a:b]), dtype=np.float64)
            if b - a <= 300:
                squares = float(pdist(rows, "sqeuclidean").max(initial=0.0))
            else:
                squares = 4 * float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max())
            largest = max(largest, c * square(squares) / float(v[a:b][v[a:b] > 0].min()))
    return largest


def observed_run(
    learner: OnlineDescent, data: QueryDataset, rounds: Floats, radius: float, assumptions: tuple[Assumption, ...]
) -> Run:
    """Return the numbers of rounds that were played, and the constant of Lemma 5 for documents of norm ≤ `radius`."""
    measure, surrogate, mistakes, znorm2 = rounds.T
    weight, loss, steps = data.query_weight, learner.surrogate, learner.steps
    algorithm, A = lemma_5(loss, data, radius)
    sizes = steps.size(np.arange(1, len(rounds) + 1), np.cumsum(znorm2)) * np.ones(len(rounds))
    active = (surrogate > 0) & (znorm2 > 0)
    return Run(
        algorithm=algorithm,
        A=A,
        eta=steps.eta,
        loss=float((1 - measure).sum()),
        mistakes=int(mistakes.sum()),
        surrogate=float(surrogate.sum()),
        znorm2=float(znorm2.sum()),
        largest_ratio=float((znorm2[active] / surrogate[active]).max(initial=0.0)),
        margin=float(getattr(loss, "margin", 1.0)),
        assumptions=assumptions,
        rounds=float(len(rounds)),
        worst=len(rounds) * _worst_loss(learner, data),
        radius=radius,
        weighted=weight is not None and bool((weight != 1).any()),
        constant=steps.rule == Rule.CONSTANT,
        half=float((sizes[active] * znorm2[active]).sum()) / 2,
    )


def _worst_loss(learner: OnlineDescent, data: QueryDataset) -> float:
    """The mean loss of the worst order, over the lists that are rounds: each pass plays all of them."""
    counted = learner.rounds(data.y, data.ptr) & (True if data.query_weight is None else data.query_weight > 0)
    if not counted.any():
        return 1.0
    return float(1 - worst_values(learner.measure, data.y, data.ptr)[counted].mean())


def lemma_5(loss: Surrogate, data: QueryDataset, radius: float) -> tuple[Algorithm, float]:
    """Return which algorithm steps on this loss, and its A: 4 m R_X² vmax, 4 k R_X² vmax or 4 R_X²."""
    heaviest = 1.0 if data.query_weight is None else float(data.query_weight.max())
    longest = int(data.lengths[data.informative].max(initial=1))
    vmax = largest_weight_ratio(loss, data) if isinstance(loss, Slam) else 1.0
    return constant_of(loss, radius**2, max(heaviest, 1e-300), longest, vmax)


def theory_step(
    eta: str,
    learner: OnlineDescent,
    data: QueryDataset,
    radius: float | None = None,
    square: Callable[[float], float] | None = float,
) -> float:
    """η = Δ/A, at which the margin bounds are A/γ²: A from these lists, or for a given R as in "theory:2.5".

    In the space of a kernel `radius` is R_X, and `square` is None where distances are not known.
    """
    _, colon, number = eta.partition(":")
    loss, informative = learner.surrogate, learner.rounds(data.y, data.ptr)
    if not isinstance(loss, (Slam, Minimax)) or learner.scaling == Scaling.RUNNING:
        raise InputError("eta='theory' is for the perceptrons, and not for features on a running scale")
    data = _centred(data) if learner.scaling == Scaling.QUERY else data
    try:
        given = float(number) if colon else None
    except ValueError:
        given = 0.0
    if given is not None and not 0 < given < inf:
        raise InputError(f"eta='theory:R' needs a number above 0 for R, the largest norm of a document, got {eta!r}")
    _, A = lemma_5(loss, data, given or (longest_row(data) if radius is None else radius))
    if given is None and square is not None:
        A = min(A, tightest_constant(loss, data, np.repeat(informative * 1.0, data.lengths), square))
    return float(getattr(loss, "margin", 1.0)) / A if A > 0 else 1.0


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
    v = surrogate.document_weights(data.y, data.ptr)
    ratio = 1.0
    for a, b in zip(data.ptr[:-1].tolist(), data.ptr[1:].tolist(), strict=True):
        positive = v[a:b][v[a:b] > 0]
        if len(positive):
            ratio = max(ratio, float(positive.max() / positive.min()))
    return ratio


def longest_row(data: QueryDataset) -> float:
    """R_X: the largest row norm of the informative lists."""
    return sqrt(float(linear.square_norms(data.X)[np.repeat(data.informative, data.lengths)].max(initial=0.0)))


def _centred(data: QueryDataset) -> QueryDataset:
    """Return each list centred and divided by its largest row norm, as `scale="query"` learns from it."""
    X = np.asarray(dense(data.X), dtype=np.float64).copy()
    for a, b in zip(data.ptr[:-1].tolist(), data.ptr[1:].tolist(), strict=True):
        if b > a:
            X[a:b] -= X[a:b].mean(axis=0)
            radius = float(np.sqrt((X[a:b] ** 2).sum(axis=1).max()))
            X[a:b] /= radius if radius > 0 else 1.0
    return data.with_X(X)
