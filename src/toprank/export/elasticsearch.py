"""The learning-to-rank plugins of Elasticsearch and OpenSearch: `model/linear` and `model/xgboost+json`.

The file is the body of POST _ltr/_featureset/SET/_createmodel. Models cannot be changed there, so their names carry a
version. All is float32. A linear model has no constant, and a feature that does not match counts 0 before its
normaliser is applied. A tree goes left where x < split_condition. There a feature that does not match is 0 in older
plugins and NaN in newer ones, of which some ignore `missing` and go right (`gaps`); for RankBoost, whose trees have one
feature each, a first split at the largest float32 number, which only NaN does not pass, makes all of them do the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from ..errors import InputError
from ..model import LinearFunction, Model, StumpFunction
from . import lucene, model_trees
from .model_trees import ModelSplit, Tree
from .replicas import Replica, next_single
from .targets import NAME, Artifact, Settings, Target, check_names, model_name, to_json
from .tree_replicas import EngineSplit, TreeReplica, float32_of

LINEAR, TREES = "model/linear", "model/xgboost+json"
PLAIN = ("rank:pairwise", "rank:ndcg", "rank:map", "reg:linear", "binary:logitraw")
"""Objectives whose scores the plugin leaves as they are."""


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
    definition: dict[str, msgspec.Raw] | list[msgspec.Raw] | str
    feature_normalizers: dict[str, _Normalizer] = {}


class _Model(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    model: _Definition


class _Validation(msgspec.Struct, forbid_unknown_fields=True):
    """What the plugin tries the model on before it keeps it."""

    params: dict[str, msgspec.Raw]
    index: str


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model
    validation: _Validation | None = None


class _Node(msgspec.Struct, forbid_unknown_fields=True):
    nodeid: int
    leaf: float | None = None
    depth: int | None = None
    split: str | None = None
    split_condition: float | None = None
    yes: int | None = None
    no: int | None = None
    missing: int | None = None
    children: list[_Node] = []


class _Forest(msgspec.Struct, forbid_unknown_fields=True):
    splits: list[_Node]
    objective: str = PLAIN[0]
    missing_as_zero: bool = False


@dataclass(frozen=True)
class LtrPlugin(Target):
    """One of the two plugins: the same requests and the same arithmetic."""

    name: str
    engine: str
    family = "elasticsearch/opensearch"
    settings = frozenset({"store", "feature_set", "shift", "normalizers"})
    marks = re.compile(rb'"type"\s*:\s*"model/')
    gaps: Literal["split", "right", "zero"] = "split"
    """Where trees of a file send a feature that does not match: as `missing` says, to the right, or where 0 goes."""

    @property
    def file(self) -> str:  # type: ignore[override]
        """What a file is."""
        return f"a model for {self.engine}"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the body of a _createmodel request."""
        check_names(model.names, self.name)
        name = model_name(model, settings)
        feature_set = settings.feature_set or "FEATURE_SET"
        for what, given in (("feature set", feature_set), ("feature store", settings.store)):
            if given is not None and not NAME.fullmatch(given):
                raise InputError(f"{given!r} is not the name of a {what}: use letters, digits, _, . and -")
        encoded = (
            self._linear(model, settings)
            if isinstance(model.function, LinearFunction)
            else self._trees(model, settings)
        )
        needed, definition, own_notes = encoded
        address = "_ltr/" if settings.store is None else f"_ltr/{settings.store}/"
        notes = (
            f"create it with POST {address}_featureset/{feature_set}/_createmodel; the feature set must have all "
            f"{needed} features by these names",
            f"a model cannot be changed in {self.engine}: its name {name} carries the version",
            *own_notes,
            "keep window_size at from + size or more: it counts on each shard, and what is not rescored stands apart",
        )
        # The plugin's parser refuses what it does not know, so what a reader must know stands in a file beside it.
        rescore = rescore_request(name, settings.store)
        about = {"name": name, "missing": model.rule.words, "notes": list(notes), "rescore": rescore}
        return Artifact(
            to_json({"model": {"name": name, "model": definition}}),
            name,
            notes,
            {".notes.json": to_json(about)},
            rescore,
        )

    def _linear(self, model: Model, settings: Settings) -> tuple[int, dict[str, Any], list[str]]:
        form = lucene.normal_form(model, settings, lifted=True)
        # As text, as the plugin's own manual has it; a feature that is not named has the weight 0.
        named = dict(zip(model.names, form.weights.tolist(), strict=True))
        weights = {name: weight for name, weight in named.items() if weight} or named
        definition: dict[str, Any] = {"type": LINEAR, "definition": json.dumps(weights)}
        if form.moved:
            definition["feature_normalizers"] = {
                model.names[j]: {
                    "standard": {"mean": float(form.center[j]), "standard_deviation": float(form.scale[j])}
                }
                for j in form.moved
            }
        own_notes = [
            *form.notes,
            *lucene.missing_notes(model, f"{self.engine} takes 0 for a feature that does not match"),
        ]
        return len(weights), definition, own_notes

    def _trees(self, model: Model, settings: Settings) -> tuple[int, dict[str, Any], list[str]]:
        roots = model_trees.forest_of(model, model_trees.single_above)
        shift, shift_notes = model_trees.shift_up(model, roots, settings)
        model_trees.check_single(model, roots, model.offset + shift)
        guarded = roots
        how = (
            "`missing` of each split does it, in plugins that know it; those before 2024 (OpenSearch before 3.2) take 0"
        )
        if isinstance(model.function, StumpFunction):  # a first split that every number passes, and no missing value
            guarded = [
                ModelSplit(
                    step.feature, model_trees.ABOVE_ALL, root, step.height(model.rule.fill_value(step.feature) or 0.0)
                )
                for root, step in zip(roots, model_trees.steps_of(model), strict=True)
            ]
            how = "the first split of each tree does it" + (
                ""
                if model.rule.fill is None or not model.rule.fill.any()
                else "; plugins before 2024 (OpenSearch before 3.2) take 0"
            )
        trees = [_node(root, model.names, 0, 0, count(1)) for root in guarded]
        constant = model_trees.nearest_single(model.offset + shift)
        if constant:
            trees.append({"nodeid": 0, "leaf": constant})
        notes = [
            model_trees.used_note(model, roots),
            model_trees.missing_note(model, roots, how, "the file takes 0 for a feature that does not match"),
            *model_trees.side_notes(model, roots),
            *shift_notes,
        ]
        # As text, which every version hands to its parser as it stands.
        text = json.dumps(trees, separators=(",", ":"))
        return len(model_trees.used_features(roots)), {"type": TREES, "definition": text}, notes

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the model as the plugin scores with it."""
        body = msgspec.json.decode(content, type=_Body).model.model
        # The plugin takes the definition as text too.
        text = body.definition if isinstance(body.definition, str) else msgspec.json.encode(body.definition)
        if body.type == TREES:
            return _forest(text, self.gaps)
        if body.type != LINEAR:
            raise InputError(f"{path} holds a {body.type!r}; {LINEAR!r} and {TREES!r} are what can be verified here")
        weights = msgspec.json.decode(text, type=dict[str, float])
        unknown = next((name for name in body.feature_normalizers if name not in weights), None)
        if unknown is not None:
            raise InputError(f"{path} normalises {unknown!r}, a feature without a weight")
        names = tuple(weights)
        scalers = [body.feature_normalizers.get(name, _Normalizer()).scaler() for name in names]
        order = ", added in the order of the feature set (rounding is allowed for in any)"
        return lucene.replica(path, names, np.array(list(weights.values())), scalers, np.zeros(len(names)), order)


def _node(node: Tree, names: Sequence[str], nodeid: int, depth: int, ids: Iterator[int]) -> dict[str, Any]:
    if not isinstance(node, ModelSplit):
        return {"nodeid": nodeid, "leaf": model_trees.nearest_single(node)}
    yes, no = next(ids), next(ids)
    return {
        "nodeid": nodeid,
        "depth": depth,
        "split": names[node.feature],
        "split_condition": model_trees.finite_in_single(node.threshold),
        "yes": yes,
        "no": no,
        "missing": yes if node.missing_low else no,
        "children": [_node(node.low, names, yes, depth + 1, ids), _node(node.high, names, no, depth + 1, ids)],
    }


def _forest(text: str | bytes, gaps: Literal["split", "right", "zero"]) -> TreeReplica:
    """Return trees as the plugin's parser takes them: a list, or an object with the list in `splits`."""
    found = msgspec.json.decode(text, type=list[_Node] | _Forest)
    forest = found if isinstance(found, _Forest) else _Forest(found)
    if not forest.splits:
        raise ValueError("there is no tree")
    if forest.objective not in PLAIN:
        raise ValueError(f"an objective {forest.objective!r}, which bends the scores, cannot be verified here")
    places: dict[str, int] = {}
    roots = [_parsed(node, places, gaps == "right") for node in forest.splits]
    as_zero = forest.missing_as_zero or gaps == "zero"
    fill = np.zeros(len(places)) if as_zero else None
    way = "is 0" if as_zero else "goes right" if gaps == "right" else "follows `missing`"
    rule = f"float32; a feature without a value {way}"
    return TreeReplica(tuple(places), roots, rule, np.float32, np.float32, fill)


