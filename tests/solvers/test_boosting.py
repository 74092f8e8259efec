from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import toprank as tr
from tests.oracles import boosting as oracle
from tests.oracles import direct
from toprank.measures import AP
from toprank.measures.order import Ties
from toprank.measures.presets import Blank, Norm
from toprank.model.functions import StumpFunction
from toprank.solvers.adarank import AdaRankRounds, _Ensemble, _first_of_the_best, measure_table, replay
from toprank.solvers.boosting import BinnedColumns, RankBoostRounds
from toprank.surrogates.direct import in_training


def small(seed, n_queries=5, n_docs=6, n_features=4, zeros=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, n_features))
    X[rng.random(X.shape) < zeros] = 0
    y = rng.integers(0, 3, n_queries * n_docs)
    y[::n_docs], y[1::n_docs] = 0, 2  # every query is informative
    return tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(n_queries), n_docs))


def ap_of(data, scores):
    """AP of each query, expected over the orders of ties, by writing them out (or place by place in long lists)."""
    found = []
    for a, b in pairwise(data.ptr):
        relevant = data.y[a:b] >= 1
        found.append(oracle.expected_precision(scores[a:b], relevant) / max(relevant.sum(), 1))
    return found


CUTS = {
    "map": direct.ap,
    "map@2": lambda o, g: (
        sum(sum(g[j] >= 1 for j in o[: p + 1]) / (p + 1) for p in range(min(2, len(o))) if g[o[p]] >= 1)
        / max(sum(x >= 1 for x in g), 1)
    ),
    "ndcg": direct.ndcg,
    "ndcg@2": lambda o, g: direct.ndcg(o, g, k=2),
    "mrr": lambda o, g: next((1 / (p + 1) for p, i in enumerate(o) if g[i] >= 1), 0.0),
}


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(CUTS)))
def test_ties_count_as_expected_over_their_orders(seed, name):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    x, y = rng.integers(0, 3, n).astype(float), rng.integers(0, 3, n).astype(float)
    found = float(measure_table(tr.measure(name), tr.QueryDataset.from_arrays(x[:, None], y))[0, 0])
    if name == "mrr" and Ties.AVERAGE not in tr.measure("mrr").tie_rules:
        return
    assert found == pytest.approx(oracle.expected(CUTS[name], x, y), abs=1e-12)
    if name == "map" and (y >= 1).any():  # the two oracles
        assert oracle.expected_precision(x, y >= 1) / (y >= 1).sum() == pytest.approx(found, abs=1e-12)


def test_the_table_is_each_feature_alone_whatever_the_storage():
    data = small(0)
    table = measure_table(tr.measure("map"), data, both=True)
    for k in range(4):
        np.testing.assert_allclose(table[:, k], ap_of(data, data.X[:, k]))
        np.testing.assert_allclose(table[:, 4 + k], ap_of(data, -data.X[:, k]))
    thin = data.with_X(sparse.csr_array(data.X))
    assert measure_table(tr.measure("map"), thin, both=True).tobytes() == table.tobytes()


@given(st.integers(0, 2**32 - 1))
def test_the_paper_rule_is_the_figure(seed):
    data = small(seed)
    table = measure_table(tr.measure("map"), data)
    done = AdaRankRounds(tr.measure("map"), 6, "paper").run(data, np.full(5, 0.2))

    def evaluate(chosen):
        return ap_of(data, sum(alpha * data.X[:, k] for k, alpha in chosen))

    expected = oracle.adarank(table.tolist(), evaluate, len(done.candidates))
    # A tie between two features may be settled either way by rounding; then only the value must agree.
    for (k, alpha), mine, weight in zip(expected, done.candidates, done.weights, strict=True):
        assert alpha == pytest.approx(weight, rel=1e-9)
        if k != mine:
            break


