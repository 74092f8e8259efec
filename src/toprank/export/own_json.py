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
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
import numpy as np

from .._version import __version__
from ..errors import InputError
from ..rankers.models import StumpModel, TreeModel
from .replicas import LinearReplica, PreparedReplica, Replica
from .scorers import Linear, Prepared, Scorer, Step, Stumps, Trees
from .targets import Artifact, Settings, Target, model_name, to_json
from .tree_replicas import Split, TreeReplica, side
from .trees import Cut, Tree, forest_of, steps_of

LINEAR, STUMPS, TREES = "toprank-linear", "toprank-stumps", "toprank-trees"
FORMATS = (LINEAR, STUMPS, TREES)
VERSION = 1

_Kind = TypeVar("_Kind", "LinearFile", "StumpsFile", "TreesFile")


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


class StepFeature(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One feature: a value adds scores[number of thresholds below it]; `missing` stands in where it has none."""

    name: str
    thresholds: list[float]
    scores: list[float]
    missing: float | None = None


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


def encode(scorer: Scorer, name: str | None = None) -> bytes:
    """Return a scorer as JSON."""
    prepare: dict[str, Any] = {}
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
    return to_json({**head, **about, "missing": policy, "offset": scorer.offset, **prepare, **body})


def _tree_rows(trees: Trees) -> dict[str, Any]:
    model = trees.model
    columns = (model.value, model.feature, model.low, model.high, model.missing_low)
    nodes = [Node(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    fills = [None] * len(trees.names) if trees.fill is None else trees.fill.tolist()
    features = [TreeFeature(name, fill) for name, fill in zip(trees.names, fills, strict=True)]
    return msgspec.to_builtins({"features": features, "roots": model.root.tolist(), "nodes": nodes})  # type: ignore[no-any-return]


def _linear_rows(linear: Linear) -> list[dict[str, object]]:
    columns = [linear.weights, linear.fill, linear.center, linear.scale]
    return [
        {
            "name": feature,
            **{
                key: float(column[j])
                for key, column in zip(("weight", "missing", "center", "scale"), columns, strict=True)
                if column is not None
            },
        }
        for j, feature in enumerate(linear.names)
    ]


def _stump_rows(stumps: Stumps) -> list[dict[str, object]]:
    used = {step.feature: (list(step.thresholds), list(step.heights)) for step in steps_of(stumps)}
    rows = []
    for j, feature in enumerate(stumps.names):
        thresholds, scores = used.get(j, ([], [0.0]))
        fill = {} if stumps.fill is None else {"missing": float(stumps.fill[j])}
        rows.append({"name": feature, **fill, "thresholds": thresholds, "scores": scores})
    return rows


def decode(content: bytes, path: Path | str) -> Linear | Stumps | Trees | Prepared:
    """Return the scorer of a file, with the preparation of its features where it has one."""
    inner, prepare = _decoded(content, path)
    return Prepared(replace(inner, fill=None), tuple(prepare), inner.fill) if prepare else inner


def _decoded(content: bytes, path: Path | str) -> tuple[Linear | Stumps | Trees, list[Step]]:
    kind = recognized(content)
    file: LinearFile | StumpsFile | TreesFile
    if kind == TREES:
        file = _checked(content, path, TreesFile, TREES)
    else:
        file = _stumps_file(content, path) if kind == STUMPS else _checked(content, path, LinearFile, LINEAR)
    rows = file.features
    names = tuple(row.name for row in rows)
    fill = np.array([row.missing for row in rows], dtype=np.float64) if file.missing == "fill" else None
    try:
        if isinstance(file, TreesFile):
            gaps: Literal["follow", "refuse"] = "follow" if file.missing == "follow" else "refuse"
            return Trees(names, _tree_model(file), fill, file.source, file.offset, gaps), file.prepare
        if isinstance(file, StumpsFile):
            base = sum(row.scores[0] for row in file.features)
            return Stumps(names, _stump_model(file.features), fill, file.source, file.offset + base), file.prepare
        scaled = [row.center is not None and row.scale is not None for row in file.features]
        if any(scaled) and not all(scaled):
            raise InputError("either every feature has center and scale, or none")
        linear = Linear(
            names,
            np.array([row.weight for row in file.features]),
            file.offset,
            fill,
            file.source,
            np.array([row.center for row in file.features], dtype=np.float64) if any(scaled) else None,
            np.array([row.scale for row in file.features], dtype=np.float64) if any(scaled) else None,
        )
        return linear, file.prepare
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def recognized(content: bytes) -> str | None:
    """Return the format that a file says it has, if it is one of ours."""
    found = re.search(rb'"format"\s*:\s*"(toprank-linear|toprank-stumps|toprank-trees)"', content)
    return None if found is None else found[1].decode()


def _tree_model(file: TreesFile) -> TreeModel:
    rows = [(node.feature, node.value, node.low, node.high, node.missing_low) for node in file.nodes]
    feature, value, low, high, missing_low = (np.array(column) for column in zip(*rows, strict=True))
    places = (np.array(file.roots, dtype=np.int64), feature.astype(np.int64))
    return TreeModel(len(file.features), *places, value.astype(np.float64), low, high, missing_low)


def _stumps_file(content: bytes, path: Path | str) -> StumpsFile:
    file = _checked(content, path, StumpsFile, STUMPS)
    for row in file.features:
        if len(row.scores) != len(row.thresholds) + 1:
            raise InputError(f"{path}: {row.name!r} needs one score more than thresholds")
        if not all(np.diff(row.thresholds) > 0):
            raise InputError(f"{path}: the thresholds of {row.name!r} are not in rising order")
    return file


def _checked(content: bytes, path: Path | str, kind: type[_Kind], named: str) -> _Kind:
    try:
        file = msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a {named} file: {error}") from None
    if file.format != named or file.version != VERSION:
        raise InputError(f"{path} is {file.format!r} version {file.version}; this toprank reads {named!r} {VERSION}")
    if file.missing == "fill" and any(row.missing is None for row in file.features):
        raise InputError(f"{path}: every feature needs a value for missing ones, since $.missing is 'fill'")
    if not file.features or (isinstance(file, TreesFile) and not file.nodes):
        raise InputError(f"{path} has no features" + ("" if not file.features else " that a tree looks at"))
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
    settings: ClassVar[frozenset[str]] = frozenset({"shift"})
    prepares: ClassVar[frozenset[str]] = frozenset({"log", "minmax", "standard"})

    def encode(self, scorer: Linear | Stumps | Trees | Prepared, settings: Settings) -> Artifact:
        """Return the file."""
        name, constant = model_name(scorer, settings), scorer.offset + (settings.shift or 0.0)
        if isinstance(scorer, Prepared):
            shifted: Scorer = replace(scorer, inner=replace(scorer.inner, offset=constant))
        else:
            shifted = replace(scorer, offset=constant)
        return Artifact(encode(shifted, name), name, (f"{scorer.missing}: the file says so",))

    def recognizes(self, content: bytes) -> bool:
        """Look for the format."""
        return recognized(content) is not None

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the score as a careful reader would compute it."""
        scorer, prepare = _decoded(content, place)
        rule = f"float64; {scorer.missing}"
        if prepare:
            like = self._replica(replace(scorer, fill=None), content, place, rule)
            return PreparedReplica(scorer.names, tuple(prepare), like, scorer.fill, rule)
        return self._replica(scorer, content, place, rule)

    def _replica(self, scorer: Linear | Stumps | Trees, content: bytes, place: str, rule: str) -> Replica:
        if isinstance(scorer, Linear):
            return LinearReplica(
                scorer.names, scorer.weights, rule, np.float64, np.float64, fill=scorer.fill, start=scorer.offset
            )
        if isinstance(scorer, Trees):
            roots = [_split(root) for root in forest_of(scorer)]
            refuses = not scorer.follows
            return TreeReplica(scorer.names, roots, rule, np.float64, np.float64, scorer.fill, refuses, scorer.offset)
        file = _stumps_file(content, place)
        roots = [_ladder(j, row) for j, row in enumerate(file.features)]
        return TreeReplica(scorer.names, roots, rule, np.float64, np.float64, scorer.fill, True, file.offset)


def _split(node: Tree) -> Split | float:
    if not isinstance(node, Cut):
        return node
    low, high = _split(node.low), _split(node.high)
    first = math.nextafter(node.threshold, math.inf)
    return Split(node.feature, node.threshold, first, low, high, side(node.missing_low))


def _ladder(feature: int, row: StepFeature) -> Split | float:
    """Return one comparison after the other, from the highest threshold down."""
    root: Split | float = row.scores[0]
    for threshold, score in zip(row.thresholds, row.scores[1:], strict=True):
        root = Split(feature, threshold, math.nextafter(threshold, math.inf), root, score)
    return root
