"""What is proved about learning precision at the top: mistake bounds, online-to-batch, and convergence.

Theorems 7 and 9 and their corollaries have every constant. Theorems 12 to 15 are orders: where the paper writes O(x),
the bound below is x with the constant 1 in place of the unknown one, and the certificate says `order_only`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .._typing import Floats, Ints
from ..data import linear
from ..data.dataset import QueryDataset
from ..solvers.at_k import LearnerAtK, Lost
from ..solvers.batches import Batches
from ..solvers.steps import Rule, Steps
from ..surrogates.precision_at_k import MistakesAvg, MistakesMax, PrecAvg, PrecisionSurrogate, PrecMax, cutoff
from .base import Assumption, Certificate
from .convergence import DELTA, top_error, uniform_convergence
from .generalization import largest_norm
from .margins import Kind, largest_margin, realised_margins
from .mistakes import Choice, Comparator
from .replay import Direction, Replay
from .worst import most_mistakes

_UPPER: dict[type, type[PrecisionSurrogate]] = {
    MistakesAvg: PrecAvg,
    MistakesMax: PrecMax,
    PrecAvg: PrecAvg,
    PrecMax: PrecMax,
}
_MARGIN: dict[type, Kind] = {MistakesAvg: "k", MistakesMax: "strong"}
"""The margin that ends the mistakes of a perceptron."""


def certify_mini_batches(replay: TopReplay, coef: Floats, comparator: Floats | None, delta: float) -> list[Certificate]:
    """Hold a run against every theorem about its learner.

    `comparator` is the w (of any length: its best multiple is taken) that bounds are stated for; where None, each bound
    takes the best among the learned weights, a vector of large margin and what longer runs on the surrogate itself
    find. Nothing is known of the struct surrogate, so its learners get no certificate.
    """
    if replay.kind not in _UPPER:
        return []
    found = replay.certificates(comparator)
    if replay.kappa > 0 and not replay.by_query and replay.same.verified:
        family = [coef] if comparator is None else [coef, comparator]
        loss, w = _UPPER[replay.kind], family[-1]
        found.append(uniform_convergence(replay.data, family, kappa=replay.kappa, loss=loss, delta=delta, seed=0))
        if replay.kind in _MARGIN:
            found += [online_to_batch(replay, delta), generalization(replay, w, delta)]
        elif replay.kind is PrecAvg:
            found.append(convergence(replay, w, delta))
    return found


@dataclass(frozen=True)
class TopRun:
    """What a perceptron's run over batches showed."""

    kind: type
    """Its loss."""
    lost: Lost
    radius: float
    """R = max ‖x‖."""
    zero: float
    worst: float
    """The mistakes of the worst orders: Σ_t min(k_t, negatives)."""
    assumptions: tuple[Assumption, ...]
    margin: ClassVar[float] = 1.0

    def certificates(self, choose: Choice) -> list[Certificate]:
        """Return the mistake bound and the margin's, each at the comparator that suits it best; none for SGD."""
        if self.kind not in _MARGIN:
            return []
        return [self.mistakes(choose(self._bound)), self.separable(choose(lambda u: -u.margin))]

    def _bound(self, u: Comparator) -> float:
        return (math.sqrt(4 * self.lost.largest_k * u.norm2) * self.radius + math.sqrt(u.loss)) ** 2

    def mistakes(self, u: Comparator) -> Certificate:
        """Δ_T ≤ (‖u‖ R √(4k) + √L_T(u))² for every u (Theorem 7; Theorem 9 for max)."""
        k, bound, norm = self.lost.largest_k, self._bound(u), math.sqrt(u.norm2)
        return Certificate(
            statement=f"mistakes of {self.lost.batches} batches ≤ (‖u‖R√(4k) + √L(u))², k = {k}",
            value=bound,
            observed=self.lost.loss,
            reference=f"Theorem {7 if self.kind is MistakesAvg else 9}",
            assumptions=self.assumptions,
            vacuous_from=self.worst,
            meaning=f"while it learned, at most {bound:.6g} of the {self.lost.places} places at the top went to a "
            "wrong row",
            terms=u.terms | {"R": self.radius, "k": k},
            arithmetic=f"({norm:.4g}·{self.radius:.4g}·√{4 * k} + √{u.loss:.6g})² = {bound:.6g}",
        )

    def separable(self, u: Comparator) -> Certificate:
        """Δ_T ≤ 4kR²/γ² where a unit vector realises the (k, γ)-margin (Corollary 8; strong γ: Corollary 10)."""
        k, gamma = self.lost.largest_k, u.margin
        number, name = (8, f"({k}, γ)") if _MARGIN[self.kind] == "k" else (10, "strong γ")
        has = Assumption(f"a unit vector realises a {name}-margin above 0 on every batch", gamma > 0)
        return Certificate(
            statement=f"mistakes ≤ 4kR²/γ², k = {k}, γ = {gamma:.4g}",
            value=4 * k * self.radius**2 / gamma**2 if gamma > 0 else math.inf,
            observed=self.lost.loss,
            reference=f"Corollary {number}",
            assumptions=(*self.assumptions, has),
            vacuous_from=self.worst,
            meaning="while it learned, mistakes at the top were bound to end, however long it went on",
            terms=u.terms | {"γ": gamma, "R": self.radius, "k": k},
            arithmetic=f"4·{k}·{self.radius:.4g}²/{gamma:.4g}²",
        )


