"""Fig. 1 (surrogates and margins in order), the counterexample to struct, and the rates of Theorems 12 to 15."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...certificates.convergence import sample_deviations, top_error
from ...certificates.margins import realised_margins
from ...data.csr import dense
from ...data.dataset import QueryDataset
from ...rankers import PerceptronAtK, SGDAtK, SVMPerf
from ...surrogates import PrecAvg, PrecMax, PrecRamp, PrecStruct
from ...surrogates.precision_at_k import PrecisionSurrogate
from ..exhibits import Exhibit, claim
from .drawing import draw_counterexample

BATCH = 500
ORDER = ("prec@k", "ramp", "avg", "max")


def fig1(*, lists: int = 2000, random_state: int = 0) -> Exhibit:
    """Fig. 1: the hierarchy of the surrogates, prec@k ≤ ramp ≤ avg ≤ max, and of the margins, on random lists."""
    rng = np.random.default_rng(random_state)
    kinds: dict[str, Callable[..., PrecisionSurrogate]] = {"ramp": PrecRamp, "avg": PrecAvg, "max": PrecMax}
    values: dict[str, list[float]] = {name: [] for name in ORDER}
    margins, zero = [], {name: [0, 0] for name in kinds}
    for _ in range(lists):
        y = (rng.random(20) < rng.uniform(0.1, 0.6)).astype(np.float64)
        if not 0 < y.sum() < 20:
            continue
        s = rng.normal(size=20) * rng.choice([0.3, 1.0, 3.0]) + rng.choice([0.0, 2.0, 6.0]) * y
        k, ptr = int(rng.integers(1, int(y.sum()) + 1)), np.array([0, 20])
        top = np.argsort(-s)[:k]
        values["prec@k"].append(float((y[top] == 0).sum()))
        found = realised_margins(s, y, k=k)
        margins.append((found.weak, found.k, found.strong))
        for (name, kind), margin in zip(kinds.items(), margins[-1], strict=True):
            values[name].append(float(kind(k=k).per_query(s, y, ptr)[0][0]))
            if margin >= 1:
                zero[name][0] += 1
                zero[name][1] += abs(values[name][-1]) < 1e-9
    means = {name: float(np.mean(v)) for name, v in values.items()}
    claims = []
    for low, high in pairwise(ORDER):
        gap = np.array(values[high]) - np.array(values[low])
        claims.append(
            claim(
                f"{low} ≤ {high}.",
                bool((gap >= -1e-9).all()),
                f"The smallest difference on {len(gap)} lists is {gap.min():.4f}.",
            )
        )
    ordered = [a >= b - 1e-9 and b >= c - 1e-9 for a, b, c in margins]
    claims.append(
        claim(
            "The weak margin is the largest, the strong one the smallest.",
            all(ordered),
            f"On {sum(ordered)} of {len(ordered)} lists.",
        )
    )
    for name, which in zip(kinds, ("weak", "(k, γ)", "strong"), strict=True):
        of, good = zero[name]
        claims.append(
            claim(
                f"A {which} margin of 1 makes {name} zero.",
                None if of == 0 else good == of,
                f"On {good} of {of} lists with such a margin.",
            )
        )
    rows = [(name, means[name], zero.get(name, [None])[0]) for name in ORDER]
    table = Table(("loss", "mean", "lists with its margin of 1"), rows)
    title = "Fig. 1: a hierarchy of surrogates and margins"
    return Exhibit("fig1", title, {"means": means, "zero": zero}, table, claims=tuple(claims))


def _population(n: int, seed: int) -> QueryDataset:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(np.float64)
    X = rng.normal(size=(n, 5)) + 0.8 * y[:, None]
    return QueryDataset.from_arrays(X, y)


def theorems(*, seeds: int = 5, random_state: int = 0) -> Exhibit:
    """Theorems 12 to 15: the rates in the batch length b and in the number of batches T, measured on generated rows."""
    kappa, pool = 0.25, _population(40_000, random_state)
    rng = np.random.default_rng(random_state)
    models = [w / np.linalg.norm(w) for w in rng.normal(size=(20, 5))]
    sizes = (125, 250, 500, 1000, 2000, 4000)
    rows: list[tuple[Any, ...]] = []
    claims = []
    values: dict[str, Any] = {}
    for name, loss in (("prec@κ", None), ("ramp", PrecRamp), ("avg", PrecAvg), ("max", PrecMax)):
        found = sample_deviations(pool, models, kappa=kappa, loss=loss, sizes=sizes, trials=200, seed=0)
        rows.append((f"Theorem 12, {name}", "b", found.exponent, float(found.quantiles[0]), float(found.quantiles[-1])))
        values[name] = found.quantiles
        claims.append(
            claim(
                f"Theorem 12: samples of {name} stray like b^(−1/2).",
                -0.6 <= found.exponent <= -0.4,
                f"The 95% quantile over 20 models falls like b^({found.exponent:.2f}); it would need the constant "
                f"{found.constants.max():.2f} in √(log(1/δ)/b).",
            )
        )
    batches = (10, 20, 40, 80, 160)
    excess = np.array([np.mean([_loss(pool, T, seed, kappa) for seed in range(seeds)]) for T in batches])
    over = np.maximum(excess - _best_loss(pool, kappa), 1e-12)
    slope = float(np.polyfit(np.log(batches), np.log(over), 1)[0])
    rows.append(("Theorem 15, excess avg loss of SGD@k-avg", "T", slope, float(over[0]), float(over[-1])))
    claims.append(
        claim(
            "Theorem 15: the excess loss of SGD@k-avg falls at least like T^(−1/2).",
            slope <= -0.4,
            f"From {over[0]:.4f} at T = {batches[0]} to {over[-1]:.4f} at {batches[-1]}, like T^({slope:.2f}); "
            "read as: a power of at most −0.4.",
        )
    )
    runs = {T: [_ensemble(pool, T, seed, kappa) for seed in range(seeds)] for T in batches}
    errors, needed = ([float(np.mean([run[i] for run in runs[T]])) for T in batches] for i in (0, 1))
    rows.append(("Theorem 13, mean error of Perceptron@k-avg's models", "T", None, errors[0], errors[-1]))
    told = ", ".join(f"{c:.3f} at T = {T}" for T, c in zip(batches, needed, strict=True))
    claims.append(
        claim(
            "Theorem 13 and Corollary 14 bound the mean error of the models.",
            None,
            f"They name no constant; that of √(log(T/δ)/b) would have to be {told}.",
        )
    )
    values |= {"excess": over, "errors": errors, "needed": needed}
    notes = ("Theorems stated as O(·) have no bound to hold a number against: measured are the powers.",)

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for name in ("prec@κ", "ramp", "avg", "max"):
            axis.loglog(sizes, values[name], "o-", label=name)
        axis.loglog(sizes, values["max"][0] * np.sqrt(sizes[0] / np.array(sizes)), "k:", label="b^(−1/2)")
        axis.set(xlabel="sample size b", ylabel="95% quantile of the largest deviation")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)

    table = Table(("what", "in", "power", "first", "last"), rows)
    return Exhibit("theorems", "Theorems 12 to 15: rates", values, table, notes, draw, tuple(claims))


def _sample(pool: QueryDataset, T: int, seed: int) -> tuple[Floats, Floats]:
    rows = np.random.default_rng(seed).choice(pool.n_docs, size=T * BATCH, replace=pool.n_docs < T * BATCH)
    return dense(pool.X[rows]), pool.y[rows]


def _ensemble(pool: QueryDataset, T: int, seed: int, kappa: float, delta: float = 0.05) -> tuple[float, float]:
    """Return the mean error of the T models on the population, and the constant that Theorem 13 needs."""
    X, y = _sample(pool, T, seed)
    ranker, seen, errors = PerceptronAtK(kappa=kappa, average=False), 0.0, []
    w = np.zeros(pool.n_features)
    for start in range(0, len(y), BATCH):
        rows = slice(start, start + BATCH)
        errors.append(top_error(pool.X @ w, pool.y, kappa))
        seen += top_error(X[rows] @ w, y[rows], kappa)
        w = ranker.partial_fit(X[rows], y[rows]).coef_
    mean, batches = float(np.mean(errors)), len(errors)
    return mean, max(mean - seen / batches, 0.0) / float(np.sqrt(np.log(batches / delta) / BATCH))


def _avg_loss(pool: QueryDataset, w: Floats, kappa: float) -> float:
    return float(PrecAvg(kappa=kappa, normalize=True).per_query(pool.X @ w, pool.y, pool.ptr)[0][0])


def _loss(pool: QueryDataset, T: int, seed: int, kappa: float) -> float:
    X, y = _sample(pool, T, seed)
    return _avg_loss(pool, SGDAtK(kappa=kappa, radius=2.0, epochs=1, shuffle=None).fit(X, y).coef_, kappa)


def _best_loss(pool: QueryDataset, kappa: float) -> float:
    """Return the smallest avg loss in the ball, by many full steps."""
    ranker = SGDAtK(kappa=kappa, radius=2.0, epochs=300, batch_size=pool.n_docs, shuffle=None).fit(pool.X, pool.y)
    return min(_avg_loss(pool, ranker.coef_, kappa), _avg_loss(pool, np.zeros(pool.n_features), kappa))


def counterexample() -> Exhibit:
    """Struct is no upper bound and its minimiser is wrong, where avg and a margin are right (Section 3.1).

    Three positives at (1, 0), a negative at (2, −½), k = 1. Along (0, 1) every positive lies above the negative. But
    with three positives and one place, struct = max(s⁺, s⁻ + 1) − 3 s⁺ pays for pushing all of them up the first axis,
    and the negative goes up twice as fast: its minimiser in every ball ranks the negative first.
    """
    X, y, k, C = np.array([[1.0, 0.0]] * 3 + [[2.0, -0.5]]), np.array([1.0, 1.0, 1.0, 0.0]), 1, 5.0
    found = {name: SVMPerf(name, k=k, C=C).fit(X, y).coef_ for name in ("struct", "avg")}
    right = np.array([0.0, 5.0])
    losses: dict[str, PrecisionSurrogate] = {"struct": PrecStruct(k=k), "avg": PrecAvg(k=k)}
    rows: list[list[Any]] = []
    for who, w in (("(0, 5), which separates", right), *((f"minimiser of {n}", w) for n, w in found.items())):
        s = X @ w
        values = [loss.value_and_grad(s, y, [0, 4])[0] for loss in losses.values()]
        rows.append([who, f"({w[0]:.2f}, {w[1]:.2f})", float(s[3] > s[0]), *values])
    claims = (
        claim(
            "Struct is not an upper bound of prec@k.",
            any(row[3] < row[2] - 1e-9 for row in rows),
            f"At its minimiser struct is {rows[1][3]:.3f}, prec@k {rows[1][2]:.0f}.",
        ),
        claim(
            "Struct's minimiser is wrong although a margin exists.",
            rows[1][2] > 0 and rows[0][2] == 0,
            f"It ranks {rows[1][2]:.0f} negative first, (0, 5) {rows[0][2]:.0f}, avg's minimiser {rows[2][2]:.0f}.",
        ),
    )
    return Exhibit(
        name="counterexample",
        title="Where struct goes wrong: positives (1, 0) three times, negative (2, −½), k = 1",
        data={"X": X.tolist(), "y": y.tolist(), "k": k, "C": C, "right": right, **found},
        table=Table(("w", "weights", "negatives in the top 1", "struct", "avg"), rows, digits=3),
        draw=lambda figure: draw_counterexample(figure, X, y, losses, found, right, C),
        claims=claims,
    )
