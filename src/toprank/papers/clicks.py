"""Learning from clicks on collections whose judgements are known: does the correction help, and how much?

Users are made up (`datasets.simulate_clicks`), their clicks are all that a learner sees, and the judgements of the test
part say what it learned. Settings are chosen on held-out clicks only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._progress import track
from .._tables import Table
from .._typing import Floats, Ints
from ..clicks import ClickLog, Propensities, click_value
from ..clicks.simulation import cascade_page, simulate_clicks
from ..data.dataset import QueryDataset
from ..data.splits import Fold
from ..errors import InputError
from ..rankers import PDGD, ListNet, OnlineListNet
from ..statistics.evaluation import evaluate
from .exhibits import Checkpoint, Exhibit, Own, Panel, Said, interval, judge, panels
from .experiments import MQ2008, OHSUMED_3, Place, digest, homes, left_out, piece

COLLECTIONS = (MQ2008, OHSUMED_3)
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
CUT, CLIP = 10, 0.1
ROUNDS = (10, 30, 100)
"""Numbers of trees among which held-out clicks decide."""
NAMES = {
    "production": "production rankers",
    "naive": "clicks as they are",
    "estimated": "corrected, propensities estimated",
    "true": "corrected, propensities known",
    "labels": "all judgements",
    "lightgbm": "LightGBM, its own correction",
    "lightgbm*": "LightGBM, number of trees by the test part",
    "xgboost": "XGBoost, its own correction",
    "xgboost*": "XGBoost, number of trees by the test part",
}
PEERS = ("lightgbm", "lightgbm*", "xgboost", "xgboost*")
Reached = Mapping[str, Floats]
"""Entrant ↦ what each run (a seed and a fold, seed by seed) reached; some entrants have the first runs only."""
RUNS = "Intervals are over runs, each a seed (users, production rankers) and a fold; differences are paired."
HEAD = ("learned from", "runs", "NDCG@10", "±", "− naive", "±")


def corrected(
    *,
    data: Place = None,
    checkpoint: Path | None = None,
    clicks: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    folds: int = 5,
    seeds: int = 5,
    first: int = 200,
    trees: int = 500_000,
    weak: float = 0.01,
) -> Exhibit:
    """Test NDCG@10 against the number of clicks: as they are, corrected, and with all judgements.

    Position p_k = 1/k, noise 0.1; two rankers serve the pages, each learned from a share `weak` of the training queries
    (at least one; from 1 on, a number of queries). Seeds count from `first`. LightGBM and XGBoost, if installed, learn
    from the same pages with corrections of their own: of n clicks in the first `trees`/n seeds, at least one (none with
    `trees=0`).
    """
    ask = partial(_trials, data, checkpoint, folds)
    found = ask(range(first, first + seeds), [(n, weak) for n in clicks], _trial)
    for n, name in product(clicks, filter(find_spec, TREES)):
        few = range(first, first + min(seeds, max(1, trees // n), trees))
        for cell, grown in ask(few, [(n, weak, name)], _tree_trial).items():
            found[cell[:3]] = {**found[cell[:3]], **grown}
    rows = [[label, f"{n:,}", *row] for (label, n, _), reached in found.items() for row in _rows(reached, NAMES)]
    labels = dict.fromkeys(cell[0] for cell in found)
    shown = [
        Panel(
            {
                NAMES[name]: (clicks, *np.array([interval(found[label, n, weak][name]) for n in clicks]).T)
                for name in found[label, clicks[0], weak]
                if "*" not in name
            },
            *((), "clicks", "test NDCG@10", label, "x"),
        )
        for label in labels
    ]
    title = f"Test NDCG@10 learned from clicks, {folds} folds, seeds {first} to {first + seeds - 1}"
    behind = f"{weak:.0%} of the training queries, at least one," if weak < 1 else f"{weak:.0f} of the training queries"
    notes = (
        f"The production rankers learned from {behind} each. {RUNS} Settings, also the number of trees, were chosen on "
        "held-out clicks; lists hold what was shown. Where a log tells no propensities, all are taken for equal, which "
        "leaves clicks as they are. Trees learn from pages one by one, a minute for a million clicks, and have "
        "fewer runs there.",
        *left_out(COLLECTIONS, homes(COLLECTIONS, data)),
    )
    by_cell = {f"{label}, {n:,}": reached for (label, n, _), reached in found.items()}
    enough = {f"{label}, {n:,}": reached for (label, n, _), reached in found.items() if n >= 10_000}
    table, drawn = Table(("collection", "clicks", *HEAD), rows), panels(*shown, legend="below")
    return Exhibit("corrected", title, {"by run": by_cell}, table, notes, drawn, _goal(enough))


def served(
    *,
    data: Place = None,
    checkpoint: Path | None = None,
    queries: Sequence[int] = (1, 5, 20, 60),
    clicks: int = 100_000,
    folds: int = 5,
    seeds: int = 5,
) -> Exhibit:
    """Where the correction helps: the better the rankers that served the pages, the less there is to correct.

    As `corrected`, with production rankers that learned from more and more judged `queries`.
    """
    found = _trials(data, checkpoint, folds, range(seeds), [(clicks, n) for n in queries], _trial)
    names = ("production", "naive", "estimated", "true")
    rows = [[label, str(n), *row] for (label, _, n), reached in found.items() for row in _rows(reached, names)]
    title = f"Test NDCG@10 learned from {clicks:,} clicks, by who served the pages, {folds} folds, {seeds} seeds"
    by_cell = {f"{label}, {n} judged queries": reached for (label, _, n), reached in found.items()}
    notes = (RUNS, *left_out(COLLECTIONS, homes(COLLECTIONS, data)))
    table = Table(("collection", "judged queries", *HEAD), rows)
    return Exhibit("served", title, {"by run": by_cell}, table, notes, claims=_helps(by_cell))


def _rows(reached: Reached, names: Iterable[str]) -> Iterator[list[Any]]:
    """Yield by entrant: how many runs, their mean, and their mean difference to naive, with intervals."""
    for name in names:
        if name in reached:
            gap = _gap(reached, name, "naive")
            yield [NAMES[name], len(reached[name]), *interval(reached[name]), *gap]
        else:
            yield [NAMES[name], "not run" if find_spec(name.rstrip("*")) else "not installed", *[None] * 4]


def _gap(reached: Reached, one: str, other: str) -> tuple[float, float]:
    """Return the mean difference over the runs that both have, and half its interval."""
    runs = min(len(reached[one]), len(reached[other]))
    return interval(reached[one][:runs] - reached[other][:runs])


def _told(gaps: Mapping[str, tuple[float, float]]) -> str:
    return ("; ".join(f"{cell} {gap:+.4f} ± {half:.4f}" for cell, (gap, half) in gaps.items()) or "Not run") + "."


@judge
def _goal(found: Mapping[str, Reached]) -> Said:
    for text, other, least, most in (
        ("the correction beats clicks as they are in every cell", "naive", 0.0, np.inf),
        ("it is within .01 of known propensities in every cell", "true", -0.01, 0.01),
        *((f"the correction beats {NAMES[peer]}, in every cell", peer, 0.0, np.inf) for peer in PEERS),
    ):
        gaps = {cell: _gap(reached, "estimated", other) for cell, reached in found.items() if other in reached}
        means, halves = np.array([*gaps.values()]).reshape(-1, 2).T
        ways = (("", means), (", with the whole 95% interval", np.append(means - halves, means + halves)))
        for how, ends in ways[: 1 if other in PEERS else 2]:
            holds = bool(((least < ends) & (ends < most)).all()) if gaps and np.isfinite(ends).all() else None
            yield Own(f"From 10,000 clicks on, {text}{how}."), holds, _told(gaps)


@judge
def _helps(found: Mapping[str, Reached]) -> Said:
    gaps = {cell: _gap(reached, "estimated", "naive") for cell, reached in found.items()}
    text = "The correction beats clicks as they are, whoever served."
    yield Own(text), all(gap > 0 for gap, _ in gaps.values()), _told(gaps)


def _trials(
    data: Place,
    checkpoint: Path | None,
    folds: int,
    seeds: Iterable[int],
    cases: Sequence[tuple[Any, ...]],
    trial: Callable[..., Mapping[str, float]],
) -> dict[tuple[Any, ...], Reached]:
    """Run a trial on each collection, case, seed and fold: (collection, *case) ↦ what was reached, run by run."""
    there, cells = homes(COLLECTIONS, data), Checkpoint(checkpoint)
    found: dict[tuple[Any, ...], Reached] = {}
    for letor, case in track(list(product(there, cases)), "clicks"):
        parts = [letor.fold(there[letor], n) for n in letor.folds(there[letor])[:folds]]
        key = {"trial": trial.__name__, "case": case}
        runs = [
            piece(cells, partial(trial, fold, *case, seed=seed), data=digest(fold), seed=seed, **key)
            for seed, fold in product(seeds, parts)
        ]
        found[letor.label, *case] = {name: np.array([run[name] for run in runs]) for name in (runs[0] if runs else ())}
    return found


def _shown(fold: Fold, clicks: int, weak: float, seed: int) -> tuple[list[ListNet], ClickLog, ClickLog, Propensities]:
    """Return the production rankers, about so many clicks on their pages, to learn from and held out, and who looks."""
    train, rng = fold.train, np.random.default_rng(seed)
    able = np.flatnonzero(train.informative)
    few = max(1, round(weak * train.n_queries)) if weak < 1 else int(weak)
    rankers = [ListNet(alpha=0.1).fit_queries(train[rng.choice(able, few, replace=False)]) for _ in range(2)]
    show = partial(simulate_clicks, train, rankers, cut=CUT, random_state=seed)
    rate = show(sessions=2000).clicked.sum() / 2000
    learn, held = show(sessions=max(2, round(clicks / rate))).split(2 / 3, random_state=seed)
    return rankers, learn, held, _estimate(learn)


def _trial(fold: Fold, clicks: int, weak: float, *, seed: int) -> dict[str, float]:
    """Return what each linear entrant reaches."""
    rankers, learn, held, estimated = _shown(fold, clicks, weak, seed)
    judged = [ListNet(alpha=alpha).fit_queries(fold.train) for alpha in ALPHAS]
    reached = {
        "production": float(np.mean([_ndcg(ranker, fold.test) for ranker in rankers])),
        "labels": _ndcg(max(judged, key=lambda ranker: _ndcg(ranker, fold.valid)), fold.test),
    }
    true = Propensities.known(1 / np.arange(1, CUT + 1))
    for name, seen in {"naive": FLAT, "estimated": estimated, "true": true}.items():
        queries, chosen_by = (part.to_queries(fold.train, seen, CLIP) for part in (learn, held))
        fitted = [ListNet(alpha=alpha).fit_queries(queries) for alpha in ALPHAS]
        reached[name] = _ndcg(_best(fitted, chosen_by), fold.test)
    return reached


def _tree_trial(fold: Fold, clicks: int, weak: float, name: str, *, seed: int) -> dict[str, float]:
    """Return what trees reach, their number chosen by held-out clicks, and (*) by the test part, which flatters."""
    _, learn, held, estimated = _shown(fold, clicks, weak, seed)
    models = TREES[name](learn, fold.train, seed)
    chosen = _best(models, held.to_queries(fold.train, estimated, CLIP))
    return {name: _ndcg(chosen, fold.test), f"{name}*": max(_ndcg(model, fold.test) for model in models)}


def _best(models: Sequence[Any], clicks: QueryDataset) -> Any:
    return max(models, key=lambda model: click_value(model, clicks, resamples=0).value)


def _ndcg(model: Any, data: QueryDataset) -> float:
    return evaluate(model, data, ["ndcg@10"]).mean["ndcg@10"]


FLAT = Propensities.known(np.ones(CUT))


def _estimate(log: ClickLog) -> Propensities:
    """Return what the log tells, as deep as it tells anything; behind that the last value holds."""
    for cut in range(CUT, 1, -1):
        try:
            seen = Propensities.estimate(log, cut=cut, resamples=0)
        except InputError:
            continue
        return Propensities.known(np.append(seen.values, np.full(CUT - cut, seen.values[-1])))
    return FLAT


def _pages(log: ClickLog) -> tuple[ClickLog, Ints]:
    """Return the pages with clicks (others have no pairs), and how long each is."""
    assert log.session is not None
    told = log.take(np.bincount(log.session, log.clicked)[log.session] > 0)
    assert told.session is not None
    return told, np.unique(told.session, return_counts=True)[1]


def _lightgbm(log: ClickLog, train: QueryDataset, seed: int) -> list[SimpleNamespace]:
    """LambdaMART with LightGBM's position bias: 10, 30, 100 trees."""
    import lightgbm

    told, lengths = _pages(log)
    bins = lightgbm.Dataset(train.X)  # bins by documents, however often each was shown
    rows = {"group": lengths, "position": told.position - 1}
    pages = lightgbm.Dataset(train.X[told.document], told.clicked.astype(int), reference=bins, **rows)
    given = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "seed": seed, "num_leaves": 15}
    trees = lightgbm.train(given, pages, max(ROUNDS))
    return [SimpleNamespace(predict=partial(trees.predict, num_iteration=n)) for n in ROUNDS]


