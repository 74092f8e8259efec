"""`toprank fuse`: by rules, learned, applied from a file, and its weights for engines."""

import json

import pytest

import toprank as tr
from tests.cli.calling import fail, run
from tests.contests.test_learned_fusion import made_runs


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs, qrels = made_runs({"bm25": 0.5, "dense": 1.0}, n_queries=20)
    for name, each in runs.items():
        tr.write_run(each, f"{name}.run")
    tr.write_qrels(qrels, "qrels.txt")
    return runs, qrels


def test_runs_are_fused_by_a_rule(files, capsys):
    runs, _ = files
    assert "wrote fused.run" in run(capsys, "fuse", "bm25.run", "dense.run", "-o", "fused.run")
    mine, theirs = tr.read_run("fused.run"), tr.fuse(list(runs.values()), "rrf")
    pairs = zip(theirs.qid.tolist(), theirs.doc_ids.tolist(), theirs.scores.tolist(), strict=True)
    assert set(zip(mine.qid.tolist(), mine.doc_ids.tolist(), mine.scores.tolist(), strict=True)) == set(pairs)


def test_a_learned_fusion_is_told_stored_and_applied(files, capsys):
    learn = ["fuse", "--learn", "bm25.run", "dense.run", "--qrels", "qrels.txt", "--ranker", "ListNet", "--folds", "2"]
    told = run(capsys, *learn, "--model", "fusion.json", "-o", "a.run")
    assert "on unseen queries the learned fusion is" in told
    assert "reciprocal rank fusion" in told
    run(capsys, "fuse", "bm25.run", "dense.run", "--model", "fusion.json", "-o", "b.run")
    with open("a.run") as first, open("b.run") as second:
        assert first.read() == second.read()
    plain = [*learn, "--features", "score", "--scale", "minmax"]
    found = json.loads(run(capsys, *plain, "--for", "opensearch", "--json"))
    assert set(found["means"]) == {"learned fusion", "reciprocal rank fusion", "CombSUM", found["best_single"]}
    assert "normalization-processor" in found["weights_for"]["text"]


def test_what_is_asked_wrongly_is_one_line(files, capsys):
    for more, problem in (
        (["bm25.run"], "two runs or more"),
        (["bm25.run", "bm25.run", "-o", "x"], "named twice"),
        (["bm25.run", "dense.run"], "nothing was asked for"),
        (["bm25.run", "dense.run", "--learn"], "--learn and --qrels go together"),
        (["bm25.run", "dense.run", "--for", "sql"], "give --learn, or --model"),
        (["bm25.run", "dense.run", "--learn", "--qrels", "qrels.txt", "--ranker", "LisNet"], "unknown ranker 'LisNet'"),
        (["bm25.run", "dense.run", "--learn", "--qrels", "qrels.txt", "--features", "rank"], "--features rank"),
        (["bm25.run", "dense.run", "--json", "-o", "-"], "would mix on standard output"),
    ):
        assert problem in fail(capsys, "fuse", *more)
