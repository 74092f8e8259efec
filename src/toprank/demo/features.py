"""What a ranker sees of a query and a document: numbers that depend on the words of the two and on the index alone.

Nothing here knows where a query comes from, so the same features are there when somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints
from .index import K1, Index, count
from .words import words

FEATURES = (
    "BM25",
    "BM25 of the name",
    "BM25 of the module",
    "BM25 of the signature",
    "BM25 of the docstring",
    "query words found",
    "name words asked for",
    "name letters asked for",
    "first word in the name",
    "BM25 of the best kin",
    "docstring length",
    "name length",
    "is a method",
    "module depth",
)
BLOCK = 1 << 15
"""Pairs of a query and a document looked at together."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of a query and one of its candidates, query by query and best BM25 first."""

    query: Ints
    document: Ints
    bm25: Floats

    @classmethod
    def of(cls, index: Index, queries: Any, k: int) -> Candidates:
        """Take the k best documents of each query by BM25; a query without any known word has none."""
        found = list(index.candidates(queries, k))
        if not found:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        documents, scores = zip(*found, strict=True)
        query = np.repeat(np.arange(len(found)), [len(one) for one in documents])
        return cls(query, np.concatenate(documents).astype(np.int64), np.concatenate(scores))


@dataclass(frozen=True, eq=False)
class Extractor:
    """Computes `FEATURES`, looking only at documents that are somebody's candidates."""

    index: Index

    def _constant(self) -> Floats:
        """Columns that depend on the document alone, each between 0 and 1."""
        documents = self.index.documents
        lengths = [np.asarray(self.index.counts[field].sum(axis=1)).ravel() for field in ("docstring", "name")]
        logs = [np.log1p(values) / np.log1p(values.max(initial=1)) for values in lengths]
        depth = np.array([document.module.count(".") for document in documents], dtype=np.float64)
        method = np.array([document.kind == "method" for document in documents], dtype=np.float64)
        return np.stack([*logs, method, depth / max(1.0, depth.max(initial=0))], axis=1)

    def features(self, texts: Sequence[str], queries: Any, pairs: Candidates) -> Floats:
        """Return one row per pair; BM25 is a share of the most that the words of the query could bring."""
        idf = self.index.idf
        used, place = np.unique(pairs.document, return_inverse=True)
        documents = [self.index.documents[number] for number in used]
        leaves = [document.path.rpartition(".")[2] for document in documents]  # writerow of DictWriter.writerow
        leaf = _with(count([words(name) for name in leaves], self.index.vocabulary), idf)
        spelled = [_runs(re.findall(r"[^\W_]+", name.lower())) for name in leaves]
        numbers = {run: number for number, run in enumerate(sorted({run for one in spelled for run in one}))}
        spelling = _with(count(spelled, numbers))
        family = np.unique([document.family for document in documents], return_inverse=True)[1].astype(np.int64)
        asked = np.asarray(_with(queries, idf).sum(axis=1)).ravel()[pairs.query]
        most = (K1 + 1) * asked
        first = self.index.queries([" ".join(words(text)[:1]) for text in texts])
        runs = _with(count([_runs(words(text)) for text in texts], numbers))
        leaf_total = np.asarray(leaf.sum(axis=1)).ravel()[place]
        run_total = np.diff(spelling.indptr)[place]
        columns = [
            pairs.bm25 / most,
            *(
                _products(self.index.bm25[field], pairs.document, queries, pairs.query) / most
                for field in ("name", "module", "signature", "docstring")
            ),
            _products(_with(self.index.counts["all"], idf), pairs.document, queries, pairs.query) / asked,
            _products(leaf, place, queries, pairs.query) / np.maximum(leaf_total, 1e-12),
            _products(spelling, place, runs, pairs.query) / np.maximum(run_total, 1),
            _products(leaf, place, first, pairs.query) > 0,
            _best_of_family(pairs, family[place]) / most,
        ]
        return np.concatenate([np.stack(columns, axis=1), self._constant()[pairs.document]], axis=1)


def _best_of_family(pairs: Candidates, family: Ints) -> Floats:
    """Return the largest BM25 among the query's other candidates of the same class or module; 0 without any."""
    _, group = np.unique(pairs.query * (family.max(initial=0) + 1) + family, return_inverse=True)
    order = np.lexsort((-pairs.bm25, group))
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    best = np.repeat(pairs.bm25[order[starts]], sizes)
    second = order[np.minimum(starts + 1, len(order) - 1)]
    best[starts] = np.where(sizes > 1, pairs.bm25[second], 0.0)
    result = np.empty(len(order))
    result[order] = best
    return result


def _products(documents: Any, document: Ints, queries: Any, query: Ints) -> Floats:
    """Σ over words of query · document, pair by pair of rows."""
    parts = [
        np.asarray(documents[document[i : i + BLOCK]].multiply(queries[query[i : i + BLOCK]]).sum(axis=1))
        for i in range(0, len(query), BLOCK)
    ]
    return np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def _with(counts: Any, values: AnyArray | None = None) -> Any:
    """Return a matrix with a value per word (1 by default) in place of each count."""
    result = counts.copy()
    result.data = np.ones(len(counts.data)) if values is None else values[counts.indices]
    return result


def _runs(parts: Sequence[str]) -> list[str]:
    """Return every run of three letters, a word's beginning marked, so that short words have one too.

    >>> _runs(["rmtree", "to"])
    ['^rm', 'rmt', 'mtr', 'tre', 'ree', '^to']
    """
    marked = [f"^{part}" for part in parts]
    return [word[i : i + 3] for word in marked for i in range(max(1, len(word) - 2))]
