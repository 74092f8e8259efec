"""SLAM and minimax surrogates against their definitions, and the laws that the paper proves of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import slam as oracle
from toprank.measures import Ties, measure
from toprank.surrogates import Minimax, Slam

MEASURES = [("ndcg", "ndcg", None), ("ndcg@1", "ndcg", 1), ("ndcg@3", "ndcg", 3), ("map", "map", None)]


@st.composite
def lists(draw, max_docs=7):
    """Scores with ties, grades whole or not, several lists with an empty one now and then."""
    sizes = draw(st.lists(st.integers(0, max_docs), min_size=1, max_size=3))
    ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    n = int(ptr[-1])
    scores = draw(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    grades = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, 4.0]), min_size=n, max_size=n))
    return np.array(scores), np.array(grades), ptr


def each(scores, y, ptr):
    return [(scores[a:b].tolist(), y[a:b].tolist()) for a, b in itertools.pairwise(ptr)]


@pytest.mark.parametrize("within", ["index", "score"])
@pytest.mark.parametrize(("name", "kind", "k"), MEASURES)
@given(case=lists(), margin=st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=40, deadline=None)
def test_value_is_the_definition(name, kind, k, within, case, margin):
    scores, y, ptr = case
    losses, _ = Slam(name, margin, within).per_query(scores, y, ptr)
    expected = [oracle.slam(s, g, kind, k, within=within, margin=margin) for s, g in each(*case)]
    np.testing.assert_allclose(losses, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "kind", "k"), MEASURES)
@given(case=lists())
@settings(max_examples=40, deadline=None)
def test_weights_are_the_definition_and_add_up_to_one(name, kind, k, case):
    _scores, y, ptr = case
    v = Slam(name).document_weights(y, ptr)
    expected = [w for s, g in each(*case) for w in oracle.slam_weights(s, g, kind, k)[0]]
    np.testing.assert_allclose(v, expected, atol=1e-12)
    for a, b in itertools.pairwise(ptr):
        assert v[a:b].sum() == pytest.approx(float((y[a:b] > 0).any()))


@pytest.mark.parametrize("surrogate", [Slam(m, within=w) for m, _, _ in MEASURES for w in ("index", "score")], ids=str)
@given(case=lists())
@settings(max_examples=40, deadline=None)
def test_surrogate_is_at_least_the_loss(surrogate, case):
    scores, y, ptr = case
    losses, _ = surrogate.per_query(scores, y, ptr)
    relevant = np.array([(y[a:b] > 0).any() for a, b in itertools.pairwise(ptr)])
    for ties in (surrogate.upper_bounds.ties, Ties.WORST):
        reached = replace(surrogate.upper_bounds, ties=ties).per_query(scores, y, ptr)
        assert (losses[relevant] >= (1 - reached)[relevant] - 1e-12).all()


@pytest.mark.parametrize("name", [m for m, _, _ in MEASURES])
@given(case=lists())
@settings(max_examples=30, deadline=None)
def test_minimax_bounds_every_measure_and_slam(name, case):
    scores, y, ptr = case
    losses, _ = Minimax().per_query(scores, y, ptr)
    expected = [oracle.minimax(s, g) for s, g in each(*case)]
    np.testing.assert_allclose(losses, expected, atol=1e-12)
    assert (losses >= Slam(name).per_query(scores, y, ptr)[0] - 1e-12).all()  # Σ v_i hinge_i ≤ the largest hinge


def test_the_minimax_subgradient_is_that_of_the_first_pair_with_the_largest_hinge():
    _, grad = Minimax().per_query(np.zeros(4), np.array([2.0, 1.0, 1.0, 0.0]), np.array([0, 4]))
    assert grad.tolist() == [-1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("surrogate", [Slam("ndcg"), Slam("ndcg@3"), Slam("map", 2.0), Minimax()], ids=str)
@given(case=lists(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_convex_with_a_subgradient(surrogate, case, data):
    assert surrogate.convex
    scores, y, ptr = case
    other = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=len(y), max_size=len(y))))
    value, grad = surrogate.value_and_grad(scores, y, ptr)
    assert surrogate.value_and_grad(other, y, ptr)[0] >= value + grad @ (other - scores) - 1e-9
    for a, b in itertools.pairwise(ptr):
        assert grad[a:b].sum() == pytest.approx(0, abs=1e-12)  # a shift of all scores changes nothing
        assert np.linalg.norm(grad[a:b]) <= surrogate.lipschitz + 1e-12


def test_order_by_score_is_not_convex_and_never_larger():
    by_score, by_index = Slam("ndcg", within="score"), Slam("ndcg")
    assert not by_score.convex
    assert Slam("map", within="score").convex
    y, ptr = [1, 1, 0], [0, 3]
    left, right = np.array([0.0, 2.0, 1.5]), np.array([2.0, 0.0, 1.5])
    middle = by_score.value_and_grad((left + right) / 2, y, ptr)[0]
    assert middle > (by_score.value_and_grad(left, y, ptr)[0] + by_score.value_and_grad(right, y, ptr)[0]) / 2
    rng = np.random.default_rng(0)
    for _ in range(20):
        s, grades = rng.standard_normal(9), rng.integers(0, 3, 9)
        assert by_score.value_and_grad(s, grades, [0, 9])[0] <= by_index.value_and_grad(s, grades, [0, 9])[0] + 1e-12


def test_threshold_of_relevance_is_the_measure_s():
    y, ptr = [2, 1, 0], [0, 3]
    assert Slam("map").document_weights(y, ptr).tolist() == [0.5, 0.5, 0.0]
    assert Slam("map:above=1").document_weights(y, ptr).tolist() == [1.0, 0.0, 0.0]
    # with grade 1 irrelevant, a score above it is no error
    assert Slam("map:above=1").value_and_grad([3.0, 0.0, 1.0], y, ptr)[0] == 0.0


@pytest.mark.parametrize("within", ["index", "score"])
@given(case=lists())
@settings(max_examples=40, deadline=None)
def test_tight_weights_are_the_definition(within, case):
    scores, y, ptr = case
    found = Slam("map", weights="tight").document_weights(y, ptr, scores if within == "score" else None)
    expected = [v for s, g in each(scores, y, ptr) for v in oracle.tight_weights(s, g, within=within)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_tight_weights_bound_average_precision_in_every_order():
    """All places of the relevant among up to seven documents: what AP loses is at most the sum of the hinges' weights.

    A relevant document below an irrelevant one has a hinge of at least 1, whichever weight it was given; the smallest
    of the weights are enough. With one weight made a little smaller the bound fails somewhere.
    """
    closest = np.inf
    for m in range(2, 8):
        for relevant in itertools.product([0, 1], repeat=m):
            if not 0 < sum(relevant) < m:
                continue
            v = sorted(x for x in oracle.tight_weights([0.0] * m, relevant) if x > 0)
            below = sum(1 for i in range(m) if relevant[i] and 0 in relevant[:i])
            lost = 1.0 - oracle.average_precision([-float(i) for i in range(m)], relevant)
            assert sum(v[:below]) >= lost - 1e-12
            if below:
                closest = min(closest, sum(v[:below]) - lost)
    assert closest < 1e-12  # no smaller weights would do


@given(case=lists())
@settings(max_examples=60, deadline=None)
def test_tight_weights_give_the_smaller_bound(case):
    scores, y, ptr = case
    tight, paper = Slam("map", weights="tight"), Slam("map")
    blank = np.array([not (y[a:b] > 0).any() for a, b in itertools.pairwise(ptr)], dtype=bool)
    lost = np.where(blank, 0.0, 1.0 - tr.measure("map").per_query(scores, y, ptr))
    found = tight.per_query(scores, y, ptr)[0]
    assert (found >= lost - 1e-9).all()
    assert (found <= paper.per_query(scores, y, ptr)[0] + 1e-12).all()


def test_tight_weights_are_for_average_precision():
    with pytest.raises(tr.InputError, match="weights='tight' are known for map, not for ndcg@10"):
        Slam("ndcg@10", weights="tight")
    with pytest.raises(tr.InputError, match="weights='tight' are known for map"):
        tr.SlamPerceptron("ndcg", weights="tight").fit([[0.0], [1.0]], [0, 1])


def test_the_perceptron_with_tight_weights_is_certified():
    data = tr.datasets.make_graded(n_queries=40, n_grades=2, random_state=0)
    ranker = tr.SlamPerceptron("map", eta=0.1, weights="tight", shuffle=False, epochs=1).fit_queries(data)
    paper = tr.SlamPerceptron("map", eta=0.1, shuffle=False, epochs=1).fit_queries(data)
    assert not np.allclose(ranker.coef_, paper.coef_)
    verdicts = {c.reference: c.verdict for c in ranker.certify(data)}
    assert (verdicts["Lemma 5"], verdicts["Eq. 17"]) == ("holds", "holds")
    assert "violated" not in verdicts.values()


def test_gain_and_discount_are_the_measure_s():
    v = Slam("ndcg:gain=linear:discount=letor").document_weights([3, 2, 1], [0, 3])
    expected = np.array([3 * 1.0, 2 * 1.0, 1 / np.log2(3)])
    np.testing.assert_allclose(v, expected / expected.sum())


def test_a_smaller_margin_bounds_no_measure():
    assert Slam("ndcg", margin=0.5).upper_bounds is None
    assert Minimax(margin=0.5).upper_bounds is None
    assert Slam("ndcg@5:letor4").upper_bounds is None  # scores 0 on short lists, whatever the order
    by_id = Slam("map:trec_eval")
    assert by_id.upper_bounds is None  # where single precision sees a tie, the loss may be 1 and every hinge 0
    scores, y, ptr = np.array([1e9 + 2, 1e9]), np.array([1.0, 0.0]), np.array([0, 2])
    assert by_id.per_query(scores, y, ptr)[0][0] == 0 < 1 - measure("map:trec_eval").per_query(scores, y, ptr)[0]


@pytest.mark.parametrize("bad", ["mrr", "map@5", "p@3"])
def test_measures_without_weights_are_refused(bad):
    with pytest.raises(tr.InputError, match="SLAM has weights for"):
        Slam(bad)


def test_blocks_add_up_and_batch_solvers_take_it():
    data = tr.datasets.make_graded(n_queries=30, n_docs=(3, 8), n_features=4, random_state=0)
    from toprank.objective import Objective
    from toprank.penalties import L2

    w = np.random.default_rng(0).standard_normal(4)
    value, grad = Objective(data, Slam("ndcg@5"), L2(0.1)).value_and_grad(w)
    s = data.X @ w
    total = sum(oracle.slam(a, b, "ndcg", 5) for a, b in each(s, data.y, data.ptr))
    assert value == pytest.approx(total / data.informative.sum() + 0.05 * w @ w)
    step = 1e-6 * np.random.default_rng(1).standard_normal(4)
    assert Objective(data, Slam("ndcg@5"), L2(0.1)).value_and_grad(w + step)[0] >= value + grad @ step - 1e-12
