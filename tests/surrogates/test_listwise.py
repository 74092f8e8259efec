"""ListNet, ListMLE and RankCosine × three transforms × three truths, against their definitions."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import listwise as oracle
from toprank.surrogates import Exponential, Linear, ListMLE, ListNet, RankCosine, Sigmoid

TRANSFORMS = {
    Linear(0.7, 6.0): oracle.phi("linear", 0.7, 6.0),
    Exponential(0.8): oracle.phi("exponential", 0.8),
    Sigmoid(1.3): oracle.phi("sigmoid", 1.3),
}
LOSSES = [ListNet(), ListNet(k=2), ListNet(k="full"), ListMLE(), ListMLE(ties="sampled", seed=3), RankCosine()]
EVERY = [replace(loss, transform=transform) for loss in LOSSES for transform in TRANSFORMS]

lists = st.lists(
    st.lists(st.tuples(st.floats(-8, 8), st.integers(0, 4)), min_size=1, max_size=5), min_size=1, max_size=3
)


def flat(queries):
    scores = np.array([s for q in queries for s, _ in q])
    y = np.array([float(g) for q in queries for _, g in q])
    return scores, y, np.cumsum([0] + [len(q) for q in queries])


@given(lists, st.sampled_from(list(TRANSFORMS)), st.sampled_from(["grades", "gains"]), st.sampled_from([1, 2, 3, 9]))
def test_listnet_is_the_definition(queries, transform, truth, k):
    scores, y, ptr = flat(queries)
    losses, _ = ListNet(truth, transform, k).per_query(scores, y, ptr)
    for loss, (a, b) in zip(losses, pairwise(ptr), strict=True):
        wanted = oracle.listnet(scores[a:b], oracle.true_scores(y[a:b], truth), TRANSFORMS[transform], k)
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)


@given(lists, st.sampled_from(list(TRANSFORMS)))
def test_full_listnet_is_top_m(queries, transform):
    scores, y, ptr = flat(queries)
    losses, grad = ListNet(transform=transform, k="full").per_query(scores, y, ptr)
    for q, (a, b) in enumerate(pairwise(ptr)):
        assert losses[q] == pytest.approx(
            oracle.listnet(scores[a:b], y[a:b], TRANSFORMS[transform], b - a), rel=1e-10, abs=1e-10
        )
    # Walking through ordered beginnings and through sets of documents are two roads to the same sum.
    from toprank.surrogates import _permutation_kernels as kernels

    for a, b in pairwise(ptr):
        if b - a < 2:
            continue
        u, target = transform.log(scores[a:b]), transform.log(y[a:b])
        walked = np.zeros(b - a)
        kernels.sum_over_beginnings(u, target, b - a - 1, walked, np.empty(0))
        np.testing.assert_allclose(walked * transform.log_slope(scores[a:b]), grad[a:b], atol=1e-10)


@given(lists, st.sampled_from(list(TRANSFORMS)))
def test_listmle_is_the_definition(queries, transform):
    scores, y, ptr = flat(queries)
    losses, _ = ListMLE(transform=transform).per_query(scores, y, ptr)
    for loss, (a, b) in zip(losses, pairwise(ptr), strict=True):
        wanted = oracle.listmle(scores[a:b], oracle.order_of(y[a:b]), TRANSFORMS[transform])
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)


@given(lists, st.sampled_from(list(TRANSFORMS)), st.sampled_from(["grades", "gains"]))
def test_rank_cosine_is_the_definition(queries, transform, truth):
    scores, y, ptr = flat(queries)
    losses, _ = RankCosine(truth, transform).per_query(scores, y, ptr)
    for loss, (a, b) in zip(losses, pairwise(ptr), strict=True):
        wanted = oracle.rank_cosine(scores[a:b], oracle.true_scores(y[a:b], truth), TRANSFORMS[transform])
        assert loss == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=5, unique=True), st.sampled_from(EVERY))
def test_an_explicit_order_is_the_number_of_documents_below(y, loss):
    scores = np.linspace(-2, 3, len(y))
    ptr = np.array([0, len(y)])
    below = np.array(oracle.true_scores(y, "order"), dtype=float)
    value, grad = replace(loss, truth="order").per_query(scores, np.array(y), ptr)
    same, same_grad = loss.per_query(scores, below, ptr)
    assert value[0] == pytest.approx(same[0], rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(grad, same_grad, atol=1e-12)


@pytest.mark.parametrize("loss", EVERY, ids=str)
def test_gradient_is_the_finite_difference(loss):
    rng = np.random.default_rng(5)
    ptr = np.array([0, 1, 4, 4, 9])
    y = rng.integers(0, 3, 9).astype(float)
    for scale in (0.1, 2.0, 6.0):
        scores = rng.uniform(-scale, scale, 9)
        _, grad = loss.value_and_grad(scores, y, ptr)
        for i in range(9):
            step = np.zeros(9)
            step[i] = 1e-5
            up, down = (loss.value_and_grad(scores + sign * step, y, ptr)[0] for sign in (1, -1))
            assert grad[i] == pytest.approx((up - down) / 2e-5, abs=2e-8)


@pytest.mark.parametrize("loss", EVERY, ids=str)
def test_diagonal_is_the_second_difference_without_the_bend_of_the_transform(loss):
    """ℓ'' = u'² · h + (∂ℓ/∂u) u'', and the Gauss-Newton part is the first term where ℓ is a likelihood."""
    rng = np.random.default_rng(6)
    ptr, y, scores = np.array([0, 3, 8]), rng.integers(0, 3, 8).astype(float), rng.uniform(-2, 2, 8)
    curve = loss.diagonal(scores, y, ptr)
    assert (curve > 0).all()
    assert np.ptp(curve) > 0.01 * curve.max()
    if isinstance(loss, RankCosine):
        at_truth = loss.diagonal(y, y, ptr)  # where the residual is 0 the Gauss-Newton part is all there is
        scores, curve = y, at_truth
    slope = loss.transform.log_slope(scores)
    bend = (loss.transform.log_slope(scores + 1e-5) - loss.transform.log_slope(scores - 1e-5)) / 2e-5
    _, grad = loss.per_query(scores, y, ptr)
    for i in range(8):
        step = np.zeros(8)
        step[i] = 1e-5
        up, down = (loss.per_query(scores + sign * step, y, ptr)[1][i] for sign in (1, -1))
        assert curve[i] == pytest.approx((up - down) / 2e-5 - grad[i] / slope[i] * bend[i], abs=1e-6)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=str)
