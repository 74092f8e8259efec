"""The LETOR reader against a naive parser: every form of the text, any cut into chunks, any damage."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import letor as oracle
from toprank.data import _letor_chunk, _memory
from toprank.data.letor import _read
from toprank.errors import InputError, ParseError

pytestmark = pytest.mark.filterwarnings("ignore:.* has no qid")

PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}

SMALL = (
    b"2 qid:10 1:0.5 2:-1.25 4:3e2 #docid = GX029-35-5894638 inc = 0.01 prob = 0.13\n"
    b"0 qid:10 1:0.000000 3:7\t4:1e-3 #docid = 40626\r\n"
    b"\n"
    b"# a comment alone\n"
    b"+1 qid:11  2:.5 3:5. \n"
    b"-1.5 qid:10 4:0.1#last"
)


def read(text: bytes, *, size: int = 1 << 20, threads: int = 1, **options) -> tr.QueryDataset:
    chosen = {"dense": None, "dtype": np.float32, "n_features": None, "zero_based": None} | options
    return _read(io.BytesIO(text), threads=threads, size=size, **chosen)[0]


def toarray(X) -> np.ndarray:
    if isinstance(X, np.ndarray):
        return X
    dense = np.zeros(X.shape, dtype=X.dtype)  # X.toarray() adds to 0 and so loses the sign of -0
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return dense


def assert_equal(data: tr.QueryDataset, want: oracle.Parsed) -> None:
    assert data.y.tolist() == want.y
    assert data.ptr.tolist() == want.ptr
    assert data.query_ids.tolist() == want.query_ids
    assert data.query_ids.dtype.kind == "U"
    assert (None if data.doc_ids is None else data.doc_ids.tolist()) == want.doc_ids
    assert (None if data.order is None else data.order.tolist()) == want.order
    if want.X.shape[1]:
        assert data.X.shape == want.X.shape
        assert data.X.dtype == want.X.dtype
        assert toarray(data.X).tobytes() == want.X.tobytes()  # the sign of a zero counts


def expected(text: bytes, **options) -> oracle.Parsed | oracle.BadTextError:
    try:
        return oracle.parse(text, **options)
    except oracle.BadTextError as error:
        return error


def check(text: bytes, *, size: int = 1 << 20, threads: int = 1, dense: bool | None = None, **options) -> None:
    """Our reader gives what the oracle gives, or names the same place."""
    want = expected(text, **options)
    if isinstance(want, oracle.BadTextError):
        with pytest.raises(InputError) as caught:
            read(text, size=size, threads=threads, dense=dense, **options)
        if want.place is not None:
            assert (caught.value.line, caught.value.column) == want.place, str(caught.value)
        assert "\n" not in str(caught.value)
        return
    data = read(text, size=size, threads=threads, dense=dense, **options)
    assert_equal(data, want)
    cells = want.X.shape[0] * data.n_features
    assert data.is_sparse == (want.written < 0.25 * cells if dense is None else not dense)
    if data.is_sparse:
        assert data.X.has_canonical_format
        assert not (data.X.data.view(f"u{data.X.dtype.itemsize}") == 0).any()


# Lines as people write them, with a taste for trouble.
blanks = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b" \t "])
numbers = st.one_of(
    st.integers(-3, 12).map(lambda k: b"%d" % k),
    st.sampled_from([b"0.5", b"-0", b"0.000000", b"+2", b".25", b"3.", b"1e-3", b"12345678901234567890123", b"1e-400"]),
    st.floats(-1e6, 1e6, width=32).map(lambda v: repr(v).encode()),
)
comments = st.sampled_from(
    [
        b"",
        b"",
        b"#",
        b" #docid = 40626",
        b" #docid = GX1-2 inc = 0.1",
        b"#docid=7",
        b" # 1A",
        b"#a b",
        b" #docid = \xc3\xa9",
    ]
)
qids = st.sampled_from([b"1", b"1", b"2", b"-7", b"+2", b"007", b"9223372036854775807"])
text_qids = st.one_of(qids, st.sampled_from([b"q1", b"1a", b"9223372036854775808", b"\xc3\xa9"]))


@st.composite
def lines(draw, qid=None, lowest: int = 1) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([b"", b"   ", b"# note", b" \t# note 2", b"\r"]))
    gap = draw(blanks)
    indices = draw(st.lists(st.integers(lowest, 8), max_size=6, unique=True))
    if draw(st.booleans()):
        indices.sort()
    parts = [draw(numbers)]
    if qid is not None:
        parts.append(b"qid:" + draw(qid))
    parts += [b"%d:%s" % (index, draw(numbers)) for index in indices]
    return draw(st.sampled_from([b"", b" "])) + gap.join(parts) + draw(st.sampled_from([b"", b" "])) + draw(comments)


@st.composite
def texts(draw) -> bytes:
    qid = draw(st.sampled_from([None, qids, qids, text_qids]))
    rows = draw(st.lists(lines(qid, draw(st.sampled_from([0, 1, 1]))), max_size=12))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    mark = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return mark + end.join(rows) + draw(st.sampled_from([b"", end]))


@given(texts(), st.sampled_from([np.float32, np.float64]), st.sampled_from([None, None, True, False]))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_as_the_naive_parser_reads_it(text, dtype, dense):
    check(text, dtype=dtype, dense=dense)


@given(texts(), st.sampled_from([(1, 64), (2, 64), (2, 20), (3, 7)]), st.sampled_from([None, True, False]))
@settings(max_examples=200, deadline=None)
def test_neither_threads_nor_chunks_change_anything(text, how, dense):
    threads, size = how
    check(text, threads=threads, size=size, dense=dense)


@given(
    texts(), st.sampled_from([None, 3, 8, 9, 20]), st.sampled_from([None, True, False]), st.sampled_from([64, 1 << 20])
)
@settings(max_examples=200, deadline=None)
def test_width_and_base_may_be_given(text, n_features, zero_based, size):
    check(text, n_features=n_features, zero_based=zero_based, size=size)


def test_damage_gives_the_same_data_as_the_oracle_or_a_clear_error():
    rng = random.Random(7)
    pool = [
        b"\n",
        b" ",
        b":",
        b"#",
        b"\x00",
        b"\xff",
        b"\xc3\xa9",
        b"-",
        b".",
        b"e",
        b"nan",
        b"1:1 ",
        b"qid:",
        b"9" * 11,
        b"\r",
    ]
    outcomes = {True: 0, False: 0}
    for _ in range(2000):
        text = bytearray(SMALL)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(text) + 1)
            cut = rng.choice([0, 1, 1, 3])
            text[at : at + cut] = rng.choice([b"", rng.choice(pool), bytes([rng.randrange(256)])])
        outcomes[isinstance(expected(bytes(text)), oracle.Parsed)] += 1
        check(bytes(text), size=rng.choice([16, 1 << 20]), threads=rng.choice([1, 1, 2]))
    assert min(outcomes.values()) > 200  # both kinds were tried


@pytest.mark.parametrize(
    ("line", "column", "found", "says"),
    [
        (b"x qid:1 1:1", 1, "x", "expected a label, which is a number"),
        (b"nan qid:1 1:1", 1, "nan", "a label must be finite"),
        (b"1e999 qid:1 1:1", 1, "1e999", "the label is too large for float64"),
        (b"1 qid: 1:1", 3, "qid:", "expected an id after qid:"),
        (b"1 1:1", 3, "1:1", "expected qid: as on the lines before"),
        (b"1 qid:1 1;0.5", 9, "1;0.5", "expected feature:value"),
        (b"1 qid:1 1:1 2", 13, "2", "expected feature:value"),
        (b"1 qid:1 1:", 9, "1:", "expected feature:value"),
        (b"1 qid:1 1:0.5x 2:1", 9, "1:0.5x", "expected feature:value"),
        (b"1 qid:1 1:1_0", 9, "1:1_0", "expected feature:value"),
        (b"1 qid:1 1:0x1p3", 9, "1:0x1p3", "expected feature:value"),
        (b"1 qid:1 1:1e", 9, "1:1e", "expected feature:value"),
        (b"1 qid:1 1:nan", 9, "1:nan", "a value must be finite"),
        (b"1 qid:1 1:-inf", 9, "1:-inf", "a value must be finite"),
        (b"1 qid:1 1:1e39", 9, "1:1e39", "the value is too large for float32"),
        (b"1 qid:1 1:3.4028235677973366e38", 9, "1:3.4028235677973366e38", "the value is too large for float32"),
        (b"1 qid:1 1:1e400", 9, "1:1e400", "the value is too large for float32"),
        (b"1 qid:1 -1:1", 9, "-1:1", "expected feature:value"),
        (b"1 qid:1 4000000000:1", 9, "4000000000:1", "feature index above 2147483646"),
        (b"1 qid:1 99999999999999999999999:1", 9, "99999999999999999999999:1", "feature index above 2147483646"),
        (b"1 qid:1 1:1 2:0 2:1", 17, "2:1", "a feature index given twice"),
        (b"1 qid:1 3:1 1:0 2:5 1:2", 21, "1:2", "a feature index given twice"),
        (b"1 qid:1 1:1 #docid = \xff", 22, "\\xff", "an id must be UTF-8 text"),
        (b"1 qid:\xff 1:1", 7, "\\xff", "an id must be UTF-8 text"),
        (b"\x00\x01\x02", 1, "\x00\x01\x02", "expected a label, which is a number"),
    ],
)
def test_a_bad_line_is_named_by_file_line_column_and_text(tmp_path, line, column, found, says):
    file = tmp_path / "train.txt"
    head = b"# head\n" + b"1 qid:1 1:1 2:1\n" * 40
    file.write_bytes(head + line + b"\n1 qid:1 1:1\nworse\n")
    for threads, size in ((1, 1 << 20), (2, 64)):
        with pytest.raises(ParseError) as caught:
            _read(file, None, np.float32, None, None, threads, size=size)
        error = caught.value
        assert (error.file, error.line, error.column, error.text) == (str(file), 42, column, found)
        assert str(error) == f"{file}:42:{column}: {says}, found {found!r}"


def test_a_qid_may_not_appear_later():
    with pytest.raises(ParseError, match=r"<stream>:2:3: qid: stands here but not on the lines before, found 'qid:1'"):
        read(b"1 1:1\n1 qid:1 1:1\n", size=6)


def test_options_that_do_not_fit_the_file():
    with pytest.raises(ParseError, match=r"<stream>:1:5: feature index beyond n_features=2, found '3:1'"):
        read(b"1   3:1\n", n_features=2)
    with pytest.raises(ParseError, match=r":1:3: feature index 0 in a file that is read as counting from 1"):
        read(b"1 0:1\n", zero_based=False)
    with pytest.raises(InputError, match=r"<stream> has features 0 to 2: n_features=2 is too small"):
        read(b"1 2:1\n1 0:1\n", n_features=2, size=6)
    assert read(b"1 2:1\n1 0:1\n", n_features=3).X.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert read(b"1 2:1\n", zero_based=True).X.shape == (1, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"path": 3}, r"path must be a file name, '-' or a file opened in binary mode, got 3"),
        ({"path": io.StringIO("1 1:1")}, r"path must be a file name, '-' or a file opened in binary mode"),
        ({"dtype": np.int32}, r"dtype must be float32 or float64, got <class 'numpy.int32'>"),
        ({"dtype": "nonsense"}, r"dtype must be float32 or float64, got 'nonsense'"),
        ({"dense": "yes"}, r"dense must be one of None, True, False, got 'yes'"),
        ({"zero_based": 2}, r"zero_based must be one of None, True, False, got 2"),
        ({"n_features": 0}, r"n_features must be a whole number of at least 1, got 0"),
        ({"threads": 0}, r"threads must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(options, says, tmp_path):
    with pytest.raises(InputError, match=says):
        tr.read_letor(**({"path": io.BytesIO(b"1 1:1\n")} | options))
    with pytest.raises(InputError, match=says):
        tr.stream_letor(**({"path": io.BytesIO(b"1 1:1\n"), "folder": tmp_path / "new"} | options))
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_there_or_hold_nothing(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.txt cannot be read: No such file or directory"):
        tr.read_letor(tmp_path / "nowhere.txt")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        tr.read_letor(tmp_path)
    for nothing in (b"", b"\n\n", b"# only a comment", b"\xef\xbb\xbf"):
        with pytest.raises(InputError, match=r"<stream> holds no data: not one line with a label"):
            read(nothing)
    with pytest.raises(InputError, match=r"<stream> holds no features"):
        read(b"1 qid:1\n0 qid:1\n")
    assert read(b"1 qid:1\n0 qid:1\n", n_features=2).X.shape == (2, 2)


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_files_and_their_damage(tmp_path, suffix):
    text = SMALL + b"\n" + b"1 qid:12 1:0.25 4:8\n" * 20_000
    packed = PACKERS[suffix](text)
    file = tmp_path / f"train.txt{suffix}"
    file.write_bytes(packed)
    want = read(text)
    for source in (file, str(file), io.BytesIO(packed)):
        data = tr.read_letor(source, threads=2)
        assert data.X.tobytes() == want.X.tobytes()
        assert data.doc_ids.tolist() == want.doc_ids.tolist()
    file.write_bytes(packed + packed)  # two packed files one behind the other are one file
    assert tr.read_letor(file).n_docs == 2 * want.n_docs
    for cut in (len(packed) // 2, len(packed) - 2):
        file.write_bytes(packed[:cut])
        with pytest.raises(InputError, match=r"is damaged or cut short: |:1:1: "):
            tr.read_letor(file)
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0xFF
    file.write_bytes(broken)
    with pytest.raises(InputError, match=r"is damaged or cut short: |:\d+:\d+: "):
        tr.read_letor(file)
    file.write_bytes(b"1 1:1\n")
    with pytest.raises(InputError, match=r"is no \w+ file, though its name says so"):
        tr.read_letor(file)


def test_a_bad_line_before_the_damage_comes_first(tmp_path):
    packed = gzip.compress(b"1 1:1\nbad\n" + bytes(random.Random(0).randbytes(200_000)))
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ParseError, match=r":2:1: "):
        _read(tmp_path / "a.gz", None, np.float32, None, None, 2, size=1000)


def test_standard_input(tmp_path):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(SMALL))
    code = "import toprank as tr; d = tr.read_letor('-'); print(f'{d.X.sum():.3f}', d.doc_ids.tolist())"
    for source in ("a.txt.gz", "a.txt"):
        (tmp_path / "a.txt").write_bytes(SMALL)
        with open(tmp_path / source, "rb") as stdin:
            done = subprocess.run([sys.executable, "-c", code], stdin=stdin, capture_output=True, text=True, check=True)
        total = 0.5 - 1.25 + 300 + 7 + 0.001 + 0.5 + 5 + 0.1
        assert done.stdout == f"{total:.3f} ['GX029-35-5894638', '40626', 'last', '']\n"


def test_an_open_file_stays_open():
    file = io.BytesIO(SMALL)
    tr.read_letor(file)
    assert not file.closed


def test_the_file_may_be_sparse_or_dense_and_change_its_mind():
    dense_row = b"1 " + b" ".join(b"%d:%d" % (k, k) for k in range(1, 41)) + b"\n"
    sparse_row = b"1 3:5\n"
    for text in (
        dense_row * 30 + sparse_row * 2000,  # becomes sparse while it is read
        sparse_row * 30 + dense_row * 2000,  # becomes dense while it is read
        sparse_row * 100 + dense_row * 45,  # is dense in the end only
        dense_row * 10 + b"1 2000:1\n",
        b"1\n" * 50 + dense_row * 50,
        b"1 5:-0\n" + dense_row * 3 + sparse_row * 50,
        sparse_row * 5 + dense_row * 40 + b"1 0:1 41:1\n",  # counted from 0, as the last line tells
    ):
        for dense in (None, True, False):
            check(text, size=256, dense=dense)


def test_a_huge_index_makes_no_huge_array():
    text = b"1 qid:1 1:1 2147483646:2\n"
    data = read(text)
    assert data.is_sparse
    assert data.X.shape == (1, 2147483646)
    assert data.X.indices.tolist() == [0, 2147483645]
    with pytest.raises(InputError, match=r"1 rows of 2147483646 features hold 2 values: .* 8.6 GB, pass dense=False"):
        read(text, dense=True)


def test_what_does_not_fit_in_memory_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(_memory, "physical_memory", lambda: 1000.0)
    with pytest.raises(InputError, match=r"<stream> does not fit in memory: pass dense=False, or use stream_letor"):
        read(b"1 1:1 50:2\n" * 20, dense=True)


def test_trouble_in_one_thread_stops_the_others(monkeypatch):
    parse = _letor_chunk.parse_chunk

    def fail(text, lines, *rest):
        if lines.start == 31:
            raise RuntimeError("chunk 3")
        return parse(text, lines, *rest)

    monkeypatch.setattr(_letor_chunk, "parse_chunk", fail)
    for threads in (1, 2, 4):
        with pytest.raises(RuntimeError, match="chunk 3"):
            read(b"1 1:1\n" * 1000, size=60, threads=threads)


def test_a_line_without_end_is_no_letor_text(monkeypatch):
    monkeypatch.setattr("toprank.data._letor_chunk.LONGEST_LINE", 1000)
    with pytest.raises(InputError, match=r"<stream> has a line of more than 0 MB: no LETOR text"):
        read(b"1" * 5000, size=64)


def test_a_few_long_document_ids_do_not_make_all_wide():
    data = read(b"1 1:1 #docid = a\n" * 100 + b"1 1:1 #docid = " + b"x" * 5000 + b"\n")
    assert data.doc_ids.dtype == object
    assert data.doc_ids.tolist() == ["a"] * 100 + ["x" * 5000]
    assert read(b"1 1:1 #docid = \xc3\xa9\xc3\xa9\n1 1:1\n").doc_ids.dtype == "U2"


def test_rows_of_one_query_are_brought_together_as_for_arrays():
    text = b"".join(b"%d qid:%d 1:%d #d%d\n" % (k, k * 7 % 5, k + 1, k) for k in range(40))
    data = read(text, size=64, threads=2)
    k = np.arange(40)
    want = tr.QueryDataset.from_arrays(k[:, None] + 1.0, k, (k * 7 % 5).astype(str), doc_ids=[f"d{i}" for i in k])
    for dense in (True, False):
        data = read(text, size=64, threads=2, dense=dense)
        for name in ("y", "ptr", "query_ids", "doc_ids", "order"):
            assert getattr(data, name).tolist() == getattr(want, name).tolist()
        assert toarray(data.X).tolist() == want.X.tolist()


def test_the_result_pickles_and_validates_as_it_is():
    data = read(SMALL)
    again = pickle.loads(pickle.dumps(data))
    assert again.X.tobytes() == data.X.tobytes()
    checked = tr.QueryDataset.from_arrays(data.X, data.y, data.qid, doc_ids=data.doc_ids)
    assert checked.ptr.tolist() == data.ptr.tolist()
    assert checked.X is data.X
    assert data.X.flags.c_contiguous
    assert data.y.dtype == np.float64
    assert data.ptr.dtype == np.int64


MEMORY = """
import sys, toprank as tr

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
tr.read_letor(sys.argv[1], threads=2)
before = peak()
d = tr.read_letor(sys.argv[2], threads=2)
arrays = [d.y, d.ptr, d.query_ids, d.doc_ids] + ([d.X.data, d.X.indices, d.X.indptr] if d.is_sparse else [d.X])
size = sum(array.nbytes for array in arrays if array is not None)
print((peak() - before) / size, size)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see the peak of memory")
@pytest.mark.parametrize("form", ["dense", "dense.gz", "stdin", "sparse", "ids"])
def test_peak_memory_is_little_more_than_the_result(tmp_path, form):
    step, end = (5, b"") if form == "sparse" else (1, b" #docid = GX029-35-589%04d" if form == "ids" else b"")
    rows = [
        b"1 qid:NUMBER%02d " % (r // 50)
        + b" ".join(b"%d:%d" % (step * k, (r + k) % 9 + 1) for k in range(1, 61))
        + (end % r if end else b"")
        for r in range(1000)
    ]
    text = b"\n".join(rows) + b"\n"
    pack = (lambda block: gzip.compress(block, 1)) if form == "dense.gz" else bytes
    small, large = tmp_path / f"small.{form}", tmp_path / f"large.{form}"
    small.write_bytes(pack(text))
    with open(large, "wb") as file:
        for k in range(120 if form == "sparse" else 240):
            file.write(pack(text.replace(b"NUMBER", b"%d" % k)))
    with open(large if form == "stdin" else os.devnull, "rb") as stdin:
        command = [sys.executable, "-c", MEMORY, str(small), "-" if form == "stdin" else str(large)]
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=True)
    ratio, size = map(float, done.stdout.split())
    assert size > 5e7
    assert 0.8 < ratio < 1.3  # above 0.8, because arrays that take no memory would mean that this test does not see it


