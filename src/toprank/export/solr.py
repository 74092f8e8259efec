"""Solr's `LinearFunction` and `MultipleAdditiveTreesModel` of org.apache.solr.ltr.model.

The file is the body of PUT .../schema/model-store. Beside it stands a feature store (`.features.json`, for PUT
.../schema/feature-store) with every feature as a field of its name, to be adapted. All is float32; a feature without a
value has its `defaultValue`, which is how the missing-value policy is carried over. Weights are numbers, parameters of
normalisers and all numbers of trees are text. A tree goes left where x ≤ threshold + 1e-6, added in float32: the file
has the numbers from which this makes the thresholds that are meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from ..errors import InputError
from ..model import LinearFunction, Model
from . import lucene, model_trees
from .model_trees import ModelSplit, Tree
from .replicas import Replica, next_single
from .targets import Artifact, Settings, Target, check_names, model_name, policy_note, to_json
from .tree_replicas import EngineSplit, TreeReplica, float32_of

CLASS = "org.apache.solr.ltr.model.LinearModel"
TREES = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
SLACK = np.float32(1e-6)
STANDARD = "org.apache.solr.ltr.norm.StandardNormalizer"
MIN_MAX = "org.apache.solr.ltr.norm.MinMaxNormalizer"
IDENTITY = "org.apache.solr.ltr.norm.IdentityNormalizer"
FIELD = "org.apache.solr.ltr.feature.FieldValueFeature"
FEATURES = ".features.json"
LARGE = 1_000_000


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


class _Model(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    kind: str = msgspec.field(name="class")
    name: str
    features: list[_Feature]
    store: str = "_DEFAULT_"


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    weights: dict[str, float]


class _Body(_Model, kw_only=True):
    params: _Params


class _Node(msgspec.Struct, forbid_unknown_fields=True):
    value: str | float = "0"
    feature: str | None = None
    threshold: str | float | None = None
    left: _Node | None = None
    right: _Node | None = None


class _Tree(msgspec.Struct, forbid_unknown_fields=True):
    weight: str | float
    root: _Node


class _Trees(msgspec.Struct, forbid_unknown_fields=True):
    trees: list[_Tree]


class _Forest(_Model, kw_only=True):
    params: _Trees


class _Head(msgspec.Struct):
    kind: str = msgspec.field(name="class")


class _Stored(msgspec.Struct):
    name: str
    params: dict[str, Any] = {}


class Solr(Target):
    """Solr's learning-to-rank module."""

    name = "solr"
    settings = frozenset({"store", "shift", "normalizers"})
    marks = re.compile(rb'"class"\s*:\s*"org\.apache\.solr\.ltr\.model')
    file = "a model for Solr"
    companions = (FEATURES,)

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the model, and a store of its features beside it."""
        check_names(model.names, self.name, bad=',="')
        name = model_name(model, settings)
        store = {} if settings.store is None else {"store": settings.store}
        needed, body, own_notes = (
            _linear(model, settings) if isinstance(model.function, LinearFunction) else _trees(model, settings)
        )
        stored = [
            {
                **store,
                "name": model.names[j],
                "class": FIELD,
                "params": {"field": model.names[j], **({} if value is None else {"defaultValue": value})},
            }
            for j, value in needed.items()
        ]
        does = "makes it do" if model.rule.native else "states"
        notes = (
            "PUT the features to schema/feature-store first, then the model to schema/model-store",
            f"in *{FEATURES} every feature is a field of its name: replace those that are computed otherwise",
            *own_notes,
            policy_note(model, "Solr takes 0", f", which the defaultValue of each feature {does}"),
        )
        rescore = {"params": {"rq": f"{{!ltr model={name} reRankDocs=100}}", "fl": "id,score"}}
        content = to_json({**store, "class": body.pop("class"), "name": name, **body})
        if len(content) > LARGE:
            notes += (
                f"the file has {len(content) / LARGE:.1f} MB, and ZooKeeper takes 1 MB: raise jute.maxbuffer, or put "
                "it on every node and upload a model of the class DefaultWrapperModel that names it",
            )
        return Artifact(content, name, notes, {FEATURES: to_json(stored)}, rescore)

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the model as Solr scores with it, defaults from the feature store beside it."""
        kind = msgspec.json.decode(content, type=_Head).kind
        stored = msgspec.json.decode(companions.get(FEATURES, b"[]"), type=list[_Stored])
        defaults = {feature.name: float(feature.params.get("defaultValue", 0)) for feature in stored}
        if kind == TREES:
            return _forest(msgspec.json.decode(content, type=_Forest), defaults)
        if kind != CLASS:
            raise ValueError(f"{CLASS} and {TREES} can be verified here, not {kind}")
        body = msgspec.json.decode(content, type=_Body)
        scalers = [(0.0, 1.0) if f.norm is None else f.norm.scaler() for f in body.features]
        names = tuple(feature.name for feature in body.features)
        lacking = next((name for name in names if name not in body.params.weights), None)
        if lacking is not None:
            raise InputError(f"{path} lists {lacking!r} without a weight, which Solr refuses")
        weights = np.array([body.params.weights[name] for name in names])
        return lucene.replica(path, names, weights, scalers, np.array([defaults.get(name, 0.0) for name in names]))


