"""What is proved about learning precision at the top: mistake bounds, online-to-batch, and convergence.

Theorems 7 and 9 and their corollaries have every constant. Theorems 12 to 15 are orders: where the paper writes O(x),
the bound below is x with the constant 1 in place of the unknown one, and the certificate says `order_only`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Floats, Ints
from ..data import linear
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..solvers.sgd import Batches, State, Steps, Totals, sweep
from ..surrogates.precision_at_k import MistakesAvg, PrecAvg, PrecisionSurrogate, PrecMax, Rule
from .base import Assumption, Certificate
from .generalization import row_squares
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


def certify_mini_batches(replay: Replay, coef: Floats, comparator: Floats | None, delta: float) -> list[Certificate]:
    """Hold a run against every theorem about its learner.

    `comparator` is the w (of any length: its best multiple is taken) that bounds are stated for; where None, the one
    that makes the bound smallest among the learned weights, a vector of large margin and the minimisers that longer
    runs on the surrogate itself find. Nothing is known of the struct surrogate, so its learners get no certificate.
    """
    steps = replay.steps
    if steps.rule not in _UPPER:
        return []
    if not replay.same.verified:
        return [_another_run(replay)]
    candidates = [comparator] if comparator is not None else [coef, *replay.rivals()]
    found = []
    if steps.rule in _MARGIN:
        bounds = [mistake_bound(replay, w) for w in candidates]
        found += [min(bounds, key=lambda c: c.value), separable_bound(replay, comparator)]
    if steps.kappa > 0 and not replay.by_query:
        data = replay.data
        loss = _UPPER[steps.rule]
        found.append(uniform_convergence(data, [coef, *candidates], kappa=steps.kappa, loss=loss, delta=delta, seed=0))
        if steps.rule in _MARGIN:
            found += [online_to_batch(replay, delta), generalization(replay, candidates[0], delta)]
        elif steps.rule == Rule.AVG:
            found.append(convergence(replay, candidates[0], delta))
    return found


@dataclass(frozen=True, eq=False)
class Replay:
    """The run of a learner over its batches, pass after pass, with what the theorems speak of.

    `weights`, where given, are those that the run must end at to be the run that happened.
    """

    steps: Steps
    passes: Sequence[tuple[Batches, Ints]]
    weights: Floats | None = None

    @cached_property
    def run(self) -> tuple[State, Totals, list[Floats]]:
        """The final state, the totals, and up to 32 iterates spread evenly over the run."""
        state, totals, iterates = State.zero(self.data.n_features), Totals(), []
        parts = max(1, 32 // len(self.passes))
        for at, (batches, order) in enumerate(self.passes):
            keep = at % -(-len(self.passes) // 32) == 0
            for part in np.array_split(order, min(parts, len(order))):
                state, added = sweep(batches, part, self.steps, state)
                totals += added
                if keep:
                    iterates.append(state.w)
        return state, totals, iterates

    @cached_property
    def same(self) -> Assumption:
        """Whether the run ends at the ranker's own weights, up to what another processor may round otherwise."""
        text = "these rows, in the order of the fit, lead to the ranker's weights"
        if self.weights is None:
            return Assumption("one pass over these rows, in their order", True)
        size = 1e-6 * (1 + float(np.abs(self.weights).max(initial=0.0)))
        same = self.weights.shape == (self.data.n_features,) and np.allclose(self.run[0].w, self.weights, 1e-6, size)
        return Assumption(text, bool(same))

    @property
    def data(self) -> QueryDataset:
        """The rows."""
        return self.passes[0][0].data

    @property
    def by_query(self) -> bool:
        """Whether each query is a batch."""
        return self.passes[0][0].by_query

    @property
    def one_pass(self) -> Assumption:
        """Whether every row was seen once: the theorems about new rows need it."""
        return Assumption(f"the rows were seen once (they were seen {len(self.passes)} times)", len(self.passes) == 1)

    def rivals(self) -> list[Floats]:
        """Weights to state bounds for: of runs that step on the surrogate itself."""
        rule = Rule.AVG if _UPPER[self.steps.rule] is PrecAvg else Rule.MAX
        batches, state = self.passes[0][0], State.zero(self.data.n_features)
        longer = replace(self.steps, rule=rule, eta=1 / max(self.radius, 1e-300), decay=0.5, radius=np.inf)
        found = []
        for _ in range(3):
            for _ in range(4):
                state, _ = sweep(batches, np.arange(batches.count), longer, state)
            found += [state.w, state.average]
        return [w for w in found if np.isfinite(w).all()]

    @cached_property
    def radius(self) -> float:
        """R = max ‖x‖."""
        return math.sqrt(float(row_squares(self.data).max()))

    @property
    def upper(self) -> PrecisionSurrogate:
        """The surrogate that the theorems put on the right-hand side."""
        kind = _UPPER[self.steps.rule]
        return kind(k=self.steps.k) if self.steps.k else kind(kappa=self.steps.kappa)

    def stream_loss(self, scores: Floats) -> float:
        """L_T(w) = Σ_t ℓ(w; batch t), over the batches of all passes that were not skipped."""
        total, known = 0.0, 0.0
        for at, (batches, _) in enumerate(self.passes):
            if at == 0 or len(batches.rows):  # batches that no pass deals out anew have the same losses in each
                shown = scores[batches.rows] if len(batches.rows) else scores
                losses, _ = self.upper.per_query(shown, batches.labels(), batches.bounds)
                taught = batches.teaching()
                weight = self.data.query_weight if batches.by_query else None
                known = float((losses if weight is None else losses * weight)[taught].sum())
            total += known
        return total

    def population_loss(self, scores: Floats) -> float:
        """ℓ_κ(w; Z): the normalised surrogate of all rows as one list."""
        return float(replace(self.upper, normalize=True).per_query(scores, self.data.y, self._whole)[0][0])

    def population_error(self, w: Floats) -> float:
        """prec@κ loss of w on all rows as one list."""
        s, y = linear.scores(self.data.X, w), self.data.y
        return float(_error(s, y, self.steps.kappa))

    @property
    def _whole(self) -> Ints:
        return np.array([0, self.data.n_docs], dtype=np.int64)

    @property
    def mean_size(self) -> float:
        """b, the mean number of rows of a batch."""
        return float(np.diff(self.passes[0][0].bounds).mean())

    def rate(self, delta: float = DELTA) -> float:
        """√(log(T/δ)/b)."""
        return math.sqrt(math.log(max(self.run[1].batches, 1) / delta) / self.mean_size)


