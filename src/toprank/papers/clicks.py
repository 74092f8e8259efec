"""Learning from clicks on collections whose judgements are known: does the correction help, and how much?

Users are made up (`datasets.simulate_clicks`), their clicks are all that a learner sees, and the judgements of the test
part say what it learned. Settings are chosen on held-out clicks only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._progress import track
from .._tables import Table
from .._typing import Floats
from ..clicks import ClickLog, Propensities, click_value
from ..clicks.simulation import cascade_page, simulate_clicks
from ..data.dataset import QueryDataset
from ..data.splits import Fold
from ..errors import InputError
from ..evaluation import evaluate
from ..rankers import PDGD, ListNet, OnlineListNet
from .exhibits import Checkpoint, Exhibit, Panel, Said, interval, judge, panels
from .experiments import MQ2008, OHSUMED_3, Place, digest, homes, left_out, piece

COLLECTIONS = (MQ2008, OHSUMED_3)
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
CUT, CLIP = 10, 0.1
WEAK = 0.01
"""Share of the training queries that each of the two production rankers learned from, judged; at least one query."""
ROUNDS = (10, 30, 100)
"""Numbers of trees among which held-out clicks decide."""
NAMES = {
    "production": "production rankers",
    "naive": "clicks as they are",
    "estimated": "corrected, propensities estimated",
    "true": "corrected, propensities known",
    "labels": "all judgements",
    "lightgbm": "LightGBM, its own position bias",
    "xgboost": "XGBoost, its own position bias",
}
Reached = Mapping[str, Sequence[Floats]]
"""Entrant ↦ for each number of clicks, the mean over folds of each seed."""


def corrected(
    *,
    data: Place = None,
    checkpoint: Path | None = None,
    clicks: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    folds: int = 5,
    seeds: int = 5,
    trees: int = 10_000,
    weak: float = WEAK,
) -> Exhibit:
    """Test NDCG@10 against the number of clicks: as they are, corrected, and with all judgements.

    Position p_k = 1/k, noise 0.1; two rankers that learned from a share `weak` of the queries serve the pages. LightGBM
    and XGBoost, if installed, learn from the same pages with corrections of their own, up to `trees` clicks.
    """
    trial = partial(_trial, clicks=clicks, trees=trees, weak=weak)
    runs = _trials(data, checkpoint, folds, seeds, [()], trial)
    found = {label: {name: reached[name] for name in NAMES if name in reached} for (label,), reached in runs.items()}
    rows: list[list[Any]] = [
        [label, f"{n:,}", NAMES[name], *interval(values[at]), *interval(values[at] - reached["naive"][at])]
        for label, reached in found.items()
        for at, n in enumerate(clicks)
        for name, values in reached.items()
        if at < len(values)
    ]
    shown = [
        Panel(
            {NAMES[name]: (clicks[: len(v)], *np.array([interval(x) for x in v]).T) for name, v in reached.items()},
            *((), "clicks", "test NDCG@10", label, "x"),
        )
        for label, reached in found.items()
    ]
    title = f"Test NDCG@10 learned from clicks, {folds} folds, {seeds} seeds"
    table = Table(("collection", "clicks", "learned from", "NDCG@10", "± (95%, seeds)", "− naive", "±"), rows)
    notes = (
        f"The production rankers learned from {weak:.0%} of the training queries each, at least one. Intervals are "
        "over seeds (users, production rankers), each the mean of the folds; they do not cover other collections. "
        "Settings, also the number of trees, were chosen on held-out clicks; lists hold what was shown. Trees learn "
        f"from at most {trees:,} clicks: their cost grows with the pages, ours does not.",
        *left_out(COLLECTIONS, homes(COLLECTIONS, data)),
    )
    stored, drawn = {"clicks": clicks, "by seed": found}, panels(*shown, legend="below")
    return Exhibit("corrected", title, stored, table, notes, drawn, _goal(clicks, found))


@judge
def _goal(clicks: Sequence[int], found: Mapping[str, Reached]) -> Said:
    enough = [(label, at) for label in found for at, n in enumerate(clicks) if n >= 10_000]

    def gaps(other: str) -> dict[str, float]:
        return {
            f"{label}, {clicks[at]:,}": float(np.mean(found[label]["estimated"][at] - found[label][other][at]))
            for label, at in enough
        }

    for text, other, least, most in (
        ("From 10,000 clicks on, the correction beats clicks as they are in every cell.", "naive", 1e-12, np.inf),
        ("From 10,000 clicks on, it is within .01 of known propensities in every cell.", "true", -0.01, 0.01),
    ):
        told = "; ".join(f"{cell} {gap:+.4f}" for cell, gap in gaps(other).items())
        yield text, all(least <= gap <= most for gap in gaps(other).values()) if enough else None, f"{told}."


def _trials(
    data: Place, checkpoint: Path | None, folds: int, seeds: int, cases: Sequence[tuple[str, ...]], trial: partial[Any]
) -> dict[tuple[str, ...], Reached]:
    """Run a trial on each collection, fold and seed: (collection, *case) ↦ what was reached."""
    there, cells = homes(COLLECTIONS, data), Checkpoint(checkpoint)
    found: dict[tuple[str, ...], Reached] = {}
    for letor, case in track(list(product(there, cases)), "clicks"):
        parts = [letor.fold(there[letor], n) for n in letor.folds(there[letor])[:folds]]
        key = {"trial": trial.func.__name__, "case": case, **trial.keywords}
        runs = [
            [
                piece(cells, partial(trial, fold, *case, seed=seed), data=digest(fold), seed=seed, **key)
                for fold in parts
            ]
            for seed in range(seeds)
        ]
        found[letor.label, *case] = {name: _by_seed(runs, name) for name in runs[0][0]}
    return found


def _by_seed(runs: Sequence[Sequence[Mapping[str, Any]]], name: str) -> list[Floats]:
    """Return the means over folds: numbers of clicks × seeds."""
    return list(np.mean([[run[name] for run in folds] for folds in runs], axis=1).T)


def _trial(fold: Fold, *, clicks: Sequence[int], trees: int, weak: float, seed: int) -> dict[str, list[float]]:
    """Return what each entrant reaches with each number of clicks; fewer clicks are the first ones of more."""
    train, test = fold.train, fold.test
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(train.informative)
    few = max(1, round(weak * train.n_queries))
    served = [ListNet(alpha=0.1).fit_queries(train[rng.choice(able, few, replace=False)]) for _ in range(2)]
    judged = [ListNet(alpha=alpha).fit_queries(train) for alpha in ALPHAS]
    full = _ndcg(max(judged, key=lambda ranker: _ndcg(ranker, fold.valid)), test)
    served_by = float(np.mean([_ndcg(ranker, test) for ranker in served]))
    reached: dict[str, list[float]] = {"production": [served_by] * len(clicks), "labels": [full] * len(clicks)}
    flat, true = Propensities.known(np.ones(CUT)), Propensities.known(1 / np.arange(1, CUT + 1))
    for n, log in zip(clicks, _logs(train, served, clicks, seed), strict=True):
        learn, held = log.split(2 / 3, random_state=seed)
        own = _estimate(learn, flat)
        for name, seen in {"naive": flat, "estimated": own, "true": true}.items():
            queries, chosen_by = (part.to_queries(train, seen, CLIP) for part in (learn, held))
            fitted = [ListNet(alpha=alpha).fit_queries(queries) for alpha in ALPHAS]
            reached.setdefault(name, []).append(_ndcg(_best(fitted, chosen_by), test))
        chosen_by = held.to_queries(train, own, CLIP)
        for name, grown in _trees(learn, train, seed).items() if n <= trees else ():
            reached.setdefault(name, []).append(_ndcg(_best(grown, chosen_by), test))
    return reached


def _best(models: Sequence[Any], clicks: QueryDataset) -> Any:
    return max(models, key=lambda model: click_value(model, clicks, resamples=0).value)


def _ndcg(model: Any, data: QueryDataset) -> float:
    return evaluate(model, data, ["ndcg@10"]).mean["ndcg@10"]


def _logs(train: QueryDataset, served: list[ListNet], clicks: Sequence[int], seed: int) -> list[ClickLog]:
    """Return the first pages of one log, with about so many clicks each."""
    show = partial(simulate_clicks, train, served, cut=CUT, random_state=seed)
    rate = show(sessions=2000).clicked.sum() / 2000
    pages = [max(2, round(n / rate)) for n in clicks]
    log = show(sessions=max(pages))
    assert log.session is not None  # simulated logs have sessions, in their order
    return [log.take(np.arange(np.searchsorted(log.session, n))) for n in pages]


def _estimate(log: ClickLog, otherwise: Propensities) -> Propensities:
    """Return what the log tells, as deep as it tells anything; behind that the last value holds."""
    for cut in range(CUT, 1, -1):
        try:
            seen = Propensities.estimate(log, cut=cut, resamples=0)
        except InputError:
            continue
        return Propensities.known(np.append(seen.values, np.full(CUT - cut, seen.values[-1])))
    return otherwise


def _trees(log: ClickLog, train: QueryDataset, seed: int) -> dict[str, list[SimpleNamespace]]:
    """Boosted trees on pages as lists, clicks as labels, with their libraries' own correction; 10, 30, 100 trees."""
    assert log.session is not None
    told = log.take((np.bincount(log.session, log.clicked) > 0)[log.session])  # other pages have no pairs
    assert told.session is not None
    X, clicked = train.X[told.document], told.clicked.astype(int)
    _, groups = np.unique(told.session, return_counts=True)
    grown: dict[str, list[SimpleNamespace]] = {}
    if find_spec("lightgbm"):
        import lightgbm

        pages = lightgbm.Dataset(X, clicked, group=groups, position=told.position - 1)
        given = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "seed": seed, "num_leaves": 15}
        trees = lightgbm.train(given, pages, max(ROUNDS))
        grown["lightgbm"] = [SimpleNamespace(predict=partial(trees.predict, num_iteration=n)) for n in ROUNDS]
    if find_spec("xgboost"):
        import xgboost

        matrix = xgboost.QuantileDMatrix(X, clicked, qid=told.session)
        asked = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk"}
        asked |= {"nthread": 1, "seed": seed, "max_depth": 4, "eta": 0.1}
        booster = xgboost.train(asked, matrix, max(ROUNDS))
        first = partial(booster.inplace_predict, predict_type="margin")
        grown["xgboost"] = [SimpleNamespace(predict=partial(first, iteration_range=(0, n))) for n in ROUNDS]
    return grown


