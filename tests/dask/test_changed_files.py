"""A file that changes after the scan is refused by every worker that reads it again; old and new rows never mix."""

import os
import shutil
import signal

import numpy as np
import pytest

import toprank as tr
from toprank.dask import reading

from .conftest import cluster, judged, until

pytestmark = pytest.mark.usefixtures("short_runs")


def totals(block):
    return block.X.sum(axis=0, dtype=np.float64)


def spoiled(data):
    """The same lists and grades with other features: a file of the same shape."""
    return data.with_X(data.X[:, ::-1].copy(), feature_names=data.feature_names)


def replaced(write, path, data):
    """Write other data over a file, as editors and jobs do, with the time that it had."""
    before = os.stat(path)
    draft = path.with_name("draft" + path.suffix)
    write(data, draft)
    os.replace(draft, path)
    return before


@pytest.fixture
def data():
    return judged(60, feature_names=[f"x{j}" for j in range(6)])


def parquet(data, path, client):
    tr.write_parquet(data, path)
    return tr.dask.read_table(str(path), client, parts=3), tr.write_parquet


def text(data, path, client):
    tr.write_letor(data, path)
    return tr.dask.read_letor(str(path), client, parts=3), tr.write_letor


@pytest.mark.parametrize("same_time", [False, True])
@pytest.mark.parametrize("kind", [parquet, text])
def test_a_file_that_was_replaced_is_refused(client, data, tmp_path, monkeypatch, kind, same_time):
    monkeypatch.setattr(reading, "RANGE_BYTES", 4000)
    path = tmp_path / ("train.parquet" if kind is parquet else "train.txt")
    far, write = kind(data, path, client)
    before = far.map_reduce(totals)
    far.X.reload(1)  # as after a death
    assert far.map_reduce(totals).tobytes() == before.tobytes()
    was = replaced(write, path, spoiled(data))
    if same_time:
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    far.X.reload(1)
    with pytest.raises(tr.InputError, match=rf"{path.name} changed after it was scanned \(.*\): read the data again"):
        far.map_reduce(totals)


def test_a_folder_that_was_replaced_is_refused(client, data, tmp_path):
    folder = tr.save_queries(data, tmp_path / "queries")
    far = tr.dask.place(tr.open_queries(folder), client, parts=3)
    far.map_reduce(totals)
    shutil.rmtree(folder)
    tr.save_queries(spoiled(data), folder)
    far.X.reload(1)
    with pytest.raises(tr.InputError, match=r"queries/\S+ changed after it was scanned \(mtime"):
        far.map_reduce(totals)


def test_a_file_that_changes_between_two_looks_of_the_scan_is_refused(client, data, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "RANGE_BYTES", 4000)
    path, plain = tmp_path / "train.txt", reading._scanned
    tr.write_letor(data, path)

    def scanned(workers, scan, calls):
        half = len(calls) // 2
        first = plain(workers, scan, calls[:half])
        tr.write_letor(spoiled(data), path)
        rest = plain(workers, scan, calls[half:])
        return reading.same_files(first + rest)

    monkeypatch.setattr(reading, "_scanned", scanned)
    with pytest.raises(tr.InputError, match="changed after it was scanned"):
        tr.dask.read_letor(str(path), client, parts=3)


def test_a_worker_killed_after_a_file_was_replaced_mixes_nothing(tmp_path, data):
    path = tmp_path / "train.parquet"
    tr.write_parquet(data, path)
    with cluster(tmp_path / "dask", n_workers=2) as client:
        far = tr.dask.read_table(str(path), client, parts=4)
        far.map_reduce(totals)
        replaced(tr.write_parquet, path, spoiled(data))
        doomed = next(iter(client.run(os.getpid).values()))
        os.kill(doomed, signal.SIGKILL)
        until(lambda: doomed not in client.run(os.getpid, on_error="ignore").values())
        with pytest.raises(tr.InputError, match=r"train\.parquet changed after it was scanned"):
            far.map_reduce(totals)
