"""One cluster of two processes for all tests of a session; tests that kill workers start their own."""

import logging
import time
from contextlib import contextmanager

import numpy as np
import pytest
from distributed import Client, LocalCluster

import dask
import toprank as tr
from toprank.data import blocks


@contextmanager
def cluster(folder, n_workers=2, config=None):
    """Start workers as processes that leave nothing behind outside `folder`."""
    calm = {"distributed.worker.memory.terminate": False, "distributed.worker.memory.pause": False}
    with dask.config.set(
        {"temporary-directory": str(folder), "distributed.admin.tick.limit": "1h", **calm, **(config or {})}
    ):
        made = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
        with made, Client(made) as client:
            yield client


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as client:
        yield client


@pytest.fixture
def short_runs(monkeypatch):
    """Cut small data into many runs, so that there is something to add up in an order."""
    monkeypatch.setattr(blocks, "RUN_VALUES", 200)
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 70)


def judged(n_queries=120, seed=0, dtype=np.float32, features=6, **more):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 20, n_queries)
    qid = np.repeat(np.arange(n_queries), lengths)
    X = rng.standard_normal((len(qid), features)).astype(dtype)
    y = np.clip(np.round(X @ np.linspace(1, -1, features) + rng.standard_normal(len(qid))), 0, 3)
    return tr.QueryDataset.from_arrays(X, y, qid, **more)


def until(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
