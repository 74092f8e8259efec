"""Every learner ends when its time is up, with weights that can be used; none calls that converged."""

import numpy as np
import pytest

import toprank as tr
from toprank import rankers
from toprank.solvers.deadline import OUT_OF_TIME, deadline

ALL = [getattr(rankers, name) for name in rankers.__all__]
LONG = {"rounds": 50, "epochs": 50, "max_iter": 50, "C": 100.0, "tol": 1e-12, "patience": None, "alpha": 1e-6}


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=12, n_docs=(5, 8), n_features=4, n_grades=2, noise=2.0, random_state=0)


def made(kind, **options):
    return kind(**{name: value for name, value in (LONG | options).items() if name in kind._get_param_names()})


def steps(ranker):
    found = [vars(ranker).get(name) for name in ("n_epochs_", "n_iter_")]
    return next(count for count in found if count is not None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
def test_no_time_is_one_step_at_most(kind, data):
    with deadline(0.0):
        ranker = made(kind).fit_queries(data)
    assert np.isfinite(ranker.predict(data)).all()
    assert steps(ranker) <= 1
    if "solution_" in vars(ranker):
        assert not ranker.solution_.converged
        assert OUT_OF_TIME in ranker.solution_.message or "mean of" in ranker.solution_.message
    assert steps(made(kind).fit_queries(data)) > 1  # with time there is more to do


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["lbfgs", "newton", "bundle", "minibatch"])
@pytest.mark.parametrize("radius", [None, 0.5])
def test_every_solver_of_a_linear_ranker_ends(solver, radius, data):
    if solver in ("newton", "bundle") and radius is not None:
        return
    loss = tr.surrogates.PairwiseHinge("squared_hinge", normalize=True)
    bounded = {} if solver == "minibatch" else {"max_iter": 50, "tol": 1e-12}
    ranker = tr.LinearRanker(loss, solver=solver, radius=radius, alpha=1e-6, **bounded)
    with deadline(0.0):
        ranker.fit_queries(data)
    assert ranker.n_iter_ <= 1
    assert ranker.solution_.message == OUT_OF_TIME
    assert not ranker.solution_.converged


@pytest.mark.filterwarnings("ignore")
def test_bounds_end_at_the_weights_where_they_began(data):
    ranker = tr.ListNet(signs={1: "+"}, penalty=tr.L1(1e-3), max_iter=2, warm_start=True).fit_queries(data)
    before = ranker.coef_
    assert before.any()
    with deadline(0.0):
        ranker.fit_queries(data)
    assert ranker.n_iter_ == 0
    assert ranker.solution_.message == OUT_OF_TIME
    np.testing.assert_allclose(ranker.coef_, before, rtol=1e-12)


def test_a_fit_that_ran_out_of_time_is_told(data):
    with deadline(0.0), pytest.warns(UserWarning, match="ListNet did not converge: the time that was given ran out"):
        tr.ListNet().fit_queries(data)


def test_epochs_of_a_minibatch_are_not_called_converged(data):
    solution = tr.ListNet(solver=tr.solvers.MiniBatch(epochs=2)).fit_queries(data).solution_
    assert not solution.converged
    assert solution.message == "all 2 epochs were run"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [tr.ListNet, tr.ListMLE, tr.RankCosine, tr.RankSVM, tr.SVMMap, tr.LinearRanker])
@pytest.mark.parametrize("tol", [1e-1, 1e-4, 1e-300])
def test_the_message_and_the_flag_agree(kind, tol, data):
    """No message says that it is done where the flag says it is not, and the other way round."""
    solution = kind(tol=tol, max_iter=20).fit_queries(data).solution_
    assert solution.converged == (solution.message == "")
    assert "CONVERGE" not in solution.message
