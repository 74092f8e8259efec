"""Workers that are killed, stop or join: the same bits at the end, or an error in time; never a hang."""

import _thread
import gc
import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import toprank as tr
from toprank.dask import placing
from toprank.dask.placing import placed
from toprank.dask.workers import Workers
from toprank.objective import Objective
from toprank.solvers import adarank

from .conftest import cluster, judged, until

pytestmark = pytest.mark.usefixtures("short_runs")


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("mortal"), config={"distributed.scheduler.allowed-failures": 9}) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return judged()


def pids(client):
    return list(client.run(os.getpid).values())


@contextmanager
def after(seconds, act, *args):
    timer = threading.Timer(seconds, act, args)
    timer.start()
    yield
    timer.join()


def slowly(seconds, block):
    time.sleep(seconds)
    return block.X.sum(axis=0, dtype=np.float64)


def slow_read(seconds, rows):
    time.sleep(seconds)
    return rows


def deadly(rows):
    os._exit(1)


def placed_by(client, data, read, timeout=60.0, parts=6):
    names = ("y", "ptr", "query_ids")
    return placed(
        Workers(client, timeout), lambda a, b, *rows: partial(read, data[a:b]), n_features=data.n_features,
        dtype=data.X.dtype, row_values=data.row_values, parts=parts, mapped=False,
        **{name: getattr(data, name) for name in names},
    )  # fmt: skip


def test_one_worker_or_all_of_them_killed_between_evaluations(mortal, data):
    far = tr.dask.place(data, mortal, parts=6)
    here, there = (Objective(each, tr.surrogates.ListNet()) for each in (data, far))
    w = np.linspace(-1, 1, data.n_features)
    for step, victims in enumerate((slice(0), slice(1), slice(None))):
        for pid in pids(mortal)[victims]:
            os.kill(pid, signal.SIGKILL)
        (value, grad), (value_there, grad_there) = here.value_and_grad(w * step), there.value_and_grad(w * step)
        assert value == value_there
        assert grad.tobytes() == grad_there.tobytes()


@pytest.mark.parametrize("victims", [slice(1), slice(None)], ids=["one", "all"])
def test_killed_in_the_middle_of_an_evaluation(mortal, data, victims):
    far = tr.dask.place(data, mortal, parts=6)
    fn = partial(slowly, 0.02)
    far.map_reduce(partial(slowly, 0))
    with after(0.3, lambda doomed: [os.kill(pid, signal.SIGKILL) for pid in doomed], pids(mortal)[victims]):
        found = far.map_reduce(fn)
    assert found.tobytes() == data.map_reduce(partial(slowly, 0)).tobytes()


def test_killed_while_loading(mortal, data):
    doomed = pids(mortal)
    far = placed_by(mortal, data, partial(slow_read, 0.2))
    with after(0.3, lambda: [os.kill(pid, signal.SIGKILL) for pid in doomed]):
        assert far.map_reduce(partial(slowly, 0)).tobytes() == data.map_reduce(partial(slowly, 0)).tobytes()


def test_a_slow_worker(mortal, data):
    far = tr.dask.place(data, mortal, parts=6)
    whole = data.map_reduce(partial(slowly, 0)).tobytes()
    assert far.map_reduce(partial(slowly, 0)).tobytes() == whole
    slow = pids(mortal)[0]
    os.kill(slow, signal.SIGSTOP)
    try:
        with after(2.0, os.kill, slow, signal.SIGCONT):
            assert far.map_reduce(partial(slowly, 0)).tobytes() == whole
    finally:
        os.kill(slow, signal.SIGCONT)


def restrictions(dask_scheduler):
    """Where parts may be loaded, if not anywhere."""
    return [task.worker_restrictions for key, task in dask_scheduler.tasks.items() if "toprank-part" in str(key)]