def online(
    *,
    data: Place = None,
    checkpoint: Path | None = None,
    users: Sequence[str] = ("navigational", "informational"),
    pages: int = 10_000,
    folds: int = 5,
    seeds: int = 5,
) -> Exhibit:
    """PDGD beside online ListNet that takes raw clicks of its own ranking for grades: test NDCG@10 after many pages."""
    cases = [(user,) for user in users]
    runs = _trials(data, checkpoint, folds, seeds, cases, partial(_online_trial, pages=pages))
    ends = {", ".join(cell): (reached["PDGD"][0], reached["raw"][0]) for cell, reached in runs.items()}
    rows: list[list[Any]] = [
        [*cell, *interval(ours), *interval(raw), *interval(ours - raw)]
        for cell, (ours, raw) in zip(runs, ends.values(), strict=True)
    ]
    columns = ("collection", "users", "PDGD", "±", "online ListNet on raw clicks", "±", "difference", "±")
    title = f"Test NDCG@10 after {pages:,} pages shown to cascade users, {folds} folds, {seeds} seeds"
    notes = ("Step sizes are the defaults of both.", *left_out(COLLECTIONS, homes(COLLECTIONS, data)))
    return Exhibit("online", title, {"by seed": ends}, Table(columns, rows), notes, claims=_beats(ends))


