"""Learning from clicks on collections whose judgements are known: does the correction help, and how much?

Users are made up (`datasets.simulate_clicks`), their clicks are all that a learner sees, and the judgements of the test
part say what it learned. Settings are chosen on held-out clicks only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._progress import track
from .._tables import Table
from .._typing import Floats
from .._version import __version__
from ..clicks import ClickLog, Propensities, click_value
from ..clicks.simulation import simulate_clicks
from ..data.catalog import load
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..evaluation import evaluate
from ..measures import measure
from ..rankers import PDGD, ListNet, OnlineListNet
from .exhibits import Checkpoint, Claim, Exhibit, claim, interval
from .experiments import digest

COLLECTIONS = ("mq2008-letor4", "ohsumed-letor3")
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
CUT, CLIP = 10, 0.1
WEAK = 5
"""Judged queries that each of the two production rankers learned from."""
ENTRANTS = ("production", "naive", "estimated", "true", "labels")
NAMES = {
    "production": "production rankers",
    "naive": "clicks as they are",
    "estimated": "corrected, propensities estimated",
    "true": "corrected, propensities known",
    "labels": "all judgements",
    "lightgbm": "LightGBM, its own position bias",
    "xgboost": "XGBoost, its own position bias",
}


def corrected(
    *,
    checkpoint: Path | None = None,
    collections: Sequence[str] = COLLECTIONS,
    clicks: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    folds: int = 5,
    seeds: int = 5,
    trees: int = 10_000,
) -> Exhibit:
    """Test NDCG@10 against the number of clicks: as they are, corrected, and with all judgements.

    Position p_k = 1/k, noise 0.1, two weak rankers serve the pages. `trees` is the number of clicks at which LightGBM
    and XGBoost, if installed, learn from the same pages with corrections of their own (0: nowhere).
    """
    cells = Checkpoint(checkpoint)
    jobs = [
        (name, seed, fold, n) for name in collections for seed in range(seeds) for fold in range(folds) for n in clicks
    ]
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for name, seed, fold, n in track(jobs, "clicks"):
        found.setdefault((name, n), []).append({**_cell(cells, name, n, fold + 1, seed, n == trees), "seed": seed})
    rows, claims = _summary(found)
    return Exhibit(
        name="corrected",
        title=f"Test NDCG@10 learned from clicks, {folds} folds, {seeds} seeds",
        data={"cells": [{"collection": c, "clicks": n, "runs": runs} for (c, n), runs in found.items()]},
        table=Table(("collection", "clicks", "learned from", "NDCG@10", "± (95%, seeds)", "− naive", "±"), rows),
        notes=(
            "Intervals are over seeds (users, production rankers), each the mean of the folds; they do not cover other "
            "collections. Settings were chosen on held-out clicks.",
        ),
        claims=claims,
        draw=lambda figure: _draw(figure, rows, collections),
    )


def _cell(cells: Checkpoint, name: str, n: int, fold: int, seed: int, trees: bool) -> dict[str, float]:
    parts = {part: load(name, fold=fold, part=part) for part in ("train", "vali", "test")}
    key: dict[str, Any] = {"clicks": n, "collection": name, "fold": fold, "seed": seed, "trees": trees}
    key |= {"version": __version__, "data": digest(*parts.values())}
    result: dict[str, float] = cells.get(key, lambda: _trial(parts, n, seed, trees))
    return result


def _trial(parts: dict[str, QueryDataset], n: int, seed: int, trees: bool) -> dict[str, float]:
    train, test = parts["train"], parts["test"]
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(train.informative)
    served = [ListNet(alpha=0.1).fit_queries(train[rng.choice(able, WEAK, replace=False)]) for _ in range(2)]
    log = _log(train, served, n, seed)
    learn, held = log.split(2 / 3, random_state=seed)
    flat, true = Propensities.known(np.ones(CUT)), Propensities.known(1 / np.arange(1, CUT + 1))
    reached = {"production": float(np.mean([_ndcg(ranker, test) for ranker in served]))}
    ways = {"naive": flat, "estimated": _estimate(learn, flat), "true": true}
    for name, seen in ways.items():
        queries, chosen_by = (part.to_queries(train, seen, CLIP) for part in (learn, held))
        fitted = [ListNet(alpha=alpha).fit_queries(queries) for alpha in ALPHAS]
        reached[name] = _ndcg(max(fitted, key=lambda ranker: click_value(ranker, chosen_by).value), test)
    judged = [ListNet(alpha=alpha).fit_queries(train) for alpha in ALPHAS]
    reached["labels"] = _ndcg(max(judged, key=lambda ranker: _ndcg(ranker, parts["vali"])), test)
    return {**reached, **(_trees(log, train, test, seed) if trees else {})}


def _ndcg(model: Any, data: QueryDataset) -> float:
    return evaluate(model, data, ["ndcg@10"]).mean["ndcg@10"]


def _log(train: QueryDataset, served: list[ListNet], n: int, seed: int) -> ClickLog:
    """Return pages with about n clicks."""
    rate = simulate_clicks(train, served, sessions=2000, cut=CUT, random_state=seed).clicked.sum() / 2000
    return simulate_clicks(train, served, sessions=max(2, round(n / rate)), cut=CUT, random_state=seed)


def _estimate(log: ClickLog, otherwise: Propensities) -> Propensities:
    """Return what the log tells, as deep as it tells anything; behind that the last value holds."""
    for cut in range(CUT, 1, -1):
        try:
            seen = Propensities.estimate(log, cut=cut, resamples=0)
        except InputError:
            continue
        return Propensities.known(np.append(seen.values, np.full(CUT - cut, seen.values[-1])))
    return otherwise


def _trees(log: ClickLog, train: QueryDataset, test: QueryDataset, seed: int) -> dict[str, float]:
    """Boosted trees on pages as lists, clicks as labels, with their libraries' own correction."""
    assert log.session is not None  # simulated logs have sessions
    rows, groups = log.document, np.bincount(log.session)
    reached: dict[str, float] = {}
    try:
        import lightgbm

        pages = lightgbm.Dataset(train.X[rows], log.clicked.astype(int), group=groups, position=log.position - 1)
        settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "seed": seed, "num_leaves": 15}
        reached["lightgbm"] = _ndcg(lightgbm.train(settings, pages, 100).predict(test.X), test)
    except ImportError:
        pass
    try:
        import xgboost

        matrix = xgboost.QuantileDMatrix(train.X[rows], log.clicked.astype(int), qid=log.session)
        options = {
            "objective": "rank:ndcg",
            "lambdarank_unbiased": True,
            "lambdarank_pair_method": "topk",
            "nthread": 1,
            "seed": seed,
            "max_depth": 4,
            "eta": 0.1,
        }
        booster = xgboost.train(options, matrix, 100)
        reached["xgboost"] = _ndcg(booster.inplace_predict(test.X), test)
    except ImportError:
        pass
    return reached


