"""Learned fusion: its features by the definitions, honest folds, verdicts that can be false, weights for engines."""

import json
import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import learned_fusion as oracle
from toprank.contests.learned_fusion import COMBSUM, KINDS, LEARNED, RRF, FusionFeatures
from toprank.data.trec import qrels_of, run_of
from toprank.errors import InputError

documents = st.dictionaries(st.sampled_from("abcdef"), st.integers(-999, 999).map(lambda n: n / 8), max_size=6)
run_pairs = st.fixed_dictionaries({"one": st.fixed_dictionaries({"q": documents, "r": documents}),
                                   "two": st.fixed_dictionaries({"q": documents, "r": documents})})  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(run_pairs, st.sampled_from(["standard", "minmax"]))
def test_features_are_those_of_the_definitions(runs, scale):
    if not all(any(docs for docs in run.values()) for run in runs.values()):
        return
    made = FusionFeatures(tuple(runs), KINDS, scale)
    rows = made.rows(runs)
    wanted = {(q, d) for run in runs.values() for q, docs in run.items() for d in docs}
    assert set(zip(rows.qid.tolist(), rows.doc_ids.tolist(), strict=True)) == wanted
    X = made.columns(runs, rows)
    for q, d, row in zip(rows.qid, rows.doc_ids, X.tolist(), strict=True):
        assert row == pytest.approx(oracle.features(runs, q, d, KINDS, scale), abs=1e-9)


def made_runs(noise, n_queries=60, seed=0):
    """Runs of the same documents, each the grade and noise of its own, without its ten worst documents."""
    data = tr.datasets.make_graded(n_queries=n_queries, random_state=seed)
    rng = np.random.default_rng(seed)
    runs = {}
    for name, size in noise.items():
        scores = data.y + size * rng.normal(size=data.n_docs)
        run = run_of(data, scores)
        kept = run.rank <= 10
        runs[name] = tr.Run(run.qid[kept], run.doc_ids[kept], run.scores[kept])
    return runs, qrels_of(data)


def test_it_is_called_better_only_where_that_is_shown():
    runs, qrels = made_runs({"good": 0.4, "bad": 30.0, "worse": 30.0})
    fusion = tr.learn_fusion(runs, qrels)
    mean = fusion.comparison.means["ndcg@10"]
    assert fusion.best_single == "good"
    # Runs that say nothing hurt those who cannot know it, and the best single run cannot be beaten here.
    assert mean[LEARNED] > max(mean[RRF], mean[COMBSUM])
    better, _, rest = fusion.verdict.partition("; ")
    assert RRF in better
    assert "better than" in better
    assert "good" not in better
    assert "not shown to differ from good" in rest


def test_a_fusion_of_noise_is_better_than_nothing():
    runs, qrels = made_runs({"a": 50.0, "b": 50.0}, n_queries=40)
    fusion = tr.learn_fusion(runs, qrels)
    assert "better than" not in fusion.verdict
    assert "not shown to differ from" in fusion.verdict


def test_no_query_is_ranked_by_a_model_that_saw_it():
    """A run that knows the grades of all queries but one would help that one if its model had seen it."""
    runs, qrels = made_runs({"a": 1.0, "b": 1.0}, n_queries=10)
    fusion = tr.learn_fusion(runs, qrels, rankers=tr.ListNet(alpha=1e-3), folds=5, random_state=3)
    features = fusion.features
    rows = features.rows(runs)
    X = features.columns(runs, rows)
    grade = dict(zip(zip(qrels.qid.tolist(), qrels.doc_ids.tolist(), strict=True), qrels.grades.tolist(), strict=True))
    y = np.array([grade[pair] for pair in zip(rows.qid.tolist(), rows.doc_ids.tolist(), strict=True)])
    data = tr.QueryDataset.from_arrays(X, y, rows.qid)
    seen = np.full(data.n_docs, np.nan)
    for train, test in tr.QueryKFold(5, shuffle=True, random_state=3).split(X, groups=rows.qid):
        assert not set(rows.qid[train]) & set(rows.qid[test])
        ranker = tr.ListNet(alpha=1e-3).fit(X[train], y[train], qid=rows.qid[train])
        seen[test] = ranker.predict(X[test], qid=rows.qid[test])
    assert fusion.unseen.scores == pytest.approx(seen, rel=1e-9)
    # And the model that is kept has learned from all of them.
    whole = tr.ListNet(alpha=1e-3).fit(X, y, qid=rows.qid)
    assert list(fusion.weights.values()) == pytest.approx(whole.coef_.tolist(), rel=1e-6)


def test_a_file_gives_the_same_run(tmp_path):
    runs, qrels = made_runs({"a": 1.0, "b": 2.0}, n_queries=20)
    for ranker in (None, tr.RankBoost(rounds=10)):
        fusion = tr.learn_fusion(runs, qrels, rankers=ranker, folds=None)
        fusion.save(tmp_path / "fusion.json")
        again = tr.load_fusion(tmp_path / "fusion.json")
        mine, theirs = fusion.apply(runs), again.apply(runs)
        assert mine.scores.tolist() == theirs.scores.tolist()
        assert mine.doc_ids.tolist() == theirs.doc_ids.tolist()
        assert "nothing is known" in again.verdict
    assert fusion.weights is None


def engines_fusion(noise=None):
    runs, qrels = made_runs(noise or {"bm25": 0.7, 'dense "v2"': 1.0, "ce": 1.5}, n_queries=30)
    return runs, tr.learn_fusion(runs, qrels, features=("score",), scale="minmax", folds=None)


