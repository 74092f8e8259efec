from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from toprank.certificates.boosting import adarank_bounds


def queries(seed, n_queries=12, n_docs=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, 5))
    y = np.digitize(X[:, 0] + rng.normal(size=len(X)), [0.5, 1.5])
    return tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(n_queries), n_docs))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["map", "ndcg", "ndcg@3", "mrr", "p@2", "err@5"]),
    st.sampled_from(["paper", "improve"]),
)
def test_theorem_4_holds_after_every_round_for_every_measure_and_rule(seed, measure, rule):
    data = queries(seed)
    ranker = tr.AdaRank(measure, rounds=15, rule=rule).fit_queries(data)
    assert len(ranker.certificates_) == len(ranker.alphas_)
    assert all(certificate.holds() for certificate in ranker.certificates_)
    assert ranker.certificates_[-1].observed == pytest.approx(ranker.trace_["measure"][-1])
    # On other queries the weights are fixed, and the general form still holds.
    assert all(certificate.holds() for certificate in ranker.certify(queries(seed + 1)))


def test_at_the_papers_step_the_bound_is_theorem_4():
    phi, delta = np.array([0.3, 0.7, 0.5]), np.array([-0.1, 0.02, -0.3])
    alpha = 0.5 * np.log((1 + phi) / (1 - phi))
    expected = [1 - np.prod([np.exp(-delta[s]) * np.sqrt(1 - phi[s] ** 2) for s in range(t + 1)]) for t in range(3)]
    np.testing.assert_allclose(adarank_bounds(phi, delta, alpha), expected)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_rankboost_leaves_no_more_pairs_wrong_than_its_loss(seed, normalize):
    data = queries(seed)
    ranker = tr.RankBoost(rounds=10, normalize=normalize).fit_queries(data)
    (certificate,) = ranker.certificates_
    assert certificate.holds()
    assert certificate.value == pytest.approx(ranker.trace_["loss"][-1], rel=1e-9)
    (elsewhere,) = ranker.certify(queries(seed + 1))
    assert elsewhere.holds()


def test_weights_that_are_not_those_of_the_rounds_are_found_out():
    data = queries(0)
    ranker = tr.AdaRank("map", rounds=5).fit_queries(data)
    assert ranker.certify(data)[0].assumptions_hold
    ranker.function_ = type(ranker.function_)(-ranker.coef_)
    assert {c.verdict for c in ranker.certify(data)} == {"does not apply"}
