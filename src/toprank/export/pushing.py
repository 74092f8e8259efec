"""A model put into a running engine: feature set, upload, and its live scores beside those of the exported file.

What is there already and the same is left as it is; what is there and differs is an error, since engines do not change
models. A dry run sends nothing that changes anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats
from ..errors import InputError
from ..interop.engine_http import EngineClient
from ..interop.feature_logs import logged_documents
from ..interop.feature_sets import Engine, Feature, feature_set, plugin_logging, solr_logging
from .elasticsearch import rescore_request
from .folding import fold
from .solr import FEATURES
from .targets import Artifact, Settings
from .writing import render, target_of

LIVE_DOCUMENTS = 200
"""Documents whose live scores are compared."""


@dataclass(frozen=True)
class Push:
    """What was done in the engine, step by step, and what its scores say; `str` is for reading."""

    engine: str
    model: str
    steps: tuple[str, ...]
    search: Mapping[str, Any]
    """The search that uses the model."""
    compared: int = 0
    """Documents whose live scores were compared."""
    different: int = 0
    """Documents whose live score is not the number that the file gives for the features that the engine logs."""

    @property
    def agrees(self) -> bool | None:
        """Whether every live score is the file's, float32 to the bit; None where none was compared."""
        return None if not self.compared else not self.different

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {**vars(self), "steps": list(self.steps), "agrees": self.agrees}

    def __str__(self) -> str:
        said = "not verified: name the index and some words (--index, --words) to compare live scores"
        if self.compared:
            said = f"the live scores of {self.compared} documents are the file's, to the last bit of float32"
            if self.different:
                said = f"THE LIVE SCORES DIFFER: {self.different} of {self.compared} documents have another score"
        return "\n".join([*self.steps, said, "search with", json.dumps(self.search, indent=2, ensure_ascii=False)])


def push(
    model: Any,
    client: EngineClient,
    engine: Engine,
    *,
    settings: Settings | None = None,
    features: Sequence[Feature] | None = None,
    index: str | None = None,
    words: Sequence[str] = (),
    id_field: str = "id",
    dry_run: bool = False,
) -> Push:
    """Create or check the feature set, upload the model, and compare live scores with the file's.

    Parameters
    ----------
    model : what `fold` takes.
    client : the engine's address; for Solr it ends in the core or collection.
    settings : what `write` takes; `feature_set` (Solr: `store`) says where the features are.
    features : what the feature set is made of where it is not there yet, and checked against where it is.
    index : Elasticsearch, OpenSearch: where documents are searched. Solr: leave it out.
    words : searches whose first hits are scored and compared.
    dry_run : look, and send nothing that changes anything.
    """
    given = settings or Settings()
    here = given.feature_set if engine != "solr" else given.store
    if here is None:
        raise InputError("name the feature set: --feature-set NAME (Solr: --store NAME)")
    known = fold(model)
    export, artifact = render(known, engine, settings=given)
    sides: _Solr | _Plugin = (
        _Solr(client, here, id_field) if engine == "solr" else _Plugin(client, engine, here, given.store)
    )
    steps = [sides.ensure_features(features, known.names, artifact, dry_run)]
    steps.append(sides.ensure_model(artifact, dry_run))
    compared = different = 0
    where = "" if engine == "solr" else index
    if not dry_run and words and where is not None:
        replica = target_of(engine).read(artifact.content, "the model", artifact.companions)
        for text in words:
            theirs, X, names = sides.live(where, text, artifact.name)
            wanted = list(replica.names or names)
            lacking = next((name for name in wanted if name not in names), None)
            if lacking is not None:
                raise InputError(f"the engine logs no feature {lacking!r}: is it in the feature set?")
            mine = replica.score_rows(np.ascontiguousarray(X[:, [names.index(name) for name in wanted]]))
            compared += len(theirs)
            different += int((mine.astype(np.float32) != theirs.astype(np.float32)).sum())
    search = rescore_request(artifact.name, given.store) if engine != "solr" else dict(export.rescore or {})
    return Push(engine, artifact.name, tuple(steps), search, compared, different)