DATA = os.environ.get("TOPRANK_DATA")
FILES = {  # rows, queries, features
    "ohsumed-letor2/Fold1/{trainingset,validationset,testset}.txt": (16_140, 106, 25),
    "ohsumed-letor3/Fold1/{train,vali,test}.txt": (16_140, 106, 45),
    "mq2008-letor4/Fold1/{train,vali,test}.txt": (15_211, 784, 46),
    "mslr-msn1-5k/msn1.fold1.train.5k.txt": (5_000, 43, 136),
    "mslr-msn1-5k/msn1.fold1.test.5k.txt": (5_000, 43, 136),
    "a9a/a9a": (32_561, 1, 123),
    "a9a/a9a.t": (16_281, 1, 122),
    "ijcnn1/ijcnn1.trn.xz": (49_990, 1, 22),
    "ijcnn1/ijcnn1.t.xz": (91_701, 1, 22),
}


def real_files(pattern: str) -> list[Path]:
    if not DATA:
        pytest.skip("needs the real benchmark files below TOPRANK_DATA")
    head, _, rest = pattern.partition("{")
    names, _, tail = rest.partition("}")
    return [Path(DATA, head + name + tail) for name in names.split(",")]


@pytest.mark.parametrize("pattern", FILES)
def test_real_files_have_the_published_counts(pattern):
    parts = [tr.read_letor(file) for file in real_files(pattern)]
    rows, queries, features = FILES[pattern]
    assert sum(part.n_docs for part in parts) == rows
    assert sum(part.n_queries for part in parts) == queries
    assert {part.n_features for part in parts} == {features}
    assert {part.is_sparse for part in parts} == {"a9a" in pattern}