@judge
def _beats(ends: Mapping[str, tuple[Floats, Floats]]) -> Said:
    gaps = {cell: float(np.mean(ours) - np.mean(raw)) for cell, (ours, raw) in ends.items()}
    told = "; ".join(f"{cell} {gap:+.4f}" for cell, gap in gaps.items())
    yield "PDGD beats online ListNet on raw clicks in every cell.", min(gaps.values()) > 0, f"{told}."


def _online_trial(fold: Fold, user: str, *, pages: int, seed: int) -> dict[str, list[float]]:
    train, rng = fold.train, np.random.default_rng(seed)
    lists = {q: train[int(q)] for q in np.flatnonzero(train.informative)}
    top = max(float(train.y.max()), 1.0)
    ours, raw = PDGD(cut=CUT, random_state=seed), OnlineListNet(average=False)
    for q in rng.choice(list(lists), size=pages):
        query = lists[q]
        shown = ours.sample(query.X)
        ours.partial_fit_clicks(query.X, shown, cascade_page(query.y[shown], top, user, rng))
        scores = query.X @ raw.coef_ if hasattr(raw, "model_") else np.zeros(query.n_docs)
        page = np.argsort(-scores, kind="stable")[:CUT]
        clicked = cascade_page(query.y[page], top, user, rng)
        if clicked.any() and not clicked.all():
            raw.partial_fit(query.X[page], clicked.astype(np.float64))
    return {name: [_ndcg(ranker, fold.test)] for name, ranker in (("PDGD", ours), ("raw", raw))}


FIGURES: dict[str, Callable[..., Exhibit]] = {"corrected": corrected, "online": online}
