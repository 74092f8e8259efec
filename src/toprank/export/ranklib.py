"""RankLib's text models: `feature:weight` pairs for linear scores, `feature:threshold:weight` for RankBoost, XML trees.

Features are numbered from 1. RankLib holds features in float32 and computes in float64 (trees: float32); a feature
without a value is 0, at the end of a row only under -missingZero. A tree goes left where x ≤ threshold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

import numpy as np

from .._version import __version__
from ..errors import InputError
from ..model import Model, StumpFunction, TreeFunction
from . import model_trees
from .lucene import missing_notes
from .model_trees import ModelSplit, Tree
from .replicas import LinearReplica, Replica, next_single
from .targets import Artifact, Settings, Target, model_name, policy_note
from .tree_replicas import EngineSplit, TreeReplica, float32_of

RULE = "float32 features, {sums} sums; a feature without a value is 0, with -missingZero at the end of a row too"
PLAIN, CONSTANT, BOOSTED, TREES = "Coordinate Ascent", "Linear Regression", "RankBoost", "LambdaMART"
"""The kinds of RankLib that score as our models do: w·x, w·x + c, weighted thresholds and trees."""


class RankLib(Target):
    """RankLib's own format, for its command line and for engines that read it."""

    name = "ranklib"
    settings = frozenset({"shift"})
    marks = re.compile(rb"\A## ")
    """The first line names the kind of model."""
    file = "a model of RankLib that can be verified here"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the model as text; comments give the names of the features and the missing-value policy."""
        constant = model.offset + (settings.shift or 0.0)
        if isinstance(model.function, TreeFunction):
            kind, notes, lines = TREES, *_trees(model, constant)
        elif isinstance(model.function, StumpFunction):
            if settings.shift:
                raise InputError("RankBoost in ranklib has no constant: leave shift out")
            kind = BOOSTED
            lines = [" ".join(f"{feature + 1}:{t!r}:{weight!r}" for feature, t, weight in model.function.thresholds)]
            notes = [policy_note(model, "RankLib takes 0", ", as RankLib has it")]
            if model.offset:
                notes.append(f"the constant {model.offset:+g} is left out: it changes no ranking")
        else:
            kind = CONSTANT if constant else PLAIN
            pairs = [f"0:{constant!r}"] if constant else []
            lines = [" ".join([*pairs, *(f"{j}:{w!r}" for j, w in enumerate(model.weights.tolist(), start=1))])]
            notes = missing_notes(model, "RankLib takes 0 for a feature without a value")
        text = [
            f"## {kind}",
            f"## Written by toprank {__version__} from {model.source}. In the model, {model.rule.words}.",
            *(f"## {j} = {json.dumps(name)}" for j, name in enumerate(model.names, start=1)),
            *lines,
        ]
        usage = (
            f"score with java -jar RankLib.jar -load FILE -rank DATA -score OUT -missingZero; RankLib calls the model "
            f"{kind}, and without -missingZero it stops at a row whose last features are absent; a RankLib without "
            "that option wants them written as 0"
        )
        return Artifact(("\n".join(text) + "\n").encode(), model_name(model, settings), (usage, *notes))

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the model as RankLib scores with it."""
        first, *rest = (line.strip() for line in content.decode().split("\n"))
        kind = first.removeprefix("## ")
        body = [line for line in rest if line and not line.startswith("##")]
        if kind == TREES:
            return _forest("".join(body))
        line = body[0] if body else ""
        parts = [pair.split(":") for pair in line.rpartition(" #")[0 if " #" in line else 2].split()]
        if kind == BOOSTED:
            return _boosted([(int(f) - 1, float(t), float(w)) for f, t, w in parts])
        if kind not in (PLAIN, CONSTANT):
            raise ValueError(f"a model of the kind {kind!r} cannot be verified here")
        pairs = {int(key): float(value) for key, value in parts}
        start = pairs.pop(0, 0.0) if kind == CONSTANT else 0.0
        if sorted(pairs) != list(range(1, len(pairs) + 1)) or not pairs:
            raise ValueError("the features are not numbered 1, 2, …")
        weights = np.array([pairs[j] for j in sorted(pairs)])
        if not np.isfinite(weights).all() or not np.isfinite(start):
            raise InputError(f"{path} has a weight that is not a number")
        rule, zeros = RULE.format(sums="float64"), np.zeros(len(weights))
        return LinearReplica(None, weights, rule, np.float32, np.float64, fill=zeros, start=start, width=len(weights))