def mistake_bound(replay: Replay, w: Floats) -> Certificate:
    """Δ_T ≤ min_w (‖w‖ R √(4k) + √L_T(w))², the minimum over the multiples of one w (Theorem 7; Theorem 9 for max)."""
    totals = replay.run[1]
    scores, norm = linear.scores(replay.data.X, w), float(np.linalg.norm(w))
    reach = norm * replay.radius * math.sqrt(4 * totals.largest_k)
    bound, c = best_multiple(lambda c: (c * reach + math.sqrt(max(replay.stream_loss(c * scores), 0.0))) ** 2)
    number = 7 if replay.steps.rule == Rule.PERCEPTRON_AVG else 9
    loss = replay.stream_loss(c * scores)
    return Certificate(
        statement=f"mistakes of {totals.batches} batches ≤ (‖u‖R√(4k) + √L(u))², k = {totals.largest_k}",
        value=bound,
        observed=totals.loss,
        reference=f"Theorem {number}",
        assumptions=_of_the_run(replay),
        vacuous_from=float(totals.places),
        meaning=f"while it learned, at most {bound:.6g} of the {totals.places} places at the top went to a wrong row",
        terms={"u": c * w, "‖u‖": c * norm, "L(u)": loss, "R": replay.radius, "k": totals.largest_k},
        arithmetic=f"({c * norm:.4g}·{replay.radius:.4g}·√{4 * totals.largest_k} + √{loss:.6g})² = {bound:.6g}",
    )


def _of_the_run(replay: Replay) -> tuple[Assumption, ...]:
    weighted = replay.by_query and replay.data.query_weight is not None
    radius = Assumption(f"every row has norm at most R = {replay.radius:.4g}", True)
    return (replay.same, radius, *([Assumption("all queries weigh 1", False)] if weighted else []))


