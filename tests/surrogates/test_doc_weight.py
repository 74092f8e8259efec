"""Weights of documents: a preferred document of weight c counts as c of them, and other losses refuse."""

from itertools import pairwise

import numpy as np
import pytest

import toprank as tr
from toprank.surrogates import ListMLE, ListNet, Minimax, PairwiseHinge, PrecAvg, RankCosine, Slam

PTR = np.array([0, 5, 9])
Y = np.array([2.0, 0.0, 1.0, 1.0, 0.0, 0.0, 3.0, 1.0, 0.0])
C = np.array([2.0, 0.5, 1.0, 3.0, 7.0, 1.0, 0.25, 2.0, 4.0])


def by_hand(name, s, y, c):
    """The weighted loss of one list, straight from the definition."""
    if name == "listnet":
        target = c * np.exp(y)
        log_p = s - np.log(np.exp(s).sum())
        return -(target / target.sum() * log_p).sum()
    if name == "map":  # v = 1/r on the relevant documents
        r = (y > 0).sum()
        hinge = [max(0, max(1 + s[j] - s[i] for j in range(len(y)) if y[j] == 0)) for i in range(len(y))]
        return sum(c[i] / r * hinge[i] for i in range(len(y)) if y[i] > 0)
    power = 2 if name == "squared" else 1
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    total = sum(c[i] * max(0, 1 - s[i] + s[j]) ** power for i, j in pairs)
    return total / sum(c[i] for i, _ in pairs) if name == "mean" else total


CASES = {
    "listnet": ListNet(),
    "map": Slam("map"),
    "hinge": PairwiseHinge(),
    "squared": PairwiseHinge("squared_hinge"),
    "mean": PairwiseHinge(normalize=True),
}


@pytest.mark.parametrize("name", CASES)
def test_weighted_value_and_gradient(name):
    loss, s = CASES[name], np.random.default_rng(3).normal(size=9)
    value, grad = loss.value_and_grad(s, Y, PTR, doc_weight=C)
    assert value == pytest.approx(sum(by_hand(name, s[a:b], Y[a:b], C[a:b]) for a, b in pairwise(PTR)), rel=1e-12)
    assert value != pytest.approx(loss.value_and_grad(s, Y, PTR)[0], rel=1e-3)
    for i in range(9):
        step = np.zeros(9)
        step[i] = 1e-6
        up, down = (loss.value_and_grad(s + sign * step, Y, PTR, doc_weight=C)[0] for sign in (1, -1))
        assert grad[i] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_weights_of_one_change_nothing():
    s = np.random.default_rng(4).normal(size=9)
    for loss in CASES.values():
        plain, ones = loss.value_and_grad(s, Y, PTR), loss.value_and_grad(s, Y, PTR, doc_weight=np.ones(9))
        assert ones[0] == plain[0]
        assert ones[1].tobytes() == plain[1].tobytes()


def test_weighted_curvature_is_the_difference_of_gradients():
    loss, rng = PairwiseHinge("squared_hinge", normalize=True), np.random.default_rng(5)
    s, v = rng.normal(size=9), rng.normal(size=9)
    product = loss.curvature(s, Y, PTR, None, C).product(v)
    up, down = (loss.value_and_grad(s + sign * 1e-6 * v, Y, PTR, doc_weight=C)[1] for sign in (1, -1))
    np.testing.assert_allclose(product, (up - down) / 2e-6, atol=1e-6)


@pytest.mark.parametrize("loss", [ListMLE(), RankCosine(), Minimax(), PrecAvg(), ListNet(k=2)], ids=str)
def test_other_losses_refuse_by_name(loss):
    with pytest.raises(tr.InputError, match=rf"{type(loss).__name__}.* takes no weights of documents"):
        loss.value_and_grad(np.zeros(9), Y, PTR, doc_weight=C)


def test_bad_weights_are_named():
    with pytest.raises(tr.InputError, match=r"one weight per document \(9\)"):
        ListNet().value_and_grad(np.zeros(9), Y, PTR, doc_weight=[1.0])
    with pytest.raises(tr.InputError, match=r"doc_weight has -1\.0 in row 0"):
        ListNet().value_and_grad(np.zeros(9), Y, PTR, doc_weight=-np.ones(9))