def _xgboost(log: ClickLog, train: QueryDataset, seed: int) -> list[SimpleNamespace]:
    """LambdaMART with XGBoost's position bias: 10, 30, 100 trees."""
    import xgboost

    told, lengths = _pages(log)
    X = train.X.astype(np.float32)
    bins = {"ref": xgboost.QuantileDMatrix(X, nthread=1), "nthread": 1}
    pages = xgboost.QuantileDMatrix(X[told.document], told.clicked.astype(int), group=lengths, **bins)
    given = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk"}
    given |= {"nthread": 1, "seed": seed, "max_depth": 4, "eta": 0.1}
    trees = partial(xgboost.train(given, pages, max(ROUNDS)).inplace_predict, predict_type="margin")
    return [SimpleNamespace(predict=partial(trees, iteration_range=(0, n))) for n in ROUNDS]


TREES: dict[str, Callable[[ClickLog, QueryDataset, int], list[SimpleNamespace]]]
TREES = {"lightgbm": _lightgbm, "xgboost": _xgboost}


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
    runs = _trials(data, checkpoint, folds, range(seeds), [(user, pages) for user in users], _online_trial)
    ends = {f"{label}, {user}": (reached["PDGD"], reached["raw"]) for (label, user, _), reached in runs.items()}
    rows: list[list[Any]] = [
        [label, user, *interval(reached["PDGD"]), *interval(reached["raw"]), *_gap(reached, "PDGD", "raw")]
        for (label, user, _), reached in runs.items()
    ]
    columns = ("collection", "users", "PDGD", "±", "online ListNet on raw clicks", "±", "difference", "±")
    title = f"Test NDCG@10 after {pages:,} pages shown to cascade users, {folds} folds, {seeds} seeds"
    notes = (f"Step sizes are the defaults of both. {RUNS}", *left_out(COLLECTIONS, homes(COLLECTIONS, data)))
    return Exhibit("online", title, {"by run": ends}, Table(columns, rows), notes, claims=_beats(ends))


@judge
def _beats(ends: Mapping[str, tuple[Floats, Floats]]) -> Said:
    gaps = {cell: float(np.mean(ours) - np.mean(raw)) for cell, (ours, raw) in ends.items()}
    told = "; ".join(f"{cell} {gap:+.4f}" for cell, gap in gaps.items())
    yield Own("PDGD beats online ListNet on raw clicks in every cell."), min(gaps.values()) > 0, f"{told}."


def _online_trial(fold: Fold, user: str, pages: int, *, seed: int) -> dict[str, float]:
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
    return {name: _ndcg(ranker, fold.test) for name, ranker in (("PDGD", ours), ("raw", raw))}


FIGURES: dict[str, Callable[..., Exhibit]] = {"corrected": corrected, "served": served, "online": online}
