"""Ids are kept as they are written; what would fill the memory is refused; a stalled input can be interrupted."""

from __future__ import annotations

import array
import gzip
import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.data.validation import unevenness
from toprank.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:.* has no qid")


def test_letor_ids_that_are_written_differently_differ():
    data = tr.read_letor(io.BytesIO(b"1 qid:007 1:1\n0 qid:7 1:2\n1 qid:+7 1:3\n0 qid:-0 1:4\n0 qid:0 1:5\n"))
    assert data.query_ids.tolist() == ["007", "7", "+7", "-0", "0"]
    out = io.BytesIO()
    tr.write_letor(data, out)
    assert tr.read_letor(io.BytesIO(out.getvalue())).query_ids.tolist() == ["007", "7", "+7", "-0", "0"]
    assert tr.read_letor(io.BytesIO(b"1 qid:7 1:1\n0 qid:-7 1:2\n0 qid:0 1:2\n")).query_ids.tolist() == ["7", "-7", "0"]


def test_ids_of_different_types_differ():
    data = tr.QueryDataset.from_arrays(np.eye(3), [0, 1, 2], [1, "1", 1])
    assert data.query_ids.tolist() == [1, "1"]
    assert data.lengths.tolist() == [2, 1]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query": [1, "1", b"a", "a"], "label": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})
    assert tr.read_table(frame).query_ids.tolist() == ["1", "a"]  # in a table an id is its text


@pytest.mark.parametrize(
    "ids", [np.array(["2020-01-01", "NaT"], "M8[D]"), np.array([1, "NaT"], "m8[s]"), [1.0, np.nan]]
)
def test_an_id_that_is_missing_is_refused(ids):
    with pytest.raises(InputError, match=r"qid is missing \((NaT|nan|NaN)\) in row 1"):
        tr.QueryDataset.from_arrays(np.eye(2), [0, 1], ids)


@pytest.mark.parametrize("stream", [False, True])
def test_query_ids_in_comments_are_seen(tmp_path, stream):
    def read(text):
        file = io.BytesIO(text)
        return tr.stream_letor(file, tmp_path / f"{len(list(tmp_path.iterdir()))}") if stream else tr.read_letor(file)

    data = read(b"1 1:0.5 2:1 # 12\n0 1:0.25 # 12\n2 2:1 # 7\n")
    assert data.query_ids.tolist() == ["12", "7"]
    assert data.lengths.tolist() == [2, 1]
    assert data.doc_ids is None
    assert read(b"1 1:1 # 012\n0 1:2 # 012\n2 1:3 # 7\n").query_ids.tolist() == ["012", "7"]
    apart = read(b"1 1:1 # 12\n2 1:2 # 7\n0 1:3 # 12\n")
    assert apart.order.tolist() == [0, 2, 1]
    one_list = read(b"1 1:1 # 12\n0 1:2 # 13\n")
    assert (one_list.n_queries, one_list.doc_ids.tolist()) == (1, ["12", "13"])
    assert read(b"1 1:1 # spam\n0 1:2 # spam\n").n_queries == 1
    assert read(b"1 qid:1 1:1 # 12\n0 qid:1 1:2 # 12\n").doc_ids.tolist() == ["12", "12"]


def test_a_feature_index_of_two_thousand_million_costs_nothing():
    data = tr.read_letor(io.BytesIO(b"1 qid:1 1:0.5 2000000000:1\n0 qid:1 1:0.5\n"))
    info = data.info()
    assert (info.n_features, info.constant_features) == (2_000_000_000, 1_999_999_999)


def test_constant_columns_of_sparse_rows():
    rng = np.random.default_rng(0)
    for _ in range(30):
        X = rng.integers(-1, 2, (3, 6)).astype(float)
        dense, sparse = (tr.QueryDataset.from_arrays(kind(X), [0, 1, 0]).info() for kind in (np.asarray, csr_array))
        assert dense.constant_features == sparse.constant_features == sum(len(set(column)) == 1 for column in X.T)


def test_a_packed_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.data._text.MOST_UNPACKED", 1 << 20)
    row = b"1," * 500 + b"1\n"
    names = b"query,label," + b",".join(b"c%d" % k for k in range(499)) + b"\n"
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(names + row * 5000))
    with pytest.raises(InputError, match=r"bomb\.csv\.gz unpacks to more than 200 times its size and 1 MB"):
        tr.read_table(tmp_path / "bomb.csv.gz")
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 500_000))
    with pytest.raises(InputError, match=r"bomb\.txt\.gz unpacks to more than 200 times"):
        tr.read_letor(tmp_path / "bomb.txt.gz")
    packed = (tmp_path / "bomb.txt.gz").read_bytes()
    assert len(packed) < 1 << 16  # what a pipe holds without a reader
    taken, given = os.pipe()
    os.write(given, packed)
    os.close(given)
    with open(taken, "rb") as pipe, pytest.raises(InputError, match="unpacks to more than 200 times"):
        tr.read_letor(pipe)
    rng = np.random.default_rng(0)
    text = b"".join(b"%d,%d,%f\n" % (k // 10, k % 3, x) for k, x in enumerate(rng.random(90_000)))
    (tmp_path / "fine.csv.gz").write_bytes(gzip.compress(b"query,label,x\n" + text))
    assert tr.read_table(tmp_path / "fine.csv.gz").n_docs == 90_000


def test_a_parquet_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("toprank.data._columns.MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr("toprank.data._columns._MOST_TIMES", 100)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    n = 200_000
    table = pa.table({"query": pa.array(np.zeros(n, dtype=np.int8)), "label": pa.array(np.zeros(n, dtype=np.int8))})
    for k in range(40):
        table = table.append_column(f"x{k}", table["label"])
    pq.write_table(table, tmp_path / "bomb.parquet", row_group_size=n)
    with pytest.raises(
        InputError, match="holds 200000 rows of 42 columns, which take more than 100 times its size and 1 MB"
    ):
        tr.read_table(tmp_path / "bomb.parquet")


def test_a_table_whose_features_would_not_fit_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    tr.write_parquet(tr.datasets.make_graded(n_queries=5, random_state=0), tmp_path / "t.parquet")
    monkeypatch.setattr("toprank.data.tables.physical_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"rows of 20 features take 0\.0 GB: more than this machine has"):
        tr.read_table(tmp_path / "t.parquet")


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_a_stalled_standard_input_can_be_interrupted():
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    command = [sys.executable, "-m", "toprank", "info", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"1 qid:1 1:1\n")
        process.stdin.flush()
        deadline = time.monotonic() + 120
        unread = array.array("i", [1])
        while unread[0] and time.monotonic() < deadline:  # an interrupt while Python starts is Python's own affair
            time.sleep(0.1)
            fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
        code = process.poll()
        process.kill()
    assert code in (130, -signal.SIGINT)


def test_unevenness_of_two_billion_columns_looks_at_those_that_are_written():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(6, 4)) * [1.0, 50.0, 0.0, 1e-3]
    dense[rng.random(dense.shape) < 0.3] = 0.0
    heights = np.abs(dense).max(axis=0)
    expected = heights.max() / np.median(heights[heights > 0])
    narrow = csr_array(dense)
    wide = csr_array((narrow.data, narrow.indices * 500_000_000, narrow.indptr), shape=(6, 2_000_000_000))
    assert [unevenness(X) for X in (dense, narrow, wide)] == [expected] * 3