def test_likelihood_sums_to_one_over_permutations(transform):
    scores = np.array([0.3, -1.2, 2.0, 0.9, -0.1])
    total = 0.0
    for order in permutations(range(5)):
        y = np.empty(5)
        y[list(order)] = np.arange(5, 0, -1)
        total += np.exp(-ListMLE("order", transform).per_query(scores, y, np.array([0, 5]))[0][0])
    assert total == pytest.approx(1, rel=1e-12)


@given(lists, st.floats(-50, 50), st.sampled_from([loss for loss in EVERY if isinstance(loss.transform, Exponential)]))
def test_the_exponential_sees_differences_only(queries, shift, loss):
    scores, y, ptr = flat(queries)
    here, grad = loss.per_query(scores, y, ptr)
    there, _ = loss.per_query(scores + shift, y, ptr)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)
    for a, b in pairwise(ptr):
        assert grad[a:b].sum() == pytest.approx(0, abs=1e-9)


def test_other_transforms_do_not():
    scores, y, ptr = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0, 2])
    for loss in (ListNet(transform=Sigmoid()), ListMLE(transform=Linear(1, 5)), RankCosine(transform=Sigmoid())):
        assert loss.per_query(scores + 2, y, ptr)[0][0] != pytest.approx(loss.per_query(scores, y, ptr)[0][0])


@pytest.mark.parametrize("loss", [loss for loss in EVERY if not isinstance(loss.transform, Linear)], ids=str)
def test_extreme_scores_give_finite_values(loss):
    y, ptr = np.array([0.0, 2.0, 1.0, 0.0]), np.array([0, 4])
    for scores in ([1e4, -1e4, 0.0, 1e4], [-1e4] * 4, [-1e4, -1.1e4, -1e4, -9e3], [1e4, 1e4 + 1, 1e4, 1e4]):
        value, grad = loss.value_and_grad(scores, y, ptr)
        assert np.isfinite(value)
        assert np.isfinite(grad).all()
        assert np.isfinite(loss.diagonal(np.array(scores), y, ptr)).all()


@pytest.mark.parametrize("spread", [1.0, 100.0, 400.0, 1e4])
@pytest.mark.parametrize("name", ["exponential", "sigmoid"])
def test_listmle_keeps_its_digits_at_any_spread(name, spread):
    scores = spread * np.array([0.3, -1.0, 0.7, 0.69, -0.2])
    y = np.array([0.0, 4.0, 3.0, 1.0, 2.0])
    loss = ListMLE(transform=name)
    value, grad = loss.per_query(scores, y, np.array([0, 5]))
    order, exact = oracle.order_of(y), oracle.exact_phi(name, 1)
    assert value[0] == pytest.approx(oracle.exact_listmle(scores, order, exact), rel=1e-13)
    for i in range(5):
        step = np.zeros(5)
        step[i] = 1e-6
        up, down = (oracle.exact_listmle(scores + sign * step, order, exact) for sign in (1, -1))
        assert grad[i] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-4 if spread > 1e3 else 1e-6)


def test_linear_outside_its_domain_is_named():
    with pytest.raises(
        tr.InputError, match=r"score -2 in row 1 is outside linear\(1, 1\), which needs scores above -1"
    ):
        ListNet(transform=Linear()).value_and_grad([0.0, -2.0], [1, 0], [0, 2])