@given(st.integers(0, 2**32 - 1))
def test_the_improve_rule_is_its_oracle(seed):
    data = small(seed, n_queries=7)
    table = measure_table(tr.measure("map"), data, both=True)
    done = AdaRankRounds(tr.measure("map"), 20, "improve", both=True).run(data, np.full(7, 1 / 7))

    def evaluate(chosen):
        return ap_of(data, sum((1 if k < 4 else -1) * alpha * data.X[:, k % 4] for k, alpha in chosen))

    expected = oracle.adarank_that_improves(table.tolist(), evaluate, 20)
    # A tie between two features may be settled either way by rounding; then only the value must agree.
    for (k, alpha), mine, weight in zip(expected, done.candidates, done.weights, strict=False):
        assert alpha == pytest.approx(weight, rel=1e-9)
        if k != mine:
            return
    assert len(done.candidates) == len(expected)


def test_rounding_does_not_choose_between_features():
    """Candidates whose φ differ in the last bit alone are equally good: the first of them is taken."""
    below, best = np.nextafter(0.5, 0), 0.5
    assert _first_of_the_best(np.array([0.4, below, best, -np.inf])) == 1
    assert _first_of_the_best(np.array([0.4, best, below])) == 1
    assert _first_of_the_best(np.array([0.4, 0.5 - 1e-9, best])) == 2


@pytest.mark.parametrize("gain", [0.0, 1e-16, 1e-14])
def test_rounding_is_no_gain(gain, monkeypatch):
    """Steps after the first raise the mean by a last bit: none of them is taken, however small it is made."""
    data, tried = small(1), {}

    def mean(self):
        return -np.inf if self.empty else 0.5 * (1 + gain * tried.setdefault(self, len(tried)))

    monkeypatch.setattr(_Ensemble, "mean", property(mean))
    done = AdaRankRounds(tr.measure("map"), 5, "improve").run(data, np.full(5, 0.2))
    assert len(done.candidates) == 1
    assert len(tried) == 1 + 7 * 4  # each of four features, with the full step and six halves of it


MEASURES = [
    "map",
    "map:mslr",
    "map:trec_eval",
    "map:sklearn",
    "map:lightgbm",
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "ndcg@10:letor4",
]
MEASURES += [
    "ndcg@4:sklearn",
    "ndcg@4:trec_eval",
    "ndcg@40",
    "mrr",
    "p@2",
    "recall@3",
    "err@5",
    "rbp",
    "auc",
    "meanndcg",
]


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_is_measured_as_by_the_measure_itself(name, dtype):
    """Step after step, long lists and short ones, tied scores, whatever short cut was taken."""
    rng, measure = np.random.default_rng(1), tr.measure(name)
    lengths = np.array([1, 2, 5, 9, 30, 90, 200, 700])
    X = rng.integers(0, 40, (lengths.sum(), 6)).astype(dtype) / 8
    y = rng.integers(0, 3, len(X)) * (rng.random(len(X)) < 0.4)
    data = tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(8), lengths))
    f = ensemble_of(measure, data, data.informative / data.informative.sum())
    scores = np.zeros(data.n_docs)
    for k, weight in zip((0, 1, 2, 8, 3, 0), (1.0, 0.5, 4.0, 0.25, 0.125, 2.0), strict=True):
        f.plus((k + 1) % 6, 3.0, alone=False)  # a step that is not taken leaves nothing behind
        f = f.plus(k, weight, alone=False)
        scores = scores + weight * (1.0 if k < 6 else -1.0) * X[:, k % 6].astype(np.float64)
        expected = expected_of(measure, scores, data)
        np.testing.assert_allclose(reached(f)[data.informative], expected[data.informative], atol=1e-12)
        assert f.mean == pytest.approx(expected[data.informative].mean(), abs=1e-12)


def ensemble_of(measure, data, importance):
    """An AdaRank ensemble without features, features reversed too."""
    return _Ensemble.without_features(in_training(measure), True, data, importance, None)


def reached(f):
    """The measure of each query by the ensemble."""
    return np.concatenate(f.pieces.map_reduce(lambda piece: [piece.E]))


