"""Every measure under every convention is what its definition says, on every kind of list."""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.measures.lists import Lists, by_definition, for_measure, random_lists
from toprank.errors import InputError
from toprank.measures import AP, AUC, CONVENTIONS, ERR, NDCG, Blank, Gain, Measure, P, Ties, measure
from toprank.measures.catalog import kinds

KINDS = {kind.short_name: kind for kind in kinds()}


def assert_same(measure: Measure, lists: Lists, tolerance: float = 1e-12) -> None:
    values = measure.per_query(lists.scores, lists.y, lists.ptr, doc_ids=lists.ids)
    np.testing.assert_allclose(values, by_definition(measure, lists), rtol=0, atol=tolerance, err_msg=str(measure))


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", KINDS)
def test_every_measure_under_every_convention(name: str, convention: str) -> None:
    for k in (None, 1, 3, 10) if KINDS[name].cuts else (None,):
        if (name, convention) == ("map", "ranklib") and k is not None:
            continue
        one = KINDS[name](k=k, convention=convention)
        lists = for_measure(one, random_lists(k or 0, 60, shortest=0, longest=6, blank=0.25))
        assert_same(one, lists)
        lists = for_measure(one, random_lists(k or 0, 5, longest=90, tied=False))
        assert_same(one, lists)


@st.composite
def any_rules(draw) -> Measure:
    """A measure with every rule drawn freely."""
    kind = draw(st.sampled_from(list(KINDS.values())))
    rules = {}
    for field in fields(kind):
        hint = get_type_hints(kind)[field.name]
        if field.name == "ties":
            rules["ties"] = draw(st.sampled_from(kind.tie_rules))
        elif field.name == "share":
            rules["share"] = draw(st.sampled_from([0.07, 0.25, 1 / 3, 0.5, 1.0]))
        elif field.name == "p":
            rules["p"] = draw(st.floats(0.05, 0.95))
        elif field.name == "above":
            rules["above"] = draw(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]))
        elif field.name == "max_grade":
            rules["max_grade"] = draw(st.sampled_from([3.0, 4.5]))
        elif hint is bool:
            rules[field.name] = draw(st.booleans())
        elif isinstance(hint, type) and issubclass(hint, IntEnum):
            rules[field.name] = draw(st.sampled_from(list(hint)))
    return kind(k=draw(st.none() | st.integers(1, 8)) if kind.cuts else None, **rules)


small_lists = st.lists(
    st.lists(st.tuples(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, np.inf]), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])),
             max_size=5),
    min_size=1, max_size=4,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(any_rules(), small_lists)
def test_any_combination_of_rules(one: Measure, queries: list[list[tuple[float, float]]]) -> None:
    documents = [document for query in queries for document in query]
    lists = Lists(
        scores=np.array([score for score, _ in documents], dtype=float),
        y=np.array([grade for _, grade in documents], dtype=float),
        ptr=np.concatenate(([0], np.cumsum([len(query) for query in queries]))).astype(np.int64),
        ids=np.array([f"{7 * i % 10}" for i in range(len(documents))], dtype=str),
    )
    assert_same(one, lists)
    if one.reads_unjudged:
        lists.y = lists.y - (np.arange(len(lists.y)) % 3 == 0)
        assert_same(one, lists)
    assert measure(str(one)) == one


@pytest.mark.parametrize("length", [63, 64, 65, 200, 511, 513, 1100])
@pytest.mark.parametrize("spread", [3, 40, 10**6])
def test_long_lists_whatever_way_they_are_sorted(length: int, spread: int) -> None:
    """Counting, merging and picking the top agree with the definition, with few and with many ties."""
    rng = np.random.default_rng(length + spread)
    lists = Lists(
        scores=rng.integers(0, spread, 3 * length).astype(float),
        y=rng.integers(0, 5, 3 * length).astype(float),
        ptr=np.arange(0, 3 * length + 1, length),
        ids=np.array([f"d{i}" for i in rng.permutation(3 * length)]),
    )
    for ties in (Ties.INPUT, Ties.ID, Ties.WORST, Ties.BEST):
        for k in (1, 10, 32, 33, None):
            assert_same(NDCG(k=k, ties=ties), lists)
        assert_same(AP(ties=ties), lists)
    for ties in (Ties.WORST, Ties.ID):
        assert_same(P(k=7, ties=ties), lists)


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "organ pipe"])
@pytest.mark.parametrize("length", [100, 700])
def test_orders_that_are_hard_on_sorts(order: str, length: int) -> None:
    up = np.arange(length, dtype=float)
    scores = {"rising": up, "falling": -up, "equal": up * 0, "organ pipe": np.minimum(up, length - up)}[order]
    y = np.random.default_rng(0).integers(0, 5, length).astype(float)
    lists = Lists(scores, y, np.array([0, length]), np.array([f"d{i:04}" for i in range(length)]))
    by_file = NDCG(ties=Ties.INPUT)
    for one in (by_file, by_file @ 10, NDCG(k=10, ties=Ties.WORST), AP(ties=Ties.BEST), AP(ties=Ties.ID)):
        assert_same(one, lists)


