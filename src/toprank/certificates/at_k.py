"""What is proved about learning precision at the top: mistake bounds, online-to-batch, and convergence.

Theorems 7 and 9 and their corollaries have every constant. Theorems 12 to 15 are orders: where the paper writes O(x),
the bound below is x with the constant 1 in place of the unknown one, and the certificate says `order_only`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._typing import Floats, Ints
from ..data import linear
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..solvers.sgd import Batches, State, Steps, Totals, sweep
from ..surrogates.precision_at_k import MistakesAvg, PrecAvg, PrecisionSurrogate, PrecMax, Rule
from .base import Assumption, Certificate
from .margins import Kind, largest_margin, realised_margins

DELTA = 0.05
"""The probability with which a bound may fail."""

_UPPER: dict[Rule, type[PrecisionSurrogate]] = {
    Rule.PERCEPTRON_AVG: PrecAvg,
    Rule.PERCEPTRON_MAX: PrecMax,
    Rule.AVG: PrecAvg,
    Rule.MAX: PrecMax,
}
_MARGIN: dict[Rule, Kind] = {Rule.PERCEPTRON_AVG: "k", Rule.PERCEPTRON_MAX: "strong"}


def certify_mini_batches(
    steps: Steps, batches: Batches, coef: Floats, comparator: Floats | None, *, seed: int | None = None
) -> list[Certificate]:
    """Run the learner once over the batches, from zero and in their order, and hold it against every theorem of its.

    `comparator` is the w (of any length: its best multiple is taken) that bounds are stated for; the learned weights
    where None. Nothing is known of the struct surrogate, so its learners get no certificate.
    """
    if steps.rule not in _UPPER:
        return []
    replay = Replay(steps, batches)
    against = coef if comparator is None else comparator
    found = []
    if steps.rule in _MARGIN:
        found += [mistake_bound(replay, against), separable_bound(replay, comparator)]
    if steps.kappa > 0 and not batches.by_query:
        found.append(uniform_convergence(batches.data, [coef, against], kappa=steps.kappa, seed=seed))
        if steps.rule in _MARGIN:
            found += [online_to_batch(replay), generalization(replay, against)]
        elif steps.rule == Rule.AVG:
            found.append(convergence(replay, against))
    return found


@dataclass(frozen=True, eq=False)
class Replay:
    """One pass of a learner over its batches, with what the theorems speak of."""

    steps: Steps
    batches: Batches

    @cached_property
    def run(self) -> tuple[State, Totals, list[Floats]]:
        """The final state, the totals, and up to 32 iterates spread evenly over the pass."""
        state, totals, iterates = State.zero(self.batches.data.n_features), Totals(), []
        for part in np.array_split(np.arange(self.batches.count), min(32, self.batches.count)):
            state, added = sweep(self.batches, part, self.steps, state)
            totals += added
            iterates.append(state.w)
        return state, totals, iterates

    @cached_property
    def radius(self) -> float:
        """R = max ‖x‖."""
        return math.sqrt(float(row_squares(self.batches.data).max()))

    @property
    def upper(self) -> PrecisionSurrogate:
        """The surrogate that the theorems put on the right-hand side."""
        kind = _UPPER[self.steps.rule]
        return kind(k=self.steps.k) if self.steps.k else kind(kappa=self.steps.kappa)

    def stream_loss(self, scores: Floats) -> float:
        """L_T(w) = Σ_t ℓ(w; batch t), over the batches that were not skipped."""
        losses, _ = self.upper.per_query(scores, self.batches.labels(), self.batches.bounds)
        return float(losses[self.batches.teaching()].sum())

    def population_loss(self, scores: Floats) -> float:
        """ℓ_κ(w; Z): the normalised surrogate of all rows as one list."""
        return float(replace(self.upper, normalize=True).per_query(scores, self.batches.data.y, self._whole)[0][0])

    def population_error(self, w: Floats) -> float:
        """prec@κ loss of w on all rows as one list."""
        s, y = linear.scores(self.batches.data.X, w), self.batches.data.y
        return float(_error(s, y, self.steps.kappa))

    @property
    def _whole(self) -> Ints:
        return np.array([0, self.batches.data.n_docs], dtype=np.int64)

    @property
    def mean_size(self) -> float:
        """b, the mean number of rows of a batch."""
        return float(np.diff(self.batches.bounds).mean())

    def rate(self, delta: float = DELTA) -> float:
        """√(log(T/δ)/b)."""
        return math.sqrt(math.log(max(self.run[1].batches, 1) / delta) / self.mean_size)


def mistake_bound(replay: Replay, w: Floats) -> Certificate:
    """Δ_T ≤ min_w (‖w‖ R √(4k) + √L_T(w))², the minimum over the multiples of one w (Theorem 7; Theorem 9 for max)."""
    totals = replay.run[1]
    scores, norm = linear.scores(replay.batches.data.X, w), float(np.linalg.norm(w))
    reach = norm * replay.radius * math.sqrt(4 * totals.largest_k)
    bound = best_multiple(lambda c: (c * reach + math.sqrt(max(replay.stream_loss(c * scores), 0.0))) ** 2)
    number = 7 if replay.steps.rule == Rule.PERCEPTRON_AVG else 9
    return Certificate(
        statement=f"mistakes of one pass over {totals.batches} batches ≤ (‖w‖R√(4k) + √L(w))², k = {totals.largest_k}",
        value=bound,
        observed=totals.loss,
        reference=f"Theorem {number}",
        assumptions=(Assumption(f"every row has norm at most R = {replay.radius:.4g}", True),),
        vacuous_from=float(totals.places),
    )


def separable_bound(replay: Replay, w: Floats | None = None) -> Certificate:
    """Δ_T ≤ 4kR²/γ² where a unit vector realises the (k, γ)-margin (Corollary 8; strong γ: Corollary 10)."""
    totals, kind = replay.run[1], _MARGIN[replay.steps.rule]
    options = {"k": replay.steps.k} if replay.steps.k else {"kappa": replay.steps.kappa}
    data = _as_lists(replay.batches)
    if w is None:
        gamma = largest_margin(data, kind, max_iter=60, **options).margin
    else:
        unit = w / (np.linalg.norm(w) or 1.0)
        gamma = getattr(realised_margins(linear.scores(data.X, unit), data.y, data.ptr, **options), kind)
    number, name = (8, f"({totals.largest_k}, γ)") if kind == "k" else (10, "strong γ")
    return Certificate(
        statement=f"mistakes ≤ 4kR²/γ², k = {totals.largest_k}, γ = {gamma:.4g}",
        value=4 * totals.largest_k * replay.radius**2 / gamma**2 if gamma > 0 else math.inf,
        observed=totals.loss,
        reference=f"Corollary {number}",
        assumptions=(
            Assumption(f"every row has norm at most R = {replay.radius:.4g}", True),
            Assumption(f"a unit vector realises a {name}-margin above 0 on every batch", gamma > 0),
        ),
        vacuous_from=float(totals.places),
    )


def online_to_batch(replay: Replay, delta: float = DELTA) -> Certificate:
    """(1/T) Σ_t prec@κ(w_t; Z) ≤ (1/T) Σ_t Δ_t/k_t + O(√(log(T/δ)/b)) (Theorem 13).

    The paper prints Δ_T/(bT); its prec@κ is normalised by k_t = κ n₊ and not by b, and so is the sum here.
    """
    totals = replay.run[1]
    return Certificate(
        statement="mean prec@κ loss of the iterates on all rows ≤ their mean loss on the stream + √(log(T/δ)/b)",
        value=totals.share / max(totals.batches, 1) + replay.rate(delta),
        observed=_mean_error(replay),
        reference="Theorem 13",
        assumptions=_RANDOM_ORDER,
        vacuous_from=1.0,
        order_only=True,
    )


def generalization(replay: Replay, w: Floats, delta: float = DELTA) -> Certificate:
    """(1/T) Σ_t prec@κ(w_t; Z) ≤ (√ℓ(w; Z) + C)², C = O(‖w‖R√(1/T) + √(log(T/δ)/b)) (Corollary 14)."""
    totals = replay.run[1]
    scores, norm = linear.scores(replay.batches.data.X, w), float(np.linalg.norm(w))
    reach, rate = norm * replay.radius / math.sqrt(max(totals.batches, 1)), replay.rate(delta)
    value = best_multiple(lambda c: (math.sqrt(max(replay.population_loss(c * scores), 0.0)) + c * reach + rate) ** 2)
    return Certificate(
        statement="mean prec@κ loss of the iterates on all rows ≤ (√ℓ(w) + ‖w‖R√(1/T) + √(log(T/δ)/b))²",
        value=value,
        observed=_mean_error(replay),
        reference="Corollary 14",
        assumptions=_RANDOM_ORDER,
        vacuous_from=1.0,
        order_only=True,
    )


def convergence(replay: Replay, w: Floats, delta: float = DELTA) -> Certificate:
    """ℓ(w̄; Z) ≤ ℓ(w; Z) + O(√(log(T/δ)/b)) + O(√(1/T)) for every w in the ball (Theorem 15)."""
    state, totals, _ = replay.run
    X = replay.batches.data.X
    scores, norm = linear.scores(X, w), float(np.linalg.norm(w))
    most = replay.steps.radius / norm if norm > 0 else math.inf
    best = best_multiple(lambda c: replay.population_loss(min(c, most) * scores))
    return Certificate(
        statement="normalised avg surrogate of the averaged weights ≤ that of w + √(log(T/δ)/b) + √(1/T)",
        value=best + replay.rate(delta) + math.sqrt(1 / max(totals.batches, 1)),
        observed=replay.population_loss(linear.scores(X, state.average)),
        reference="Theorem 15",
        assumptions=(
            *_RANDOM_ORDER,
            Assumption(f"w stays in a ball (radius {replay.steps.radius:g})", math.isfinite(replay.steps.radius)),
            Assumption("steps fall as 1/√t", replay.steps.decay == 0.5),
        ),
        vacuous_from=1.0,
        order_only=True,
    )


_RANDOM_ORDER = (Assumption("the rows come in random order"),)


@dataclass(frozen=True, eq=False)
class Deviations:
    """How far samples stray from the population: the (1 − δ)-quantile of sup_w |Ψ(w; Z) − Ψ(w; sample)| per size b."""

    sizes: tuple[int, ...]
    quantiles: Floats
    delta: float

    @property
    def constants(self) -> Floats:
        """quantile · √(b / log(1/δ)): level in b where the rate of Theorem 12 is the true one."""
        return np.asarray(self.quantiles * np.sqrt(np.array(self.sizes) / math.log(1 / self.delta)))

    @property
    def exponent(self) -> float:
        """Slope of log quantile against log b; Theorem 12 says −1/2 or steeper."""
        return float(np.polyfit(np.log(self.sizes), np.log(np.maximum(self.quantiles, 1e-300)), 1)[0])


def sample_deviations(
    data: QueryDataset,
    models: Sequence[Floats],
    *,
    kappa: float,
    loss: type[PrecisionSurrogate] | None = PrecAvg,
    sizes: Sequence[int] = (),
    trials: int = 200,
    delta: float = DELTA,
    seed: int | None = None,
) -> Deviations:
    """Draw samples of each size without replacement and measure how far the loss of the worst model strays.

    `loss` is PrecRamp, PrecAvg or PrecMax in its normalised form, or None for prec@κ itself.
    """
    n, rng = data.n_docs, np.random.default_rng(seed)
    positive = int((data.y > 0).sum())
    chosen = tuple(sizes) or tuple(n // 2**i for i in (6, 5, 4, 3))
    if min(chosen) < 2 or positive == 0 or max(chosen) > n:
        raise InputError(f"samples of {chosen} rows cannot be drawn from {n}")
    scores = [linear.scores(data.X, w) for w in models]
    surrogate = None if loss is None else loss(kappa=kappa, normalize=True)

    def psi(s: Floats, y: Floats) -> float:
        if surrogate is None:
            return _error(s, y, kappa)
        return float(surrogate.per_query(s, y, np.array([0, len(s)]))[0][0])

    truth = [psi(s, data.y) for s in scores]
    quantiles = []
    for size in chosen:
        worst = np.zeros(trials)
        for trial in range(trials):
            rows = rng.choice(n, size=size, replace=False)
            y = data.y[rows]
            worst[trial] = max(abs(psi(s[rows], y) - value) for s, value in zip(scores, truth, strict=True))
        quantiles.append(float(np.quantile(worst, 1 - delta)))
    return Deviations(chosen, np.array(quantiles), delta)


def uniform_convergence(
    data: QueryDataset,
    models: Sequence[Floats],
    *,
    kappa: float,
    loss: type[PrecisionSurrogate] | None = PrecAvg,
    sizes: Sequence[int] = (),
    trials: int = 200,
    delta: float = DELTA,
    seed: int | None = None,
) -> Certificate:
    """sup_w |Ψ(w; Z) − Ψ(w; sample of b)| ≤ C √(log(1/δ)/b) (Theorem 12), C measured on the smaller samples.

    The theorem's supremum runs over a ball and leaves C open. Here it runs over the directions of the models given and
    of eight random ones, at ‖w‖R = 1 and 4: a longer w makes the surrogate, and with it C, as large as one likes.
    """
    largest = math.sqrt(float(np.max(row_squares(data))))
    drawn = np.random.default_rng(seed).normal(size=(8, data.n_features))
    directions = [w / np.linalg.norm(w) for w in (*models, *drawn) if np.any(w)]
    family = [c / largest * w for w in directions for c in (1.0, 4.0)]
    found = sample_deviations(data, family, kappa=kappa, loss=loss, sizes=sizes, trials=trials, delta=delta, seed=seed)
    last = found.sizes[-1]
    name = "prec@κ" if loss is None else loss.__name__
    return Certificate(
        statement=f"{name} on samples of {last} rows strays by C√(log(1/δ)/b); measured: b^{found.exponent:.2f}",
        value=float(found.constants[:-1].max()) * math.sqrt(math.log(1 / delta) / last),
        observed=float(found.quantiles[-1]),
        reference="Theorem 12",
        assumptions=(Assumption("C is what the smaller samples show, for the directions at hand"),),
        order_only=True,
    )


def best_multiple(value: Callable[[float], float]) -> float:
    """Return the least value over c ≥ 0: zero, a grid of powers of two, and a golden section around the best of it."""
    grid = [0.0, *(2.0**p for p in range(-20, 21))]
    values = [value(c) for c in grid]
    at = int(np.argmin(values))
    low, high, ratio = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], (math.sqrt(5) - 1) / 2
    best = values[at]
    for _ in range(25):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        a, b = value(left), value(right)
        best = min(best, a, b)
        low, high = (low, right) if a < b else (left, high)
    return best


def row_squares(data: QueryDataset) -> Floats:
    """‖x‖² of every row."""
    X = data.X
    squares = X.multiply(X).sum(axis=1) if data.is_sparse else np.einsum("ij,ij->i", X, X)
    return np.asarray(squares, dtype=np.float64)


def _error(s: Floats, y: Floats, kappa: float) -> float:
    """prec@κ loss of one list, between 0 and 1."""
    return float(MistakesAvg(kappa=kappa, normalize=True).per_query(s, y, np.array([0, len(s)]))[0][0])


def _mean_error(replay: Replay) -> float:
    return float(np.mean([replay.population_error(w) for w in replay.run[2]]))


def _as_lists(batches: Batches) -> QueryDataset:
    """The batches as the queries of a data set."""
    return replace(
        batches.data, ptr=batches.bounds, query_ids=np.arange(batches.count), query_weight=None, order=None, mapped=None
    )
