"""The readers keep their promise for any bytes: what fuzzing found stays mended, and a short run looks for more."""

import importlib.util
import io
import json
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from fuzz.mutators import MUTATORS, VALUES
from fuzz.promise import BrokenPromiseError, Promise
from fuzz.readers import PROMISES

import toprank as tr
from toprank.errors import InputError

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
FILES = sorted(path for path in CORPUS.glob("*/*"))


@pytest.fixture
def tracing():
    for promise in PROMISES.values():  # what the first use loads is not the input's doing
        promise.check(b"")
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_corpus_is_read_or_refused_as_its_name_says(path):
    refusal = PROMISES[path.parent.name].check(path.read_bytes())
    assert (refusal is not None) == path.name.startswith("bad-"), refusal


@pytest.mark.parametrize(
    ("reader", "runs"),
    [("letor", 150), ("trec", 300), ("model", 150), ("table", 150), ("folder", 150), ("export", 150)],
)
def test_neighbours_of_the_corpus(reader, runs):
    rng = random.Random(2026)
    seeds = [path.read_bytes() for path in FILES if path.parent.name == reader]
    refused = 0
    for _ in range(runs):
        data = rng.choice(seeds)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = MUTATORS[reader](data, rng)
        refused += PROMISES[reader].check(data) is not None
    assert 0 < refused < runs  # both outcomes were seen


@pytest.mark.parametrize("name", ["ListNet", "SlamPerceptron", "PerceptronAtK", "RankBoost"])
def test_no_single_change_of_a_model_file_breaks_the_promise(name):
    root = json.loads((CORPUS / "model" / f"{name}.json").read_bytes())
    spots, stack = [], [root]
    while stack:
        node = stack.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        spots += [(node, key) for key in keys]
        stack += [node[key] for key in keys]
    rng = random.Random(7)
    for node, key in spots:
        kept = node[key]
        for value in rng.sample(VALUES, 8):
            node[key] = value
            PROMISES["model"].check(json.dumps(root).encode())
        node[key] = kept


KB = 1 << 10
LONG = b"a" * (100 * KB)
SWELLING = {
    "letor": {
        "rows of two bytes": b"1\n" * (64 * KB) + b"1 1:1\n",
        "entries of four bytes": b"1 " + b" ".join(b"%d:1" % i for i in range(1, 30_000)),
        "one long query id": b"1 qid:%s 1:1\n" % LONG + b"".join(b"1 qid:b%d 1:1\n" % i for i in range(5000)),
        "one long document id": b"1 1:1 #%s\n" % LONG + b"1 1:1 #b\n" * 5000,
        "one long line": b"1 1:1 # " + b"a " * (100 * KB),
        "the highest index": b"1 2147483646:1\n" * 5000,
    },
    "trec": {
        "one long document id": b"1 0 %s 1\n" % LONG + b"".join(b"1 0 b%d 1\n" % i for i in range(5000)),
        "one long query id": b"%s 0 d 1\n" % LONG + b"".join(b"1 0 b%d 1\n" % i for i in range(5000)),
        "one long grade": b"1 0 a %s\n" % (b"0" * 4000) + b"".join(b"1 0 b%d 1\n" % i for i in range(50_000)),
        "blank lines": b"\n" * (256 * KB),
    },
    "model": {
        "lists of nothing": b'{"format": "toprank-model", "version": 1, "toprank": "0", "ranker": "ListNet", '
        + b'"params": {"a": ['
        + b"[]," * 20_000
        + b'0]}, "n_features": 1, "feature_names": null, "n_queries": 1, "model": {}, "state": {}}',
    },
    "export": {
        "blank lines": b"rank-profile a {\n" + b"\n" * (512 * KB),
        "blank lines of a sum": b"rank-profile a {\n-phase {\nexpression {\n" + b"\n" * (512 * KB),
        "blank lines before": b"\n" * (512 * KB) + b"x",
    },
    "table": {
        "one long id": b"query,label,x\n%s,1,1\n" % LONG + b"".join(b"b%d,1,1\n" % i for i in range(20_000)),
        "blank lines": b"query,label,x\n1,1,1\n" + b"\n" * (256 * KB),
        "many columns": b"query,label," + b",".join(b"c%d" % i for i in range(3000)) + b"\n1,1" + b",1" * 3000,
    },
}


@pytest.mark.parametrize(("reader", "name"), [(reader, name) for reader, group in SWELLING.items() for name in group])
def test_memory_stays_within_the_stated_factor(reader, name, tracing):
    PROMISES[reader].check(SWELLING[reader][name])


def test_a_broken_promise_is_noticed(tracing):
    def check(read, **limits):
        Promise("x", read, **{"fixed": 1 << 20, "factor": 1, **limits}).check(b"")

    def refuse(message):
        def read(data):
            error = InputError(message)
            error.args = (message,)
            raise error

        return read

    check(refuse("one line"))
    with pytest.raises(BrokenPromiseError, match="one line"):
        check(refuse("two\nlines"))
    with pytest.raises(BrokenPromiseError, match="held 50 MB"):
        check(lambda data: bytearray(50_000_000))
    with pytest.raises(BrokenPromiseError, match="took"):
        check(lambda data: None, seconds=-1.0)
    with pytest.raises(ZeroDivisionError):
        check(lambda data: 1 / 0)


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="coverage-guided runs need atheris")
@pytest.mark.parametrize("reader", sorted(PROMISES))
def test_a_short_coverage_guided_run(reader, tmp_path):
    command = [sys.executable, "-m", "fuzz", reader, "--runs", "250", "--seconds", "120", "--seed", "1"]
    done = subprocess.run(
        [*command, "--found", str(tmp_path / "found"), "--grown", str(tmp_path / "grown")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "stat::number_of_executed_units" in done.stderr


def test_a_long_document_id_is_refused_before_it_fills_the_disk(tmp_path):
    text = b"1 1:1 #%s\n" % (b"a" * 200_000) + b"1 1:1 #b\n" * 2000
    with pytest.raises(InputError, match=r"a document id of 200000 letters among 2001 rows would take 1\.6 GB"):
        tr.stream_letor(io.BytesIO(text), tmp_path / "folder")
    assert not list(tmp_path.iterdir())


def test_a_long_query_id_is_refused_before_it_fills_the_disk(tmp_path):
    text = b"1 qid:%s 1:1\n" % (b"a" * 200_000) + b"".join(b"1 qid:b%d 1:1\n" % i for i in range(2000))
    with pytest.raises(InputError, match=r"query_ids has an id of 200000 letters among 2001: they would take 1\.6 GB"):
        tr.stream_letor(io.BytesIO(text), tmp_path / "folder")
    text = b"1 qid:%s 1:1\n1 qid:b 1:1\n" % (b"a" * 200)
    assert tr.stream_letor(io.BytesIO(text), tmp_path / "folder").query_ids.tolist() == ["a" * 200, "b"]


def test_a_table_that_cannot_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"query": [1] * 1000, "label": [0] * 1000, "x": [0.5] * 1000}), file)
    monkeypatch.setattr("toprank.data._columns.physical_memory", lambda: 10_000)
    with pytest.raises(InputError, match="holds 1000 rows of 3 columns: more than fits in memory"):
        tr.read_table(file)
