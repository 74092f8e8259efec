"""Weights that are rounding of a solver ask nothing of an engine, and where they matter verify says so."""

import numpy as np
import pytest

import toprank as tr
from toprank.export.writing import NEGLIGIBLE
from toprank.model import Inputs, LinearFunction, Model

NAMES = ("bm25", "clicks", "age")


def model(weight):
    return Model(LinearFunction(np.array([0.7, weight, -0.2])), Inputs(3, NAMES), "ListNet")


def queries(scale=1.0):
    made = tr.datasets.make_graded(n_queries=12, n_docs=6, n_features=3, random_state=0)
    return tr.QueryDataset.from_arrays(made.X * [1.0, scale, 1.0], made.y, made.qid, feature_names=NAMES)


@pytest.mark.parametrize("to", tr.export.TARGETS)
def test_a_weight_of_rounding_is_an_exact_zero_and_told(tmp_path, to):
    if to == "onnx":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    done = tr.export.write(model(-1e-14), tmp_path / "file", to)
    told = [note for note in done.notes if "written as 0: clicks; run verify-export" in note]
    assert len(told) == 1
    assert f"{NEGLIGIBLE:g}" in told[0]
    assert b"e-14" not in (tmp_path / "file").read_bytes()
    assert b"e-15" not in (tmp_path / "file").read_bytes()
    assert tr.export.verify(model(-1e-14), tmp_path / "file", queries(), to=to).agrees
    kept = tr.export.write(model(-1e-11), tmp_path / "kept", to)
    assert not any("written as 0" in note for note in kept.notes)


@pytest.mark.parametrize("to", ["elasticsearch", "sql", "lucene-expression"])
def test_an_engine_is_not_asked_for_the_feature(tmp_path, to):
    tr.export.write(model(-1e-14), tmp_path / "file", to)
    assert "clicks" not in (tmp_path / "file").read_text()
    tr.export.write(model(-1e-3), tmp_path / "file", to)
    assert "clicks" in (tmp_path / "file").read_text()


def test_verify_says_where_such_a_weight_matters(tmp_path):
    tr.export.write(model(-1e-14), tmp_path / "file", "json")
    assert not tr.export.verify(model(-1e-14), tmp_path / "file", queries(1e15)).agrees
