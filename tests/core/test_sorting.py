"""The one sort and the one selection, against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.core.sorting import RUN_LENGTH, best_first, kth_largest, longest_list, number_grades, order_down, sort_down

few_values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=80).map(np.array)
any_values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=80).map(np.array)
values = st.one_of(few_values, any_values)


@pytest.mark.parametrize("n", [RUN_LENGTH, RUN_LENGTH + 1, 3 * RUN_LENGTH + 7, 1000])
def test_long_lists_are_merged(n):
    rng = np.random.default_rng(n)
    for x in (rng.normal(size=n), rng.integers(0, 9, n).astype(float)):
        keys, items = x.copy(), np.arange(n)
        assert sort_down(keys, items) == (x[:, None] < x)[np.triu_indices(n)].sum()
        np.testing.assert_array_equal(items, np.argsort(-x, kind="stable"))
        np.testing.assert_array_equal(keys, x[items])


@given(values)
def test_the_sort_is_stable_and_counts_the_pairs_that_stood_the_wrong_way_round(x):
    keys, items = x.copy(), np.arange(len(x))
    wrong = sort_down(keys, items)
    np.testing.assert_array_equal(items, np.argsort(-x, kind="stable"))
    np.testing.assert_array_equal(keys, x[items])
    assert wrong == sum(x[i] < x[j] for i in range(len(x)) for j in range(i + 1, len(x)))
    np.testing.assert_array_equal(order_down(x), items)


@given(values, st.data())
def test_the_kth_largest_and_the_best_k(x, data):
    k = data.draw(st.integers(1, len(x)))
    before = x.copy()
    assert kth_largest(x, k) == np.sort(x)[::-1][k - 1]
    top = np.full(len(x), -1)
    assert best_first(x, k, top) == k
    np.testing.assert_array_equal(top[:k], np.argsort(-x, kind="stable")[:k])
    np.testing.assert_array_equal(x, before)


def test_more_places_than_documents_and_none():
    top = np.full(3, -1)
    assert best_first(np.array([1.0, 2.0]), 3, top) == 2
    assert top.tolist() == [1, 0, -1]
    assert best_first(np.empty(0), 3, top) == 0


@given(values)
def test_grades_are_numbered_upwards(y):
    level = np.empty(len(y), dtype=np.int64)
    distinct, expected = np.unique(y, return_inverse=True)
    assert number_grades(y, level) == len(distinct)
    np.testing.assert_array_equal(level, expected)


def test_the_longest_list():
    assert longest_list(np.array([0, 2, 7, 8])) == 5
