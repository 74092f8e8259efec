"""Whoever makes a data set, and however: types, shapes and bounds are right before a kernel sees them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array

import toprank as tr
from toprank.data.csr import csr_of, is_canonical
from toprank.errors import InputError

DATA = tr.datasets.make_graded(n_queries=20, n_docs=(3, 8), n_features=5, random_state=0)
SPARSE = tr.QueryDataset.from_arrays(csr_array(np.where(DATA.X > 0, DATA.X, 0)), DATA.y, DATA.qid)
N, Q = DATA.n_docs, DATA.n_queries


@pytest.mark.parametrize("kind", [int, np.int32, np.float32, ">f8", bool, object, list])
def test_labels_of_any_type_teach_the_same(kind):
    grades = np.minimum(DATA.y, 1)
    other = grades.tolist() if kind is list else grades.astype(kind)
    data = replace(DATA, y=other)
    assert data.y.dtype == np.float64
    assert data.y.dtype.isnative
    direct = tr.QueryDataset(X=DATA.X, y=other, ptr=DATA.ptr, query_ids=DATA.query_ids)
    want = tr.ListNet().fit_queries(replace(DATA, y=grades)).coef_
    for one in (data, direct):
        np.testing.assert_array_equal(tr.ListNet().fit_queries(one).coef_, want)


def test_features_and_bounds_are_converted():
    data = replace(DATA, X=np.asfortranarray(DATA.X).astype(">f8"), ptr=DATA.ptr.astype(np.uint16))
    assert data.X.flags.c_contiguous
    assert data.X.dtype == np.float64
    assert data.ptr.dtype == np.int64
    np.testing.assert_array_equal(data.X, DATA.X)
    assert replace(DATA, X=DATA.X.astype(int)).X.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"y": DATA.y[:-1]}, f"y has {N - 1} labels for {N} documents"),
        ({"y": np.full(N, np.nan)}, "y has nan in row 0"),
        ({"y": np.where(np.arange(N) == 3, np.inf, 0)}, "y has inf in row 3"),
        ({"y": np.full(N, "x")}, "y must hold numbers: row 0 is"),
        ({"y": np.zeros(N, dtype="M8[s]")}, "y must hold real numbers, it holds datetime64"),
        ({"y": np.zeros(N, dtype=complex)}, "y must hold real numbers"),
        ({"y": np.ma.masked_equal(DATA.y, 0)}, "y has masked cells"),
        ({"X": np.ma.masked_less(DATA.X, 0)}, "X has masked cells"),
        ({"X": DATA.X[:-1]}, "ptr must rise from 0"),
        ({"X": DATA.X[:, 0]}, "X must have two dimensions"),
        ({"X": np.zeros((N, 2), dtype=complex)}, "Complex data"),
        ({"X": np.full((N, 2), "x")}, "X must hold numbers"),
        ({"ptr": DATA.ptr[:-1]}, "ptr must rise from 0"),
        ({"ptr": DATA.ptr.astype(float)}, "ptr must be a one-dimensional array of integers"),
        ({"ptr": np.append(0, DATA.ptr[::-1])}, "ptr must rise"),
        ({"query_ids": [1, 2, 3]}, rf"query_ids must have one id per query \({Q}\), got shape \(3,\)"),
        ({"doc_ids": ["a"]}, "doc_ids must have one id per document"),
        ({"query_weight": np.ones(3)}, "query_weight must have one weight per query"),
        ({"query_weight": -np.ones(Q)}, "query_weight has -1.0 for query 0"),
        ({"query_weight": np.ones(Q, dtype=complex)}, "query_weight must hold real numbers, it holds complex128"),
        ({"doc_weight": np.ones(N, dtype=complex)}, "doc_weight must hold real numbers, it holds complex128"),
        ({"feature_names": ["a"]}, "feature_names has 1 names for 5 features"),
        ({"feature_names": list("aabcd")}, "feature_names has 'a' more than once"),
        ({"order": np.zeros(N, dtype=int)}, "order must hold each row"),
        ({"order": np.arange(N) - 1}, "order must hold each row"),
        ({"order": np.arange(N - 1)}, "order must hold each row"),
    ],
)
def test_a_data_set_that_does_not_fit_together_is_refused(changes, told):
    with pytest.raises(InputError, match=told):
        replace(DATA, **changes)


def damaged(what: str) -> csr_array:
    X = SPARSE.X.copy()
    if what == "beyond":
        X.indices[7] = 5
    elif what == "far":
        X.indices[-1] = 2**31 - 1
    elif what == "negative":
        X.indices[0] = -3
    elif what == "falling":
        X.indptr[2], X.indptr[3] = X.indptr[3], X.indptr[2]
    elif what == "past the end":
        X.indptr[-2] = X.nnz + 1000
    elif what == "short":
        X.data = X.data[:-4]
    return X


@pytest.mark.parametrize("what", ["beyond", "far", "negative", "falling", "past the end", "short"])
def test_indices_that_point_elsewhere_are_refused_at_every_door(what):
    ranker = tr.SlamPerceptron().fit_queries(SPARSE)
    X, y, qid = damaged(what), SPARSE.y, SPARSE.qid
    doors = [
        lambda: tr.QueryDataset.from_arrays(X, y, qid),
        lambda: replace(SPARSE, X=X),
        lambda: SPARSE.with_X(X),
        lambda: tr.ListNet().fit(X, y, qid=qid),
        lambda: tr.SlamPerceptron().partial_fit(X, y, qid=qid),
        lambda: ranker.predict(X),
        lambda: ranker.function_.scores(X),
        lambda: ranker.rank(X, qid=qid),
        lambda: ranker.score(X, y, qid=qid),
        lambda: tr.PerceptronAtK(k=3).fit(X, np.minimum(y, 1)),
        lambda: tr.QueryNormalizer().fit_transform(X, qid=qid),
    ]
    for door in doors:
        with pytest.raises(InputError, match="X is a damaged sparse matrix"):
            door()


def test_other_formats_are_looked_at_before_they_are_converted():
    dense = np.where(DATA.X > 0, DATA.X, 0)
    for make in (csc_array, bsr_array):
        X = make(dense)
        X.indices[1] = 10**6
        with pytest.raises(InputError, match="X is a damaged sparse matrix"):
            tr.QueryDataset.from_arrays(X, DATA.y, DATA.qid)
    X = coo_array(dense)
    X.row[0] = 10**6
    with pytest.raises(InputError, match="X is a damaged sparse matrix"):
        tr.QueryDataset.from_arrays(X, DATA.y, DATA.qid)


@given(st.integers(0, 2**32))
def test_rows_that_are_not_sorted_or_hold_a_column_twice_are_summed(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, 6)
    indptr = np.append(0, np.cumsum(lengths))
    columns, values = rng.integers(0, 4, indptr[-1]), rng.integers(1, 9, indptr[-1]).astype(float)
    X = csr_array((values.copy(), columns.copy(), indptr), shape=(6, 4))
    X.has_canonical_format = True  # the caller's word is not taken for it
    want = np.zeros((6, 4))
    np.add.at(want, (np.repeat(np.arange(6), lengths), columns), values)
    data = tr.QueryDataset.from_arrays(X, np.arange(6))
    np.testing.assert_array_equal(data.X.toarray(), want)
    assert all((np.diff(data.X.indices[a:b]) > 0).all() for a, b in pairwise(data.X.indptr))
    np.testing.assert_array_equal(X.data, values)
    rising = all((np.diff(columns[a:b]) > 0).all() for a, b in pairwise(indptr))
    assert is_canonical(values, columns, indptr, (6, 4)) == rising


def test_parts_are_not_looked_at_again(monkeypatch):
    looked = []
    monkeypatch.setattr("toprank.data.csr.is_canonical", lambda *parts: looked.append(parts) or True)
    parts = [
        SPARSE[2:9],
        SPARSE[3],
        *SPARSE,
        replace(SPARSE, query_weight=np.ones(Q)),
        replace(SPARSE[1:], y=SPARSE[1:].y),
    ]
    assert not looked
    copy = SPARSE.X.copy()
    replace(SPARSE, X=copy)
    assert len(looked) == 1
    parts[0].X.indices = parts[0].X.indices.copy()
    replace(parts[0], query_weight=None)
    assert len(looked) == 2


def test_wide_and_long_index_types_are_taken_as_they_are():
    X = csr_of(SPARSE.X.data, SPARSE.X.indices.astype(np.int32), SPARSE.X.indptr.astype(np.int64), 5)
    data = replace(SPARSE, X=X)
    assert data.X.indices.base is X.indices or data.X.indices is X.indices
    assert (data.X.indices.dtype, data.X.indptr.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(tr.ListNet().fit_queries(data).coef_, tr.ListNet().fit_queries(SPARSE).coef_)


def edit(folder, name, change):
    file = folder / f"{name}.npy"
    np.save(file, change(np.load(file)))


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("sparse", "name", "change", "told"),
    [
        (True, "indices", put(7, 5), "row . has a column outside 0 to 4"),
        (True, "indices", put(0, -1), "column outside"),
        (True, "indices", put(slice(None), 0), "not sorted"),
        (True, "indices", lambda a: a.astype(np.int16), "indices.npy must hold an array of int32 or int64"),
        (True, "indptr", put(1, 10**6), "indptr must rise"),
        (True, "indptr", lambda a: a[::-1].copy(), "indptr must rise"),
        (True, "values", lambda a: a.astype(int), "values.npy must hold an array of float32 or float64"),
        (True, "values", lambda a: a[:-1], "columns"),
        (False, "X", lambda a: a.astype(np.int64), "X.npy must hold an array of float32 or float64"),
        (False, "X", lambda a: a.astype(">f8"), "in the byte order of this machine"),
        (False, "X", np.asfortranarray, "row by row"),
        (False, "X", lambda a: a[:, :3], "X has 3 columns and header.json says 5"),
        (False, "X", lambda a: a[:, 0], "two dimensions"),
        (False, "y", lambda a: a[:-1], "labels for"),
        (False, "y", put(2, np.nan), "y has nan in row 2"),
        (False, "y", lambda a: np.char.add(a.astype("U3"), "x"), "y must hold numbers"),
        (False, "ptr", lambda a: a[::-1].copy(), "ptr must rise"),
        (False, "ptr", lambda a: a.astype(float), "integers"),
        (False, "ptr", lambda a: a[0], "integers"),
        (False, "query_ids", lambda a: a[:3], "one id per query"),
        (False, "doc_ids", lambda a: a[:3], "one id per document"),
        (False, "query_weight", lambda a: -a, "query_weight has"),
        (False, "order", lambda a: a * 0, "order must hold each row"),
    ],
)
def test_a_folder_is_checked_when_it_is_opened(tmp_path, sparse, name, change, told):
    data = replace(
        SPARSE if sparse else DATA, doc_ids=np.arange(N), query_weight=np.ones(Q), order=np.arange(N)[::-1].copy()
    )
    folder = tr.save_queries(data, tmp_path / "queries")
    tr.open_queries(folder)
    edit(folder, name, change)
    with pytest.raises(InputError, match=told):
        tr.open_queries(folder)


@pytest.mark.parametrize("kind", [np.int32, ">f8", np.float32])
def test_labels_of_a_folder_are_converted(tmp_path, kind):
    folder = tr.save_queries(DATA, tmp_path / "queries")
    edit(folder, "y", lambda y: y.astype(kind))
    found = tr.open_queries(folder)
    assert found.y.dtype == np.float64
    np.testing.assert_array_equal(tr.ListNet().fit_queries(found).coef_, tr.ListNet().fit_queries(DATA).coef_)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_features": None}, "n_features must be a whole number, got None"),
        ({"n_features": -1}, "n_features must be a whole number"),
        ({"n_features": True}, "n_features must be a whole number"),
        ({"n_features": 4}, "X has 5 columns and header.json says 4"),
        ({"feature_names": "abcde"}, "feature_names must be a list of text"),
        ({"feature_names": [1, 2, 3, 4, 5]}, "feature_names must be a list of text"),
        ({"feature_names": ["a"]}, "feature_names has 1 names for 5 features"),
    ],
)
def test_the_header_of_a_folder_is_checked(tmp_path, change, told):
    folder = tr.save_queries(DATA, tmp_path / "queries")
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps(header | change))
    with pytest.raises(InputError, match=told):
        tr.open_queries(folder)
    (folder / "header.json").write_text(json.dumps({k: v for k, v in header.items() if k != "n_features"}))
    with pytest.raises(InputError, match="n_features"):
        tr.open_queries(folder)


def test_cells_without_a_value_are_told_whatever_keeps_them():
    pandas = pytest.importorskip("pandas")
    flags = pandas.array([True, None], dtype="boolean")
    frame = pandas.DataFrame({"query": [1, 1], "label": [0, 1], "x": flags, "z": [1.0, 2.0]})
    with pytest.raises(InputError, match="column 'x' is empty"):
        tr.read_table(frame)
    assert tr.read_table(frame, missing="zero").X.tolist() == [[1.0, 1.0], [0.0, 2.0]]
    with pytest.raises(InputError, match=r"X has NaN in row 1, column 0 \('x'\)"):
        tr.ListNet().fit(frame[["x", "z"]], [0, 1])
    with pytest.raises(InputError, match="y "):
        tr.ListNet().fit([[1.0], [2.0]], flags)
    for name, wrong in (("query_weight", [1, 2]), ("doc_weight", [1, 2])):
        with pytest.raises(InputError, match=f"{name} has masked cells"):
            tr.QueryDataset.from_arrays(np.eye(2), [0, 1], [0, 1], **{name: np.ma.masked_equal(wrong, 1)})
    with pytest.raises(InputError, match="scores has masked cells"):
        tr.evaluate(np.ma.masked_equal([0.0, 1.0], 0), y=[0, 1])
    with pytest.raises(InputError, match="qid has masked cells"):
        tr.QueryDataset.from_arrays(np.eye(2), [0, 1], np.ma.masked_equal([0, 1], 0))


def test_integers_of_128_bits():
    polars = pytest.importorskip("polars")
    if not hasattr(polars, "Int128"):
        pytest.skip("this polars has no Int128")
    wide = polars.Series([1, 2**100], dtype=polars.Int128)
    data = tr.read_table(polars.DataFrame({"query": wide, "label": [0, 1], "x": wide}))
    assert data.query_ids.tolist() == ["1", str(2**100)]
    assert data.X.tolist() == [[1.0], [2.0**100]]
    with pytest.raises(InputError, match="y cannot be read as an array"):
        tr.ListNet().fit([[1.0], [2.0]], wide)
    with pytest.raises(InputError, match="qid cannot be read as an array"):
        tr.ListNet().fit([[1.0], [2.0]], [0, 1], qid=wide)
    with pytest.raises(InputError, match="query_weight cannot be read as an array"):
        tr.ListNet().fit([[1.0], [2.0]], [0, 1], qid=[1, 2], query_weight=wide)


def test_ids_and_weights_of_odd_kinds_get_one_line():
    X, y = np.eye(3), [0, 1, 0]
    with pytest.raises(InputError, match="qid is a dict in row 0: an id is text, a number or a date"):
        tr.QueryDataset.from_arrays(X, y, np.array([{}, {1: 2}, {}], dtype=object))
    with pytest.raises(InputError, match="qid cannot be read as an array"):
        tr.QueryDataset.from_arrays(X, y, [[1], [2], [3, 4]])
    for name in ("query_weight", "doc_weight"):
        with pytest.raises(InputError, match=f"{name} must hold numbers"):
            tr.QueryDataset.from_arrays(X, y, [1, 2, 3], **{name: ["a", "b", "c"]})


def test_complex_scores_and_comparators_lose_no_part_in_silence():
    with pytest.raises(InputError, match="scores must hold real numbers, it holds complex128"):
        tr.evaluate(DATA.y + 1j, DATA)
    with pytest.raises(InputError, match="must hold real numbers, it holds complex128"):
        tr.SlamPerceptron().fit_queries(DATA).certify(DATA, comparator=np.ones(DATA.n_features) * 1j)
