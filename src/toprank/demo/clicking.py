"""A search of the standard library that learns from clicks: what is ranked, and the ranker to begin with."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from .._typing import Floats
from ..model import Inputs, LinearFunction, Model
from ..rankers.pdgd import PDGD
from .ask import candidates, check
from .collect import Document
from .features import FEATURES, Extractor
from .job import Library


class LibrarySearch:
    """The documentation of the running Python's library, to be searched and clicked on."""

    def __init__(self, packages: Collection[str] | None = None) -> None:
        self._extractor = Extractor(Library.open(packages).whole)

    def candidates(self, query: str) -> tuple[list[Document], Floats]:
        """Return the documents that BM25 finds, with their features."""
        check(query, self._extractor.index)
        return candidates(query, self._extractor)


def first_ranker() -> PDGD:
    """Return a learner from clicks that ranks as BM25 does before the first click."""
    bm25 = np.zeros(len(FEATURES))
    bm25[0] = 20.0  # BM25 is a share of what the query could bring: so much makes the best of them likely on top
    return PDGD("mrr", eta=10.0).start_at(Model(LinearFunction(bm25), Inputs(len(FEATURES), tuple(FEATURES)), "BM25"))
