from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import toprank as tr
from toprank.data import blocks


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=40, n_docs=(5, 15), n_features=6, n_grades=3, random_state=1)


@pytest.fixture(scope="module")
def valid():
    return tr.datasets.make_graded(n_queries=25, n_docs=(5, 15), n_features=6, n_grades=3, random_state=2)


LEARNERS = [
    tr.AdaRank("map", rounds=20),
    tr.AdaRank("ndcg@5", rounds=20, rule="paper"),
    tr.PermuRank("map", rounds=10, C=100),
    tr.PermuRank("ndcg@5", rounds=10),
    tr.PermuRank("map", rounds=2, pairs="all", C=1000),
    tr.SVMMap("map"),
    tr.SVMMap("ndcg"),
    tr.SVMMap("ndcg@5", C=1000),
    tr.SVMMap("map", threshold=2, C=100),
    tr.RankSVM(),
    tr.RankSVM(loss="hinge", normalize=False, C=0.01),
    tr.RankBoost(rounds=20),
    tr.RankBoost(rounds=20, thresholds=5, both_directions=True, normalize=False),
]


@pytest.mark.parametrize("ranker", LEARNERS, ids=str)
class TestEveryDirectLearner:
    def test_it_learns(self, ranker, data):
        fitted = ranker.fit_queries(data)
        measure = tr.measure("ndcg")
        chance = measure.mean(np.zeros(data.n_docs), data.y, data.ptr)
        assert measure.mean(fitted.predict(data), data.y, data.ptr) > chance + 0.1

    def test_a_perfect_feature_is_found(self, ranker):
        rng = np.random.default_rng(0)
        y = np.tile([0.0, 1.0, 2.0, 0.0, 1.0], 6)
        X = rng.normal(size=(30, 3))
        X[:, 1] = y
        fitted = ranker.fit(X, y, qid=np.repeat(np.arange(6), 5))
        binary = tr.measure("map").mean(fitted.predict(X), y >= 1, np.arange(0, 31, 5))
        assert binary == pytest.approx(1.0)

    def test_one_query_is_enough(self, ranker, data):
        assert np.isfinite(ranker.fit_queries(data[:1]).predict(data)).all()

    def test_queries_that_teach_nothing_change_nothing(self, ranker, data):
        blank = tr.QueryDataset.from_arrays(np.ones((4, 6)), [0, 0, 1, 1], qid=[900, 900, 901, 901])
        X = np.vstack([data.X, blank.X])
        more = tr.QueryDataset.from_arrays(X, np.append(data.y, blank.y), np.append(data.qid, blank.qid))
        plain, padded = (ranker.fit_queries(part).predict(data) for part in (data, more))
        np.testing.assert_allclose(padded, plain, rtol=1e-9, atol=1e-12)

    def test_no_query_that_can_teach_is_refused(self, ranker):
        with pytest.raises(tr.InputError, match="no query can teach"):
            ranker.fit(np.ones((4, 2)), [1, 1, 0, 0], qid=[0, 0, 1, 1])

    def test_features_constant_inside_queries_do_no_harm(self, ranker, data):
        flat = np.repeat(np.arange(data.n_queries, dtype=float), data.lengths)[:, None]
        fitted = ranker.fit_queries(data.with_X(np.hstack([data.X, flat])))
        assert np.isfinite(fitted.predict(np.hstack([data.X, flat]))).all()

    def test_all_features_tied(self, ranker, data):
        fitted = ranker.fit_queries(data.with_X(np.ones((data.n_docs, 2))))
        assert np.ptp(fitted.predict(np.ones((3, 2)))) == 0

    def test_a_long_list(self, ranker):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(5000, 4))
        y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=5000), [1.0, 2.0])
        scores = ranker.fit(X, y).predict(X)
        assert np.isfinite(scores).all()
        if "@" not in ranker.measure:  # a cut-off says next to nothing about the order of 5,000 documents
            assert tr.measure("auc").mean(scores, y >= 1, [0, 5000]) > 0.7

    def test_csr_learns_what_dense_learns(self, ranker, data):
        X = np.where(data.X > 0.5, data.X, 0)
        dense = clone(ranker).fit_queries(data.with_X(X))
        thin = clone(ranker).fit_queries(data.with_X(sparse.csr_array(X)))
        if isinstance(ranker, tr.SVMMap):  # cutting planes end within the gap, by other planes for other last bits
            one, other = dense.solution_, thin.solution_
            assert abs(one.value - other.value) <= max(one.gap, other.gap) * (1 + 1e-6)
        else:
            np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), dense.predict(X), rtol=1e-3, atol=1e-5)

    def test_threads_learn_the_same_bits(self, ranker, data, monkeypatch):
        monkeypatch.setattr(blocks.split, "__defaults__", (128,))  # many blocks
        monkeypatch.setattr("toprank.solvers.adarank.PIECE_DOCS", 50)
        monkeypatch.setattr("toprank.solvers.adarank.TABLE_VALUES", 300)
        with ThreadPoolExecutor(3) as pool:
            threads = ranker.fit_queries(data, executor=pool).predict(data)
        assert ranker.fit_queries(data).predict(data).tobytes() == threads.tobytes()

    def test_a_saved_model_scores_the_same(self, ranker, data, tmp_path):
        fitted = ranker.fit_queries(data)
        fitted.save(tmp_path / "model.json")
        again = tr.load(tmp_path / "model.json")
        assert again.predict(data).tobytes() == fitted.predict(data).tobytes()
        assert [str(c) for c in again.certify(data)] == [str(c) for c in fitted.certify(data)]