def _boosted(thresholds: list[tuple[int, float, float]]) -> TreeReplica:
    if not thresholds or min(feature for feature, _, _ in thresholds) < 0:
        raise ValueError("features are numbered from 1")
    width = 1 + max(feature for feature, _, _ in thresholds)
    features, limits, weights = (np.array(column) for column in zip(*thresholds, strict=True))
    StumpFunction(width, features, limits, weights)  # refuses numbers that are not finite
    roots = [EngineSplit(feature, threshold, threshold, 0.0, weight) for feature, threshold, weight in thresholds]
    rule = RULE.format(sums="float64")
    return TreeReplica(None, roots, rule, np.float32, np.float64, np.zeros(width), width=width)


def _trees(model: Model, constant: float) -> tuple[list[str], list[str]]:
    """Return what to know, and the ensemble with one line for each element."""
    roots, notes = model_trees.single_forest(model, model_trees.single_below, constant)
    other = [model.names[j] for j, value in model_trees.stand_in(model, roots, "RankLib").items() if value]
    if other:
        raise InputError(
            f"RankLib takes 0 for a missing value, and the trees send one of {other[0]!r} where 0 does not go: say "
            'missing="zero" (--missing zero) if it is 0 for you, or missing="error" if there is none'
        )
    lines = ["<ensemble>"]
    for number, root in enumerate([*roots, constant] if constant else roots, start=1):
        lines += [f'<tree id="{number}" weight="1.0">', "<split>", *_lines(root), "</split>", "</tree>"]
    refused = model.rule.fill is None and not model.rule.native
    policy = f"{model.rule.words}{' by the model' if refused else ''}; RankLib takes 0"
    return [*notes, policy], [*lines, "</ensemble>"]


def _lines(node: Tree) -> Iterator[str]:
    if not isinstance(node, ModelSplit):
        yield f"<output>{model_trees.nearest_single(node)!r}</output>"
        return
    yield f"<feature>{node.feature + 1}</feature>"
    yield f"<threshold>{model_trees.finite_in_single(node.threshold)!r}</threshold>"
    for pos, branch in (("left", node.low), ("right", node.high)):
        yield f'<split pos="{pos}">'
        yield from _lines(branch)
        yield "</split>"


def _forest(text: str) -> TreeReplica:
    roots, used = [], [0]
    for tree in ElementTree.fromstring(text):
        if float(tree.attrib.get("weight", "0")) != 1:
            raise ValueError("a tree has a weight other than 1")
        roots.append(_parsed(tree[0], used))
    if not roots:
        raise ValueError("there is no tree")
    width = max(used)
    rule = RULE.format(sums="float32")
    return TreeReplica(None, roots, rule, np.float32, np.float32, np.zeros(width), width=width)


def _parsed(element: ElementTree.Element, used: list[int]) -> EngineSplit | float:
    parts = {child.tag if child.tag != "split" else child.attrib["pos"]: child for child in element}
    if "output" in parts:
        return float32_of(parts["output"].text or "")
    if set(parts) != {"feature", "threshold", "left", "right"}:
        raise ValueError("a split lacks its feature, its threshold or a branch")
    feature, last = int(parts["feature"].text or ""), float32_of(parts["threshold"].text or "")
    if feature < 1:
        raise ValueError("features are numbered from 1")
    used.append(feature)
    low, high = (_parsed(parts[pos], used) for pos in ("left", "right"))
    return EngineSplit(feature - 1, last, next_single(last, np.inf), low, high)
