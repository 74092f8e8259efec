from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import toprank as tr
from toprank.data import blocks
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.bundle import Bundle, simplex_qp
from toprank.solvers.deadline import deadline, out_of_time


def queries(seed=0, n_queries=30, n_features=8, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * 12, n_features))
    s = X @ rng.normal(size=n_features) + noise * rng.normal(size=len(X))
    return tr.QueryDataset.from_arrays(X, np.digitize(s, [0.5, 2.0]), np.repeat(np.arange(n_queries), 12))


HINGE = tr.surrogates.PairwiseHinge(normalize=True)


@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e4]))
def test_simplex_qp_meets_the_optimality_conditions(n, rank, seed, scale):
    """λ is optimal exactly when every coordinate with weight has the largest slope (c − Hλ)."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    H, c = scale * A @ A.T, scale * rng.normal(size=n)
    weights = simplex_qp(H, c)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    slope = c - H @ weights
    assert float(weights @ (slope.max() - slope)) <= 1e-6 * scale


def test_simplex_qp_agrees_with_a_general_solver():
    rng = np.random.default_rng(4)
    A, c = rng.normal(size=(6, 3)), rng.normal(size=6)
    H = A @ A.T
    reference = minimize(
        lambda x: 0.5 * x @ H @ x - c @ x,
        np.full(6, 1 / 6),
        jac=lambda x: H @ x - c,
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    weights = simplex_qp(H, c)
    assert 0.5 * weights @ H @ weights - c @ weights == pytest.approx(reference.fun, abs=1e-8)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_the_gap_is_honest(alpha):
    objective = Objective(queries(), HINGE, L2(alpha))
    solution = Bundle(tol=1e-4).minimize(objective)
    again = solution.check(objective)
    assert solution.converged
    assert again.gap == pytest.approx(solution.gap, abs=1e-9)
    assert again.value == pytest.approx(solution.value, rel=1e-12)
    assert 0 <= solution.gap <= 1e-4 * solution.value
    # Nothing that another method finds lies below the bound it proves.
    better = Bundle(tol=1e-7, max_iter=20_000).minimize(objective)
    assert solution.value - solution.gap <= better.value <= solution.value + 1e-12
    assert (np.diff(solution.trace["value"]) <= 0).all()


def test_a_smooth_problem_has_the_minimum_that_lbfgs_finds():
    from toprank.solvers.lbfgs import LBFGS

    objective = Objective(queries(), tr.surrogates.PairwiseHinge("squared_hinge", normalize=True), L2(0.1))
    ours, theirs = Bundle(tol=1e-6).minimize(objective), LBFGS(tol=1e-9).minimize(objective)
    assert ours.value == pytest.approx(theirs.value, rel=2e-6)


def test_a_path_finds_the_minima_of_single_runs_in_fewer_steps():
    objective = Objective(queries(seed=2), HINGE)
    alphas = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
    path = Bundle(tol=1e-5).path(objective, alphas)
    alone = [Bundle(tol=1e-5).minimize(replace(objective, penalty=L2(alpha))) for alpha in alphas]
    for warm, cold in zip(path, alone, strict=True):
        assert warm.value == pytest.approx(cold.value, rel=2e-5)
        assert warm.converged
    assert sum(s.n_iter for s in path) < sum(s.n_iter for s in alone)
    last = replace(objective, penalty=L2(alphas[-1]))
    assert path[-1].check(last).gap == pytest.approx(path[-1].gap, abs=1e-9)


def test_threads_give_the_same_bits(monkeypatch):
    for size in ("BLOCK_VALUES", "RUN_VALUES"):  # many blocks, in many runs
        monkeypatch.setattr(blocks, size, 256)
    data = queries()
    with ThreadPoolExecutor(4) as pool:
        threads = Bundle().minimize(Objective(data, HINGE, L2(0.01), executor=pool))
    serial = Bundle().minimize(Objective(data, HINGE, L2(0.01)))
    assert threads.w.tobytes() == serial.w.tobytes()


def test_it_stops_at_the_limit_and_says_so():
    solution = Bundle(tol=1e-9, max_iter=3).minimize(Objective(queries(), HINGE, L2(1e-4)))
    assert not solution.converged
    assert "3 steps" in solution.message
    assert solution.gap > 0


def test_it_refuses_what_it_cannot_minimise():
    data = queries()
    with pytest.raises(tr.InputError, match="alpha"):
        Bundle().minimize(Objective(data, HINGE))
    with pytest.raises(tr.InputError, match="convex"):
        Bundle().minimize(Objective(data, tr.surrogates.TypeOne(), L2(1.0)))


AWKWARD = [1e5, 1e-5, np.array([1e5, 1.0, 1e-3, 1e4, 1.0, 1.0, 10.0, 1e-4])]


@pytest.mark.parametrize("scale", AWKWARD, ids=["large", "small", "mixed"])
@pytest.mark.parametrize("alpha", [1e-8, 0.1])
@pytest.mark.parametrize("loss", [HINGE, tr.surrogates.StructuralHinge()], ids=["pairs", "rankings"])
def test_awkward_features_and_weak_penalties_are_solved(loss, alpha, scale):
    data = queries()
    solution = Bundle(max_iter=400).minimize(Objective(data.with_X(data.X * scale), loss, L2(alpha)))
    if alpha == 1e-8 and np.max(scale) == 1e5:  # more than doubles can tell: it ends and does not say that it is done
        assert solution.converged == (solution.gap <= 1e-4 * solution.value)
        assert solution.converged or solution.message
    else:
        assert solution.converged


def test_a_deadline_ends_it_with_an_honest_gap():
    objective = Objective(queries(), HINGE, L2(1e-4))
    with deadline(0.0):
        solution = Bundle().minimize(objective)
    assert not solution.converged
    assert solution.message == "the time that was given ran out"
    best = Bundle(tol=1e-7).minimize(objective).value
    assert solution.gap >= solution.value - best > 0


def test_the_time_of_an_outer_deadline_is_not_prolonged():
    with deadline(0.0), deadline(1000.0):
        assert out_of_time()
    assert not out_of_time()
