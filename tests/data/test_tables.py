"""Tables of every make give the same data set, and Parquet brings it back as it was."""

from __future__ import annotations

import bz2
import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from toprank.data.dataset import QueryDataset
from toprank.data.tables import read_table, write_parquet
from toprank.errors import InputError, MissingExtraError, ParseError

COLUMNS = {
    "query": ["b", "a", "b", "a", "c"],
    "label": [2, 0, 1, 1, 0],
    "bm25": [1.5, 2.5, 3.5, 4.5, 5.5],
    "url": ["u0", "u1", "u2", "u3", "u4"],
    "clicks": [10, 20, 30, 40, 50],
    "votes": [2.0, 1.0, 2.0, 1.0, 0.5],
}


def csv_file(folder: Path, suffix: str = ".csv") -> Path:
    text = pd.DataFrame(COLUMNS).to_csv(index=False, sep="\t" if ".tsv" in suffix else ",").encode()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(suffix).suffix, bytes)
    path = folder / f"data{suffix}"
    path.write_bytes(pack(text))
    return path


def parquet_file(folder: Path) -> Path:
    path = folder / "data.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    return path


SOURCES = {
    "pandas": lambda folder: pd.DataFrame(COLUMNS),
    "pandas, arrow types": lambda folder: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda folder: pl.DataFrame(COLUMNS),
    "polars, lazy": lambda folder: pl.LazyFrame(COLUMNS),
    "arrow": lambda folder: pa.table(COLUMNS),
    "arrow, in chunks": lambda folder: pa.concat_tables([pa.table(COLUMNS).slice(0, 2), pa.table(COLUMNS).slice(2)]),
    "parquet": parquet_file,
    "csv": csv_file,
    "csv.gz": lambda folder: csv_file(folder, ".csv.gz"),
    "tsv.bz2": lambda folder: csv_file(folder, ".tsv.bz2"),
    "path as text": lambda folder: str(csv_file(folder)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_data_set(name: str, tmp_path: Path) -> None:
    data = read_table(SOURCES[name](tmp_path), doc_id="url", query_weight="votes")
    assert data.feature_names == ("bm25", "clicks")
    assert data.query_ids.tolist() == ["b", "a", "c"]
    assert data.ptr.tolist() == [0, 2, 4, 5]
    assert data.y.tolist() == [2, 1, 0, 1, 0]
    assert data.X.tolist() == [[1.5, 10], [3.5, 30], [2.5, 20], [4.5, 40], [5.5, 50]]
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.doc_ids.tolist() == ["u0", "u2", "u1", "u3", "u4"]
    assert data.doc_ids.dtype.kind == "U"
    assert data.query_weight.tolist() == [2.0, 1.0, 0.5]
    assert data.in_caller_order(data.X).tolist() == np.column_stack([COLUMNS["bm25"], COLUMNS["clicks"]]).tolist()


def test_csv_reads_the_same_without_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = csv_file(tmp_path, ".csv.gz")
    with_arrow = read_table(path, doc_id="url", query_weight="votes")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    without = read_table(path, doc_id="url", query_weight="votes")
    assert without.X.tobytes() == with_arrow.X.tobytes()
    for name in ("y", "ptr", "query_ids", "doc_ids", "query_weight", "order"):
        assert np.array_equal(getattr(without, name), getattr(with_arrow, name)), name
    (tmp_path / "bad.csv").write_text("query,label,x\n1,0,1\n1,0\n")
    with pytest.raises(ParseError, match=r"bad.csv:3: expected 3 columns, got 2"):
        read_table(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("")
    with pytest.raises(ParseError, match="no header row"):
        read_table(tmp_path / "bad.csv")
    (tmp_path / "gap.csv").write_text("query,label,x,id\n1,0,1,a\n1,0,,b\n,1,2,\n")
    with pytest.raises(InputError, match="column 'x' is empty in line 3:"):
        read_table(tmp_path / "gap.csv", qid=None, exclude=["query", "id"])
    with pytest.raises(InputError, match="column 'id' is empty in line 4:"):
        read_table(tmp_path / "gap.csv", qid="id", features=["x"])
    with pytest.raises(MissingExtraError, match=r"reading Parquet needs pyarrow: pip install pyarrow"):
        read_table(tmp_path / "x.parquet")
    with pytest.raises(MissingExtraError, match="writing Parquet needs pyarrow"):
        write_parquet(with_arrow, tmp_path / "x.parquet")


@pytest.mark.parametrize(("frame", "dtype"), [
    ({"x": np.float32([1, 2]), "z": np.float32([3, 4])}, np.float32),
    ({"x": np.float32([1, 2]), "z": np.float64([3, 4])}, np.float64),
    ({"x": np.float32([1, 2]), "z": [True, False]}, np.float64),
    ({"x": np.array([1, 2], dtype=np.int8)}, np.float64),
])  # fmt: skip
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_float32_stays_only_if_every_feature_has_it(frame, dtype, make) -> None:
    data = read_table(make({"query": [1, 1], "label": [0, 1], **frame}))
    assert data.X.dtype == dtype
    assert data.X.T.tolist() == [[float(v) for v in column] for column in frame.values()]


def test_more_columns_than_a_block_and_more_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 37))
    qid = rng.integers(0, 50, size=9000)
    frame = pd.DataFrame(X).assign(query=qid, label=1.0)
    data = read_table(frame)
    assert np.array_equal(data.in_caller_order(data.X), X)
    assert np.array_equal(data.in_caller_order(data.qid), qid.astype(str))
    assert data.feature_names == tuple(str(j) for j in range(37))


def test_feature_choice() -> None:
    frame = pl.DataFrame(COLUMNS)
    assert read_table(frame, features=["clicks", "bm25"]).X[0].tolist() == [10, 1.5]
    assert read_table(frame, exclude=["url"]).feature_names == ("bm25", "clicks", "votes")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {},
            {},
            "column 'url' (String) cannot be a feature, since features are numbers: exclude it, or name it as",
        ),
        (
            {},
            {"label": "lable"},
            "the table has no column 'lable' (did you mean 'label'?): its columns are 'query', 'label'",
        ),
        ({}, {"qid": "zzz"}, "no column 'zzz': its columns are 'query', 'label', 'bm25', 'url', 'clicks', 'votes'"),
        ({}, {"features": ["bm52"]}, "the table has no column 'bm52' (did you mean 'bm25'?)"),
        ({}, {"exclude": ["ulr"]}, "did you mean 'url'?"),
        ({}, {"label": "url"}, "column 'url' must hold numbers, it holds 'u0' in row 0"),
        ({"label": [1, 2, None, 0, 0]}, {"features": ["bm25"]}, "column 'label' is empty in row 2"),
        ({"query": ["a", None, "b", "b", "b"]}, {"features": ["bm25"]}, "column 'query' is empty in row 1"),
        ({"bm25": [1.0, 2.0, 3.0, None, 0.0]}, {"features": ["bm25"]}, "column 'bm25' is empty in row 3"),
        ({"bm25": [1.0, 2.0, 3.0, np.inf, 0]}, {"features": ["bm25"]}, "column 'bm25' is infinite in row 3: clip"),
        ({"votes": [1, 1, 1, 2, 1]}, {"features": ["bm25"], "query_weight": "votes"}, "row 3 differs"),
        (
            {"url": [None, "x", "y", "z", "w"]},
            {"features": ["bm25"], "doc_id": "url"},
            "column 'url' is empty in row 0",
        ),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_trouble_is_named_by_column_and_row(change, options, message: str, make) -> None:
    with pytest.raises(InputError) as caught:
        read_table(make(COLUMNS | change), **options)
    assert message in str(caught.value).replace("Unknown", "String")  # old narwhals do not know the text of pandas 3


