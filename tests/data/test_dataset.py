import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from toprank import InputError, QueryDataset
from toprank.data import validation
from toprank.data.grouping import group_rows


def small(**kwargs) -> QueryDataset:
    X = np.arange(12, dtype=np.float64).reshape(6, 2)
    return QueryDataset.from_arrays(X, [0, 1, 2, 0, 1, 0], qid=[5, 5, 5, 3, 3, 9], **kwargs)


def test_grouped_input_is_not_copied():
    X = np.zeros((4, 3), dtype=np.float32)
    data = QueryDataset.from_arrays(X, np.arange(4.0), qid=["a", "a", "b", "b"])
    assert np.shares_memory(data.X, X)
    assert data.order is None
    assert np.shares_memory(data[1].X, X)
    assert np.shares_memory(data[0:2].X, X)


def test_csr_stays_csr_and_slices_share_its_buffers():
    X = sparse.csr_array(np.triu(np.arange(30.0).reshape(6, 5), -1))
    data = QueryDataset.from_arrays(X, np.zeros(6), qid=[1, 1, 2, 2, 3, 3])
    assert data.is_sparse
    assert np.shares_memory(data[1:].X.data, X.data)
    assert (data[1].X.toarray() == X.toarray()[2:4]).all()


def test_duplicate_sparse_entries_are_added_without_touching_the_callers_matrix():
    X = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    data = QueryDataset.from_arrays(X, [0.0])
    assert data.X.toarray().tolist() == [[0.0, 3.0]]
    assert X.nnz == 2


@pytest.mark.parametrize("which", [slice(0, 2), slice(None), slice(None, None, 2), [2, 0], [True, False, True], -1, 1])
def test_slices_are_the_queries_they_name(which):
    data = small(feature_names=["a", "b"], doc_ids=list("uvwxyz"), query_weight=[1.0, 2.0, 3.0])
    part = data[which]
    wanted = np.arange(3)[which]
    wanted = np.atleast_1d(wanted)
    assert part.query_ids.tolist() == data.query_ids[wanted].tolist()
    assert part.query_weight.tolist() == data.query_weight[wanted].tolist()
    for i, q in enumerate(wanted):
        rows = slice(data.ptr[q], data.ptr[q + 1])
        mine = slice(part.ptr[i], part.ptr[i + 1])
        assert (part.X[mine] == data.X[rows]).all()
        assert (part.y[mine] == data.y[rows]).all()
        assert (part.doc_ids[mine] == data.doc_ids[rows]).all()


def test_slicing_outside_raises():
    with pytest.raises(IndexError, match="query 3 of 3"):
        small()[3]
    with pytest.raises(InputError, match="needs 3 values"):
        small()[np.array([True])]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.randoms())
def test_permuting_rows_permutes_results(qid, random):
    n = len(qid)
    X = np.arange(n, dtype=np.float64)[:, None]
    perm = list(range(n))
    random.shuffle(perm)
    plain = QueryDataset.from_arrays(X, X[:, 0] + 100, qid=qid)
    mixed = QueryDataset.from_arrays(X[perm], X[perm, 0] + 100, qid=np.array(qid)[perm])
    for data in (plain, mixed):
        assert (data.y == data.X[:, 0] + 100).all()  # a grade stays with its row
        assert (data.qid == np.array(qid)[data.X[:, 0].astype(int)]).all()
    assert (plain.in_caller_order(plain.X[:, 0]) == np.arange(n)).all()
    assert (mixed.in_caller_order(mixed.X[:, 0]) == perm).all()
    assert (mixed.in_caller_order(mixed.qid) == np.array(qid)[perm]).all()


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=20))
def test_grouping_is_stable_and_by_first_appearance(qid):
    for ids in (np.array(qid), np.array(qid, dtype=object)):
        ptr, query_ids, order = group_rows(ids, len(qid))
        rows = np.arange(len(qid)) if order is None else order
        assert query_ids.tolist() == list(dict.fromkeys(qid))
        for q, name in enumerate(query_ids):
            assert rows[ptr[q] : ptr[q + 1]].tolist() == [i for i, v in enumerate(qid) if v == name]