@pytest.mark.parametrize("length", [20, 100, 600])
def test_scores_that_single_precision_cannot_tell_apart(length: int) -> None:
    rng = np.random.default_rng(length)
    scores = 1.0 + 1e-13 * rng.permutation(length)
    y = rng.integers(0, 4, length).astype(float)
    lists = Lists(scores, y, np.array([0, length]), np.array([f"d{i}" for i in range(length)]))
    for one in (NDCG(), NDCG(k=5), AP(ties=Ties.WORST), AUC()):
        assert_same(one, lists)
    by_id = np.argsort(lists.ids)[::-1]
    assert AP(ties=Ties.ID).per_query(scores, y, [0, length], doc_ids=lists.ids)[0] == pytest.approx(
        AP().per_query(np.arange(length, 0, -1), y[by_id], [0, length])[0], abs=1e-12
    ), "trec_eval reads scores in single precision, so here ids alone decide"


@pytest.mark.parametrize("length", [5, 60, 400])
def test_pair_accuracy_counts_pairs(length: int) -> None:
    rng = np.random.default_rng(length)
    scores, y = rng.integers(0, 20, length), rng.choice([0.0, 0.25, 1.5, 3.0], length)
    pairs = [(i, j) for i in range(length) for j in range(length) if y[i] > y[j]]
    right = sum((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]) for i, j in pairs)
    assert AUC().per_query(scores, y, [0, length])[0] == pytest.approx(right / len(pairs), abs=1e-12)


def test_zeros_of_both_signs_tie_and_infinities_stand_at_the_ends() -> None:
    by_file = AP(ties=Ties.INPUT)
    assert by_file.per_query([-0.0, 0.0], [1, 0], [0, 2]).tolist() == [1.0]
    assert by_file.per_query([0.0, -0.0], [0, 1], [0, 2]).tolist() == [0.5]
    assert AP().per_query([0.0, -0.0], [0, 1], [0, 2]).tolist() == [0.75]
    assert NDCG(k=1).per_query([0.0, np.inf, -np.inf], [0, 1, 0], [0, 3]).tolist() == [1.0]
    assert AP().per_query([1e300, 1e308, -np.inf], [0, 1, 1], [0, 3])[0] == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("name", KINDS)
def test_empty_queries_and_no_queries(name: str) -> None:
    kind = KINDS[name]
    assert kind().per_query([], [], [0]).tolist() == []
    none = np.nan if kind is AUC else 0.0
    np.testing.assert_array_equal(kind().per_query([], [], [0, 0, 0]), [none, none])
    assert np.isnan(kind().mean([], [], [0]))
    of_one = 1.0 if name == "judged" else none
    np.testing.assert_array_equal(kind().per_query([1.0], [0], [0, 0, 1, 1]), [none, of_one, none])


def test_blank_queries_count_as_their_rule_says() -> None:
    scores, y, ptr = [2.0, 1.0, 1.0], [0, 1, 0], [0, 2, 3]
    for blank, value in ((Blank.ZERO, 0.25), (Blank.ONE, 0.75), (Blank.SKIP, 0.5)):
        assert AP(blank=blank).mean(scores, y, ptr) == value
    assert np.isnan(AP(blank=Blank.SKIP).per_query(scores, y, ptr)[1])
    assert AP(blank=Blank.ONE).mean(scores, y, ptr, weight=[3, 1]) == (3 * 0.5 + 1) / 4
    assert AP(blank=Blank.SKIP).mean(scores, y, ptr, weight=[3, 1]) == 0.5


def test_grades_that_are_many_large_or_broken() -> None:
    rng = np.random.default_rng(0)
    y = rng.permutation(300).astype(float)
    lists = Lists(rng.normal(size=300), y, np.array([0, 300]), np.array([f"d{i}" for i in range(300)]))
    assert_same(NDCG(k=10), lists)
    assert_same(NDCG(gain=Gain.LINEAR), lists)
    lists.y = np.sqrt(y)
    assert_same(NDCG(), lists, 1e-9)
    assert NDCG(k=2).per_query([3.0, 2, 1], [62, 63, 0.5], [0, 3])[0] == pytest.approx(
        ((2.0**62 - 1) + (2.0**63 - 1) / np.log2(3)) / ((2.0**63 - 1) + (2.0**62 - 1) / np.log2(3))
    )
    message = r"y has the grade 1500 in row 1: 2\^l − 1 is too large to add up beyond 1000, use ndcg@10:gain=linear or"
    with pytest.raises(InputError, match=message):
        measure("ndcg@10").per_query([1.0, 2.0], [1, 1500], [0, 2])
    with pytest.raises(InputError, match="the grade 1023 in row 0"):
        measure("dcg").per_query([1.0, 2.0], [1023, 1023], [0, 2])
    assert measure("ndcg@10:gain=linear").per_query([1.0, 2.0], [1, 1500], [0, 2]).tolist() == [1.0]
    with pytest.raises(InputError, match="err takes grades up to max_grade=4, set it higher"):
        ERR().per_query([1.0], [5], [0, 1])
    with pytest.raises(InputError, match="negative grade -1 in row 0"):
        measure("ndcg").per_query([1.0, 2.0], [-1, 1], [0, 2])
    assert measure("map").per_query([1.0, 2.0], [-1, 1], [0, 2]).tolist() == [1.0]
    with pytest.raises(InputError, match="NaN in row 1"):
        measure("map").per_query([1.0, np.nan], [-1, 1], [0, 2])


def test_discounts_of_late_ranks() -> None:
    length = 4100
    y = np.zeros(length)
    y[-1] = 1
    for discount, beyond in (("log2", length + 1), ("letor", length)):
        found = measure(f"dcg:discount={discount}").per_query(np.arange(length, 0, -1.0), y, [0, length])
        assert found[0] == pytest.approx(1 / np.log2(beyond), abs=1e-12)
