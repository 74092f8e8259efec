"""The theorems measured: Rademacher averages, and the gap between training and fresh queries beside its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ... import rankers
from ..._progress import track
from ..._tables import Table
from ..._typing import Floats
from ...certificates import generalization as theory
from ...certificates.generalization import Algorithm, largest_norm
from ...data.csr import dense
from ...data.dataset import QueryDataset
from ...data.synthetic import make_graded
from ...objective import Objective
from ...solvers.ball import project
from ...statistics._intervals import every, spreads, surely
from ...surrogates.listwise import ListMLE, ListNet, Listwise, RankCosine
from ...surrogates.transforms import Sigmoid, Transform
from ..exhibits import Checkpoint, Exhibit, Own, Panel, Said, judge, panels
from ..experiments import MQ2008, OHSUMED_3, Place, homes, left_out, piece
from .tables import SHORT, transforms

MOST = {"ListMLE": 1.0, "ListNet top-one": 1.0, "RankCosine": 0.5}
"""The largest normalised loss: a bound above it cannot fail."""
FRESH = 500
"""Fresh queries for each training set."""
_RANKERS: dict[Algorithm, tuple[Callable[..., Any], Callable[..., Listwise]]] = {
    "ListMLE": (partial(rankers.ListMLE, ties="fixed"), ListMLE),
    "ListNet top-one": (rankers.ListNet, ListNet),
    "RankCosine": (rankers.RankCosine, RankCosine),
}


def _trained(
    algorithm: Algorithm, phi: Transform, train: QueryDataset, fresh: QueryDataset, radius: float, norm: float
) -> tuple[Floats, float]:
    """Return the weights in the ball that minimise the risk on some queries, and how much larger it is on others."""
    ranker, loss_of = _RANKERS[algorithm]
    w = ranker(transform=phi, radius=radius, alpha=0.0, max_iter=200, tol=1e-5).fit_queries(train).coef_
    here, there = (theory.normalized_risk(loss_of(transform=phi), w, part, radius * norm) for part in (train, fresh))
    return w, there - here


def _measure_gap(algorithm: Algorithm, kind: str, n: int, m: int, needed: int, repeats: int) -> list[Any]:
    """Train on n queries and compare with fresh ones, climb to where the two differ most; and the bounds on that."""
    data, phi = _lists(m, needed + FRESH * repeats), transforms(1.0, 2.0)[kind]
    pool, fresh = data[:needed], data[needed:]
    norm, loss = max(largest_norm(pool), largest_norm(fresh)), _RANKERS[algorithm][1](transform=phi)
    found = []
    for train in (pool[repeat * n : (repeat + 1) * n] for repeat in range(repeats)):
        w, trained = _trained(algorithm, phi, train, fresh, 1.0, norm)
        largest = _climb(Objective(fresh, loss), Objective(train, loss), w)
        found.append((trained, largest / theory.normalizer(algorithm, phi, norm, m)))
    bound = partial(theory.generalization_bound, algorithm, phi, radius=1.0, norm=norm, m=m, n=n)
    bounds = [bound(exact=exact).value for exact in (False, True)]
    return [*np.mean(found, axis=0).tolist(), *bounds, [largest for _, largest in found]]


@lru_cache(maxsize=1)
def _lists(m: int, n: int) -> QueryDataset:
    """Return n queries of m documents, scaled so that the longest row has norm 1."""
    data = make_graded(n, n_docs=(m, m), n_features=10, random_state=m)
    return data.with_X(dense(data.X) / largest_norm(data))


def _climb(fresh: Objective, train: Objective, w: Floats, steps: int = 25) -> float:
    """Return the largest risk − empirical risk seen on a walk uphill inside the unit ball."""
    best = -math.inf
    for step in range(1, steps + 1):
        (up, up_grad), (down, down_grad) = fresh.value_and_grad(w), train.value_and_grad(w)
        best = max(best, up - down)
        way = up_grad - down_grad
        w = project(w + 0.5 / math.sqrt(step) * way / max(float(np.linalg.norm(way)), 1e-300), 1.0)
    return best


def gap(*, checkpoint: Place = None, sizes: Sequence[int] = (10, 30, 100, 300, 1000), repeats: int = 8) -> Exhibit:
    """Measured generalisation gap against n, m and φ on generated data, beside the bound (not in the paper)."""
    lengths, cells = (5, 10, 20, 40), Checkpoint(None if checkpoint is None else Path(checkpoint))
    jobs: list[tuple[str, Algorithm, str, int, int]] = [
        *(("n", "ListMLE", kind, n, 10) for kind in SHORT for n in sizes),
        *(("m", name, "exponential", min(100, sizes[-1]), m) for name in _RANKERS for m in lengths),
    ]
    rows: list[tuple[Any, ...]] = []
    for axis, algorithm, kind, n, m in track(jobs, "measuring gaps"):
        setting = (algorithm, kind, n, m, repeats * max(sizes), repeats)
        rows.append((axis, *setting[:4], *piece(cells, partial(_measure_gap, *setting), setting=setting)))

    def panel(axis: str, place: int, names: Iterable[str], which: int, label: str, title: str) -> Panel:
        curves: dict[str, Any] = {}
        for name in names:
            here = [row for row in rows if (row[0], row[which]) == (axis, name)]
            x, found, bound = ([row[i] for row in here] for i in (place, 6, 7))
            curves |= {f"{name}: bound": (x, bound, None), f"{name}: largest gap found": (x, found, None)}
        styles = {name: f"C{i // 2}{'o--' if i % 2 else '-'}" for i, name in enumerate(curves)}
        return Panel(curves, (), label, "normalised gap", title, "xy", styles=styles, at={"y": 1})

    columns = ("along", "algorithm", "φ", "n", "m", "trained gap", "largest gap found", "bound", "bound, exact N")
    title = "Measured generalisation gap beside the bound (B = M = a = 1, b = 2, δ = 0.05)"
    notes = (
        f"Means of {repeats} training sets against {FRESH * repeats} fresh queries; a loss is divided by its largest "
        "value. The largest gap is the best of 25 steps uphill inside the ball, so it is a lower bound of the supremum."
        " Ties stay in the order of the rows, in training and in measuring.",
    )
    left = panel("n", 3, SHORT, 2, "queries n", "ListMLE, m = 10")
    right = panel("m", 4, _RANKERS, 1, "list length m", f"exponential, n = {rows[-1][3]}")
    values, table = {"columns": columns, "rows": rows}, Table(columns, [row[:9] for row in rows], digits=5)
    return Exhibit("gap", title, values, table, notes, panels(left, right), _findings(rows))


@judge
def _findings(rows: Sequence[Sequence[Any]]) -> Said:
    telling = [row for row in rows if row[8] < MOST[row[1]]]
    kept = sum(row[6] <= row[8] for row in telling)
    told = f"With the exact N it says something in {len(telling)} of {len(rows)} settings; the largest gap found is"
    text = "The generalisation bound holds."
    yield text, kept == len(telling) if telling else None, f"{told} below it in {kept} of these."
    by_n, by_m = (
        {name: {row[place]: np.array(row[9]) for row in rows if (row[0], row[which]) == (axis, name)} for name in names}
        for axis, place, which, names in (("n", 3, 2, SHORT), ("m", 4, 1, _RANKERS))
    )
    means = {name: {m: float(gap.mean()) for m, gap in found.items()} for name, found in {**by_n, **by_m}.items()}
    powers = {k: float(np.polyfit(np.log(list(by_n[k])), np.log(list(means[k].values())), 1)[0]) for k in by_n}
    told = ", ".join(f"{k} {p:.2f}" for k, p in powers.items())
    text, sure = "Finding 1: the gap falls at the rate 1/√n.", all(-0.65 <= p <= -0.35 for p in powers.values())
    yield text, sure, f"Measured powers of n: {told}; read as: −0.65 to −0.35."
    for name in ("RankCosine", "ListNet top-one"):
        apart = {f"m = {m}": by_m[name][m] - own for m, own in by_m["ListMLE"].items() if m >= 6}
        text = f"Finding 2: from m = 6 on ListMLE generalises better than {name}."
        yield text, every(map(surely, apart.values())), f"Its gap is smaller by: {spreads(apart)}"
    straight = by_n["linear"].items()
    apart = {f"{SHORT[k]}, n = {n}": by_n[k][n] - own for k in ("exponential", "sigmoid") for n, own in straight}
    text = "Finding 3: ListMLE generalises best with the linear φ."
    yield text, every(map(surely, apart.values())), f"Its gap is smaller by: {spreads(apart)}"
    for name, sign, way in (("ListMLE", -1, "falls"), ("RankCosine", 1, "rises")):
        told = ", ".join(f"{gap:.4f} at m = {m}" for m, gap in means[name].items())
        steps = sign * np.diff(list(means[name].values()))
        yield f"{name}'s gap {way} with m.", bool((steps > 0).all()), f"{told}."


def letor(*, data: Place = None, radius: float = 1.0) -> Exhibit:
    """Theorem 1 on LETOR folds: held-out minus training risk of each algorithm beside the bounds, and list lengths."""
    rows: list[tuple[Any, ...]] = []
    values: dict[str, Any] = {}
    there, phi = homes((OHSUMED_3, MQ2008), data), Sigmoid(1.0)
    notes, usual = [*left_out((OHSUMED_3, MQ2008), there)], None
    for collection, home in there.items():
        folds = [collection.fold(home, n) for n in collection.folds(home)]
        lengths = np.concatenate([fold.test.lengths for fold in folds])
        usual = float(lengths.mean()) if collection is OHSUMED_3 else usual
        spread = f"{lengths.min()} to {lengths.max()} documents, {lengths.mean():.0f} on average"
        notes.append(f"{collection.label}: lists of {spread}.")
        for algorithm in _RANKERS:
            found = []
            for fold in folds:
                norm = max(largest_norm(fold.train), largest_norm(fold.test))
                _, lost = _trained(algorithm, phi, fold.train, fold.test, radius, norm)
                bounds = theory.gaps(algorithm, phi, fold.train[fold.train.informative], radius)
                found.append((lost, bounds[0].value, bounds[-1].value))
            gap, printed, own = np.array(found).T
            rows.append((collection.label, algorithm, *map(float, (gap.mean(), gap.max(), printed.min(), own.min()))))
            values[f"{collection.name}, {algorithm}"] = {"gap": gap, "printed": printed, "list by list": own}
    columns = ("collection", "algorithm", "mean gap", "largest gap", "bound as printed", "bound list by list")
    title = f"Theorem 1 on LETOR folds (sigmoid, B = {radius:g}, δ = 0.05)"
    return Exhibit("letor", title, values, Table(columns, rows), tuple(notes), claims=_within(rows, usual))


@judge
def _within(rows: Sequence[Sequence[Any]], usual: float | None) -> Said:
    for label, algorithm, _, largest, printed, own in rows:
        best, most = min(printed, own), MOST[algorithm]
        text = f"Theorem 1 on {label}: the held-out risk of {algorithm} is within the bound, taken list by list."
        told = f"Largest gap of a fold {largest:+.4f}; bound as printed {printed:.3g}, list by list {own:.3g}"
        told += "." if best < most else ", more than a loss can be."
        yield Own(text), largest <= best if best < most else None, told
    if usual is not None:
        text = "The lists of OHSUMED have about 150 documents on average."
        yield text, abs(usual - 150) <= 15, f"{usual:.1f}; read as: 135 to 165."


def _ball(radius: float, directions: int = 90, shells: int = 10) -> Floats:
    """Return points of the disc: dense enough that the largest value over them is that over the disc, nearly."""
    angle = np.linspace(0, 2 * np.pi, directions, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([np.zeros((1, 2)), *(r * circle for r in np.linspace(radius / shells, radius, shells))])


def theorems(*, n: int = 12, m: int = 5, random_state: int = 0) -> Exhibit:
    """Theorem 2: R̂(l∘F) ≤ C·R̂(φ∘F) ≤ C·N·R̂(F), the averages over all signs, the suprema over a disc of weights."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n * m, 2))
    X /= np.linalg.norm(X, axis=1).max()
    signs = np.array(list(product((-1.0, 1.0), repeat=n)))
    W = _ball(1.0)
    scores = W @ X.T
    lists = scores.ravel(), np.tile(np.arange(m, dtype=np.float64), n * len(W)), m * np.arange(n * len(W) + 1)
    rows: list[tuple[Any, ...]] = []
    kinds: tuple[Callable[..., Listwise], ...] = (ListMLE, partial(ListNet, k=m), RankCosine)
    for kind, phi in track(transforms(1.0, 2.0).items(), "theorems"):
        plain = np.mean([_average(signs, scores[:, place::m]) for place in range(m)])
        inner = np.mean([_average(signs, np.asarray(phi(scores[:, place::m]))) for place in range(m)])
        slope = math.exp(phi.steepest(1.0, exact=True))
        for algorithm, loss_of in zip(theory.ALGORITHMS, kinds, strict=True):
            values = loss_of(transform=phi).per_query(*lists)[0].reshape(len(W), n)
            values /= theory.normalizer(algorithm, phi, 1.0, m)
            c = math.exp(theory.log_c(algorithm, phi, 1.0, m))
            rows.append((algorithm, SHORT[kind], _average(signs, values), c * inner, c * slope * plain))
    table = Table(("loss", "φ", "R̂(l∘F)", "C·R̂(φ∘F)", "C·N·R̂(F)"), rows, digits=5)
    notes = (
        f"{n} lists of {m} documents in the plane, B = M = a = 1, b = 2; all {2**n:,} signs; "
        "suprema over 901 weights. R̂(φ∘F) and R̂(F) are means over the places of the true order, as in the proof; N is "
        "exact.",
    )
    stored = {f"{row[0]}, {row[1]}": row[2:] for row in rows}
    return Exhibit("theorems", "Theorem 2: three Rademacher averages", stored, table, notes, claims=_contracts(rows))


@judge
def _contracts(rows: Sequence[Sequence[Any]]) -> Said:
    first, second = (sum(row[i] <= row[i + 1] * (1 + 1e-9) for row in rows) for i in (2, 3))
    loosest, tightest = (pick(rows, key=lambda row: row[4] / row[2]) for pick in (max, min))
    told = f"In {first} of {len(rows)} settings."
    yield "Theorem 2: R̂(l∘F) ≤ C_A(φ)·R̂(φ∘F).", first == len(rows), told
    told = f"In {second} of {len(rows)} settings. The bound is loose by {loosest[4] / loosest[2]:.3g} for {loosest[0]}"
    told = f"{told} with {loosest[1]}, by {tightest[4] / tightest[2]:.3g} at least."
    yield "Theorem 2: R̂(φ∘F) ≤ N(φ)·R̂(F).", second == len(rows), told


def _average(signs: Floats, values: Floats) -> float:
    """(1/n) E_σ sup_w Σ_i σ_i v_i(w), values as weights × lists."""
    return float((signs @ values.T).max(axis=1).mean() / signs.shape[1])