def test_rows_are_named_in_the_callers_order() -> None:
    frame = {"query": [1, 2, 1], "label": [0, 1, 2], "x": [1.0, float("nan"), 2.0]}
    with pytest.raises(InputError, match="column 'x' is empty in row 1"):
        read_table(pl.DataFrame(frame))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_zero_fills_both_nulls_and_nans(make) -> None:
    frame = {"query": [1, 1, 1], "label": [0, 1, 2], "x": [1.0, None, float("nan")], "n": [None, 3, 4]}
    assert read_table(make(frame), missing="zero").X.tolist() == [[1, 0], [0, 3], [0, 4]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "cannot read a table from int: give a path or a pandas, polars or Arrow table"),
        ({"label": [1]}, "cannot read a table from dict"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column names must differ"),
        (pd.DataFrame({"label": [1], "query": [1]}), "no feature column is left beside 'label', 'query'"),
        (pd.DataFrame({"label": [], "query": [], "x": []}, dtype=float), "the table is empty"),
        ("train.txt", "a table is .parquet, .csv, .tsv or .xlsx"),
        ("no-such.csv", "no-such.csv cannot be read: No such file"),
        ("no-such.parquet", "no-such.parquet cannot be read: No such file"),
    ],
)
def test_what_is_no_table_is_refused(source, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_table(source)
    assert message in str(caught.value)


def test_broken_files_are_parse_errors(tmp_path: Path) -> None:
    broken = {
        "x.parquet": ("PAR", "x.parquet: not a readable"),
        "x.csv": ("a,b\n1,2\n1\n", "x.csv:3: expected 2 columns, got 1"),
        "y.csv": ("", "y.csv: not a readable"),
    }
    for name, (text, says) in broken.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(ParseError, match=says):
            read_table(tmp_path / name)


ids = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), min_size=6, max_size=6)


