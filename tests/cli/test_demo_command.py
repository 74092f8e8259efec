"""`toprank demo` on a few packages of the running Python's library, and what it refuses."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from toprank.demo.job import BM25, MEASURE, contestants

from .calling import fail, run

FEW = "calendar,csv,difflib,fractions,gzip,heapq,json,shutil,statistics,tempfile,textwrap,zipfile"


def test_contest_against_bm25(capsys, tmp_path):
    page = tmp_path / "page.html"
    found = json.loads(run(capsys, "demo", "--packages", FEW, "--html", page, "--json"))
    assert list(found["means"]) == [BM25, *(candidate.name for candidate in contestants())]
    assert found["best_on_validation"] in found["means"]
    facts = found["library"]
    assert facts["documents"] == facts["functions"] + facts["classes"] + facts["methods"] > 200
    assert min(facts["queries"].values()) > 20
    assert 0 < facts["recall"] <= 1
    against = {(d["a"], d["b"]) for d in found["comparison"]["differences"] if d["measure"] == MEASURE}
    assert all((BM25, candidate.name) in against for candidate in contestants())
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert "BM25" in html

    # The same numbers in another process, whatever the seed of its hashes.
    command = [sys.executable, "-m", "toprank", "demo", "--packages", FEW, "--html", str(page), "--json"]
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == found


def test_what_is_printed(capsys, tmp_path):
    page = tmp_path / "page.html"
    text = run(capsys, "demo", "--packages", FEW, "--html", page)
    assert "first sentence of a docstring" in text
    assert "p (Holm)" in text
    assert "95% interval" in text
    assert "New queries: bounds on the expected ndcg@10, all together with 95% confidence" in text
    assert all(candidate.name in text for candidate in contestants())
    assert text.endswith(f"wrote {page}\n")


def test_a_second_question_need_not_wait_for_the_learning(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ("demo", "--packages", FEW, "--ask", "compress data", "--json")
    first = run(capsys, *options)
    kept = sorted((tmp_path / "toprank" / "demo").iterdir())
    assert [file.suffix for file in kept] == [".json", ".npz"]
    with monkeypatch.context() as patched:
        patched.setattr("toprank.demo.job.learn", lambda judged: pytest.fail("it learned again"))
        assert run(capsys, *options) == first
    for file in kept:
        file.write_text("{", encoding="utf-8")
        assert run(capsys, *options) == first, "what cannot be read is learned again"


def test_ask_shows_both_rankings(capsys):
    question = "read a csv file with a header and a zyzzyva"
    options = ("demo", "--packages", FEW, "--ask", question)
    (found,) = json.loads(run(capsys, *options, "--json"))
    assert found["unknown"] == ["zyzzyva"]
    assert len(found["bm25"]) == len(found["learned"]) == 10
    scores = [hit["score"] for hit in found["learned"]]
    assert scores == sorted(scores, reverse=True)
    for hit in found["learned"]:
        if hit["bm25_place"] <= 10:
            assert found["bm25"][hit["bm25_place"] - 1] == hit["document"]
        strengths = [abs(value) for value in hit["reasons"].values()]
        assert strengths == sorted(strengths, reverse=True)
    # The parts beyond the mean candidate add up: differences of scores are differences of their sums.
    sums = np.array([sum(hit["reasons"].values()) for hit in found["learned"]])
    np.testing.assert_allclose(sums - sums[0], np.array(scores) - scores[0], atol=1e-9)

    first, second = run(capsys, *options, "--ask", "compress data").split("\ncompress data\n")
    assert first.startswith(question)
    assert f"\nBM25 alone: 1 {found['bm25'][0]}, 2 " in first
    assert f"ranked by {found['ranker']}" in first
    for hit in found["learned"]:
        assert f"  {hit['document']}" in first
        assert f"\n    {hit['summary']}" in first
    assert "No document has: zyzzyva." in first
    assert "No document has" not in second


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--packages", FEW, "--ask", ""), "nothing to search for"),
        (("--packages", FEW, "--ask", " ?! "), "nothing to search for"),
        (("--packages", FEW, "--ask", "zyzzyva"), "none of these words"),
        (("--packages", "jsn", "--ask", "x"), "json"),
        (("--packages", "csv,json"), "take more packages"),
        (("--ask", "x", "--html", "a.html"), "--ask writes no page"),
        (("--queries", "10"), "add --generated"),
        (("--seed", "0"), "add --generated"),
        (("--generated", "--ask", "x"), "no library"),
        (("--generated", "--packages", "csv"), "no library"),
    ],
)
def test_refusals(capsys, options, message):
    assert message in fail(capsys, "demo", *options)
