"""TREC runs on the command line: what a run does not answer counts, and the line says so."""

import json

import pytest

from .calling import fail, run


@pytest.fixture
def files(tmp_path):
    """Two of four judged queries are answered, one of them right."""
    (tmp_path / "qrels.txt").write_text("".join(f"q{i} 0 good 1\nq{i} 0 bad 0\n" for i in range(4)))
    (tmp_path / "a.run").write_text("q0 Q0 good 1 2.0 a\nq0 Q0 bad 2 1.0 a\nq1 Q0 bad 1 1.0 a\nq9 Q0 good 1 1.0 a\n")
    (tmp_path / "empty.run").write_text("")
    return tmp_path


def test_queries_that_are_not_answered_count_nought(capsys, files):
    args = ("evaluate", "--trec", files / "a.run", files / "qrels.txt", "--measure", "ndcg@10")
    told = run(capsys, *args)
    assert "ndcg@10  0.2500" in told
    assert "4 queries, 2 of them not answered (counted as 0), 1 of the run not judged (left out)" in told
    some = json.loads(run(capsys, *args, "--answered-only", "--json"))
    assert some["mean"]["ndcg@10"] == 0.5
    assert some["counts"]["left_out_queries"] == 2


def test_an_empty_run_says_that_it_is_empty(capsys, files):
    assert "the run is empty" in fail(capsys, "evaluate", "--trec", files / "empty.run", files / "qrels.txt")
    assert "the qrels are empty" in fail(capsys, "evaluate", "--trec", files / "a.run", files / "empty.run")
    assert "give --trec too" in fail(capsys, "evaluate", "model.json", "test.txt", "--answered-only")
