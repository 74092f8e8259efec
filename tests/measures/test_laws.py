"""What holds for every measure: it prints and parses, sees only the order, keeps its range, and adds up over blocks."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.measures.lists import for_measure, random_lists
from toprank.errors import InputError
from toprank.measures import (
    AP,
    AUC,
    CONVENTIONS,
    DCG,
    ERR,
    MRR,
    NDCG,
    RBP,
    WTA,
    Blank,
    BPref,
    Gain,
    MeanNDCG,
    Measure,
    P,
    PAtShare,
    Recall,
    RPrecision,
    Success,
    Ties,
    measure,
)
from toprank.measures.catalog import kinds
from toprank.measures.order import id_places, ranks
from toprank.measures.plan import Plan
from toprank.measures.presets import fixes_cutoff, rule

EVERY = [
    kind(k=k, convention=convention)
    for convention in CONVENTIONS
    for kind in kinds()
    for k in ((None, 1, 5) if kind.cuts and not fixes_cutoff(convention, kind.short_name) else (None,))
]
DISTINCT = random_lists(1, 40, longest=20, tied=False)
TIED = random_lists(2, 40, longest=20)


def values(one: Measure, scores, lists, y=None) -> np.ndarray:
    return one.per_query(scores, for_measure(one, lists).y if y is None else y, lists.ptr, doc_ids=lists.ids)


def fresh(seed: int, tied: bool):
    return random_lists(seed, 40, longest=20, tied=tied)


@pytest.mark.parametrize("one", EVERY, ids=str)
def test_a_measure_prints_parses_pickles_and_hashes(one: Measure) -> None:
    assert measure(str(one)) == one
    assert measure(str(one), convention="xgboost" if one.convention != "standard" else "standard") == one
    assert measure(one.name, convention=one.convention) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(measure(str(one))) == hash(one)
    assert measure(one) is one


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.short_name)
def test_only_the_order_counts(kind: type[Measure]) -> None:
    for convention in CONVENTIONS:
        one = kind(k=5 if kind.cuts and not fixes_cutoff(convention, kind.short_name) else None, convention=convention)
        lists = for_measure(one, fresh(3, tied=True))
        before = values(one, lists.scores, lists, lists.y)
        np.testing.assert_array_equal(values(one, lists.scores + 1024, lists, lists.y), before, err_msg=str(one))
        np.testing.assert_array_equal(values(one, lists.scores * 0.25 - 3, lists, lists.y), before, err_msg=str(one))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.short_name)
def test_without_ties_the_input_order_does_not_count(kind: type[Measure]) -> None:
    rng = np.random.default_rng(0)
    for convention in CONVENTIONS:
        one = kind(convention=convention)
        lists = for_measure(one, fresh(4, tied=False))
        shuffled = np.concatenate(
            [a + rng.permutation(b - a) for a, b in zip(lists.ptr[:-1], lists.ptr[1:], strict=True)]
        )
        moved = one.per_query(lists.scores[shuffled], lists.y[shuffled], lists.ptr, doc_ids=lists.ids[shuffled])
        np.testing.assert_allclose(moved, values(one, lists.scores, lists, lists.y), rtol=0, atol=1e-14)


@pytest.mark.parametrize("one", [m for m in EVERY if not isinstance(m, DCG) and str(m) != "rbp:ranx"], ids=str)
def test_values_lie_between_0_and_1(one: Measure) -> None:
    for tied in (True, False):
        lists = for_measure(one, fresh(5, tied))
        if isinstance(one, RBP) and one.graded:
            lists.y = np.minimum(lists.y, 1)
        got = values(one, lists.scores, lists, lists.y)
        skipped = np.isnan(got)
        assert not skipped.any() or Blank.SKIP in vars(one).values()
        assert got[~skipped].min() >= 0
        assert got[~skipped].max() <= 1 + 1e-15


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_best_order_is_worth_exactly_1(convention: str) -> None:
    lists = random_lists(6, 40, shortest=5, longest=20, blank=0)
    best = lists.y + np.linspace(0.5, 0, len(lists.y))  # distinct, in the order of the grades
    whole = lists.y.astype(int)
    several = np.array([len(set(whole[a:b])) > 1 for a, b in zip(lists.ptr[:-1], lists.ptr[1:], strict=True)])
    relevant = np.array([max(whole[a:b]) > 1 for a, b in zip(lists.ptr[:-1], lists.ptr[1:], strict=True)])
    for one in (NDCG, MeanNDCG, AP, MRR, Recall, AUC, WTA, RPrecision, BPref, Success, PAtShare):
        got = values(one(convention=convention), best, lists, lists.y)
        skipped = np.isnan(got)
        assert not skipped.any() or Blank.SKIP in vars(one(convention=convention)).values()
        assert (got[several & relevant & ~skipped] == 1.0).all(), one
    assert (values(NDCG(k=3, convention=convention), best, lists, lists.y)[relevant] == 1.0).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 39), max_size=4, unique=True))
def test_blocks_give_the_same_bits_as_the_whole(cuts: list[int]) -> None:
    plan = Plan.of(
        tuple(
            kind(convention=c) for kind in (NDCG, AP, AUC, P) for c in ("standard", "trec_eval", "catboost", "sklearn")
        )
    )
    lists = TIED
    whole = plan.run_with_ties(lists.scores, lists.y, lists.ptr, lists.ids)
    places = [0, *sorted(cuts), 40]
    parts = []
    for a, b in pairwise(places):
        rows = slice(lists.ptr[a], lists.ptr[b])
        bounds = lists.ptr[a : b + 1] - lists.ptr[a]
        parts.append(plan.run_with_ties(lists.scores[rows], lists.y[rows], bounds, lists.ids[rows]))
    for of_all, of_parts in zip(whole, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(of_parts, axis=-1), of_all)


def test_measures_together_give_the_same_bits_as_each_alone() -> None:
    together = tuple(one for one in EVERY if not isinstance(one, ERR))
    got = Plan.of(together).run(TIED.scores, TIED.y, TIED.ptr, TIED.ids)
    for one, row in zip(together, got, strict=True):
        np.testing.assert_array_equal(row, values(one, TIED.scores, TIED, TIED.y), err_msg=str(one))


def test_read_only_and_strange_arrays_are_fine() -> None:
    scores, y, ptr = TIED.scores.copy(), TIED.y.copy(), TIED.ptr.copy()
    expected = NDCG(k=5).per_query(scores, y, ptr)
    for array in (scores, y, ptr):
        array.flags.writeable = False
    np.testing.assert_array_equal(NDCG(k=5).per_query(scores, y, ptr), expected)
    np.testing.assert_array_equal(
        NDCG(k=5).per_query(scores.astype(np.float32), y.astype(np.uint8), ptr.tolist()), expected
    )
    np.testing.assert_array_equal(
        NDCG(k=5).per_query(np.repeat(scores, 2)[::2], y.tolist(), ptr.astype(np.int32)), expected
    )


@pytest.mark.parametrize("text", ["ndcg@5", "map", "mrr:letor3", "err", "auc", "p@3:trec_eval"])
def test_one_list_at_a_time_has_the_same_value(text: str) -> None:
    one = measure(text)
    lists = for_measure(one, fresh(8, tied=True))
    expected = one.per_query(lists.scores, lists.y, lists.ptr)
    for q in range(40):
        rows = slice(lists.ptr[q], lists.ptr[q + 1])
        got = one.per_query(lists.scores[rows], lists.y[rows], [0, lists.sizes[q]])
        np.testing.assert_array_equal(got, expected[q : q + 1])


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_of_queries_change_no_bit(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ones = tuple(one for one in EVERY if not isinstance(one, ERR))
    whole = Plan.of(ones).run_with_ties(TIED.scores, TIED.y, TIED.ptr, TIED.ids)
    monkeypatch.setattr("toprank.measures.plan.BLOCK_DOCS", block)
    for found, expected in zip(
        Plan.of(ones).run_with_ties(TIED.scores, TIED.y, TIED.ptr, TIED.ids), whole, strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_ranks_are_places_in_a_stable_descending_sort() -> None:
    for lists in (TIED, DISTINCT, random_lists(7, 3, shortest=600, longest=900)):
        places = ranks(lists.scores, lists.ptr)
        for a, b in zip(lists.ptr[:-1], lists.ptr[1:], strict=True):
            order = np.argsort(-lists.scores[a:b], kind="stable")
            assert (places[a:b][order] == np.arange(1, b - a + 1)).all()


def test_ids_are_compared_as_text() -> None:
    assert id_places([9, 10, 11], 3).tolist() == [0.0, 2.0, 1.0]
    assert id_places(["ü", "z", "Z"], 3).tolist() == [0.0, 1.0, 2.0]
    trec = AP(convention="trec_eval")
    assert trec.per_query([1.0, 1.0], [1, 0], [0, 2], doc_ids=[9, 10]).tolist() == [1.0]
    assert trec.per_query([1.0, 1.0], [1, 0], [0, 2], doc_ids=["a", "b"]).tolist() == [0.5]
    assert trec.per_query([1.0, 1.0], [1, 0], [0, 2]).tolist() == [0.5], "without ids the later row goes first"
    assert trec.per_query([1.0, 1.0 + 1e-9], [1, 0], [0, 2], doc_ids=["b", "a"]).tolist() == [1.0], "single precision"


def test_what_the_text_of_a_measure_may_say() -> None:
    assert measure(" NDCG@10 ") == NDCG() @ 10 == NDCG(k=10)
    assert measure("ap") == measure("MAP") == AP()
    assert measure("rr@3") == MRR(k=3)
    assert measure("precision@3") == P(k=3)
    assert measure("ndcg:gain=linear:ties=worst") == NDCG(gain=Gain.LINEAR, ties=Ties.WORST)
    assert measure("ndcg@3:letor4:gain=linear").convention == "letor4"
    assert str(NDCG(k=np.int64(7), convention="letor4", gain=Gain.LINEAR)) == "ndcg@7:letor4:gain=linear"
    assert str(P(k=5, above=1.0)) == "p@5:above=1"
    assert str(P(k=5, convention="mslr", above=0.1 + 0.2)) == f"p@5:mslr:above={0.1 + 0.2!r}"
    assert NDCG(convention="ranklib") != NDCG(), "the convention is part of the value"
    assert measure("prec@0.25") == measure("p@25%") == PAtShare(share=0.25)
    assert str(measure("precision@7%:mslr")) == "p@7%:mslr"
    assert measure(str(PAtShare(share=1 / 3))) == PAtShare(share=1 / 3)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("ndcg_cut_10", "ndcg@10"), ("ndcg_cut.10", "ndcg@10"), ("nDCG@10", "ndcg@10"), ("NDCG", "ndcg"),
        ("P_10", "p@10"), ("P.5", "p@5"), ("P@5", "p@5"), ("recip_rank", "mrr"), ("RR@10", "mrr@10"),
        ("map_cut_100", "map@100"), ("AP", "map"), ("AP@10", "map@10"), ("R@100", "recall@100"),
        ("recall_1000", "recall@1000"), ("Recall@5", "recall@5"), ("Success@5", "success@5"),
        ("success_1", "success@1"),
        ("hit_rate@3", "success@3"), ("Rprec", "rprec"), ("R-precision", "rprec"), ("bpref", "bpref"),
        ("Bpref", "bpref"), ("Judged@10", "judged@10"), ("ERR@20", "err@20"), ("precision@0.5", "p@50%"),
    ],
)  # fmt: skip
def test_names_that_people_type(typed: str, text: str) -> None:
    assert str(measure(typed)) == text


def test_a_hint_is_close_or_not_given() -> None:
    for text, hint in (
        ("ndgc", "ndcg"),
        ("maap", "map"),
        ("bperf", "bpref"),
        ("sucess@5", "success"),
        ("recal", "recall"),
    ):
        with pytest.raises(InputError, match=rf"\(did you mean '{hint}'\?\)"):
            measure(text)
    for text in ("f1", "mae", "zzz", "gain@10", "kendall"):
        with pytest.raises(InputError, match=r"unknown measure '\w+': there are auc, bpref"):
            measure(text)
    assert rule("mslr", "p", "above") == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", r"unknown measure 'ndgc' \(did you mean 'ndcg'\?\)"),
        ("", "unknown measure ''"),
        ("ndcg@", "the cut-off of 'ndcg@' must be a number, got ''"),
        ("ndcg@ten", "must be a number, got 'ten'"),
        ("ndcg@0", "k must be a whole number of at least 1, got 0"),
        ("ndcg@10:letor5", "convention must be one of 'standard', 'letor3'"),
        ("ndcg@10:p=0.5", "ndcg has no rule 'p': it has gain, discount, ties, short, blank"),
        ("ndcg@10:gain=cubic", "gain must be one of 'exp2', 'linear', got 'cubic'"),
        ("rbp:p=1.5", "p must be a number between 0 and 1, got 1.5"),
        ("rbp:p=half", "p must be a number, got 'half'"),
        ("rbp:graded=maybe", "graded must be one of 'false', 'true', got 'maybe'"),
        ("err:max_grade=-1", "max_grade must be a number above 0"),
        ("p@5:above=inf", "above must be a finite number"),
        ("wta@3", "wta has no cut-off: drop @3"),
        ("auc@3", "auc has no cut-off: drop @3"),
        ("p@150%", "share must be at most 1, got 1.5"),
        ("p@0.0", "share must be a number above 0"),
        ("p@x%", "the cut-off of 'p@x%' must be a number, got 'x'"),
        ("ndcg@0.5", "the cut-off of 'ndcg@0.5' must be a number, got '0.5'"),
        ("map@10:ranklib", "map under ranklib reads the whole list: drop @10"),
        ("mrr:ties=shared", "mrr cannot rank ties by SHARED: use one of INPUT, ID, WORST, BEST, AVERAGE"),
    ],
)
def test_a_bad_text_is_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        measure(text)
    assert "\n" not in str(error.value)


def test_shapes_that_do_not_fit_are_told() -> None:
    with pytest.raises(InputError, match="y has 1 labels for 2 documents"):
        AP().per_query([1.0, 2.0], [1], [0, 2])
    with pytest.raises(InputError, match="ptr must rise from 0"):
        AP().per_query([1.0, 2.0], [1, 0], [0, 1])
    with pytest.raises(InputError, match="doc_ids must have one id per document"):
        AP().per_query([1.0, 2.0], [1, 0], [0, 2], doc_ids=["a"])
    with pytest.raises(InputError, match="query_weight must have one weight per query"):
        AP().mean([1.0, 2.0], [1, 0], [0, 2], weight=[1, 2])
