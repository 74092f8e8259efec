"""Data sets on disk: written whole or not at all, opened without reading, streamed from text of any size."""

from __future__ import annotations

import io
import json
import mmap
import os
import pickle
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import toprank as tr
from tests.data.test_letor import SMALL, texts
from toprank.data import _letor_chunk
from toprank.data.csr import is_sparse
from toprank.data.ids import same_ids
from toprank.data.mapped import read_in_any_order
from toprank.errors import InputError, ParseError

pytestmark = pytest.mark.filterwarnings("ignore:.* has no qid")


def same(a: tr.QueryDataset, b: tr.QueryDataset) -> None:
    assert a.is_sparse == b.is_sparse
    assert a.X.shape == b.X.shape
    for x, z in zip(*(((d.X.data, d.X.indices, d.X.indptr) if d.is_sparse else (d.X,)) for d in (a, b)), strict=True):
        assert x.dtype == z.dtype
        assert x.tobytes() == z.tobytes()
    for name in ("y", "ptr", "query_ids", "doc_ids", "query_weight"):
        x, z = getattr(a, name), getattr(b, name)
        assert (x is None) == (z is None)
        assert x is None or (x.tolist() == z.tolist() if x.dtype.kind == "f" else same_ids(x, z))
    assert a.feature_names == b.feature_names


def is_mapped(array: object) -> bool:
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


