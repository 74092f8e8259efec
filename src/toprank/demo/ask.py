"""One question, two rankings: BM25 alone, and what the best learned ranker makes of the same candidates."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._progress import busy
from .._typing import Floats
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..report.additive import contributions
from .collect import Document
from .features import FEATURES, Candidates, Extractor
from .index import Index
from .judged import CANDIDATES, judge
from .memory import recall, remember
from .words import question, words

if TYPE_CHECKING:
    from ..model import Model

TOP = 10
"""Documents shown of each ranking."""
REASONS = 2
"""Features named per document in the terminal."""


@dataclass(frozen=True)
class Hit:
    """A document in the learned ranking."""

    document: str
    summary: str
    """The first sentence of its docstring."""
    score: float
    bm25_place: int
    reasons: dict[str, float]
    """By feature, what it adds to the score beyond the mean over the candidates; the strongest first."""


@dataclass(frozen=True)
class Answer:
    """Both rankings of the same candidates, best first."""

    query: str
    unknown: tuple[str, ...]
    """Words of the query that no document has."""
    ranker: str
    n_candidates: int
    bm25: tuple[str, ...]
    learned: tuple[Hit, ...]

    def __str__(self) -> str:
        """Return the learned ranking with first sentences and what moved each document, then that of BM25."""
        lines = [self.query, ""]
        for place, hit in enumerate(self.learned, start=1):
            lines.append(f"{place:2}  {hit.document}  {_move(hit.bm25_place - place)}".rstrip())
            lines += [f"    {text}" for text in (hit.summary, _reasons(hit.reasons)) if text]
        bm25 = ", ".join(f"{place} {name}" for place, name in enumerate(self.bm25, start=1))
        lines += ["", f"BM25 alone: {bm25}"]
        legend = (
            f"{self.n_candidates} candidates, ranked by {self.ranker}; ↑ and ↓ count places against BM25, + and − say"
        )
        lines.append(f"{legend} what speaks for or against a document beside the mean candidate.")
        if self.unknown:
            lines.append(f"No document has: {', '.join(self.unknown)}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class LearnedSearch:
    """An index with the model of a ranker that has learned to search it."""

    index: Index
    model: Model

    def ask(self, query: str, top: int = TOP) -> Answer:
        """Rank the documents for a query by BM25 and by the ranker."""
        documents, X = candidates(query, Extractor(self.index))
        data = QueryDataset.from_arrays(X, np.zeros(len(documents)), feature_names=FEATURES)
        parts = contributions(self.model, data)
        scores = self.model.scores(data) if parts is None else parts.sum(axis=1)  # a sum needs nothing compiled
        order = np.argsort(-scores, kind="stable")[:top]
        return Answer(
            query=query,
            unknown=tuple(dict.fromkeys(word for word in words(query) if word not in self.index.vocabulary)),
            ranker=self.model.source,
            n_candidates=len(documents),
            bm25=tuple(document.id for document in documents[:top]),
            learned=tuple(
                Hit(
                    document=documents[row].id,
                    summary=documents[row].summary,
                    score=float(scores[row]),
                    bm25_place=int(row) + 1,
                    reasons={} if parts is None else _strongest(parts[row] - parts.mean(axis=0)),
                )
                for row in order
            ),
        )


def candidates(query: str, extractor: Extractor) -> tuple[list[Document], Floats]:
    """Return the documents that BM25 finds, best first, with their features."""
    text, index = question(query), extractor.index
    asked = index.queries([text])
    pairs = Candidates.of(index, asked, CANDIDATES)
    return [index.documents[number] for number in pairs.document], extractor.features([text], asked, pairs)


def check(query: str, index: Index) -> None:
    """Refuse a query that finds nothing, before anything is learned."""
    if not words(query):
        raise InputError('there is nothing to search for: ask in words, e.g. --ask "read a csv file with a header"')
    if index.queries([question(query)]).nnz == 0:
        raise InputError(f"none of these words is in the documentation: {query!r}; ask in other words")


def ask(queries: Sequence[str], packages: Collection[str] | None = None) -> list[Answer]:
    """Learn to search the standard library (or some packages of it) unless that was done before, then answer."""
    with busy("looking for what was learned before"):
        known = recall(packages)
    if known is None:
        search = _learned(queries, packages)
    else:
        index, model = known
        search = LearnedSearch(index, model)
        for query in queries:
            check(query, index)
    return [search.ask(query) for query in queries]


def _learned(queries: Sequence[str], packages: Collection[str] | None) -> LearnedSearch:
    """Learn, keep what was learned, and load what that takes only here: a question that need not wait does not."""
    with busy("reading and indexing the standard library"):
        from .job import Library, best_of, learn

        library = Library.open(packages)
        index = library.whole
    for query in queries:
        check(query, index)
    winners = learn(judge(library.index))
    ranker = winners[best_of(winners)].ranker
    remember(packages, index, ranker)
    return LearnedSearch(index, ranker.model_)


def _strongest(parts: Floats) -> dict[str, float]:
    order = np.argsort(-np.abs(parts), kind="stable")
    return {FEATURES[feature]: float(parts[feature]) for feature in order if parts[feature] != 0}


def _move(places: int) -> str:
    return f"↑ {places}" if places > 0 else f"↓ {-places}" if places < 0 else ""


def _reasons(reasons: dict[str, float]) -> str:
    return ", ".join(f"{'+' if value > 0 else '−'} {name}" for name, value in list(reasons.items())[:REASONS])
