"""Laws over every ranker: the order of rows, weights of queries, and what a file keeps."""

import numpy as np
import pytest

import toprank as tr
from tests.rankers.test_failed_fit import ALL, STREAMS, small

BATCH = [k for k in ALL if k is tr.LinearRanker or not (k in STREAMS or hasattr(k, "partial_fit_clicks"))]
QUERIES = {"n_docs": (3, 7), "n_features": 4, "n_grades": 3, "blank": 0.1}


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=24, random_state=5, **QUERIES)


def tight(kind):
    """The ranker, solved so tightly that only the model itself can differ."""
    if kind is tr.BoostedTrees:  # LambdaMART takes documents of equal scores in the order of the rows
        counts = {
            "min_data_in_leaf": 1,
            "min_data_in_bin": 1,
            "num_leaves": 4,
        }  # a query given twice has twice the rows
        return kind(loss="ListNet", rounds=4, params=counts)
    names = kind._get_param_names()
    given = {"rounds": 20, "tol": 1e-9, "C": 1.0, "alpha": 0.1, "max_iter": 3000, "every": 1, "thresholds": 5}
    return kind(**{name: value for name, value in given.items() if name in names})


def interleaved(data, seed):
    """A permutation of rows that keeps the order inside each query and of first appearances."""
    rng = np.random.default_rng(seed)
    lengths = np.diff(data.ptr)
    head = data.ptr[:-1]  # the first row of each query in order, then the others in random order of queries
    rest = rng.permutation(np.repeat(np.arange(data.n_queries), lengths - 1))
    place = data.ptr[:-1] + 1
    rows = []
    for q in rest:
        rows.append(place[q])
        place[q] += 1
    return np.concatenate((head, np.array(rows, dtype=np.int64)))


def shuffled_inside(data, seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(np.arange(a, b)) for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True)])


def assert_close(a, b):
    scale = max(1.0, np.abs(a).max())
    np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=2e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ALL)
class TestEveryRanker:
    def test_interleaved_queries_learn_the_same_bits(self, kind, data):
        rows = interleaved(data, 0)
        assert (np.diff(rows) != 1).any()
        plain = small(kind).fit(data.X, data.y, data.qid)
        mixed = small(kind).fit(data.X[rows], data.y[rows], data.qid[rows])
        assert mixed.predict(data.X).tobytes() == plain.predict(data.X).tobytes()
        assert mixed.predict(data.X[rows]).tobytes() == plain.predict(data.X)[rows].tobytes()
        assert (mixed.rank(data.X[rows], data.qid[rows]) == plain.rank(data.X, data.qid)[rows]).all()

    def test_a_file_keeps_everything(self, kind, data, tmp_path):
        """save → load → predict, certify, partial_fit and export are as before."""
        ranker = small(kind).fit_queries(data)
        ranker.save(tmp_path / "model.json")
        again = tr.load(tmp_path / "model.json")
        assert again.predict(data).tobytes() == ranker.predict(data).tobytes()
        said = [[str(certificate) for certificate in tr.certify(r, data)] for r in (ranker, again)]
        assert said[0] == said[1]
        if kind is not tr.KernelSlamPerceptron:  # no engine takes a kernel
            for file, r in (("a.json", ranker), ("b.json", again)):
                tr.export.write(r, tmp_path / file, "solr")
            assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
        if kind in STREAMS:
            more = [r.partial_fit(data.X, data.y, data.qid).predict(data) for r in (ranker, again)]
            assert more[0].tobytes() == more[1].tobytes()
            assert more[0].tobytes() != tr.load(tmp_path / "model.json").predict(data).tobytes()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", BATCH)
class TestEveryBatchRanker:
    @pytest.mark.parametrize("how", ["random", "by grade", "by grade, worst first"])
    def test_rows_inside_a_query_may_come_in_any_order(self, kind, data, how):
        rows = shuffled_inside(data, 1)
        if how != "random":
            sign = -1 if how == "by grade" else 1
            rows = np.lexsort((sign * data.y, np.repeat(np.arange(data.n_queries), data.lengths)))
        plain = tight(kind).fit(data.X, data.y, data.qid).predict(data.X)
        moved = tight(kind).fit(data.X[rows], data.y[rows], data.qid[rows]).predict(data.X)
        assert_close(moved, plain)

    def test_a_weight_of_two_is_a_query_given_twice(self, kind, data):
        weight = np.ones(data.n_queries)
        weight[[1, 4, 5]] = 2.0
        twice = data[[*range(data.n_queries), 1, 4, 5]]
        ids = np.arange(twice.n_queries)
        heavy = tight(kind).fit(data.X, data.y, data.qid, query_weight=weight).predict(data.X)
        double = tight(kind).fit(twice.X, twice.y, np.repeat(ids, twice.lengths)).predict(data.X)
        even = tight(kind).fit(data.X, data.y, data.qid).predict(data.X)
        assert_close(heavy, double)
        assert np.abs(heavy - even).max() > 1e-3 * np.abs(even).max()  # and it matters