def example(sparse: bool = False, **options) -> tr.QueryDataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).astype(np.float32) * (rng.random((30, 4)) < 0.5)
    return tr.QueryDataset.from_arrays(
        csr_array(X) if sparse else X, rng.integers(0, 3, 30), np.arange(30) // 7, **options
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_saved_and_opened(tmp_path, sparse):
    data = example(
        sparse,
        feature_names=["a", "b", "c", "d"],
        doc_ids=np.array([f"d{k}" for k in range(30)], dtype=object),
        query_weight=[1, 2, 3, 4, 5],
    )
    opened = tr.open_queries(tr.save_queries(data, tmp_path / "new" / "queries"))
    same(opened, data)
    assert is_mapped(opened.X.data if sparse else opened.X)
    assert is_mapped(opened.doc_ids)
    assert sparse is False or opened.X.has_canonical_format
    same(tr.open_queries(tmp_path / "new" / "queries", 1, 3), data[1:3])
    same(tr.open_queries(tmp_path / "new" / "queries", 2), data[2:])


def test_a_pickle_is_a_place_on_disk(tmp_path):
    rng = np.random.default_rng(0)
    data = tr.QueryDataset.from_arrays(rng.normal(size=(20_000, 10)), np.zeros(20_000), np.arange(20_000) // 100)
    opened = tr.open_queries(tr.save_queries(data, tmp_path / "queries"))
    for part, want in ((opened, data), (opened[3:9], data[3:9]), (opened[3:9][2:4], data[5:7])):
        packed = pickle.dumps(part)
        assert len(packed) < 0.2 * data.X.nbytes  # the labels, not the features
        same(pickle.loads(packed), want)


def test_a_folder_is_new_and_whole(tmp_path, monkeypatch):
    folder = tr.save_queries(example(), tmp_path / "queries")
    with pytest.raises(InputError, match=r"queries exists already: choose another folder or remove it"):
        tr.save_queries(example(), folder)
    with pytest.raises(InputError, match=r"queries exists already"):
        tr.stream_letor(io.BytesIO(SMALL), folder)
    with pytest.raises(InputError, match=r"folder must be the name of a folder, got 3"):
        tr.save_queries(example(), 3)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*: (Not a directory|File exists)"):
        tr.save_queries(example(), tmp_path / "file" / "queries")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(InputError, match=r"cannot write .*other: No space left on device"):
        tr.save_queries(example(), tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "queries"]


def test_what_is_not_such_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"is not a folder written by toprank: it has no readable header.json"):
        tr.open_queries(tmp_path)
    for text in (b"[]", b'{"format": "other", "version": 1}', b'{"format": "toprank-queries", "version": 99}'):
        (tmp_path / "header.json").write_bytes(text)
        with pytest.raises(InputError, match=r"is not version 1 of the toprank-queries format"):
            tr.open_queries(tmp_path)
    (tmp_path / "header.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"no readable header.json"):
        tr.open_queries(tmp_path)


@pytest.mark.parametrize("sparse", [False, True])
def test_damaged_arrays(tmp_path, sparse):
    for k, name in enumerate(["y", "ptr", "indices" if sparse else "X"]):
        for damage in ("cut", "empty", "short"):
            folder = tr.save_queries(example(sparse), tmp_path / f"{k}{damage}")
            file = folder / f"{name}.npy"
            if damage == "short":
                np.save(file, np.load(file)[:-1])
            else:
                file.write_bytes(file.read_bytes()[: {"cut": -3, "empty": 0}[damage]])
            with pytest.raises(InputError):
                tr.open_queries(folder).X.sum()


def test_the_header_says_what_the_arrays_are(tmp_path):
    folder = tr.save_queries(example(), tmp_path / "queries")
    header = json.loads((folder / "header.json").read_text())
    assert header == {"format": "toprank-queries", "version": 1, "n_features": 4, "feature_names": None}


def result_or_error(job):
    try:
        return job()
    except InputError as error:
        return error


@given(texts(), st.sampled_from([None, True, False]), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=80, deadline=None)
def test_a_stream_gives_what_reading_gives(tmp_path_factory, text, dense, dtype):
    folder = tmp_path_factory.mktemp("stream") / "queries"
    options = {"dense": dense, "dtype": dtype, "threads": 2}
    want = result_or_error(lambda: tr.read_letor(io.BytesIO(text), **options))
    if isinstance(want, InputError):
        found = result_or_error(lambda: tr.stream_letor(io.BytesIO(text), folder, **options))
        assert (type(found), str(found)) == (type(want), str(want))
        assert list(folder.parent.iterdir()) == []
        return
    data = tr.stream_letor(io.BytesIO(text), folder, **options)
    same(data, want)
    assert data.mapped is not None
    assert list(folder.parent.iterdir()) == [folder]
    assert {path.suffix for path in folder.iterdir()} == {".npy", ".json"}


@pytest.mark.parametrize("order", ["together", "apart"])
@pytest.mark.parametrize("dense", [True, False])
def test_a_stream_of_many_blocks(tmp_path, monkeypatch, dense, order):
    monkeypatch.setattr(_letor_chunk, "read_chunks", partial(_letor_chunk.read_chunks, size=100))
    text = b"".join(
        b"%d qid:%d 1:%d 3:0.5 %d:7 #docid = d%d\n" % (k % 3, k // 9 if order == "together" else k % 9, k, 4 + k % 9, k)
        for k in range(400)
    )
    data = tr.stream_letor(io.BytesIO(text), tmp_path / "queries", dense=dense)
    same(data, tr.read_letor(io.BytesIO(text), dense=dense))


def test_a_bad_line_leaves_nothing_behind(tmp_path):
    with pytest.raises(ParseError, match=r"<stream>:2:3: expected qid: as on the lines before, found 'x'"):
        tr.stream_letor(io.BytesIO(b"1 qid:1 1:1\n1 x\n"), tmp_path / "queries")
    with pytest.raises(InputError, match=r"pass dense=False"):
        tr.stream_letor(io.BytesIO(b"1 qid:1 1:1 2000000000:1\n"), tmp_path / "queries", dense=True)
    assert list(tmp_path.iterdir()) == []


MEMORY = """
import sys, toprank as tr
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
tr.stream_letor(sys.argv[1], sys.argv[3] + "small", threads=2)
before = peak()
data = tr.stream_letor(sys.argv[2], sys.argv[3] + "large", threads=2)
print(peak() - before, data.X.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see the peak of memory")
def test_memory_stays_bounded_whatever_the_size(tmp_path):
    block = b"".join(
        b"1 qid:NUMBER%02d " % (r // 50) + b" ".join(b"%d:%d" % (k, (r + k) % 9) for k in range(1, 101)) + b"\n"
        for r in range(1000)
    )
    for name, repeats in (("small", 10), ("large", 200)):
        with open(tmp_path / name, "wb") as file:
            for k in range(repeats):
                file.write(block.replace(b"NUMBER", b"%d" % k))
    command = [sys.executable, "-c", MEMORY, *(str(tmp_path / name) for name in ("small", "large", "out-"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    more, size = map(int, done.stdout.split())
    assert size == 80_000_000
    assert more < size / 3  # page cache mapped in by chance counts too


SHUFFLED = {
    "online": tr.SlamPerceptron(epochs=1),
    "kernel": tr.KernelSlamPerceptron(epochs=1),
    "batches of queries": tr.ListNet(solver=tr.solvers.MiniBatch(epochs=1)),
    "batches of rows": tr.PerceptronAtK(k=2, shuffle="batches", epochs=1),
    "sampled pages": tr.PDGD(epochs=1),
}


@pytest.mark.skipif(not hasattr(mmap, "MADV_RANDOM"), reason="this system takes no advice about maps")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", SHUFFLED)
def test_shuffled_epochs_read_a_mapped_file_by_the_row(tmp_path, sparse, kind, monkeypatch):
    """Read ahead as if rows came in order, an epoch over a file larger than memory takes seventy times its size."""
    made = tr.datasets.make_graded(n_queries=80, n_docs=5, random_state=0)
    data = made.with_X(csr_array(made.X)) if sparse else made
    data = replace(data, y=(data.y > 1) * 1.0)
    mapped = tr.open_queries(tr.save_queries(data, tmp_path / "folder"))
    maps, told = 2 if sparse else 1, []
    real = read_in_any_order.__globals__["_advised"]

    @contextmanager
    def advised(X, order):
        parts = (X.data, X.indices) if is_sparse(X) else (X,)
        with real(X, order):
            told.append(sum("rr" in flags(part.ctypes.data) for part in parts))
            yield
        assert not any("rr" in flags(part.ctypes.data) for part in parts)

    monkeypatch.setitem(read_in_any_order.__globals__, "_advised", advised)
    fitted = clone(SHUFFLED[kind]).fit_queries(mapped)
    assert told == [maps] * len(told) != []
    if hasattr(fitted, "partial_fit"):  # its certificates play the rounds again
        told.clear()
        fitted.certify(mapped)
        assert maps in told
    monkeypatch.undo()
    assert (fitted.predict(data) == clone(SHUFFLED[kind]).fit_queries(data).predict(data)).all()


@pytest.mark.skipif(not hasattr(mmap, "MADV_RANDOM"), reason="this system takes no advice about maps")
def test_rows_in_their_own_order_are_read_ahead(tmp_path):
    data = tr.open_queries(tr.save_queries(tr.datasets.make_graded(n_queries=20, random_state=0), tmp_path / "folder"))
    for order, advised in ((np.arange(20), False), (np.array([0, 2, 1]), True), (np.array([7]), False)):
        with read_in_any_order(data.X, order):
            assert ("rr" in flags(data.X.ctypes.data)) == advised


def flags(address):
    """What the system was told about the memory at an address ("rr": it is read in no order)."""
    found = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if head:
            found = int(head[1], 16) <= address < int(head[2], 16)
        elif found and line.startswith("VmFlags:"):
            return line.split()
    raise AssertionError("not mapped")


LARGE = """
import resource, sys, numpy as np, toprank as tr
from scipy.sparse import csr_array

held = lambda: int(open("/proc/self/statm").read().split()[1]) - int(open("/proc/self/statm").read().split()[2])
small = tr.datasets.make_graded(n_queries=3, random_state=0)
tr.SlamPerceptron(epochs=1).fit_queries(small.with_X(csr_array(small.X)))
before = held()
data = tr.open_queries(sys.argv[1])
assert data.X.nnz > 2**31 and data.X.indices.dtype == np.int32
ranker = tr.SlamPerceptron(epochs=1).fit_queries(data)
assert np.flatnonzero(ranker.coef_).tolist() == [0, 1, 2]
assert np.sign(ranker.predict(data[-1])).tolist() == [0, 1]
print((held() - before) * resource.getpagesize())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="counts the pages that a process owns")
def test_more_than_2_to_the_31_sparse_values_are_mapped_without_a_copy(tmp_path):
    """8 GiB of columns beside values that are a hole in the file, but for three in the very last row.

    Only the first and the last list can teach: the one between them is checked, and not learned from.
    """
    if shutil.disk_usage(tmp_path).free < 12 << 30:
        pytest.skip("needs 12 GiB of disk")
    width, rows = 1 << 20, 2050
    grades = np.zeros(rows)
    grades[[1, -1]] = 1
    lists = np.repeat([0, 1, 2], [2, rows - 4, 2])
    folder = tr.save_queries(tr.QueryDataset.from_arrays(csr_array((rows, width)), grades, lists), tmp_path / "f")
    head = {"fortran_order": False, "shape": (rows * width,)}
    with open(folder / "indices.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, head | {"descr": "<i4"})
        for _ in range(rows):
            file.write(np.arange(width, dtype=np.int32))
    with open(folder / "values.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, head | {"descr": "<f4"})
        start = file.tell()
        file.truncate(start + 4 * rows * width)
        file.seek(start + 4 * (rows - 1) * width)
        file.write(np.ones(3, dtype=np.float32))
    np.save(folder / "indptr.npy", np.arange(rows + 1, dtype=np.int64) * width)
    try:
        done = subprocess.run([sys.executable, "-c", LARGE, str(folder)], capture_output=True, text=True, check=True)
    finally:
        shutil.rmtree(folder)
    assert int(done.stdout) < 1 << 29


@pytest.mark.parametrize("sparse", [False, True])
def test_a_file_that_is_cut_after_it_was_opened_is_an_error_and_not_the_end_of_the_process(tmp_path, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 6))
    made = tr.QueryDataset.from_arrays(csr_array(X) if sparse else X, rng.integers(0, 3, 4_000), np.arange(4_000) // 10)
    ranker = tr.RankBoost(rounds=2).fit_queries(made[:20])
    folder = tr.save_queries(made, tmp_path / "queries")
    opened = tr.open_queries(folder)
    file = folder / ("values.npy" if sparse else "X.npy")
    for size in (file.stat().st_size // 2, 0):
        os.truncate(file, size)
        for use in (ranker.predict, tr.ListNet().fit_queries, lambda data: tr.evaluate(ranker, data), ranker.certify):
            with pytest.raises(tr.InputError, match="it was cut meanwhile; write the folder again") as told:
                use(opened)
            assert "\n" not in str(told.value)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_cell_that_became_nan_after_the_folder_was_opened_is_named(tmp_path, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    made = tr.QueryDataset.from_arrays(csr_array(X) if sparse else X, rng.integers(0, 3, 400), np.arange(400) // 10)
    ranker = tr.RankSVM().fit_queries(made)
    folder = tr.save_queries(made, tmp_path / "queries")
    opened = tr.open_queries(folder)
    written = np.load(folder / ("values.npy" if sparse else "X.npy"), mmap_mode="r+")
    written.reshape(-1)[6 * 70 + 2] = np.nan
    written.flush()
    for use in (ranker.predict, tr.ListNet().fit_queries, lambda data: tr.evaluate(ranker, data)):
        with pytest.raises(tr.InputError, match="NaN in row 70, column 2"):
            use(opened)
