"""The standard value is the expected one over the orders of tied documents: the order of the rows does not count."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.measures.lists import Lists, by_definition, for_measure, random_lists
from toprank.measures import AUC, Measure, P, Ties, measure
from toprank.measures.catalog import kinds
from toprank.measures.plan import Plan

STANDARD = [kind(k=k) for kind in kinds() for k in ((None, 1, 4) if kind.cuts else (None,))]


def shuffled(lists: Lists, seed: int) -> Lists:
    """The same queries, their documents in another order of rows."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([a + rng.permutation(b - a) for a, b in zip(lists.ptr[:-1], lists.ptr[1:], strict=True)])
    return Lists(lists.scores[rows], lists.y[rows], lists.ptr, lists.ids[rows])


@pytest.mark.parametrize("one", STANDARD, ids=str)
def test_no_order_of_the_rows_changes_a_bit(one: Measure) -> None:
    for lists in (random_lists(0, 30, longest=40), random_lists(1, 3, shortest=600, longest=700)):
        for_measure(one, lists)
        if not one.short_name.startswith("err"):
            lists.y = np.sqrt(lists.y)  # grades whose sums are rounded
        expected = one.per_query(lists.scores, lists.y, lists.ptr)
        for seed in range(3):
            moved = shuffled(lists, seed)
            np.testing.assert_array_equal(one.per_query(moved.scores, moved.y, moved.ptr), expected)


@pytest.mark.parametrize("one", STANDARD, ids=str)
def test_where_nothing_is_tied_the_order_is_the_one_of_the_scores(one: Measure) -> None:
    lists = for_measure(one, random_lists(2, 40, longest=30, tied=False))
    by_row = replace(one, ties=Ties.INPUT).per_query(lists.scores, lists.y, lists.ptr)
    np.testing.assert_array_equal(one.per_query(lists.scores, lists.y, lists.ptr), by_row)


