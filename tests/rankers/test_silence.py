"""What would mislead says so: rows without qid, split queries, skipped batches, equal step sizes, another measure."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate

import toprank as tr

TOLD = [tr.ListNet, tr.SlamPerceptron, tr.RankSVM]


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=90, n_docs=(8, 12), n_features=4, n_grades=3, random_state=0)


@pytest.mark.parametrize("kind", TOLD)
def test_many_rows_without_qid_are_told(kind, data):
    with pytest.warns(UserWarning, match=r"fit without qid takes all .* rows as one list"):
        ranker = kind().fit(data.X, data.y)
    with pytest.warns(UserWarning, match=r"score without qid takes all"):
        ranker.score(data.X, data.y)
    with pytest.warns(UserWarning, match=r"fit without qid takes all 40 rows as one list"):
        kind().fit(data.X[:40], data.y[:40])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind().fit(data.X, data.y, np.zeros(data.n_docs))  # one list on purpose
        kind().fit(data.X[:20], data.y[:20])  # a list
        tr.SGDAtK().fit(data.X, data.y > 1)  # rows are what these learners are for


def test_cross_validation_without_routing_is_never_silent(data):
    """Either numbers with a word, or an error: here a word, for each of the folds."""
    with pytest.warns(UserWarning, match="without qid takes all") as told:
        cross_validate(tr.ListNet(), data.X, data.y, groups=data.qid, cv=GroupKFold(3))
    assert sum("fit without qid" in str(word.message) for word in told) == 3
    assert sum("score without qid" in str(word.message) for word in told) == 3


def test_a_split_that_cuts_queries_apart_is_told(data):
    with sklearn.config_context(enable_metadata_routing=True):
        for scoring in (None, tr.scorer("ndcg@10")):
            with pytest.warns(UserWarning, match=r"queries were also learned from, with other rows"):
                cross_validate(tr.ListNet(), data.X, data.y, cv=5, params={"qid": data.qid}, scoring=scoring)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                cross_validate(
                    tr.ListNet(), data.X, data.y, cv=tr.QueryKFold(5), params={"qid": data.qid}, scoring=scoring
                )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr.ListNet().fit(data.X, data.y, data.qid).score(data.X, data.y, data.qid)  # whole queries are no split


def test_skipped_batches_are_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.zeros(4000)
    y[::1000] = 1
    with pytest.warns(UserWarning, match=r"1,.* of 2,000 batches held one class only and were skipped"):
        tr.PerceptronAtK(batch_size=50).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr.PerceptronAtK(batch_size=2000).fit(X, y)


def test_step_sizes_that_do_not_differ_are_told(data):
    flat = data.with_X(data.X * 1e-300)
    with pytest.warns(UserWarning, match=r"all 3 step sizes reach 0\..*: the choice between them means nothing"):
        tr.choose_eta(tr.MinimaxPerceptron(), flat, etas=[0.1, 1.0, 10.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr.choose_eta(tr.SlamPerceptron(), data, etas=[1e-6, 1.0])


@pytest.mark.parametrize("kind", [tr.SlamPerceptron, tr.MinimaxPerceptron, tr.KernelSlamPerceptron])
def test_a_stream_keeps_to_one_measure(kind, data, tmp_path):
    ranker = kind("ndcg@10").partial_fit_queries(data[:5])
    before = ranker.predict(data).tobytes()
    ranker.save(tmp_path / "model.json")
    for stream in (ranker, tr.load(tmp_path / "model.json")):
        stream.set_params(measure="map")
        with pytest.raises(tr.InputError, match=r"measure cannot change in mid-stream from ndcg@10 to map"):
            stream.partial_fit_queries(data[5:])
        assert stream.predict(data).tobytes() == before
        stream.set_params(measure=tr.measure("ndcg@10")).partial_fit_queries(data[5:])  # the same, said otherwise
        stream.set_params(measure="map").fit_queries(data)  # a new start


def test_lists_that_are_no_rounds_are_told():
    X, y = np.arange(6.0)[:, None], np.array([1, 2, 1, 2, 1, 2])
    with pytest.raises(tr.InputError, match="no list is a round: by map"):
        tr.SlamPerceptron("map").fit(X, y)


def test_features_that_overflow_are_named(data):
    X = data.X * 1.0
    X[:, 2] *= 1e200
    for kind in TOLD:
        with pytest.raises(tr.InputError, match=r"in column 2: numbers beyond 1e[+]150 overflow"):
            kind().fit(X, data.y, data.qid)


class TestTopScorer:
    def test_three_classes(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, size=600)
        X = np.eye(3)[y] + 0.01 * rng.normal(size=(600, 3))
        model = LogisticRegression().fit(X, y)
        for label in (0, 1, 2):
            assert tr.precision_at_k(k=100, pos_label=label)(model, X, y) == 1.0
        assert tr.precision_at_k(k=200)(model, X, y) == 1.0  # numbered from 0: all but 0 are positive
        names = np.array(["ham", "spam", "toast"])[y]
        named = LogisticRegression().fit(X, names)
        assert tr.precision_at_k(k=100, pos_label="toast")(named, X, names) == 1.0
        with pytest.raises(tr.InputError, match="name the positive one with pos_label"):
            tr.precision_at_k(k=100)(named, X, names)

    def test_ties_count_by_their_expected_value(self):
        class Constant:
            def predict(self, X):
                return np.zeros(len(X))

        y = np.array([1, 1, 0, 0, 0, 0, 0, 0])
        for labels in (y, y[::-1]):
            assert tr.precision_at_k(k=4)(Constant(), np.zeros((8, 1)), labels) == pytest.approx(0.25)
            assert tr.precision_at_k(kappa=1.0)(Constant(), np.zeros((8, 1)), labels) == pytest.approx(0.25)

    def test_expected_precision_by_enumeration(self):
        """The mean over all orders of tied rows, each order counted as it is."""
        from itertools import pairwise, permutations

        from toprank.rankers.two_classes import top_precision

        rng = np.random.default_rng(1)
        for _ in range(30):
            n = int(rng.integers(2, 6))
            s, y = rng.integers(0, 3, size=n).astype(float), rng.integers(0, 2, size=n).astype(float)
            k = int(rng.integers(1, n + 1))
            orders = [p for p in permutations(range(n)) if all(s[a] >= s[b] for a, b in pairwise(p))]
            expected = np.mean([sum(y[list(p[:k])]) / k for p in orders])
            found = top_precision(k, None).per_query(np.tile(s, 2), np.tile(y, 2), np.array([0, n, 2 * n]))
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_k_means_the_judged_list():
    """In batches k is the share k/n₊ of the training list: not silently a cut-off of each batch."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] + rng.normal(size=3000) > 1.5).astype(float)
    positives = y.sum()
    by_k = tr.PerceptronAtK(k=100, epochs=2).fit(X, y)
    by_share = tr.PerceptronAtK(kappa=100 / positives, epochs=2).fit(X, y)
    whole = tr.PerceptronAtK(kappa=1.0, epochs=2).fit(X, y)
    assert by_k.coef_.tobytes() == by_share.coef_.tobytes()
    assert by_k.coef_.tobytes() != whole.coef_.tobytes()


@pytest.mark.parametrize("variant", ["avg", "max"])
def test_a_row_beside_the_origin_with_k_1_is_the_classical_perceptron(variant):
    """List {x, 0}: the better one should be x where its class is positive. On a mistake w moves by ±x (Novikoff)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    signs = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=60) > 0, 1, -1)
    w = np.zeros(3)
    for x, sign in zip(X, signs, strict=True):
        if sign * (w @ x) <= 0:
            w = w + sign * x
    # The row of the wrong class stands first, so that a tie is a mistake here too.
    rows = np.array([row for x, sign in zip(X, signs, strict=True) for row in ((0 * x, x) if sign > 0 else (x, 0 * x))])
    ranker = tr.PerceptronAtK(variant, k=1, average=False).partial_fit(
        rows, np.tile([0, 1], 60), qid=np.repeat(np.arange(60), 2)
    )
    np.testing.assert_allclose(ranker.coef_, w, atol=1e-12)