class TopReplay(Replay):
    """The run of a learner over its batches, pass after pass.

    `weights`, where given, are those that the run must end at to be the run that happened, and `mistakes` what its
    passes lost.
    """

    theorems = "Theorems 7 to 15"
    any_length = True
    lengths: Floats = np.exp2(np.arange(-20.0, 21.0))

    def __init__(
        self,
        learner: LearnerAtK,
        passes: Sequence[tuple[Batches, Ints]],
        weights: Floats | None = None,
        mistakes: Floats | None = None,
    ) -> None:
        self.surrogate, self.steps, self.passes = learner.surrogate, learner.steps, passes
        self.kind, (_, self.kappa) = type(self.surrogate), cutoff(self.surrogate.k, self.surrogate.kappa)
        """What it stepped on, and the share of the positives that is the top; 0 where that is a number."""
        self.data, self.by_query = passes[0][0].data, passes[0][0].by_query
        """The rows, and whether each query is a batch."""
        self.state, self.iterates = learner.start(self.data.n_features), list[Floats]()
        """The last state, and up to 32 iterates spread evenly over the run."""
        parts, lost = max(1, 32 // len(passes)), list[Lost]()
        for at, (batches, order) in enumerate(passes):
            of_pass, keep = list[Lost](), at % -(-len(passes) // 32) == 0
            for part in np.array_split(order, min(parts, len(order))):
                of_pass.append(learner.play(self.state, batches, part))
                if keep:
                    self.iterates.append(self.state.w.copy())
            lost.append(Lost.total(of_pass))
        self.lost = Lost.total(lost)
        self.same = Assumption("one pass over these rows, in their order", True)
        if weights is not None:
            size = 1e-6 * (1 + float(np.abs(weights).max(initial=0.0)))  # another processor may round otherwise
            last = self.state.w
            same = weights.shape == last.shape and np.allclose(last, weights, 1e-6, size)
            same &= mistakes is None or (
                len(mistakes) == len(lost) and np.allclose(mistakes, [one.loss for one in lost])
            )
            text = "these rows, in the order of the fit, lead to the ranker's weights"
            self.same = Assumption(text + ("" if mistakes is None else ", pass by pass with its losses"), bool(same))

    @cached_property
    def run(self) -> TopRun:
        """What it showed."""
        radius = Assumption(f"every row has norm at most R = {self.radius:.4g}", True)
        weighted = self.by_query and self.data.query_weight is not None
        assumptions = (self.same, radius, *([Assumption("all queries weigh 1", False)] if weighted else []))
        zero = float(self._losses(np.zeros(self.data.n_docs), np.ones(1))[0])
        return TopRun(self.kind, self.lost, self.radius, zero, self._most_mistakes(), assumptions)

    def direction(self, u: Floats) -> Direction:
        """Measure a weight vector."""
        norm = float(np.linalg.norm(u))
        unit = u / (norm or 1.0)
        scores, gamma = linear.scores(self.data.X, unit), math.inf
        if self.kind in _MARGIN:
            for batches in self._distinct:
                shown = scores[batches.rows] if len(batches.rows) else scores
                margins = realised_margins(shown, batches.labels(), batches.bounds, **self._cut)
                gamma = min(gamma, getattr(margins, _MARGIN[self.kind]))
        return Direction(unit, norm, gamma, lambda lengths: self._losses(scores, lengths))

    def directions(self) -> Iterator[Floats]:
        """Yield the learned weights, those of longer runs on the surrogate itself, and a vector of large margin."""
        if self.kind not in _MARGIN:
            return
        yield self.state.w.copy()
        loss = replace(self.upper, normalize=self.surrogate.normalize)
        longer = LearnerAtK(loss, Steps(1 / max(self.radius, 1e-300), Rule.SQRT))
        batches, state = self.passes[0][0], longer.start(self.data.n_features)
        for _ in range(3):
            for _ in range(4):
                longer.play(state, batches, np.arange(batches.count))
            yield from (w for w in (state.w.copy(), state.average) if np.isfinite(w).all())
        yield largest_margin(_as_lists(batches), _MARGIN[self.kind], max_iter=60, **self._cut).w

    @property
    def _cut(self) -> dict[str, Any]:
        return {"kappa": self.kappa} if self.kappa else {"k": self.surrogate.k}

    @property
    def _distinct(self) -> list[Batches]:
        """The passes that deal the rows out anew; else one."""
        return [batches for at, (batches, _) in enumerate(self.passes) if at == 0 or len(batches.rows)]

    @cached_property
    def radius(self) -> float:
        """R = max ‖x‖."""
        return largest_norm(self.data)

    @property
    def upper(self) -> PrecisionSurrogate:
        """The surrogate that the theorems put on the right-hand side."""
        return _UPPER[self.kind](**self._cut)

    def _losses(self, scores: Floats, lengths: Floats) -> Floats:
        """L_T(c·u) = Σ_t ℓ(c·u; batch t) at each length, over the batches of all passes that were not skipped."""
        total = np.zeros(len(lengths))
        for batches in self._distinct:
            shown, informative = scores[batches.rows] if len(batches.rows) else scores, batches.informative
            weight = batches.weight
            for at, c in enumerate(lengths.tolist()):
                losses, _ = self.upper.per_query(c * shown, batches.labels(), batches.bounds)
                total[at] += float((losses if weight is None else losses * weight)[informative].sum())
        return total * len(self.passes) / len(self._distinct)

    def _most_mistakes(self) -> float:
        """Σ_t min(k_t, negatives) over the batches of all passes that hold both classes."""
        total = 0.0
        for batches in self._distinct:
            most = most_mistakes(self._cut.get("k"), self._cut.get("kappa"), batches.labels(), batches.bounds)
            total += float(most[batches.informative].sum())
        return total * len(self.passes) / len(self._distinct)

    def population_loss(self, scores: Floats) -> float:
        """ℓ_κ(w; Z): the normalised surrogate of all rows as one list."""
        whole = np.array([0, self.data.n_docs], dtype=np.int64)
        return float(replace(self.upper, normalize=True).per_query(scores, self.data.y, whole)[0][0])

    def mean_error(self) -> float:
        """Mean prec@κ loss of the iterates on all rows as one list."""
        X, y, kappa = self.data.X, self.data.y, self.kappa
        return float(np.mean([top_error(linear.scores(X, w), y, kappa) for w in self.iterates]))

    @property
    def iterates_text(self) -> str:
        """Which iterates a mean is over."""
        batches, kept = self.lost.batches, len(self.iterates)
        return f"{kept} of the {batches} iterates, evenly spread" if kept < batches else f"the {batches} iterates"

    def rate(self, delta: float = DELTA) -> float:
        """√(log(T/δ)/b), b the mean number of rows of a batch."""
        size = float(np.diff(self.passes[0][0].bounds).mean())
        return math.sqrt(math.log(max(self.lost.batches, 1) / delta) / size)

    @property
    def one_pass(self) -> tuple[Assumption, ...]:
        """What the theorems about new rows need: rows in random order, seen once."""
        once = Assumption(f"the rows were seen once (they were seen {len(self.passes)} times)", len(self.passes) == 1)
        return (self.same, once, Assumption("the rows come in random order"))


def online_to_batch(replay: TopReplay, delta: float = DELTA) -> Certificate:
    """(1/T) Σ_t prec@κ(w_t; Z) ≤ (1/T) Σ_t Δ_t/k_t + O(√(log(T/δ)/b)) (Theorem 13).

    The paper prints Δ_T/(bT); its prec@κ is normalised by k_t = κ n₊ and not by b, and so is the sum here.
    """
    statement = f"mean prec@κ loss on all rows of {replay.iterates_text} ≤ mean loss on the stream + C√(log(T/δ)/b)"
    value = replay.lost.share / max(replay.lost.batches, 1) + replay.rate(delta)
    return _order_only(statement, value, replay.mean_error(), "Theorem 13", replay.one_pass)


def generalization(replay: TopReplay, w: Floats, delta: float = DELTA) -> Certificate:
    """(1/T) Σ_t prec@κ(w_t; Z) ≤ (√ℓ(w; Z) + C)², C = 2‖w‖R√(1/T) + O(√(log(T/δ)/b)) (Corollary 14).

    The 2 is that of Theorem 7: √(4k) of it, divided by √k.
    """
    scores = linear.scores(replay.data.X, w)
    reach = float(np.linalg.norm(w)) * replay.radius / math.sqrt(max(replay.lost.batches, 1))
    value = min(
        (math.sqrt(max(replay.population_loss(c * scores), 0.0)) + 2 * c * reach + replay.rate(delta)) ** 2
        for c in (0.0, *replay.lengths.tolist())
    )
    statement = f"mean prec@κ loss on all rows of {replay.iterates_text} ≤ (√ℓ(w) + 2‖w‖R√(1/T) + C√(log(T/δ)/b))²"
    return _order_only(statement, value, replay.mean_error(), "Corollary 14", replay.one_pass)


def convergence(replay: TopReplay, w: Floats, delta: float = DELTA) -> Certificate:
    """ℓ(w̄; Z) ≤ ℓ(w; Z) + O(√(log(T/δ)/b)) + O(√(1/T)) for every w in the ball (Theorem 15)."""
    X, radius, norm = replay.data.X, replay.steps.radius, float(np.linalg.norm(w))
    scores, most = linear.scores(X, w), radius / norm if norm > 0 else math.inf
    best = min(replay.population_loss(min(c, most) * scores) for c in (0.0, *replay.lengths.tolist()))
    return _order_only(
        "normalised avg surrogate of the averaged weights ≤ that of w + C(√(log(T/δ)/b) + √(1/T))",
        best + replay.rate(delta) + math.sqrt(1 / max(replay.lost.batches, 1)),
        replay.population_loss(linear.scores(X, replay.state.average)),
        "Theorem 15",
        (
            *replay.one_pass,
            Assumption(f"w stays in a ball (radius {radius:g})", math.isfinite(radius)),
            Assumption("steps fall as 1/√t", replay.steps.rule == Rule.SQRT),
        ),
    )


def _order_only(
    statement: str, value: float, observed: float, reference: str, assumptions: tuple[Assumption, ...]
) -> Certificate:
    return Certificate(statement, value, observed, reference, assumptions, vacuous_from=1.0, order_only=True)


def _as_lists(batches: Batches) -> QueryDataset:
    """The batches as the queries of a data set."""
    data = batches.data
    lists: dict[str, Any] = {
        "ptr": batches.bounds,
        "query_ids": np.arange(batches.count),
        "query_weight": None,
        "order": None,
    }
    if len(batches.rows):
        lists |= {"X": data.X[batches.rows], "y": data.y[batches.rows], "doc_ids": None}
    return replace(data, **lists, mapped=None)