def _parsed(node: _Node, places: dict[str, int], right: bool) -> EngineSplit | float:
    if node.leaf is not None:
        return float32_of(node.leaf)
    if None in (node.depth, node.split, node.split_condition, node.yes, node.no) or len(node.children) != 2:
        raise ValueError(f"the split {node.nodeid} does not have all the required fields")
    if (node.yes, node.no) != tuple(child.nodeid for child in node.children):
        raise ValueError(f"the children of split {node.nodeid} are not yes and no, in this order")
    if node.missing not in (node.yes, node.no):
        raise ValueError(f"missing of split {node.nodeid} is none of its children")
    assert node.split is not None
    assert node.split_condition is not None
    condition = float32_of(node.split_condition)
    last = next_single(condition, -np.inf)  # x < condition is x ≤ the float32 number before it
    feature = places.setdefault(node.split, len(places))
    low, high = (_parsed(child, places, right) for child in node.children)
    return EngineSplit(feature, last, condition, low, high, node.missing == node.yes and not right)


def rescore_request(name: str, store: str | None) -> dict[str, Any]:
    """Return a search that orders the first hits by the model alone: the window covers from + size."""
    stored = {} if store is None else {"store": store}
    return {
        "query": {"match": {"FIELD": "WORDS"}},
        "from": 0,
        "size": 10,
        "rescore": {
            "window_size": 100,
            "query": {
                "rescore_query": {"sltr": {"model": name, **stored, "params": {"keywords": "WORDS"}}},
                "query_weight": 0,
                "rescore_query_weight": 1,
            },
        },
    }
