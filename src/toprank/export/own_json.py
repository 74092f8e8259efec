"""Our own exchange formats: names, numbers and values for missing ones, for any program that can read JSON.

toprank-linear: score = offset + Σ weight · value. toprank-stumps: score = offset + Σ scores[number of thresholds below
the value]. toprank-trees: score = offset + Σ leaves. All in float64; the schemas are published as
`toprank.export.schema("linear")`, `schema("stumps")` and `schema("trees")`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from .._version import __version__
from ..errors import InputError, naming
from ..rankers.models import StumpModel, TreeModel
from .model_trees import ModelSplit, Tree, forest_of, steps_of
from .replicas import LinearReplica, PreparedReplica, Replica
from .scorers import Linear, Prepared, Scorer, Step, Stumps, Trees
from .targets import Artifact, Settings, Target, model_name, to_json
from .tree_replicas import EngineSplit, TreeReplica

LINEAR, STUMPS, TREES = "toprank-linear", "toprank-stumps", "toprank-trees"
FORMATS = (LINEAR, STUMPS, TREES)
VERSION = 1


class Feature(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One feature; `missing` stands in where it has no value, `center` and `scale` belong to the scaler folded in."""

    name: str
    weight: float
    missing: float | None = None
    center: float | None = None
    scale: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the layouts share."""

    format: str
    version: int
    toprank: str
    source: str
    missing: Literal["refuse", "fill"]
    offset: float
    name: str | None = None
    prepare: list[Step] = []


class LinearFile(_File, kw_only=True):
    """The layout of the file."""

    features: list[Feature]


class StepFeature(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One feature: a value adds scores[number of thresholds below it]; `missing` stands in where it has none."""

    name: str
    missing: float | None = None
    thresholds: list[float]
    scores: list[float]


class StumpsFile(_File, kw_only=True):
    """The layout of the file."""

    features: list[StepFeature]