def _summary(found: dict[tuple[str, int], list[dict[str, float]]]) -> tuple[list[list[Any]], tuple[Claim, ...]]:
    rows: list[list[Any]] = []
    better: dict[str, float] = {}
    near: dict[str, float] = {}
    for (name, n), runs in found.items():
        seeds = sorted({int(run["seed"]) for run in runs})
        for entrant in (entrant for entrant in NAMES if all(entrant in run for run in runs)):
            means = _by_seed(runs, seeds, entrant)
            gap = means - _by_seed(runs, seeds, "naive")
            rows.append([name, f"{n:,}", NAMES[entrant], *interval(means), *interval(gap)])
        if n >= 10_000:
            naive, own, true = (float(_by_seed(runs, seeds, way).mean()) for way in ("naive", "estimated", "true"))
            better[f"{name}, {n:,}"], near[f"{name}, {n:,}"] = own - naive, own - true
    return rows, tuple(
        claim(
            text,
            all(map(good, cells.values())) if cells else None,
            "; ".join(f"{cell} {value:+.4f}" for cell, value in cells.items()) + ".",
        )
        for text, cells, good in (
            ("From 10,000 clicks on, the correction beats clicks as they are in every cell.", better, lambda v: v > 0),
            ("It is within .01 of known propensities in every cell.", near, lambda v: abs(v) <= 0.01),
        )
    )


def _by_seed(runs: list[dict[str, float]], seeds: list[int], entrant: str) -> Floats:
    return np.array([np.mean([run[entrant] for run in runs if run["seed"] == seed]) for seed in seeds])


