"""Features of a search engine from a small table: the body that defines them, and the search that logs them.

A table has a row for each feature: its name, its kind and the field it looks at. `match` is the score of the words in a
text field, `phrase` that of the words as a phrase, `field` the number in a field, `first_pass` the score that the
search itself gave a document (Solr alone, whose features see it).
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ..data.validation import check_choice
from ..errors import InputError, naming

Kind = Literal["match", "phrase", "field", "first_pass"]
Engine = Literal["elasticsearch", "opensearch", "solr"]
LOG, NAMED = "log", "logged_features"


@dataclass(frozen=True)
class Feature:
    """One feature of a search engine."""

    name: str
    kind: Kind
    field: str

    def __post_init__(self) -> None:
        if not self.name or not (self.field or self.kind == "first_pass"):
            raise InputError("a feature has a name, a kind and a field")
        if self.kind == "first_pass" and self.field:
            raise InputError(f"feature {self.name!r} is the score of the search itself: leave its field empty")
        if self.kind not in get_args(Kind):
            raise InputError(f"feature {self.name!r} is of kind {self.kind!r}: take {', '.join(get_args(Kind))}")
        if any(sign in self.name for sign in ",=\"'") or any(sign in self.field for sign in "\"'{} "):
            raise InputError(f"feature {self.name!r} or its field {self.field!r} has a sign that no engine takes")


@dataclass(frozen=True)
class FeatureSet:
    """What to send to an engine: requests (method, address, body) in their order, and the search that logs."""

    engine: str
    requests: tuple[tuple[str, str, Any], ...]
    logging: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        named = [{"method": method, "path": path, "body": body} for method, path, body in self.requests]
        return {"engine": self.engine, "requests": named, "logging": self.logging}

    def __str__(self) -> str:
        parts = [f"{method} {path}" + ("" if body is None else f"\n{json.dumps(body, indent=2)}")
                 for method, path, body in self.requests]  # fmt: skip
        return "\n\n".join([*parts, f"and in a search, for every query:\n{json.dumps(self.logging, indent=2)}"])


def read_features(path: str | os.PathLike[str]) -> list[Feature]:
    """Return the features of a CSV table with the columns name, kind and field.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "features.csv")
    >>> _ = file.write_text("name,kind,field\\ntitle_bm25,match,title\\nage,field,age_days\\n")
    >>> [feature.name for feature in read_features(file)]
    ['title_bm25', 'age']
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            table = csv.DictReader(lines)
            lacking = {"name", "kind", "field"} - {(name or "").strip() for name in table.fieldnames or ()}
            if lacking:
                raise InputError(f"{file} lacks the column {sorted(lacking)[0]!r}: it needs name, kind and field")
            rows = [{(key or "").strip(): (value or "").strip() for key, value in row.items() if isinstance(value, str)}
                    for row in table]  # fmt: skip
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} is not a table: {error}") from None
    found = []
    for number, row in enumerate(rows, start=2):
        with naming(f"{file}, line {number}"):
            found.append(Feature(row.get("name", ""), row.get("kind", ""), row.get("field", "")))  # type: ignore[arg-type]
    return found


def feature_set(
    features: Sequence[Feature], engine: Engine, *, name: str = "features", store: str | None = None
) -> FeatureSet:
    """Return the requests that define features in an engine, and the search that logs them.

    >>> made = feature_set([Feature("title_bm25", "match", "title")], "elasticsearch", name="movies")
    >>> [(method, path) for method, path, _ in made.requests]
    [('PUT', '_ltr'), ('POST', '_ltr/_featureset/movies')]
    """
    check_choice(get_args(Engine), engine=engine)
    if not features:
        raise InputError("there is no feature")
    names = [feature.name for feature in features]
    twice = next((each for i, each in enumerate(names) if each in names[:i]), None)
    if twice is not None:
        raise InputError(f"the feature {twice!r} is there twice")
    return _solr(features, store or name) if engine == "solr" else _plugin(features, engine, name, store)


def _plugin(features: Sequence[Feature], engine: str, name: str, store: str | None) -> FeatureSet:
    place = "_ltr" if store is None else f"_ltr/{store}"
    bodies = [
        {
            "name": feature.name,
            "params": [] if feature.kind == "field" else ["keywords"],
            "template_language": "mustache",
            "template": _template(feature),
        }
        for feature in features
    ]
    logging = {**plugin_logging("WORDS", ["DOCUMENT", "…"], name, store), "size": 100}
    requests = (
        ("PUT", place, None),
        ("POST", f"{place}/_featureset/{name}", {"featureset": {"name": name, "features": bodies}}),
    )
    return FeatureSet(engine, requests, logging)


def plugin_logging(words: str, documents: Sequence[str], name: str, store: str | None) -> dict[str, Any]:
    """Return the search that logs the features of these documents."""
    stored = {} if store is None else {"store": store}
    sltr = {"_name": NAMED, "featureset": name, **stored, "params": {"keywords": words}}
    return {
        "size": len(documents),
        "query": {"bool": {"filter": [{"terms": {"_id": list(documents)}}, {"sltr": sltr}]}},
        "ext": {"ltr_log": {"log_specs": {"name": LOG, "named_query": NAMED}}},
    }


def solr_logging(words: str, documents: Sequence[str], store: str, id_field: str = "id") -> dict[str, Any]:
    """Return the parameters of a search that logs the features of these documents.

    Words and ids are parameters of their own, so that none of their signs means anything to a parser.
    """
    return {
        "q": f"{{!terms f={id_field} separator='\u001f' v=$documents}}",
        "documents": "\u001f".join(documents),
        "words": words,
        "rows": len(documents),
        "fl": f"{id_field},[features store={store} format=sparse efi.keywords=$words]",
        "wt": "json",
    }


def _template(feature: Feature) -> dict[str, Any]:
    if feature.kind == "first_pass":
        raise InputError(
            f"feature {feature.name!r}: the plugin's features do not see the score of the search; repeat its query as "
            "features of the kinds match and phrase"
        )
    if feature.kind == "field":  # a document without the field does not match
        return {
            "function_score": {
                "query": {"exists": {"field": feature.field}},
                "field_value_factor": {"field": feature.field},
                "boost_mode": "replace",
            }
        }
    return {"match" if feature.kind == "match" else "match_phrase": {feature.field: "{{keywords}}"}}


def _solr(features: Sequence[Feature], store: str) -> FeatureSet:
    parsers = {"match": "{{!dismax qf={field}}}${{keywords}}", "phrase": "{{!field f={field}}}${{keywords}}"}
    body = []
    for feature in features:
        if feature.kind == "field":
            kind, params = "FieldValueFeature", {"field": feature.field}
        elif feature.kind == "first_pass":
            kind, params = "OriginalScoreFeature", {}
        else:
            kind, params = "SolrFeature", {"q": parsers[feature.kind].format(field=feature.field)}
        body.append(
            {"store": store, "name": feature.name, "class": f"org.apache.solr.ltr.feature.{kind}", "params": params}
        )
    logging = {
        "params": {
            "q": "id:(DOCUMENT …)",
            "rows": 100,
            "fl": f"id,[features store={store} format=sparse efi.keywords='WORDS']",
        }
    }
    return FeatureSet("solr", (("PUT", "schema/feature-store", body),), logging)
