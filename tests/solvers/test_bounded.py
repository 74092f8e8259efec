"""L-BFGS with bounds: optimality conditions, agreement with L-BFGS, brute force, checks that fail."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import toprank as tr
from tests.oracles import listwise, penalties
from toprank.objective import Objective
from toprank.penalties import L1, L2, penalties_of
from toprank.solvers.bounded import BoundedLBFGS, Signs
from toprank.solvers.lbfgs import LBFGS

LOSSES = [tr.surrogates.ListNet(), tr.surrogates.ListMLE(ties="fixed"), tr.surrogates.RankCosine()]


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=80, n_features=12, random_state=1)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_the_subgradient_conditions_of_l1_hold(data, loss, share):
    plain = Objective(data, loss)
    units = plain.spreads()
    alpha = share * np.abs(plain.loss_and_grad(np.zeros(12))[1] / units).max()
    solution = BoundedLBFGS(tol=1e-6).minimize(plain.with_penalty(L1(alpha)))
    slope = plain.loss_and_grad(solution.w)[1] / units  # that of the loss, in units of the penalty
    zero = solution.w == 0
    assert not zero.all()
    assert share == 0.01 or zero.any()
    assert np.abs(slope[zero]).max(initial=0.0) <= alpha * 1.01
    np.testing.assert_allclose(slope[~zero], -alpha * np.sign(solution.w[~zero]), atol=0.02 * alpha)


def test_above_the_largest_slope_all_weights_are_exactly_zero(data):
    plain = Objective(data, tr.surrogates.ListNet())
    largest = np.abs(plain.loss_and_grad(np.zeros(12))[1] / plain.spreads()).max()
    assert not BoundedLBFGS().minimize(plain.with_penalty(L1(1.001 * largest))).w.any()
    assert BoundedLBFGS().minimize(plain.with_penalty(L1(0.98 * largest))).w.any()


def test_l1_does_not_know_the_units_of_a_feature(data):
    scale = np.exp(np.random.default_rng(0).normal(scale=4, size=12))
    rescaled = data.with_X(data.X * scale)
    one, other = (
        BoundedLBFGS(tol=1e-7).minimize(Objective(part, tr.surrogates.ListNet(), L1(0.02))) for part in (data, rescaled)
    )
    assert np.array_equal(one.w == 0, other.w == 0)
    np.testing.assert_allclose(other.w * scale, one.w, rtol=1e-3, atol=1e-5)
    plain = BoundedLBFGS(tol=1e-7).minimize(Objective(rescaled, tr.surrogates.ListNet(), L1(0.02, units=(1.0,) * 12)))
    assert not np.array_equal(plain.w == 0, one.w == 0)  # units of 1 punish a feature for its own


def test_without_signs_that_bind_it_is_the_minimum_of_l2(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.1))
    free = LBFGS(tol=1e-8).minimize(objective)
    for sign in (np.zeros(12), np.sign(free.w)):
        bound = BoundedLBFGS(Signs.of(sign.astype(int)), tol=1e-8).minimize(objective)
        np.testing.assert_allclose(bound.w, free.w, atol=1e-6)
        assert bound.converged
        assert bound.gap < 1e-10


def test_the_gap_bounds_what_other_allowed_weights_reach(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.1))
    sign = -np.sign(LBFGS().minimize(objective).w).astype(int)
    sign[6:] *= -1
    loose, tight = (BoundedLBFGS(Signs.of(sign), tol=tol).minimize(objective) for tol in (0.3, 1e-8))
    assert (sign * loose.w >= 0).all()
    assert (sign * tight.w >= 0).all()
    assert (tight.w == 0).any()
    assert 0 < loose.value - tight.value <= loose.gap < np.inf
    assert tight.gap < 1e-9  # although the gradient of weights at their bound is not 0
    assert np.abs(objective.value_and_grad(tight.w)[1]).max() > 1e-2


def test_a_solution_rechecks_itself_and_finds_weights_that_are_none(data):
    sign = np.array([1, -1] * 6)
    for penalty in (L1(0.01), L2(0.1)):
        objective = Objective(data, tr.surrogates.ListNet(), penalty)
        solution = BoundedLBFGS(Signs.of(sign), tol=1e-6).minimize(objective)
        again = solution.check(objective)
        assert (again.value, again.grad_norm, again.gap) == (solution.value, solution.grad_norm, solution.gap)
        assert again.grad_norm < 1e-5
        wrong = replace(solution, w=-solution.w).check(objective)
        assert wrong.grad_norm > 0.1
        assert wrong.gap == np.inf
        assert replace(solution, w=0.9 * solution.w).check(objective).grad_norm > 1e-3


@pytest.mark.parametrize("signs", [(0, 0), (1, 1), (-1, 0), (0, -1)])
@pytest.mark.parametrize("kind", [L1, L2])
def test_tiny_problems_have_the_minimum_that_a_grid_finds(kind, signs):
    X = [[1.0, 9.0], [0.2, 2.0], [0.7, 4.0], [0.1, 0.0], [0.9, 1.0], [0.4, 8.0], [0.3, 3.0]]
    y, qid, alpha = [2, 0, 1, 0, 1, 2, 1], [1, 1, 1, 2, 2, 3, 3], 0.05
    units = penalties.spreads(X, y, qid)

    def value(w):
        loss = penalties.mean_loss(listwise.listnet_top_one, X, y, qid, w)
        if kind is L2:
            return loss + alpha / 2 * sum(x * x for x in w)
        return loss + alpha * sum(u * abs(x) for u, x in zip(units, w, strict=True))

    w, best = penalties.lowest(value, signs)
    objective = Objective(tr.QueryDataset.from_arrays(X, y, qid), tr.surrogates.ListNet(), kind(alpha))
    solution = BoundedLBFGS(Signs.of(np.array(signs)), tol=1e-8).minimize(objective)
    assert solution.value == pytest.approx(value(solution.w), rel=1e-12)
    assert solution.value == pytest.approx(best, rel=1e-7)
    np.testing.assert_allclose(solution.w, w, atol=2e-3)


def test_slopes_and_weights_are_two_forms_of_one_curve():
    signs = Signs(np.array([1, 0, 1, 1]), np.array([-1, -1, 0, 2]), np.array([1.0, 1.0, 2.0, 2.0]))
    rng = np.random.default_rng(0)
    slopes, grad = rng.normal(size=4), rng.normal(size=4)
    np.testing.assert_allclose(signs.slopes(signs.weights(slopes)), slopes)
    assert signs.weights(slopes) @ grad == pytest.approx(slopes @ signs.gradient(grad))
    matrix = np.array([signs.weights(row) for row in np.eye(4)]).T  # weights = matrix @ slopes
    spread = rng.normal(size=(9, 4))
    spread = spread.T @ spread
    np.testing.assert_allclose(signs.variances(np.triu(spread)), np.diag(matrix.T @ spread @ matrix))


def test_threads_and_serial_give_the_same_bits(data):
    signs = Signs.of(np.array([1, -1, 0] * 4))
    serial = BoundedLBFGS(signs).minimize(Objective(data, tr.surrogates.ListNet(), L1(0.01)))
    with ThreadPoolExecutor(2) as executor:
        threads = BoundedLBFGS(signs).minimize(Objective(data, tr.surrogates.ListNet(), L1(0.01), executor=executor))
    assert serial.w.tobytes() == threads.w.tobytes()


def test_a_path_starts_each_minimum_at_the_one_before(data):
    objective = Objective(data, tr.surrogates.ListNet(), L1())
    alphas = [0.1, 0.03, 0.01]
    path = BoundedLBFGS(tol=1e-5).path(objective, alphas)
    for alpha, solution in zip(alphas, path, strict=True):
        alone = BoundedLBFGS(tol=1e-5).minimize(objective.with_penalty(L1(alpha)))
        assert solution.value == pytest.approx(alone.value, rel=1e-7)
    used = [np.count_nonzero(solution.w) for solution in path]
    assert used == sorted(used)


def test_a_column_that_never_varies_has_no_weight():
    data = tr.datasets.make_graded(n_queries=30, n_features=3, random_state=0)
    X = np.column_stack([data.X, np.full(data.n_docs, 0.1)])
    solution = BoundedLBFGS().minimize(Objective(data.with_X(X), tr.surrogates.ListNet(), L1(1e-3)))
    assert solution.w[3] == 0
    assert solution.w[:3].any()


@pytest.mark.parametrize("solver", [LBFGS(), tr.solvers.Newton(), tr.solvers.Bundle(), tr.solvers.MiniBatch()])
def test_solvers_that_know_no_corners_refuse_l1(data, solver):
    objective = Objective(data, tr.surrogates.PairwiseHinge("squared_hinge"), L1(0.1))
    with pytest.raises(tr.InputError, match=f"^{type(solver).__name__} knows no L1 penalty"):
        solver.minimize(objective)


@pytest.mark.parametrize(
    ("penalty", "told"),
    [
        ("L3:1", "penalty must be toprank.L1"),
        ("L1", "penalty must be toprank.L1"),
        ("L1:-1", "alpha must be a number not below 0"),
        (0.1, "penalty must be toprank.L1"),
        ([], "penalty is an empty list"),
        ([L1(1.0), L2(1.0)], "they may differ in alpha alone"),
    ],
)
def test_what_is_no_penalty_is_refused(penalty, told):
    with pytest.raises(tr.InputError, match=told):
        penalties_of(penalty)


def test_units_that_do_not_fit_are_refused(data):
    with pytest.raises(tr.InputError, match="L1 has 2 units, and there are 12 columns"):
        BoundedLBFGS().minimize(Objective(data, tr.surrogates.ListNet(), L1(0.1, units=(1.0, 1.0))))