def expected_of(measure, scores, data):
    """The measure of each query with ties as expected, by the measure itself or, for AP, place by place."""
    row = measure
    if not isinstance(measure, AP):
        return np.nan_to_num(in_training(measure).per_query(scores, data.y, data.ptr))
    found = []
    for a, b in pairwise(data.ptr):
        relevant, cut = data.y[a:b] > row.above, row.k or b - a
        most = max(min(relevant.sum(), cut) if row.norm == Norm.CUT else relevant.sum(), 1)
        blank = not relevant.any() and row.blank == Blank.ONE
        found.append(1.0 if blank else oracle.expected_precision(scores[a:b], relevant, cut) / most)
    return np.array(found)


def awkward_columns(rng, n):
    """Scores of one size and of very different sizes, equal ones, mixtures, and numbers that a small step makes 0."""
    x = rng.random(n)
    outlier = np.where(np.arange(n) % 97 == 5, 1e9, x)
    return np.column_stack(
        [
            x,
            rng.normal(size=n),
            rng.integers(0, 3, n),
            outlier,
            np.where(rng.random(n) < 0.5, outlier, 0.0),
            np.round(x, 5) * 1e-3 - rng.integers(0, 40, n),
            np.ones(n),
            rng.integers(0, 2, n) * 5e-324,
        ]
    )


@pytest.mark.parametrize("name", ["map", "map@7", "map@7:lightgbm", "ndcg", "ndcg@10", "ndcg@10:letor4"])
def test_awkward_columns_are_ranked_as_by_the_measure(name):
    """Short lists and long ones, relevant documents rare and frequent; columns alone, reversed and added up."""
    rng, measure = np.random.default_rng(2), tr.measure(name)
    lengths = np.array([3, 16, 17, 64, 65, 130, 130, 130, 600, 1500, 1600, 5000])
    shares = np.array([0.5, 0.5, 0.1, 0.9, 0.5, 0.02, 0.3, 0.99, 0.4, 0.2, 0.8, 0.02])
    X = awkward_columns(rng, lengths.sum())
    y = rng.integers(1, 5, len(X)) * (rng.random(len(X)) < np.repeat(shares, lengths))
    y[np.cumsum(lengths) - 1], y[np.cumsum(lengths) - 2] = 0, 1
    data = tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(len(lengths)), lengths))
    d = X.shape[1]
    table = measure_table(measure, data, both=True)
    f = ensemble_of(measure, data, np.full(len(lengths), 1 / len(lengths)))
    scores = np.zeros(data.n_docs)
    for k in range(2 * d):
        column = X[:, k % d] * (1.0 if k < d else -1.0)
        np.testing.assert_allclose(table[:, k], expected_of(measure, column, data), atol=1e-11)
    for k, weight in zip((7, 2, d + 5, 1, 4, d + 3, 0), (1.0, 0.5, 2.0, 1e-4, 0.3, 0.3, 0.1), strict=True):
        scores = scores + weight * X[:, k % d] * (1.0 if k < d else -1.0)
        f = f.plus(k, weight, alone=False)
        expected = expected_of(measure, scores, data)
        np.testing.assert_allclose(reached(f), expected, atol=1e-11)
        assert f.mean == pytest.approx(expected.mean(), abs=1e-11)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["map", "ndcg@3", "p@2", "mrr"]))
def test_the_improve_rule_never_loses_on_the_training_part(seed, name):
    data = small(seed, n_queries=8)
    measure = tr.measure(name)
    done = AdaRankRounds(measure, 30, "improve").run(data, np.full(8, 1 / 8))
    assert (np.diff(done.trace["measure"]) > 0).all()
    scores = sum(w * data.X[:, k] for k, w in zip(done.candidates, done.weights, strict=True))
    assert expected_of(measure, scores, data).mean() == pytest.approx(done.trace["measure"][-1])


