import numpy as np
import pytest
from scipy.optimize import minimize

import toprank as tr
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.ball import BallLBFGS, _model_minimiser, project
from toprank.solvers.lbfgs import LBFGS


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=60, n_features=8, random_state=1)


@pytest.mark.parametrize("radius", [0.05, 0.5, 2.0, 1e3])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_optimum_in_the_ball_against_scipy(data, radius, alpha):
    objective = Objective(data, tr.surrogates.ListNet(), L2(alpha))
    solution = BallLBFGS(radius, tol=1e-8).minimize(objective)
    assert np.linalg.norm(solution.w) <= radius * (1 + 1e-12)
    peer = minimize(
        objective.value_and_grad,
        np.zeros(8),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2 * w},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert solution.value <= peer.fun + 1e-9
    assert solution.value - peer.fun <= solution.gap + 1e-9
    assert solution.gap < 1e-4


def test_a_large_ball_is_no_ball(data):
    objective = Objective(data, tr.surrogates.ListMLE(), L2(0.1))
    free = LBFGS(tol=1e-8).minimize(objective)
    inside = BallLBFGS(100.0, tol=1e-8).minimize(objective)
    np.testing.assert_allclose(inside.w, free.w, atol=1e-6)
    assert inside.converged


def test_solution_rechecks_itself(data):
    objective = Objective(data, tr.surrogates.ListNet())
    solution = BallLBFGS(0.5).minimize(objective)
    again = solution.check(objective)
    assert (again.value, again.gap, again.grad_norm) == (solution.value, solution.gap, solution.grad_norm)


def test_the_gap_bounds_every_point_of_the_ball(data):
    objective = Objective(data, tr.surrogates.ListNet())
    rough = BallLBFGS(1.0, max_iter=2).minimize(objective)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = project(rng.standard_normal(8), 1.0)
        assert objective.value_and_grad(other)[0] >= rough.value - rough.gap


def test_gap_is_unknown_where_the_loss_is_not_convex(data):
    assert BallLBFGS(1.0, max_iter=3).minimize(Objective(data, tr.surrogates.RankCosine())).gap == np.inf


def test_the_model_s_minimiser_is_stationary():
    """Against a projected gradient descent on the explicit BFGS matrix."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 6))
    A = A @ A.T + np.eye(6)
    steps = [rng.standard_normal(6) for _ in range(3)]
    changes = [A @ step for step in steps]
    w, grad = project(rng.standard_normal(6), 1.0), rng.standard_normal(6)
    B = np.eye(6) * (changes[-1] @ changes[-1]) / (changes[-1] @ steps[-1])
    for s, y in zip(steps, changes, strict=True):
        B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (y @ s)
    for radius in (0.2, 1.0, 50.0):
        v = _model_minimiser(project(w, radius), grad, steps, changes, radius)
        slope = grad + B @ (v - project(w, radius))
        np.testing.assert_allclose(v, project(v - 0.01 * slope, radius), atol=1e-9)


def test_a_watcher_can_stop_it(data):
    seen = []
    solver = BallLBFGS(1.0, watch=lambda i, w, value: seen.append((i, value)) or i == 2)
    solution = solver.minimize(Objective(data, tr.surrogates.ListNet()))
    assert solution.n_iter == len(seen) == 2
    assert "validation" in solution.message
