"""Weights of a learned fusion, written for what engines have: sums of scores that were taken to 0 … 1 in each query.

OpenSearch's hybrid query with its normalization processor, Elasticsearch's `linear` retriever, Vespa's global phase
with `normalize_linear`, and SQL over a table with one column of scores for each run.
"""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

import numpy as np

from ..data import validation
from ..errors import InputError
from ..export.targets import IDENTIFIER, to_json
from .learned_fusion import LearnedFusion

Engine = Literal["opensearch", "elasticsearch", "vespa", "sql"]


def fusion_for(fusion: LearnedFusion, engine: Engine, *, name: str = "learned_fusion", window: int = 100) -> str:
    """Return what makes an engine add the scores of its searches with the learned weights.

    Only sums of scores between 0 and 1 have a place there: learn with `features=("score",), scale="minmax"` and a
    linear ranker. OpenSearch and Elasticsearch take no weight below 0. `window` is how many hits of each search are
    scaled; it should be the depth of the runs that were learned from, since the lowest hit is 0.

    >>> from toprank.contests.learned_fusion import learn_fusion
    >>> runs = {"bm25": {"q": {"a": 2.0, "b": 1.0}}, "dense": {"q": {"b": 3.0, "c": 2.0}}}
    >>> fusion = learn_fusion(runs, {"q": {"b": 1}}, features=("score",), scale="minmax", folds=None)
    >>> "PARTITION BY query" in fusion_for(fusion, "sql")
    True
    """
    validation.check_choice(get_args(Engine), engine=engine)
    validation.check_count(window=window)
    weights = _weights(fusion)
    if engine in ("opensearch", "elasticsearch"):
        for run, weight in weights.items():
            if weight < 0:
                raise InputError(
                    f"the weight of {run} is {weight:.3g}, and {engine} takes none below 0: learn without that run"
                )
    if not any(weights.values()):
        raise InputError("all weights are 0: the runs say nothing about the grades")
    write: Any = {"opensearch": _opensearch, "elasticsearch": _elasticsearch, "vespa": _vespa, "sql": _sql}[engine]
    return str(write(weights, name, window))


def _weights(fusion: LearnedFusion) -> dict[str, float]:
    """Return the weight of each run, the sizes adding up to 1: no ranking changes."""
    found = fusion.weights
    if found is None:
        raise InputError(f"{type(fusion.ranker).__name__} has no weights: engines take those of a linear ranker")
    if fusion.features.kinds != ("score",) or fusion.features.scale != "minmax":
        raise InputError(
            "engines add scores between 0 and 1 and nothing else: learn with features=('score',), scale='minmax' "
            "(--features score --scale minmax)"
        )
    size = sum(map(abs, found.values())) or 1.0
    return {run: found[f"{run} score"] / size for run in fusion.features.runs}


def _opensearch(weights: dict[str, float], name: str, window: int) -> str:
    rounded = [round(weight, 6) for weight in weights.values()]
    largest = int(np.argmax(rounded))
    rounded[largest] = round(rounded[largest] + 1 - sum(rounded), 6)  # the processor wants a sum of 1
    combination = {"technique": "arithmetic_mean", "parameters": {"weights": rounded}}
    processor = {"normalization": {"technique": "min_max"}, "combination": combination}
    pipeline = {
        "description": f"{name}: written by toprank, weights of {', '.join(weights)}",
        "phase_results_processors": [{"normalization-processor": processor}],
    }
    queries = [{"match": {"FIELD": f"the search of {run}"}} for run in weights]
    search = {"query": {"hybrid": {"pagination_depth": window, "queries": queries}}}
    requests = [
        {"method": "PUT", "path": f"_search/pipeline/{name}", "body": pipeline},
        {"method": "POST", "path": f"INDEX/_search?search_pipeline={name}", "body": search},
    ]
    return to_json({"requests": requests}).decode()


def _elasticsearch(weights: dict[str, float], name: str, window: int) -> str:
    retrievers = [
        {
            "retriever": {"standard": {"query": {"match": {"FIELD": f"the search of {run}"}}}},
            "weight": weight,
            "normalizer": "minmax",
        }
        for run, weight in weights.items()
    ]
    return to_json({"retriever": {"linear": {"retrievers": retrievers, "rank_window_size": window}}}).decode()


def _vespa(weights: dict[str, float], name: str, window: int) -> str:
    label = name if IDENTIFIER.fullmatch(name) else re.sub(r"\W", "_", f"f_{name}")
    scores = {run: f"score_{number}" for number, run in enumerate(weights, start=1)}
    lines = [f"rank-profile {label} {{"]
    for run, score in scores.items():
        lines += [f"    function {score}() {{ # the score of {run}", "        expression: YOUR_EXPRESSION", "    }"]
    terms = [f"{weights[run]!r} * normalize_linear({score})" for run, score in scores.items()]
    lines += [
        "    global-phase {",
        f"        rerank-count: {window}",
        "        expression {",
        *(f"            {'+ ' if place else ''}{term}" for place, term in enumerate(terms)),
        "        }",
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _sql(weights: dict[str, float], name: str, window: int) -> str:
    terms = []
    for run, weight in weights.items():
        column = '"' + run.replace('"', '""') + '"'
        low, high = (f"{end}({column}) OVER (PARTITION BY query)" for end in ("MIN", "MAX"))
        terms.append(f"{weight!r} * COALESCE(({column} - {low}) / NULLIF({high} - {low}, 0), 0)")
    score = "\n     + ".join(terms)
    return (
        f"-- {name}: written by toprank. One row for each query and document, a column of scores for each run,\n"
        f"-- NULL where the run did not retrieve the document.\nSELECT query, id,\n       {score} AS score\n"
        "FROM documents\nORDER BY query, score DESC, id;\n"
    )
