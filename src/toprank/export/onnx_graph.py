"""ONNX: one Gemm, and before it IsNaN and Where when the model has values for missing ones.

Input `features` (float32, documents × features), output `scores` (documents × 1). The metadata have the names of the
features and the missing-value policy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._typing import Floats
from .._version import __version__
from ..errors import InputError, MissingExtraError
from .replicas import LinearReplica, Replica
from .scorers import Linear
from .targets import Artifact, Settings, Target, model_name, single_precision_notes

OPSET, IR_VERSION = 13, 8
"""Old enough for runtimes of years ago: Gemm, IsNaN and Where have not changed since."""


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", extra="onnx", purpose="ONNX") from None
    return onnx


@dataclass(frozen=True, eq=False)
class OnnxReplica(Replica):
    """The graph, run by onnxruntime; `like` is its arithmetic, for the bound on rounding."""

    names: tuple[str, ...] | None
    session: Any
    like: LinearReplica
    rule: str = "float32 in onnxruntime"

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return self.like.n_features

    def score_rows(self, X: Floats) -> Floats:
        """Return what onnxruntime returns."""
        with np.errstate(over="ignore"):
            feed = {self.session.get_inputs()[0].name: X.astype(np.float32)}
        return np.asarray(self.session.run(None, feed)[0], dtype=np.float64).reshape(-1)

    def rounding(self, X: Floats) -> Floats:
        """Return the bound for a float32 dot product in any order."""
        return self.like.rounding(X)


class Onnx(Target):
    """ONNX files."""

    name = "onnx"
    settings: ClassVar[frozenset[str]] = frozenset({"shift"})

    def encode(self, scorer: Linear, settings: Settings) -> Artifact:
        """Return the graph as bytes."""
        onnx = _onnx()
        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        name, width = model_name(scorer, settings), len(scorer.names)
        notes = single_precision_notes(scorer)
        constants = {"weights": scorer.weights[:, None], "constant": np.array([scorer.offset + settings.shift])}
        nodes, entry = [], "features"
        if scorer.fill is not None:
            constants["fill"] = scorer.fill[None, :]
            nodes = [
                helper.make_node("IsNaN", ["features"], ["gaps"]),
                helper.make_node("Where", ["gaps", "fill", "features"], ["filled"]),
            ]
            entry = "filled"
        nodes.append(helper.make_node("Gemm", [entry, "weights", "constant"], ["scores"]))
        graph = helper.make_graph(
            nodes,
            name,
            [helper.make_tensor_value_info("features", kind, ["documents", width])],
            [helper.make_tensor_value_info("scores", kind, ["documents", 1])],
            [onnx.numpy_helper.from_array(value.astype(np.float32), key) for key, value in constants.items()],
        )
        model = helper.make_model(graph, producer_name="toprank", producer_version=__version__)
        model.ir_version = IR_VERSION
        model.opset_import[0].version = OPSET
        metadata = {
            "feature_names": json.dumps(scorer.names, ensure_ascii=False),
            "missing": scorer.missing,
            "source": scorer.source,
        }
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        told = "input features (float32, documents × features), output scores (documents × 1)"
        rule = f"{scorer.missing}: " + ("NaN gives NaN" if scorer.fill is None else "IsNaN and Where in the graph")
        return Artifact(model.SerializeToString(deterministic=True), name, (told, rule, *notes))

    def recognizes(self, content: bytes) -> bool:
        """Look for the field tag of the IR version, with which these files begin and no text does."""
        return content.startswith(b"\x08")

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the graph in onnxruntime."""
        onnx = _onnx()
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtraError("onnxruntime", extra="onnx", purpose="verifying ONNX") from None
        from google.protobuf.message import DecodeError
        from onnxruntime.capi import onnxruntime_pybind11_state as errors

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            model = onnx.load_from_string(content)
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            found = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
            about = {item.key: item.value for item in model.metadata_props}
            names = tuple(str(name) for name in json.loads(about["feature_names"]))
            weights = found["weights"].astype(np.float64).reshape(-1)
            constant = float(found["constant"].reshape(-1)[0])
            fill = found["fill"].astype(np.float64).reshape(-1) if "fill" in found else None
        except (DecodeError, errors.InvalidProtobuf, errors.Fail, errors.InvalidGraph, errors.NotImplemented) as error:
            raise InputError(f"{place} is not an ONNX model that onnxruntime can run: {error}") from None
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise InputError(f"{place} is not an ONNX model as toprank writes it: {error}") from None
        if len(names) != len(weights):
            raise InputError(f"{place} names {len(names)} features for {len(weights)} weights")
        like = LinearReplica(names, weights, "float32", np.float32, np.float32, fill=fill, end=constant)
        return OnnxReplica(names, session, like)
