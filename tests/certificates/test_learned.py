"""Certificates of learned weights: surrogates at or above what they stand for, and how far from the optimum."""

import numpy as np
import pytest

import toprank as tr
from toprank.certificates import learned

RANKERS = [
    tr.SVMMap(C=1.0),
    tr.SVMMap("ndcg", C=1.0, threshold=2.0),
    tr.PermuRank(rounds=3, C=1.0),
    tr.RankSVM(C=1.0),
    tr.RankSVM(C=1.0, loss="hinge"),
    tr.SVMPerf("avg", k=2),
    tr.SVMPerf("struct", kappa=0.5),
]


@pytest.fixture(scope="module")
def parts():
    data = tr.datasets.make_graded(n_queries=90, n_docs=(4, 8), n_features=5, random_state=0)
    return data[:60], data[60:]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_bounds_hold_on_any_queries_and_survive_a_file(ranker, parts, tmp_path):
    train, test = parts
    ranker = type(ranker)(**ranker.get_params()).fit_queries(train)
    found = ranker.certify(train)
    assert found
    conditional = ("duality gap", "Theorem 3")
    assert {c.verdict for c in found if c.reference != "Theorem 3"} <= {"holds", "vacuous"}
    elsewhere = ranker.certify(test)
    assert {c.verdict for c in elsewhere if c.reference not in conditional} <= {"holds", "vacuous"}
    assert {c.verdict for c in elsewhere if c.reference == "duality gap"} <= {"does not apply"}
    ranker.save(tmp_path / "model.json")
    assert tr.load(tmp_path / "model.json").certify(train) == found


def test_the_mean_measure_is_that_of_the_definition(parts):
    train, _ = parts
    ranker = tr.SVMMap(C=1.0).fit_queries(train)
    eq10, eq6, order, theorem_3, gap = ranker.certify(train)
    assert theorem_3.reference == "Theorem 3"
    both = [q for q in range(train.n_queries) if 0 < (one := train[q : q + 1].y > 0).sum() < len(one)]
    scores = ranker.predict(train)
    values = []
    for q in both:
        ranked = sorted(range(train.ptr[q], train.ptr[q + 1]), key=lambda i: -scores[i])
        ranks = [place for place, i in enumerate(ranked, start=1) if train.y[i] > 0]
        values.append(1 - np.mean([(found + 1) / rank for found, rank in enumerate(ranks)]))
    assert eq10.observed == pytest.approx(np.mean(values))
    assert eq6.observed == eq10.observed
    assert order.observed == eq6.value
    assert order.value == eq10.value
    assert gap.value == pytest.approx(ranker.solution_.gap, abs=1e-3)


def test_a_good_ranking_is_certified_and_a_reversed_one_is_not(parts):
    train, _ = parts
    ranker = tr.RankSVM(C=100.0).fit_queries(train)
    pairs, gap = ranker.certify(train)
    assert (pairs.verdict, gap.verdict) == ("holds", "holds")
    ranker.function_ = type(ranker.function_)(-ranker.coef_)
    assert [c.verdict for c in ranker.certify(train)] == ["vacuous", "vacuous"]


def test_lists_of_one_kind_are_no_ground(parts):
    train, _ = parts
    blank = tr.QueryDataset.from_arrays(train.X, np.zeros(train.n_docs), train.qid)
    w = np.ones(5)
    for found in (
        learned.ranking_bounds("map", None, w, blank), [learned.pair_bound("hinge", w, blank)],
        learned.top_bounds(2, None, w, blank), learned.ranking_bounds("p@3", None, w, train),
    ):  # fmt: skip
        assert [c.verdict for c in found] == ["does not apply"]


def test_the_hierarchy_at_the_top(parts):
    train, _ = parts
    ranker = tr.SVMPerf("avg", k=2, C=100.0).fit_queries(train)
    ramp, average, maximal, _ = ranker.certify(train)
    assert ramp.observed <= ramp.value <= average.value <= maximal.value
    assert ramp.observed == average.observed == maximal.observed
    assert ramp.verdict == "holds"
