"""How much each feature moves the scores of a model inside lists."""

from __future__ import annotations

import numpy as np

from .._typing import Floats, Ints
from ..data.csr import dense
from ..data.dataset import QueryDataset
from .model import Model

MOST_QUERIES = 200
"""So many queries are looked at, evenly spaced."""


def score_shares(model: Model, data: QueryDataset) -> Floats:
    """Return cov(s, s − s_j)/var(s) for each feature j, s_j the scores with j at its mean in each list.

    Covariances are those inside lists, over all documents. In a sum of curves s − s_j is the curve of j but for a
    constant, and the shares add up to 1. All are 0 where the scores do not differ inside lists.

    >>> rows = QueryDataset.from_arrays([[1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [0, 1, 2], feature_names=["a", "b"])
    >>> score_shares(Model.linear(["a", "b"], [1.0, 0.0]), rows).tolist()
    [1.0, 0.0]
    """
    chosen = np.unique(np.linspace(0, data.n_queries - 1, min(data.n_queries, MOST_QUERIES)).round().astype(np.int64))
    some = model.inputs.matched(data[chosen], model.source)
    X = np.asarray(dense(some.X), dtype=np.float64)
    query, n = some.query_of_rows, np.maximum(some.lengths, 1)
    scores = _centred(model.predict_grouped(some._with(X=X, mapped=None)), query, n)
    variance, shares = float(scores @ scores), np.zeros(model.n_features)
    if not variance > 0:
        return shares
    for j in range(model.n_features):
        held, known = X.copy(), ~np.isnan(X[:, j])
        total = np.bincount(query[known], X[known, j], minlength=len(n))
        many = np.bincount(query[known], minlength=len(n))
        held[:, j] = np.where(many > 0, total / np.maximum(many, 1), np.nan)[query]
        without = _centred(model.predict_grouped(some._with(X=held, mapped=None)), query, n)
        shares[j] = float(scores @ (scores - without)) / variance
    return shares


def _centred(scores: Floats, query: Ints, n: Ints) -> Floats:
    """Return scores less the mean of their list."""
    centred: Floats = scores - (np.bincount(query, scores, minlength=len(n)) / n)[query]
    return centred