@pytest.mark.parametrize(
    "ranker", [tr.RankSVM(), tr.RankSVM(loss="hinge"), tr.SVMMap(), tr.PermuRank(rounds=4)], ids=str
)
def test_a_list_of_constants_is_chosen_by_validation(ranker, data, valid):
    grid = (0.01, 1.0, 100.0)
    fitted = ranker.set_params(C=grid, measure="map").fit_queries(data, valid)
    means = []
    for C in grid:
        single = type(ranker)(**{**ranker.get_params(), "C": C}).fit_queries(data, valid)
        means.append(tr.measure("map").mean(single.predict(valid), valid.y, valid.ptr))
    assert fitted.C_ in grid
    reached = tr.measure("map").mean(fitted.predict(valid), valid.y, valid.ptr)
    assert reached == pytest.approx(max(means), abs=0.01)
    with pytest.raises(tr.InputError, match="validation"):
        ranker.fit_queries(data)
    ranker.set_params(C=1.0)


@pytest.mark.parametrize("kind", [tr.AdaRank, tr.RankBoost, tr.PermuRank])
def test_the_best_round_on_the_validation_part_is_kept(kind, data, valid):
    given = {tr.RankBoost: {"every": 1}, tr.PermuRank: {"average": False}}.get(kind, {})
    ranker = kind("ndcg@5", rounds=15, **given).fit_queries(data, valid)
    curve = ranker.trace_["valid_rounds" if kind is tr.PermuRank else "valid"]
    assert tr.measure("ndcg@5").mean(ranker.predict(valid), valid.y, valid.ptr) == pytest.approx(curve.max())


@pytest.mark.parametrize("kind", [tr.AdaRank, tr.RankBoost])
def test_patience_ends_the_fit(kind, data, valid):
    given = {"every": 3} if kind is tr.RankBoost else {}
    patient = kind(rounds=60, **given).fit_queries(data, valid)
    quick = kind(rounds=60, patience=2, **given).fit_queries(data, valid)
    curve = quick.trace_["valid"]
    assert len(curve) <= len(patient.trace_["valid"])
    assert len(curve) - 1 - int(np.argmax(curve)) <= 2


