"""Fig. 1 (surrogates and margins in order), the counterexample to struct, and the rates of Theorems 12 to 15."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...certificates.base import Certificate
from ...certificates.convergence import sample_deviations, top_error
from ...certificates.margins import realised_margins
from ...data.csr import dense
from ...data.dataset import QueryDataset
from ...rankers import PerceptronAtK, SGDAtK, SVMPerf
from ...surrogates import PrecAvg, PrecMax, PrecRamp, PrecStruct
from ...surrogates.precision_at_k import PrecisionSurrogate
from ..exhibits import Exhibit, Panel, Said, judge, panels

BATCH = 500
ORDER = ("prec@k", "ramp", "avg", "max")


def fig1(*, lists: int = 2000, random_state: int = 0) -> Exhibit:
    """Fig. 1: the hierarchy of the surrogates, prec@k ≤ ramp ≤ avg ≤ max, and of the margins, on random lists."""
    rng, ptr = np.random.default_rng(random_state), np.array([0, 20])
    kinds: tuple[Callable[..., PrecisionSurrogate], ...] = (PrecRamp, PrecAvg, PrecMax)
    found = []
    for _ in range(lists):
        y = (rng.random(20) < rng.uniform(0.1, 0.6)).astype(np.float64)
        if not 0 < y.sum() < 20:
            continue
        s = rng.normal(size=20) * rng.choice([0.3, 1.0, 3.0]) + rng.choice([0.0, 2.0, 6.0]) * y
        k = int(rng.integers(1, int(y.sum()) + 1))
        margin, wrong = realised_margins(s, y, k=k), (y[np.argsort(-s)[:k]] == 0).sum()
        losses = (kind(k=k).per_query(s, y, ptr)[0][0] for kind in kinds)
        avg, struct = (kind(k=int(y.sum())).per_query(s, y, ptr)[0][0] for kind in (PrecAvg, PrecStruct))
        found.append((wrong, *losses, margin.weak, margin.k, margin.strong, avg - struct))
    columns = list(np.array(found).T)
    values, margins = dict(zip(ORDER, columns[:4], strict=True)), dict(zip(ORDER[1:], columns[4:7], strict=True))
    enough = {name: int((margin >= 1).sum()) for name, margin in margins.items()}
    rows = [(name, float(each.mean()), enough.get(name)) for name, each in values.items()]
    table, data = Table(("loss", "mean", "lists with its margin of 1"), rows), {"values": values, "margins": margins}
    title, claims = "Fig. 1: a hierarchy of surrogates and margins", _hierarchy(values, margins, columns[7])
    return Exhibit("fig1", title, data, table, claims=claims)


@judge
def _hierarchy(values: Mapping[str, Floats], margins: Mapping[str, Floats], apart: Floats) -> Said:
    for low, high in pairwise(ORDER):
        gap = values[high] - values[low]
        told = f"The smallest difference on {len(gap)} lists is {gap.min():.2g}."
        yield f"{low} ≤ {high}.", bool(gap.min() >= -1e-9), told
    weak, middle, strong = margins.values()
    ordered = (weak >= middle - 1e-9) & (middle >= strong - 1e-9)
    text = "The weak margin is the largest, the strong one the smallest."
    yield text, bool(ordered.all()), f"On {ordered.sum()} of {len(ordered)} lists."
    for (name, margin), which in zip(margins.items(), ("weak", "(k, γ)", "strong"), strict=True):
        found = np.abs(values[name][margin >= 1]) < 1e-9
        told = f"On {found.sum()} of {len(found)} lists with such a margin."
        yield f"A {which} margin of 1 makes {name} zero.", bool(found.all()) if len(found) else None, told
    most = float(np.abs(apart).max())
    yield "For k = n₊ avg is struct.", most < 1e-9, f"They differ by {most:.1g} at most."


def _population(n: int, seed: int) -> QueryDataset:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(np.float64)
    return QueryDataset.from_arrays(rng.normal(size=(n, 5)) + 0.8 * y[:, None], y)


def theorems(*, seeds: int = 5, random_state: int = 0) -> Exhibit:
    """Theorems 12 to 15: the rates in the batch length b and in the number of batches T, measured on generated rows."""
    kappa, pool = 0.25, _population(40_000, random_state)
    models = [w / np.linalg.norm(w) for w in np.random.default_rng(random_state).normal(size=(20, 5))]
    sizes, batches = np.array([125, 250, 500, 1000, 2000, 4000]), (10, 20, 40, 80, 160)
    strays = {
        name: sample_deviations(pool, models, kappa=kappa, loss=loss, sizes=sizes.tolist(), trials=200, seed=0)
        for name, loss in (("prec@κ", None), ("ramp", PrecRamp), ("avg", PrecAvg), ("max", PrecMax))
    }
    reached = np.array([np.mean([_loss(pool, T, seed, kappa) for seed in range(seeds)]) for T in batches])
    over = np.maximum(reached - _best_loss(pool, kappa), 1e-12)
    slope = float(np.polyfit(np.log(batches), np.log(over), 1)[0])
    runs = [np.mean([_ensemble(pool, T, seed, kappa) for seed in range(seeds)], axis=0) for T in batches]
    errors, needed = np.array(runs).T.tolist()
    curves = {name: found.quantiles for name, found in strays.items()}
    rows: list[tuple[Any, ...]] = [
        *((f"Theorem 12, {n}", "b", s.exponent, *map(float, s.quantiles[[0, -1]])) for n, s in strays.items()),
        ("Theorem 15, excess avg loss of SGD@k-avg", "T", slope, float(over[0]), float(over[-1])),
        ("Theorem 13, mean error of Perceptron@k-avg's models", "T", None, errors[0], errors[-1]),
    ]
    guide, styles = {"b^(−1/2)": curves["max"][0] * np.sqrt(sizes[0] / sizes)}, dict.fromkeys(curves, "o-")
    labels = ("sample size b", "95% quantile of the largest deviation")
    drawn = Panel({**curves, **guide}, sizes, *labels, log="xy", styles={**styles, **dict.fromkeys(guide, "k:")})
    constants = {name: (found.exponent, float(found.constants.max())) for name, found in strays.items()}
    by_batches = (dict(zip(batches, each, strict=True)) for each in (over.tolist(), needed))
    claims = (*_rates(constants, slope, *by_batches), *_mistakes(_proved(*_sample(pool, batches[-1], 0), kappa)))
    notes = ("Theorems stated as O(·) have no bound to hold a number against: measured are the powers.",)
    values = {**curves, "excess": over, "errors": errors, "needed": needed}
    table = Table(("what", "in", "power", "first", "last"), rows)
    return Exhibit("theorems", "Theorems 12 to 15: rates", values, table, notes, panels(drawn), claims)


@judge
def _rates(
    strays: Mapping[str, tuple[float, float]], slope: float, over: Mapping[int, float], needed: Mapping[int, float]
) -> Said:
    for name, (power, constant) in strays.items():
        told = f"The 95% quantile over 20 models falls like b^({power:.2f}); it would need the constant {constant:.2f}"
        yield f"Theorem 12: samples of {name} stray like b^(−1/2).", -0.6 <= power <= -0.4, f"{told} in √(log(1/δ)/b)."
    (first, most), *_, (last, least) = over.items()
    text = "Theorem 15: the excess loss of SGD@k-avg falls at least like T^(−1/2)."
    told = f"From {most:.4f} at T = {first} to {least:.4f} at {last}, like T^({slope:.2f})"
    yield text, slope <= -0.4, f"{told}; read as: a power of at most −0.4."
    text = "Theorem 13 and Corollary 14 bound the mean error of the models."
    told = ", ".join(f"{c:.3f} at T = {T}" for T, c in needed.items())
    yield text, None, f"They name no constant; that of √(log(T/δ)/b) would have to be {told}."


def _proved(X: Floats, y: Floats, kappa: float) -> list[Certificate]:
    """Return Theorems 7 and 9 and Corollaries 8 and 10 for one pass over rows that are moved apart."""
    data = QueryDataset.from_arrays(X + 3 * y[:, None], y)
    rankers = (PerceptronAtK(kappa=kappa, variant=v, average=False, epochs=1) for v in ("avg", "max"))
    found = (c for ranker in rankers for c in ranker.fit(data.X, data.y).certify(data))
    return [c for c in found if c.reference in ("Theorem 7", "Theorem 9", "Corollary 8", "Corollary 10")]


@judge
def _mistakes(found: Sequence[Certificate]) -> Said:
    for c in found:
        told = f"{c.observed:.0f} of {c.value:.4g}, on rows that are moved apart; {c.verdict}."
        yield f"{c.reference}: {c.statement}.", {"holds": True, "violated": False}.get(c.verdict), told


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
    title = "Where struct goes wrong: positives (1, 0) three times, negative (2, −½), k = 1"
    data = {"X": X, "y": y, "k": k, "C": C, "right": right, **found}
    table = Table(("w", "weights", "negatives in the top 1", "struct", "avg"), rows, digits=3)
    draw = partial(_plane, X, y, losses, found, right, C)
    return Exhibit("counterexample", title, data, table, draw=draw, claims=_wrong(rows))


@judge
def _wrong(rows: Sequence[Sequence[Any]]) -> Said:
    (_, _, right, *_), (_, _, wrong, struct, _), (_, _, avg, *_) = rows
    told = f"At its minimiser struct is {struct:.3f}, prec@k {wrong:.0f}."
    yield "Struct is not an upper bound of prec@k.", any(row[3] < row[2] - 1e-9 for row in rows), told
    text = "Struct's minimiser is wrong although a margin exists."
    told = f"It ranks {wrong:.0f} negative first, (0, 5) {right:.0f}, avg's minimiser {avg:.0f}."
    yield text, wrong > 0 and right == 0, told


def _plane(X: Floats, y: Floats, losses: Any, found: Any, right: Floats, C: float, figure: Any) -> None:
    """Draw the regularised struct and avg surrogates over the plane of weights."""
    figure.set_size_inches(9.0, 4.4)
    side = np.linspace(-7, 7, 141)
    grid = np.array([(a, b) for b in side for a in side])
    scores, ptr = grid @ X.T, np.arange(0, 4 * len(grid) + 1, 4)
    for axis, (name, loss) in zip(figure.subplots(1, 2, sharey=True), losses.items(), strict=True):
        value = loss.per_query(scores.ravel(), np.tile(y, len(grid)), ptr)[0] + (grid**2).sum(axis=1) / (2 * C)
        axis.contourf(side, side, value.reshape(141, 141), levels=18, cmap="Blues_r", alpha=0.9)
        wrong = (scores[:, 3] > scores[:, 0]).reshape(141, 141).astype(float)
        axis.contourf(side, side, wrong, levels=[0.5, 1.5], colors="none", hatches=["///"])
        axis.plot(*right, "o", color="#3a7d44", markersize=8, label="separates with a margin")
        axis.plot(*found[name], "X", color="#d1495b", markersize=9, label=f"minimiser of {name}")
        axis.set_title(f"{name} + ‖w‖²/{2 * C:g}; hatched: the negative is ranked first", fontsize=9)
        axis.set(xlabel="w₁", ylabel="w₂", aspect="equal")
        axis.legend(loc="lower left", fontsize=8)