def _another_run(replay: Replay) -> Certificate:
    """What is left where the rows are not those of the run."""
    return Certificate(
        statement="mistakes while learning ≤ (‖u‖R√(4k) + √L(u))²",
        value=math.inf,
        observed=math.nan,
        reference="Theorems 7 to 15",
        assumptions=(replay.same,),
        meaning="the theorems speak of the run that this ranker learned in, and these rows do not lead to its weights",
    )


def separable_bound(replay: Replay, w: Floats | None = None) -> Certificate:
    """Δ_T ≤ 4kR²/γ² where a unit vector realises the (k, γ)-margin (Corollary 8; strong γ: Corollary 10)."""
    totals, kind = replay.run[1], _MARGIN[replay.steps.rule]
    options = {"k": replay.steps.k} if replay.steps.k else {"kappa": replay.steps.kappa}
    first = _as_lists(replay.passes[0][0])
    unit = largest_margin(first, kind, max_iter=60, **options).w if w is None else w / (np.linalg.norm(w) or 1.0)
    scores, gamma = linear.scores(replay.data.X, unit), math.inf
    for at, (batches, _) in enumerate(replay.passes):
        if at == 0 or len(batches.rows):
            shown = scores[batches.rows] if len(batches.rows) else scores
            gamma = min(gamma, getattr(realised_margins(shown, batches.labels(), batches.bounds, **options), kind))
    number, name = (8, f"({totals.largest_k}, γ)") if kind == "k" else (10, "strong γ")
    return Certificate(
        statement=f"mistakes ≤ 4kR²/γ², k = {totals.largest_k}, γ = {gamma:.4g}",
        value=4 * totals.largest_k * replay.radius**2 / gamma**2 if gamma > 0 else math.inf,
        observed=totals.loss,
        reference=f"Corollary {number}",
        assumptions=(
            *_of_the_run(replay),
            Assumption(f"a unit vector realises a {name}-margin above 0 on every batch", gamma > 0),
        ),
        vacuous_from=float(totals.places),
        meaning="while it learned, mistakes at the top were bound to end, however long it went on",
        terms={"u": unit, "γ": gamma, "R": replay.radius, "k": totals.largest_k},
        arithmetic=f"4·{totals.largest_k}·{replay.radius:.4g}²/{gamma:.4g}²",
    )


def online_to_batch(replay: Replay, delta: float = DELTA) -> Certificate:
    """(1/T) Σ_t prec@κ(w_t; Z) ≤ (1/T) Σ_t Δ_t/k_t + O(√(log(T/δ)/b)) (Theorem 13).

    The paper prints Δ_T/(bT); its prec@κ is normalised by k_t = κ n₊ and not by b, and so is the sum here.
    """
    totals = replay.run[1]
    return Certificate(
        statement=f"mean prec@κ loss on all rows of {_some(replay)} ≤ mean loss on the stream + C√(log(T/δ)/b)",
        value=totals.share / max(totals.batches, 1) + replay.rate(delta),
        observed=_mean_error(replay),
        reference="Theorem 13",
        assumptions=(replay.same, replay.one_pass, *_RANDOM_ORDER),
        vacuous_from=1.0,
        order_only=True,
    )


def generalization(replay: Replay, w: Floats, delta: float = DELTA) -> Certificate:
    """(1/T) Σ_t prec@κ(w_t; Z) ≤ (√ℓ(w; Z) + C)², C = O(‖w‖R√(1/T) + √(log(T/δ)/b)) (Corollary 14)."""
    totals = replay.run[1]
    scores, norm = linear.scores(replay.data.X, w), float(np.linalg.norm(w))
    reach, rate = norm * replay.radius / math.sqrt(max(totals.batches, 1)), replay.rate(delta)
    value, _ = best_multiple(
        lambda c: (math.sqrt(max(replay.population_loss(c * scores), 0.0)) + c * reach + rate) ** 2
    )
    return Certificate(
        statement=f"mean prec@κ loss on all rows of {_some(replay)} ≤ (√ℓ(w) + C(‖w‖R√(1/T) + √(log(T/δ)/b)))²",
        value=value,
        observed=_mean_error(replay),
        reference="Corollary 14",
        assumptions=(replay.same, replay.one_pass, *_RANDOM_ORDER),
        vacuous_from=1.0,
        order_only=True,
    )