def test_replay_finds_the_numbers_of_the_run():
    data, measure = small(3, n_queries=9), tr.measure("ndcg")
    importance = np.full(9, 1 / 9)
    for rule in ("paper", "improve"):
        done = AdaRankRounds(measure, 12, rule).run(data, importance)
        again = replay(measure, data, done, importance)
        for name in ("measure", "phi", "delta"):
            np.testing.assert_allclose(again.trace[name], done.trace[name], atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_rankboost_is_the_pair_list(seed):
    data = small(seed, n_queries=3, n_docs=5, n_features=3)
    pairs = sum((data.y[a:b, None] > data.y[None, a:b]).sum() for a, b in pairwise(data.ptr))
    done, thresholds = RankBoostRounds(4).run(data, BinnedColumns.of(data.X), np.full(3, 1 / pairs))
    expected = oracle.rankboost(data.X.tolist(), data.y.tolist(), data.qid.tolist(), len(done.candidates))
    for t, (k, above, alpha, loss) in enumerate(expected):
        assert abs(done.weights[t]) == pytest.approx(abs(alpha), rel=1e-6, abs=1e-9)
        if done.candidates[t] != k or np.flatnonzero(data.X[:, k] > thresholds[t]).tolist() != above:
            break  # equally good stumps: from here on the runs differ
        assert done.trace["loss"][t] == pytest.approx(loss, rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_sparse_columns_give_the_same_stumps(seed, both):
    """CSR leaves zeros out: values above and below them are sorted from the two ends."""
    data = small(seed)
    thin = data.with_X(sparse.csr_array(data.X))
    dense, theta = RankBoostRounds(8, both).run(data, BinnedColumns.of(data.X), np.ones(5))
    other, theta_other = RankBoostRounds(8, both).run(thin, BinnedColumns.of(thin.X), np.ones(5))
    np.testing.assert_allclose(other.weights, dense.weights, rtol=1e-9)
    np.testing.assert_array_equal(theta_other, theta)
    model = StumpFunction(4, dense.candidates, theta, dense.weights)
    for X in (data.X, thin.X):
        assert exponential(data, model.scores(X)) == pytest.approx(dense.trace["loss"][-1], rel=1e-9)


def exponential(data, s):
    total, count = 0.0, 0
    for a, b in pairwise(data.ptr):
        better = data.y[a:b, None] > data.y[None, a:b]
        total += np.exp(s[None, a:b] - s[a:b, None])[better].sum()
        count += better.sum()
    return total / count


def test_fewer_thresholds_are_spread_over_the_documents():
    x = np.arange(100.0)[:, None]
    columns = BinnedColumns.of(x, 4)
    assert columns.edges.tolist() == [19.5, 39.5, 59.5, 79.5]
    assert np.bincount(columns.codes[:100]).tolist() == [20] * 5
    assert columns.codes.dtype == np.uint8
    assert BinnedColumns.of(np.arange(300.0)[:, None]).codes.dtype == np.uint16


@pytest.mark.parametrize("thresholds", [None, 1, 7, 100, 400])
def test_a_code_is_the_number_of_thresholds_below_a_value(thresholds):
    X = np.random.default_rng(0).normal(size=(701, 3)).round(2).astype(np.float32)
    X[:, 1] = 5.0
    columns = BinnedColumns.of(X, thresholds)
    for k, (first, last) in enumerate(pairwise(columns.start)):
        expected = (columns.edges[None, first:last] < X[:, k, None]).sum(axis=1)
        np.testing.assert_array_equal(columns.codes[columns.begin[k] :][: len(X)], expected)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_a_row_of_weight_three_counts_as_three_rows(storage):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((400, 3)) < 0.4, 0.0, rng.normal(size=(400, 3)))
    weight = rng.integers(0, 4, 400)
    many = np.repeat(X, weight, axis=0)
    for unit in (1.0, 0.1):
        weighed = BinnedColumns.of(storage(X), 9, weight * unit)
        assert weighed.edges.tolist() == BinnedColumns.of(storage(many), 9).edges.tolist()
    assert weighed.edges.tolist() != BinnedColumns.of(storage(X), 9).edges.tolist()


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rare", [5000, 100])
def test_a_value_that_most_documents_share_does_not_take_the_thresholds_of_the_others(rare, storage):
    x = np.append(np.zeros(10_000 - rare), np.arange(1.0, rare + 1))[:, None]
    edges = BinnedColumns.of(storage(x), 24).edges
    sizes = np.bincount(np.searchsorted(edges, x[:, 0]))
    assert len(edges) == 24
    assert sizes[0] == 10_000 - rare
    assert np.ptp(sizes[1:]) <= 1  # the others lie evenly above


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 60)), min_size=1), st.integers(1, 12))
def test_there_are_as_many_thresholds_as_were_asked_for(runs, limit):
    x = np.repeat(*np.array(runs).T).astype(np.float64)
    values, counts = np.unique(x, return_counts=True)
    edges = BinnedColumns.of(x[:, None], limit).edges
    assert len(edges) == min(limit, len(values) - 1)
    bins = np.split(counts, np.searchsorted(values, edges))
    light = [each.sum() for each in bins if (each <= len(x) / (limit + 1)).all()]
    assert max(light, default=0) <= 2 * len(x) / (limit + 1)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("digits", [12, 20, 150, 300])
