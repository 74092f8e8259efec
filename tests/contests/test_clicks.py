"""On click data settings are chosen by what held-out clicks are worth, by their weights, never by clicked NDCG."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import toprank as tr
from tests.cli.calling import call, run
from toprank.contests.baselines import best_feature
from toprank.rankers.watching import BestOnValidation


def clicked(weights, n_queries=12):
    """Queries of three documents, in which the first is shown at the top and clicked, and the third weighs most."""
    X = np.tile(np.eye(3), (n_queries, 1))
    qid = np.repeat(np.arange(n_queries), 3)
    y = np.tile((np.array(weights) > 0).astype(float), n_queries)
    return tr.QueryDataset.from_arrays(X, y, qid, doc_weight=np.tile(weights, n_queries))


@pytest.fixture(scope="module")
def log():
    """A log whose clicked documents are nearly all relevant to nobody: the weights tell, and clicks as such do not."""
    data = tr.datasets.make_graded(n_queries=120, n_docs=12, n_features=4, random_state=0)
    shown = [data.X[:, 0], data.X[:, 1]]
    found = tr.datasets.simulate_clicks(data, shown, sessions=6000, cut=10, random_state=1)
    seen = tr.clicks.Propensities.known(1 / np.arange(1, 11))
    learn, held_out = found.split(2 / 3)
    return data, learn.to_queries(data, seen), held_out.to_queries(data, seen)


def rankers():
    """Two fitted settings of which clicked NDCG prefers the first and the value of clicks the second."""
    return {"first": np.array([1.0, 0.5, 0.0]), "third": np.array([0.5, 0.0, 1.0])}


def test_the_two_rules_differ_here():
    data = clicked([1.0, 1.0, 20.0])
    scores = {name: np.tile(one, 12) for name, one in rankers().items()}
    ndcg = {name: tr.evaluate(one, data, "ndcg@2").mean["ndcg@2"] for name, one in scores.items()}
    value = {name: tr.clicks.click_value(one, data, 2).value for name, one in scores.items()}
    assert ndcg["first"] == ndcg["third"]
    assert value["third"] > value["first"]


def test_the_best_feature_is_that_of_the_clicks_worth():
    assert best_feature(clicked([1.0, 1.0, 20.0]), "ndcg@2") == (2, 1)


def test_a_validation_set_of_clicks_chooses_by_their_worth():
    data = clicked([1.0, 1.0, 20.0])
    watch = BestOnValidation[str](tr.measure("ndcg@2"), data)
    for name, scores in rankers().items():
        watch.look(np.tile(scores, 12), lambda name=name: name)
    assert watch.best == "third"
    expected = [tr.clicks.click_value(np.tile(one, 12), data, 2).value for one in rankers().values()]
    assert watch.reached == pytest.approx(expected)


def test_where_everything_was_clicked_weights_still_choose():
    data = clicked([1.0, 2.0, 20.0])
    assert BestOnValidation[str](tr.measure("ndcg@2"), data).value(np.tile([0.0, 0.5, 1.0], 12)) > 0
    with pytest.raises(tr.InputError, match="the validation set cannot choose"):
        BestOnValidation[str](tr.measure("ndcg@2"), clicked([1.0, 1.0, 1.0]))


@pytest.mark.parametrize("valid_is_given", [True, False])
def test_a_contest_chooses_by_the_worth_of_clicks(log, valid_is_given):
    data, train, valid = log
    options = {} if not valid_is_given else {"valid": valid}
    result = tr.contest(train, data, rankers=["ListNet"], budget=None, progress=False, **options)
    chosen = result.entrant("ListNet")
    assert any("chosen by the value of held-out clicks" in note for note in result.notes)
    if valid_is_given:
        expected = tr.clicks.click_value(chosen.rankers[0], valid, resamples=0).value
        assert chosen.valid[0] == pytest.approx(expected)
    assert "valid click value" in str(result)


def test_judged_validation_queries_choose_by_the_measure(log):
    data, train, _ = log
    result = tr.contest(train, data[60:], valid=data[:60], rankers=["ListNet"], budget=0, progress=False)
    assert any(note.startswith("Settings were chosen by ndcg@10 on") for note in result.notes)
    expected = tr.evaluate(result.entrant("ListNet").rankers[0], data[:60], "ndcg@10").mean["ndcg@10"]
    assert result.entrant("ListNet").valid[0] == pytest.approx(expected)


def test_a_kept_value_of_another_rule_is_not_taken(log, tmp_path):
    data, train, valid = log
    one = tr.contest(train, data, valid=valid, rankers=["ListNet"], budget=0, state=tmp_path, progress=False)
    kept = [json.loads(file.read_text()) for file in tmp_path.glob("[!.]*.json")]
    assert len(kept) == 1
    assert "click" in json.dumps(kept)
    again = tr.contest(train, data, valid=valid, rankers=["ListNet"], budget=0, state=tmp_path, progress=False)
    assert again.entrant("ListNet").valid == one.entrant("ListNet").valid


@pytest.mark.filterwarnings("ignore:features are matched by position")
def test_on_the_command_line(capsys, log, tmp_path):
    data, train, valid = log
    tr.write_parquet(train, tmp_path / "train.parquet")
    tr.write_parquet(valid, tmp_path / "valid.parquet")
    pd.DataFrame(data.X, columns=[f"f{j}" for j in range(1, 5)]).assign(
        query=data.qid, label=data.y, doc_id=np.arange(data.n_docs)
    ).to_parquet(tmp_path / "test.parquet")
    files = (tmp_path / "train.parquet", tmp_path / "test.parquet", "--valid", tmp_path / "valid.parquet")
    options = ("--rankers", "ListNet", "--budget", "0", "--html", tmp_path / "page.html")
    code, out, _ = call(capsys, "compare", *files, *options)
    assert code == 0
    assert "chosen by the value of held-out clicks" in " ".join(out.split())
    assert "chosen by the value of held-out clicks" in (tmp_path / "page.html").read_text()
    found = json.loads(run(capsys, "compare", *files, *options, "--json"))
    assert found["chosen_by"] == "click value"
    told = run(capsys, "fit", files[0], "--valid", files[3], "-o", tmp_path / "m.json")
    assert "valid: click value" in told