class _Plugin:
    """The learning-to-rank plugins of Elasticsearch and OpenSearch."""

    def __init__(self, client: EngineClient, engine: Engine, name: str, store: str | None) -> None:
        self.client, self.engine, self.name, self.store = client, engine, name, store
        self.place = "_ltr" if store is None else f"_ltr/{store}"

    def ensure_features(
        self, features: Sequence[Feature] | None, names: Sequence[str], artifact: Artifact, dry_run: bool
    ) -> str:
        path = f"{self.place}/_featureset/{self.name}"
        found = self.client.ask("GET", path)
        if found is None:
            if features is None:
                raise InputError(f"the engine has no feature set {self.name!r}: say what is in it (--table TABLE)")
            made = feature_set(features, self.engine, name=self.name, store=self.store)
            _check_has([each.name for each in features], names)
            if dry_run:
                return f"would create the feature set {self.name} with {len(features)} features"
            if self.client.ask("GET", self.place) is None:
                self.client.must("PUT", self.place)
            method, where, body = made.requests[1]
            self.client.must(method, where, body)
            return f"created the feature set {self.name} with {len(features)} features"
        stored = found["_source"]["featureset"]["features"]
        _check_has([each["name"] for each in stored], names)
        if features is not None:
            body = feature_set(features, self.engine, name=self.name).requests[1][2]
            wanted = {each["name"]: _template(each["template"]) for each in body["featureset"]["features"]}
            _check_same({each["name"]: _template(each["template"]) for each in stored}, wanted, self.name)
        return f"the feature set {self.name} is there with the {len(names)} features of the model"

    def ensure_model(self, artifact: Artifact, dry_run: bool) -> str:
        body = json.loads(artifact.content)
        found = self.client.ask("GET", f"{self.place}/_model/{artifact.name}")
        if found is not None:
            there, mine = found["_source"]["model"]["model"], body["model"]["model"]
            same = there["type"] == mine["type"] and _definition(there) == _definition(mine)
            same &= (there.get("feature_normalizers") or {}) == mine.get("feature_normalizers", {})
            return _already(artifact.name, same)
        if dry_run:
            return f"would upload the model {artifact.name}"
        self.client.must("POST", f"{self.place}/_featureset/{self.name}/_createmodel", body)
        return f"uploaded the model {artifact.name}"

    def live(self, index: str, words: str, model: str) -> tuple[Floats, Floats, list[str]]:
        stored = {} if self.store is None else {"store": self.store}
        first = self.client.must("POST", f"{index}/_search", {"size": LIVE_DOCUMENTS, "query": {"match_all": {}}})
        documents = [str(hit["_id"]) for hit in first["hits"]["hits"]]
        if not documents:
            raise InputError(f"the index {index} has no documents: there is nothing to compare")
        logging = plugin_logging(words, documents, self.name, self.store)
        answer = self.client.must("POST", f"{index}/_search", logging)
        sltr = {"sltr": {"model": model, **stored, "params": {"keywords": words}}}
        query = {"bool": {"filter": [{"terms": {"_id": documents}}], "should": [sltr]}}
        scored = self.client.must("POST", f"{index}/_search", {"size": len(documents), "query": query})
        return _matched(answer, {str(hit["_id"]): hit["_score"] for hit in scored["hits"]["hits"]}, "id")


