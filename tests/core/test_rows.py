"""X w and Xᵀ g: those of numpy for dense and sparse rows, and the same bits beside any other rows."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from toprank.data import linear


def matrix(rows, columns, dtype, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(dtype)
    X[rng.random(X.shape) > share] = 0
    return X, rng.normal(size=columns), rng.normal(size=rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 21, 136])
def test_products_are_those_of_numpy_and_a_row_is_summed_by_itself(columns, dtype):
    X, w, g = matrix(23, columns, dtype)
    scores, wide, sparse = linear.scores(X, w), X.astype(float), csr_array(X)
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(scores, wide @ w, **close)
    np.testing.assert_allclose(linear.scores(sparse, w), wide @ w, **close)
    np.testing.assert_allclose(linear.adjoint(X, g), wide.T @ g, **close)
    np.testing.assert_allclose(linear.adjoint(sparse, g), wide.T @ g, **close)
    for rows in (slice(1, 2), slice(3, 9), slice(5, 23)):
        assert linear.scores(X[rows].copy(), w).tolist() == scores[rows].tolist()
    np.testing.assert_allclose(linear.square_norms(X), (X.astype(float) ** 2).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(linear.square_norms(sparse), (X.astype(float) ** 2).sum(axis=1), rtol=1e-13)


def test_weights_may_be_a_view_of_every_second_number():
    X, w, _ = matrix(5, 7, np.float64)
    between = np.stack([w, np.full(7, 1e9)], axis=1)[:, 0]
    for rows in (X, csr_array(X)):
        assert linear.scores(rows, between).tolist() == linear.scores(rows, w).tolist()


def test_a_column_and_coefficients_may_be_views_of_wider_arrays():
    wide = np.column_stack([np.arange(1.0, 6.0), np.full(5, 1e9)])
    column, g, ptr, chosen = wide[:, :1], wide[:, 0], np.array([0, 2, 5]), np.array([1])
    assert linear.scores(column, np.ones(1)).tolist() == [1, 2, 3, 4, 5]
    assert linear.adjoint(column, g).tolist() == [55]
    assert linear.adjoint_of(column, g, ptr, chosen).tolist() == [3 * 1 + 4 * 2 + 5 * 3]
    assert linear.scores_of(column, wide[1:2, 0], ptr, chosen).tolist() == [6, 8, 10]


PROGRAM = """
import numpy as np, toprank as tr
from toprank.objective import Objective
data = tr.datasets.make_graded(n_queries=20, n_features=19, random_state=0)
w = np.random.default_rng(1).normal(size=19)
for loss in LOSSES:
    value, grad = Objective(data, loss).value_and_grad(w)
    print(value, *grad)
"""


def run_on(cpu, cache, losses):
    program = PROGRAM.replace("LOSSES", losses)
    env = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    ).stdout
    return [float(number) for number in printed.split()]


@pytest.mark.slow
def test_two_types_of_processor_agree_to_rounding(tmp_path):
    """Compiled anew for a processor without wide registers and without fused products."""
    losses = "(tr.surrogates.ListNet(), tr.surrogates.Slam('ndcg'), tr.surrogates.PairwiseHinge())"
    plain, wide = (run_on(cpu, tmp_path / cpu, losses) for cpu in ("x86-64", "haswell"))
    np.testing.assert_allclose(plain, wide, rtol=1e-9, atol=1e-12)
