from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import listwise as oracle

lists = st.lists(
    st.lists(st.tuples(st.floats(-8, 8), st.integers(0, 4)), min_size=1, max_size=6), min_size=1, max_size=4
)


def flat(queries):
    scores = np.array([s for q in queries for s, _ in q])
    y = np.array([float(g) for q in queries for _, g in q])
    return scores, y, np.cumsum([0] + [len(q) for q in queries])


@given(lists, st.sampled_from(["grades", "gains"]))
def test_value_is_the_definition(queries, truth):
    scores, y, ptr = flat(queries)
    value, _ = tr.surrogates.ListNet(truth=truth).value_and_grad(scores, y, ptr)
    target = y if truth == "grades" else 2**y - 1
    wanted = sum(oracle.listnet_top_one(scores[a:b], target[a:b]) for a, b in pairwise(ptr))
    assert value == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@given(lists)
def test_gradient_is_the_finite_difference(queries):
    scores, y, ptr = flat(queries)
    loss = tr.surrogates.ListNet()
    _, grad = loss.value_and_grad(scores, y, ptr)
    for i in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        slope = (loss.value_and_grad(up, y, ptr)[0] - loss.value_and_grad(down, y, ptr)[0]) / 2e-5
        assert grad[i] == pytest.approx(slope, abs=1e-7)


def test_extreme_scores_stay_finite():
    value, grad = tr.surrogates.ListNet().value_and_grad([1e4, -1e4, 0.0], [0, 2, 1], [0, 3])
    assert np.isfinite(value)
    assert value > 1e4
    assert np.isfinite(grad).all()


def test_weights_scale_lists_and_empty_lists_count_nothing():
    loss = tr.surrogates.ListNet()
    scores, y = [1.0, 0.0, 3.0, 2.0], [0, 1, 1, 0]
    a, ga = loss.value_and_grad(scores[:2], y[:2], [0, 2])
    b, gb = loss.value_and_grad(scores[2:], y[2:], [0, 2])
    both, grad = loss.value_and_grad(scores, y, [0, 2, 2, 4], weight=[2.0, 7.0, 3.0])
    assert both == pytest.approx(2 * a + 3 * b)
    np.testing.assert_allclose(grad, np.concatenate([2 * ga, 3 * gb]))


def test_unknown_truth_is_named():
    with pytest.raises(tr.InputError, match="truth must be one of 'grades', 'gains', 'order', got 'grade'"):
        tr.surrogates.ListNet(truth="grade")
