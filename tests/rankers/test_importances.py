"""Shares of the variance of scores inside lists: by their definition, for every kind of model."""

import math
from itertools import pairwise

import numpy as np
import pytest

import toprank as tr


@pytest.fixture(scope="module")
def data():
    made = tr.datasets.make_graded(n_queries=40, n_features=3, random_state=0)
    return tr.QueryDataset.from_arrays(made.X, made.y, made.qid, feature_names=["a", "b", "c"])


def covariance_inside(u, v, ptr):
    """Σ over documents of what two columns differ from the means of their lists, multiplied; in plain Python."""
    total = 0.0
    for a, b in pairwise(ptr):
        u_mean, v_mean = math.fsum(u[a:b]) / (b - a), math.fsum(v[a:b]) / (b - a)
        total += math.fsum((x - u_mean) * (y - v_mean) for x, y in zip(u[a:b], v[a:b], strict=True))
    return total


def test_shares_of_a_linear_model_are_covariances_of_its_terms(data):
    ranker = tr.ListNet().fit_queries(data)
    scores, ptr = ranker.predict(data).tolist(), data.ptr.tolist()
    found = ranker.feature_importances(data)
    for j, name in enumerate("abc"):
        term = (ranker.coef_[j] * data.X[:, j]).tolist()
        wanted = covariance_inside(term, scores, ptr) / covariance_inside(scores, scores, ptr)
        assert found[name] == pytest.approx(wanted, rel=1e-9)
    assert list(found.values()) == sorted(found.values(), reverse=True)


@pytest.mark.parametrize(
    "ranker",
    [
        tr.ListNet(prepare="+rank,+minmax,ramps:3"),
        tr.AdditiveRanker(),
        tr.RankBoost(rounds=8),
        tr.SlamPerceptron(epochs=1),
    ],
)
def test_shares_of_a_sum_over_features_add_up_to_one(data, ranker):
    assert math.fsum(ranker.fit_queries(data).feature_importances(data).values()) == pytest.approx(1.0, abs=1e-9)


def test_a_feature_that_does_not_count_has_no_share(data):
    ranker = tr.KernelSlamPerceptron(budget=100, epochs=1).fit_queries(data)
    assert max(ranker.feature_importances(data).values()) > 0
    ranker = tr.ListNet().fit_queries(data)
    ranker.function_ = type(ranker.function_)(np.array([1.0, 0.0, 2.0]))
    assert ranker.feature_importances(data)["b"] == 0.0
    ranker.function_ = type(ranker.function_)(np.zeros(3))
    assert set(ranker.feature_importances(data).values()) == {0.0}


def test_missing_cells_are_left_to_the_rule(data):
    X = np.array(data.X)
    X[::4, 1] = np.nan
    gaps = tr.QueryDataset.from_arrays(X, data.y, data.qid, feature_names=["a", "b", "c"], missing="keep")
    found = tr.ListNet(missing="median").fit_queries(gaps).feature_importances(gaps)
    assert all(math.isfinite(share) for share in found.values())
    with pytest.raises(tr.InputError, match="NaN"):
        tr.ListNet().fit_queries(data).feature_importances(gaps)
