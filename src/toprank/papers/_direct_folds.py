"""The experiments of the direct-optimisation paper: every method on every fold, kept as scores of the test part."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .._progress import track
from .._typing import Floats
from ..data.catalog import CATALOG, VARIABLE
from ..data.dataset import QueryDataset
from ..data.splits import Fold, read_fold
from ..data.transforms import QueryNormalizer
from ..errors import InputError
from ..evaluation import Report, evaluate_grouped
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..measures.order import ranks
from ..rankers.base import Ranker
from ..rankers.boosting import AdaRank, RankBoost
from ..rankers.direct import PermuRank, SVMMap
from ..rankers.listwise import ListNet
from ..rankers.online import Scale
from ..rankers.pairwise import RankSVM
from ..rankers.perceptrons import MinimaxPerceptron, SlamPerceptron
from .base import Checkpoint, Exhibit

Place = str | Path | None
"""A folder: of the collections (None: TOPRANK_DATA), or of finished pieces (None: none are kept)."""

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")
METHODS = ("SVMmap", "AdaRank", "PermuRank", "RankSVM", "RankBoost")
"""The five methods of the paper."""
MORE = ("ListNet", "SLAM perceptron", "minimax perceptron")
FUSION = "fusion"
"""Reciprocal-rank fusion of the five methods and ListNet."""
CHOSEN = ("C_", "alpha", "eta", "thresholds", "normalize", "n_iter_")
"""What a piece tells about the setting that won."""
CHOSEN_BY = (
    "C, alpha, eta, thresholds and rounds are chosen per fold by validation MAP, the designs of the methods by the "
    "validation parts alone (exhibit `choices`). The collections were at hand during development, so the test parts "
    "are not untouched."
)
RECIPE = 3
"""Part of the key of a finished piece: raise it when a grid or a method changes."""


@dataclass(frozen=True)
class Letor:
    """A collection of the paper or beyond it: its name in the catalogue, its convention, how features are prepared."""

    name: str
    label: str
    convention: str = "letor3"
    normalize: bool = False

    def measure(self, text: str) -> Measure:
        """Read a measure under the collection's convention."""
        return parse_measure(text, convention=self.convention)

    def home(self, data: str | Path | None) -> Path | None:
        """Return the collection's folder below `data` (default: TOPRANK_DATA), or None where it is absent."""
        root = os.environ.get(VARIABLE) if data is None else str(data)
        if not root:
            raise InputError(f"set {VARIABLE}, or pass data, to the folder that holds the LETOR collections")
        names = (self.name, *(CATALOG[self.name].folders if self.name in CATALOG else (self.label,)))
        return next((Path(root, name) for name in names if Path(root, name).is_dir()), None)

    @staticmethod
    def folds(home: Path) -> list[int]:
        """Return the numbers of the folds that a collection's folder holds."""
        return [n for n in range(1, MOST_FOLDS + 1) if (home / f"Fold{n}").is_dir()]

    def fold(self, home: Path, number: int) -> Fold:
        """Return one fold, its features normalised per query where they come raw."""
        return _fold(home, number, self.normalize)


MOST_FOLDS = 5
OHSUMED = Letor("ohsumed-letor2", "OHSUMED", normalize=True)
TD2003, TD2004 = Letor("td2003", "TD2003"), Letor("td2004", "TD2004")
WSJ, AP = Letor("wsj", "WSJ"), Letor("ap", "AP")
"""Never published as feature files; folds of your own under these names are used."""
OHSUMED_3 = Letor("ohsumed-letor3", "OHSUMED (LETOR 3.0)")
MQ2008 = Letor("mq2008-letor4", "MQ2008", convention="letor4")


@lru_cache(maxsize=5)
def _fold(home: Path, number: int, normalize: bool) -> Fold:
    fold = read_fold(home, number, dtype=np.float64)
    return Fold(*(map(_normalized, (fold.train, fold.valid, fold.test)))) if normalize else fold


def _normalized(data: QueryDataset) -> QueryDataset:
    return data.with_X(QueryNormalizer().fit_transform(data.X, qid=data.qid))


GRIDS = {
    "SVMmap": tuple(10.0**p for p in range(-2, 5)),
    "PermuRank": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "RankSVM": tuple(10.0**p for p in range(-4, 3)),
}
"""Values of C among which the validation part decides."""
THRESHOLDS = (None, 100, 30)
"""Most thresholds per feature of RankBoost."""
ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)
"""Penalties of ListNet."""
SLAM = (1e-3, 1e-1, 1e1)
"""Step sizes of the SLAM perceptron."""
ROUNDS = {"PermuRank": 40, "RankBoost": 400, "perceptron": 30}
"""Rounds or epochs at most; the validation part decides how many count."""


def candidates(method: str, measure: Measure) -> list[Ranker]:
    """Return the settings of a method among which the validation MAP decides; a list of C is one warm path."""
    if method == "SVMmap":
        return [SVMMap(measure, C=GRIDS[method], tol=1e-3)]
    if method == "AdaRank":
        return [AdaRank(measure)]
    if method == "PermuRank":
        return [PermuRank(measure, C=GRIDS[method], rounds=ROUNDS[method])]
    if method == "PermuRank from AdaRank":
        return [PermuRank(measure, C=GRIDS["PermuRank"], rounds=ROUNDS["PermuRank"], start="adarank")]
    if method == "RankSVM":
        return [RankSVM(measure, C=GRIDS[method])]
    if method == "RankBoost":
        return [RankBoost(measure, rounds=ROUNDS[method], thresholds=most) for most in THRESHOLDS]
    if method == "ListNet":
        return [ListNet(measure, alpha=alpha) for alpha in ALPHAS]
    if method == "SLAM perceptron":
        given: dict[str, Any] = {"epochs": ROUNDS["perceptron"], "random_state": 0}
        scales: tuple[Scale, ...] = (None, "query")
        return [
            SlamPerceptron(target, eta=eta, scale=scale, **given)
            for target in (measure, "ndcg@10")
            for scale in scales
            for eta in SLAM
        ]
    if method == "minimax perceptron":
        return [MinimaxPerceptron(measure, epochs=ROUNDS["perceptron"], random_state=0)]
    raise InputError(f"no experiment with {method!r}: there are {', '.join((*METHODS, *MORE, FUSION))}")


