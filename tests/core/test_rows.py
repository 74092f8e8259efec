"""X w and Xᵀ g: the same bits for dense and sparse rows, beside any other rows, and on every type of processor."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from toprank.data import linear
from toprank.solvers.stream import list_sizes


def matrix(rows, columns, dtype, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(dtype)
    X[rng.random(X.shape) > share] = 0
    return X, rng.normal(size=columns), rng.normal(size=rows)


def in_lanes(x, w, lanes=8):
    """The sum as it is written down: lanes side by side, then in pairs."""
    parts = [0.0] * lanes
    for j in range(len(x)):
        parts[j % lanes] += float(x[j]) * float(w[j])
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [parts[i] + parts[i + half] for i in range(half)]
    return parts[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 21, 136])
def test_sums_have_the_order_that_is_written_down(columns, dtype):
    X, w, g = matrix(23, columns, dtype)
    scores, adjoint = linear.scores(X, w), linear.adjoint(X, g)
    assert scores.tolist() == [in_lanes(x, w) for x in X]
    total = np.zeros(columns)
    for x, c in zip(X, g, strict=True):
        total = total + c * x.astype(float)
    assert adjoint.tolist() == total.tolist()
    sparse = csr_array(X)
    assert linear.scores(sparse, w).tobytes() == (scores + 0.0).tobytes()
    assert linear.adjoint(sparse, g).tolist() == adjoint.tolist()
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 7, 8, 21, 136])
def test_the_size_of_a_list_is_summed_in_that_order_too(columns, dtype):
    X, mean = matrix(9, columns, dtype, share=1.0)[0].astype(float), np.zeros(columns)
    for x in X:
        mean = mean + x
    away = X - mean / 9
    assert list_sizes(X.astype(dtype), np.array([0, 9])).tolist() == [1 / math.sqrt(max(in_lanes(x, x) for x in away))]


PROGRAM = """
import hashlib, numpy as np, toprank as tr
from toprank.objective import Objective
data = tr.datasets.make_graded(n_queries=20, n_features=19, random_state=0)
w = np.random.default_rng(1).normal(size=19)
out = b""
for loss in LOSSES:
    value, grad = Objective(data, loss, 1e-3).value_and_grad(w)
    out += np.float64(value).tobytes() + grad.tobytes()
print(hashlib.sha256(out).hexdigest())
"""


def run_on(cpu, cache, losses):
    program = PROGRAM.replace("LOSSES", losses)
    env = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_two_types_of_processor_give_the_same_bits(tmp_path):
    """Compiled anew for a processor without wide registers and without fused products."""
    losses = "(tr.surrogates.ListNet(), tr.surrogates.Slam('ndcg'), tr.surrogates.PairwiseHinge())"
    plain, wide = (run_on(cpu, tmp_path / cpu, losses) for cpu in ("x86-64", "haswell"))
    assert plain == wide