_Encoded: TypeAlias = tuple[dict[int, float | None], dict[str, Any], list[str]]
"""The features that are needed with their default values, what stands in the file, and what to know."""


def _linear(model: Model, settings: Settings) -> _Encoded:
    form = lucene.normal_form(model, settings)
    features: list[dict[str, Any]] = [{"name": feature} for feature in model.names]
    for j in form.moved:
        params = {"avg": repr(float(form.center[j])), "std": repr(float(form.scale[j]))}
        features[j]["norm"] = {"class": STANDARD, "params": params}
    weights = dict(zip(model.names, form.weights.tolist(), strict=True))
    return (
        {j: model.rule.fill_value(j) for j in range(len(features))},
        {"class": CLASS, "features": features, "params": {"weights": weights}},
        list(form.notes),
    )


def _trees(model: Model, settings: Settings) -> _Encoded:
    exact, constant = model_trees.forest_of(model), model.offset + (settings.shift or 0.0)
    roots, notes = model_trees.single_forest(model, written, constant)
    trees = [{"weight": "1", "root": _node(root, model.names)} for root in roots]
    if model_trees.nearest_single(constant):
        trees.append({"weight": "1", "root": _node(constant, model.names)})
    defaults = model_trees.stand_in(model, exact, "Solr") if model.rule.native else {}
    needed = {j: defaults.get(j, model.rule.fill_value(j)) for j in model_trees.used_features(roots)}
    body = {"class": TREES, "features": [{"name": model.names[j]} for j in needed], "params": {"trees": trees}}
    meant = [cut.threshold for cut in model_trees.splits_of(exact) if cut.threshold != model_trees.ABOVE_ALL]
    coarse = [t for t in meant if reached(written(t)) != model_trees.single_below(t)]
    if coarse:
        notes.append(
            f"Solr adds 1e-6 to a threshold, which leaves too few digits for {len(set(coarse))} of them: they are off "
            f"by up to {max(t - reached(written(t)) for t in coarse):.1g}"
        )
    return needed, body, notes


def _node(node: Tree, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(node, ModelSplit):
        return {"value": repr(model_trees.nearest_single(node))}
    return {
        "feature": names[node.feature],
        "threshold": repr(model_trees.finite_in_single(node.threshold)),
        "left": _node(node.low, names),
        "right": _node(node.high, names),
    }


def reached(threshold: float) -> float:
    """Return what Solr makes of a threshold in a file.

    >>> reached(0.5)
    0.5000010132789612
    """
    return float(np.float32(threshold) + SLACK)


def written(threshold: float) -> float:
    """Return the number of which Solr makes the largest threshold that is not above the one that is meant.

    >>> reached(written(0.5)), reached(written(0.0)), reached(written(-3.0))
    (0.5, 0.0, -3.0)
    """
    meant = model_trees.single_below(threshold)
    number = float(np.float32(meant) - SLACK)
    if reached(number) == meant:
        return number
    # Not every number can be reached; those that can are here as far apart as the numbers that are written.
    while reached(number) > meant:
        number = next_single(number, -np.inf)
    while reached(next_single(number, np.inf)) <= meant:
        number = next_single(number, np.inf)
    return number


def _forest(body: _Forest, defaults: dict[str, float]) -> TreeReplica:
    names = tuple(feature.name for feature in body.features)
    if len(set(names)) != len(names) or any(f.norm is not None and f.norm.kind != IDENTITY for f in body.features):
        raise ValueError("trees can be verified here over distinct features without normalisers")
    places = {name: j for j, name in enumerate(names)}
    roots = [_parsed(tree.root, float32_of(tree.weight), places) for tree in body.params.trees]
    fill = np.array([defaults.get(name, 0.0) for name in names])
    default = "0" if not fill.any() else "its defaultValue"
    return TreeReplica(names, roots, lucene.RULE.format(order="", default=default), np.float32, np.float32, fill)


def _parsed(node: _Node, weight: float, places: dict[str, int]) -> EngineSplit | float:
    if node.feature is None:
        if node.left is not None or node.right is not None:
            raise ValueError("a leaf of a tree has branches")
        return float(np.float32(weight) * np.float32(float32_of(node.value)))
    if node.threshold is None or node.left is None or node.right is None:
        raise ValueError(f"a split at {node.feature!r} lacks its threshold or a branch")
    if node.feature not in places:
        raise ValueError(f"a tree looks at {node.feature!r}, which is not among the features")
    number = float32_of(node.threshold)
    last = reached(number)
    first = max(next_single(last, np.inf), reached(next_single(number, np.inf)))
    low, high = (_parsed(branch, weight, places) for branch in (node.left, node.right))
    return EngineSplit(places[node.feature], last, first, low, high)
