"""What is written as LETOR text is read back as it was."""

from __future__ import annotations

import io
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import toprank as tr
from toprank.errors import InputError

finite = {
    np.float32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    np.float64: st.floats(allow_nan=False, allow_infinity=False),
}


@st.composite
def datasets(draw) -> tr.QueryDataset:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    cells = st.one_of(st.just(0.0), finite[dtype])
    X = np.array(draw(st.lists(cells, min_size=n * d, max_size=n * d)), dtype=dtype).reshape(n, d)
    y = draw(st.lists(finite[np.float64], min_size=n, max_size=n))
    ids = st.one_of(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3), st.just(["q", "é#"[:1], "7b"]))
    qid = [draw(st.sampled_from(draw(ids))) for _ in range(n)] if draw(st.booleans()) else None
    if qid is not None and any(isinstance(q, str) for q in qid):
        qid = [f"q{q}" for q in qid]
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n\0"), min_size=1, max_size=6)
    doc_ids = draw(st.one_of(st.none(), st.lists(text, min_size=n, max_size=n)))
    sparse = draw(st.booleans())
    return tr.QueryDataset.from_arrays(csr_array(X) if sparse else X, y, qid, doc_ids=doc_ids)


def parts(data: tr.QueryDataset) -> list[object]:
    X = [data.X.data, data.X.indices, data.X.indptr] if data.is_sparse else [data.X]
    arrays = [part.tobytes() for part in (*X, data.y, data.ptr)]
    ids = None if data.doc_ids is None else data.doc_ids.tolist()
    return [data.X.shape, data.X.dtype, *arrays, list(map(str, data.query_ids.tolist())), ids]


@given(datasets())
@settings(max_examples=150, deadline=None)
def test_round_trip(data):
    file = io.BytesIO()
    tr.write_letor(data, file)
    file.seek(0)
    again = tr.read_letor(file, dense=not data.is_sparse, dtype=data.X.dtype, threads=1)
    assert parts(again) == parts(data)
    assert again.order is None


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("sparse", [False, True])
def test_files_of_many_blocks_compressed_by_their_suffix(tmp_path, suffix, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40)).astype(np.float32) * (rng.random((3000, 40)) < 0.3)
    data = tr.QueryDataset.from_arrays(
        csr_array(X) if sparse else X, rng.integers(0, 5, 3000), rng.integers(0, 99, 3000), doc_ids=np.arange(3000)
    )
    file = tmp_path / f"a.txt{suffix}"
    tr.write_letor(data, file)
    again = tr.read_letor(file, dense=not sparse)
    assert parts(again)[:-1] == parts(data)[:-1]
    assert again.doc_ids.tolist() == [str(k) for k in data.doc_ids]
    packed = file.read_bytes()
    tr.write_letor(data, file)  # over the old one, with the same bytes
    assert file.read_bytes() == packed
    assert packed.startswith(
        {"": b"", ".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}[suffix]
    )
    assert os.listdir(tmp_path) == [file.name]


def test_what_the_text_looks_like():
    X = np.array([[0.0, 0.5, 0.0], [2.0, 0.0, 0.0]], dtype=np.float32)
    data = tr.QueryDataset.from_arrays(X, [1, 0.5], ["a", "b"], doc_ids=["d1", ""])
    out = io.BytesIO()
    tr.write_letor(data, out)
    assert out.getvalue() == b"1 qid:a 1:0 2:0.5 3:0 #docid = d1\n0.5 qid:b 1:2 2:0 3:0\n"
    out = io.BytesIO()
    tr.write_letor(tr.QueryDataset.from_arrays(csr_array(X), [1, 0], [3.0, 4.0]), out)
    assert out.getvalue() == b"1 qid:3 2:0.5 3:0\n0 qid:4 1:2\n"  # 3:0 keeps the width


def test_stored_zeros_are_not_written_but_the_width_is_kept(tmp_path):
    stored = csr_array((np.array([0.0, 2.0, 0.0]), np.array([0, 1, 3]), np.array([0, 3, 3])), shape=(2, 4))
    out = io.BytesIO()
    tr.write_letor(tr.QueryDataset.from_arrays(stored, [1, 0]), out)
    assert out.getvalue() == b"1 qid:0 2:2 4:0\n0 qid:0\n"


def test_mapped_data_are_written_as_they_are(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 3)) * (rng.random((20, 3)) < 0.5)
    for k, matrix in enumerate((X, csr_array(X))):
        data = tr.QueryDataset.from_arrays(matrix, np.arange(20), np.arange(20) // 4)
        opened = tr.open_queries(tr.save_queries(data, tmp_path / f"{k}"))
        texts = []
        for part in (data, opened, pickle.loads(pickle.dumps(opened))):
            out = io.BytesIO()
            tr.write_letor(part, out)
            texts.append(out.getvalue())
        assert texts[0] == texts[1] == texts[2]


def test_scikit_learn_reads_what_we_write(tmp_path):
    from sklearn.datasets import load_svmlight_file

    rng = np.random.default_rng(1)
    X, y, qid = rng.normal(size=(50, 7)), rng.integers(0, 3, 50), np.repeat(np.arange(5), 10)
    tr.write_letor(tr.QueryDataset.from_arrays(X, y, qid, doc_ids=np.arange(50)), tmp_path / "a.txt")
    theirs, labels, ids = load_svmlight_file(str(tmp_path / "a.txt"), query_id=True)
    assert np.array_equal(theirs.toarray(), X)
    assert np.array_equal(labels, y)
    assert np.array_equal(ids, qid)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"qid": ["a b", "c"]}, r"a query id cannot be empty or hold blanks in LETOR text, got 'a b'"),
        ({"qid": ["a#b", "c"]}, r"a query id cannot .* got 'a#b'"),
        ({"qid": ["", "c"]}, r"a query id cannot .* got ''"),
        ({"doc_ids": ["a", "b\nc"]}, r"a document id cannot .* got 'b\\nc'"),
        ({"doc_ids": ["", "b c"]}, r"a document id cannot .* got 'b c'"),
        ({"doc_ids": [b"a", b"b\xff"]}, r"an id must be UTF-8 text, got b'b\\xff'"),
        ({"doc_ids": ["a", "\ud800"]}, r"a document id must be text: .*"),
    ],
)
def test_ids_that_the_format_cannot_hold(tmp_path, options, says):
    data = tr.QueryDataset.from_arrays([[1.0], [2.0]], [0, 1], **options)
    with pytest.raises(InputError, match=says):
        tr.write_letor(data, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(tmp_path):
    data = tr.QueryDataset.from_arrays([[1.0]], [0])
    with pytest.raises(InputError, match=r"cannot write .*a.txt: No such file or directory"):
        tr.write_letor(data, tmp_path / "nowhere" / "a.txt")
    with pytest.raises(InputError, match=r"is a folder: name a file to write"):
        tr.write_letor(data, tmp_path)
    with pytest.raises(InputError, match=r"path must be a file name or a file opened in binary mode, got 7"):
        tr.write_letor(data, 7)
    with pytest.raises(InputError, match=r"path must be a file name or a file opened in binary mode"):
        tr.write_letor(data, io.StringIO())


def test_an_old_file_stays_if_writing_fails(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    file.write_text("old")
    data = tr.QueryDataset.from_arrays([[1.0]], [0])

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("toprank.data.letor._number_words", fail)
    with pytest.raises(KeyboardInterrupt):
        tr.write_letor(data, file)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