def learn(method: str, letor: Letor, home: Path, number: int) -> dict[str, Any]:
    """Fit every candidate, keep the one with the best MAP on the validation part, and score the test part."""
    measure, fold = letor.measure("map"), letor.fold(home, number)
    best: tuple[float, Ranker] | None = None
    began = time.perf_counter()
    for ranker in candidates(method, measure):
        ranker.fit_queries(fold.train, fold.valid)
        reached = measure.mean(ranker.predict_grouped(fold.valid), fold.valid.y, fold.valid.ptr)
        if best is None or reached > best[0]:
            best = reached, ranker
    assert best is not None
    reached, ranker = best
    return {
        "scores": ranker.predict_grouped(fold.test),
        "valid": reached,
        "chosen": {name: vars(ranker)[name] for name in CHOSEN if name in vars(ranker)},
        "seconds": time.perf_counter() - began,
    }


@dataclass(frozen=True)
class Results:
    """Scores of several methods on the test parts of one collection, fold by fold."""

    letor: Letor
    tests: list[QueryDataset]
    runs: dict[str, list[dict[str, Any]]]

    def report(self, method: str, fold: int) -> Report:
        """Return the measures of one method on one fold (from 0)."""
        scores = np.array(self.runs[method][fold]["scores"])
        return evaluate_grouped(scores, self.tests[fold], list(MEASURES), convention=self.letor.convention)

    def fold_means(self, method: str) -> Floats:
        """Return folds × measures."""
        return np.array([list(self.report(method, f).mean.values()) for f in range(len(self.tests))])

    def means(self, method: str) -> Floats:
        """Return each measure: the mean over queries inside a fold, then over folds, as LETOR does."""
        return np.asarray(self.fold_means(method).mean(axis=0))

    def pooled(self, method: str) -> Report:
        """Return one report over the test queries of all folds."""
        parts = [self.report(method, f) for f in range(len(self.tests))]
        ids = np.concatenate([part.query_ids for part in parts])
        values = {name: np.concatenate([part.per_query[name] for part in parts]) for name in parts[0].per_query}
        counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
        return Report(parts[0].measures, values, counts, self.letor.convention, ids)

    def values(self, method: str, name: str) -> Floats:
        """Return a measure of every test query of all folds."""
        return np.asarray(self.pooled(method).per_query[name])


def run(
    letor: Letor,
    methods: Iterable[str],
    data: Place = None,
    checkpoint: Place = None,
) -> Results | None:
    """Fit the methods on every fold of a collection, or find the finished pieces; None where it is absent."""
    home = letor.home(data)
    if home is None:
        return None
    pieces = Checkpoint(None if checkpoint is None else Path(checkpoint))
    numbers = letor.folds(home)
    wanted = [method for method in methods if method != FUSION]
    runs: dict[str, list[dict[str, Any]]] = {method: [] for method in wanted}
    jobs = [(n, method) for n in numbers for method in wanted]
    for n, method in track(jobs, letor.label):
        key = {"paper": "direct-optimization", "recipe": RECIPE, "set": letor.name, "fold": n, "method": method}
        runs[method].append(pieces.get(key, partial(learn, method, letor, home, n)))
    results = Results(letor, [letor.fold(home, n).test for n in numbers], runs)
    if FUSION in list(methods):
        systems = [runs[method] for method in (*METHODS, "ListNet") if method in runs]
        runs[FUSION] = [
            {"scores": fuse([system[f]["scores"] for system in systems], test)} for f, test in enumerate(results.tests)
        ]
    return results


def run_all(letors: Iterable[Letor], methods: Sequence[str], data: Place, checkpoint: Place) -> list[Results]:
    """Run the methods on every collection that is there."""
    return [results for letor in letors if (results := run(letor, methods, data, checkpoint)) is not None]


def without(name: str, title: str, letor: Letor) -> Exhibit:
    """Return the exhibit of a collection that is absent."""
    notes = [f"{letor.label} is not among the data: nothing was computed."]
    if letor in (WSJ, AP):
        notes.append(
            f"{letor.label} was never published as feature files. Put folds of your own at {letor.name}/Fold1 … Fold4, "
            "and this exhibit and Tables 2 and 3 have it."
        )
    return Exhibit(name, title, {}, notes=tuple(notes))


def fuse(scores: Sequence[Sequence[float]], data: QueryDataset, constant: float = 60.0) -> list[float]:
    """Σ over systems of 1/(60 + rank): reciprocal-rank fusion.

    >>> data = QueryDataset.from_arrays(np.zeros((2, 1)), [1, 0])
    >>> [round(score, 4) for score in fuse([[2.0, 1.0], [0.0, 1.0]], data)]
    [0.0325, 0.0325]
    """
    total = np.zeros(data.n_docs)
    for system in scores:
        total += 1 / (constant + ranks(np.array(system), data.ptr))
    return [float(score) for score in total]
