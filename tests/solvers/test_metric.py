"""The units in which solvers walk: those of the features and of the loss do not matter."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

import toprank as tr
from toprank import objective as objectives
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.lbfgs import LBFGS
from toprank.solvers.metric import Metric
from toprank.solvers.newton import Newton
from toprank.surrogates.base import Surrogate

LOSSES = [tr.surrogates.ListNet(), tr.surrogates.ListMLE(), tr.surrogates.RankCosine()]


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=40, n_features=8, random_state=2)


def covariance_by_loops(data, weight):
    total = np.zeros((data.n_features, data.n_features))
    for q in range(data.n_queries):
        rows = data.X[data.ptr[q] : data.ptr[q + 1]]
        if weight[q]:
            total += weight[q] * np.cov(rows, rowvar=False, bias=True)
    return total / weight.sum()


@pytest.mark.parametrize("storage", [np.asarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_spread_is_the_covariance_inside_lists(data, storage, weighted, monkeypatch):
    weight = np.arange(data.n_queries) % 3.0 if weighted else np.ones(data.n_queries)
    ids = np.repeat(np.arange(data.n_queries), data.lengths)
    made = tr.QueryDataset.from_arrays(storage(data.X), data.y, ids, query_weight=weight if weighted else None)
    objective = Objective(made, tr.surrogates.ListNet())
    expected = covariance_by_loops(data, weight * data.informative)
    np.testing.assert_allclose(np.triu(objective.spread()), np.triu(expected), atol=1e-6)
    monkeypatch.setattr(objectives, "WHOLE", 3)
    wide = Objective(made, tr.surrogates.ListNet())
    np.testing.assert_allclose(wide.spread(), expected.diagonal(), atol=1e-6)


def test_it_is_the_curvature_of_listnet_at_zero(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.3))
    metric, step = Metric.of(objective), 1e-5
    columns = [objective.value_and_grad(step * e)[1] - objective.value_and_grad(-step * e)[1] for e in np.eye(8)]
    hessian = np.array(columns) / (2 * step)
    np.testing.assert_allclose(np.array([metric.solve(row) for row in hessian]), np.eye(8), atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_units_of_features_do_not_change_what_is_found(data, loss):
    units = np.array([1e8, 1e-6, 1.0, 1e4, 1e-3, 1.0, 10.0, 1e6])
    plain = LBFGS().minimize(Objective(data, loss))
    other = LBFGS().minimize(Objective(data.with_X(data.X * units), loss))
    assert plain.converged
    assert other.converged
    assert abs(plain.n_iter - other.n_iter) <= 5
    assert other.n_iter < 40
    np.testing.assert_allclose(data.X @ (other.w * units), data.X @ plain.w, atol=1e-3)


@dataclass(frozen=True)
class Times(Surrogate):
    """A loss times a number."""

    factor: float
    convex: ClassVar[bool] = True

    def per_query(self, scores, y, ptr):
        losses, grad = tr.surrogates.ListNet().per_query(scores, y, ptr)
        return self.factor * losses, self.factor * grad


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_the_loss_does_not_change_when_it_stops(data, factor):
    plain = LBFGS().minimize(Objective(data, tr.surrogates.ListNet(), L2(1e-2)))
    other = LBFGS().minimize(Objective(data, Times(factor), L2(1e-2 * factor)))
    assert plain.converged
    assert other.converged
    assert plain.n_iter == other.n_iter
    np.testing.assert_allclose(other.w, plain.w, rtol=1e-4)


def test_columns_that_say_nothing_or_the_same_do_no_harm(data):
    X = np.column_stack([data.X, np.full(data.n_docs, 7.0), np.zeros(data.n_docs), data.X[:, 0], 2 * data.X[:, 1]])
    made = data.with_X(X)
    for alpha in (0.0, 1e-3):
        solution = LBFGS().minimize(Objective(made, tr.surrogates.ListNet(), L2(alpha)))
        assert solution.converged
        assert np.isfinite(solution.w).all()
        assert solution.n_iter < 40
        assert np.allclose(solution.w[8:10], 0.0, atol=1e-9)
    newton = Newton().minimize(Objective(made, tr.surrogates.PairwiseHinge("squared_hinge", True), L2(1e-3)))
    assert newton.converged


def test_newton_takes_fewer_products_on_raw_features(data):
    units = np.array([1e3, 1e-3, 1.0, 1e2, 1e-2, 1.0, 10.0, 1.0])
    raw = data.with_X(data.X * units)
    loss = tr.surrogates.PairwiseHinge("squared_hinge", True)
    solution = Newton().minimize(Objective(raw, loss, L2(1e-6)))
    assert solution.converged
    assert solution.trace["products"][0] < 60


def test_a_start_near_the_minimum_ends_at_once(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.1))
    found = LBFGS().minimize(objective)
    again = LBFGS().minimize(objective, found.w)
    assert again.converged
    assert again.n_iter <= 1
