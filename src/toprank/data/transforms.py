"""Features made comparable: per-query normalisation and the signed logarithm, as scikit-learn transformers.

A ranker, the command line and model files name them in short: `prepare="log,query"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .._typing import CSR, AnyArray, ArrayLike, Matrix
from ..errors import InputError
from . import validation
from .csr import csr_of, dense
from .dataset import QueryDataset
from .grouping import group_rows
from .preparation import steps_of

Method = Literal["minmax", "standard"]


class QueryNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale each feature to 0 … 1 within each query, as LETOR does: x ← (x − min) / (max − min).

    `method="standard"` gives (x − mean) / deviation instead. A feature that is constant within a query becomes 0. Rows
    may come in any order of queries and return in the caller's. A sparse X stays sparse under `"minmax"` (absent values
    are zeros, and must remain zeros); `"standard"` would fill it and refuses.

    `qid` says which rows belong together. In a pipeline switch on routing, and qid reaches every step that wants it:

    >>> import sklearn
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y, qid = np.array([[1.0], [3.0], [10.0], [30.0], [20.0]]), [0, 1, 0, 1, 0], [7, 7, 8, 8, 8]
    >>> QueryNormalizer().fit_transform(X, qid=qid).T
    array([[0. , 1. , 0. , 1. , 0.5]])
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     pipe = make_pipeline(QueryNormalizer(), Ridge()).fit(X, y, qid=qid)
    ...     pipe.predict(X, qid=qid).shape
    (5,)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    n_queries_in_: int

    def __init__(self, method: Method = "minmax", *, missing: Literal["error", "zero"] = "error") -> None:
        self.method = method
        self.missing = missing

    def fit(self, X: Any, y: object = None, qid: ArrayLike | None = None) -> Self:
        """Note the features and whether there is more than one query; nothing is learned from the values."""
        matrix = self._checked(_matrix(self, X, reset=True))
        self.n_queries_in_ = len(group_rows(qid, matrix.shape[0])[1])
        return self

    def transform(self, X: Any, qid: ArrayLike | None = None) -> Matrix:
        """Return X normalised within each query; without qid all rows are one list."""
        if qid is None and getattr(self, "n_queries_in_", 1) > 1:
            raise InputError(
                f"transform needs qid: this QueryNormalizer was fitted on {self.n_queries_in_} queries, and without qid"
                " all rows would count as one list (in a pipeline: sklearn.set_config(enable_metadata_routing=True))"
            )
        matrix = self._checked(_matrix(self, X, reset=False))
        ptr, query_ids, order = group_rows(qid, matrix.shape[0])
        rows = np.arange(matrix.shape[0]) if order is None else order
        return self._scaled(matrix, ptr, rows, query_ids)

    def fit_transform(self, X: Any, y: object = None, qid: ArrayLike | None = None) -> Matrix:
        """Return X normalised within each query."""
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def transform_queries(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with normalised features."""
        scaled = self._scaled(self._checked(data.X), data.ptr, np.arange(data.n_docs), data.query_ids)
        return data.with_X(scaled, data.feature_names)

    def _checked(self, X: Matrix) -> Matrix:
        validation.check_choice(get_args(Method), method=self.method)
        if self.method == "standard" and validation.is_sparse(X):
            raise InputError(
                'method="standard" moves zeros, which would fill a sparse X: use method="minmax" or pass X.toarray()'
            )
        return X

    def _scaled(self, X: Matrix, ptr: AnyArray, rows: AnyArray, query_ids: AnyArray) -> Matrix:
        from . import _transform_kernels as kernels

        if not validation.is_sparse(X):
            out = np.empty_like(X)
            (kernels.min_max if self.method == "minmax" else kernels.standard)(X, ptr, rows, out)
            return out
        values = np.empty_like(X.data)
        query, column = kernels.min_max_csr(X.data, X.indices, X.indptr, X.shape[1], ptr, rows, values)
        if query >= 0:
            raise InputError(
                f"query {query_ids[query]}: column {column} has values below 0 beside absent ones, so zeros would not "
                "stay 0 and X not sparse: pass X.toarray()"
            )
        return _with_values(X, values)

    def __sklearn_tags__(self) -> Tags:
        return _tags(self, super().__sklearn_tags__(), sparse=self.method == "minmax")


class SignedLog(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Take logarithms that keep signs and zeros, so that large counts compare with small: x ← sign(x) · log(1 + |x|).

    >>> SignedLog().fit_transform([[0.0, np.e - 1, 1 - np.e]])
    array([[ 0.,  1., -1.]])
    """

    def __init__(self, *, missing: Literal["error", "zero"] = "error") -> None:
        self.missing = missing

    def fit(self, X: Any, y: object = None) -> Self:
        """Note the features; nothing is learned from the values."""
        _matrix(self, X, reset=True)
        return self

    def transform(self, X: Any) -> Matrix:
        """Return the signed logarithm of every value."""
        return self._logs(_matrix(self, X, reset=False))

    def transform_queries(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with the logarithms of its features."""
        return data.with_X(self._logs(data.X), data.feature_names, missing="keep" if data.has_missing else "error")

    def _logs(self, X: Matrix) -> Matrix:
        if validation.is_sparse(X):
            return _with_values(X, _signed_logs(X.data))
        return _signed_logs(dense(X))

    def __sklearn_tags__(self) -> Tags:
        return _tags(self, super().__sklearn_tags__(), sparse=True)


def prepared(data: QueryDataset, prepare: str | Sequence[str]) -> QueryDataset:
    """Return the data set with its features prepared, one step after the other; knots are learned from it.

    >>> prepared(QueryDataset.from_arrays([[1.0], [3.0]], [0, 1]), "log,query").X.tolist()
    [[0.0], [1.0]]
    """
    for step in steps_of(prepare):
        data = step.fit(data, _itself).apply(data)
    return data


def _itself(data: QueryDataset) -> QueryDataset:
    return data


def transformer_of(word: str) -> Any:
    """Return the transformer of a step that replaces values: "log", "query" or "standard"."""
    return SignedLog() if word == "log" else QueryNormalizer("minmax" if word == "query" else "standard")


def _matrix(transformer: Any, X: Any, *, reset: bool) -> Matrix:
    """Check X and compare its features with those of fit (or note them)."""
    validation.check_choice(("error", "zero"), missing=transformer.missing)
    matrix = validation.as_matrix(X, feature_names=getattr(X, "columns", None), missing=transformer.missing)
    if 0 in matrix.shape:
        what = "sample" if matrix.shape[0] == 0 else "feature"
        raise InputError(f"X has 0 {what}(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    validate_data(transformer, X, reset=reset, skip_check_array=True)
    return matrix


def _signed_logs(values: AnyArray) -> AnyArray:
    out = np.abs(values)
    return np.copysign(np.log1p(out, out=out), values, out=out)


def _with_values(X: CSR, values: AnyArray) -> CSR:
    """Return X with other values at the same places."""
    return csr_of(values, X.indices, X.indptr, X.shape[1])


def _tags(transformer: Any, tags: Tags, *, sparse: bool) -> Tags:
    tags.input_tags.sparse = sparse
    tags.input_tags.allow_nan = transformer.missing == "zero"
    tags.requires_fit = False
    if tags.transformer_tags is not None:
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags
