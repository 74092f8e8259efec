"""Normalisation stays inside a query, rows return where they were, and scikit-learn carries qid along."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, csr_matrix
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank.data.dataset import QueryDataset
from toprank.data.splits import QueryKFold
from toprank.data.synthetic import make_graded
from toprank.data.transforms import QueryNormalizer, SignedLog
from toprank.errors import InputError
from toprank.rankers.listwise import ListNet

SUBSETS = {"check_methods_subset_invariance": "a row's value depends on the other rows of its query: that is the point"}


@parametrize_with_checks(
    [QueryNormalizer(), QueryNormalizer(method="standard"), SignedLog()],
    expected_failed_checks=lambda transformer: SUBSETS if isinstance(transformer, QueryNormalizer) else {},
)
def test_scikit_learn_contract(estimator, check) -> None:
    check(estimator)


def by_definition(X: np.ndarray, qid: np.ndarray, method: str) -> np.ndarray:
    """One column of one query at a time."""
    out = np.zeros(X.shape)
    for query in set(qid.tolist()):
        for j in range(X.shape[1]):
            mine = [i for i in range(len(X)) if qid[i] == query]
            column = [float(X[i, j]) for i in mine]
            if len(set(column)) == 1:
                continue
            if method == "minmax":
                shift, scale = min(column), max(column) - min(column)
            else:
                shift = sum(column) / len(column)
                scale = (sum((v - shift) ** 2 for v in column) / len(column)) ** 0.5
            for i, v in zip(mine, column, strict=True):
                out[i, j] = (v - shift) / scale
    return out


tables = st.integers(1, 14).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 3), elements=st.integers(-8, 8).map(float)),
        arrays(np.int64, n, elements=st.integers(0, 3)),
    )
)


@settings(max_examples=60, deadline=None)
@given(tables, st.sampled_from(["minmax", "standard"]), st.sampled_from([np.float32, np.float64]))
def test_normaliser_agrees_with_its_definition(table, method: str, dtype) -> None:
    X, qid = table[0].astype(dtype), table[1]
    before = X.copy()
    out = QueryNormalizer(method=method).fit_transform(X, qid=qid)
    assert out.dtype == dtype
    assert out == pytest.approx(by_definition(X, qid, method), abs=1e-6 if dtype == np.float32 else 1e-12)
    assert np.array_equal(X, before)
    if method == "minmax":
        assert out.min() >= 0
        assert out.max() <= 1


@settings(max_examples=60, deadline=None)
@given(tables)
def test_sparse_and_dense_agree_where_zeros_stay_zero(table) -> None:
    X, qid = np.abs(table[0]), table[1]
    dense = QueryNormalizer().fit_transform(X, qid=qid)
    sparse = QueryNormalizer().fit_transform(csr_array(X), qid=qid)
    assert isinstance(sparse, csr_array)
    assert np.array_equal(sparse.toarray(), dense)


def test_negative_columns_without_gaps_stay_sparse_and_with_gaps_are_refused() -> None:
    full = np.array([[-1.0, 5], [-3, 0], [-2, 7]])
    out = QueryNormalizer().fit_transform(csr_array(full))
    assert out.toarray().T.tolist() == [[1, 0, 0.5], [5 / 7, 0, 1]]
    with pytest.raises(InputError, match="query b: column 1 has values below 0 beside absent ones"):
        QueryNormalizer().fit_transform(csr_matrix([[1.0, 0], [1, -2], [1, 0]]), qid=["a", "b", "b"])
    with pytest.raises(InputError, match='method="standard" moves zeros'):
        QueryNormalizer("standard").fit(csr_array(full))


def test_a_constant_column_becomes_zero_whatever_its_value() -> None:
    X = np.full((3, 2), 0.1)
    for method in ("minmax", "standard"):
        assert (QueryNormalizer(method).fit_transform(X) == 0).all()


def test_forgetting_qid_is_an_error_not_a_different_number() -> None:
    X, qid = np.arange(6.0)[:, None], [1, 1, 1, 2, 2, 2]
    fitted = QueryNormalizer().fit(X, qid=qid)
    with pytest.raises(InputError, match="transform needs qid: this QueryNormalizer was fitted on 2 queries"):
        fitted.transform(X)
    assert QueryNormalizer().fit(X).transform(X)[-1, 0] == 1
    with pytest.raises(InputError, match=r"one id per document \(6\)"):
        fitted.transform(X, qid=[1, 2])
    with pytest.raises(InputError, match="method must be one of 'minmax', 'standard', got 'max'"):
        QueryNormalizer("max").fit(X)


def test_routing_carries_qid_through_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((60, 3)), rng.standard_normal(60), rng.permutation(np.repeat(np.arange(12), 5))
    expected = Ridge().fit(QueryNormalizer().fit_transform(X, qid=qid), y)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(SignedLog(), QueryNormalizer(), Ridge())
        pipe.fit(X, y, qid=qid)
        assert pipe.predict(X, qid=qid).shape == (60,)
        plain = make_pipeline(QueryNormalizer(), Ridge()).fit(X, y, qid=qid)
        assert plain[-1].coef_ == pytest.approx(expected.coef_, abs=1e-12)
        scaled = QueryNormalizer().fit_transform(X, qid=qid)
        assert plain.predict(X, qid=qid) == pytest.approx(expected.predict(scaled), abs=1e-12)
        result = cross_validate(plain, X, y, cv=QueryKFold(3), params={"qid": qid}, error_score="raise")
        assert np.isfinite(result["test_score"]).all()


def test_a_ranker_in_a_pipeline_is_cross_validated_by_query() -> None:
    data = make_graded(n_queries=30, n_features=6, random_state=0)
    mixed = np.random.default_rng(0).permutation(data.n_docs)
    X, y, qid = data.X[mixed], data.y[mixed], data.qid[mixed]
    scaled = QueryNormalizer().fit_transform(X, qid=qid)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(QueryNormalizer(), ListNet()).fit(X, y, qid=qid)
        alone = ListNet().fit(scaled, y, qid=qid)
        assert pipe.predict(X, qid=qid) == pytest.approx(alone.predict(scaled), abs=1e-12)
        assert pipe.score(X, y, qid=qid) == pytest.approx(alone.score(scaled, y, qid=qid), abs=1e-12)
        search = GridSearchCV(pipe, {"querynormalizer__method": ["minmax", "standard"]}, cv=QueryKFold(3))
        search.fit(X, y, qid=qid)
        folds = cross_validate(pipe, X, y, cv=QueryKFold(3), params={"qid": qid}, error_score="raise")["test_score"]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(folds.mean(), abs=1e-12)


def test_frames_in_and_out() -> None:
    frame = pd.DataFrame({"bm25": [1.0, 2.0, 3.0], "age": [5.0, 5.0, 6.0]}, index=[9, 8, 7])
    out = QueryNormalizer().set_output(transform="pandas").fit_transform(frame, qid=[0, 0, 0])
    assert list(out.columns) == ["bm25", "age"]
    assert out.index.tolist() == [9, 8, 7]
    assert QueryNormalizer().fit(frame).get_feature_names_out().tolist() == ["bm25", "age"]
    with pytest.raises(InputError, match="column 0 \\('bm25'\\)"):
        SignedLog().fit(frame.where(frame["bm25"] > 1))
    assert SignedLog(missing="zero").fit_transform(frame.where(frame["bm25"] > 1))[0].tolist() == [0, 0]


def test_data_sets_keep_their_names_and_queries() -> None:
    X = np.array([[1.0, -4], [3, 4], [5, 0]])
    data = QueryDataset.from_arrays(X, [0, 1, 2], ["a", "b", "a"], feature_names=["u", "v"], doc_ids=["x", "y", "z"])
    scaled = QueryNormalizer().transform_queries(data)
    assert scaled.X.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert scaled.feature_names == ("u", "v")
    assert scaled.doc_ids.tolist() == ["x", "z", "y"]
    assert scaled.in_caller_order(scaled.X).tolist() == [[0, 0], [0, 0], [1, 1]]
    logs = SignedLog().transform_queries(data)
    assert pytest.approx(np.sign(data.X) * np.log1p(np.abs(data.X))) == logs.X


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (4, 3), elements=st.floats(-1e300, 1e300)), st.sampled_from([np.float32, np.float64]))
def test_signed_log(X: np.ndarray, dtype) -> None:
    X = np.clip(X, -1e30, 1e30).astype(dtype)
    out = SignedLog().fit_transform(X)
    expected = [[np.sign(v) * np.log1p(abs(v)) for v in row] for row in X.tolist()]
    assert out == pytest.approx(np.array(expected), rel=1e-6 if dtype == np.float32 else 1e-14)
    assert out.dtype == dtype
    sparse = SignedLog().fit_transform(csr_array(X))
    assert isinstance(sparse, csr_array)
    assert np.array_equal(sparse.toarray(), np.where(X == 0, 0, out))
    assert sparse.nnz == csr_array(X).nnz
