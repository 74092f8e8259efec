from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

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
    tr.PermuRank("map", rounds=6, pairs="all", C=1000),
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
        at = next(q for q in range(data.n_queries) if 2 in data[q : q + 1].y and 0 in data[q : q + 1].y)
        assert np.isfinite(ranker.fit_queries(data[at : at + 1]).predict(data)).all()

    def test_queries_that_teach_nothing_change_nothing(self, ranker, data):
        blank = tr.QueryDataset.from_arrays(np.ones((4, 6)), [0, 0, 1, 1], qid=[900, 900, 901, 901])
        X = np.vstack([data.X, blank.X])
        more = tr.QueryDataset.from_arrays(X, np.append(data.y, blank.y), np.append(data.qid, blank.qid))
        if "rule" in ranker.get_params() and ranker.rule == "paper":
            return  # in Fig. 6 every query counts
        plain, padded = (ranker.fit_queries(part).predict(data) for part in (data, more))
        np.testing.assert_allclose(padded, plain, rtol=1e-9, atol=1e-12)

    def test_no_query_that_can_teach_is_refused(self, ranker):
        with pytest.raises(tr.InputError, match="no query is informative"):
            ranker.fit(np.ones((4, 2)), [1, 1, 0, 0], qid=[0, 0, 1, 1])

    def test_features_constant_inside_queries_do_no_harm(self, ranker, data):
        flat = np.repeat(np.arange(data.n_queries, dtype=float), data.lengths)[:, None]
        fitted = ranker.fit_queries(data.with_X(np.hstack([data.X, flat])))
        assert np.isfinite(fitted.predict(np.hstack([data.X, flat]))).all()

    @pytest.mark.filterwarnings("ignore:.*learned nothing")
    def test_all_features_tied(self, ranker, data):
        fitted = ranker.fit_queries(data.with_X(np.ones((data.n_docs, 2))))
        assert np.ptp(fitted.predict(np.ones((3, 2)))) == 0

    @pytest.mark.filterwarnings("ignore:SVMMap")
    def test_a_long_list(self, ranker):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(5000, 4))
        y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=5000), [1.0, 2.0])
        scores = ranker.fit(X, y, np.zeros(len(y))).predict(X)
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
            found, wanted = thin.predict(sparse.csr_array(X)), dense.predict(X)
            # each round of PermuRank ends within a gap, too, which is a share of the whole and not of a score near 0
            atol = 1e-4 * np.abs(wanted).max() if isinstance(ranker, tr.PermuRank) else 1e-5
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=atol)

    def test_threads_learn_the_same_bits(self, ranker, data, monkeypatch):
        for size in ("BLOCK_VALUES", "RUN_VALUES"):  # many blocks, in many runs
            monkeypatch.setattr(blocks, size, 128)
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


