"""The best single feature, against trying them all by hand."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.contests import baselines


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["ndcg@3", "map"])
def test_best_feature_is_the_best_of_all(sparse, name):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5))
    X[:, 2] = -2 * np.tile([0, 1, 2], 20) + rng.standard_normal(60)  # points down
    data = tr.QueryDataset.from_arrays(csr_array(X) if sparse else X, np.tile([0, 1, 2], 20), np.repeat(range(10), 6))
    means = {
        (column, sign): tr.evaluate(sign * X[:, column], data, [name]).mean[name]
        for column in range(5)
        for sign in (1, -1)
    }
    found = baselines.best_feature(data, name)
    assert found == max(means, key=means.__getitem__) == (2, -1)
    np.testing.assert_array_equal(baselines.feature_scores(data, *found), -X[:, 2])


def test_wide_data_are_looked_at_where_there_is_something(monkeypatch):
    monkeypatch.setattr(baselines, "MOST_FEATURES", 2)
    X = np.zeros((4, 6))
    X[:, 4] = [1, 2, 3, 4]
    X[:3, 1] = [3, 2, 1]
    X[0, 5] = 9  # perfect, but in one row only
    for matrix in (X, csr_array(X)):
        assert baselines.best_feature(tr.QueryDataset.from_arrays(matrix, [1, 0, 0, 0])) == (1, 1)


def test_the_order_as_given_is_the_order_as_given():
    data = tr.QueryDataset.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], [1, 1, 2, 2])
    assert tr.measure("mrr").per_query(baselines.given_order(data), data.y, data.ptr).tolist() == [0.5, 0.5]