def _draw(figure: Any, rows: list[list[Any]], collections: Sequence[str]) -> None:
    axes = np.atleast_1d(figure.subplots(1, len(collections)))
    for axis, name in zip(axes, collections, strict=True):
        for entrant in dict.fromkeys(row[2] for row in rows):
            points = [(int(r[1].replace(",", "")), r[3], r[4]) for r in rows if r[0] == name and r[2] == entrant]
            if points:
                x, y, half = (np.array(column) for column in zip(*points, strict=True))
                axis.errorbar(x, y, yerr=np.nan_to_num(half), fmt="o-", capsize=2, label=entrant)
        axis.set(xscale="log", xlabel="clicks", ylabel="test NDCG@10", title=name)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)


def online(
    *,
    collections: Sequence[str] = COLLECTIONS,
    users: Sequence[str] = ("navigational", "informational"),
    pages: int = 30_000,
    folds: int = 5,
    seeds: int = 5,
    checkpoint: Path | None = None,
) -> Exhibit:
    """PDGD beside online ListNet that takes raw clicks of its own ranking for grades: test NDCG@10 after many pages."""
    cells = Checkpoint(checkpoint)
    rows: list[list[Any]] = []
    ahead = 0
    for name, user in track([(name, user) for name in collections for user in users], "online"):
        reached: dict[str, list[float]] = {"PDGD": [], "raw": []}
        for seed in range(seeds):
            runs = [_online_cell(cells, name, user, pages, fold, seed) for fold in range(1, folds + 1)]
            for way, means in reached.items():
                means.append(float(np.mean([run[way] for run in runs])))
        ours, raw = np.array(reached["PDGD"]), np.array(reached["raw"])
        ahead += bool(ours.mean() > raw.mean())
        rows.append([name, user, *interval(ours), *interval(raw), *interval(ours - raw)])
    columns = ("collection", "users", "PDGD", "±", "online ListNet on raw clicks", "±", "difference", "±")
    return Exhibit(
        name="online",
        title=f"Test NDCG@10 after {pages:,} pages shown to cascade users, {folds} folds, {seeds} seeds",
        data={"columns": columns, "rows": rows},
        table=Table(columns, rows),
        notes=("Step sizes are the defaults of both.",),
        claims=(
            claim("PDGD beats online ListNet on raw clicks.", ahead == len(rows), f"In {ahead} of {len(rows)} cells."),
        ),
    )


def _online_cell(cells: Checkpoint, name: str, user: str, pages: int, fold: int, seed: int) -> dict[str, float]:
    train, test = (load(name, fold=fold, part=part) for part in ("train", "test"))
    key = {"online": pages, "collection": name, "user": user, "fold": fold, "seed": seed, "version": __version__}
    key["data"] = digest(train, test)
    result: dict[str, float] = cells.get(key, lambda: _online_trial(train, test, user, pages, seed))
    return result


def _online_trial(train: QueryDataset, test: QueryDataset, user: str, pages: int, seed: int) -> dict[str, float]:
    from ..clicks.simulation import cascade_page

    rng = np.random.default_rng(seed)
    able = np.flatnonzero(train.informative)
    lists = [train[int(q)] for q in range(train.n_queries)]
    top = max(float(train.y.max()), 1.0)
    ours, raw = PDGD(cut=CUT, random_state=seed), OnlineListNet(average=False)
    for q in rng.choice(able, size=pages):
        query = lists[q]
        shown = ours.sample(query.X)
        ours.partial_fit_clicks(query.X, shown, cascade_page(query.y[shown], top, user, rng))
        scores = raw.predict(query.X) if hasattr(raw, "model_") else np.zeros(query.n_docs)
        page = np.argsort(-scores, kind="stable")[:CUT]
        clicked = cascade_page(query.y[page], top, user, rng)
        if clicked.any() and not clicked.all():
            raw.partial_fit(np.ascontiguousarray(query.X[page]), clicked.astype(np.float64))
    ndcg = measure("ndcg@10")
    return {
        way: ndcg.mean(ranker.predict_grouped(test), test.y, test.ptr) for way, ranker in (("PDGD", ours), ("raw", raw))
    }


FIGURES: dict[str, Callable[..., Exhibit]] = {"corrected": corrected, "online": online}