def test_sql_adds_the_scores_as_the_fusion_does():
    runs, fusion = engines_fusion()
    names = ['"' + name.replace('"', '""') + '"' for name in runs]
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE documents (query, id, {', '.join(names)})")
    cells = {}
    for number, run in enumerate(runs.values()):
        for q, d, s in zip(run.qid.tolist(), run.doc_ids.tolist(), run.scores.tolist(), strict=True):
            cells.setdefault((q, d), [None] * len(runs))[number] = s
    database.executemany(
        f"INSERT INTO documents VALUES (?, ?{', ?' * len(runs)})", [(*pair, *row) for pair, row in cells.items()]
    )
    found = {(q, d): s for q, d, s in database.execute(tr.fusion_for(fusion, "sql"))}
    size = sum(map(abs, fusion.weights.values()))
    mine = fusion.apply(runs)
    expected = {(q, d): s / size for q, d, s in zip(mine.qid.tolist(), mine.doc_ids.tolist(), mine.scores.tolist(),
                                                    strict=True)}  # fmt: skip
    assert found == pytest.approx(expected, abs=1e-12)


def test_engines_get_the_weights_in_the_order_of_the_runs():
    runs, fusion = engines_fusion()
    share = np.array(list(fusion.weights.values()))
    share /= share.sum()
    written = json.loads(tr.fusion_for(fusion, "opensearch", name="mine"))["requests"]
    assert written[0]["path"] == "_search/pipeline/mine"
    processor = written[0]["body"]["phase_results_processors"][0]["normalization-processor"]
    weights = processor["combination"]["parameters"]["weights"]
    assert weights == pytest.approx(share.tolist(), abs=2e-6)
    assert sum(weights) == pytest.approx(1, abs=1e-9)
    assert len(written[1]["body"]["query"]["hybrid"]["queries"]) == len(runs)
    linear = json.loads(tr.fusion_for(fusion, "elasticsearch", window=50))["retriever"]["linear"]
    assert [each["weight"] for each in linear["retrievers"]] == pytest.approx(share.tolist())
    assert {each["normalizer"] for each in linear["retrievers"]} == {"minmax"}
    assert linear["rank_window_size"] == 50
    profile = tr.fusion_for(fusion, "vespa", name="my fusion")
    assert profile.startswith("rank-profile f_my_fusion {")
    assert profile.count("normalize_linear(") == len(runs)
    assert profile.count("{") == profile.count("}")


def test_what_no_engine_can_add_is_refused():
    runs, qrels = made_runs({"a": 1.0, "b": 2.0}, n_queries=20)
    with pytest.raises(InputError, match="--features score --scale minmax"):
        tr.fusion_for(tr.learn_fusion(runs, qrels, folds=None), "opensearch")
    boost = tr.learn_fusion(
        runs, qrels, rankers=tr.RankBoost(rounds=5), features=("score",), scale="minmax", folds=None
    )
    with pytest.raises(InputError, match="RankBoost has no weights"):
        tr.fusion_for(boost, "sql")
    upside_down = {"a": runs["a"], "b": tr.Run(runs["a"].qid, runs["a"].doc_ids, -runs["a"].scores)}
    turned = tr.learn_fusion(upside_down, qrels, features=("score",), scale="minmax", folds=None)
    with pytest.raises(InputError, match="takes none below 0: learn without that run"):
        tr.fusion_for(turned, "opensearch")
    assert "normalize_linear" in tr.fusion_for(turned, "vespa")


def test_bad_input_is_one_line():
    one = {"q": {"a": 1.0}}
    for runs, qrels, problem in (
        ({"a": one}, {"q": {"a": 1}}, "at least two runs, got 1"),
        ([one, one], {"q": {"a": 1}}, "takes runs by name"),
        ({"a": one, "CombSUM": one}, {"q": {"a": 1}}, "cannot be called 'CombSUM'"),
        ({"a": one, "b": one}, {"z": {"a": 1}}, "no query in common"),
        ({"a": one, "b": {"q": {"a": float("inf")}}}, {"q": {"a": 1}}, "finite"),
    ):
        with pytest.raises(InputError, match=problem):
            tr.learn_fusion(runs, qrels)
    with pytest.raises(InputError, match="rankers are toprank's own"):
        tr.learn_fusion({"a": one, "b": one}, {"q": {"a": 1}}, rankers="ListNet")
    with pytest.raises(InputError, match="some of score, reciprocal_rank, presence"):
        tr.learn_fusion({"a": one, "b": one}, {"q": {"a": 1}}, features=())


def test_a_damaged_file_is_one_line(tmp_path):
    runs, qrels = made_runs({"a": 1.0, "b": 2.0}, n_queries=20)
    file = tmp_path / "fusion.json"
    tr.learn_fusion(runs, qrels, folds=None).save(file)
    whole = json.loads(file.read_text())
    for change, problem in (
        ({"format": "x"}, "version 1; this toprank reads"),
        ({"runs": ["a"]}, "at least two runs"),
        ({"runs": ["a", "b", "c"]}, "the model has 6 features, the runs have 9"),
        ({"scale": "log"}, "not a learned fusion"),
        ({"model": {}}, "not a toprank model"),
    ):
        file.write_text(json.dumps(whole | change))
        with pytest.raises(InputError, match=problem):
            tr.load_fusion(file)
    file.write_text(json.dumps(whole))
    with pytest.raises(InputError, match="takes the runs a, b, got a, c"):
        tr.load_fusion(file).apply({"a": runs["a"], "c": runs["b"]})