def test_weights_of_any_size_leave_thresholds_for_all_others(digits, storage):
    rng = np.random.default_rng(digits)
    x = np.append(0.0, np.arange(1.0, 400.0))[:, None]
    heavy = np.where(np.arange(400) == 200, 10.0**digits, 10.0**-digits)
    assert len(BinnedColumns.of(storage(x), 9, heavy).edges) == 9
    for weight in 10.0 ** rng.integers(-digits, digits, (20, 400)):
        assert 1 <= len(BinnedColumns.of(storage(x), 64, weight).edges) <= 64
    assert len(BinnedColumns.of(storage(x[:1]), 9, np.array([1e20])).edges) == 0


def test_a_rare_feature_can_be_learned_with_few_thresholds():
    """One document in a hundred has the feature, in as many values: those are the relevant ones."""
    x = np.zeros((5_000, 1))
    x[::100, 0] = np.arange(1.0, 51.0)
    data = tr.QueryDataset.from_arrays(x, x[:, 0] > 0, np.repeat(np.arange(50), 100))
    ranker = tr.RankBoost(rounds=3, thresholds=10).fit_queries(data)
    assert ranker.score(data.X, data.y, data.qid) == 1.0


def test_a_column_of_one_value_has_no_threshold():
    assert len(BinnedColumns.of(np.ones((5, 1))).edges) == 0
    assert len(BinnedColumns.of(sparse.csr_array(np.zeros((5, 1)))).edges) == 0
    half = BinnedColumns.of(sparse.csr_array(np.array([[1.0], [0.0], [1.0], [-2.0]])))
    assert half.edges.tolist() == [-1.0, 0.5]


@pytest.mark.parametrize("name", ["ndcg@5", "map"])
@pytest.mark.parametrize("rule", ["paper", "improve"])
def test_threads_give_the_same_bits(rule, name, monkeypatch):
    monkeypatch.setattr("toprank.solvers.adarank.TABLE_VALUES", 40)
    monkeypatch.setattr("toprank.solvers.adarank.PIECE_DOCS", 20)
    data, measure = small(5, n_queries=20), tr.measure(name)
    assert data.map_reduce(lambda block: 1, values=40) > 3
    importance = np.full(20, 0.05)
    with ThreadPoolExecutor(4) as pool:
        runs = [AdaRankRounds(measure, 9, rule).run(data, importance, e) for e in (None, pool)]
        stumps = [RankBoostRounds(9).run(data, BinnedColumns.of(data.X), importance, e) for e in (None, pool)]
    assert runs[0].weights.tobytes() == runs[1].weights.tobytes()
    assert stumps[0][0].weights.tobytes() == stumps[1][0].weights.tobytes()
