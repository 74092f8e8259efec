"""One machine, two processes on Dask, and XGBoost's and LightGBM's Dask rankers: time, NDCG@10, a killed worker.

    python -m benchmarks.scale [ROWS …]          # default 100000; every job in a process of its own, with a time limit
    python -m benchmarks.scale simulate 10 100   # what a round costs the scheduler, with workers that do nothing

Every job prints one line; one that does not end within the limit is said to hang.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np

import toprank as tr

from . import Row, row

LIMIT = 300.0
KILL_AFTER = 2.0
JOBS = ("one machine", "2 workers", "xgboost.dask", "lightgbm.dask")


def make(rows: int, seed: int = 0, features: int = 136) -> tr.QueryDataset:
    """Lists of 100 documents whose grades follow a few features and much noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    y = np.clip(np.round(X[:, :8] @ np.linspace(1, 0.2, 8) + 2 * rng.standard_normal(rows)), 0, 4)
    return tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(rows // 100), 100))


def start(workers: int = 2) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)


def kill_one(client: Any) -> None:
    pid = next(iter(client.run(os.getpid).values()))
    threading.Timer(KILL_AFTER, os.kill, (pid, signal.SIGKILL)).start()


def ours(data: tr.QueryDataset, client: Any) -> Any:
    placed = data if client is None else tr.dask.place(data, client)
    return tr.ListNet(max_iter=50).fit_queries(placed).predict


def xgboost(data: tr.QueryDataset, client: Any) -> Any:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    from xgboost import dask as xgb

    frame = pd.DataFrame(data.X).add_prefix("f").assign(qid=data.qid, y=data.y)
    table = dd.from_pandas(frame, npartitions=2)
    names = [f"f{j}" for j in range(data.n_features)]
    ranker = xgb.DaskXGBRanker(n_estimators=50, objective="rank:ndcg", tree_method="hist")
    ranker.client = client
    ranker.fit(table[names], table["y"], qid=table["qid"])
    return lambda X: np.asarray(ranker.predict(da.from_array(X, chunks=X.shape)).compute())


def lightgbm(data: tr.QueryDataset, client: Any) -> Any:
    import dask.array as da
    from lightgbm import DaskLGBMRanker

    half = data.n_queries // 2 * 100
    cuts = (half, data.n_docs - half)
    X, y = (da.from_array(values, chunks=(cuts, *values.shape[1:])) for values in (data.X, data.y))
    group = da.from_array(data.lengths, chunks=((data.n_queries // 2, data.n_queries - data.n_queries // 2),))
    ranker = DaskLGBMRanker(n_estimators=50, client=client, verbose=-1)
    ranker.fit(X, y, group=group)
    return ranker.to_local().predict


def job(name: str, rows: int, killed: bool) -> None:
    """Fit once more after a warm-up on little data, and print seconds and NDCG@10 on other queries."""
    from distributed import Client

    warnings.simplefilter("ignore")
    data, test = make(rows), make(20_000, seed=1)
    learn = {"xgboost.dask": xgboost, "lightgbm.dask": lightgbm}.get(name, ours)
    if name == "one machine":
        learn(make(2000), None)
        began = time.perf_counter()
        predict = learn(data, None)
    else:
        with start() as cluster, Client(cluster) as client:
            learn(make(2000), client)
            if killed:
                kill_one(client)
            began = time.perf_counter()
            predict = learn(data, client)
            seconds = time.perf_counter() - began
            value = tr.evaluate(predict(test.X), test, ["ndcg@10"]).mean["ndcg@10"]
            print(f"{seconds:.2f} {value:.4f}", flush=True)
            return
    seconds = time.perf_counter() - began
    value = tr.evaluate(predict(test.X), test, ["ndcg@10"]).mean["ndcg@10"]
    print(f"{seconds:.2f} {value:.4f}", flush=True)


def told(name: str, rows: int, killed: bool = False) -> str:
    """Return what a job in a process of its own comes to: seconds and NDCG@10, or how it ended."""
    command = [sys.executable, "-m", "benchmarks.scale", "job", name, str(rows), str(int(killed))]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"hangs ({LIMIT:g} s)"
    lines = [line for line in err.strip().splitlines() if line.strip()]
    return out.strip() or f"fails: {lines[-1][:100] if lines else process.returncode}"


def simulate(workers: int, rounds: int = 20) -> float:
    """Seconds of a round of one task per worker, for workers in this process that do nothing."""
    from distributed import Client, LocalCluster

    made = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    w = np.zeros(136)
    with made, Client(made) as client:
        names = list(client.nthreads())
        held = [client.submit(bytes, 10, workers=[name], pure=False) for name in names]
        client.gather(held)
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            client.gather([client.submit(_nothing, part, w, pure=False) for part in held])
            times.append(time.perf_counter() - began)
    return float(np.median(times))


def _nothing(part: bytes, w: Any) -> Any:
    return w


def run() -> list[Row]:
    """Rows of the table of all benchmarks: the smallest size."""
    alone = float(told("one machine", 100_000).split()[0])
    rows = []
    for name in JOBS[1:]:
        found = told(name, 100_000).split()
        if len(found) == 2 and found[0].replace(".", "").isdecimal():
            note = f"ndcg@10 {found[1]}; one machine, ListNet: {alone:.2f} s"
            rows.append(row(f"fit 100,000 × 136, {name}", float(found[0]), "s", note=note))
    return rows


def main(words: list[str]) -> None:
    if words[:1] == ["job"]:
        job(words[1], int(words[2]), words[3] == "1")
    elif words[:1] == ["simulate"]:
        for count in map(int, words[1:]):
            print(f"{count} workers: {1e3 * simulate(count):.1f} ms a round", flush=True)
    else:
        for rows in [int(word) for word in words] or [100_000]:
            for name in JOBS:
                print(f"{rows:,} rows, {name}: {told(name, rows)}", flush=True)
                if name != JOBS[0]:
                    print(f"  one worker killed {KILL_AFTER:g} s later: {told(name, rows, killed=True)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
