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
from .._typing import Floats, Ints
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
Reached = Mapping[str, Sequence[Floats]]
"""Entrant ↦ for each number of clicks, what each run (a seed and a fold) reached; NaN where it took no part."""
RUNS = "Intervals are over runs, each a seed (users, production rankers) and a fold; differences are paired."


def corrected(
    *,
    data: Place = None,
    checkpoint: Path | None = None,
    clicks: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000),
    folds: int = 5,
    seeds: int = 10,
    first: int = 100,
    trees: int = 100_000,
    weak: float = 0.01,
) -> Exhibit:
    """Test NDCG@10 against the number of clicks: as they are, corrected, and with all judgements.

    Position p_k = 1/k, noise 0.1; two rankers serve the pages, each learned from a share `weak` of the training queries
    (at least one; from 1 on, a number of queries). Seeds count from `first`. LightGBM and XGBoost, if installed, learn
    from the same pages with corrections of their own: of n clicks in the first `trees`/n seeds, at least one.
    """
    settings = {
        first + at: {"clicks": clicks, "grown": [n for n in clicks if at < max(1, trees // n)]} for at in range(seeds)
    }
    runs = _trials(data, checkpoint, folds, settings, [(weak,)], _trial)
    found = {label: reached for (label, _), reached in runs.items()}
    rows = [
        [label, f"{n:,}", NAMES[name], *_cells(reached, name, at)]
        for label, reached in found.items()
        for at, n in enumerate(clicks)
        for name in NAMES
    ]
    shown = [
        Panel(
            {NAMES[name]: (clicks, *np.array([*map(_mean, v)]).T) for name, v in reached.items() if "*" not in name},
            *((), "clicks", "test NDCG@10", label, "x"),
        )
        for label, reached in found.items()
    ]
    title = f"Test NDCG@10 learned from clicks, {folds} folds, seeds {first} to {first + seeds - 1}"
    notes = (
        f"The production rankers learned from {_judged(weak)} each. {RUNS} Settings, also the number of trees, were "
        "chosen on held-out clicks; lists hold what was shown. Trees learn from pages one by one, minutes for each run "
        "of a million clicks, and so have fewer runs there.",
        *left_out(COLLECTIONS, homes(COLLECTIONS, data)),
    )
    stored, drawn = {"clicks": clicks, "by run": found}, panels(*shown, legend="below")
    columns = ("collection", "clicks", "learned from", "runs", "NDCG@10", "±", "− naive", "±")
    return Exhibit("corrected", title, stored, Table(columns, rows), notes, drawn, _goal(clicks, found))


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
    settings: dict[int, Any] = {seed: {"clicks": [clicks], "grown": []} for seed in range(seeds)}
    runs = _trials(data, checkpoint, folds, settings, [(n,) for n in queries], _trial)
    names = ("production", "naive", "estimated", "true")
    rows = [
        [label, str(n), NAMES[name], *_cells(reached, name, 0)]
        for (label, n), reached in runs.items()
        for name in names
    ]
    columns = ("collection", "judged queries", "learned from", "runs", "NDCG@10", "±", "− naive", "±")
    title = f"Test NDCG@10 learned from {clicks:,} clicks, by who served the pages, {folds} folds, {seeds} seeds"
    found = {f"{label}, {n} judged queries": reached for (label, n), reached in runs.items()}
    notes = (RUNS, *left_out(COLLECTIONS, homes(COLLECTIONS, data)))
    return Exhibit("served", title, {"by run": found}, Table(columns, rows), notes, claims=_helps(found))


def _judged(weak: float) -> str:
    return f"{weak:.0%} of the training queries, at least one," if weak < 1 else f"{weak:.0f} of the training queries"


def _mean(values: Floats) -> tuple[float, float]:
    """Return the mean over the runs that there are, and half its interval."""
    return interval(values[values == values])


def _cells(reached: Reached, name: str, at: int) -> list[Any]:
    """Return how many runs an entrant has, their mean, and the mean difference to naive, with intervals."""
    if name not in reached:
        return ["not installed", *[None] * 4]
    values = reached[name][at]
    return [int((values == values).sum()), *_mean(values), *_mean(values - reached["naive"][at])]


def _told(gaps: Mapping[str, tuple[float, float]]) -> str:
    return "; ".join(f"{cell} {gap:+.4f} ± {half:.4f}" for cell, (gap, half) in gaps.items()) + "."


@judge
def _goal(clicks: Sequence[int], found: Mapping[str, Reached]) -> Said:
    enough = [(label, at) for label in found for at, n in enumerate(clicks) if n >= 10_000]

    def gaps(other: str) -> dict[str, tuple[float, float]]:
        """Return by cell how far ours is above another entrant; none where that one is absent."""
        there = [(label, at) for label, at in enough if other in found[label]]
        pairs = {(label, at): found[label]["estimated"][at] - found[label][other][at] for label, at in there}
        return {f"{label}, {clicks[at]:,}": _mean(gap) for (label, at), gap in pairs.items()}

    for text, other, bound in (
        ("the correction beats clicks as they are in every cell", "naive", np.inf),
        ("it is within .01 of known propensities in every cell", "true", 0.01),
    ):
        least = 0.0 if bound == np.inf else -bound
        for how, share in (("", 0), (", with the whole 95% interval", 1)):
            ends = [gap + end * half for gap, half in gaps(other).values() for end in ((-1, 1) if share else (0,))]
            holds = all(least < end < bound for end in ends) if ends and np.isfinite(ends).all() else None
            yield f"From 10,000 clicks on, {text}{how}.", holds, _told(gaps(other))
    for name in PEERS:
        above = gaps(name)
        holds = all(gap > 0 for gap, _ in above.values()) if above else None
        yield f"From 10,000 clicks on, the correction beats {NAMES[name]}, in every cell.", holds, _told(above)


@judge
def _helps(found: Mapping[str, Reached]) -> Said:
    gaps = {cell: _mean(reached["estimated"][0] - reached["naive"][0]) for cell, reached in found.items()}
    text = "The correction beats clicks as they are, whoever served."
    yield text, all(gap > 0 for gap, _ in gaps.values()), _told(gaps)


def _trials(
    data: Place,
    checkpoint: Path | None,
    folds: int,
    settings: Mapping[int, Mapping[str, Any]],
    cases: Sequence[tuple[Any, ...]],
    trial: Callable[..., Mapping[str, Sequence[float]]],
) -> dict[tuple[Any, ...], Reached]:
    """Run a trial on each collection, case, seed (with its settings) and fold: (collection, *case) ↦ results."""
    there, cells = homes(COLLECTIONS, data), Checkpoint(checkpoint)
    found: dict[tuple[Any, ...], Reached] = {}
    for letor, case in track(list(product(there, cases)), "clicks"):
        parts = [letor.fold(there[letor], n) for n in letor.folds(there[letor])[:folds]]
        runs = [
            piece(
                *(cells, partial(trial, fold, *case, seed=seed, **given)),
                **{"trial": trial.__name__, "case": case, "data": digest(fold), "seed": seed, **given},
            )
            for seed, given in settings.items()
            for fold in parts
        ]
        found[letor.label, *case] = {name: list(np.array([run[name] for run in runs], float).T) for name in runs[0]}
    return found


def _trial(
    fold: Fold, weak: float, *, clicks: Sequence[int], grown: Sequence[int], seed: int
) -> dict[str, list[float]]:
    """Return what each entrant reaches with each number of clicks; fewer clicks are the first ones of more.

    Trees are grown from those numbers of clicks that are in `grown`, and are NaN for the others.
    """
    train, test = fold.train, fold.test
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(train.informative)
    few = max(1, round(weak * train.n_queries)) if weak < 1 else int(weak)
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
        for name, grow in TREES.items():
            models = grow(learn, train, seed) if n in grown and find_spec(name) else ()
            reached.setdefault(name, []).append(_ndcg(_best(models, chosen_by), test) if models else np.nan)
            reached.setdefault(f"{name}*", []).append(max((_ndcg(model, test) for model in models), default=np.nan))
    return {name: values for name, values in reached.items() if find_spec(name.rstrip("*")) or name not in PEERS}


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


def _pages(log: ClickLog, merge: bool) -> tuple[ClickLog, Ints, Ints]:
    """Return the pages with clicks (others have no pairs), how long each is, and how often it came.

    With `merge`, sessions with the same page and the same clicks are one page that came several times.
    """
    assert log.session is not None
    assert log.ranker is not None
    hit = np.bincount(log.session, log.clicked * 2.0**log.position)  # which positions were clicked
    _, start, page, length = np.unique(log.session, return_index=True, return_inverse=True, return_counts=True)
    hit = hit[log.session[start]]
    count = (hit > 0).astype(np.int64)
    if merge:
        same = np.stack((log.query[start], log.ranker[start], hit))
        _, kept, often = np.unique(same, axis=1, return_index=True, return_counts=True)
        count[:] = 0
        count[kept] = often * (hit[kept] > 0)
    return log.take(count[page] > 0), length[count > 0], count[count > 0]


def _lightgbm(log: ClickLog, train: QueryDataset, seed: int, **more: Any) -> list[SimpleNamespace]:
    """LambdaMART with LightGBM's position bias: 10, 30, 100 trees. Weights make one page of equal ones exactly."""
    import lightgbm

    told, lengths, count = _pages(log, merge=True)
    bins = lightgbm.Dataset(train.X)  # bins by documents, however often each was shown
    rows = {"weight": np.repeat(count, lengths), "group": lengths, "position": told.position - 1}
    pages = lightgbm.Dataset(train.X[told.document], told.clicked.astype(int), reference=bins, **rows)
    given = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "seed": seed, "num_leaves": 15, **more}
    trees = lightgbm.train(given, pages, max(ROUNDS))
    return [SimpleNamespace(predict=partial(trees.predict, num_iteration=n)) for n in ROUNDS]


def _xgboost(log: ClickLog, train: QueryDataset, seed: int) -> list[SimpleNamespace]:
    """LambdaMART with XGBoost's position bias: 10, 30, 100 trees. Its counts ignore weights: pages stay apart."""
    import xgboost

    told, lengths, _ = _pages(log, merge=False)
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
    cases = [(user,) for user in users]
    runs = _trials(data, checkpoint, folds, {seed: {"pages": pages} for seed in range(seeds)}, cases, _online_trial)
    ends = {", ".join(cell): (reached["PDGD"][0], reached["raw"][0]) for cell, reached in runs.items()}
    rows: list[list[Any]] = [
        [*cell, *interval(ours), *interval(raw), *interval(ours - raw)]
        for cell, (ours, raw) in zip(runs, ends.values(), strict=True)
    ]
    columns = ("collection", "users", "PDGD", "±", "online ListNet on raw clicks", "±", "difference", "±")
    title = f"Test NDCG@10 after {pages:,} pages shown to cascade users, {folds} folds, {seeds} seeds"
    notes = (f"Step sizes are the defaults of both. {RUNS}", *left_out(COLLECTIONS, homes(COLLECTIONS, data)))
    return Exhibit("online", title, {"by run": ends}, Table(columns, rows), notes, claims=_beats(ends))


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


FIGURES: dict[str, Callable[..., Exhibit]] = {"corrected": corrected, "served": served, "online": online}
