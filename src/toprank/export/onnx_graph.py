"""ONNX: one Gemm or TreeEnsembleRegressor, and before it IsNaN and Where when the model fills in missing values.

Input `features` (float32, documents × features), output `scores` (documents × 1). The metadata have the names of the
features and the missing-value policy. A tree goes to its first branch where x ≤ threshold, in float32; NaN does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats, Ints
from .._version import __version__
from ..errors import InputError, needed
from ..model import LinearFunction, Model
from . import model_trees
from .model_trees import ModelSplit, Tree
from .replicas import SLACK, LinearReplica, Replica, next_single, unit_roundoff
from .targets import Artifact, Settings, Target, model_name, single_precision_notes
from .tree_replicas import EngineSplit, TreeReplica

MISSING = "missing_value_tracks_true"
OPSET, ML_OPSET, IR_VERSION = 13, 1, 8
"""Old enough for runtimes of years ago: Gemm, IsNaN, Where and TreeEnsembleRegressor are there since."""


@dataclass(frozen=True, eq=False)
class OnnxReplica(Replica):
    """The graph, run by onnxruntime; `like` is its arithmetic, for the bound on rounding alone."""

    names: tuple[str, ...] | None
    session: Any
    like: LinearReplica | TreeReplica
    engine: str
    logs: int = 0
    """How many logarithms stand before the sum."""
    rule: str = "float32"

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return what onnxruntime returns."""
        with np.errstate(over="ignore"):
            feed = {self.session.get_inputs()[0].name: X.astype(np.float32)}
        return np.asarray(self.session.run(None, feed)[0], dtype=np.float64).reshape(-1)

    def rounding(self, X: Floats) -> Floats:
        """Return the bound for a float32 sum in any order; log(1 + |x|) rounds like a number of size 1."""
        if not isinstance(self.like, LinearReplica) or not self.logs:
            return self.like.rounding(X)
        filled = X if self.like.fill is None else np.where(np.isnan(X), self.like.fill, X)
        for _ in range(self.logs):
            filled = np.sign(filled) * np.log1p(np.abs(filled))
        ones = SLACK * self.logs * unit_roundoff(np.float32) * float(np.abs(self.like.weights).sum())
        return self.like.rounding(filled) + ones

    def doubtful(self, X: Floats) -> int | None:
        """Return how many values rounding may have moved across a threshold."""
        return self.like.doubtful(X)


