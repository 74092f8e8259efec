"""Weights of documents go wherever their documents go."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import toprank as tr
from toprank import InputError, QueryDataset


@pytest.fixture
def data():
    return QueryDataset.from_arrays(
        np.arange(12.0).reshape(6, 2), [0, 1, 0, 2, 1, 0], qid=list("abacba"), doc_weight=[0, 10, 20, 30, 40, 50]
    )


def test_weights_stay_with_their_rows(data):
    assert data.doc_weight.tolist() == [0, 20, 50, 10, 40, 30]  # grouped as X is
    np.testing.assert_array_equal(data.doc_weight, data.X[:, 0] * 5)
    for part in (data[1], data[1:], data[[2, 0]], data[np.array([True, False, True])]):
        np.testing.assert_array_equal(part.doc_weight, part.X[:, 0] * 5)
    assert "weighted         5" in str(data.info())
    assert "weighted" not in str(replace(data, doc_weight=None).info())


def test_files_keep_them(data, tmp_path):
    assert tr.read_table(tr.write_parquet(data, tmp_path / "d.parquet")).doc_weight.tolist() == data.doc_weight.tolist()
    mapped = tr.open_queries(tr.save_queries(data, tmp_path / "d"))
    assert mapped.doc_weight.tolist() == data.doc_weight.tolist()
    frame = pd.DataFrame({"query": ["a", "b", "a"], "label": [0, 1, 1], "x": [1.0, 2.0, 3.0], "doc_weight": [1, 2, 3]})
    read = tr.read_table(frame)
    assert read.feature_names == ("x",)
    assert read.doc_weight.tolist() == [1, 3, 2]
    with pytest.raises(InputError, match="LETOR text has no place for doc_weight"):
        tr.write_letor(data, io.BytesIO())


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], "one weight per document"),
        ([0, -1, 0], "doc_weight has -1.0 in row 1"),
        ([0, 0, np.nan], "nan in row 2"),
    ],
)
def test_bad_weights_are_named(weights, words):
    with pytest.raises(InputError, match=words):
        QueryDataset.from_arrays(np.ones((3, 1)), [0, 1, 0], doc_weight=weights)