class TreeFeature(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One feature; `missing` stands in where it has no value."""

    name: str
    missing: float | None = None


class Node(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A split (values up to `value` go to the node `low`), or without a feature a leaf that adds `value`."""

    value: float
    feature: int = -1
    low: int = 0
    high: int = 0
    missing_low: bool = False


class TreesFile(_File, kw_only=True):
    """The layout of the file."""

    missing: Literal["refuse", "fill", "follow"]  # type: ignore[assignment]
    features: list[TreeFeature]
    roots: list[int]
    nodes: list[Node]


_LAYOUTS: dict[str, Any] = {LINEAR: LinearFile, STUMPS: StumpsFile, TREES: TreesFile}


def encode(scorer: Scorer, name: str | None = None) -> bytes:
    """Return a scorer as JSON."""
    prepare: dict[str, Any] = {}
    body: dict[str, Any]
    if isinstance(scorer, Prepared):
        prepare, scorer = {"prepare": list(scorer.steps)}, replace(scorer.inner, fill=scorer.fill)
    if isinstance(scorer, Linear):
        kind, body = LINEAR, {"features": _linear_rows(scorer)}
    elif isinstance(scorer, Stumps):
        kind, body = STUMPS, {"features": _stump_rows(scorer)}
    elif isinstance(scorer, Trees):
        kind, body = TREES, _tree_rows(scorer)
    else:
        raise InputError(f"a {type(scorer).__name__} cannot be written as JSON")
    head = {"format": kind, "version": VERSION, "toprank": __version__, "source": scorer.source}
    about = {} if name is None else {"name": name}
    policy = "follow" if scorer.follows else "refuse" if scorer.fill is None else "fill"
    known = {"missing": policy, "offset": scorer.offset, **prepare}
    return to_json({**head, **about, **known, **msgspec.to_builtins(body)})


def _tree_rows(trees: Trees) -> dict[str, Any]:
    model = trees.model
    columns = (model.value, model.feature, model.low, model.high, model.missing_low)
    nodes = [Node(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    features = [TreeFeature(name, trees.fill_value(j)) for j, name in enumerate(trees.names)]
    return {"features": features, "roots": model.root.tolist(), "nodes": nodes}


def _linear_rows(linear: Linear) -> list[Feature]:
    columns = [linear.weights, linear.fill, linear.center, linear.scale]
    values = [[None] * len(linear.names) if column is None else column.tolist() for column in columns]
    return [Feature(*row) for row in zip(linear.names, *values, strict=True)]


def _stump_rows(stumps: Stumps) -> list[StepFeature]:
    used = {step.feature: (list(step.thresholds), list(step.heights)) for step in steps_of(stumps)}
    rows = []
    for j, name in enumerate(stumps.names):
        thresholds, scores = used.get(j, ([], [0.0]))
        rows.append(StepFeature(name=name, missing=stumps.fill_value(j), thresholds=thresholds, scores=scores))
    return rows


def decode(content: bytes, path: Path | str) -> Linear | Stumps | Trees | Prepared:
    """Return the scorer of a file, with the preparation of its features where it has one."""
    file = _checked(content, path)
    with naming(str(path)):
        inner = _scorer(file)
    return Prepared(replace(inner, fill=None), tuple(file.prepare), inner.fill) if file.prepare else inner


def _scorer(file: LinearFile | StumpsFile | TreesFile) -> Linear | Stumps | Trees:
    names = tuple(row.name for row in file.features)
    fill = np.array([row.missing for row in file.features], dtype=np.float64) if file.missing == "fill" else None
    if isinstance(file, TreesFile):
        gaps: Literal["follow", "refuse"] = "follow" if file.missing == "follow" else "refuse"
        return Trees(names, _tree_model(file), fill, file.source, file.offset, gaps)
    if isinstance(file, StumpsFile):
        base = sum(row.scores[0] for row in file.features)
        return Stumps(names, _stump_model(file.features), fill, file.source, file.offset + base)
    scaled = [row.center is not None and row.scale is not None for row in file.features]
    if any(scaled) and not all(scaled):
        raise InputError("either every feature has center and scale, or none")
    columns = ([getattr(row, name) for row in file.features] for name in ("weight", "center", "scale"))
    weights, center, scale = (np.array(column, dtype=np.float64) for column in columns)
    scaler = (center, scale) if any(scaled) else (None, None)
    return Linear(names, weights, file.offset, fill, file.source, *scaler)


def recognized(content: bytes) -> str | None:
    """Return the format that a file says it has, if it is one of ours."""
    found = OwnJson.marks.search(content)
    return None if found is None else found[1].decode()


def _tree_model(file: TreesFile) -> TreeModel:
    rows = [(node.feature, node.value, node.low, node.high, node.missing_low) for node in file.nodes]
    feature, value, low, high, missing_low = (np.array(column) for column in zip(*rows, strict=True))
    places = (np.array(file.roots, dtype=np.int64), feature.astype(np.int64))
    return TreeModel(len(file.features), *places, value.astype(np.float64), low, high, missing_low)


def _checked(content: bytes, path: Path | str) -> Any:
    """Return a file by the layout that it says it has."""
    named = recognized(content) or LINEAR
    try:
        file = msgspec.json.decode(content, type=_LAYOUTS[named])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a {named} file: {error}") from None
    if file.format != named or file.version != VERSION:
        raise InputError(f"{path} is {file.format!r} version {file.version}; this toprank reads {named!r} {VERSION}")
    if file.missing == "fill" and any(row.missing is None for row in file.features):
        raise InputError(f"{path}: every feature needs a value for missing ones, since $.missing is 'fill'")
    if not file.features or (named == TREES and not file.nodes):
        raise InputError(f"{path} has no features" + ("" if not file.features else " that a tree looks at"))
    for row in file.features if named == STUMPS else ():
        if len(row.scores) != len(row.thresholds) + 1:
            raise InputError(f"{path}: {row.name!r} needs one score more than thresholds")
        if not all(np.diff(row.thresholds) > 0):
            raise InputError(f"{path}: the thresholds of {row.name!r} are not in rising order")
    return file


def _stump_model(rows: list[StepFeature]) -> StumpModel:
    """Return the steps as stumps; what a feature adds below all its thresholds is the same for all documents."""
    feature = np.repeat(np.arange(len(rows)), [len(row.thresholds) for row in rows])
    threshold = np.array([value for row in rows for value in row.thresholds], dtype=np.float64)
    weight = np.concatenate([np.diff(row.scores) for row in rows])
    return StumpModel(len(rows), feature, threshold, weight)


class OwnJson(Target):
    """The formats as a target; `toprank export` also takes such a file as its model."""

    name = "json"
    settings = frozenset({"shift"})
    prepares = frozenset({"log", "minmax", "standard"})
    marks = re.compile(rb'"format"\s*:\s*"(toprank-(?:linear|stumps|trees))"')
    file = "a file of toprank"

    def encode(self, scorer: Linear | Stumps | Trees | Prepared, settings: Settings) -> Artifact:
        """Return the file."""
        name, constant = model_name(scorer, settings), scorer.offset + (settings.shift or 0.0)
        if isinstance(scorer, Prepared):
            shifted: Scorer = replace(scorer, inner=replace(scorer.inner, offset=constant))
        else:
            shifted = replace(scorer, offset=constant)
        return Artifact(encode(shifted, name), name, (f"{scorer.missing}: the file says so",))

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the score as a careful reader would compute it."""
        scorer = decode(content, path)
        inner, rule = scorer.inner if isinstance(scorer, Prepared) else scorer, f"float64; {scorer.missing}"
        like = _replica(inner, _checked(content, path), rule)
        if isinstance(scorer, Prepared):
            return PreparedReplica(scorer.names, scorer.steps, like, scorer.fill, rule)
        return like


def _replica(scorer: Linear | Stumps | Trees, file: Any, rule: str) -> Replica:
    names, fill, double = scorer.names, scorer.fill, np.float64
    if isinstance(scorer, Linear):
        return LinearReplica(names, scorer.weights, rule, double, double, fill=fill, start=scorer.offset)
    if isinstance(scorer, Trees):
        roots = [_split(root) for root in forest_of(scorer)]
    else:
        roots = [_ladder(j, row) for j, row in enumerate(file.features)]
    return TreeReplica(names, roots, rule, double, double, fill, not scorer.follows, file.offset)


def _split(node: Tree) -> EngineSplit | float:
    if not isinstance(node, ModelSplit):
        return node
    low, high = _split(node.low), _split(node.high)
    first = math.nextafter(node.threshold, math.inf)
    return EngineSplit(node.feature, node.threshold, first, low, high, node.missing_low)


def _ladder(feature: int, row: StepFeature) -> EngineSplit | float:
    """Return one comparison after the other, from the highest threshold down."""
    root: EngineSplit | float = row.scores[0]
    for threshold, score in zip(row.thresholds, row.scores[1:], strict=True):
        root = EngineSplit(feature, threshold, math.nextafter(threshold, math.inf), root, score)
    return root
