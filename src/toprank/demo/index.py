"""An index of documents by field: BM25 for all of a document and for each field alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from .._typing import Floats, Ints
from .collect import Document
from .words import words

K1 = 1.2
"""How soon a repeated word stops adding."""
B = 0.75
"""How much a long field is discounted."""
FIELDS = ("name", "module", "signature", "docstring")
BLOCK = 256
"""Queries scored against every document at a time."""


def fields_of(document: Document, *, whole: bool = False) -> dict[str, list[str]]:
    """Return the words of each field; the first sentences of the docstring and of the module only where `whole`.

    >>> fields_of(Document("csv", "DictWriter.writerow", "method", ("rowdict",), "It is a dict.", "Write a row."))
    {'name': ['dict', 'writer', 'writerow'], 'module': ['csv'], 'signature': ['rowdict'],
     'docstring': ['it', 'is', 'a', 'dict']}
    """
    return {
        "name": words(document.path),
        "module": words(f"{document.module} {document.about}" if whole else document.module),
        "signature": words(" ".join(document.arguments)),
        "docstring": words(f"{document.summary} {document.text}" if whole else document.text),
    }


@dataclass(frozen=True, eq=False)
class Index:
    """Documents with their words; rows of every matrix are documents, columns are words."""

    documents: tuple[Document, ...]
    vocabulary: dict[str, int]
    idf: Floats
    """ln(1 + (N − n + ½) / (n + ½)) of each word, n the number of documents that have it in any field."""
    counts: dict[str, Any]
    """By field: how often a document has a word (CSR)."""
    bm25: dict[str, Any]
    """By field, and `"all"` for the fields together: the BM25 weight of a word in a document (CSR)."""

    @classmethod
    def of(cls, documents: Sequence[Document], *, whole: bool = False) -> Index:
        """Index the documents: `whole` to answer questions, without the sentences that are queries to be judged by."""
        texts = [fields_of(document, whole=whole) for document in documents]
        every = sorted(set(chain.from_iterable(chain.from_iterable(text.values()) for text in texts)))
        vocabulary = {word: number for number, word in enumerate(every)}
        counts = {field: count([text[field] for text in texts], vocabulary) for field in FIELDS}
        return cls.of_counts(documents, vocabulary, counts)

    @classmethod
    def of_counts(cls, documents: Sequence[Document], vocabulary: dict[str, int], counts: dict[str, Any]) -> Index:
        """Weigh words that have been counted, field by field."""
        counts = {**counts, "all": sum(counts[field] for field in FIELDS[1:]) + counts[FIELDS[0]]}
        present = np.bincount(counts["all"].indices, minlength=len(vocabulary))
        idf = np.log1p((len(documents) - present + 0.5) / (present + 0.5))
        bm25 = {field: bm25_weights(matrix, idf) for field, matrix in counts.items()}
        return cls(tuple(documents), vocabulary, idf, counts, bm25)

    def queries(self, texts: Sequence[str]) -> Any:
        """Return one row per query, 1 for each of its words that any document has."""
        matrix = count([words(text) for text in texts], self.vocabulary)
        matrix.data[:] = 1
        return matrix

    def candidates(self, queries: Any, k: int) -> Iterator[tuple[Ints, Floats]]:
        """Yield the (at most) k documents with the largest BM25 above 0 of each query, best first, and their scores.

        Documents that score the same come in the order of the index.
        """
        transposed = self.bm25["all"].T.tocsr()
        for start in range(0, queries.shape[0], BLOCK):
            for row in (queries[start : start + BLOCK] @ transposed).toarray():
                best = np.flatnonzero(row > 0)
                if len(best) > k:
                    best = best[row[best] >= np.partition(row[best], -k)[-k]]
                best = best[np.argsort(-row[best], kind="stable")][:k]
                yield best, row[best]


def bm25_weights(counts: Any, idf: Floats) -> Any:
    """idf · tf (k₁ + 1) / (tf + k₁ (1 − b + b · length / mean length)): the weight of each word in each document."""
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-12))
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    weights = counts.copy()
    weights.data = idf[counts.indices] * counts.data * (K1 + 1) / (counts.data + norm[rows])
    return weights


def count(texts: Sequence[Sequence[str]], vocabulary: dict[str, int]) -> Any:
    """Return how often each text has each word of the vocabulary (CSR, sorted); other words are left out."""
    from scipy.sparse import csr_array

    known = [[vocabulary[word] for word in text if word in vocabulary] for text in texts]
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in known])))
    indices = np.fromiter(chain.from_iterable(known), dtype=np.int64, count=int(indptr[-1]))
    matrix = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(texts), len(vocabulary)))
    matrix.sum_duplicates()
    return matrix
