"""Generalization analysis of listwise learning-to-rank algorithms: its tables and statements, recomputed and checked.

The last exhibit is not in the paper: the gap between training and fresh data, measured, beside the bound on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .. import rankers
from .._progress import track
from .._tables import Cell, Table
from .._typing import Floats
from ..certificates.generalization import (
    ALGORITHMS,
    Algorithm,
    generalization_bound,
    largest_norm,
    log_c,
    normalized_risk,
    normalizer,
)
from ..data.dataset import QueryDataset
from ..data.synthetic import make_graded
from ..objective import Objective
from ..solvers.ball import project
from ..surrogates.listwise import ListMLE, ListNet, Listwise, RankCosine
from ..surrogates.transforms import Exponential, Linear, Sigmoid, Transform
from .base import Checkpoint, Exhibit

_SHORT = {"linear": "φL", "exponential": "φE", "sigmoid": "φS"}


def _printed(kind: str, a: float, b: float, bm: float, m: int) -> dict[str, float]:
    """N(φ) and C_A(φ) by the formulas that Table 1 prints."""
    if kind == "linear":
        n, low, width = a, b - a * bm, math.log((b + a * bm) / (b - a * bm))
    elif kind == "exponential":
        n, low, width = a * math.exp(a * bm), math.exp(-a * bm), 2 * a * bm
    else:
        n, low, width = a * math.exp(a * bm) / (1 + math.exp(-a * bm)) ** 2, 1 / (1 + math.exp(a * bm)), a * bm
    likelihood = 2 / (low * (math.log(m) + width))
    return {
        "N": n,
        "ListMLE": likelihood,
        "ListNet": math.factorial(m) * likelihood,
        "RankCosine": math.sqrt(m) / (2 * low),
    }


def _transforms(a: float, b: float) -> dict[str, Transform]:
    return {"linear": Linear(a, b), "exponential": Exponential(a), "sigmoid": Sigmoid(a)}


def table_1(quick: bool = False) -> Exhibit:
    """Table 1: N(φ) and C_A(φ) for every algorithm and transform, printed form against definition."""
    m = 10
    rows: list[tuple[Cell, ...]] = []
    worst, checks = 0.0, []
    for bm, (kind, phi) in product((0.5, 1.0, 2.0), _transforms(1.0, 3.0).items()):
        printed = _printed(kind, 1.0, 3.0, bm, m)
        grid = np.linspace(-bm, bm, 20001)
        numeric = float(np.max(np.diff(phi(grid)) / np.diff(grid)))
        values = {name: math.exp(log_c(name, phi, bm, m)) for name in ALGORITHMS}
        worst = max(worst, *(abs(values[name] / printed[name] - 1) for name in ALGORITHMS))
        checks.append({"BM": bm, "transform": kind, "printed": printed, "numeric N": numeric, "C": values})
        rows.append((bm, _SHORT[kind], printed["N"], numeric, *(values[name] for name in ALGORITHMS)))
    columns = ("BM", "φ", "N printed", "N = sup φ'", *(f"C {name}" for name in ALGORITHMS))
    return Exhibit(
        "table-1",
        "Table 1: N(φ) and C_A(φ), a = 1, b = 3, m = 10",
        {"checks": checks, "largest relative difference of C": worst},
        Table(columns, rows),
        (
            f"The printed C_A(φ) and the definition agree to a relative {worst:.1e}.",
            "The printed N(φS) over-estimates sup φ' = a/4; the others are exact.",
        ),
    )


def _products(algorithm: Algorithm, a: float, b: float, bm: float, m: int) -> dict[str, float]:
    """log C_A(φ) N(φ) as printed, for the three transforms."""
    return {_SHORT[kind]: log_c(algorithm, phi, bm, m) + phi.steepest(bm) for kind, phi in _transforms(a, b).items()}


def _tighter(values: dict[str, float]) -> str:
    return " ≺ ".join(sorted(values, key=lambda name: values[name]))


def table_2(quick: bool = False) -> Exhibit:
    """Table 2: which transform gives RankCosine the tighter bound, on a grid of aBM and b − aBM."""
    rng = np.random.default_rng(0)
    counts: dict[str, list[int]] = {}
    points = []
    for _ in range(300 if quick else 3000):
        bm, a = rng.uniform(0.05, 3), rng.uniform(0.2, 2)
        K = math.exp(-a * bm)
        slack = K * K * math.exp(rng.uniform(-1.5, 1.5))
        if slack > K**2 * (1 + K):
            condition, wanted = "b − aBM > K²(1 + K)", "φL ≺ φS ≺ φE"
        elif slack > K**2:
            condition, wanted = "K² < b − aBM < K²(1 + K)", "φS ≺ φL ≺ φE"
        else:
            condition, wanted = "0 < b − aBM < K²", "φS ≺ φE ≺ φL"
        found = _tighter(_products("RankCosine", a, a * bm + slack, bm, 10))
        tally = counts.setdefault(f"{condition}|{wanted}", [0, 0])
        tally[0] += 1
        tally[1] += found == wanted
        points.append((a * bm, slack, found))
    rows: list[tuple[Cell, ...]] = [(*key.split("|"), n, good) for key, (n, good) in sorted(counts.items())]
    ratio = {u: math.exp(_ratio(u)) for u in (0.5, 1.0, 2.0)}

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for name, colour in (("φL ≺ φS ≺ φE", "C0"), ("φS ≺ φL ≺ φE", "C1"), ("φS ≺ φE ≺ φL", "C2")):
            here = [(u, s) for u, s, found in points if found == name]
            axes.scatter(*zip(*here, strict=True), s=5, color=colour, label=name)
        u = np.linspace(0.02, 6, 200)
        axes.plot(u, np.exp(-2 * u) * (1 + np.exp(-u)), color="black", lw=1, label="K²(1 + K)")
        axes.plot(u, np.exp(-2 * u), color="black", lw=1, ls="--", label="K²")
        axes.set(yscale="log", xlabel="aBM", ylabel="b − aBM", title="RankCosine: the tighter transform (Table 2)")
        axes.legend(markerscale=3)

    return Exhibit(
        "table-2",
        "Table 2: results of different φ for RankCosine (K = e^(−aBM))",
        {"rows": rows, "ratio φE/φS": ratio},
        Table(("condition", "result", "points", "agree"), rows),
        (
            "The text says that exponential and sigmoid differ by 1 + e^(aBM); by Table 1 the factor is 1 + e^(−aBM): "
            + ", ".join(f"{value:.4f} at aBM = {u:g}" for u, value in ratio.items())
            + ". The conclusion φS ≺ φE stands.",
        ),
        draw,
    )


def _ratio(u: float) -> float:
    values = _products("RankCosine", 1.0, u + 1, u, 10)
    return values["φE"] - values["φS"]


def table_3(quick: bool = False) -> Exhibit:
    """Table 3: which transform gives ListMLE and ListNet the tighter bound, where b > K²(1 + K) + aBM."""
    rng = np.random.default_rng(1)
    counts = {pair: [0, 0, 0] for pair in ("φL and φE", "φL and φS", "φS and φE")}
    for _ in range(500 if quick else 5000):
        a, bm = rng.uniform(0.2, 2), rng.uniform(0.05, 2)
        u, m = a * bm, int(math.exp(rng.uniform(math.log(3), math.log(1000))))
        K = math.exp(-u)
        slack = K**2 * (1 + K) * math.exp(rng.uniform(0.01, 2))
        wide = math.log((2 * u + slack) / slack)
        limits = {
            "φL and φE": (2 * u * K**2 - slack * wide) / (slack - K**2),
            "φL and φS": (u * K**2 * (1 + K) - slack * wide) / (slack - K**2 * (1 + K)),
            "φS and φE": u * (math.exp(u) - 1),
        }
        for algorithm in ("ListMLE", "ListNet"):
            values = _products(algorithm, a, u + slack, bm, m)
            for pair, limit in limits.items():
                first, second = pair.split(" and ")
                above = math.log(m) > limit
                counts[pair][0] += 1
                counts[pair][1] += above
                counts[pair][2] += (values[first] < values[second]) == above
    rows = [(pair, n, above, agree) for pair, (n, above, agree) in counts.items()]
    lengths = np.unique(np.geomspace(3, 1000, 30).astype(int))
    curves = {
        u: {
            name: [math.exp(_products("ListMLE", 1.0, u + 1, u, int(m))[name]) for m in lengths]
            for name in ("φL", "φS", "φE")
        }
        for u in (0.5, 1.0, 2.0)
    }
    example = _tighter(_products("ListMLE", 1.0, 11.0, 10.0, 1000))

    def draw(figure: Any) -> None:
        for axes, (u, values) in zip(figure.subplots(1, 3, sharex=True, sharey=True), curves.items(), strict=True):
            for name, curve in values.items():
                axes.plot(lengths, curve, label=name)
            axes.axvline(math.exp(min(u * (math.exp(u) - 1), 7)), color="grey", lw=1, ls=":")
            axes.set(xscale="log", yscale="log", xlabel="list length m", title=f"aBM = {u:g}")
        figure.suptitle("ListMLE: the tighter transform (Table 3), b = aBM + 1")
        figure.axes[0].set_ylabel("C_ListMLE(φ) N(φ)")
        figure.axes[0].legend()

    return Exhibit(
        "table-3",
        "Table 3: results of different φ for ListMLE and ListNet",
        {
            "rows": rows,
            "lengths": lengths,
            "curves": {str(u): values for u, values in curves.items()},
            "example": example,
        },
        Table(("pair", "points", "log m above the limit", "agree with Table 3"), rows),
        (
            "The text's example (a = 1, M = 1, B = 10, b = 11) claims φL ≺ φS ≺ φE for all m ≥ 1. By its own Table 3, "
            f"φS ≺ φE needs log m > aBM(e^(aBM) − 1) = {10 * (math.exp(10) - 1):.0f}: at m = 1000 we get {example}.",
            "In the figure the dotted line is where φS and φE change places.",
        ),
        draw,
    )


def list_length(quick: bool = False) -> Exhibit:
    """The statements on m: ListMLE's bound falls with it, the others rise, and from 6 on it is below RankCosine's."""
    lengths = list(range(3, 61))
    kinds = {f"{name} (BM = {bm:g})": (phi, bm) for bm in (0.25, 1.0) for name, phi in _transforms(1.0, bm + 1).items()}
    curves = {
        label: {name: [log_c(name, phi, bm, m) for m in lengths] for name in ALGORITHMS}
        for label, (phi, bm) in kinds.items()
    }
    rows = []
    for label, values in curves.items():
        below = [m for m, x, y in zip(lengths, values["ListMLE"], values["RankCosine"], strict=True) if x < y]
        rows.append(
            (
                label,
                "yes" if (np.diff(values["ListMLE"]) < 0).all() else "no",
                "yes" if (np.diff(values["ListNet"]) > 0).all() and (np.diff(values["RankCosine"]) > 0).all() else "no",
                below[0],
            )
        )
    conditions = _below_six()

    def draw(figure: Any) -> None:
        for axes, label in zip(figure.subplots(1, 2), ("exponential (BM = 0.25)", "exponential (BM = 1)"), strict=True):
            for name, values in curves[label].items():
                axes.plot(lengths, np.array(values) / math.log(10), label=name)
            axes.axvline(6, color="grey", lw=1, ls=":")
            axes.set(xlabel="list length m", title=label, ylim=(-1, 6))
        figure.axes[0].set_ylabel("log10 C_A(φ)")
        figure.axes[0].legend()

    return Exhibit(
        "list-length",
        "The bounds and the list length m (Section 3.3.1)",
        {"lengths": lengths, "log C": curves, "below six": conditions, "rows": rows},
        Table(("transform", "ListMLE falls with m", "others rise with m", "ListMLE < RankCosine from m ="), rows),
        (
            "For m ≥ 6 the constant of ListMLE is always below that of RankCosine: 4/√m < log m.",
            f"For m of 3 to 5 the text's conditions decide: {conditions['agree']} of {conditions['points']} random "
            "settings agree.",
        ),
        draw,
    )


def _below_six() -> dict[str, int]:
    """Check the conditions for 3 ≤ m < 6 on random parameters."""
    rng = np.random.default_rng(2)
    points = agree = 0
    for _ in range(400):
        m, u = int(rng.integers(3, 6)), float(rng.uniform(0.01, 3))
        b = u * (1 + float(rng.exponential(1)))
        edge = 4 / math.sqrt(m)
        predicted = {
            "linear": b / u < (math.exp(edge) + m) / (math.exp(edge) - m),
            "exponential": u > (edge - math.log(m)) / 2,
            "sigmoid": u > edge - math.log(m),
        }
        for kind, phi in _transforms(1.0, b).items():
            points += 1
            agree += (log_c("ListMLE", phi, u, m) < log_c("RankCosine", phi, u, m)) == predicted[kind]
    return {"points": points, "agree": agree}


def rate(quick: bool = False) -> Exhibit:
    """The O(1/√n) rate of the bounds, and how many queries it takes until they say anything."""
    sizes = np.geomspace(10, 1e9, 33)
    settings: list[tuple[Algorithm, Transform]] = [
        ("ListMLE", Linear(1.0, 2.0)),
        ("RankCosine", Linear(1.0, 2.0)),
        ("ListMLE", Exponential(1.0)),
        ("ListMLE", Sigmoid(1.0)),
        ("ListNet", Linear(1.0, 2.0)),
    ]
    curves, rows = {}, []
    for algorithm, phi in settings:
        logs = [generalization_bound(algorithm, phi, radius=1, norm=1, m=10, n=int(n)).log_value for n in sizes]
        slope = float(np.polyfit(np.log(sizes), logs, 1)[0])
        one = generalization_bound(algorithm, phi, radius=1, norm=1, m=10, n=1)
        needed = math.ceil(math.exp(2 * one.log_value))
        curves[f"{algorithm}, {phi}"] = logs
        rows.append((algorithm, str(phi), slope, f"{needed:.3g}"))

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for label, logs in curves.items():
            axes.plot(sizes, np.exp(logs), label=label)
        axes.axhline(1, color="grey", lw=1, ls=":")
        axes.set(xscale="log", yscale="log", xlabel="queries n", ylabel="bound on the gap", ylim=(1e-4, 1e9))
        axes.set_title("O(1/√n): above the dotted line a bound says nothing")
        axes.legend()

    return Exhibit(
        "rate",
        "The rate O(1/√n): B = M = a = 1, b = 2, m = 10, δ = 0.05",
        {"sizes": sizes, "log bound": curves},
        Table(("algorithm", "transform", "slope of log bound in log n", "queries for a bound below 1"), rows),
        ("Every bound is (constant)/√n, so the slope is −½ and the constant squared is the number of queries needed.",),
        draw,
    )


@dataclass(frozen=True)
class _Gap:
    """Measured gaps of one setting, and the bound on them."""

    trained: float
    largest: float
    bound: float
    tighter: float


_RANKERS: dict[Algorithm, tuple[Callable[..., Any], Callable[..., Listwise]]] = {
    "ListMLE": (rankers.ListMLE, ListMLE),
    "ListNet top-one": (rankers.ListNet, ListNet),
    "RankCosine": (rankers.RankCosine, RankCosine),
}


def _measure_gap(
    algorithm: Algorithm, phi: Transform, n: int, pool: QueryDataset, fresh: QueryDataset, radius: float, repeats: int
) -> _Gap:
    """Train on n queries of the pool and compare with fresh ones; then climb to where the two differ most."""
    kind, loss_of = _RANKERS[algorithm]
    norm = max(largest_norm(pool), largest_norm(fresh))
    bound, loss = radius * norm, loss_of(transform=phi)
    scale = normalizer(algorithm, phi, bound, int(pool.lengths[0]))
    trained, largest = [], []
    for repeat in range(repeats):
        train = pool[repeat * n : (repeat + 1) * n]
        w = kind(transform=phi, radius=radius, alpha=0.0, max_iter=100, tol=1e-5).fit_queries(train).coef_
        trained.append(normalized_risk(loss, w, fresh, bound) - normalized_risk(loss, w, train, bound))
        largest.append(_climb(Objective(fresh, loss), Objective(train, loss), w, radius) / scale)
    shared = {"radius": radius, "norm": norm, "m": int(pool.lengths[0]), "n": n}
    printed = generalization_bound(algorithm, phi, **shared)  # type: ignore[arg-type]
    exact = generalization_bound(algorithm, phi, exact=True, **shared)  # type: ignore[arg-type]
    return _Gap(float(np.mean(trained)), float(np.mean(largest)), printed.value, exact.value)


def _climb(fresh: Objective, train: Objective, w: Floats, radius: float, steps: int = 25) -> float:
    """Return the largest risk − empirical risk seen on a walk uphill inside the ball."""
    best = -math.inf
    for step in range(1, steps + 1):
        (up, up_grad), (down, down_grad) = fresh.value_and_grad(w), train.value_and_grad(w)
        best = max(best, up - down)
        way = up_grad - down_grad
        w = project(w + 0.5 * radius / math.sqrt(step) * way / max(float(np.linalg.norm(way)), 1e-300), radius)
    return best


def gap(quick: bool = False, checkpoint: Path | None = None) -> Exhibit:
    """Measured generalisation gap against n, m and φ on generated data, beside the bound (not in the paper)."""
    sizes = (20, 80) if quick else (10, 30, 100, 300, 1000)
    lengths = (5, 10) if quick else (5, 10, 20, 40)
    repeats, n_fresh, radius = (2, 300, 1.0) if quick else (8, 4000, 1.0)
    cells = Checkpoint(checkpoint)
    jobs: list[tuple[str, Algorithm, str, int, int]] = [
        *(("n", "ListMLE", kind, n, 10) for kind in _SHORT for n in sizes),
        *(("m", name, "exponential", sizes[-1] if quick else 100, m) for name in _RANKERS for m in lengths),
    ]
    made: dict[int, QueryDataset] = {}
    rows = []
    for axis, algorithm, kind, n, m in track(jobs, "measuring gaps"):
        needed = repeats * max(sizes)

        def compute(
            algorithm: Algorithm = algorithm, kind: str = kind, n: int = n, m: int = m, needed: int = needed
        ) -> Any:
            if m not in made:
                made[m] = _unit_rows(make_graded(needed + n_fresh, n_docs=(m, m), n_features=10, random_state=m))
            data = made[m]
            phi = _transforms(1.0, radius * 1.0 + 1)[kind]
            return vars(_measure_gap(algorithm, phi, n, data[:needed], data[needed:], radius, repeats))

        key = {"algorithm": algorithm, "transform": kind, "n": n, "m": m, "repeats": repeats, "fresh": n_fresh}
        value = cells.get(key, compute)
        rows.append((axis, algorithm, kind, n, m, value["trained"], value["largest"], value["bound"], value["tighter"]))

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for colour, kind in zip(("C0", "C1", "C2"), _SHORT, strict=True):
            part = [row for row in rows if row[0] == "n" and row[2] == kind]
            x = [row[3] for row in part]
            left.plot(x, [row[7] for row in part], color=colour, label=f"{kind}: bound")
            left.plot(x, [row[6] for row in part], "o--", color=colour, label="largest gap found")
        left.axhline(1, color="grey", lw=1, ls=":")
        left.set(xscale="log", yscale="log", xlabel="queries n", ylabel="normalised gap", title="ListMLE, m = 10")
        left.legend(fontsize=7)
        for colour, name in zip(("C0", "C1", "C2"), _RANKERS, strict=True):
            part = [row for row in rows if row[0] == "m" and row[1] == name]
            x = [row[4] for row in part]
            right.plot(x, [row[7] for row in part], color=colour, label=f"{name}: bound")
            right.plot(x, [row[6] for row in part], "o--", color=colour, label="largest gap found")
        right.axhline(1, color="grey", lw=1, ls=":")
        right.set(xscale="log", yscale="log", xlabel="list length m", title=f"exponential, n = {rows[-1][3]}")
        right.set_xticks(lengths, labels=[str(m) for m in lengths])
        right.minorticks_off()
        right.legend(fontsize=7)

    columns = ("along", "algorithm", "φ", "n", "m", "trained gap", "largest gap found", "bound", "bound, exact N")
    return Exhibit(
        "gap",
        "Measured generalisation gap beside the bound (B = M = a = 1, b = 2, δ = 0.05)",
        {"columns": columns, "rows": rows},
        Table(columns, rows, digits=5),
        (
            f"Means of {repeats} training sets against {n_fresh} fresh queries; a loss is divided by its largest value."
            " The largest gap is the best of 25 steps uphill inside the ball, so it is a lower bound of the supremum.",
            "Both sides fall like 1/√n, and the bound is loose by orders of magnitude.",
        ),
        draw,
    )


def _unit_rows(data: QueryDataset) -> QueryDataset:
    """Scale all rows by one number so that the longest has norm 1."""
    return data.with_X(data.X / largest_norm(data))


FIGURES: dict[str, Callable[..., Exhibit]] = {
    "table-1": table_1,
    "table-2": table_2,
    "table-3": table_3,
    "list-length": list_length,
    "rate": rate,
    "gap": gap,
}