def test_ties_are_shuffled_by_seed_and_grades_alone():
    rng = np.random.default_rng(0)
    scores, y, ptr = rng.normal(size=60), rng.integers(0, 3, 60).astype(float), np.array([0, 20, 40, 60])
    loss = ListMLE(ties="sampled", seed=7)
    whole = loss.per_query(scores, y, ptr)
    alone = [loss.per_query(scores[a:b], y[a:b], np.array([0, b - a])) for a, b in pairwise(ptr)]
    assert whole[0].tobytes() == np.concatenate([part[0] for part in alone]).tobytes()
    assert whole[1].tobytes() == np.concatenate([part[1] for part in alone]).tobytes()
    assert (replace(loss, seed=8).per_query(scores, y, ptr)[0] != whole[0]).all()


def test_sampled_orders_are_uniform_inside_a_grade():
    """Each of the 3! orders of a tie comes up equally often: χ² with 5 degrees of freedom."""
    scores, y, ptr = np.array([0.5, 0.0, -1.0, 0.2]), np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 4])
    wanted = {}
    for order in permutations([0, 1, 3]):
        wanted[round(oracle.listmle(scores, [*order, 2], oracle.phi("exponential", 1)), 9)] = 0
    assert len(wanted) == 6
    for seed in range(3000):
        wanted[round(ListMLE(ties="sampled", seed=seed, orders=1).per_query(scores, y, ptr)[0][0], 9)] += 1
    assert sum((count - 500) ** 2 / 500 for count in wanted.values()) < 25.7  # the 0.9999 quantile


def test_several_orders_are_one_order_begun_later():
    """Four orders of four tied documents: each document takes each place once."""
    scores, y, ptr = np.array([0.5, 0.0, -1.0, 0.2, 1.7]), np.array([1.0, 1.0, 0.0, 1.0, 1.0]), np.array([0, 5])
    phi = oracle.phi("exponential", 1)
    turns = {
        round(np.mean([oracle.listmle(scores, [*order[i:], *order[:i], 2], phi) for i in range(4)]), 9)
        for order in permutations([0, 1, 3, 4])
    }
    assert len(turns) == 3  # an order and its reverse have the same mean
    found = {round(ListMLE(ties="sampled", seed=s, orders=4).per_query(scores, y, ptr)[0][0], 9) for s in range(40)}
    assert found == turns
    place = np.array([3, 0, 4, 1, 2])  # with places: the order is 1, 3, 4, 0
    given = ListMLE(ties="sampled", orders=1).per_query(scores, y, ptr, place=place)[0][0]
    assert given == pytest.approx(oracle.listmle(scores, [1, 3, 4, 0, 2], phi), rel=1e-12)


def test_rank_cosine_of_huge_scores():
    value, grad = RankCosine(transform="linear(1,5)").value_and_grad([1e200, 0.0], [1, 0], [0, 2])
    assert value == pytest.approx(0.5 * (1 - 6 / np.hypot(6, 5)), rel=1e-12)
    assert np.isfinite(grad).all()


def test_scores_that_are_not_finite_are_refused():
    for loss in (ListNet(), ListMLE(), RankCosine(), tr.surrogates.Slam("ndcg"), tr.surrogates.PrecAvg()):
        with pytest.raises(tr.InputError, match="row 0 is inf"):
            loss.value_and_grad([np.inf, 0.0], [1, 0], [0, 2])


def test_convexity_is_told_truly():
    """Along random lines: no convex one bends down, and each of the others does somewhere."""
    rng = np.random.default_rng(2)
    ptr, y = np.array([0, 5]), np.array([2.0, 0.0, 1.0, 0.0, 0.0])
    for loss in EVERY:
        bends = []
        for _ in range(300):
            middle, way = rng.uniform(-3, 3, 5), rng.normal(size=5)
            if rng.random() < 0.5:  # one document far ahead, and moving
                way = np.eye(5)[rng.integers(5)]
                middle += rng.uniform(0, 60) * way
            values = [loss.per_query(middle + t * way, y, ptr)[0][0] for t in (-0.05, 0, 0.05)]
            bends.append(values[0] - 2 * values[1] + values[2])
        assert (min(bends) > -1e-12) == loss.convex, loss


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ListNet(k=0), "k must be a whole number"),
        (lambda: ListNet(transform="softmax"), "transform must be 'linear', 'exponential' or 'sigmoid'"),
        (lambda: ListMLE(ties="random"), "ties must be one of 'fixed', 'sampled'"),
        (lambda: ListNet(k="full").value_and_grad(np.zeros(20), np.arange(20), [0, 20]), "query 0 of 20 documents"),
        (lambda: ListNet(k=5).value_and_grad(np.zeros(90), np.arange(90), [0, 90]), "take a smaller k"),
        (lambda: ListMLE("order").value_and_grad(np.zeros(5), [1, 0, 2, 2, 0], [0, 2, 5]), "query 1 has ties"),
        (lambda: RankCosine("order").value_and_grad(np.zeros(3), [1, 0, 1], [0, 3]), "query 0 has ties"),
    ],
)
def test_bad_choices_are_named(make, message):
    with pytest.raises(tr.InputError, match=message):
        make()
