"""The demo: the documentation of the running Python's library, searched by a ranker that learns from clicks."""

from __future__ import annotations

import numpy as np

from ..demo.features import FEATURES, Candidates, Extractor
from ..demo.job import Library
from ..demo.judged import CANDIDATES
from ..rankers.models import LinearModel
from ..rankers.pdgd import PDGD
from .bodies import BodyError, Lists
from .learning import Learner, for_clicks


class Demo:
    """The documentation of the running Python's library, to be searched."""

    def __init__(self, packages: list[str] | None = None) -> None:
        self._index = Library.open(packages).index
        self._extractor = Extractor(self._index)

    def learner(self) -> Learner:
        """Return a learner from clicks that starts where BM25 is."""
        bm25 = np.zeros(len(FEATURES))
        bm25[0] = 20.0  # BM25 is a share of what the query could bring: so much makes the best of them likely on top
        start = PDGD("mrr")
        start.model_, start.n_queries_in_, start.learned_from_ = LinearModel(bm25), 0, None
        start.feature_names_in_ = np.array(FEATURES, dtype=object)
        return Learner.read(Learner.text_of(for_clicks(start, eta=10.0)), "the demo's model")

    def candidates(self, query: str) -> tuple[Lists, list[str]]:
        """Return the documents that BM25 finds, with their features, and a sentence for each."""
        asked = self._index.queries([query])
        if asked.nnz == 0:
            raise BodyError("none of these words is in the documentation: ask in other words", "$.query")
        pairs = Candidates.of(self._index, asked, CANDIDATES)
        X = np.ascontiguousarray(self._extractor.features([query], asked, pairs), dtype=np.float64)
        documents = [self._index.documents[number] for number in pairs.document]
        return Lists([document.id for document in documents], X), [document.summary for document in documents]