def test_pandas_and_polars_frames_bring_their_names():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pd.DataFrame({"u": [1.0], "v": [2.0]}), pl.DataFrame({"u": [1.0], "v": [2.0]})):
        data = QueryDataset.from_arrays(frame, [1])
        assert data.feature_names == ("u", "v")
        assert data.X.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((0, 2)), "y": [], "qid": []}, "empty"),
        ({"X": np.zeros((2, 0))}, r"0 feature\(s\)"),
        ({"X": np.zeros(2)}, "two dimensions"),
        ({"X": [[1, 1], [1, np.nan]]}, "NaN in row 1, column 1"),
        ({"X": [[1, 1], [-np.inf, 1]]}, "infinity in row 1, column 0"),
        ({"X": [[1, 1], [np.inf, 1]], "missing": "zero"}, "infinity in row 1, column 0"),
        ({"X": [[1, 1], [1, 1]], "missing": "drop"}, "missing must be"),
        ({"X": np.zeros((2, 2), dtype=complex)}, "Complex"),
        ({"X": [["a", "b"], ["c", "d"]]}, "must hold numbers"),
        ({"X": sparse.csr_array(np.array([[1.0, 0], [0, np.nan]]))}, "NaN in row 1, column 1"),
        ({"y": [1]}, "1 labels for 2 documents"),
        ({"y": [1, np.nan]}, "y has nan in row 1"),
        ({"y": ["good", "bad"]}, "row 0 is"),
        ({"y": [[1, 2], [3, 4]]}, "one dimension"),
        ({"y": None}, "y is missing"),
        ({"qid": [1]}, "one id per document"),
        ({"qid": [1.0, np.nan]}, r"missing \(NaN\) in row 1"),
        ({"qid": np.array(["a", None], dtype=object)}, r"missing \(None\) in row 1"),
        ({"doc_ids": ["a"]}, "one id per document"),
        ({"feature_names": ["a"]}, "1 names for 2 features"),
        ({"feature_names": ["a", "a"]}, "'a' more than once"),
        ({"query_weight": [1, 2, 3]}, "one weight per query"),
        ({"query_weight": [1, -1]}, "-1.0 for query 1"),
    ],
)
def test_bad_input_is_named(change, message):
    given_ = {"X": np.zeros((2, 2)), "y": [0, 1], "qid": [0, 1]} | change
    with pytest.raises(InputError, match=message) as caught:
        QueryDataset.from_arrays(given_.pop("X"), given_.pop("y"), given_.pop("qid"), **given_)
    assert "\n" not in str(caught.value)


def test_missing_zero_fills_a_copy():
    X = np.array([[1.0, np.nan]])
    assert QueryDataset.from_arrays(X, [0], missing="zero").X.tolist() == [[1.0, 0.0]]
    assert np.isnan(X[0, 1])


def test_large_finite_values_are_not_taken_for_infinity():
    X = np.full((2, 2), np.finfo(np.float64).max)
    assert QueryDataset.from_arrays(X, [0, 1]).X.shape == (2, 2)


def test_negative_labels_are_kept_but_are_not_grades():
    data = QueryDataset.from_arrays([[1.0], [2.0]], [-1, 1])
    with pytest.raises(InputError, match="negative grade -1 in row 0"):
        validation.check_grades(data.y)


def test_informative_queries_have_two_grades():
    data = QueryDataset.from_arrays(np.zeros((5, 1)), [0, 1, 2, 2, 0], qid=[0, 0, 1, 1, 2])
    assert data.informative.tolist() == [True, False, False]


def test_empty_query_in_the_middle():
    data = QueryDataset(X=np.zeros((2, 1)), y=np.array([0.0, 1.0]), ptr=np.array([0, 2, 2]), query_ids=np.array([1, 2]))
    assert data.informative.tolist() == [True, False]
    assert data[1].n_docs == 0
    assert data.info().shortest == 0


def test_info_counts():
    info = small().info()
    assert (info.n_queries, info.n_docs, info.longest, info.shortest) == (3, 6, 3, 1)
    assert info.grades == {0.0: 3, 1.0: 2, 2.0: 1}
    assert (info.blank_queries, info.uninformative_queries, info.constant_features) == (1, 1, 0)
    dense = QueryDataset.from_arrays(np.eye(3), np.zeros(3))
    thin = QueryDataset.from_arrays(sparse.csr_array(np.eye(3)), np.zeros(3))
    assert thin.info().density == dense.info().density == 1 / 3
    assert thin.info().constant_features == dense.info().constant_features == 0
    assert "33.3% non-zero" in str(thin.info())


def test_pickle_round_trip():
    data = small(doc_ids=list("uvwxyz"))
    again = pickle.loads(pickle.dumps(data))
    assert (again.X == data.X).all()
    assert again.doc_ids.tolist() == data.doc_ids.tolist()
