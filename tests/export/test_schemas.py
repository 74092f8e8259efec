"""The published schemas hold for every file that we write."""

import json

import numpy as np
import pytest

import toprank as tr
from tests.export.models import linear_model
from toprank import rankers

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")

FAST = {
    "AdaRank": {"rounds": 3},
    "RankBoost": {"rounds": 3},
    "KernelSlamPerceptron": {"budget": 5, "epochs": 1},
    "SlamPerceptron": {"measure": tr.measure("ndcg@10"), "eta": "sqrt:0.1"},
    "ListMLE": {"transform": tr.surrogates.Sigmoid(2.0), "missing": "zero"},
}


def validator(kind):
    content = tr.export.schema(kind)
    jsonschema.Draft202012Validator.check_schema(content)
    return jsonschema.Draft202012Validator(content)


@pytest.mark.parametrize("name", rankers.__all__)
def test_every_model_file_follows_the_schema(tmp_path, name):
    data = tr.datasets.make_graded(n_queries=6, n_docs=(4, 8), n_features=3, n_grades=2, random_state=0)
    getattr(rankers, name)(**FAST.get(name, {})).fit_queries(data).save(tmp_path / "model.json")
    file = json.loads((tmp_path / "model.json").read_text())
    check = validator("model")
    check.validate(file)
    assert file["params"]["missing"] == {"ListMLE": "zero", "BoostedTrees": "native"}.get(name, "error")
    for broken in ({**file, "extra": 1}, {**file, "n_features": 0}, {**file, "model": {"$value": "System"}}):
        assert not check.is_valid(broken)
    without_policy = {key: value for key, value in file["params"].items() if key != "missing"}
    assert not check.is_valid({**file, "params": without_policy})


@pytest.mark.parametrize("fill", [None, np.array([0.0, 2.5])])
@pytest.mark.parametrize("scaled", [False, True])
def test_linear_files_follow_the_schema(tmp_path, fill, scaled):
    scaler = {"center": np.zeros(2), "scale": np.ones(2)} if scaled else {}
    model = linear_model(("a", "b"), np.array([1.0, -2.0]), 0.5, fill, "x", **scaler)
    tr.export.write(model, tmp_path / "saved.json", "json")
    tr.export.write(model, tmp_path / "written.json", "json", shift=1.0)
    check = validator("linear")
    saved, written = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("saved", "written"))
    for file in (saved, written):
        check.validate(file)
    assert (saved["offset"], written["offset"]) == (0.5, 1.5)
    assert not check.is_valid({**saved, "missing": "refuse" if fill is not None else "fill", "offset": "0"})
    assert not check.is_valid({**saved, "features": []})
    if fill is None:
        assert not check.is_valid({**saved, "missing": "fill"})


@pytest.mark.parametrize("missing", ["error", "zero"])
def test_stump_files_follow_the_schema(tmp_path, missing):
    data = tr.datasets.make_graded(n_queries=12, n_features=3, random_state=0)
    ranker = tr.RankBoost(rounds=9, missing=missing).fit_queries(data)
    tr.export.write(ranker, tmp_path / "saved.json", "json")
    tr.export.write(ranker, tmp_path / "written.json", "json", shift=1.0)
    check = validator("stumps")
    saved, written = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("saved", "written"))
    for file in (saved, written):
        check.validate(file)
    assert (saved["offset"], written["offset"]) == (0.0, 1.0)
    assert not check.is_valid({**saved, "features": []})
    assert not check.is_valid({**saved, "format": "toprank-linear"})
    assert not validator("linear").is_valid(saved)
    first = saved["features"][0]
    assert not check.is_valid({**saved, "features": [{**first, "scores": []}]})
    assert not check.is_valid({**saved, "features": [{"name": "a", "thresholds": []}]})
    if missing == "error":
        assert not check.is_valid({**saved, "missing": "fill"})
