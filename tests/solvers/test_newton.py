from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import toprank as tr
from tests.solvers.test_bundle import queries
from toprank.data import blocks
from toprank.objective import Objective
from toprank.solvers.lbfgs import LBFGS
from toprank.solvers.newton import Newton, conjugate_gradients

SQUARED = tr.surrogates.PairwiseHinge("squared_hinge", normalize=True)


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
def test_it_finds_the_minimum(alpha):
    objective = Objective(queries(), SQUARED, alpha=alpha)
    solution = Newton(tol=1e-10).minimize(objective)
    reference = LBFGS(tol=1e-9).minimize(objective)
    assert solution.converged
    assert solution.value <= reference.value * (1 + 1e-9)
    assert solution.check(objective).gap == pytest.approx(solution.gap, rel=1e-6, abs=1e-15)
    assert solution.value - solution.gap <= reference.value * (1 + 1e-14)
    assert (np.diff(solution.trace["value"]) < 0).all()


def test_hessian_is_the_derivative_of_the_gradient():
    objective = Objective(queries(), SQUARED, alpha=0.1)
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=8), rng.normal(size=8)
    product = objective.hessian(w)(v)
    up, down = (objective.value_and_grad(w + h * v)[1] for h in (1e-6, -1e-6))
    np.testing.assert_allclose((up - down) / 2e-6, product, rtol=1e-3, atol=1e-4)


def test_a_path_finds_the_minima_of_single_runs():
    objective = Objective(queries(), SQUARED)
    for solution, alpha in zip(Newton().path(objective, [1.0, 0.1, 0.01]), [1.0, 0.1, 0.01], strict=True):
        alone = Newton().minimize(Objective(queries(), SQUARED, alpha=alpha))
        assert solution.value == pytest.approx(alone.value, rel=1e-5)


def test_threads_give_the_same_bits(monkeypatch):
    for size in ("BLOCK_VALUES", "RUN_VALUES"):  # many blocks, in many runs
        monkeypatch.setattr(blocks, size, 256)
    with ThreadPoolExecutor(4) as pool:
        threads = Newton().minimize(Objective(queries(), SQUARED, alpha=0.01, executor=pool))
    assert threads.w.tobytes() == Newton().minimize(Objective(queries(), SQUARED, alpha=0.01)).w.tobytes()


def test_conjugate_gradients_solve_a_linear_system():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 9))
    H, g = A.T @ A + np.eye(9), rng.normal(size=9)
    p, used = conjugate_gradients(lambda v: H @ v, g, 1e-12, 100)
    np.testing.assert_allclose(p, -np.linalg.solve(H, g), atol=1e-9)
    assert used <= 10


def test_a_loss_without_second_derivative_is_refused():
    with pytest.raises(tr.InputError, match="second derivative"):
        Newton().minimize(Objective(queries(), tr.surrogates.ListNet(), alpha=1.0))