@pytest.mark.parametrize("one", STANDARD, ids=str)
def test_a_constant_scorer_gets_what_a_random_order_gets(one: Measure) -> None:
    """In particular, rows that come sorted by grade give it nothing."""
    grades = np.array([3.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    lists = for_measure(one, Lists(np.zeros(6), grades, np.array([0, 6]), np.arange(6)))
    assert one.per_query(lists.scores, lists.y, lists.ptr)[0] == pytest.approx(by_definition(one, lists)[0], rel=1e-13)
    rng = np.random.default_rng(0)
    ptr = np.arange(0, 6 * 20_000 + 1, 6)
    random = one.per_query(rng.random(ptr[-1]), np.tile(lists.y, len(ptr) - 1), ptr)
    error = random.std() / np.sqrt(len(random))
    assert abs(random.mean() - one.per_query(lists.scores, lists.y, lists.ptr)[0]) < 5 * error + 1e-14


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(STANDARD))
def test_best_and_worst_order_lie_on_both_sides(seed: int, one: Measure) -> None:
    lists = for_measure(one, random_lists(seed, 20, longest=12))
    best, value, worst, by_row = (
        replace(one, ties=ties).per_query(lists.scores, lists.y, lists.ptr)
        for ties in (Ties.BEST, Ties.AVERAGE, Ties.WORST, Ties.INPUT)
    )
    if isinstance(one, AUC):  # a list of one grade has none
        counted = ~np.isnan(value)
        best, value, worst, by_row = (values[counted] for values in (best, value, worst, by_row))
    assert (worst <= np.minimum(value, by_row) + 1e-12).all()
    assert (np.maximum(value, by_row) <= best + 1e-12).all()


def drawn(name: str, counts: dict[float, int], ahead: list[float], k: int, top: float) -> float:
    """Σ over ranks up to k of what `name` adds there, the tied documents drawn one by one behind those ahead."""
    grades = sorted(counts)

    def stops(grade: float) -> float:
        return (2.0**grade - 1) / 2.0**top

    def adds(grade: float, rank: int, hits: int) -> float:
        return (hits + 1) / rank if name == "map" and grade > 0 else 0.0

    total, hits, going = 0.0, 0, 1.0
    for rank, grade in enumerate(ahead, start=1):
        if rank <= k:
            total += going * stops(grade) / rank if name == "err" else adds(grade, rank, hits)
        hits, going = hits + (grade > 0), going * (1 - stops(grade))

    @cache
    def rest(left: tuple[int, ...]) -> float:
        n, rank = sum(left), len(ahead) + sum(counts.values()) - sum(left) + 1
        found = hits + sum(counts[g] - c for g, c in zip(grades, left, strict=True) if g > 0)
        value = 0.0
        if n == 0 or rank > k:
            return value
        for i, grade in enumerate(grades):
            if left[i]:
                after = rest((*left[:i], left[i] - 1, *left[i + 1 :]))
                if name == "err":
                    value += left[i] / n * (stops(grade) / rank + (1 - stops(grade)) * after)
                elif name == "mrr":
                    value += left[i] / n * (1 / rank if grade > 0 else after)
                else:
                    value += left[i] / n * (adds(grade, rank, found) + after)
        return value

    behind = rest(tuple(counts[g] for g in grades))
    return total + (going * behind if name == "err" else behind)


@pytest.mark.parametrize("k", [None, 5, 30])
@pytest.mark.parametrize("name", ["map", "mrr", "err"])
def test_long_groups_of_ties_against_drawing_documents_one_by_one(name: str, k: int | None) -> None:
    """40 tied documents behind three that are not: more orders than can be written out."""
    counts, ahead = {0.0: 25, 1.0: 10, 3.0: 5}, [0.0, 0.0, 0.0] if name == "mrr" else [0.0, 2.0, 0.0]
    y = np.array([*ahead, *(grade for grade, count in counts.items() for _ in range(count))])
    scores = np.array([9.0, 8.0, 7.0] + [1.0] * 40)
    expected = drawn(name, counts, ahead, k or 43, 4.0) / ((y > 0).sum() if name == "map" else 1)
    got = measure(name if k is None else f"{name}@{k}").per_query(scores, y, [0, 43])[0]
    assert got == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("grade", [1.0, 4.0])
def test_err_of_long_ties_leaves_out_nothing(grade: float) -> None:
    """1,200 tied documents of two grades: the sum over places without short cuts, by binomials in logarithms."""
    from math import lgamma

    n, m, stop = 1200, 700, (2.0**grade - 1) / 16

    def log_choose(a: int, b: int) -> float:
        return lgamma(a + 1) - lgamma(b + 1) - lgamma(a - b + 1)

    expected = 0.0
    for place in range(n):  # j relevant ones before it, and one there
        js = range(max(0, place + m - n), min(place, m - 1) + 1)
        chances = [np.exp(log_choose(place, j) + log_choose(n - 1 - place, m - 1 - j) - log_choose(n, m)) for j in js]
        expected += sum(c * (1 - stop) ** j * stop for c, j in zip(chances, js, strict=True)) / (place + 1)
    y = np.repeat([grade, 0.0], [m, n - m])
    assert measure("err").per_query(np.zeros(n), y, [0, n])[0] == pytest.approx(expected, rel=1e-10)


def test_a_report_counts_the_queries_in_which_ties_matter() -> None:
    """Ties between equal grades, below the cut-off, or inside it for a measure that only counts, do not matter."""
    rows = {
        "equal grades": ([2, 2, 1], [1, 1, 0]),
        "below the cut-off": ([3, 2, 1, 1], [1, 0, 1, 0]),
        "across the cut-off": ([3, 2, 2, 1], [1, 1, 0, 0]),
        "before the cut-off": ([3, 3, 1, 0], [1, 0, 0, 0]),
        "no ties": ([3, 2, 1], [0, 1, 0]),
    }
    X = [[float(s)] for scores, _ in rows.values() for s in scores]
    y = [g for _, grades in rows.values() for g in grades]
    data = tr.QueryDataset.from_arrays(X, y, [name for name, (scores, _) in rows.items() for _ in scores])

    def tied(*names: str, convention: str = "standard") -> int:
        return tr.evaluate(data.X[:, 0], data, list(names), convention).counts["tied_queries"]

    assert tied("p@2") == 1
    assert tied("ndcg@2") == 2
    assert tied("map") == 3
    assert tied("p@2", "ndcg@2") == 2
    assert tied("auc") == 3
    assert tied("ndcg@2", convention="letor3") == 1, "LETOR counts ranks 1 and 2 the same"
    assert tied("map", convention="trec_eval") == 3


def test_a_report_says_what_the_order_of_the_file_would_have_given() -> None:
    grades = [2, 1, 0, 0, 1, 0]
    data = tr.QueryDataset.from_arrays(np.zeros((6, 1)), grades, qid=[1, 1, 1, 1, 2, 2])
    report = tr.evaluate(np.zeros(6), data, ["ndcg@10", "map", "auc"])
    assert dict(report.mean_in_file_order) == {"ndcg@10": 1.0, "map": 1.0, "auc": 1.0}
    assert report.mean["auc"] == 0.5
    assert report.mean["ndcg@10"] < 0.85
    assert report.in_file_order["MAP"].tolist() == [1.0, 1.0]
    assert str(report).endswith("2 with ties that matter (in file order ndcg@10 1.0000, map 1.0000, auc 1.0000)")
    assert report.to_dict()["mean_in_file_order"]["map"] == 1.0
    by_file = tr.evaluate(np.zeros(6), data, ["map:ties=input"])
    assert by_file.counts["tied_queries"] == 2
    assert str(by_file).endswith("2 with ties that matter")
    distinct = tr.evaluate(np.arange(6.0), data, ["map"])
    assert distinct.in_file_order is None
    assert dict(distinct.mean_in_file_order) == dict(distinct.mean)


def test_file_order_of_a_report_is_the_value_under_the_rule_input() -> None:
    lists = random_lists(5, 60, longest=12)
    ones = tuple(one for one in STANDARD if one.short_name != "err")
    values, matter, given = Plan.of(ones).run_with_ties(lists.scores, lists.y, lists.ptr)
    for one, row, in_order in zip(ones, values, given, strict=True):
        by_rule = [
            replace(one, ties=ties).per_query(lists.scores, lists.y, lists.ptr)
            for ties in (Ties.INPUT, Ties.BEST, Ties.WORST)
        ]
        np.testing.assert_allclose(in_order, by_rule[0], rtol=0, atol=1e-14)
        assert matter[np.abs(by_rule[1] - by_rule[2]) > 1e-9].all()
        np.testing.assert_array_equal(row[~matter], in_order[~matter])
    assert 0 < matter.sum() < 60


def test_every_measure_with_ties_has_the_rule() -> None:
    for kind in kinds():
        assert "ties" in {field.name for field in fields(kind)}
        assert kind().ties == Ties.AVERAGE, kind
    assert P(convention="letor3").ties == Ties.INPUT
