from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import pairwise as oracle
from toprank.surrogates.pairwise import pair_counts

whole_grades = st.integers(0, 3).map(float)
any_grades = st.sampled_from([0.0, 0.25, 0.5, 3.75, 40.0])


@st.composite
def lists(draw):
    """Scores on a grid of exact numbers (ties, pairs exactly at the margin) with whole or uneven grades."""
    lengths = draw(st.lists(st.integers(0, 30), min_size=1, max_size=3))
    n = sum(lengths)
    grade = draw(st.sampled_from([whole_grades, any_grades]))
    y = np.array(draw(st.lists(grade, min_size=n, max_size=n)))
    s = np.array(draw(st.lists(st.integers(-12, 12), min_size=n, max_size=n))) / draw(st.sampled_from([1, 2, 8]))
    return s.astype(float), y.astype(float), np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def by_pairs(s, y, ptr, squared):
    parts = [oracle.hinge(s[a:b], y[a:b], squared) for a, b in pairwise(ptr)]
    return [value for value, _ in parts], np.concatenate([np.array(grad) for _, grad in parts])


@given(lists(), st.booleans(), st.booleans())
@settings(max_examples=150)
def test_value_and_gradient_are_those_of_the_pair_list(data, squared, normalize):
    s, y, ptr = data
    loss = "squared_hinge" if squared else "hinge"
    losses, grad = tr.surrogates.PairwiseHinge(loss, normalize=normalize).per_query(s, y, ptr)
    expected, expected_grad = by_pairs(s, y, ptr, squared)
    if normalize:
        counts = [max(len(oracle.pairs(y[a:b])), 1) for a, b in pairwise(ptr)]
        expected = np.array(expected) / counts
        expected_grad = expected_grad / np.repeat(counts, np.diff(ptr))
    np.testing.assert_allclose(losses, expected, atol=1e-9)
    np.testing.assert_allclose(grad, expected_grad, atol=1e-9)


@given(lists(), st.integers(0, 2**32 - 1))
def test_hessian_product_is_that_of_the_pair_list(data, seed):
    s, y, ptr = data
    v = np.random.default_rng(seed).normal(size=len(s))
    weight = np.arange(1.0, len(ptr))
    product = tr.surrogates.PairwiseHinge("squared_hinge").curvature(s, y, ptr, weight).product(v)
    expected = [
        w * np.array(oracle.hessian_product(s[a:b], y[a:b], v[a:b]))
        for a, b, w in zip(ptr[:-1], ptr[1:], weight, strict=True)
    ]
    np.testing.assert_allclose(product, np.concatenate(expected), atol=1e-9)


@pytest.mark.parametrize("n", [8, 9, 511, 512, 513, 1500])
@pytest.mark.parametrize("weighted", [False, True])
def test_short_and_long_lists_are_those_of_the_pair_list(n, weighted):
    rng = np.random.default_rng(n)
    s, y, v = 3 * rng.normal(size=n), rng.integers(0, 4, n).astype(float), rng.normal(size=n)
    c = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    slack = np.where(y[:, None] > y, np.maximum(1 - (s[:, None] - s), 0), 0)
    found = tr.surrogates.PairwiseHinge("squared_hinge").curvature(
        s, y, np.array([0, n]), None, c if weighted else None
    )
    assert found.loss == pytest.approx(c @ (slack**2).sum(axis=1))
    np.testing.assert_allclose(found.slopes, 2 * (c @ slack - c * slack.sum(axis=1)), atol=1e-8)
    pairs = c[:, None] * (slack > 0)
    expected = 2 * (pairs.sum(axis=1) + pairs.sum(axis=0)) * v - 2 * (pairs @ v + pairs.T @ v)
    np.testing.assert_allclose(found.product(v), expected, atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_gradient_is_the_slope(loss):
    rng = np.random.default_rng(3)
    s, y = rng.normal(size=40), rng.integers(0, 4, 40).astype(float)
    surrogate, ptr = tr.surrogates.PairwiseHinge(loss), [0, 25, 40]
    _, grad = surrogate.value_and_grad(s, y, ptr)
    for i in range(0, 40, 7):
        step = np.zeros(40)
        step[i] = 1e-6
        up, down = (surrogate.value_and_grad(s + sign * step, y, ptr)[0] for sign in (1, -1))
        assert (up - down) / 2e-6 == pytest.approx(grad[i], abs=1e-3)


def test_a_shift_of_a_list_changes_nothing():
    rng = np.random.default_rng(0)
    s, y = rng.normal(size=200), rng.integers(0, 3, 200).astype(float)
    surrogate = tr.surrogates.PairwiseHinge("squared_hinge")
    value, grad = surrogate.value_and_grad(s, y, [0, 200])
    shifted, shifted_grad = surrogate.value_and_grad(s + 1e6, y, [0, 200])
    assert shifted == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(shifted_grad, grad, atol=1e-5)
    assert grad.sum() == pytest.approx(0, abs=1e-8)


def test_counts_pairs():
    y, ptr = np.array([0.0, 1.0, 1.0, 2.0, 5.0, 5.0, 0.5]), np.array([0, 4, 6, 6, 7])
    assert pair_counts(y, ptr).tolist() == [len(oracle.pairs(y[:4])), 0, 0, 0]


def test_five_thousand_documents_in_one_list():
    rng = np.random.default_rng(1)
    s, y = rng.normal(size=5000), rng.integers(0, 5, 5000).astype(float)
    value, grad = tr.surrogates.PairwiseHinge().value_and_grad(s, y, [0, 5000])
    gap = 1 - (s[:, None] - s[None, :])
    active = (y[:, None] > y[None, :]) & (gap > 0)
    assert value == pytest.approx(gap[active].sum())
    np.testing.assert_allclose(grad, active.sum(axis=0) - active.sum(axis=1))


def test_the_hinge_has_no_second_derivative():
    with pytest.raises(tr.InputError, match="squared_hinge"):
        tr.surrogates.PairwiseHinge().curvature(np.zeros(2), np.array([1.0, 0.0]), np.array([0, 2]), None)
