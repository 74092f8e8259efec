"""The demo: learn to search the documentation of the standard library, and be judged against BM25."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from .._checkpoint import Checkpoint
from .._progress import busy, steps
from .._suggest import did_you_mean
from ..contests.base import Contest, Entrant
from ..contests.from_reports import finished
from ..contests.search import Failure, Search, Winner, curves, entrant
from ..contests.settings import Candidate
from ..errors import InputError
from ..measures import measure as parse
from ..rankers.additive import AdditiveRanker
from ..rankers.base import Ranker
from ..rankers.boosting import AdaRank, RankBoost
from ..rankers.listwise import ListNet
from ..rankers.pairwise import RankSVM
from ..rankers.perceptrons import OnlineListNet, SlamPerceptron
from ..statistics.comparison import compare
from ..statistics.evaluation import evaluate_grouped
from .collect import Collection as Documents
from .collect import collect
from .index import Index
from .judged import CANDIDATES, Judged, judge
from .memory import remember

MEASURE = "ndcg@10"
MEASURES = (MEASURE, "map", "mrr")
BM25 = "BM25"
CHOICE = (
    f"Settings were chosen by {MEASURE} on the queries to choose on; the judged queries took no part in any choice. "
    "BM25 runs with k1 = 1.2 and b = 0.75 over all fields together."
)


def contestants() -> list[Candidate]:
    """Return who takes part, each with the few settings that the validation queries choose among."""
    settings: dict[str, list[Ranker]] = {
        "AdditiveRanker": [AdditiveRanker(MEASURE)],
        "ListNet": [ListNet(MEASURE, alpha=alpha) for alpha in (1e-3, 1e-4)],
        "RankSVM": [RankSVM(MEASURE, C=(0.01, 0.1, 1.0, 10.0))],
        "RankBoost": [RankBoost(MEASURE)],
        "AdaRank": [AdaRank(MEASURE), AdaRank(MEASURE, both_directions=False)],
        "SlamPerceptron": [SlamPerceptron(MEASURE, average=average) for average in (True, False)],
        "OnlineListNet": [OnlineListNet(MEASURE, eta=eta) for eta in (0.1, 1.0)],
    }
    return [Candidate(name, tuple(rankers)) for name, rankers in settings.items()]


@dataclass(frozen=True, eq=False)
class Library:
    """The documents that are searched."""

    collection: Documents

    @cached_property
    def index(self) -> Index:
        """The index to learn and to be judged by: it lacks the sentences that are the queries."""
        return Index.of(self.collection.documents)

    @cached_property
    def whole(self) -> Index:
        """The index to answer questions by: first sentences, and those of modules, are in it."""
        return Index.of(self.collection.documents, whole=True)

    @classmethod
    def open(cls, packages: Collection[str] | None = None) -> Library:
        """Read the running Python's library, or only some of its packages."""
        found = collect(packages=packages)
        known = {document.package for document in found.documents}
        for package in packages or ():
            if package not in known:
                hint = did_you_mean(package, sorted(sys.stdlib_module_names))
                raise InputError(f"the standard library documents no package {package!r}{hint}")
        return cls(found)


@dataclass(frozen=True, eq=False)
class Demo:
    """The contest that was held, and the numbers a reader wants first."""

    contest: Contest
    facts: dict[str, Any]
    best: str
    """Who learned to rank the validation queries best: chosen before anything was judged."""


def learn(judged: Judged) -> dict[str, Winner]:
    """Fit every ranker on the train part and choose its settings on the validation part."""
    candidates = contestants()
    with steps({candidate.name: len(candidate.rankers) for candidate in candidates}) as tell:
        found = Search(parse(MEASURE), candidates, Checkpoint(None), tell).run(judged.train, judged.valid, inf)
    for name, outcome in found.items():
        if isinstance(outcome, Failure):
            raise InputError(f"{name} could not learn from these queries: {outcome.reason}")
    return found


def best_of(winners: dict[str, Winner]) -> str:
    """Return who does best on the validation queries; the first of equals."""
    return max(winners, key=lambda name: winners[name].valid)


