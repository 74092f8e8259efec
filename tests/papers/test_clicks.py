from __future__ import annotations

import os
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import toprank as tr
from toprank.data.splits import Fold
from toprank.papers import clicks


def test_differences_are_paired_by_run_and_only_where_both_took_part():
    reached = {"naive": np.array([0.40, 0.30, 0.20]), "xgboost": np.array([0.45, 0.35])}
    (name, runs, mean, half, gap, spread), absent = clicks._rows(reached, ["xgboost", "lightgbm"])
    assert (name, runs) == (clicks.NAMES["xgboost"], 2)
    assert mean == pytest.approx(0.40)
    assert gap == pytest.approx(0.05)
    assert half > 0.1  # the runs differ a lot
    assert spread == pytest.approx(0, abs=1e-12)  # their differences do not
    assert absent[1] == ("not run" if find_spec("lightgbm") else "not installed")


def test_a_log_has_about_as_many_clicks_as_asked_and_better_rankers_behind_more_judgements():
    data = tr.datasets.make_graded(n_queries=60, random_state=0)
    fold = Fold(data[:40], data[40:50], data[50:])
    for wanted in (300, 3_000):
        _, learn, held, _ = clicks._shown(fold, wanted, 0.01, 0)
        assert abs(learn.clicked.sum() + held.clicked.sum() - wanted) < 0.2 * wanted
        assert not set(learn.session) & set(held.session)
    quality = {weak: clicks._trial(fold, 300, weak, seed=0)["production"] for weak in (1, 30)}
    assert quality[1] < quality[30]


def test_what_a_short_log_tells_is_used_as_deep_as_it_goes():
    data = tr.datasets.make_graded(n_queries=30, random_state=0)
    log = tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=300, cut=clicks.CUT)
    found = clicks._estimate(log)
    assert len(found) == clicks.CUT
    assert found.values[0] == 1
    assert (found.values > 0).all()


@pytest.fixture(scope="module")
def pages():
    data = tr.datasets.make_graded(n_queries=10, random_state=0)
    return data, tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=1500, cut=clicks.CUT)


@pytest.mark.parametrize("name", clicks.TREES)
def test_trees_learn_from_pages(name, pages):
    pytest.importorskip(name)
    data, log = pages
    models = clicks.TREES[name](log, data, 0)
    assert len(models) == len(clicks.ROUNDS)
    assert len({clicks._ndcg(model, data) for model in models}) > 1  # another number of trees
    held = log.to_queries(data, tr.clicks.Propensities.known(np.ones(clicks.CUT)))
    assert 0 < clicks._ndcg(clicks._best(models, held), data) <= 1


def test_pages_with_clicks_and_no_others_are_learned_from(pages):
    _, log = pages
    told, lengths = clicks._pages(log)
    hit = set(log.session[log.clicked].tolist())
    assert set(told.session.tolist()) == hit
    assert len(hit) < len(set(log.session.tolist()))
    assert lengths.sum() == told.n_impressions
    ends = np.cumsum(lengths)
    assert all(len(set(told.session[a:b])) == 1 for a, b in zip(ends - lengths, ends, strict=True))


@pytest.mark.skipif("TOPRANK_DATA" not in os.environ, reason="needs TOPRANK_DATA")
def test_one_cell_of_each_exhibit(tmp_path, monkeypatch):
    monkeypatch.setattr(clicks, "COLLECTIONS", clicks.COLLECTIONS[:1])
    small = {"folds": 1, "seeds": 1, "checkpoint": tmp_path}
    first = SimpleNamespace(predict=lambda X: X[:, 0])
    monkeypatch.setattr(clicks, "TREES", {"numpy": lambda *_: [first]})
    monkeypatch.setattr(clicks, "NAMES", {**clicks.NAMES, "numpy": "installed"})
    exhibit = clicks.corrected(clicks=(2_000, 3_000), **small)
    assert [row[1:4] for row in exhibit.table.rows] == [
        [n, name, ("not run" if find_spec(entrant.rstrip("*")) else "not installed") if entrant in clicks.PEERS else 1]
        for n in ("2,000", "3,000")
        for entrant, name in clicks.NAMES.items()
    ]
    monkeypatch.setattr(clicks, "_shown", lambda *_: pytest.fail("computed again"))
    assert clicks.corrected(clicks=(2_000, 3_000), **small).table.plain() == exhibit.table.plain()
    monkeypatch.undo()
    monkeypatch.setattr(clicks, "COLLECTIONS", clicks.COLLECTIONS[:1])
    alone = clicks.corrected(clicks=(2_000,), trees=0, **small)
    assert [row[3] for row in alone.table.rows if row[2] == clicks.NAMES["xgboost"]] != [1]
    served = clicks.served(clicks=2_000, queries=(1, 300), **small)
    weak, strong = (row[4] for row in served.table.rows if row[2] == "production rankers")
    assert weak < strong  # rankers that learned from 300 queries are better than those of one
    online = clicks.online(users=("navigational",), pages=300, **small)
    assert len(online.table.rows) == 1
