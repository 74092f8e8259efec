"""TREC runs on the command line: what a run does not answer counts, and the line says so."""

import json

import numpy as np
import pytest

import toprank as tr

from .calling import call, fail, run


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


@pytest.fixture
def systems(tmp_path):
    """Three runs on forty queries; the third lacks five of them."""
    rng = np.random.default_rng(0)
    docs = [f"d{i}" for i in range(8)]
    grades = {f"q{q}": dict(zip(docs, rng.integers(0, 3, 8).tolist(), strict=True)) for q in range(40)}
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, row in grades.items() for d, g in row.items())
    )
    for name, noise in (("good", 0.5), ("poor", 5.0), ("short", 0.5)):
        lines = [
            f"{q} Q0 {d} 0 {g + noise * rng.standard_normal()} {name}\n"
            for n, (q, row) in enumerate(grades.items())
            for d, g in row.items()
            if name != "short" or n >= 5
        ]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return tmp_path


def test_runs_are_compared_and_drawn(capsys, systems):
    files = [systems / f"{name}.run" for name in ("good", "poor", "short")]
    args = ("compare", "--trec", *files, "--qrels", systems / "qrels.txt", "--baseline", "poor", "--fusion", "rrf")
    page = systems / "page.html"
    code, out, err = call(capsys, *args, "--html", page)
    assert code == 0
    assert "short does not answer 5 of the judged queries, which count 0." in err
    assert "means over 40 test queries, convention trec_eval" in out
    assert f"wrote {page}" in out
    text = page.read_text(encoding="utf-8")
    assert "is better than poor" in text
    assert "fusion by reciprocal rank" in text
    told = json.loads(call(capsys, *args, "--json")[1])
    expected = tr.evaluate_run(tr.read_run(files[0]), tr.read_qrels(systems / "qrels.txt")).mean["ndcg@10"]
    by_name = {e["name"]: e for e in told["entrants"]}
    assert by_name["good"]["mean"]["ndcg@10"] == pytest.approx(expected)
    assert by_name["good"]["certificates"][0]["lower"] < expected
    some = json.loads(run(capsys, *args, "--answered-only", "--json"))
    assert some["queries"] == 35


def test_plan(capsys, systems):
    args = ("plan", systems / "good.run", systems / "poor.run", systems / "qrels.txt", "--measure", "map")
    told = json.loads(run(capsys, *args, "--json"))
    assert told["rows"][0]["n_queries"] == 40
    small = json.loads(run(capsys, *args, "--difference", 0.001, "--json"))
    assert small["rows"][0]["needed"] > told["rows"][0]["needed"]
    assert "How many queries it takes" in run(capsys, *args)
    assert "power must be a share" in fail(capsys, *args, "--power", 2)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("compare", "--trec", "{d}/good.run"), "needs two runs or more, and --qrels FILE"),
        (("compare", "--trec", "{d}/good.run", "{d}/poor.run"), "needs two runs or more, and --qrels FILE"),
        (("compare", "--trec", "{d}/good.run", "{d}/good.run", "--qrels", "{d}/qrels.txt"), "a run is named twice"),
        (("compare", "{d}/good.run", "{d}/poor.run", "--qrels", "{d}/qrels.txt"), "give --trec too"),
        (("compare", "a", "b", "c"), "compare takes TRAIN and TEST, got 3 files; runs are compared with --trec"),
        (
            ("compare", "--trec", "{d}/good.run", "{d}/poor.run", "--qrels", "{d}/qrels.txt", "--refit"),
            "--refit is about learning",
        ),
        (
            ("compare", "--trec", "{d}/good.run", "{d}/empty.run", "--qrels", "{d}/qrels.txt"),
            "empty: the run is empty",
        ),
    ],
)
def test_bad_input_is_one_line(capsys, systems, args, message):
    (systems / "empty.run").write_text("")
    assert message in fail(capsys, *(arg.format(d=systems) for arg in args))
