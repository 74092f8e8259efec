"""Judged queries made of documentation: the first sentence of a docstring asks for its object."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..errors import InputError
from .collect import Document
from .features import FEATURES, Candidates, Extractor
from .index import Index
from .words import words

SHORTEST = 3
"""Fewer words than this do not ask for anything."""
CANDIDATES = 50
"""Documents that BM25 hands to the rankers, per query."""
N_PARTS = 5
"""Packages are divided into this many parts: all but two to learn from, one to choose on, one to be judged on."""


@dataclass(frozen=True)
class Query:
    """A first sentence, and the documents it belongs to (several where one package says the same of each)."""

    text: str
    objects: tuple[int, ...]
    package: str


def queries_of(documents: Sequence[Document]) -> tuple[list[Query], int]:
    """Return the queries in the order of their objects, and how many sentences were left out as ambiguous.

    A sentence that several packages use asks for none of them in particular, and would stand in two parts at once.
    """
    owners: dict[str, list[int]] = defaultdict(list)
    for number, document in enumerate(documents):
        if len(words(document.summary)) >= SHORTEST:
            owners[document.summary].append(number)
    queries = []
    for text, objects in owners.items():
        packages = {documents[number].package for number in objects}
        if len(packages) == 1:
            queries.append(Query(text, tuple(objects), packages.pop()))
    return queries, len(owners) - len(queries)


def parts_of(queries: Sequence[Query], n_parts: int = N_PARTS) -> dict[str, int]:
    """Divide the packages into parts with about as many queries each: the largest first, each into the smallest part.

    >>> parts_of([Query("", (), package) for package in "aaabbc"], n_parts=2)
    {'a': 0, 'b': 1, 'c': 1}
    """
    sizes = Counter(query.package for query in queries)
    filled = [0] * n_parts
    part: dict[str, int] = {}
    for package in sorted(sizes, key=lambda name: (-sizes[name], name)):
        part[package] = filled.index(min(filled))
        filled[part[package]] += sizes[package]
    return part


def grades_of(queries: Sequence[Query], documents: Sequence[Document], pairs: Candidates) -> Floats:
    """Return 2 for an object of the query, 1 for its family (same class, or functions of the same module), else 0."""
    families = [{documents[number].family for number in query.objects} for query in queries]
    pair = zip(pairs.query.tolist(), pairs.document.tolist(), strict=True)
    return np.array([2.0 if d in queries[q].objects else float(documents[d].family in families[q]) for q, d in pair])


@dataclass(frozen=True, eq=False)
class Judged:
    """Queries with their candidates, features and grades, in parts that share no package."""

    train: QueryDataset
    valid: QueryDataset
    test: QueryDataset
    packages: dict[str, int]
    """The part that each package's queries are in."""
    ambiguous: int
    """Sentences left out because several packages use them."""
    hopeless: int
    """Sentences left out because no document has any of their words."""

    @property
    def recall(self) -> float:
        """Share of the queries to be judged on whose object is among the candidates."""
        return float((self.test.largest_grade == 2).mean())


def judge(index: Index, k: int = CANDIDATES) -> Judged:
    """Make judged queries of the documents of an index; candidates come from all packages, whatever the part."""
    queries, ambiguous = queries_of(index.documents)
    part = parts_of(queries)
    filled = np.array([part[query.package] for query in queries])
    if len(set(filled.tolist())) < N_PARTS:
        raise InputError(
            f"{len(queries)} queries from {len(part)} packages cannot fill {N_PARTS} parts: take more packages"
        )
    texts = [query.text for query in queries]
    asked = index.queries(texts)
    pairs = Candidates.of(index, asked, k)
    X = Extractor(index).features(texts, asked, pairs)
    y = grades_of(queries, index.documents, pairs)
    qid = np.array(texts)[pairs.query]
    ids = np.array([document.id for document in index.documents])[pairs.document]

    def data_of(*parts: int) -> QueryDataset:
        rows = np.isin(filled[pairs.query], parts)
        return QueryDataset.from_arrays(X[rows], y[rows], qid[rows], feature_names=FEATURES, doc_ids=ids[rows])

    return Judged(
        train=data_of(*range(N_PARTS - 2)),
        valid=data_of(N_PARTS - 2),
        test=data_of(N_PARTS - 1),
        packages=part,
        ambiguous=ambiguous,
        hopeless=len(queries) - len(np.unique(pairs.query)),
    )
