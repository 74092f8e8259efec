from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from toprank.contests.base import Contest
from toprank.data.dataset import QueryDataset
from toprank.model import Inputs, KernelFunction, LinearFunction, Model, StumpFunction
from toprank.report.additive import Explainer, contributions, correlation_parts

RNG = np.random.default_rng(0)
X = RNG.standard_normal((9, 4))
MODELS = {
    "linear": Model(LinearFunction(RNG.standard_normal(4)), Inputs(4)),
    "stumps": Model(
        StumpFunction(4, RNG.integers(0, 4, 30), RNG.standard_normal(30), RNG.standard_normal(30)), Inputs(4)
    ),
}


def rows(matrix: object) -> QueryDataset:
    return QueryDataset.from_arrays(matrix, np.zeros(9))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("matrix", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_contributions_add_up_to_the_score(model: Model, matrix: object) -> None:
    parts = contributions(model, rows(matrix))
    assert parts is not None
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), atol=1e-12)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_contribution_depends_on_its_feature_alone(model: Model) -> None:
    changed = X.copy()
    changed[:, 2] += 1.5
    before, after = contributions(model, rows(X)), contributions(model, rows(changed))
    assert before is not None
    assert after is not None
    assert (before[:, [0, 1, 3]] == after[:, [0, 1, 3]]).all()
    assert (before[:, 2] != after[:, 2]).any()


def test_a_kernel_is_no_sum_over_features() -> None:
    assert contributions(Model(KernelFunction(X[:2], np.ones(2), "rbf"), Inputs(4)), rows(X)) is None


def test_shares_add_up_to_the_correlation() -> None:
    parts, grades = RNG.standard_normal((20, 5)), RNG.integers(0, 3, 20).astype(float)
    scores = parts.sum(axis=1)
    shares = correlation_parts(parts, scores, grades)
    assert shares is not None
    assert shares.sum() == pytest.approx(np.corrcoef(scores, grades)[0, 1])
    assert correlation_parts(parts, scores, np.ones(20)) is None
    assert correlation_parts(0 * parts, 0 * scores, grades) is None


def test_each_fold_is_explained_by_its_own_ranker(small_contest: Contest) -> None:
    entrant = small_contest.entrant("ListNet")
    explainer = Explainer(small_contest, entrant)
    for q in (0, 29, 30, 59):
        one = small_contest.data[q]
        parts = explainer.parts(q)
        assert parts is not None
        np.testing.assert_allclose(parts, one.X * entrant.rankers[q // 30].coef_)


def test_scores_of_other_features_are_not_explained(small_contest: Contest) -> None:
    entrant = small_contest.entrant("ListNet")
    scaled = replace(entrant, scores=entrant.scores * 2)
    assert Explainer(small_contest, scaled).parts(0) is None
    assert Explainer(small_contest, small_contest.entrant("order as given")).parts(0) is None


def test_a_single_feature_explains_itself(small_contest: Contest) -> None:
    data = small_contest.data
    half = int(data.ptr[30])
    scores = np.concatenate([-data.X[:half, 4], data.X[half:, 2]])  # another one in each fold
    explainer = Explainer(small_contest, replace(small_contest.entrants[0], scores=scores))
    for q, feature in ((0, 4), (59, 2)):
        parts = explainer.parts(q)
        assert parts is not None
        assert np.flatnonzero(parts.any(axis=0)).tolist() == [feature]
        np.testing.assert_array_equal(parts.sum(axis=1), scores[data.ptr[q] : data.ptr[q + 1]])
    nearly = replace(small_contest.entrants[0], scores=np.append(scores[:-1], 0.123))
    assert Explainer(small_contest, nearly).parts(0) is not None
    assert Explainer(small_contest, nearly).parts(59) is None
