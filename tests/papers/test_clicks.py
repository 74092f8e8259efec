from __future__ import annotations

import os

import numpy as np
import pytest

import toprank as tr
from toprank.papers import clicks


def runs(naive: float, own: float, true: float) -> list[dict[str, float]]:
    return [
        {"seed": seed, "production": 0.3, "naive": naive + seed / 1000, "estimated": own, "true": true, "labels": 0.6}
        for seed in range(3)
    ]


def test_the_verdict_follows_the_numbers():
    def told(clicks_shown, *reached):
        return [found.verdict for found in clicks._summary({("c", clicks_shown): runs(*reached)})[1]]

    assert told(10_000, 0.4, 0.5, 0.505) == ["replicates", "replicates"]
    assert told(10_000, 0.5, 0.4, 0.45) == ["does not replicate", "does not replicate"]
    assert told(1_000, 0.4, 0.5, 0.5) == ["cannot be decided here"] * 2


def test_differences_are_paired_by_seed():
    rows, _ = clicks._summary({("c", 10_000): runs(0.4, 0.5, 0.5)})
    own = next(row for row in rows if row[2] == clicks.NAMES["estimated"])
    assert own[5] == pytest.approx(np.mean([0.1 - s / 1000 for s in range(3)]))


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
    reached = clicks._trees(log, data, data, 0)
    assert all(0 < value <= 1 for value in reached.values())


@pytest.mark.skipif("TOPRANK_DATA" not in os.environ, reason="needs TOPRANK_DATA")
def test_one_cell_of_each_exhibit(tmp_path):
    small = {"collections": ("mq2008-letor4",), "folds": 1, "seeds": 1, "checkpoint": tmp_path}
    exhibit = clicks.corrected(clicks=(3_000,), trees=0, **small)
    assert [row[2] for row in exhibit.table.rows] == [clicks.NAMES[entrant] for entrant in clicks.ENTRANTS]
    again = clicks.corrected(clicks=(3_000,), trees=0, **small)
    assert again.table.plain() == exhibit.table.plain()
    online = clicks.online(users=("navigational",), pages=300, **small)
    assert len(online.table.rows) == 1
