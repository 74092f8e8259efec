"""What a command does not need is not loaded: scoring a model file takes a reader and a model, no estimator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from toprank.demo.features import FEATURES
from toprank.demo.job import Library
from toprank.demo.memory import remember
from toprank.rankers.persistence import parse_model

HEAVY = {"sklearn", "pandas", "narwhals", "pyarrow", "scipy.stats", "scipy.optimize", "scipy.sparse", "rich", "joblib"}

CODE = """
import json, sys
from toprank.cli import cli
cli.main(args=sys.argv[1:], standalone_mode=False)
print(json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> set[str]:
    """Return the modules that a fresh process has at the end of a command."""
    done = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder: Path = tmp_path_factory.mktemp("light")
    data = tr.datasets.make_graded(n_queries=5, random_state=0)
    tr.write_letor(data, folder / "data.txt")
    tr.ListNet().fit_queries(data).save(folder / "model.json")
    return str(folder / "model.json"), str(folder / "data.txt")


@pytest.mark.parametrize("command", ["info", "evaluate", "rank"])
def test_no_estimator_is_loaded_to_score(command, files):
    model, data = files
    found = loaded(command, *([data] if command == "info" else [model, data]))
    assert "numba" in found  # so the command really ran here
    assert not found & HEAVY


@pytest.mark.parametrize("prepare", ["", "log,query"])
def test_a_model_file_scores_as_its_ranker_does(prepare, tmp_path):
    data = tr.datasets.make_graded(n_queries=5, random_state=0)
    ranker = tr.ListNet(prepare=prepare).fit_queries(data)
    ranker.save(tmp_path / "model.json")
    scorer = parse_model((tmp_path / "model.json").read_bytes(), "model.json")
    assert scorer.predict(data).tolist() == ranker.predict(data).tolist()
    narrow = tr.QueryDataset.from_arrays(data.X[:, 1:], data.y, data.qid)
    with pytest.raises(tr.errors.InputError, match="ListNet is expecting"):
        scorer.predict(narrow)


def test_a_question_asked_again_loads_no_learner(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    packages = ("csv", "json")
    remember(packages, Library.open(packages).whole, tr.ListNet().fit(np.eye(len(FEATURES)), np.arange(len(FEATURES))))
    found = loaded("demo", "--packages", "csv,json", "--ask", "parse json")
    assert "scipy.sparse" in found  # so the question was answered here
    assert not found & (HEAVY - {"scipy.sparse"} | {"numba", "toprank.demo.job"})


def test_an_estimator_is_loaded_to_learn(files, tmp_path):
    _, data = files
    assert "sklearn" in loaded("fit", data, "-p", "max_iter=1", "-o", str(tmp_path / "model.json"))
