"""Runs are measured as trec_eval measures them, to nine digits, on runs with every kind of trouble."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.data.synthetic import make_graded
from toprank.data.trec import Qrels, Run, qrels_of, run_of
from toprank.errors import InputError
from toprank.statistics.comparison import compare
from toprank.statistics.evaluation import evaluate
from toprank.statistics.trec_evaluation import evaluate_run

pytrec_eval = pytest.importorskip("pytrec_eval")

NAMES = {
    "map": "map",
    "map@3": "map_cut_3",
    "ndcg": "ndcg",
    "ndcg@3": "ndcg_cut_3",
    "ndcg@100": "ndcg_cut_100",
    "p@3": "P_3",
    "p@10": "P_10",
    "recall@3": "recall_3",
    "recall@10": "recall_10",
    "recall": "set_recall",
    "mrr": "recip_rank",
    "wta": "success_1",
}
ASKED = {"map", "map_cut.3", "ndcg", "ndcg_cut.3,100", "P.3,10", "recall.3,10", "set_recall", "recip_rank", "success.1"}

queries, documents = (
    st.sampled_from(["q1", "q2", "é", "9"]),
    st.sampled_from(["a", "b", "B", "10", "9", "d-1", "d_1", "ü"]),
)
# Few scores, so that most lists have ties; two of them are one number in single precision.
scores = st.sampled_from([-1.0, 0.0, 0.5, 0.1, float(np.float32(0.1)), 2.0])
runs = st.dictionaries(queries, st.dictionaries(documents, scores, min_size=1), min_size=1)
# No grades below 0 here: pytrec_eval reads past its arrays on them (it crashes or hangs, with no toprank in sight).
judgements = st.dictionaries(queries, st.dictionaries(documents, st.integers(0, 4), min_size=1), min_size=1)
with_negative = st.dictionaries(queries, st.dictionaries(documents, st.integers(-2, 4), min_size=1), min_size=1)


@settings(max_examples=200, deadline=None)
@given(runs, judgements)
def test_runs_agree_with_trec_eval(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> None:
    common = [q for q in qrels if q in run]
    if not common:
        with pytest.raises(InputError, match="no query in common"):
            evaluate_run(run, qrels, list(NAMES))
        return
    report = evaluate_run(run, qrels, list(NAMES), complete=False)
    expected = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    assert report.query_ids.tolist() == common
    assert report.convention == "trec_eval"
    for ours, theirs in NAMES.items():
        assert report.per_query[ours] == pytest.approx([expected[q][theirs] for q in common], abs=1e-9), ours
    assert report.counts["queries"] == len(common)
    assert report.counts["blank_queries"] == sum(max(qrels[q].values()) <= 0 for q in common)


@settings(max_examples=60, deadline=None)
@given(runs, judgements)
def test_complete_counts_missing_queries_as_empty_lists(run, qrels) -> None:
    if not run.keys() & qrels.keys():
        return
    report = evaluate_run(run, qrels, ["map", "ndcg@3", "p@3", "recall@3", "mrr"])
    expected = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    assert report.query_ids.tolist() == list(qrels)
    for ours, theirs in (("map", "map"), ("ndcg@3", "ndcg_cut_3"), ("p@3", "P_3"), ("mrr", "recip_rank")):
        mean = sum(values[theirs] for values in expected.values()) / len(qrels)
        assert report.mean[ours] == pytest.approx(mean, abs=1e-9)
    assert report.counts["missing_queries"] == len(qrels.keys() - run.keys())
    assert report.counts["unjudged_queries"] == len(run.keys() - qrels.keys())


def test_a_run_that_answers_few_queries_says_so() -> None:
    """7 perfect answers to 156 judged queries are worth 7/156, as in trec_eval -c, unless one asks otherwise."""
    qrels = {f"q{i}": {"a": 1, "b": 0} for i in range(156)}
    run = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(7)} | {"stray": {"a": 1.0}}
    report = evaluate_run(run, qrels, "ndcg@10")
    assert report.mean["ndcg@10"] == pytest.approx(7 / 156, abs=1e-12)
    assert "156 queries, 149 of them not answered (counted as 0), 1 of the run not judged (left out)" in str(report)
    some = evaluate_run(run, qrels, "ndcg@10", complete=False)
    assert some.mean["ndcg@10"] == 1
    assert "7 queries, 149 judged but not answered (left out)" in str(some)
    assert "not answered" not in str(evaluate_run(run, {"q1": qrels["q1"]}, "ndcg@10"))


@settings(max_examples=60)
@given(runs, with_negative)
def test_a_grade_below_zero_counts_as_zero(run, qrels) -> None:
    if not run.keys() & qrels.keys():
        return
    raised = {query: {doc: max(grade, 0) for doc, grade in docs.items()} for query, docs in qrels.items()}
    one, other = (evaluate_run(run, q, list(NAMES)) for q in (qrels, raised))
    for name in NAMES:
        assert one.per_query[name].tolist() == other.per_query[name].tolist()


def test_long_random_runs_agree_with_trec_eval() -> None:
    rng = np.random.default_rng(0)
    names = [f"doc{i}" for i in range(400)]
    qrels = {f"q{q}": {d: int(g) for d, g in zip(rng.permutation(names)[:60], rng.integers(0, 4, 60), strict=True)}
             for q in range(30)}  # fmt: skip
    run = {f"q{q}": {d: float(s) for d, s in zip(rng.permutation(names)[:150], rng.integers(0, 40, 150), strict=True)}
           for q in range(5, 35)}  # fmt: skip
    report = evaluate_run(run, qrels, list(NAMES), complete=False)
    expected = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    assert report.query_ids.tolist() == [f"q{q}" for q in range(5, 30)]
    for ours, theirs in NAMES.items():
        assert report.per_query[ours] == pytest.approx([expected[q][theirs] for q in report.query_ids], abs=1e-9)


def test_a_query_with_nothing_retrieved_is_not_blank() -> None:
    """What a convention says about queries with nothing to find must not hold for queries where nothing was found."""
    run = Run.of({"missed": {"x": 1.0}, "blank": {"x": 1.0}})
    qrels = Qrels.of({"missed": {"y": 1}, "blank": {"x": 0}})
    for convention, blank in (("standard", 0), ("lightgbm", 1)):
        report = evaluate_run(run, qrels, ["ndcg@3", "map"], convention=convention)
        assert report.per_query["ndcg@3"].tolist() == [0, blank]
        assert report.per_query["map"].tolist() == [0, blank]
    skipping = evaluate_run(run, qrels, ["mrr:blank=skip", "map@1:lightgbm"])
    assert np.isnan(skipping.per_query["mrr"]).tolist() == [False, True]
    assert skipping.mean["mrr"] == 0


def test_average_precision_cut_to_k_divides_by_what_k_can_hold() -> None:
    run = Run.of({"q": {"a": 3.0, "x": 2.0}})
    qrels = Qrels.of({"q": {"a": 1, "b": 1, "c": 1}})
    assert evaluate_run(run, qrels, "map@2", convention="lightgbm").per_query["map@2"].tolist() == [1 / 2]
    assert evaluate_run(run, qrels, "map@2").per_query["map@2"] == pytest.approx([1 / 3])


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    run = Run.of({q: {d: float(rng.integers(0, 3)) for d in "abcdef"} for q in "xyz"})
    mixed = rng.permutation(len(run.qid))
    shuffled = Run(run.qid[mixed], run.doc_ids[mixed], run.scores[mixed])
    qrels = Qrels.of({q: {d: int(rng.integers(0, 3)) for d in "abcg"} for q in "zyx"})
    one, other = (evaluate_run(r, qrels, list(NAMES)) for r in (run, shuffled))
    for name in NAMES:
        assert np.array_equal(one.per_query[name], other.per_query[name])
    assert compare({"one": one, "other": other}).differences[0].p == 1


def test_a_data_set_measures_the_same_as_its_run() -> None:
    data = make_graded(n_queries=20, n_docs=(1, 30), blank=0.2, random_state=0)
    values = np.round(data.X[:, 0], 1)
    direct = evaluate(values, data, ["ndcg@10", "map", "mrr"], convention="standard")
    by_run = evaluate_run(run_of(data, values), qrels_of(data), ["ndcg@10", "map", "mrr"], convention="standard")
    for name in ("ndcg@10", "map", "mrr"):
        assert by_run.per_query[name] == pytest.approx(direct.per_query[name], abs=1e-12)
    assert by_run.counts == {**direct.counts, "missing_queries": 0, "unjudged_queries": 0}


@pytest.mark.parametrize(
    ("run", "measures", "message"),
    [
        (Run.of({"q": {"a": 1.0}}), "auc", "auc is not defined for runs"),
        (Run.of({"q": {"a": 1.0}}), "meanndcg", "meanndcg is not defined for runs"),
        (Run.of({"z": {"a": 1.0}}), "map", "no query in common: are the ids written the same way?"),
        (Run.of({}), "map", "the run is empty"),
        ({}, "map", "the run is empty"),
        (3, "map", "run must be what toprank.read_run returns, or a dictionary {query: {document: score}}, got int"),
        ({"q": 3}, "map", "run must be what toprank.read_run returns, or a dictionary"),
        (
            Run(np.array(["q", "q"]), np.array(["a", "a"]), np.zeros(2)),
            "map",
            "run: document a stands twice under query q",
        ),
    ],
)
def test_what_cannot_be_measured_is_named(run: Run, measures: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate_run(run, Qrels.of({"q": {"a": 1, "b": 0}}), measures)
    assert message in str(caught.value)
    with pytest.raises(InputError, match="qrels: document a stands twice under query q"):
        evaluate_run(
            Run.of({"q": {"a": 1.0}}), Qrels(np.array(["q", "q"]), np.array(["a", "a"]), np.zeros(2, dtype=int))
        )


OTHER_NAMES = {
    "map": "AP",
    "ndcg": "nDCG",
    "ndcg@3": "nDCG@3",
    "p@10": "P@10",
    "recall@3": "R@3",
    "mrr": "RR",
    "wta": "Success@1",
}


@settings(max_examples=60, deadline=None)
@given(runs, judgements)
def test_runs_agree_with_ir_measures(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    if not any(q in run for q in qrels):
        return
    report = evaluate_run(run, qrels, list(OTHER_NAMES))
    asked = {ir_measures.parse_measure(theirs): ours for ours, theirs in OTHER_NAMES.items()}
    found = {(asked[one.measure], one.query_id): one.value for one in ir_measures.iter_calc(asked, qrels, run)}
    for ours in OTHER_NAMES:
        values = [found[ours, q] for q in report.query_ids]
        assert report.per_query[ours] == pytest.approx(values, abs=1e-9), ours