def test_a_worker_that_joins_takes_parts_over(mortal, data, monkeypatch):
    monkeypatch.setattr(placing, "LOOK_SECONDS", 0.0)
    far, weight = tr.dask.place(data, mortal, parts=6), np.linspace(0, 1, data.n_queries)
    near, far = (replace(each, query_weight=weight) for each in (data, far))  # parts made of parts
    here = tr.ListNet(tol=1e-9).fit_queries(near)
    plain, steps, joined = Objective.value_and_grad, [], []

    def watched(self, w):
        steps.append(plain(self, w)[0])
        if len(steps) == 3:
            before = set(mortal.nthreads())
            mortal.cluster.scale(3)
            mortal.wait_for_workers(3, timeout=60)
            joined.extend(set(mortal.nthreads()) - before)
            until(lambda: plain(self, w)[0] == steps[-1] and joined[0] in self._parts.matrix.parts_of_worker)
        elif len(steps) > 3:
            assert len(self._parts.matrix.parts_of_worker[joined[0]]) == 2  # a third of the parts, in every later step
        return plain(self, w)

    monkeypatch.setattr(Objective, "value_and_grad", watched)
    there = tr.ListNet(tol=1e-9).fit_queries(far)
    assert len(steps) > 6
    assert here.coef_.tobytes() == there.coef_.tobytes()
    assert not any(mortal.run_on_scheduler(restrictions))  # should it be lost, what it took over goes anywhere
    mortal.cluster.scale(2)


def test_an_interrupt_takes_back_what_was_asked(mortal, data):
    far = tr.dask.place(data, mortal, parts=6)
    far.map_reduce(partial(slowly, 0))
    with pytest.raises(KeyboardInterrupt), after(0.5, _thread.interrupt_main):
        far.map_reduce(partial(slowly, 1))
    assert not [key for keys in mortal.processing().values() for key in keys if "reduce" in str(key)]
    assert far.map_reduce(partial(slowly, 0)).tobytes() == data.map_reduce(partial(slowly, 0)).tobytes()


def test_nothing_is_left_on_the_cluster_when_the_data_are_gone(mortal, data):
    far = tr.dask.place(data, mortal, parts=6)
    far.map_reduce(partial(slowly, 0))
    del far
    gc.collect()
    for _ in range(100):
        if not (left := [key for keys in mortal.has_what().values() for key in keys if "toprank" in str(key)]):
            break
        time.sleep(0.1)
    assert not left


def test_no_worker_left_is_told_with_the_weights_so_far(tmp_path, data, monkeypatch):
    with cluster(tmp_path, n_workers=1) as client:
        far = tr.dask.place(data, client, timeout=3)
        seen, plain = [], Objective.value_and_grad

        def watched(self, w):
            if len(seen) == 3:
                client.cluster.scale(0)
            seen.append((plain(self, w)[0], w.copy()))
            return plain(self, w)

        monkeypatch.setattr(Objective, "value_and_grad", watched)
        ranker = tr.ListNet()
        with pytest.raises(tr.dask.WorkersLost, match="no worker came back within 3 s") as lost:
            ranker.fit_queries(far)
        assert lost.value.coef.tobytes() == min(seen)[1].tobytes()
        assert not hasattr(ranker, "model_")


def test_adarank_tells_its_weights_so_far_too(tmp_path, data, monkeypatch):
    with cluster(tmp_path, n_workers=1) as client:
        far = tr.dask.place(data, client, timeout=3)
        plain, steps = adarank._Ensemble.plus, []

        def plus(self, k, alpha, *, alone):
            steps.append((k, alpha))
            if len(steps) == 3:
                client.cluster.scale(0)
            return plain(self, k, alpha, alone=alone)

        monkeypatch.setattr(adarank._Ensemble, "plus", plus)
        with pytest.raises(tr.dask.WorkersLost, match="no worker came back within 3 s") as lost:
            tr.AdaRank("map", rounds=9, rule="paper").fit_queries(far)
        wanted = np.zeros(data.n_features)
        for k, weight in steps[:2]:  # the rule of the paper takes every step
            wanted[k % data.n_features] += weight if k < data.n_features else -weight
        assert lost.value.coef.tobytes() == wanted.tobytes()
        assert wanted.any()


def test_a_part_that_kills_its_workers_is_about_memory(tmp_path, data):
    with cluster(tmp_path, n_workers=1, config={"distributed.scheduler.allowed-failures": 1}) as client:
        far = placed_by(client, data, deadly, parts=1)
        with pytest.raises(tr.InputError, match=r"2 workers died one after the other .* too little memory"):
            far.map_reduce(partial(slowly, 0))