def run(packages: Collection[str] | None = None) -> Demo:
    """Collect, index, make judged queries, learn, and judge everybody on packages that nobody has seen."""
    with busy("reading and indexing the standard library"):
        library = Library.open(packages)
        judged = judge(library.index)
    winners = learn(judged)
    with busy("judging"):
        return _judged(packages, library, judged, winners)


def _judged(packages: Collection[str] | None, library: Library, judged: Judged, winners: dict[str, Winner]) -> Demo:
    remember(packages, library.whole, winners[best_of(winners)].ranker)
    test = judged.test
    bm25 = np.asarray(test.X[:, 0], dtype=np.float64)  # divided by what the query could bring: the same order
    entrants = [Entrant(BM25, bm25, evaluate_grouped(bm25, test, MEASURES))]
    entrants += [_entrant(name, winner, judged) for name, winner in winners.items()]
    facts = facts_of(library, judged)
    # Every pair is tested, and the table that leads holds everybody against BM25.
    comparison = replace(compare({entrant.name: entrant.report for entrant in entrants}), baseline=BM25)
    title = f"Searching the standard library of Python {platform.python_version()}"
    # Each package is in one part only, so no judged query was learned from or chosen by.
    contest = finished(title, test, entrants, comparison, MEASURE, BM25, unseen=True, notes=(*sentences(facts), CHOICE))
    return Demo(contest, facts, best_of(winners))


def _entrant(name: str, winner: Winner, judged: Judged) -> Entrant:
    scores = winner.ranker.predict_grouped(judged.test)
    report = evaluate_grouped(scores, judged.test, MEASURES)
    return entrant(name, scores, report, [winner], curves(winner.ranker), winner.ranker.certify(judged.train))


def facts_of(library: Library, judged: Judged) -> dict[str, Any]:
    """Return what was read and made of it, as plain numbers."""
    kinds = Counter(document.kind for document in library.collection.documents)
    parts = {"train": judged.train, "valid": judged.valid, "test": judged.test}
    return {
        "python": platform.python_version(),
        "files": library.collection.n_files,
        "skipped_files": list(library.collection.skipped),
        "documents": len(library.collection.documents),
        "functions": kinds["function"],
        "classes": kinds["class"],
        "methods": kinds["method"],
        "packages": len(judged.packages),
        "queries": {name: part.n_queries for name, part in parts.items()},
        "ambiguous_sentences": judged.ambiguous,
        "hopeless_sentences": judged.hopeless,
        "candidates": CANDIDATES,
        "recall": judged.recall,
        "blank_queries": int((judged.test.largest_grade == 0).sum()),
    }


def sentences(facts: dict[str, Any]) -> list[str]:
    """Return the facts in words: what was searched, what was asked, what was judged."""
    n = facts["queries"]
    skipped = f" ({len(facts['skipped_files'])} more could not be parsed)" if facts["skipped_files"] else ""
    return [
        f"Python {facts['python']}: {facts['documents']:,} documents ({facts['functions']:,} functions, "
        f"{facts['classes']:,} classes, {facts['methods']:,} methods) out of {facts['files']} files{skipped}.",
        f"{sum(n.values()):,} queries, each the first sentence of a docstring, which is not indexed: {n['train']:,} to "
        f"learn from, {n['valid']:,} to choose on, {n['test']:,} to be judged on. Each of the {facts['packages']} "
        f"packages is in one of these three parts. Left out: {facts['ambiguous_sentences']} sentences that several "
        f"packages use, {facts['hopeless_sentences']} without a word that any document has.",
        "Grade 2 for the object that the sentence describes, 1 for its family (same class, or functions of the same "
        "module), 0 for the rest.",
        f"BM25 hands over {facts['candidates']} candidates per query, out of all packages, and nothing is added: the "
        f"object itself is among them for {facts['recall']:.1%} of the judged queries, and {facts['blank_queries']} "
        "queries have no relevant candidate at all and count 0 for everybody.",
    ]
