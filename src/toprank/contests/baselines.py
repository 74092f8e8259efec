"""What learning has to beat: the order as given, and the best single feature."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._typing import Floats
from ..clicks.evaluation import choice_value
from ..data.csr import dense, is_sparse
from ..data.dataset import QueryDataset
from ..measures.base import Measure
from ..measures.base import measure as parse

ORDER = "order as given"
FEATURE = "best feature"
MOST_FEATURES = 2_000
"""Columns that `best_feature` looks at: of a wider X, those with the most values that are not 0."""


def given_order(data: QueryDataset) -> Floats:
    """Return scores that leave every list as it came.

    >>> given_order(QueryDataset.from_arrays([[1.0], [5.0]], [0, 1])).tolist()
    [-0.0, -1.0]
    """
    return -np.arange(data.n_docs, dtype=np.float64)


def best_feature(data: QueryDataset, measure: str | Measure = "ndcg@10") -> tuple[int, int]:
    """Return the column that ranks best by itself, and whether up (+1) or down (−1); the first of equals.

    Best is by the measure, or on clicks by their value.

    >>> best_feature(QueryDataset.from_arrays([[1.0, 9.0], [1.0, 2.0], [1.0, 5.0]], [0, 2, 1]))
    (1, -1)
    """
    target = parse(measure)
    tried = (
        (choice_value(target, sign * column, data), -index, sign)
        for index, column in _columns(data)
        for sign in (1, -1)
    )
    _, index, sign = max(tried, key=lambda one: (-np.inf if np.isnan(one[0]) else one[0], *one[1:]))
    return -index, sign


def feature_scores(data: QueryDataset, index: int, sign: int) -> Floats:
    """Return one column as scores, turned round where `sign` is −1.

    >>> feature_scores(QueryDataset.from_arrays([[1.0, 9.0], [3.0, 2.0]], [0, 1]), 1, -1).tolist()
    [-9.0, -2.0]
    """
    column: Floats = dense(data.X[:, [index]]).astype(np.float64).ravel()
    return sign * np.nan_to_num(column)  # a missing cell counts as 0 here


def _columns(data: QueryDataset) -> Iterator[tuple[int, Floats]]:
    """Yield the columns one by one: a sparse X is never made dense as a whole."""
    by_column = data.X.tocsc() if is_sparse(data.X) else data.X
    chosen = np.arange(data.n_features)
    if data.n_features > MOST_FEATURES:
        used = np.diff(by_column.indptr) if is_sparse(by_column) else np.count_nonzero(dense(by_column), axis=0)
        chosen = np.sort(np.argsort(-used, kind="stable")[:MOST_FEATURES])
    for index in chosen.tolist():
        yield index, np.nan_to_num(dense(by_column[:, [index]]).astype(np.float64).ravel())
