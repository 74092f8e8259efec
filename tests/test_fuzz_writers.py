"""A write that fails in the middle leaves the old file as it was, and nothing else."""

import io
import resource
from contextlib import contextmanager

import numpy as np
import pytest

import toprank as tr
from toprank._checkpoint import Checkpoint
from toprank._files import replacing
from toprank._tables import Table
from toprank.cli._common import write_text
from toprank.contests.base import Contest, Entrant
from toprank.data.files import convert, write
from toprank.data.trec import qrels_of, run_of
from toprank.papers.exhibits import Exhibit
from toprank.report.page import write_report

DATA = tr.datasets.make_graded(n_queries=300, n_features=30, random_state=0)
LIMIT = 300


@contextmanager
def full_disk():
    """From here on no file grows beyond some bytes: the system refuses the write that would, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def ranker():
    return tr.ListNet(tol=1e-2).fit_queries(DATA)


@pytest.fixture(scope="module")
def contest():
    reports = {"one": tr.evaluate(DATA.X[:, 0], DATA), "two": tr.evaluate(DATA.X[:, 1], DATA)}
    entrants = tuple(Entrant(name, DATA.X[:, i], report) for i, (name, report) in enumerate(reports.items()))
    return Contest("A contest", DATA, entrants, tr.compare(reports), np.zeros(DATA.n_queries, dtype=np.int64))


WRITERS = {
    "model.json": lambda path, ranker, contest: ranker.save(path),
    "data.txt": lambda path, ranker, contest: tr.write_letor(DATA, path),
    "data.txt.gz": lambda path, ranker, contest: tr.write_letor(DATA, path),
    "data.txt.bz2": lambda path, ranker, contest: tr.write_letor(DATA, path),
    "data.txt.xz": lambda path, ranker, contest: tr.write_letor(DATA, path),
    "data.txt.zst": lambda path, ranker, contest: tr.write_letor(DATA, path),
    "data.parquet": lambda path, ranker, contest: tr.write_parquet(DATA, path),
    "written.parquet": lambda path, ranker, contest: write(DATA, path),
    "converted.parquet": lambda path, ranker, contest: convert(path.parent / "source.txt", path),
    "run.txt": lambda path, ranker, contest: tr.write_run(run_of(DATA, DATA.X[:, 0]), path),
    "qrels.txt": lambda path, ranker, contest: tr.write_qrels(qrels_of(DATA), path),
    "report.html": lambda path, ranker, contest: write_report(contest, path),
    "es.json": lambda path, ranker, contest: tr.export.write(ranker, path, "elasticsearch"),
    "exhibit.json": lambda path, ranker, contest: Exhibit(
        name="exhibit", title="A table", data={"x": list(range(2000))}, table=Table(("a",), [(1,)])
    ).save(path.parent),
    "text.html": lambda path, ranker, contest: write_text(str(path), "x" * 5000),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(name, tmp_path, ranker, contest):
    target = tmp_path / name
    tr.write_letor(DATA, tmp_path / "source.txt")
    WRITERS[name](target, ranker, contest)  # loads what has to be loaded, and shows that it writes enough to fail
    assert target.stat().st_size > LIMIT
    target.write_bytes(b"the old file")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with full_disk(), pytest.raises((tr.InputError, OSError)):
        WRITERS[name](target, ranker, contest)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("how", ["save_queries", "stream_letor", "convert"])
def test_a_full_disk_leaves_no_folder(how, tmp_path):
    text = io.BytesIO()
    tr.write_letor(DATA, text)
    (tmp_path / "source.txt").write_bytes(text.getvalue())
    jobs = {
        "save_queries": lambda folder: tr.save_queries(DATA, folder),
        "stream_letor": lambda folder: tr.stream_letor(io.BytesIO(text.getvalue()), folder, threads=1),
        "convert": lambda folder: convert(tmp_path / "source.txt", f"{folder}/"),
    }
    jobs[how](tmp_path / "first")
    before = {file.name for file in tmp_path.iterdir()}
    with full_disk(), pytest.raises((tr.InputError, OSError)):
        jobs[how](tmp_path / "second")
    assert {file.name for file in tmp_path.iterdir()} == before


def test_a_checkpoint_that_was_cut_short_is_not_seen(tmp_path):
    kept = Checkpoint(tmp_path)
    kept.get({"piece": 1}, lambda: [1, 2, 3])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with full_disk(), pytest.raises(tr.InputError, match=r"cannot write .*: File too large"):
        kept.get({"piece": 2}, lambda: list(range(2000)))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, ValueError])
def test_whatever_stops_a_write_the_old_file_stays(stop, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")

    def write():
        with replacing(file) as draft:
            draft.write_text("half of the n")
            raise stop

    with pytest.raises(stop):
        write()
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
