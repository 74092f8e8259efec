"""Features of judged documents, asked of a running engine and read into a data set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..data.dataset import QueryDataset
from ..data.trec import Qrels, read_qrels
from ..data.validation import Missing
from ..errors import InputError
from .engine_http import EngineClient
from .feature_logs import read_ltr_logs
from .feature_sets import Engine, plugin_logging, solr_logging

AT_ONCE = 500
"""Documents that one request asks for."""


def pull_features(
    client: EngineClient,
    engine: Engine,
    index: str,
    queries: Mapping[str, str],
    qrels: str | os.PathLike[str] | Qrels,
    *,
    feature_set: str = "features",
    store: str | None = None,
    id_field: str = "id",
    missing: Missing = "error",
) -> QueryDataset:
    """Return the features of every judged document, as the engine computes them for the words of its query.

    `queries` are {query id: words}; judged documents that the engine does not have are left out, and an error says so
    where none is left. Nothing is changed in the engine, and the same engine gives the same data set.
    """
    judged = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    documents: dict[str, list[str]] = {}
    for query, document, grade in zip(judged.qid, judged.doc_ids, judged.grades, strict=True):
        if grade >= 0:
            documents.setdefault(str(query), []).append(str(document))
    asked = [query for query in queries if query in documents]
    if not asked:
        raise InputError("the queries and the judgements have no query in common: are the ids written the same way?")
    answers = {
        query: logged(client, engine, index, queries[query], documents[query], feature_set, store, id_field)
        for query in asked
    }
    return read_ltr_logs(answers, judged, missing=missing, id_field=id_field)


def logged(
    client: EngineClient,
    engine: Engine,
    index: str,
    words: str,
    documents: list[str],
    feature_set: str,
    store: str | None,
    id_field: str = "id",
) -> dict[str, Any]:
    """Return the engine's answers about these documents, as one."""
    hits: list[Any] = []
    for first in range(0, len(documents), AT_ONCE):
        part = documents[first : first + AT_ONCE]
        if engine == "solr":
            parameters = solr_logging(words, part, store or feature_set, id_field)
            hits += client.must("POST", f"{index}/select", parameters=parameters)["response"]["docs"]
        else:
            body = plugin_logging(words, part, feature_set, store)
            hits += client.must("POST", f"{index}/_search", body)["hits"]["hits"]
    return {"response": {"docs": hits}} if engine == "solr" else {"hits": {"hits": hits}}
