"""Our own exchange formats: names, numbers and values for missing ones, for any program that can read JSON.

toprank-linear: score = offset + Σ weight · value. toprank-stumps: score = offset + Σ scores[number of thresholds below
the value]. toprank-trees: score = offset + Σ leaves. toprank-additive: score = offset + Σ curves. All in float64; the
schemas are published as `toprank.export.schema("linear")`, `schema("stumps")`, `schema("trees")` and
`schema("additive")`.
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
from ..data.preparation import Knotted, QueryRelative, Ramps, Step, Thresholds
from ..data.preparation import steps_of as steps_of_preparation
from ..errors import InputError, naming
from ..model import Inputs, LinearFunction, MissingRule, Model, StumpFunction, TreeFunction
from .curves import CurvesReplica, curves_of
from .model_trees import ModelSplit, Tree, forest_of, steps_of
from .replicas import LinearReplica, PreparedReplica, Replica
from .targets import Artifact, Settings, Target, model_name, to_json
from .tree_replicas import EngineSplit, TreeReplica

LINEAR, STUMPS, TREES = "toprank-linear", "toprank-stumps", "toprank-trees"
ADDITIVE = "toprank-additive"
FORMATS = (LINEAR, STUMPS, TREES, ADDITIVE)
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
    prepare: list[Literal["log", "minmax", "standard"]] = []


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


class CurveRow(msgspec.Struct, forbid_unknown_fields=True):
    """One curve: weight · z + Σ weights · (functions of the knots)/scales, z a feature in one view."""

    feature: int
    view: Literal["", "rank", "minmax", "standard"]
    weight: float
    knots: list[float]
    scales: list[float]
    weights: list[float]


class AdditiveFile(_File, kw_only=True):
    """The layout of the file."""

    knots: Literal["none", "ramps", "steps"]
    copies: list[Literal["rank", "minmax", "standard"]]
    features: list[TreeFeature]
    curves: list[CurveRow]


_LAYOUTS: dict[str, Any] = {LINEAR: LinearFile, STUMPS: StumpsFile, TREES: TreesFile, ADDITIVE: AdditiveFile}


def encode(model: Model, name: str | None = None) -> bytes:
    """Return a model as JSON."""
    body: dict[str, Any]
    if model.inputs.widens:
        kind, body = ADDITIVE, _additive_rows(model)
    elif isinstance(model.function, LinearFunction):
        kind, body = LINEAR, {"features": _linear_rows(model)}
    elif isinstance(model.function, StumpFunction):
        kind, body = STUMPS, {"features": _stump_rows(model)}
    elif isinstance(model.function, TreeFunction):
        kind, body = TREES, _tree_rows(model, model.function)
    else:
        raise InputError(f"{model.source} cannot be written as JSON: it is neither linear nor a sum of trees")
    head = {"format": kind, "version": VERSION, "toprank": __version__, "source": model.source}
    about = {} if name is None else {"name": name}
    policy = "follow" if model.rule.native else "refuse" if model.rule.fill is None else "fill"
    replaced = [word for step in model.inputs.steps if not step.widens for word in step.words]
    steps = [_IN_FILES.get(step, step) for step in replaced]
    known = {"missing": policy, "offset": model.offset, **({"prepare": steps} if steps else {})}
    return to_json({**head, **about, **known, **msgspec.to_builtins(body)})


_IN_FILES = {"query": "minmax"}
"""Steps of preparation that have another name in files."""


def _additive_rows(model: Model) -> dict[str, Any]:
    steps = model.inputs.steps
    copies = [view for step in steps if isinstance(step, QueryRelative) for view in step.views]
    knots = next((step.word for step in steps if isinstance(step, Knotted)), "none")
    rows = []
    for curve in curves_of(model, "json", everything=True):
        columns = [list(column) for column in zip(*curve.knots, strict=True)] or [[], [], []]
        rows.append(CurveRow(curve.feature, curve.view, curve.weight, *columns))  # type: ignore[arg-type]
    features = [TreeFeature(name, model.rule.fill_value(j)) for j, name in enumerate(model.names)]
    return {"knots": knots, "copies": copies, "features": features, "curves": rows}


def _additive_model(file: AdditiveFile, inputs: Inputs) -> Model:
    """Return the model: the weights of the straight columns, view by view, then those of the knots."""
    views, d = ["", *file.copies], len(file.features)
    rows = {}
    for row in file.curves:
        if row.view not in views or not 0 <= row.feature < d:
            raise InputError(f"a curve is of the feature {row.feature} in the view {row.view!r}, which is not there")
        if not len(row.knots) == len(row.scales) == len(row.weights):
            raise InputError("a curve has as many scales and weights as knots")
        rows[views.index(row.view) * d + row.feature] = row
    if len(rows) != len(file.curves):
        raise InputError("two curves are of one feature in one view")
    order, width = sorted(rows), d * len(views)
    weights = np.zeros(width)
    weights[order] = [rows[column].weight for column in order]
    steps: list[Step] = [*inputs.steps, *([QueryRelative(tuple(file.copies))] if file.copies else [])]
    lengths = [len(rows[column].knots) for column in order]
    if file.knots == "none" and any(lengths):
        raise InputError("$.knots is 'none', and there are some")
    if file.knots != "none":
        knot, scale, more = (
            np.array([value for column in order for value in getattr(rows[column], name)], dtype=np.float64)
            for name in ("knots", "scales", "weights")
        )
        kind = Ramps if file.knots == "ramps" else Thresholds
        steps.append(kind(max([1, *lengths]), width, np.repeat(order, lengths).astype(np.int64), knot, scale))
        weights = np.append(weights, more)
    return Model(LinearFunction(weights), replace(inputs, steps=tuple(steps)), file.source, file.offset)


def _tree_rows(model: Model, trees: TreeFunction) -> dict[str, Any]:
    columns = (trees.value, trees.feature, trees.low, trees.high, trees.missing_low)
    nodes = [Node(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    features = [TreeFeature(name, model.rule.fill_value(j)) for j, name in enumerate(model.names)]
    return {"features": features, "roots": trees.root.tolist(), "nodes": nodes}


def _linear_rows(linear: Model) -> list[Feature]:
    columns = [linear.weights, linear.rule.fill, *(linear.scaler or (None, None))]
    values = [[None] * len(linear.names) if column is None else column.tolist() for column in columns]
    return [Feature(*row) for row in zip(linear.names, *values, strict=True)]


def _stump_rows(stumps: Model) -> list[StepFeature]:
    used = {step.feature: (list(step.thresholds), list(step.heights)) for step in steps_of(stumps)}
    rows = []
    for j, name in enumerate(stumps.names):
        thresholds, scores = used.get(j, ([], [0.0]))
        rows.append(StepFeature(name=name, missing=stumps.rule.fill_value(j), thresholds=thresholds, scores=scores))
    return rows


def decode(content: bytes, path: Path | str) -> Model:
    """Return the model of a file, with the preparation of its features where it has one."""
    file = _checked(content, path)
    with naming(str(path)):
        return _model(file)


def _model(file: LinearFile | StumpsFile | TreesFile | AdditiveFile) -> Model:
    names = tuple(row.name for row in file.features)
    numbered = Inputs(len(names)).labels  # what a model without names of its own is written with
    rule = MissingRule("native" if file.missing == "follow" else "error")
    if file.missing == "fill":
        rule = MissingRule("fill", np.array([row.missing for row in file.features], dtype=np.float64))
    inputs = Inputs(len(names), None if names == numbered else names, rule, steps_of_preparation(file.prepare))
    if isinstance(file, AdditiveFile):
        return _additive_model(file, inputs)
    if isinstance(file, TreesFile):
        return Model(_tree_function(file), inputs, file.source, file.offset)
    if isinstance(file, StumpsFile):
        base = sum(row.scores[0] for row in file.features)
        return Model(_stump_function(file.features), inputs, file.source, file.offset + base)
    scaled = [row.center is not None and row.scale is not None for row in file.features]
    if any(scaled) and not all(scaled):
        raise InputError("either every feature has center and scale, or none")
    columns = ([getattr(row, name) for row in file.features] for name in ("weight", "center", "scale"))
    weights, center, scale = (np.array(column, dtype=np.float64) for column in columns)
    return Model(LinearFunction(weights), inputs, file.source, file.offset, (center, scale) if any(scaled) else None)


def recognized(content: bytes) -> str | None:
    """Return the format that a file says it has, if it is one of ours."""
    found = OwnJson.marks.search(content)
    return None if found is None else found[1].decode()


def _tree_function(file: TreesFile) -> TreeFunction:
    rows = [(node.feature, node.value, node.low, node.high, node.missing_low) for node in file.nodes]
    feature, value, low, high, missing_low = (np.array(column) for column in zip(*rows, strict=True))
    places = (np.array(file.roots, dtype=np.int64), feature.astype(np.int64))
    return TreeFunction(len(file.features), *places, value.astype(np.float64), low, high, missing_low)


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


def _stump_function(rows: list[StepFeature]) -> StumpFunction:
    """Return the steps as stumps; what a feature adds below all its thresholds is the same for all documents."""
    feature = np.repeat(np.arange(len(rows)), [len(row.thresholds) for row in rows])
    threshold = np.array([value for row in rows for value in row.thresholds], dtype=np.float64)
    weight = np.concatenate([np.diff(row.scores) for row in rows])
    return StumpFunction(len(rows), feature, threshold, weight)


class OwnJson(Target):
    """The formats as a target; `toprank export` also takes such a file as its model."""

    name = "json"
    settings = frozenset({"shift"})
    prepares = frozenset({"log", "query", "standard", "+rank", "+minmax", "+standard", "ramps", "steps"})
    marks = re.compile(rb'"format"\s*:\s*"(toprank-(?:linear|stumps|trees|additive))"')
    file = "a file of toprank"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the file."""
        name = model_name(model, settings)
        shifted = replace(model, offset=model.offset + (settings.shift or 0.0))
        return Artifact(encode(shifted, name), name, (f"{model.rule.words}: the file says so",))

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the score as a careful reader would compute it."""
        model, file = decode(content, path), _checked(content, path)
        names, rule = tuple(row.name for row in file.features), f"float64; {model.rule.words}"
        like: Replica
        if isinstance(file, AdditiveFile):
            curves = tuple(curves_of(model, "json"))
            like = CurvesReplica(names, curves, rule, file.offset, model.rule.fill)
        else:
            like = _replica(model, names, file, rule)
        if file.prepare:
            return PreparedReplica(names, tuple(file.prepare), like, model.rule.fill, rule)
        return like


def _replica(model: Model, names: tuple[str, ...], file: Any, rule: str) -> Replica:
    fill, double = model.rule.fill, np.float64
    if isinstance(model.function, LinearFunction):
        return LinearReplica(names, model.weights, rule, double, double, fill=fill, start=model.offset)
    if isinstance(model.function, TreeFunction):
        roots = [_split(root) for root in forest_of(model)]
    else:
        roots = [_ladder(j, row) for j, row in enumerate(file.features)]
    return TreeReplica(names, roots, rule, double, double, fill, not model.rule.native, file.offset)


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
