"""Generators keep their promises: margin, shares, shapes, and the same bits for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.data.synthetic import make_graded, make_mslr_like, make_separable
from toprank.errors import InputError


def smallest_gap(scores: np.ndarray, y: np.ndarray, ptr: np.ndarray) -> float:
    """Eq. 21 read aloud: over all pairs of all queries."""
    gaps = [scores[i] - scores[j] for a, b in pairwise(ptr) for i in range(a, b) for j in range(a, b) if y[i] > y[j]]
    return min(gaps, default=np.inf)


@settings(max_examples=25)
@given(
    n_queries=st.integers(1, 6),
    n_docs=st.integers(1, 8),
    n_features=st.integers(1, 6),
    n_grades=st.integers(1, 4),
    margin=st.floats(1e-3, 10),
    seed=st.integers(0, 99),
)
def test_separable_sets_have_the_margin_they_state(n_queries, n_docs, n_features, n_grades, margin, seed) -> None:
    made = make_separable(n_queries, n_docs, n_features, n_grades, margin, random_state=seed)
    data = made.data
    assert (data.n_queries, data.n_docs, data.n_features) == (n_queries, n_queries * n_docs, n_features)
    assert set(data.y) <= set(range(n_grades))
    assert np.linalg.norm(made.ranker) == pytest.approx(1, abs=1e-12)
    seen = smallest_gap(data.X @ made.ranker, data.y, data.ptr)
    assert made.margin == pytest.approx(seen, abs=1e-9)
    assert made.margin >= margin


def test_separable_sets_follow_the_simulation() -> None:
    made = make_separable(random_state=0)
    y, X = made.data.y, made.data.X
    assert made.data.n_docs == 20_000
    counts = np.bincount(y.astype(int))
    # Uniform grades: each count is binomial with mean 4000 and deviation 57.
    assert len(counts) == 5
    assert abs(counts - 4000).max() < 5 * 57
    # Off the ranker's direction a grade is a Gaussian with unit variance (and its own mean).
    off = X - np.outer(X @ made.ranker, made.ranker)
    for grade in range(5):
        part = off[y == grade]
        assert np.trace(np.cov(part.T)) == pytest.approx(19, rel=0.05)
    means = np.array([off[y == g].mean(axis=0) for g in range(5)])
    assert np.linalg.norm(means[:, None] - means[None], axis=2)[~np.eye(5, dtype=bool)].min() > 1


def test_graded_sets_are_skewed_and_learnable() -> None:
    data = make_graded(n_queries=300, n_docs=30, n_features=12, random_state=1)
    info = data.info()
    counts = [info.grades[g] for g in range(5)]
    assert counts == sorted(counts, reverse=True)
    assert info.grades[0] / data.n_docs == pytest.approx(16 / 31, abs=0.03)
    assert (info.shortest, info.longest) == (15, 45)
    assert info.blank_queries == 0
    # Least squares on the grades finds the signal, and some feature alone carries none of it.
    X = np.column_stack([data.X, np.ones(data.n_docs)])
    fit = X @ np.linalg.lstsq(X, data.y, rcond=None)[0]
    assert np.corrcoef(fit, data.y)[0, 1] > 0.5
    alone = np.abs([np.corrcoef(column, data.y)[0, 1] for column in data.X.T])
    assert alone.min() < 0.05 < alone.max()


def test_noise_is_noise() -> None:
    def fit_quality(noise: float) -> float:
        data = make_graded(n_queries=200, n_features=6, noise=noise, random_state=0)
        X = np.column_stack([data.X, np.ones(data.n_docs)])
        return float(np.corrcoef(X @ np.linalg.lstsq(X, data.y, rcond=None)[0], data.y)[0, 1])

    assert fit_quality(0) > fit_quality(1) > fit_quality(5) > 0


@settings(max_examples=25)
@given(st.integers(1, 40), st.floats(0, 1), st.integers(2, 5), st.integers(0, 9))
def test_blank_queries_are_exactly_as_many_as_asked(n_queries: int, blank: float, n_grades: int, seed: int) -> None:
    data = make_graded(n_queries, (1, 6), 3, n_grades, blank=blank, random_state=seed)
    assert data.info().blank_queries == round(blank * n_queries)
    assert data.lengths.min() >= 1
    assert data.lengths.max() <= 6
    assert data.y.max(initial=0) < n_grades


def test_sparse_and_dtype() -> None:
    data = make_graded(density=0.2, n_features=40, dtype=np.float32, random_state=0)
    assert data.is_sparse
    assert data.X.dtype == np.float32
    assert data.info().density == pytest.approx(0.2, abs=0.01)


def test_mslr_shape_adds_up() -> None:
    data = make_mslr_like(n_queries=500, n_docs=30, n_features=20)
    assert (data.n_docs, data.n_features, data.n_queries) == (15_000, 20, 500)
    assert data.X.dtype == np.float32
    assert data.lengths.min() >= 1
    assert data.lengths.std() > 5
    shares = np.bincount(data.y.astype(int)) / data.n_docs
    assert shares == pytest.approx([0.524, 0.325, 0.134, 0.010, 0.007], abs=1e-3)
    assert (data.X[:, 2::3] == np.rint(data.X[:, 2::3])).all()
    assert (data.X[:, 1::3] > 0).all()
    assert round(6000 * 117.9175) == 707_505


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: make_separable(20, random_state=seed).data,
        lambda seed: make_graded(20, random_state=seed),
        lambda seed: make_mslr_like(20, 10, random_state=seed),
    ],
)
def test_a_seed_means_the_same_bits(make) -> None:
    one, same, other = make(5), make(5), make(6)
    assert one.X.tobytes() == same.X.tobytes()
    assert one.y.tobytes() == same.y.tobytes()
    assert one.X.tobytes() != other.X.tobytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_separable(0), "n_queries must be a whole number of at least 1"),
        (lambda: make_separable(margin=0), "margin must be a number above 0"),
        (lambda: make_graded(n_grades=1), "n_grades must be at least 2"),
        (lambda: make_graded(blank=1.5), "blank must be a share"),
        (lambda: make_graded(density=0), "density must be a share"),
        (lambda: make_graded(noise=-1), "noise must be a number not below 0"),
        (lambda: make_graded(n_docs=(5, 4)), "n_docs must be a mean length or (shortest, longest)"),
        (lambda: make_graded(n_features=4, n_informative=3, n_redundant=2), "exceed n_features=4"),
        (lambda: make_mslr_like(n_docs=0.5), "n_docs must be at least 1"),
    ],
)
def test_impossible_orders_are_refused(call, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)
