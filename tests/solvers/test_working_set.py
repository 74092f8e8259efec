from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import toprank as tr
from tests.oracles import direct as oracle
from toprank.solvers import working_set
from toprank.solvers.bundle import Bundle
from toprank.solvers.working_set import WorkingSets, _Sets


def tiny(seed=0, n_queries=6, n_docs=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, 3))
    y = (X[:, 0] + 0.8 * rng.normal(size=len(X)) > 0.3).astype(float) + (X[:, 1] > 1)
    y[::n_docs], y[1::n_docs] = 0, 1
    return tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(n_queries), n_docs))


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("name", ["map", "ndcg", "ndcg@2"])
def test_the_sets_hold_the_most_violated_rankings(name, graded):
    data = tiny()
    E = {"map": oracle.ap, "ndcg": oracle.ndcg, "ndcg@2": lambda o, g: oracle.ndcg(o, g, k=2)}[name]
    w = np.array([1.0, -0.4, 0.2])
    sets = _Sets(data, tr.measure(name), graded)
    assert sets.add(w)
    assert not sets.add(w)
    level = (data.y >= 1).astype(float) if name == "map" else data.y
    for q, (a, b) in enumerate(pairwise(data.ptr)):
        s, y, g = data.X[a:b] @ w, data.y[a:b], level[a:b]

        def F(order, s=s, g=g):
            place = {i: p for p, i in enumerate(order)}
            pairs = [(i, j) for i in range(len(s)) for j in range(i) if not graded or g[i] != g[j]]
            scale = len(pairs) if graded else len(s) * (len(s) - 1)
            return sum((1 if place[i] < place[j] else -1) * (s[i] - s[j]) for i, j in pairs) / scale

        perfect, others = oracle.split(E, len(s), y)
        F_low, F_high = (phi @ w for phi in sets.phi[q])
        assert F_low == pytest.approx(min(F(order) for order in perfect))
        assert F_high == pytest.approx(max(F(order) for order in others))
        lost = {round(E(perfect[0], y) - E(order, y), 9) for order in others if F(order) > F_high - 1e-12}
        assert round(1 - sets.value[q][1], 9) in lost


def test_it_stops_when_no_set_changes_and_minimises_over_the_sets():
    data = tiny(1)
    solver = WorkingSets(tr.measure("map"), 0.5, 200, inner=Bundle(tol=1e-6))
    solution = solver.run(data)
    assert solution.converged
    assert solution.trace["imperfect"][0] == 1
    assert (np.diff(solution.trace["imperfect"]) >= 0).all()
    assert solution.gap <= 1e-6 * solution.value
    # Each round adds constraints, so the minimum never falls (up to the tolerance of the inner solver).
    assert (np.diff(solution.trace["value"]) >= -2e-6 * solution.value).all()


def test_without_an_imperfect_ranking_there_is_nothing_to_learn():
    two = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    solution = WorkingSets(tr.measure("ndcg:letor3"), 1.0, 5).run(two)  # ranks 1 and 2 count the same
    assert not solution.w.any()
    assert "alike to the measure" in solution.message


@pytest.mark.parametrize("tight", [None, 0.5])
def test_no_set_changed_is_said_at_the_minimum_alone(tight, monkeypatch):
    """A loose inner solver stays where it starts and no set changes; at the exact minimiser they do."""
    data = tr.datasets.make_graded(n_queries=20, n_docs=(6, 9), n_features=4, n_grades=2, noise=1.0, random_state=3)
    made = []
    monkeypatch.setattr(working_set, "_Sets", lambda *args: made.append(_Sets(*args)) or made[0])
    if tight is not None:
        monkeypatch.setattr(working_set, "TIGHT_TOL", tight)  # how it was: the same loose solution once more
    solution = WorkingSets(tr.measure("map"), 0.01, 200, inner=Bundle(tol=0.5)).run(data)
    exact = Bundle(tol=1e-9).minimize(made[0].objective(0.01))
    changes = made[0].add(exact.w)
    assert solution.converged
    assert changes == (tight is not None)


def test_sets_that_still_change_are_told():
    data = tr.datasets.make_graded(n_queries=20, n_docs=(6, 9), n_features=4, n_grades=2, noise=1.0, random_state=3)
    one = WorkingSets(tr.measure("map"), 0.01, 1, inner=Bundle(tol=0.5)).run(data)
    assert not one.converged
    assert one.message == "the working sets still changed after 1 rounds"


def test_the_papers_last_round_can_be_had():
    data = tr.datasets.make_graded(n_queries=20, n_docs=(6, 9), n_features=4, n_grades=2, noise=1.0, random_state=3)
    ranker = tr.PermuRank(rounds=200, C=10, average=False, tol=1e-4).fit_queries(data)
    last = WorkingSets(tr.measure("map"), 0.1, 200, inner=Bundle(tol=1e-4)).run(data)
    np.testing.assert_array_equal(ranker.coef_, last.w)
    assert ranker.solution_.converged == last.converged
