"""The learning-to-rank plugins of Elasticsearch and OpenSearch: `model/linear` and `model/xgboost+json`.

The file is the body of POST _ltr/_featureset/SET/_createmodel. Models cannot be changed there, so their names carry a
version. All is float32. A linear model has no constant, and a feature that does not match counts 0 before its
normaliser is applied. A tree goes left where x < split_condition. There a feature that does not match is 0 in older
plugins and NaN in newer ones, of which some ignore `missing` and go right; a first split at the largest float32 number,
which only NaN does not pass, makes all of them do the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from ..errors import InputError
from . import lucene
from .replicas import Replica, next_single
from .scorers import Linear, Stumps
from .targets import NAME, Artifact, Settings, Target, check_names, model_name, to_json
from .tree_replicas import Split, TreeReplica
from .trees import (
    LARGEST,
    Cut,
    above,
    check_single,
    missing_note,
    negative_notes,
    side_notes,
    single,
    steps_of,
    used_note,
)

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


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    model: _Model


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
    family: ClassVar[str] = "elasticsearch/opensearch"
    settings: ClassVar[frozenset[str]] = frozenset({"store", "shift", "normalizers"})

    def encode(self, scorer: Linear | Stumps, settings: Settings) -> Artifact:
        """Return the body of a _createmodel request."""
        check_names(scorer.names, self.name)
        name = model_name(scorer, settings)
        feature_set = settings.store or "FEATURE_SET"
        if not NAME.fullmatch(feature_set):
            raise InputError(f"{feature_set!r} is not the name of a feature set: use letters, digits, _, . and -")
        encoded = self._linear(scorer, settings) if isinstance(scorer, Linear) else self._trees(scorer, settings)
        needed, definition, told = encoded
        notes = (
            f"create it with POST _ltr/_featureset/{feature_set}/_createmodel; the feature set must have all "
            f"{needed} features by these names",
            f"a model cannot be changed in {self.engine}: its name {name} carries the version",
            *told,
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

    def _linear(self, scorer: Linear, settings: Settings) -> tuple[int, dict[str, Any], list[str]]:
        form = lucene.normal_form(scorer, settings)
        definition: dict[str, Any] = {
            "type": LINEAR,
            "definition": dict(zip(scorer.names, form.weights.tolist(), strict=True)),
        }
        if form.moved:
            definition["feature_normalizers"] = {
                scorer.names[j]: {
                    "standard": {"mean": float(form.center[j]), "standard_deviation": float(form.scale[j])}
                }
                for j in form.moved
            }
        told = [
            *form.notes,
            *lucene.missing_notes(scorer, f"{self.engine} takes 0 for a feature that does not match"),
            *lucene.negative_notes(scorer, settings),
        ]
        return len(scorer.names), definition, told

    def _trees(self, scorer: Stumps, settings: Settings) -> tuple[int, dict[str, Any], list[str]]:
        steps = steps_of(scorer, above)
        check_single(scorer, steps, settings)
        trees = []
        for step, exact in zip(steps, steps_of(scorer), strict=True):
            fill = scorer.fill_value(step.feature) or 0.0
            trees.append(_tree(scorer.names[step.feature], step.tree(), fill, exact.height(fill)))
        constant = single(scorer.offset + settings.shift)
        if constant:
            trees.append({"nodeid": 0, "leaf": constant})
        how = "the first split of each tree does it" + (
            ""
            if scorer.fill is None or not scorer.fill.any()
            else "; plugins before 2024 (OpenSearch before 3.2) take 0"
        )
        told = [
            used_note(scorer, steps),
            missing_note(scorer, steps, how, "the file takes 0 for a feature that does not match"),
            *side_notes(scorer, steps),
            *negative_notes(scorer, steps, settings),
        ]
        # As text, which every version hands to its parser as it stands.
        return len(steps), {"type": TREES, "definition": json.dumps(trees, separators=(",", ":"))}, told

    def recognizes(self, content: bytes) -> bool:
        """Look for the type of the model."""
        return re.search(rb'"type"\s*:\s*"model/', content) is not None

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the model as the plugin scores with it."""
        try:
            body = msgspec.json.decode(content, type=_Body).model.model
            # The plugin takes the definition as text too.
            text = body.definition if isinstance(body.definition, str) else msgspec.json.encode(body.definition)
            if body.type == TREES:
                return _forest(text)
            weights = msgspec.json.decode(text, type=dict[str, float]) if body.type == LINEAR else {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise InputError(f"{place} is not a model for {self.engine}: {error}") from None
        if body.type != LINEAR:
            raise InputError(f"{place} holds a {body.type!r}; {LINEAR!r} and {TREES!r} are what can be verified here")
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


def _tree(feature: str, root: Cut | float, fill: float, absent: float) -> dict[str, Any]:
    """Return a tree whose first split is passed by every number, and by no missing value."""
    children = [_node(root, feature, fill, 1, 1, count(3)), {"nodeid": 2, "leaf": single(absent)}]
    return _split(feature, LARGEST, (0, 0), (1, 2), 2, children)


def _node(node: Cut | float, feature: str, fill: float, nodeid: int, depth: int, ids: Iterator[int]) -> dict[str, Any]:
    if not isinstance(node, Cut):
        return {"nodeid": nodeid, "leaf": single(node)}
    yes, no = next(ids), next(ids)
    children = [
        _node(node.low, feature, fill, yes, depth + 1, ids),
        _node(node.high, feature, fill, no, depth + 1, ids),
    ]
    missing = yes if fill < node.threshold else no
    return _split(feature, node.threshold, (nodeid, depth), (yes, no), missing, children)


def _split(
    feature: str, threshold: float, place: tuple[int, int], ids: tuple[int, int], missing: int, children: list[Any]
) -> dict[str, Any]:
    (nodeid, depth), (yes, no) = place, ids
    return {
        "nodeid": nodeid,
        "depth": depth,
        "split": feature,
        "split_condition": threshold,
        "yes": yes,
        "no": no,
        "missing": missing,
        "children": children,
    }


def _forest(text: str | bytes) -> TreeReplica:
    """Return trees as the plugin's parser takes them: a list, or an object with the list in `splits`."""
    found = msgspec.json.decode(text, type=list[_Node] | _Forest)
    forest = found if isinstance(found, _Forest) else _Forest(found)
    if not forest.splits:
        raise ValueError("there is no tree")
    if forest.objective not in PLAIN:
        raise ValueError(f"an objective {forest.objective!r}, which bends the scores, cannot be verified here")
    places: dict[str, int] = {}
    roots = [_parsed(node, places) for node in forest.splits]
    fill = np.zeros(len(places)) if forest.missing_as_zero else None
    rule = "float32; a feature without a value " + ("is 0" if forest.missing_as_zero else "follows `missing`")
    return TreeReplica(tuple(places), roots, rule, np.float32, np.float32, fill)


def _parsed(node: _Node, places: dict[str, int]) -> Split | float:
    if node.leaf is not None:
        return _float(node.leaf)
    if None in (node.depth, node.split, node.split_condition, node.yes, node.no) or len(node.children) != 2:
        raise ValueError(f"the split {node.nodeid} does not have all the required fields")
    if (node.yes, node.no) != tuple(child.nodeid for child in node.children):
        raise ValueError(f"the children of split {node.nodeid} are not yes and no, in this order")
    if node.missing not in (node.yes, node.no):
        raise ValueError(f"missing of split {node.nodeid} is none of its children")
    assert node.split is not None
    assert node.split_condition is not None
    condition = _float(node.split_condition)
    last = next_single(condition, -np.inf)  # x < condition is x ≤ the float32 number before it
    feature = places.setdefault(node.split, len(places))
    low, high = (_parsed(child, places) for child in node.children)
    return Split(feature, last, condition, low, high, "low" if node.missing == node.yes else "high")


def _float(value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        number = float(np.float32(value))
    if not np.isfinite(number):
        raise ValueError(f"{value} is no float32 number")
    return number


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