def tied(seed=0, n_queries=12):
    """Graded lists with many equal values, a column that never changes, and one that says something."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_queries * 9, 4)).astype(float)
    y = np.clip(np.round(0.5 * X[:, 0] + 0.7 * rng.normal(size=len(X))), 0, 2)
    X[:, 3] = 1.0
    y[::9], y[1::9] = 0, 2
    return tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(n_queries), 9))


def by_rows(data, key):
    """The same lists with their rows in another order."""
    order = np.lexsort((key, data.qid))
    return tr.QueryDataset.from_arrays(data.X[order], data.y[order], data.qid[order])


@pytest.mark.filterwarnings("ignore:.*working sets still changed")
@pytest.mark.parametrize("name", ["map", "ndcg@3", "ndcg", "p@2", "mrr", "map@3"])
@pytest.mark.parametrize(
    "make",
    [
        lambda m: tr.AdaRank(m, rounds=10),
        lambda m: tr.AdaRank(m, rounds=10, rule="paper"),
        lambda m: tr.PermuRank(m, rounds=4, average=False),
        lambda m: tr.PermuRank(m, rounds=4, pairs="all"),
        lambda m: tr.SVMMap(m, tol=1e-6),
        lambda m: tr.RankBoost(m, rounds=10),
    ],
)
def test_the_order_of_the_rows_changes_nothing(make, name):
    if isinstance(make(name), tr.SVMMap) and name not in ("map", "ndcg@3", "ndcg"):
        return
    data, rng = tied(), np.random.default_rng(1)
    first = make(name).fit_queries(data)
    for key in (-data.y, data.y, rng.random(data.n_docs)):
        other = make(name).fit_queries(by_rows(data, key))
        close = 1e-3 if isinstance(first, tr.SVMMap) else 1e-7
        np.testing.assert_allclose(other.predict(data), first.predict(data), rtol=close, atol=close)
        if isinstance(first, tr.AdaRank):
            assert other.alphas_.tobytes() == first.alphas_.tobytes()


@pytest.mark.parametrize("rule", ["paper", "improve"])
def test_a_column_that_never_changes_is_no_perfect_feature_on_rows_sorted_by_grade(rule):
    data = by_rows(tied(), -tied().y)
    ranker = tr.AdaRank("map", rule=rule, rounds=5).fit_queries(data)
    assert 3 not in ranker.candidates_ % 4
    assert ranker.trace_["measure"][-1] < 0.99
    assert all(c.holds() and c.observed < 0.99 for c in ranker.certify(data))


def test_the_papers_rule_counts_every_query():
    """Fig. 6 starts from 1/m over all queries: those without a relevant document have E = 0, those of one grade 1."""
    blank = tr.QueryDataset.from_arrays(np.ones((4, 4)), [0, 0, 1, 1], qid=[90, 90, 91, 91])
    data = tied()
    X, y = np.vstack([data.X, blank.X]), np.append(data.y, blank.y)
    more = tr.QueryDataset.from_arrays(X, y, np.append(data.qid, blank.qid))
    plain, padded = (tr.AdaRank("map", rule="paper", rounds=1).fit_queries(part) for part in (data, more))
    phi = np.tanh(plain.alphas_[0])  # α = ½ ln((1 + φ)/(1 − φ))
    assert np.tanh(padded.alphas_[0]) == pytest.approx((12 * phi + 0 + 1) / 14)
    few, all_of_them = (tr.AdaRank("map", rounds=1).fit_queries(part) for part in (data, more))
    assert few.alphas_[0] == all_of_them.alphas_[0]


@pytest.mark.filterwarnings("ignore:no document has grade 0")
@pytest.mark.parametrize(
    "ranker", [tr.AdaRank("map"), tr.PermuRank("map"), tr.SVMMap("map"), tr.SVMMap("ndcg", threshold=9)], ids=str
)
def test_data_in_which_the_measure_can_teach_nothing_are_told(ranker):
    """Grades differ, but all documents of a query are relevant, or none is."""
    X = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.warns(ConvergenceWarning, match="learned nothing.*alike to the measure"):
        ranker.fit(X, [1, 2, 1, 3, 1, 2, 2, 1], qid=np.repeat([0, 1], 4))
    assert not ranker.coef_.any()


@pytest.mark.parametrize("name", ["mrr", "wta", "p@2", "map@3", "recall@2", "rbp", "err@5", "auc", "meanndcg"])
def test_any_measure_in_the_unit_interval_is_learned(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.tile([0.0, 2.0, 1.0, 0.0, 0.0, 1.0], 10)
    X[:, 1] = y + 0.3 * X[:, 1]
    data = tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(10), 6))
    for ranker in (tr.AdaRank(name, rounds=20), tr.PermuRank(name, rounds=10, C=100.0)):
        scores = ranker.fit_queries(data).predict(data)
        worst = tr.measure(name).mean(-X[:, 1], data.y, data.ptr)
        best = tr.measure(name).mean(data.y, data.y, data.ptr)
        assert tr.measure(name).mean(scores, data.y, data.ptr) > worst + 0.6 * (best - worst)


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


@pytest.mark.filterwarnings("ignore:.*working sets still changed")
def test_permurank_averages_its_rounds(data):
    one = [tr.PermuRank("ndcg@5", rounds=t, average=False).fit_queries(data).coef_ for t in (1, 2, 3)]
    mean = tr.PermuRank("ndcg@5", rounds=3).fit_queries(data)
    np.testing.assert_allclose(mean.coef_, np.mean(one, axis=0), rtol=1e-9)
    assert mean.solution_.message == "mean of 3 rounds: the working sets still changed after 3 rounds"
    assert not mean.solution_.converged


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


def test_permurank_goes_on_from_the_weights_so_far(data):
    ranker = tr.PermuRank(rounds=3, average=False, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three rounds are too few
        first = ranker.fit_queries(data).coef_.copy()
        again = ranker.fit_queries(data).coef_
        cold = tr.PermuRank(rounds=3, average=False).fit_queries(data).coef_
    np.testing.assert_array_equal(first, cold)
    assert not np.array_equal(again, cold)


@pytest.mark.parametrize("ranker", [tr.AdaRank(rounds=4), tr.AdaRank(rounds=4, rule="paper"), tr.RankBoost(rounds=4)])
def test_boosting_in_two_halves_is_boosting_in_one(ranker, data, valid):
    whole = clone(ranker).set_params(rounds=8).fit_queries(data)
    halves = clone(ranker).set_params(warm_start=True).fit_queries(data).fit_queries(data)
    assert halves.n_iter_ == whole.n_iter_ == 8
    if isinstance(ranker, tr.RankBoost):
        np.testing.assert_array_equal(halves.function_.feature, whole.function_.feature)
        np.testing.assert_allclose(halves.function_.weight, whole.function_.weight, rtol=1e-9)
    elif ranker.rule == "paper":
        np.testing.assert_allclose(halves.coef_, whole.coef_, rtol=1e-12)
    certificates = halves.certify(data)
    assert certificates
    assert all(str(certificate.verdict) in ("holds", "vacuous") for certificate in certificates)
    halves.fit_queries(data, valid)  # and with a validation part
    wide = tr.datasets.make_graded(n_queries=5, n_features=data.n_features + 1, random_state=0)
    with pytest.raises(tr.InputError, match=r"warm_start: the .* so far are for"):
        halves.fit_queries(wide)
