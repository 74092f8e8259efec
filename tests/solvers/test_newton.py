from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import toprank as tr
from tests.solvers.test_bundle import queries
from toprank.data import blocks
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.lbfgs import LBFGS
from toprank.solvers.newton import Newton, conjugate_gradients

SQUARED = tr.surrogates.PairwiseHinge("squared_hinge", normalize=True)


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_it_finds_the_minimum(alpha):
    objective = Objective(queries(), SQUARED, L2(alpha))
    solution = Newton(tol=1e-10).minimize(objective)
    reference = LBFGS(tol=1e-9).minimize(objective)
    assert solution.converged
    assert solution.value <= reference.value * (1 + 1e-9)
    assert solution.check(objective).gap == pytest.approx(solution.gap, rel=1e-6, abs=1e-15)
    assert solution.value - solution.gap <= reference.value * (1 + 1e-14)
    assert (np.diff(solution.trace["value"]) < 0).all()


def test_hessian_is_the_derivative_of_the_gradient():
    objective = Objective(queries(), SQUARED, L2(0.1))
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=8), rng.normal(size=8)
    product = objective.expansion(w)[2](v)
    up, down = (objective.value_and_grad(w + h * v)[1] for h in (1e-6, -1e-6))
    np.testing.assert_allclose((up - down) / 2e-6, product, rtol=1e-3, atol=1e-4)


def test_a_path_finds_the_minima_of_single_runs():
    objective = Objective(queries(), SQUARED)
    for solution, alpha in zip(Newton().path(objective, [1.0, 0.1, 0.01]), [1.0, 0.1, 0.01], strict=True):
        alone = Newton().minimize(Objective(queries(), SQUARED, L2(alpha)))
        assert solution.value == pytest.approx(alone.value, rel=1e-5)


def test_threads_give_the_same_bits(monkeypatch):
    for size in ("BLOCK_VALUES", "RUN_VALUES"):  # many blocks, in many runs
        monkeypatch.setattr(blocks, size, 256)
    with ThreadPoolExecutor(4) as pool:
        threads = Newton().minimize(Objective(queries(), SQUARED, L2(0.01), executor=pool))
    assert threads.w.tobytes() == Newton().minimize(Objective(queries(), SQUARED, L2(0.01))).w.tobytes()


def test_conjugate_gradients_solve_a_linear_system():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 9))
    H, g = A.T @ A + np.eye(9), rng.normal(size=9)
    p, used = conjugate_gradients(lambda v: H @ v, g, 1e-12, 100)
    np.testing.assert_allclose(p, -np.linalg.solve(H, g), atol=1e-9)
    assert used <= 10


def test_a_loss_without_second_derivative_is_refused():
    with pytest.raises(tr.InputError, match="second derivative"):
        Newton().minimize(Objective(queries(), tr.surrogates.ListNet(), L2(1.0)))


@pytest.fixture(scope="module")
def many():
    return tr.datasets.make_graded(n_queries=400, n_docs=8, n_features=3, noise=0.5, random_state=0)


def test_a_sample_is_the_objective_of_the_first_queries_of_each_block(many, monkeypatch):
    w = np.random.default_rng(0).normal(size=3)
    for weight in (None, np.random.default_rng(1).random(many.n_queries)):
        weighted = tr.QueryDataset.from_arrays(many.X, many.y, many.qid, query_weight=weight)
        sample = Objective(weighted, SQUARED, L2(0.1)).sample
        assert sample.sample is sample
        value, grad = sample.value_and_grad(w)
        expected = Objective(weighted[:67], SQUARED, L2(0.1)).value_and_grad(w)  # one block, one query in six
        assert value == pytest.approx(expected[0])
        np.testing.assert_allclose(grad, expected[1])
    few = Objective(many[:200], SQUARED)
    assert few.sample is few
    teaches_nothing = tr.QueryDataset.from_arrays(many.X, np.where(many.qid < 100, 0, many.y), many.qid)
    whole = Objective(teaches_nothing, SQUARED)
    assert whole.sample is whole


def test_a_start_from_a_sample_ends_at_the_same_minimum_after_fewer_looks_at_all(many, monkeypatch):
    looks = []
    expand = Objective.expansion
    monkeypatch.setattr(Objective, "expansion", lambda self, w: looks.append(self.total_weight) or expand(self, w))
    objective = Objective(many, SQUARED, L2(1e-4))
    plain = Newton(tol=1e-9).minimize(objective, np.zeros(3))
    whole = looks.count(objective.total_weight)
    begun = Newton(tol=1e-9).minimize(objective)
    assert looks.count(objective.total_weight) - whole < whole
    assert begun.converged
    assert begun.value == pytest.approx(plain.value, rel=1e-8)
