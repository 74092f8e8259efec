"""Dense and sparse rows give kernels the same products."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from toprank.core.jit import kernel
from toprank.core.rows import add_chosen_rows, add_rows, rows_of, score_list, score_rows


@kernel
def products(rows, first, last, w, g, s, out):
    score_list(rows, first, last, w, s)
    add_rows(rows, first, g, -2.0, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.asfortranarray])
def test_products_are_those_of_numpy(form, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(9, 5)) * (rng.random((9, 5)) < 0.6)).astype(dtype)
    w, g, s, out = rng.normal(size=5), rng.normal(size=4), np.empty(4), np.ones(5)
    g[1] = 0.0
    products(rows_of(form(X)), 3, 7, w, g, s, out)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(s, exact[3:7] @ w, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(out, 1.0 - 2.0 * exact[3:7].T @ g, rtol=1e-12, atol=1e-14)


@kernel
def products_of_chosen(rows, chosen, w, g, s, out):
    score_rows(rows, chosen, w, s)
    add_chosen_rows(rows, chosen, g, -2.0, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.asfortranarray])
def test_products_of_chosen_rows_are_those_of_numpy(form, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(9, 5)) * (rng.random((9, 5)) < 0.6)).astype(dtype)
    chosen = np.array([8, 0, 3, 3])
    w, g, s, out = rng.normal(size=5), rng.normal(size=4), np.empty(4), np.ones(5)
    g[1] = 0.0
    products_of_chosen(rows_of(form(X)), chosen, w, g, s, out)
    exact = X.astype(np.float64)[chosen]
    np.testing.assert_allclose(s, exact @ w, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(out, 1.0 - 2.0 * exact.T @ g, rtol=1e-12, atol=1e-14)
