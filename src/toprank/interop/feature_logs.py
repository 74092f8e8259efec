"""The way in from a search engine: features as the engine logs them, read into a data set.

Elasticsearch and OpenSearch answer a search that logs features with `fields._ltrlog` on each hit; Solr answers with
`[features]`, text like `title=9.5,age=3.0`. A feature that does not match has no value there.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ..data.dataset import QueryDataset
from ..data.trec import Qrels, read_qrels
from ..data.validation import Missing, check_choice
from ..errors import InputError

VECTOR = "[features]"


def read_ltr_logs(
    answers: str | os.PathLike[str] | Mapping[Any, Any],
    judgments: str | os.PathLike[str] | Mapping[Any, Any] | Qrels | None = None,
    *,
    missing: Missing = "error",
    id_field: str = "id",
) -> QueryDataset:
    """Return logged features as a data set with document ids and feature names.

    `answers` are the engine's answers by query: a dictionary {query: answer}, or a file with one JSON object per line,
    {"query": ..., "answer": ...}. `judgments` are TREC qrels (a file, `Qrels`, or {query: {document: grade}});
    documents without a judgement get grade 0, and without any judgments all do. A feature that does not match is a
    missing cell: refused by name, 0 with `missing="zero"`, or left (NaN) to the model with `missing="keep"`. `id_field`
    is Solr's field of document ids.

    >>> def hit(id, *values):
    ...     return {"_id": id, "fields": {"_ltrlog": [{"log": [{"name": n, "value": v} for n, v in values]}]}}
    >>> answer = {"hits": {"hits": [hit("d7", ("bm25", 9.5), ("age", 3.0)), hit("d2", ("bm25", 1.5), ("age", 8.0))]}}
    >>> data = read_ltr_logs({"q1": answer}, {"q1": {"d7": 2}})
    >>> data.feature_names, data.X.tolist(), data.y.tolist(), data.doc_ids.tolist()
    (('bm25', 'age'), [[9.5, 3.0], [1.5, 8.0]], [2.0, 0.0], ['d7', 'd2'])
    """
    check_choice(get_args(Missing), missing=missing)
    grades = _grades(judgments)
    names: dict[str, int] = {}
    rows: list[dict[int, float]] = []
    keys: list[tuple[str, str]] = []
    for query, answer, place in _answers(answers):
        for doc_id, values in logged_documents(answer, place, id_field):
            rows.append({names.setdefault(name, len(names)): value for name, value in values.items()})
            keys.append((query, doc_id))
    if not names:
        raise InputError("there are no logged features in the answers: ask for them in the search (toprank features)")
    if len(set(keys)) < len(keys):
        query, doc_id = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise InputError(f"document {doc_id} is logged twice for query {query}: keep one answer for each query")
    X = np.full((len(rows), len(names)), np.nan)
    for i, row in enumerate(rows):
        X[i, list(row)] = list(row.values())
    gaps = np.isnan(X)
    if gaps.any() and missing == "error":
        first, column = (int(place[0]) for place in np.nonzero(gaps))
        query, doc_id = keys[first]
        raise InputError(
            f"feature {list(names)[column]!r} does not match document {doc_id} of query {query}: say missing='zero' "
            "(--missing zero) if such features are 0 where the model will run, or what else stands in (--missing "
            "median or indicator)"
        )
    labels = [grades.get(query, {}).get(doc_id, 0.0) for query, doc_id in keys]
    return QueryDataset.from_arrays(
        np.nan_to_num(X) if missing == "zero" else X,
        labels,
        [query for query, _ in keys],
        feature_names=list(names),
        doc_ids=[doc_id for _, doc_id in keys],
        missing="keep" if missing == "keep" else "error",
    )


def _grades(judgments: Any) -> dict[str, dict[str, float]]:
    if judgments is None:
        return {}
    if isinstance(judgments, (str, os.PathLike)):
        judgments = read_qrels(judgments)
    if isinstance(judgments, Qrels):
        found: dict[str, dict[str, float]] = {}
        for query, document, grade in zip(judgments.qid, judgments.doc_ids, judgments.grades, strict=True):
            if grade >= 0:  # below: not judged
                found.setdefault(str(query), {})[str(document)] = float(grade)
        return found
    if isinstance(judgments, Mapping) and all(isinstance(inner, Mapping) for inner in judgments.values()):
        return {str(q): {str(d): float(grade) for d, grade in inner.items()} for q, inner in judgments.items()}
    raise InputError("judgments are a file of qrels, Qrels, or a dictionary {query: {document: grade}}")


def _answers(source: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield query, answer, and where it stands, for messages."""
    if isinstance(source, Mapping):
        for query, answer in source.items():
            yield str(query), answer, f"the answer of query {query}"
        return
    file = Path(source)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text: {error}") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            entry = json.loads(line, parse_float=str)  # an id that looks like a number stays as it is written
        except (json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"{place}: not JSON: {error}") from None
        if not isinstance(entry, dict) or not {"query", "answer"} <= set(entry):
            raise InputError(f'{place}: not {{"query": …, "answer": …}}')
        yield str(entry["query"]), entry["answer"], place


def logged_documents(answer: Any, place: str, id_field: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield document ids with their features by name, NaN where one does not match."""
    try:
        if "hits" in answer:
            for hit in answer["hits"]["hits"]:
                yield str(hit["_id"]), _logged(hit)
        else:
            for document in answer["response"]["docs"]:
                yield str(document[id_field]), _vector(document[VECTOR])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        lacks = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{place}: not an answer with logged features: {lacks}") from None


def _logged(hit: Any) -> dict[str, float]:
    """Return the features of all logs of a hit: [{log: [{name, value}, …]}, …]."""
    values = {}
    for entry in hit["fields"]["_ltrlog"]:
        for features in entry.values():
            for feature in features:
                values[str(feature["name"])] = _finite(feature["value"]) if "value" in feature else math.nan
    return values


def _vector(text: str) -> dict[str, float]:
    """Return Solr's feature vector: name=value pairs in either order of its formats, dense or sparse."""
    pairs = [pair.rpartition("=") for pair in text.split(",") if pair]
    if any(not sign for _, sign, _ in pairs):
        raise ValueError(f"{text[:60]!r} has no name=value pairs")
    return {name: _finite(value) for name, _, value in pairs}


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a finite number")
    return number
