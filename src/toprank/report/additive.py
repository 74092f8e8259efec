"""Why a document has its score: what each feature adds to it, where the model is a sum f(x) = Σ_j f_j(x_j)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._typing import AnyArray, Floats
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..model import Inputs, LinearFunction, Model, StumpFunction

if TYPE_CHECKING:
    from ..contests.base import Contest, Entrant


def contributions(model: Model, data: QueryDataset) -> Floats | None:
    """f_j(x_j) per document and feature: w_j x_j, the curves of feature j, or its steps in a sum of stumps.

    The columns are `model.inputs.filled_labels`: the features, and where they are missing; copies and knots of a
    feature are added up. None for a model that is no sum over features.

    >>> rows = QueryDataset.from_arrays([[1.0, 1.0], [0.5, 3.0]], [0, 1])
    >>> contributions(Model(LinearFunction(np.array([1.0, 2.0])), Inputs(2)), rows).tolist()
    [[1.0, 2.0], [0.5, 6.0]]
    >>> stumps = StumpFunction(2, np.array([0, 1]), np.array([0.5, 2.0]), np.array([1.0, -3.0]))
    >>> contributions(Model(stumps, Inputs(2)), rows).tolist()
    [[1.0, 0.0], [0.0, -3.0]]
    """
    function = model.function
    if not isinstance(function, (LinearFunction, StumpFunction)):
        return None
    rows = np.asarray(dense(model.inputs.apply(data, model.source).X), dtype=np.float64)
    if isinstance(function, LinearFunction):
        parts = rows * function.coef
    else:
        parts = np.zeros(rows.shape)
        for feature, threshold, weight in function.thresholds:
            parts[:, feature] += weight * (rows[:, feature] > threshold)
    if not model.inputs.widens:
        return parts
    whole = np.zeros((len(rows), model.inputs.filled_width))
    for column, feature in enumerate(model.inputs.origins.tolist()):
        whole[:, feature] += parts[:, column]
    return whole


class Explainer:
    """Says what each feature adds to one entrant's scores, with the model of the query's fold.

    An entrant that learned nothing may still be one feature, or its opposite: that is a linear model too.
    """

    def __init__(self, contest: Contest, entrant: Entrant) -> None:
        data = contest.data
        if data is None:
            raise ValueError("a contest without documents has no scores to take apart")
        self._data, self._scores = data, entrant.scores
        folds, self._fold = np.unique(contest.fold, return_inverse=True)
        found: list[Model | None] = [getattr(ranker, "model_", None) for ranker in entrant.rankers]
        if not found:
            found = [_one_feature(data, entrant.scores, self._fold == f) for f in range(len(folds))]
        self._models = found * len(folds) if len(found) == 1 else found
        if len(self._models) != len(folds):
            self._models = [None] * len(folds)

    def parts(self, q: int) -> Floats | None:
        """Return document × feature contributions of query q, or None where they do not add up to the scores.

        They do not where the ranker saw other features than the contest's data hold (scaled ones, say).
        """
        model = self._models[self._fold[q]]
        if model is None or model.n_features != self._data.n_features or model.rule.indicated:
            return None
        rows = slice(int(self._data.ptr[q]), int(self._data.ptr[q + 1]))
        parts = contributions(model, self._data[q])
        if parts is None:
            return None
        slack = 1e-6 * np.abs(parts).sum(axis=1).max(initial=0)
        return parts if np.allclose(parts.sum(axis=1), self._scores[rows], rtol=1e-6, atol=slack) else None


def _one_feature(data: QueryDataset, scores: Floats, queries: AnyArray) -> Model | None:
    """Return the feature, or its opposite, that gives these queries' documents their scores; None where none does."""
    rows = np.flatnonzero(np.repeat(queries, data.lengths))
    few = rows[:100]
    sample = dense(data.X[few])
    if not data.n_features or len(few) < 2 or np.ptp(scores[few]) == 0:
        return None
    for sign in (1.0, -1.0):
        for j in np.flatnonzero((sign * sample == scores[few][:, None]).all(axis=0)):
            function = LinearFunction(sign * np.eye(1, data.n_features, int(j))[0])
            if np.array_equal(function.scores(data.X[rows]), scores[rows]):
                return Model(function, Inputs(data.n_features, data.feature_names), "one feature")
    return None


def correlation_parts(parts: Floats, scores: Floats, grades: Floats) -> Floats | None:
    """r_j = cov(f_j, y) / (σ_s σ_y): Σ_j r_j is the correlation of scores with grades; None where either is constant.

    >>> correlation_parts(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([1.0, 3.0]), np.array([0.0, 2.0])).tolist()
    [1.0, 0.0]
    """
    spread = scores.std() * grades.std()
    if not spread > 1e-12 * np.abs(scores).max(initial=0):
        return None
    centred = grades - grades.mean()
    result: Floats = centred @ (parts - parts.mean(axis=0)) / len(grades) / spread
    return result


def spread_within_queries(data: QueryDataset, most_queries: int = 200) -> Floats:
    """σ_j = √ mean over documents of (x_j − its query's mean)²; of at most so many queries, evenly spaced.

    >>> data = QueryDataset.from_arrays([[1.0], [3.0], [9.0]], [0, 1, 0], qid=[1, 1, 2])
    >>> spread_within_queries(data).round(4).tolist()
    [0.8165]
    """
    total, n_docs = np.zeros(data.n_features), 0
    for q in np.unique(np.linspace(0, data.n_queries - 1, min(data.n_queries, most_queries)).round().astype(int)):
        one = data[int(q)]
        rows = np.asarray(dense(one.X), dtype=np.float64)
        total += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0) if len(rows) else 0.0
        n_docs += len(rows)
    return np.sqrt(total / max(1, n_docs))