class Onnx(Target):
    """ONNX files."""

    name = "onnx"
    settings = frozenset({"shift"})
    prepares = frozenset({"log"})
    marks = re.compile(rb"\A\x08")
    """The field tag of the IR version, with which these files begin and no text does."""
    file = "an ONNX model as toprank writes it"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the graph as bytes."""
        onnx = needed("onnx", "ONNX")
        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        name, width = model_name(model, settings), len(model.names)
        constants: dict[str, Floats] = {}
        nodes, entry = [], "features"
        if model.rule.fill is not None:
            constants["fill"] = model.rule.fill[None, :]
            nodes = [
                helper.make_node("IsNaN", ["features"], ["gaps"]),
                helper.make_node("Where", ["gaps", "fill", "features"], ["filled"]),
            ]
            entry = "filled"
        steps = model.inputs.words
        if steps and not isinstance(model.function, LinearFunction):
            raise InputError(
                f"onnx takes logarithms in float32, which can move a value across a threshold of {model.source}: fit "
                "it without them, since thresholds need no scaling"
            )
        for step in range(len(steps)):
            constants["one"] = np.ones(1)
            size, more, log, sign, made = (f"{part}_{step}" for part in ("size", "more", "log", "sign", "prepared"))
            nodes += [
                helper.make_node("Abs", [entry], [size]),
                helper.make_node("Add", [size, "one"], [more]),
                helper.make_node("Log", [more], [log]),
                helper.make_node("Sign", [entry], [sign]),
                helper.make_node("Mul", [sign, log], [made]),
            ]
            entry = made
        constant = model.offset + (settings.shift or 0.0)
        if isinstance(model.function, LinearFunction):
            notes = single_precision_notes(model.names, model.weights)
            constants |= {"weights": model.weights[:, None], "constant": np.array([constant])}
            nodes.append(helper.make_node("Gemm", [entry, "weights", "constant"], ["scores"]))
        else:
            roots, notes = model_trees.single_forest(model, model_trees.single_below, constant)
            trees = {**_attributes(roots), "base_values": [model_trees.nearest_single(constant)]}
            nodes.append(helper.make_node("TreeEnsembleRegressor", [entry], ["scores"], domain="ai.onnx.ml", **trees))
        graph = helper.make_graph(
            nodes,
            name,
            [helper.make_tensor_value_info("features", kind, ["documents", width])],
            [helper.make_tensor_value_info("scores", kind, ["documents", 1])],
            [onnx.numpy_helper.from_array(value.astype(np.float32), key) for key, value in constants.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        if not isinstance(model.function, LinearFunction):
            opsets.append(helper.make_opsetid("ai.onnx.ml", ML_OPSET))
        made = helper.make_model(graph, producer_name="toprank", producer_version=__version__, opset_imports=opsets)
        made.ir_version = IR_VERSION
        metadata = {
            "feature_names": json.dumps(model.names, ensure_ascii=False),
            "missing": model.rule.words,
            "source": model.source,
        }
        helper.set_model_props(made, metadata)
        onnx.checker.check_model(made)
        interface = "input features (float32, documents × features), output scores (documents × 1)"
        gap = (
            "NaN gives NaN"
            if isinstance(model.function, LinearFunction)
            else "NaN goes some way or other, so give none"
        )
        how = "NaN in the input does" if model.rule.native else "IsNaN and Where in the graph"
        rule = f"{model.rule.words}: " + (gap if model.rule.fill is None and not model.rule.native else how)
        return Artifact(made.SerializeToString(deterministic=True), name, (interface, rule, *notes))

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the graph in onnxruntime."""
        onnx = needed("onnx", "ONNX")
        onnxruntime = needed("onnxruntime", "verifying ONNX")
        engine = f"run by onnxruntime {onnxruntime.__version__}"
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 4
        try:
            model = onnx.load_from_string(content)
            session = onnxruntime.InferenceSession(content, quiet, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a dozen kinds of its own, without a base
            raise InputError(f"{path} is not an ONNX model that onnxruntime can run: {error}") from None
        found = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        about = {item.key: item.value for item in model.metadata_props}
        names = tuple(str(name) for name in json.loads(about["feature_names"]))
        fill = found["fill"].astype(np.float64).reshape(-1) if "fill" in found else None
        last = model.graph.node[-1]
        if last.op_type == "TreeEnsembleRegressor":
            options = {item.name: onnx.helper.get_attribute_value(item) for item in last.attribute}
            end = float(options["base_values"][0])
            trees = TreeReplica(names, _roots(options), "float32", np.float32, np.float32, fill, end=end)
            return OnnxReplica(names, session, trees, engine)
        weights = found["weights"].astype(np.float64).reshape(-1)
        constant = float(found["constant"].reshape(-1)[0])
        if len(names) != len(weights):
            raise InputError(f"{path} names {len(names)} features for {len(weights)} weights")
        like = LinearReplica(names, weights, "float32", np.float32, np.float32, fill=fill, end=constant)
        logs = sum(node.op_type == "Log" for node in model.graph.node)
        return OnnxReplica(names, session, like, engine, logs)


def _attributes(roots: Sequence[Tree]) -> dict[str, Any]:
    """Return trees as the lists of a TreeEnsembleRegressor."""
    rows: list[tuple[int, int, int, str, float, int, int, int]] = []
    tips: list[tuple[int, int, int, float]] = []
    for tree, root in enumerate(roots):
        nodes = [root]
        for place, node in enumerate(nodes):  # grows while it is read: children get the next numbers
            if isinstance(node, ModelSplit):
                first, second = len(nodes), len(nodes) + 1
                nodes += [node.low, node.high]
                threshold = model_trees.finite_in_single(node.threshold)
                rows.append((tree, place, node.feature, "BRANCH_LEQ", threshold, first, second, int(node.missing_low)))
            else:
                rows.append((tree, place, 0, "LEAF", 0.0, 0, 0, 0))
                tips.append((tree, place, 0, model_trees.nearest_single(node)))
    keys = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", MISSING)
    named = {f"nodes_{key}": [row[i] for row in rows] for i, key in enumerate(keys)}
    targets = ("treeids", "nodeids", "ids", "weights")
    return {**named, **{f"target_{key}": [tip[i] for tip in tips] for i, key in enumerate(targets)}, "n_targets": 1}


def _roots(options: Mapping[str, Any]) -> list[EngineSplit | float]:
    """Return the trees of a TreeEnsembleRegressor as the specification reads them."""
    place = {key: i for i, key in enumerate(zip(options["nodes_treeids"], options["nodes_nodeids"], strict=True))}
    tips = {}
    for tree, node, weight in zip(
        options["target_treeids"], options["target_nodeids"], options["target_weights"], strict=True
    ):
        tips[tree, node] = float(weight)
    modes = [mode.decode() for mode in options["nodes_modes"]]
    if set(modes) - {"BRANCH_LEQ", "LEAF"}:
        raise ValueError("a tree compares otherwise than with ≤")

    def built(tree: int, node: int, depth: int) -> EngineSplit | float:
        if depth > 500:
            raise ValueError("a tree has no end")
        i = place[tree, node]
        if modes[i] == "LEAF":
            return tips[tree, node]
        low = built(tree, options["nodes_truenodeids"][i], depth + 1)
        high = built(tree, options["nodes_falsenodeids"][i], depth + 1)
        last = float(options["nodes_values"][i])
        tracks = options.get(f"nodes_{MISSING}") or [0] * len(modes)
        first = next_single(last, np.inf)
        return EngineSplit(options["nodes_featureids"][i], last, first, low, high, bool(tracks[i]))

    children = {
        (tree, child)
        for tree, mode, *pair in zip(
            options["nodes_treeids"], modes, options["nodes_truenodeids"], options["nodes_falsenodeids"], strict=True
        )
        for child in pair
        if mode != "LEAF"
    }
    return [built(tree, node, 0) for tree, node in place if (tree, node) not in children]
