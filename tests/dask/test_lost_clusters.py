"""Workers that die as fast as they come, a scheduler that dies, workers with other versions: the right error."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from distributed import Client

import toprank as tr
from toprank.dask import reading
from toprank.dask import workers as workers_module
from toprank.objective import Objective

from .conftest import cluster, judged, until

pytestmark = pytest.mark.usefixtures("short_runs")


@pytest.fixture(scope="module")
def data():
    return judged()


def totals(block):
    return block.X.sum(axis=0, dtype=np.float64)


def deadly(block):
    os._exit(1)


def watch_fit(monkeypatch, at, act):
    """Act before the evaluation number `at` of a fit; return the values and weights of those that were done."""
    seen, plain = [], Objective.value_and_grad

    def watched(self, w):
        if len(seen) == at:
            act()
        found = plain(self, w)
        seen.append((found[0], w.copy()))
        return found

    monkeypatch.setattr(Objective, "value_and_grad", watched)
    return seen


def test_workers_that_die_as_fast_as_they_come_end_with_the_weights_so_far(tmp_path, data, monkeypatch):
    with cluster(tmp_path, n_workers=1, config={"distributed.scheduler.allowed-failures": 0}) as client:
        far = tr.dask.place(data, client, parts=2)
        seen = watch_fit(monkeypatch, 3, lambda: far.map_reduce(deadly))
        with pytest.raises(tr.dask.WorkersLost, match=r"a worker died at the same work, 4 times.* memory") as lost:
            tr.ListNet(tol=1e-12).fit_queries(far)
        assert len(seen) == 3
        assert lost.value.coef.tobytes() == min(seen)[1].tobytes()
        assert far.map_reduce(totals).tobytes() == data.map_reduce(totals).tobytes()  # the cluster is still of use


@contextmanager
def processes(folder):
    """A scheduler and a worker that are processes of their own."""
    file, calm = folder / "scheduler.json", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    run = partial(subprocess.Popen, **calm)
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1"]
    scheduler = run([*module, "--no-dashboard", "--scheduler-file", str(file)])
    until(file.exists)
    module = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--no-dashboard"]
    worker = run([*module, "--nthreads", "1", "--no-nanny", "--death-timeout", "20"])
    try:
        yield file, scheduler
    finally:
        for one in (worker, scheduler):
            one.kill()
            one.wait()


def test_a_scheduler_that_dies_ends_the_fit_with_the_weights_so_far(tmp_path, data, monkeypatch):
    with processes(tmp_path) as (file, scheduler), Client(scheduler_file=str(file), timeout=60) as client:
        client.wait_for_workers(1, timeout=60)
        far = tr.dask.place(data, client, parts=3, timeout=5)
        seen = watch_fit(monkeypatch, 3, scheduler.kill)
        with pytest.raises(tr.dask.WorkersLost, match="scheduler") as lost:
            tr.ListNet(tol=1e-12).fit_queries(far)
        assert lost.value.coef.tobytes() == min(seen)[1].tobytes()


def other_version(package):
    """Make this worker say that it has another version."""
    found = workers_module.installed()
    found[package] = "0.0.1"


def restored(found):
    workers_module.installed().update(found)


@pytest.mark.parametrize("package", ["toprank", "numba"])
def test_a_worker_with_another_version_is_refused_by_name(client, data, tmp_path, monkeypatch, package):
    monkeypatch.setattr(reading, "RANGE_BYTES", 1000)
    tr.write_letor(data, tmp_path / "train.txt")
    odd, *_ = client.run(os.getpid)
    client.run(other_version, package, workers=[odd])
    ours = re.escape(f"{package} {workers_module.installed()[package]}")
    wanted = rf"the worker {odd} has {package} 0\.0\.1, and the client has {ours}: install the same version"
    try:
        with pytest.raises(tr.InputError, match=wanted):
            tr.dask.place(data, client, parts=6).map_reduce(totals)
        with pytest.raises(tr.InputError, match=wanted):
            tr.dask.read_letor(str(tmp_path / "train.txt"), client)
    finally:
        client.run(restored, workers_module.installed())
    far = tr.dask.place(data, client, parts=6)
    assert far.map_reduce(totals).tobytes() == data.map_reduce(totals).tobytes()


def test_a_worker_that_lacks_what_is_asked_for_is_told_in_one_line(client):
    workers = workers_module.Workers(client, 10.0)

    def ask():
        return workers_module.Request([client.submit(_lacking, pure=False)])

    with pytest.raises(tr.InputError, match=r"a worker cannot run toprank .*: No module named 'toprank.future'"):
        workers.results(ask, lambda attempt: None)


def _lacking():
    raise ModuleNotFoundError("No module named 'toprank.future'")
