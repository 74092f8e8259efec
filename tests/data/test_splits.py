"""Splits never cut through a query, and scikit-learn accepts them as its own."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from toprank.data.dataset import QueryDataset
from toprank.data.splits import QueryKFold, find_part, query_train_test_split, read_fold, read_folds, stacked, widen
from toprank.errors import InputError

qids = st.lists(st.integers(0, 12), min_size=2, max_size=60).filter(lambda ids: len(set(ids)) >= 2)


@given(qids, st.data())
def test_folds_partition_the_queries(ids: list[int], draw: st.DataObject) -> None:
    n_splits = draw.draw(st.integers(2, len(set(ids))))
    shuffle = draw.draw(st.booleans())
    splitter = QueryKFold(n_splits, shuffle=shuffle, random_state=3 if shuffle else None)
    qid = np.array(ids)
    folds = list(splitter.split(np.zeros((len(ids), 1)), groups=qid))
    assert len(folds) == n_splits == splitter.get_n_splits()
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(ids)))
    sizes = []
    for train, test in folds:
        assert not set(qid[train]) & set(qid[test])
        assert len(train) + len(test) == len(ids)
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        sizes.append(len(set(qid[test])))
    assert max(sizes) - min(sizes) <= 1


@given(qids, st.integers(0, 5))
def test_train_test_split_of_arrays_and_of_a_data_set_agree(ids: list[int], seed: int) -> None:
    X = np.arange(len(ids), dtype=float)[:, None]
    y = np.arange(len(ids)) % 3
    parts = query_train_test_split(X, y, ids, test_size=0.3, random_state=seed)
    X_train, X_test, y_train, y_test, q_train, q_test = parts
    assert not set(q_train) & set(q_test)
    assert np.array_equal(np.sort(np.concatenate([X_train, X_test])[:, 0]), X[:, 0])
    assert np.array_equal(y_train, y[X_train[:, 0].astype(int)])
    assert np.array_equal(y_test, y[X_test[:, 0].astype(int)])
    assert len(set(q_test)) == int(np.ceil(0.3 * len(set(ids))))
    train, test = query_train_test_split(QueryDataset.from_arrays(X, y, ids), test_size=0.3, random_state=seed)
    assert set(train.query_ids) == set(q_train)
    assert set(test.query_ids) == set(q_test)


def test_a_seed_fixes_the_shuffle_and_no_shuffle_keeps_the_order() -> None:
    X, qid = np.zeros((10, 1)), np.repeat(np.arange(10), 1)
    plain = [test.tolist() for _, test in QueryKFold(5).split(X, groups=qid)]
    assert plain == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    first, again, other = (
        [test.tolist() for _, test in QueryKFold(5, shuffle=True, random_state=s).split(X, groups=qid)]
        for s in (1, 1, 2)
    )
    assert first == again
    assert first not in (plain, other)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, csr_array, lambda X: X.tolist()])
def test_rows_are_taken_from_any_container(kind) -> None:
    X = np.arange(8.0).reshape(4, 2) + 1
    X_train, X_test, *_ = query_train_test_split(kind(X), [0, 1, 0, 1], list("abab"), test_size=1, random_state=0)
    assert X_train.shape == X_test.shape == (2, 2)
    dense = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (X_train, X_test)]
    assert sorted(np.concatenate(dense)[:, 0]) == [1, 3, 5, 7]


def test_scikit_learn_takes_the_splitter_with_groups() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, cross_validate

    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((60, 3)), rng.standard_normal(60), np.repeat(np.arange(12), 5)
    result = cross_validate(Ridge(), X, y, cv=QueryKFold(4), groups=qid, return_indices=True)
    for train, test in zip(result["indices"]["train"], result["indices"]["test"], strict=True):
        assert not set(qid[train]) & set(qid[test])
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=QueryKFold(3, shuffle=True, random_state=0))
    assert search.fit(X, y, groups=qid).n_splits_ == 3


def test_routing_sends_qid_to_the_splitter() -> None:
    import sklearn
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import cross_validate

    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((60, 3)), rng.standard_normal(60), np.repeat(np.arange(12), 5)
    expected = [test.tolist() for _, test in QueryKFold(4).split(X, groups=qid)]
    with sklearn.config_context(enable_metadata_routing=True):
        for name in ("qid", "groups"):
            result = cross_validate(Ridge(), X, y, cv=QueryKFold(4), params={name: qid}, return_indices=True)
            assert [test.tolist() for test in result["indices"]["test"]] == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QueryKFold(1), "n_splits must be at least 2, got 1"),
        (lambda: QueryKFold(2.5), "n_splits must be a whole number"),
        (lambda: QueryKFold(random_state=1), "random_state has no effect without shuffle=True"),
        (lambda: next(QueryKFold(2).split(np.zeros((3, 1)))), "needs the query of each row: split(X, groups=qid)"),
        (lambda: next(QueryKFold(3).split(np.zeros((3, 1)), groups=[1, 1, 2])), "2 queries cannot fill 3 folds"),
        (lambda: next(QueryKFold(2).split(np.zeros((3, 1)), groups=[1, 2])), "one id per document (3)"),
        (lambda: query_train_test_split(np.zeros((3, 1)), [0, 1, 2]), "takes a QueryDataset, or X, y and qid"),
        (lambda: query_train_test_split(np.zeros((2, 1)), [0, 1], [1, 1]), "both parts need at least one"),
        (lambda: query_train_test_split(np.zeros((2, 1)), [0, 1], [1, 2], test_size=1.5), "test_size must be a share"),
        (lambda: query_train_test_split(np.zeros((2, 1)), [0, 1], [1, 2], test_size=2), "leaves 0 to train"),
        (lambda: query_train_test_split(np.zeros((2, 1)), [0, 1], [1, 2], test_size=True), "test_size must be a share"),
    ],
)
def test_what_cannot_be_split_is_named(call, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if name.endswith(".gz"):
        (folder / name).write_bytes(gzip.compress(text.encode()))
    else:
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    "names",
    [("train.txt", "vali.txt", "test.txt"), ("trainingset.txt", "validationset.txt", "testset.txt.gz")],
)
def test_folds_are_read_under_both_names_with_equal_columns(tmp_path: Path, names: tuple[str, str, str]) -> None:
    for fold in (1, 2, 10):
        for part, name in enumerate(names):
            wide = " 3:0.5" if part == 1 else ""
            _write(
                tmp_path / f"Fold{fold}", name, f"1 qid:{part}{fold} 1:0.5 2:{fold}{wide}\n0 qid:{part}{fold} 1:0.25\n"
            )
    folds = list(read_folds(tmp_path))
    assert len(folds) == 3
    for number, fold in zip((1, 2, 10), folds, strict=True):
        parts = (fold.train, fold.valid, fold.test)
        assert [part.query_ids.tolist() for part in parts] == [[f"{p}{number}"] for p in range(3)]
        assert {part.n_features for part in parts} == {3}
        assert fold.train.X[0].tolist() == [0.5, number, 0]
        assert fold.train.X.dtype == fold.valid.X.dtype


def test_parts_share_the_storage_of_the_train_part(tmp_path: Path) -> None:
    _write(tmp_path / "Fold1", "train.txt", "1 qid:1 50:1\n0 qid:1 1:0.25\n")
    for name in ("vali.txt", "test.txt"):
        _write(tmp_path / "Fold1", name, "1 qid:1 1:1 2:2\n")
    fold = read_fold(tmp_path, dtype=np.float64)
    assert [part.is_sparse for part in (fold.train, fold.valid, fold.test)] == [True] * 3
    assert fold.test.X.toarray()[0, :3].tolist() == [1, 2, 0]
    assert fold.test.X.shape == (1, 50)
    assert fold.valid.X.dtype == np.float64
    assert not read_fold(tmp_path, dense=True).test.is_sparse


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "Fold1", "train.txt", "1 qid:1 1:1\n")
    with pytest.raises(InputError, match=r"Fold1 has no valid part: looked for vali.txt, validationset.txt, valid.txt"):
        read_fold(tmp_path, 1)
    assert find_part(tmp_path, 1, "train").name == "train.txt"


def test_widening_keeps_values_and_storage() -> None:
    X = np.array([[1, 2], [0, 3]], dtype=np.float32)
    for given_X in (X, csr_array(X)):
        data = QueryDataset.from_arrays(given_X, [0, 1])
        wide = widen(data, 4)
        values = wide.X.toarray() if wide.is_sparse else wide.X
        assert values.tolist() == [[1, 2, 0, 0], [0, 3, 0, 0]]
        assert wide.X.dtype == np.float32
        assert wide.is_sparse == data.is_sparse
        assert widen(data, 2) is data


def test_stacked_parts_keep_every_array_beside_the_features():
    """Weights of documents too: they were lost where a contest fitted its winners again."""
    rng = np.random.default_rng(0)

    def part(n, **more):
        return QueryDataset.from_arrays(rng.normal(size=(n, 2)), rng.integers(0, 3, n), np.arange(n) // 2, **more)

    weighed = part(4, doc_weight=[1.0, 2.0, 3.0, 4.0], query_weight=[2.0, 5.0], doc_ids=list("abcd"))
    plain = part(3)
    both = stacked([weighed, plain])
    assert both.doc_weight.tolist() == [1.0, 2.0, 3.0, 4.0, 1.0, 1.0, 1.0]
    assert both.query_weight.tolist() == [2.0, 5.0, 1.0, 1.0]
    assert both.doc_ids is None
    assert stacked([weighed, weighed]).doc_ids.tolist() == list("abcdabcd")
    for q, (source, own) in enumerate([(weighed, 0), (weighed, 1), (plain, 0), (plain, 1)]):
        assert both[q].X.tobytes() == source[own].X.tobytes()
        assert both[q].y.tolist() == source[own].y.tolist()
    thin = stacked([p.with_X(csr_array(np.asarray(p.X))) for p in (weighed, plain)])
    assert thin.is_sparse
    assert (thin.X.toarray() == both.X).all()