def convergence(replay: Replay, w: Floats, delta: float = DELTA) -> Certificate:
    """ℓ(w̄; Z) ≤ ℓ(w; Z) + O(√(log(T/δ)/b)) + O(√(1/T)) for every w in the ball (Theorem 15)."""
    state, totals, _ = replay.run
    X = replay.data.X
    scores, norm = linear.scores(X, w), float(np.linalg.norm(w))
    most = replay.steps.radius / norm if norm > 0 else math.inf
    best, _ = best_multiple(lambda c: replay.population_loss(min(c, most) * scores))
    return Certificate(
        statement="normalised avg surrogate of the averaged weights ≤ that of w + C(√(log(T/δ)/b) + √(1/T))",
        value=best + replay.rate(delta) + math.sqrt(1 / max(totals.batches, 1)),
        observed=replay.population_loss(linear.scores(X, state.average)),
        reference="Theorem 15",
        assumptions=(
            replay.same,
            replay.one_pass,
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
    name = "prec@κ" if loss is None else loss.__name__
    if not sizes and data.n_docs < 128:
        few = Assumption(f"there are at least 128 rows to draw samples from, not {data.n_docs}", False)
        said = f"{name} on samples of b rows strays by C√(log(1/δ)/b)"
        return Certificate(said, math.inf, math.nan, "Theorem 12", (few,), order_only=True)
    largest = math.sqrt(float(np.max(row_squares(data)))) or 1.0
    drawn = np.random.default_rng(seed).normal(size=(8, data.n_features))
    directions = [w / np.linalg.norm(w) for w in (*models, *drawn) if np.any(w)]
    family = [c / largest * w for w in directions for c in (1.0, 4.0)]
    found = sample_deviations(data, family, kappa=kappa, loss=loss, sizes=sizes, trials=trials, delta=delta, seed=seed)
    last = found.sizes[-1]
    return Certificate(
        statement=f"{name} on samples of {last} rows strays by C√(log(1/δ)/b); measured: b^{found.exponent:.2f}",
        value=float(found.constants[:-1].max()) * math.sqrt(math.log(1 / delta) / last),
        observed=float(found.quantiles[-1]),
        reference="Theorem 12",
        assumptions=(Assumption("C is what the smaller samples show, for the directions at hand"),),
        order_only=True,
        meaning=f"what is true of {last} rows is true of all of them to within about {float(found.quantiles[-1]):.4g}",
        terms={"exponent": found.exponent, "C": float(found.constants[-1]), "b": last},
    )


def best_multiple(value: Callable[[float], float]) -> tuple[float, float]:
    """Return the least value over c ≥ 0, and that c: zero, powers of two, and a golden section around the best."""
    grid = [0.0, *(2.0**p for p in range(-20, 21))]
    found = [(value(c), c) for c in grid]
    best = min(found)
    at = grid.index(best[1])
    low, high, ratio = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], (math.sqrt(5) - 1) / 2
    for _ in range(25):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        a, b = (value(left), left), (value(right), right)
        best = min(best, a, b)
        low, high = (low, right) if a[0] < b[0] else (left, high)
    return best


def _error(s: Floats, y: Floats, kappa: float) -> float:
    """prec@κ loss of one list, between 0 and 1."""
    return float(MistakesAvg(kappa=kappa, normalize=True).per_query(s, y, np.array([0, len(s)]))[0][0])


def _mean_error(replay: Replay) -> float:
    return float(np.mean([replay.population_error(w) for w in replay.run[2]]))


def _some(replay: Replay) -> str:
    """Say which iterates a mean is over."""
    batches, kept = replay.run[1].batches, len(replay.run[2])
    return f"{kept} of the {batches} iterates, evenly spread" if kept < batches else f"the {batches} iterates"


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
