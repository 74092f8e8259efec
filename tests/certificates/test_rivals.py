"""What another weight vector would have lost on lists that were played: the definition, in double loops."""

from itertools import pairwise

import numpy as np
import pytest

import toprank as tr
from toprank.rankers.replay import SeenLists
from toprank.solvers.steps import Steps
from toprank.solvers.stream import OnlineDescent
from toprank.surrogates import ListNet, Minimax, Slam

CASES = [
    (Slam("ndcg@3", 0.7, within="score"), "ndcg@3"),
    (Slam("ndcg"), "ndcg"),
    (Slam("map"), "map"),
    (Minimax(1.5), "ndcg"),
    (Minimax(above=1.0), "map"),
    (ListNet(), "ndcg"),
]


def lost(learner, y, s, weights):
    """f of one list whose documents weigh `weights` (for ListNet and Minimax: as many times their loss)."""
    loss, grades = learner.surrogate, learner.compared(y)
    if isinstance(loss, ListNet):
        return weights[0] * loss.per_query(s, y, np.array([0, len(y)]))[0][0]
    gaps = [[s[j] - s[i] for j in range(len(y)) if grades[j] < grades[i]] for i in range(len(y))]
    if isinstance(loss, Minimax):
        return weights[0] * max([0.0, *(loss.margin + gap for row in gaps for gap in row)])
    return sum(v * max(0.0, loss.margin + max(row)) for v, row in zip(weights, gaps, strict=True) if row)


@pytest.mark.parametrize(("loss", "measure"), CASES, ids=str)
def test_what_a_rival_loses_is_the_definition(loss, measure):
    data = tr.datasets.make_graded(n_queries=12, n_docs=(1, 8), n_features=3, random_state=3)
    learner, rng = OnlineDescent(loss, tr.measure(measure), Steps(0.1)), np.random.default_rng(0)
    seen, weights = SeenLists(learner, data), np.zeros(data.n_docs)
    for _ in range(2):  # two passes, in which some lists lost nothing
        scores, heavy = rng.normal(size=data.n_docs), rng.integers(0, 3, data.n_queries).astype(float)
        seen.add(scores, heavy)
        each = np.repeat(heavy, data.lengths)
        if isinstance(loss, Slam):
            each = each * loss.document_weights(data.y, data.ptr, scores if loss.within == "score" else None)
        weights += each
    for u in rng.normal(size=(3, data.n_docs)):
        lists = list(pairwise(data.ptr))
        wanted = [
            sum(lost(learner, data.y[a:b], c * u[a:b], weights[a:b]) for a, b in lists if b - a > 1)
            for c in (0.0, 0.3, 1.0, 20.0)
        ]
        np.testing.assert_allclose(seen.losses(u, np.array([0.0, 0.3, 1.0, 20.0])), wanted, rtol=1e-12)
        value, slope = seen.loss(u)
        assert value == pytest.approx(wanted[2], rel=1e-12)
        for other in u + rng.normal(size=(20, data.n_docs)):  # a subgradient of a convex function
            assert seen.loss(other)[0] >= value + slope @ (other - u) - 1e-9
