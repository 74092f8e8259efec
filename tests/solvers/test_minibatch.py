import numpy as np
import pytest
from scipy import sparse

import toprank as tr
from toprank.data import linear
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.lbfgs import LBFGS
from toprank.solvers.minibatch import MiniBatch


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=80, n_features=8, blank=0.1, random_state=1)


def test_it_comes_near_the_optimum(data):
    objective = Objective(data, tr.surrogates.ListNet(), L2(0.1))
    best = LBFGS().minimize(objective).value
    start = objective.value_and_grad(np.zeros(8))[0]
    few, many = (MiniBatch(epochs=epochs).minimize(objective).value for epochs in (1, 60))
    assert best <= many < few < start
    assert many - best < 0.05 * (start - best)


def test_batches_are_an_unbiased_gradient(data):
    """The batches of an epoch at a fixed w, weighted by their size, add up to the whole gradient."""
    weight = np.random.default_rng(0).uniform(0.5, 2, data.n_queries)
    heavy = tr.QueryDataset.from_arrays(data.X, data.y, data.qid, query_weight=weight)
    objective, w = Objective(heavy, tr.surrogates.ListNet()), np.full(8, 0.1)
    solver, informative = MiniBatch(batch_size=7), int(heavy.informative.sum())
    parts = list(solver._gradients(objective, w, np.random.default_rng(0)))
    sizes = [7] * (informative // 7) + ([informative % 7] if informative % 7 else [])
    total = sum(size * part for size, part in zip(sizes, parts, strict=True)) / informative
    np.testing.assert_allclose(total, objective.value_and_grad(w)[1], atol=1e-12)


def test_same_seed_same_bits_and_other_seed_other_path(data):
    objective = Objective(data, tr.surrogates.ListMLE(ties="sampled"))
    one, two, other = (MiniBatch(epochs=2, random_state=seed).minimize(objective).w for seed in (5, 5, 6))
    assert one.tobytes() == two.tobytes()
    assert one.tobytes() != other.tobytes()


def test_weights_stay_in_the_ball(data):
    for average in (True, False):
        solution = MiniBatch(epochs=3, radius=0.2, average=average).minimize(Objective(data, tr.surrogates.ListNet()))
        assert np.linalg.norm(solution.w) <= 0.2 * (1 + 1e-12)


def test_dense_and_sparse_agree(data):
    thin = data.with_X(sparse.csr_array(data.X))
    dense, same = (MiniBatch(epochs=2).minimize(Objective(part, tr.surrogates.ListNet())).w for part in (data, thin))
    np.testing.assert_allclose(dense, same, rtol=1e-9, atol=1e-12)


def test_products_with_chosen_queries(data):
    rng = np.random.default_rng(0)
    chosen, w = rng.permutation(data.n_queries)[:9], rng.standard_normal(8)
    part = data[chosen]
    slopes = rng.standard_normal(part.n_docs)
    for X in (data.X, data.X.astype(np.float32), sparse.csr_array(data.X)):
        np.testing.assert_allclose(linear.scores_of(X, w, data.ptr, chosen), part.X @ w, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            linear.adjoint_of(X, slopes, data.ptr, chosen), part.X.T @ slopes, rtol=1e-4, atol=1e-4
        )
