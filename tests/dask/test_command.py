"""`toprank fit --dask`: the same model file, with a cluster that is there or made for it."""

import json

import pytest

import toprank as tr
from toprank import objective

from ..cli.calling import fail, run
from .conftest import judged


def test_fit_on_a_cluster_writes_the_same_model(client, tmp_path, capsys):
    data = judged(40, feature_names=list("abcdef"))
    for i, part in enumerate((data[:20], data[20:])):
        tr.write_parquet(part, tmp_path / f"train{i}.parquet")
    tr.write_parquet(data, tmp_path / "whole.parquet")
    tr.write_letor(judged(20, seed=3), tmp_path / "train.txt")
    address, files = client.scheduler_info()["address"], str(tmp_path / "train*.parquet")
    seen = []
    with objective.watched(lambda count, value: seen.append((count, value))):
        there = run(capsys, "fit", files, "--dask", address, "-o", str(tmp_path / "far.json"), "--json")
    assert [count for count, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][1] < seen[0][1]
    here = run(capsys, "fit", str(tmp_path / "whole.parquet"), "-o", str(tmp_path / "here.json"), "--json")
    assert json.loads(there)["means"] == json.loads(here)["means"]
    assert (tmp_path / "far.json").read_text() == (tmp_path / "here.json").read_text()
    run(capsys, "fit", str(tmp_path / "train.txt"), "--dask", address, "-o", str(tmp_path / "text.json"))
    assert not [key for keys in client.processing().values() for key in keys]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("local:none", "write local:2 for two processes"),
        ("tcp://127.0.0.1:1", "no cluster answers there"),
        ("local:1", "no file is named"),
    ],
)
def test_bad_input_is_one_line(tmp_path, address, message, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = fail(capsys, "fit", "a*.parquet", "--dask", address, "-o", "a.json")
    assert message in told
    assert len(told.strip().splitlines()) == 1
