"""Solr's `org.apache.solr.ltr.model.LinearModel`: weights are numbers, parameters of normalisers are text.

The file is the body of PUT .../schema/model-store. Beside it stands a feature store (`.features.json`, for PUT
.../schema/feature-store) with every feature as a field of its name, to be adapted. All is float32; a feature without a
value has its `defaultValue`, which is how the missing-value policy is carried over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np

from ..errors import InputError
from . import lucene
from .replicas import Replica
from .scorers import Linear
from .targets import Artifact, Settings, Target, check_names, model_name, to_json

CLASS = "org.apache.solr.ltr.model.LinearModel"
STANDARD = "org.apache.solr.ltr.norm.StandardNormalizer"
MIN_MAX = "org.apache.solr.ltr.norm.MinMaxNormalizer"
IDENTITY = "org.apache.solr.ltr.norm.IdentityNormalizer"
FIELD = "org.apache.solr.ltr.feature.FieldValueFeature"
FEATURES = ".features.json"


class _Norm(msgspec.Struct, forbid_unknown_fields=True):
    kind: str = msgspec.field(name="class")
    params: dict[str, str] = {}

    def scaler(self) -> tuple[float, float]:
        """Return centre and scale."""
        if self.kind == IDENTITY:
            return 0.0, 1.0
        if self.kind == STANDARD:
            return float(self.params.get("avg", "0")), float(self.params.get("std", "1"))
        if self.kind == MIN_MAX:
            low, high = np.float32(self.params["min"]), np.float32(self.params["max"])
            return float(low), float(high - low)
        raise ValueError(f"unknown normaliser {self.kind!r}")


class _Feature(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    norm: _Norm | None = None


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    weights: dict[str, float]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    kind: str = msgspec.field(name="class")
    name: str
    features: list[_Feature]
    params: _Params
    store: str = "_DEFAULT_"


class _Stored(msgspec.Struct):
    name: str
    params: dict[str, Any] = {}


class Solr(Target):
    """Solr's learning-to-rank module."""

    name = "solr"
    settings: ClassVar[frozenset[str]] = frozenset({"store", "shift", "normalizers"})
    beside: ClassVar[tuple[str, ...]] = (FEATURES,)

    def encode(self, scorer: Linear, settings: Settings) -> Artifact:
        """Return the model, and a store of its features beside it."""
        check_names(scorer.names, self.name, bad=',="')
        name, form = model_name(scorer, settings), lucene.normal_form(scorer, settings)
        store = {} if settings.store is None else {"store": settings.store}
        features: list[dict[str, Any]] = [{"name": feature} for feature in scorer.names]
        for j in form.moved:
            params = {"avg": repr(float(form.center[j])), "std": repr(float(form.scale[j]))}
            features[j]["norm"] = {"class": STANDARD, "params": params}
        weights = dict(zip(scorer.names, form.weights.tolist(), strict=True))
        model = {**store, "class": CLASS, "name": name, "features": features, "params": {"weights": weights}}
        stored = [
            {**store, "name": feature, "class": FIELD, "params": {"field": feature, **_default(scorer, j)}}
            for j, feature in enumerate(scorer.names)
        ]
        notes = (
            "PUT the features to schema/feature-store first, then the model to schema/model-store",
            f"in *{FEATURES} every feature is a field of its name: replace those that are computed otherwise",
            *form.notes,
            self._missing(scorer),
        )
        rescore = {"params": {"rq": f"{{!ltr model={name} reRankDocs=100}}", "fl": "id,score"}}
        return Artifact(to_json(model), name, notes, {FEATURES: to_json(stored)}, rescore)

    def _missing(self, scorer: Linear) -> str:
        if scorer.fill is None:
            return f"{scorer.missing} by the model, but Solr takes 0: make sure that every feature has a value"
        return f"{scorer.missing}, which the defaultValue of each feature states"

    def recognizes(self, content: bytes) -> bool:
        """Look for the class of the model."""
        return re.search(rb'"class"\s*:\s*"org\.apache\.solr\.ltr\.model', content) is not None

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the model as Solr scores with it, defaults from the feature store beside it."""
        try:
            body = msgspec.json.decode(content, type=_Body)
            stored = msgspec.json.decode(beside.get(FEATURES, b"[]"), type=list[_Stored])
            defaults = {feature.name: float(feature.params.get("defaultValue", 0)) for feature in stored}
            scalers = [(0.0, 1.0) if f.norm is None else f.norm.scaler() for f in body.features]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{place} is not a linear model for Solr: {error}") from None
        if body.kind != CLASS:
            raise InputError(f"{place} holds a {body.kind}; {CLASS} is what can be verified here")
        names = tuple(feature.name for feature in body.features)
        lacking = next((name for name in names if name not in body.params.weights), None)
        if lacking is not None:
            raise InputError(f"{place} lists {lacking!r} without a weight, which Solr refuses")
        weights = np.array([body.params.weights[name] for name in names])
        columns = weights, np.array([c for c, _ in scalers]), np.array([s for _, s in scalers])
        try:
            return lucene.replica(names, columns, np.array([defaults.get(name, 0.0) for name in names]))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None


def _default(scorer: Linear, feature: int) -> dict[str, float]:
    value = scorer.fill_value(feature)
    return {} if value is None else {"defaultValue": value}
