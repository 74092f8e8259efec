"""`toprank fit --dask`: the same model file, with a cluster that is there or made for it."""

import gc
import json
import signal
import subprocess
import sys

import pytest

import toprank as tr
from toprank import objective

from ..cli.calling import fail, run
from .conftest import judged, until


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
    ("ranker", "message"),
    [("PermuRank", "PermuRank: all rows of X are needed"), ("SlamPerceptron", "shuffle=True needs all lists")],
)
def test_a_ranker_that_needs_all_rows_is_refused_before_anything_is_read(
    ranker, message, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)  # neither the files nor the cluster are there: nobody looked
    told = fail(capsys, "fit", "none*.parquet", "--dask", "tcp://127.0.0.1:1", "--ranker", ranker, "-o", "a.json")
    assert message in told


def held(client):
    """What the cluster holds or does for us."""
    kept = [str(key) for keys in (client.has_what(), client.processing()) for each in keys.values() for key in each]
    return [key for key in kept if "toprank" in key]


def test_an_interrupt_leaves_the_cluster_clean(client, tmp_path):
    tr.write_parquet(judged(400, features=20), tmp_path / "train.parquet")
    gc.collect()
    address = client.scheduler_info()["address"]
    command = [sys.executable, "-m", "toprank", "fit", "train.parquet", "--dask", address, "-o", "a.json"]
    endless = ["--ranker", "ListNet", "-p", "tol=1e-300", "-p", "alpha=1e-12", "-p", "max_iter=10000000"]
    process = subprocess.Popen([*command, *endless], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: any("reduce" in key for key in held(client)) or process.poll() is not None)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in told
    assert process.returncode not in (0, -signal.SIGKILL)
    assert not (tmp_path / "a.json").exists()
    until(lambda: not held(client))


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