class _Solr:
    """Solr's learning-to-rank module; the client's address ends in the core or collection."""

    def __init__(self, client: EngineClient, store: str, id_field: str) -> None:
        self.client, self.store, self.id_field = client, store, id_field

    def ensure_features(
        self, features: Sequence[Feature] | None, names: Sequence[str], artifact: Artifact, dry_run: bool
    ) -> str:
        path = f"schema/feature-store/{self.store}"
        answer = self.client.ask("GET", path)
        found = {} if answer is None else {each["name"]: _solr_feature(each) for each in answer.get("features", [])}
        body = (
            json.loads(artifact.companions[FEATURES])
            if features is None
            else feature_set(features, "solr", name=self.store).requests[0][2]
        )
        wanted = {each["name"]: _solr_feature(each) for each in body}
        needed = [each["name"] for each in json.loads(artifact.content)["features"]]
        if found:
            _check_has(list(found), needed)
            if features is not None:
                _check_same(found, wanted, self.store)
            return f"the feature store {self.store} is there with the {len(needed)} features of the model"
        _check_has(list(wanted), needed)
        if dry_run:
            return f"would create the feature store {self.store} with {len(wanted)} features"
        self.client.must("PUT", "schema/feature-store", body)
        return f"created the feature store {self.store} with {len(wanted)} features"

    def ensure_model(self, artifact: Artifact, dry_run: bool) -> str:
        body = json.loads(artifact.content)
        models = self.client.must("GET", "schema/model-store").get("models", [])
        there = next((each for each in models if each["name"] == artifact.name), None)
        if there is not None:
            same = (there["class"], there["params"]) == (body["class"], body["params"])
            return _already(artifact.name, same and there.get("store", "_DEFAULT_") == body.get("store", "_DEFAULT_"))
        if dry_run:
            return f"would upload the model {artifact.name}"
        self.client.must("PUT", "schema/model-store", body)
        return f"uploaded the model {artifact.name}"

    def live(self, index: str, words: str, model: str) -> tuple[Floats, Floats, list[str]]:
        first = self.client.must("POST", "select", parameters={
            "q": "*:*", "rows": LIVE_DOCUMENTS, "fl": self.id_field, "wt": "json",
        })["response"]["docs"]  # fmt: skip
        documents = [str(document[self.id_field]) for document in first]
        if not documents:
            raise InputError("the core has no documents: there is nothing to compare")
        logging = solr_logging(words, documents, self.store, self.id_field)
        answer = self.client.must("POST", "select", parameters={
            **logging, "fl": logging["fl"].replace("format=sparse", "format=dense"),
        })  # fmt: skip
        rescore = f"{{!ltr model={model} reRankDocs={len(documents)} efi.keywords=$words}}"
        scored = self.client.must(
            "POST", "select", parameters={**logging, "rq": rescore, "fl": f"{self.id_field},score"}
        )["response"]["docs"]
        return _matched(answer, {str(hit[self.id_field]): hit["score"] for hit in scored}, self.id_field)


def _matched(answer: dict[str, Any], scores: dict[str, float], id_field: str) -> tuple[Floats, Floats, list[str]]:
    """Return live scores beside the logged features of the same documents."""
    rows = dict(logged_documents(answer, "the engine's answer", id_field))
    lacking = next((document for document in rows if document not in scores), None)
    if lacking is not None:
        raise InputError(f"the engine gave no score to document {lacking}")
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    X = np.array([[row.get(name, np.nan) for name in names] for row in rows.values()], dtype=np.float64)
    return np.array([scores[document] for document in rows], dtype=np.float64), X, names


def _already(name: str, same: bool) -> str:
    if not same:
        raise InputError(
            f"the engine has another model by the name {name!r}, and models cannot be changed there: give this one "
            "another --version"
        )
    return f"the model {name} is there already, and is this one"


def _check_has(there: Sequence[str], needed: Sequence[str]) -> None:
    lacking = next((name for name in needed if name not in there), None)
    if lacking is not None:
        raise InputError(f"the feature set has no feature {lacking!r}, which the model needs")


def _check_same(there: Mapping[str, Any], wanted: Mapping[str, Any], name: str) -> None:
    differs = next((key for key in wanted if there.get(key) != wanted[key]), None)
    if differs is not None:
        raise InputError(f"the feature {differs!r} of {name!r} is another in the engine: take another name for the set")


def _template(template: Any) -> Any:
    """Return a template as a value: engines hand it back as text."""
    return json.loads(template) if isinstance(template, str) else template


def _definition(model: Mapping[str, Any]) -> Any:
    definition = model["definition"]
    return json.loads(definition) if isinstance(definition, str) else definition


def _solr_feature(feature: Mapping[str, Any]) -> tuple[Any, Any]:
    return feature["class"], feature.get("params") or {}
