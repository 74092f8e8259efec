from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

import toprank as tr
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.lbfgs import LBFGS


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=80, n_features=12, random_state=1)


def test_solution_rechecks_itself(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.1))
    solution = LBFGS(tol=1e-8).minimize(objective)
    again = solution.check(objective)
    assert again.value == solution.value
    assert again.grad_norm == solution.grad_norm
    assert solution.converged
    # Strong convexity: no point is better by more than the gap.
    rng = np.random.default_rng(0)
    for step in (1e-3, 1e-1, 1.0):
        other = solution.w + step * rng.standard_normal(len(solution.w))
        assert objective.value_and_grad(other)[0] >= solution.value - solution.gap


def test_gap_is_unknown_without_a_penalty(data):
    assert LBFGS(max_iter=3).minimize(Objective(data, tr.surrogates.ListNet())).gap == np.inf


def test_objective_gradient_is_the_finite_difference(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.3))
    w = np.random.default_rng(0).standard_normal(data.n_features)
    _, grad = objective.value_and_grad(w)
    for j in range(len(w)):
        step = np.zeros(len(w))
        step[j] = 1e-6
        slope = (objective.value_and_grad(w + step)[0] - objective.value_and_grad(w - step)[0]) / 2e-6
        assert grad[j] == pytest.approx(slope, abs=1e-7)


def test_threads_and_serial_give_the_same_bits(data):
    serial = LBFGS().minimize(Objective(data, tr.surrogates.ListNet(), L2(0.1)))
    with ThreadPoolExecutor(2) as executor:
        threads = LBFGS().minimize(Objective(data, tr.surrogates.ListNet(), L2(0.1), executor=executor))
    assert serial.w.tobytes() == threads.w.tobytes()


def test_sparse_and_dense_agree(data):
    thin = data.with_X(sparse.csr_array(data.X))
    w = np.linspace(-1, 1, data.n_features)
    dense = Objective(data, tr.surrogates.ListNet()).value_and_grad(w)
    same = Objective(thin, tr.surrogates.ListNet()).value_and_grad(w)
    assert dense[0] == pytest.approx(same[0], rel=1e-12)
    np.testing.assert_allclose(dense[1], same[1], atol=1e-12)


def test_queries_of_one_grade_count_in_neither_sum(data):
    y = data.y.copy()
    y[data.ptr[0] : data.ptr[1]] = 2
    with_blank = tr.QueryDataset.from_arrays(data.X, y, data.qid)
    w = np.ones(data.n_features)
    kept = Objective(with_blank, tr.surrogates.ListNet()).value_and_grad(w)[0]
    assert kept == pytest.approx(Objective(data[1:], tr.surrogates.ListNet()).value_and_grad(w)[0], rel=1e-12)


def test_nothing_to_learn_from_is_said():
    blank = tr.QueryDataset.from_arrays(np.ones((3, 1)), [0, 0, 0])
    with pytest.raises(tr.InputError, match="no query is informative"):
        Objective(blank, tr.surrogates.ListNet()).value_and_grad(np.zeros(1))


def test_weights_are_multiplicities():
    data = tr.datasets.make_graded(n_queries=6, n_features=4, random_state=3)
    weight = [1, 2, 3, 1, 1, 2]
    repeated = data[np.repeat(np.arange(6), weight)]
    weighted = tr.QueryDataset.from_arrays(data.X, data.y, data.qid, query_weight=weight)
    w = np.ones(4)
    assert Objective(weighted, tr.surrogates.ListNet()).value_and_grad(w)[0] == pytest.approx(
        Objective(repeated, tr.surrogates.ListNet()).value_and_grad(w)[0]
    )
