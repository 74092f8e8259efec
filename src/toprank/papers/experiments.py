"""Experiments on collections with folds: a paper declares methods and settings, the contests' search does the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .._checkpoint import Checkpoint
from .._checkpoint import piece as piece
from .._progress import track
from .._typing import Floats
from ..contests.search import Failure, Search, described, fingerprint
from ..contests.settings import Candidate
from ..data.catalog import CATALOG, VARIABLE
from ..data.dataset import QueryDataset
from ..data.splits import Fold, fold_numbers, read_fold, stacked
from ..data.transforms import QueryNormalizer
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..statistics.comparison import Comparison, compare
from ..statistics.evaluation import Report, evaluate_grouped
from .exhibits import Exhibit, Maker

Place = str | Path | None
"""A folder: of the collections (None: TOPRANK_DATA), or of finished pieces (None: none are kept)."""

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10")

Methods = Mapping[str, Callable[[Measure], Sequence[Ranker]]]
"""Name of a method ↦ its settings, among which the validation part decides; a list of C is one warm path."""


def data_folder(data: Place) -> Path:
    """Return the folder that holds the collections: the one given, or that of `TOPRANK_DATA`."""
    root = os.environ.get(VARIABLE) if data is None else str(data)
    if not root:
        raise InputError(f"set {VARIABLE}, or pass --data, to the folder that holds the collections")
    if not Path(root).is_dir():
        raise InputError(f"{root} is not a folder: give the one that holds the collections")
    return Path(root)


@dataclass(frozen=True)
class Letor:
    """A collection with folds: its name in the catalogue, its convention, how features are prepared."""

    name: str
    label: str
    convention: str = "letor3"
    normalize: bool = False
    where: str = ""
    """Where a collection that is not to be had here would stand."""

    def measure(self, text: str) -> Measure:
        """Read a measure under the collection's convention."""
        return parse_measure(text, convention=self.convention)

    def home(self, data: Place) -> Path | None:
        """Return the collection's folder below `data`, or None where it is absent."""
        root = data_folder(data)
        names = (self.name, self.label, *(CATALOG[self.name].folders if self.name in CATALOG else ()))
        return next((root / name for name in names if (root / name).is_dir()), None)

    def folds(self, home: Path) -> list[int]:
        """Return the numbers of the folds that a collection's folder holds."""
        return fold_numbers(home)

    def fold(self, home: Path, number: int) -> Fold:
        """Return one fold, its features normalised per query where they come raw."""
        return _fold(home, number, self.normalize)


OHSUMED_3 = Letor("ohsumed-letor3", "OHSUMED (LETOR 3.0)")
MQ2008 = Letor("mq2008-letor4", "MQ2008", convention="letor4")


def homes(wanted: Sequence[Letor], data: Place) -> dict[Letor, Path]:
    """Return the collections that are there, each with its folder; none at all of those to be had is an error."""
    found = {letor: home for letor in wanted if (home := letor.home(data)) is not None}
    if not found and not all(letor.where for letor in wanted):
        raise InputError(f"{data_folder(data)} holds none of {', '.join(letor.name for letor in wanted)}")
    return found


def left_out(wanted: Iterable[Letor], there: Collection[Letor]) -> tuple[str, ...]:
    """Name the collections that are absent, and where they would stand."""
    absent = (letor for letor in wanted if letor not in there)
    return tuple(f"Left out: {letor.label}, {letor.where or 'not among the data'}." for letor in absent)


@lru_cache(maxsize=5)
def _fold(home: Path, number: int, normalize: bool) -> Fold:
    fold = read_fold(home, number, dtype=np.float64)
    if not normalize:
        return fold
    parts = (fold.train, fold.valid, fold.test)
    return Fold(*(part.with_X(QueryNormalizer().fit_transform(part.X, qid=part.qid)) for part in parts))


def digest(fold: Fold) -> str:
    """Return a digest of a fold: other rows, another order, another digest."""
    return "-".join(map(fingerprint, (fold.train, fold.valid, fold.test)))


def learn(method: str, rankers: Sequence[Ranker], measure: Measure, fold: Fold) -> Floats:
    """Fit every setting, keep the one with the best measure on the validation part, and score the test part."""
    search = Search(measure, [Candidate(method, tuple(rankers))], Checkpoint(None), lambda *_: None)
    won = search.run(fold.train, fold.valid, np.inf)[method]
    if isinstance(won, Failure):
        raise InputError(f"{method}: {won.reason}")
    return np.asarray(won.ranker.predict_grouped(fold.test))


@dataclass(frozen=True)
class Results:
    """Scores of several methods on the test parts of one collection, fold by fold."""

    letor: Letor
    tests: list[QueryDataset]
    scores: dict[str, list[Floats]]

    def means(self, method: str) -> Floats:
        """Return each measure: the mean over queries inside a fold, then over folds, as LETOR does."""
        reports = map(self._report, self.scores[method], self.tests)
        return np.asarray(np.mean([list(report.mean.values()) for report in reports], axis=0))

    def pooled(self, method: str) -> Report:
        """Return one report over the test queries of all folds."""
        return self._report(np.concatenate(self.scores[method]), self.all_tests)

    def compared(self, methods: Iterable[str], test: Any = "permutation", baseline: str | None = None) -> Comparison:
        """Compare methods over the test queries of all folds."""
        return compare({method: self.pooled(method) for method in methods}, test, baseline=baseline)

    def _report(self, scores: Floats, data: QueryDataset) -> Report:
        return evaluate_grouped(scores, data, list(MEASURES), convention=self.letor.convention)

    @cached_property
    def all_tests(self) -> QueryDataset:
        """The test parts of all folds together."""
        return stacked(self.tests)


def run(letors: Sequence[Letor], methods: Methods, data: Place = None, checkpoint: Place = None) -> list[Results]:
    """Fit the methods on every fold of the collections that are there, or find the finished pieces."""
    pieces, found = Checkpoint(None if checkpoint is None else Path(checkpoint)), []
    for letor, home in homes(letors, data).items():
        folds, measure = [letor.fold(home, n) for n in letor.folds(home)], letor.measure("map")
        known = [None if checkpoint is None else digest(fold) for fold in folds]
        scores: dict[str, list[Floats]] = {method: [] for method in methods}
        for (fold, rows), method in track(list(product(zip(folds, known, strict=True), methods)), letor.label):
            rankers = list(methods[method](measure))
            task = partial(learn, method, rankers, measure, fold)
            scores[method].append(np.array(piece(pieces, task, data=rows, settings=[described(r) for r in rankers])))
        found.append(Results(letor, [fold.test for fold in folds], scores))
    return found


Show = Callable[[Sequence[Results]], Exhibit]


def on_folds(letors: Sequence[Letor], methods: Methods) -> Callable[[Show], Maker]:
    """Declare an exhibit: a function of the methods' results on those of the collections that are there."""

    def declare(show: Show) -> Maker:
        def make(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
            found = run(letors, methods, data, checkpoint)
            absent = left_out(letors, [results.letor for results in found])
            if not found:
                title = (show.__doc__ or "").rstrip(".")
                return Exhibit(show.__name__, title, {}, notes=(*absent, "Nothing was computed."))
            exhibit = show(found)
            return replace(exhibit, notes=(*exhibit.notes, *absent))

        make.__name__, make.__doc__ = show.__name__, show.__doc__
        return make

    return declare