@pytest.mark.parametrize("pattern", list(FILES))
def test_real_files_hold_what_scikit_learn_reads(pattern):
    from sklearn.datasets import load_svmlight_file

    file = real_files(pattern)[-1]
    data = tr.read_letor(file, dtype=np.float64, dense=False)
    packed = lzma.open(file) if file.suffix == ".xz" else open(file, "rb")  # noqa: SIM115 - closed by the next line
    with packed as stream:
        X, y, qid = load_svmlight_file(stream, query_id=True, n_features=data.n_features, zero_based=False)
    assert data.y.tolist() == y.tolist()
    X.eliminate_zeros()
    for ours, theirs in ((data.X.data, X.data), (data.X.indices, X.indices), (data.X.indptr, X.indptr)):
        assert np.array_equal(ours, theirs)
    if len(qid):
        assert np.array_equal(data.qid, qid.astype(str))
    else:
        assert data.n_queries == 1


def test_real_comments_give_document_ids():
    (file,) = real_files("mq2008-letor4/Fold1/{test}.txt")
    assert tr.read_letor(file).doc_ids[:2].tolist() == ["GX004-93-7097963", "GX010-40-4497720"]
    (file,) = real_files("ohsumed-letor2/Fold1/{testset}.txt")
    assert tr.read_letor(file).doc_ids[0] == "7612"
    (file,) = real_files("mslr-msn1-5k/msn1.fold1.{test}.5k.txt")
    assert tr.read_letor(file).doc_ids is None
