"""The learning-to-rank plugins of Elasticsearch and OpenSearch: `model/linear`, weights by feature name.

The file is the body of POST _ltr/_featureset/SET/_createmodel. Models cannot be changed there, so their names carry a
version. There is no constant, weights and sums are float32, and a feature that does not match counts 0 before its
normaliser is applied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from ..errors import InputError
from . import lucene
from .replicas import Replica
from .scorers import Linear
from .targets import NAME, Artifact, Settings, Target, check_names, model_name, to_json

TYPE = "model/linear"


class _Standard(msgspec.Struct, forbid_unknown_fields=True):
    mean: float = 0.0
    standard_deviation: float = 1.0


class _MinMax(msgspec.Struct, forbid_unknown_fields=True):
    minimum: float
    maximum: float


class _Normalizer(msgspec.Struct, forbid_unknown_fields=True):
    standard: _Standard | None = None
    min_max: _MinMax | None = None

    def scaler(self) -> tuple[float, float]:
        """Return centre and scale."""
        if self.standard is not None:
            return self.standard.mean, self.standard.standard_deviation
        if self.min_max is not None:  # the engine subtracts in float32
            low, high = np.float32(self.min_max.minimum), np.float32(self.min_max.maximum)
            return float(low), float(high - low)
        return 0.0, 1.0


class _Definition(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    definition: dict[str, float] | str
    feature_normalizers: dict[str, _Normalizer] = {}


class _Model(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    model: _Definition


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model


@dataclass(frozen=True)
class LtrPlugin(Target):
    """One of the two plugins: the same requests and the same arithmetic."""

    name: str
    engine: str
    family: ClassVar[str] = "elasticsearch/opensearch"
    settings: ClassVar[frozenset[str]] = frozenset({"store", "shift", "normalizers"})

    def encode(self, scorer: Linear, settings: Settings) -> Artifact:
        """Return the body of a _createmodel request."""
        check_names(scorer.names, self.name)
        name, form = model_name(scorer, settings), lucene.normal_form(scorer, settings)
        feature_set = settings.store or "FEATURE_SET"
        if not NAME.fullmatch(feature_set):
            raise InputError(f"{feature_set!r} is not the name of a feature set: use letters, digits, _, . and -")
        definition: dict[str, Any] = {
            "type": TYPE,
            "definition": dict(zip(scorer.names, form.weights.tolist(), strict=True)),
        }
        if form.moved:
            definition["feature_normalizers"] = {
                scorer.names[j]: {
                    "standard": {"mean": float(form.center[j]), "standard_deviation": float(form.scale[j])}
                }
                for j in form.moved
            }
        notes = (
            f"create it with POST _ltr/_featureset/{feature_set}/_createmodel; the feature set must have all "
            f"{len(scorer.names)} features by these names",
            f"a model cannot be changed in {self.engine}: its name {name} carries the version",
            *form.notes,
            *lucene.missing_notes(scorer, f"{self.engine} takes 0 for a feature that does not match"),
            *lucene.negative_notes(scorer, settings),
        )
        # The plugin's parser refuses what it does not know, so what a reader must know stands in a file beside it.
        rescore = rescore_request(name)
        about = {"name": name, "missing": scorer.missing, "notes": list(notes), "rescore": rescore}
        return Artifact(
            to_json({"model": {"name": name, "model": definition}}),
            name,
            notes,
            {".notes.json": to_json(about)},
            rescore,
        )

    def recognizes(self, content: bytes) -> bool:
        """Look for the type of the model."""
        return re.search(rb'"type"\s*:\s*"model/', content) is not None

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the model as the plugin scores with it."""
        try:
            body = msgspec.json.decode(content, type=_Body).model.model
            weights = body.definition
            if isinstance(weights, str):  # the plugin takes the definition as text too
                weights = msgspec.json.decode(weights, type=dict[str, float])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{place} is not a model for {self.engine}: {error}") from None
        if body.type != TYPE:
            raise InputError(f"{place} holds a {body.type!r}; {TYPE!r} is what can be verified here")
        unknown = next((name for name in body.feature_normalizers if name not in weights), None)
        if unknown is not None:
            raise InputError(f"{place} normalises {unknown!r}, a feature without a weight")
        names = tuple(weights)
        scalers = [body.feature_normalizers.get(name, _Normalizer()).scaler() for name in names]
        columns = np.array(list(weights.values())), np.array([c for c, _ in scalers]), np.array([s for _, s in scalers])
        try:
            return lucene.replica(names, columns, np.zeros(len(names)))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None


def rescore_request(name: str) -> dict[str, Any]:
    """Return a search that orders the first hits by the model alone."""
    return {
        "query": {"match": {"FIELD": "WORDS"}},
        "rescore": {
            "window_size": 100,
            "query": {
                "rescore_query": {"sltr": {"model": name, "params": {"keywords": "WORDS"}}},
                "query_weight": 0,
                "rescore_query_weight": 1,
            },
        },
    }
