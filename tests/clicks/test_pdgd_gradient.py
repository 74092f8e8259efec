from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import toprank as tr
from tests.oracles import clicks as oracle
from toprank.clicks._pdgd_kernels import pdgd_step
from toprank.core.rows import rows_of

SCORES = st.lists(st.floats(-4, 4), min_size=2, max_size=6)


def gradient(scores, shown, clicked, X=None):
    """The step with η = 1 from θ = 0; by default on documents that are unit vectors, where it is the gradient."""
    X = np.eye(len(scores)) if X is None else X
    theta = np.zeros(X.shape[1])
    pdgd_step(rows_of(X), np.array(scores), np.array(shown), np.array(clicked, dtype=bool), 1.0, theta)
    return theta


@given(SCORES, st.data())
def test_each_pair_weighs_what_both_pages_say(scores, data):
    shown = data.draw(st.permutations(range(len(scores)))).copy()[: data.draw(st.integers(1, len(scores)))]
    clicked = data.draw(st.lists(st.booleans(), min_size=len(shown), max_size=len(shown)))
    expected = oracle.pdgd_gradient(scores, shown, clicked)
    np.testing.assert_allclose(gradient(scores, shown, clicked), expected, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_step_adds_the_documents_dense_and_sparse(form):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((6, 4)) < 0.7, rng.normal(size=(6, 4)), 0.0)
    scores, shown, clicked = rng.normal(size=6), [4, 0, 3, 5], [False, True, False, False]
    expected = X.T @ np.array(oracle.pdgd_gradient(scores.tolist(), shown, clicked))
    np.testing.assert_allclose(gradient(scores, shown, clicked, form(X)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("relevant", [(1, 0, 0), (1, 1, 0), (0, 0, 1)])
def test_over_all_pages_and_clicks_a_pair_is_pushed_towards_what_is_relevant(relevant):
    """The weights ρ make up for where the current ranker puts documents: only relevance decides the sign."""
    scores = [1.5, 0.0, -0.7]
    attracts = [0.9 if r else 0.2 for r in relevant]
    total = np.zeros((3, 3))
    for page in itertools.permutations(range(3)):
        chance = oracle.plackett_luce(scores, page)
        chances = [attracts[d] / (place + 1) for place, d in enumerate(page)]
        for pattern in itertools.product((0, 1), repeat=3):
            weight = chance * np.prod([c if hit else 1 - c for hit, c in zip(pattern, chances, strict=True)])
            for i, j in oracle.preferences(pattern):
                swapped = list(page)
                swapped[i], swapped[j] = page[j], page[i]
                here, there = oracle.plackett_luce(scores, page), oracle.plackett_luce(scores, swapped)
                total[page[i], page[j]] += weight * there / (here + there)
    for k, o in itertools.permutations(range(3), 2):
        net = total[k, o] - total[o, k]
        if relevant[k] > relevant[o]:
            assert net > 1e-6
        elif relevant[k] == relevant[o]:
            assert abs(net) < 1e-12


@pytest.mark.parametrize("clicked", [[2, 0], [np.nan, 0]])
def test_a_click_is_one_or_none(clicked):
    ranker = tr.PDGD().partial_fit_clicks(np.eye(3), [0, 1], [1, 0])
    before = ranker.coef_.copy()
    with pytest.raises(tr.InputError, match="write 0 or 1 for each document shown"):
        ranker.partial_fit_clicks(np.eye(3), [0, 1], clicked)
    np.testing.assert_array_equal(ranker.coef_, before)


def test_scores_far_apart_stay_finite():
    grad = gradient([800.0, 0.0, -900.0], [0, 1, 2], [False, True, False])
    assert np.isfinite(grad).all()
    assert grad[1] >= 0
