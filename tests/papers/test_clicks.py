from __future__ import annotations

import os

import numpy as np
import pytest

import toprank as tr
from toprank.papers import clicks


def test_differences_are_paired_by_seed():
    runs = [[{"naive": [0.4 + seed / 1000], "estimated": [0.5]}] * 2 for seed in range(3)]
    (own,), (naive,) = (clicks._by_seed(runs, name) for name in ("estimated", "naive"))
    assert (own - naive).tolist() == pytest.approx([0.1, 0.099, 0.098])


def test_fewer_clicks_are_the_first_pages_of_more():
    data = tr.datasets.make_graded(n_queries=30, random_state=0)
    served = [tr.ListNet(alpha=alpha).fit_queries(data) for alpha in (0.1, 10.0)]
    few, many = clicks._logs(data, served, (300, 3_000), 0)
    assert few.n_impressions < many.n_impressions
    for name in ("query", "document", "position", "clicked", "session"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[: few.n_impressions])
    for log, wanted in ((few, 300), (many, 3_000)):
        assert abs(log.clicked.sum() - wanted) < 0.2 * wanted
        assert len(log.query) == np.isin(many.session, np.unique(log.session)).sum()  # whole pages


def test_what_a_short_log_tells_is_used_as_deep_as_it_goes():
    data = tr.datasets.make_graded(n_queries=30, random_state=0)
    log = tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=300, cut=clicks.CUT)
    flat = tr.clicks.Propensities.known(np.ones(clicks.CUT))
    found = clicks._estimate(log, flat)
    assert len(found) == clicks.CUT
    assert found.values[0] == 1
    assert (found.values > 0).all()


def test_trees_learn_from_pages():
    data = tr.datasets.make_graded(n_queries=30, random_state=0)
    log = tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=500, cut=clicks.CUT)
    grown = clicks._trees(log, data, 0)
    held = log.to_queries(data, tr.clicks.Propensities.known(np.ones(clicks.CUT)))
    for models in grown.values():
        assert len(models) == len(clicks.ROUNDS)
        assert len({clicks._ndcg(model, data) for model in models}) > 1  # another number of trees
        assert 0 < clicks._ndcg(clicks._best(models, held), data) <= 1


@pytest.mark.skipif("TOPRANK_DATA" not in os.environ, reason="needs TOPRANK_DATA")
def test_one_cell_of_each_exhibit(tmp_path, monkeypatch):
    monkeypatch.setattr(clicks, "COLLECTIONS", clicks.COLLECTIONS[:1])
    small = {"folds": 1, "seeds": 1, "checkpoint": tmp_path}
    exhibit = clicks.corrected(clicks=(2_000, 3_000), trees=0, **small)
    assert [row[1:3] for row in exhibit.table.rows] == [
        [n, clicks.NAMES[entrant]]
        for n in ("2,000", "3,000")
        for entrant in ("production", "naive", "estimated", "true", "labels")
    ]
    monkeypatch.setattr(clicks, "_logs", lambda *_: pytest.fail("computed again"))
    assert clicks.corrected(clicks=(2_000, 3_000), trees=0, **small).table.plain() == exhibit.table.plain()
    online = clicks.online(users=("navigational",), pages=300, **small)
    assert len(online.table.rows) == 1
