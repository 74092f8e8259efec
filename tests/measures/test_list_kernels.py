"""One list at a time, as learners judge it: what evaluation finds, what definitions say, and 1 for the best order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measures.lists import by_definition, random_lists
from toprank.core.jit import kernel
from toprank.measures import AP, NDCG, Discount, Gain, Short
from toprank.measures._list_kernels import APRule, NDCGRule, measure_of_list, places_at_share
from toprank.measures.dcg import discounts

RULES = [
    (
        NDCG(k=k, gain=gain, discount=discount, short=Short.SHORTEN),
        NDCGRule(k or 0, int(gain), discounts(200, discount)),
    )
    for k in (None, 1, 3, 10)
    for gain in Gain
    for discount in Discount
] + [(AP(above=above), APRule(above)) for above in (0.0, 1.0)]


@kernel
def measures_of_lists(rule, s, y, ptr):
    values = np.empty(len(ptr) - 1)
    for q in range(len(values)):
        values[q] = measure_of_list(rule, s[ptr[q] : ptr[q + 1]], y[ptr[q] : ptr[q + 1]])
    return values


@pytest.mark.parametrize(("one", "rule"), RULES, ids=lambda value: str(value)[:40])
def test_a_list_is_judged_as_the_definition_says(one, rule):
    for seed in range(4):
        lists = random_lists(seed, 40, shortest=0, longest=6, blank=0.25)
        values = measures_of_lists(rule, lists.scores, lists.y, lists.ptr)
        np.testing.assert_allclose(values, by_definition(one, lists), rtol=0, atol=1e-12)
    for lists in (random_lists(7, 20, longest=150, tied=False), random_lists(8, 20, longest=150)):
        values = measures_of_lists(rule, lists.scores, lists.y, lists.ptr)
        np.testing.assert_allclose(values, one.per_query(lists.scores, lists.y, lists.ptr), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("one", "rule"), RULES, ids=lambda value: str(value)[:40])
def test_the_best_order_has_the_value_1_to_the_last_bit(one, rule):
    lists = random_lists(3, 300, longest=150, blank=0.0)
    noise = np.random.default_rng(0).random(len(lists.y))
    found = one.per_query(lists.y, lists.y, lists.ptr) > 0
    for best in (lists.y + noise, lists.y, 3.7 * lists.y):  # without ties, and tied only where grades are equal
        assert (measures_of_lists(rule, best, lists.y, lists.ptr)[found] == 1.0).all()
    assert (measures_of_lists(rule, -lists.y, lists.y, lists.ptr) <= 1.0).all()


def test_tied_documents_where_every_order_is_best_count_as_the_best_order():
    rule = NDCGRule(2, int(Gain.EXP2), discounts(2, Discount.LETOR))  # its first two places count the same
    for y in ([3.0, 1.0, 0.0], [0.3, 0.1, 0.0]):
        values = measures_of_lists(rule, np.array([2.0, 2.0, 1.0]), np.array(y), np.array([0, 3]))
        assert values.tolist() == [1.0]


def test_tied_documents_that_cost_next_to_nothing_count_as_the_best_order():
    rule, y, ptr = (
        NDCGRule(0, int(Gain.EXP2), discounts(3, Discount.LOG2)),
        np.array([44.0, 1.0, 0.0]),
        np.array([0, 3]),
    )
    assert measures_of_lists(rule, np.array([3.0, 1.0, 1.0]), y, ptr).tolist() == [1.0]
    assert 1 - 1e-12 < measures_of_lists(rule, np.array([3.0, 1.0, 2.0]), y, ptr)[0] < 1.0, "but not where none tie"


def test_places_at_a_share_are_one_function():
    counts = np.arange(300)
    for share in (0.07, 0.25, 1 / 3, 0.5, 1.0):
        assert places_at_share(share, counts).tolist() == [places_at_share(share, int(n)) for n in counts]
        assert places_at_share(share, counts).tolist() == [places_at_share.py_func(share, int(n)) for n in counts]
    assert places_at_share(0.07, 100) == 7