@settings(max_examples=30, deadline=None)
@given(
    dtype=st.sampled_from([np.float32, np.float64]),
    qid=st.sampled_from([[1, 1, 2, 2, 2, 3], ["x", "x", "ü", "y", "y", "y"], [1, 2, 1, 2, 1, 2], None]),
    doc_ids=st.none() | ids,
    named=st.booleans(),
    weighted=st.booleans(),
    sparse=st.booleans(),
)
def test_parquet_round_trip(tmp_path_factory, dtype, qid, doc_ids, named: bool, weighted: bool, sparse: bool) -> None:
    X = np.array([[0.1, 0, -3], [1e30, 0, 7], [0, 0, 0], [1, 2, 3], [-0.5, 1e-30, 0], [9, 0, 1]], dtype=dtype)
    n_queries = 1 if qid is None else len(set(qid))
    data = QueryDataset.from_arrays(
        csr_array(X) if sparse else X,
        [0, 1, 2, 0.5, 1, 0],
        qid,
        feature_names=["a", "b", "ç"] if named else None,
        doc_ids=doc_ids,
        query_weight=np.arange(n_queries) + 0.5 if weighted else None,
    )
    back = read_table(write_parquet(data, tmp_path_factory.mktemp("round") / "data.parquet"))
    assert back.is_sparse == sparse
    assert back.X.dtype == dtype
    dense, dense_back = (d.X.toarray() if sparse else d.X for d in (data, back))
    assert dense_back.tobytes() == dense.tobytes()
    assert back.feature_names == data.feature_names
    for name in ("y", "ptr", "query_ids", "doc_ids", "query_weight"):
        one, other = getattr(data, name), getattr(back, name)
        if one is None:
            assert other is None
        elif name in ("query_ids", "doc_ids"):
            assert [str(each) for each in one] == other.tolist()
        else:
            assert one.dtype.kind == other.dtype.kind
            assert np.array_equal(one, other), name


def test_parquet_is_whole_or_absent(tmp_path: Path) -> None:
    target = tmp_path / "data.parquet"
    bad = QueryDataset.from_arrays(np.ones((2, 1)), [0, 1], feature_names=["label"])
    with pytest.raises(InputError, match="a feature is called 'label'"):
        write_parquet(bad, target)
    assert not list(tmp_path.iterdir())
    good = QueryDataset.from_arrays(np.ones((2, 1)), [0, 1])
    write_parquet(good, target)
    write_parquet(good, target)
    assert [path.name for path in tmp_path.iterdir()] == ["data.parquet"]


def test_other_programs_read_our_parquet(tmp_path: Path) -> None:
    data = QueryDataset.from_arrays(np.eye(2), [0, 1], ["q", "q"], doc_ids=["d1", "d2"])
    path = write_parquet(data, tmp_path / "data.parquet")
    frame = pl.read_parquet(path)
    assert frame.columns == ["query", "label", "doc_id", "f1", "f2"]
    assert frame["f2"].to_list() == [0, 1]