def test_a_reversed_feature_helps_only_when_it_may(data):
    X = -np.abs(data.y[:, None] + 0.1 * np.random.default_rng(0).normal(size=(data.n_docs, 1)))
    upward = tr.AdaRank("map", rounds=3, both_directions=False).fit(X, data.y, qid=data.qid)
    both = tr.AdaRank("map", rounds=3, both_directions=True).fit(X, data.y, qid=data.qid)
    assert both.coef_[0] < 0 < upward.coef_[0]
    assert both.score(X, data.y, qid=data.qid) > 0.9 > upward.score(X, data.y, qid=data.qid)
    stumps = tr.RankBoost(rounds=5, both_directions=True).fit(X, data.y, qid=data.qid)
    assert stumps.score(X, data.y, qid=data.qid) > 0.8


def test_the_papers_rule_repeats_a_feature_where_the_practical_one_does_not(data):
    plain = tr.AdaRank("map", rounds=30, rule="paper").fit_queries(data)
    practical = tr.AdaRank("map", rounds=30).fit_queries(data)
    assert len(plain.candidates_) == 30
    assert practical.trace_["measure"][-1] >= plain.trace_["measure"].max() - 0.01
    assert len(set(practical.candidates_)) >= len(set(plain.candidates_))


def test_permurank_averages_its_rounds(data):
    one = [tr.PermuRank("ndcg@5", rounds=t, average=False).fit_queries(data).coef_ for t in (1, 2, 3)]
    mean = tr.PermuRank("ndcg@5", rounds=3).fit_queries(data)
    np.testing.assert_allclose(mean.coef_, np.mean(one, axis=0), rtol=1e-9)
    assert mean.solution_.message == "mean of 3 rounds"


def test_permurank_can_start_where_adarank_ended(data, valid):
    ranker = tr.PermuRank(rounds=3, start="adarank").fit_queries(data, valid)
    plain = tr.PermuRank(rounds=3).fit_queries(data, valid)
    assert ranker.trace_["value"][0] != plain.trace_["value"][0]


def test_ranksvm_has_the_optimum_of_a_linear_svm_on_explicit_pairs():
    from sklearn.svm import LinearSVC

    data = tr.datasets.make_graded(n_queries=8, n_docs=(6, 6), n_features=4, n_grades=3, random_state=5)
    rows = []
    for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True):
        better = np.argwhere(data.y[a:b, None] > data.y[None, a:b])
        rows.append(data.X[a:b][better[:, 0]] - data.X[a:b][better[:, 1]])
    pairs = np.concatenate(rows)
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    for loss in ("squared_hinge", "hinge"):
        ours = tr.RankSVM(C=0.05, loss=loss, normalize=False, tol=1e-9).fit_queries(data).coef_
        svm = LinearSVC(C=0.05, loss=loss, fit_intercept=False, dual=True, tol=1e-10, max_iter=1_000_000)
        theirs = svm.fit(pairs * signs[:, None], signs).coef_[0]

        def primal(w, power=2 if loss == "squared_hinge" else 1):
            return 0.5 * w @ w + 0.05 * (np.maximum(1 - pairs @ w, 0) ** power).sum()

        assert primal(ours) <= primal(theirs) * (1 + 1e-7)
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


def test_query_weights_count_like_copies(data):
    weight = np.arange(data.n_queries) % 3.0
    twice = data[np.repeat(np.arange(data.n_queries), weight.astype(int))]
    for ranker in (tr.RankSVM(tol=1e-10), tr.SVMMap(tol=1e-7), tr.AdaRank(rounds=5, rule="paper")):
        weighted = ranker.fit(data.X, data.y, qid=data.qid, query_weight=weight).coef_
        qid = np.repeat(np.arange(twice.n_queries), twice.lengths)
        copied = ranker.fit(twice.X, twice.y, qid=qid).coef_
        np.testing.assert_allclose(weighted, copied, rtol=1e-2, atol=1e-3)
