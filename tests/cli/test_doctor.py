"""`toprank doctor` and the help that lists commands by their jobs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import call
from toprank.cli import JOBS, cli
from toprank.cli.doctor import EXTRAS, self_test


def test_doctor_names_versions_extras_and_the_folder(capsys, monkeypatch):
    monkeypatch.setitem(EXTRAS, "made up", ("no_such_module",))
    code, out, _ = call(capsys, "doctor")
    assert code == 0
    assert "learning works: ndcg@10" in out
    assert "missing: no_such_module" in out
    facts = json.loads(call(capsys, "doctor", "--json")[1])
    assert facts["learning_works"] is True
    assert facts["facts"]["toprank"] == tr.__version__
    assert "numba" in facts["facts"]["compiled code"]


def test_doctor_notices_that_nothing_was_learned(capsys, monkeypatch):
    made = tr.datasets.make_graded(n_queries=40, random_state=0)
    shuffled = replace(made, y=np.random.default_rng(0).permutation(made.y))  # grades that have nothing to do with X
    monkeypatch.setattr(tr.datasets, "make_graded", lambda **_: shuffled)
    assert self_test()[0] is False
    code, out, _ = call(capsys, "doctor")
    assert code == 1
    assert "learning does NOT work" in out


def test_every_command_stands_under_one_job(capsys):
    listed = [str(command.name) for commands in JOBS.values() for command in commands]
    assert sorted(listed) == sorted(cli.commands)
    _, out, _ = call(capsys, "--help")
    for job in JOBS:
        assert f"{job}:" in out
    assert max(map(len, out.splitlines())) <= 110


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_has_one_line_in_the_help(capsys, name):
    _, out, _ = call(capsys, "--help")
    assert sum(line.strip().startswith(f"{name} ") for line in out.splitlines()) == 1
