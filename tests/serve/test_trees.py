"""Boosted trees behind the server: the scores of the file, missing cells and relative features among them."""

from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from tests.serve.starting import NAMES, model, running
from toprank.rankers.persistence import parse_model


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("prepare", ["", "query"])
def test_trees_are_served_without_their_engine(
    engine: str, prepare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(engine)
    text = model(tr.BoostedTrees, engine=engine, rounds=5, prepare=prepare, params={"min_data_in_leaf": 2})
    monkeypatch.setitem(__import__("sys").modules, engine, None)
    X = np.array([[1.0, np.nan, 0.5], [0.2, 3.0, -1.0], [np.nan, -2.0, 0.1]])
    expected = parse_model(text, "the model").predict(X, qid=["q"] * 3)
    rows = [
        {"id": f"d{i}", "features": {name: None if np.isnan(x) else x for name, x in zip(NAMES, row, strict=True)}}
        for i, row in enumerate(X.tolist())
    ]
    with running(tmp_path, text) as server:
        told = server.post("/v1/rank", {"items": rows})
    scores = {one["id"]: one["score"] for one in told["items"]}
    assert [scores[f"d{i}"] for i in range(3)] == expected.tolist()
