"""`--prepare` on the command line: kept in the model file, exported or refused first, chosen on validation queries."""

import json

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import fail, run
from tests.rankers.test_prepare import raw


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepare")
    data = raw(60)
    for name, part in (("train", data[:30]), ("vali", data[30:45]), ("test", data[45:])):
        tr.write_letor(part, folder / f"{name}.txt")
    return folder


def test_a_fitted_model_carries_its_preparation_to_sql(capsys, home):
    model, exported = home / "model.json", home / "model.sql"
    run(capsys, "fit", home / "train.txt", "--prepare", "log,query", "--for", "sql", "-o", model)
    test = tr.read_letor(home / "test.txt")
    wanted = tr.evaluate(tr.ListNet(prepare="log,query").fit_queries(tr.read_letor(home / "train.txt")), test)
    told = json.loads(run(capsys, "evaluate", model, home / "test.txt", "--json"))
    assert told["mean"]["ndcg@10"] == pytest.approx(wanted.mean["ndcg@10"], abs=1e-6)
    run(capsys, "export", model, "--to", "sql", "-o", exported)
    assert "ln(" in exported.read_text("utf-8").lower()
    assert json.loads(run(capsys, "verify-export", model, exported, home / "test.txt", "--json"))["agrees"]
    ranked = run(capsys, "rank", model, home / "test.txt").splitlines()
    assert len(ranked) == test.n_docs
    assert "ndcg@10" in run(capsys, "certify", model, home / "test.txt")
    refused = fail(capsys, "export", model, "--to", "elasticsearch", "-o", home / "es.json")
    assert "elasticsearch cannot compute the signed logarithm" in refused
    assert not (home / "es.json").exists()


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_what_a_target_cannot_compute_is_refused_before_anything_is_read(capsys, tmp_path, command):
    rest = ("gone.txt", "-o", tmp_path / "m") if command == "fit" else ("gone.txt", "gone.txt")
    error = fail(capsys, command, *rest, "--prepare", "query", "--for", "elasticsearch")
    assert "elasticsearch cannot compute features scaled to 0 … 1 within a query" in error
    assert "prepare has 'qery' (did you mean 'query'?)" in fail(capsys, command, *rest, "--prepare", "qery")
    assert "unknown target" in fail(capsys, command, *rest, "--prepare", "query", "--for", "sphinx")
    assert list(tmp_path.iterdir()) == []


def test_validation_queries_choose_the_preparation(capsys, home, tmp_path):
    files = (home / "train.txt", home / "test.txt", "--valid", home / "vali.txt", "--rankers", "ListNet,RankSVM")
    args = (*files, "--prepare", "log,query", "--resamples", 200, "--state", tmp_path / "kept", "-o", tmp_path / "out")
    found = json.loads(run(capsys, "compare", *args, "--html", tmp_path / "r.html", "--json"))
    plain = json.loads(run(capsys, "compare", *files, "--resamples", 200, "--json"))
    for name in ("ListNet", "RankSVM"):
        with_it, without = (next(e for e in result["entrants"] if e["name"] == name) for result in (found, plain))
        assert with_it["valid"][0] >= without["valid"][0]
        assert with_it["planned"] == 2 * without["planned"]
        ranker = tr.load(tmp_path / "out" / f"{name}.json")
        assert ranker.prepare == with_it["params"][0].get("prepare", "")
        again = tr.evaluate(ranker, tr.read_letor(home / "test.txt"))
        assert again.mean["ndcg@10"] == pytest.approx(with_it["mean"]["ndcg@10"])
    assert {e["params"][0].get("prepare") for e in found["entrants"] if e["tried"]} == {"log,query"}
    assert "prepare=log,query" in run(capsys, "compare", *args)


def test_features_that_need_nothing_are_left_alone():
    """A sum of two features, one of them a hundred times as wide in every other query: raw it ranks perfectly."""
    rng = np.random.default_rng(0)
    qid = np.arange(400) // 8
    X = rng.normal(size=(400, 2)) * np.column_stack([np.where(qid % 2, 10.0, 0.1), np.ones(400)])
    data = tr.QueryDataset.from_arrays(X, (X.sum(axis=1) > 0.5).astype(float), qid)
    plain, held = (
        tr.contest(data[:25], data[25:], rankers=["ListNet"], prepare=prepare, n_resamples=100).entrant("ListNet")
        for prepare in ("", ["standard"])
    )
    assert "prepare" not in held.params[0]
    assert (held.planned, held.valid) == (2 * plain.planned, plain.valid)
