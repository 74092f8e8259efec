"""One machine, two processes on Dask, XGBoost's and LightGBM's Dask rankers: time to the same NDCG, a killed worker.

    python -m benchmarks.scale [ROWS …]          # default 100000 300000 1000000: the table, within about eight minutes
    python -m benchmarks.scale overhead 1 2      # an evaluation of ListNet's objective beside the workers' own time
    python -m benchmarks.scale simulate 1 10 100 # what a round costs the scheduler, with workers that do nothing

Every job is a process of its own with a time limit, and reads the same Parquet files; one that does not end is said to
hang. A learner's seconds count from the files to the model; those of all its processors together say more on a machine
that has other work. "To the same NDCG" is the time to the NDCG@10, on other queries, that the least of them reaches: as
many of its steps or trees as that takes, each as long as the others. A worker is killed half-way through a second fit.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import toprank as tr

from . import Row, row


class Fit(NamedTuple):
    """What a job came to: seconds, seconds of all processors (nan where a worker died), NDCG@10 after each step."""

    seconds: float
    processors: float
    curve: list[float]


class Clock:
    """Time since it was made, and what this process and the workers did in it."""

    def __init__(self, client: Any) -> None:
        self.client, self.spent, self.began = client, self._spent(client), time.perf_counter()

    def read(self) -> tuple[float, float]:
        seconds, spent = time.perf_counter() - self.began, self._spent(self.client)
        same = spent.keys() == self.spent.keys()
        return seconds, sum(spent.values()) - sum(self.spent.values()) if same else np.nan

    @staticmethod
    def _spent(client: Any) -> dict[str, float]:
        workers = {} if client is None else client.run(time.process_time, on_error="ignore")
        return {**workers, "here": time.process_time()}


LIMIT, KILLED_LIMIT, WHOLE = 150.0, 75.0, 430.0
"""Seconds of a job, of one whose worker is killed, and after which no further job is begun."""
FILES, STEPS = 4, 50
TOLD = "result: "
"""How the line begins in which a job tells its result: learners print lines of their own."""
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


def kill_one(client: Any, seconds: float) -> None:
    """Kill a worker in so many seconds."""
    pid = next(iter(client.run(os.getpid).values()))
    threading.Timer(seconds, os.kill, (pid, signal.SIGKILL)).start()


def write(rows: int, folder: Path) -> None:
    """Write the queries into files, each with whole queries."""
    data = make(rows)
    step = -(-data.n_queries // FILES)
    for i in range(FILES):
        tr.write_parquet(data[i * step : (i + 1) * step], folder / f"part{i}.parquet")


def ours(folder: Path, client: Any, test: tr.QueryDataset, steps: int = STEPS) -> Fit:
    import pyarrow.parquet as pq

    clock = Clock(client)
    if client is None:
        data = tr.read_table(pq.read_table(folder), label="label", qid="query")
    else:
        data = tr.dask.read_table(f"{folder}/*.parquet", client, label="label", qid="query")
    ranker = tr.ListNet(max_iter=steps).fit_queries(data)
    took = clock.read()
    # The bits are the same wherever it learns, so what each step reaches is looked up once more, and not timed.
    again = tr.ListNet(max_iter=steps, patience=None).fit_queries(data, valid=test)
    return Fit(*took, [*again.trace_["valid"], judged(ranker.predict(test.X), test)])


def xgboost(folder: Path, client: Any, test: tr.QueryDataset, steps: int = STEPS) -> Fit:
    import dask.dataframe as dd
    import xgboost as xgb
    from xgboost import dask as dxgb

    clock = Clock(client)
    table = dd.read_parquet(folder, split_row_groups=False)
    names = [name for name in table.columns if name not in ("label", "query")]
    # Each file holds whole queries. Left at its default, XGBoost cuts the frames into a piece for every query first.
    ranker = dxgb.DaskXGBRanker(n_estimators=steps, objective="rank:ndcg", tree_method="hist", allow_group_split=True)
    ranker.client = client
    ranker.fit(table[names], table["label"], qid=table["query"])
    took, X = clock.read(), xgb.DMatrix(test.X, feature_names=names)
    booster = ranker.get_booster()
    return Fit(*took, [judged(booster.predict(X, iteration_range=(0, n)), test) for n in range(1, steps + 1)])


def lightgbm(folder: Path, client: Any, test: tr.QueryDataset, steps: int = STEPS) -> Fit:
    import dask.array as da
    import pyarrow.parquet as pq
    from lightgbm import DaskLGBMRanker

    import dask

    clock = Clock(client)
    files = sorted(folder.glob("*.parquet"))
    lengths = [pq.read_metadata(file).num_rows for file in files]
    read = dask.delayed(_arrays, nout=2)  # arrays made from frames are lost between Dask 2026 and LightGBM 4.7
    loaded = [(*read(str(file)), n) for file, n in zip(files, lengths, strict=True)]
    X = da.concatenate([da.from_delayed(x, (n, test.n_features), np.float32) for x, _, n in loaded])
    y = da.concatenate([da.from_delayed(labels, (n,), np.float64) for _, labels, n in loaded])
    group = da.concatenate([da.full(n // 100, 100, chunks=n // 100, dtype=np.int64) for n in lengths])
    X, y, group = client.persist([X, y, group])
    local = DaskLGBMRanker(n_estimators=steps, client=client, verbose=-1).fit(X, y, group=group).to_local()
    took = clock.read()
    return Fit(*took, [judged(local.predict(test.X, num_iteration=n), test) for n in range(1, steps + 1)])


def _arrays(file: str) -> tuple[Any, Any]:
    data = tr.read_table(file, label="label", qid="query")
    return data.X.astype(np.float32, copy=False), data.y


def judged(scores: Any, test: tr.QueryDataset) -> float:
    return tr.evaluate(np.asarray(scores, dtype=np.float64), test, ["ndcg@10"]).mean["ndcg@10"]


def job(name: str, folder: Path, kill: float) -> None:
    """Fit once more after a warm-up on little data and print what it came to; a worker dies after `kill` seconds."""
    from distributed import Client

    warnings.simplefilter("ignore")
    test = make(20_000, seed=1)
    learn = {"xgboost.dask": xgboost, "lightgbm.dask": lightgbm}.get(name, ours)
    with ExitStack() as stack:
        client = None if name == JOBS[0] else stack.enter_context(Client(stack.enter_context(start())))
        small = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write(4000, small)
        learn(small, client, test, 2)
        if kill:
            kill_one(client, kill)
        print(TOLD + json.dumps(learn(folder, client, test)), flush=True)


def told(name: str, folder: Path, kill: float = 0.0) -> Fit | str:
    """Return what a job in a process of its own comes to, or how it ended."""
    command = [sys.executable, "-m", "benchmarks.scale", "job", name, str(folder), str(kill)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    limit = KILLED_LIMIT if kill else LIMIT
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"does not end within {limit:g} s"
    lines = [line for line in err.splitlines() if line.strip() and "[bt]" not in line]  # which call stacks are made of
    results = [line.removeprefix(TOLD) for line in out.splitlines() if line.startswith(TOLD)]
    if not results:
        return f"fails: {lines[-1][:90] if lines else process.returncode}"
    return Fit(*json.loads(results[-1]))


def table(sizes: list[int]) -> None:
    """Print the table, a line per job."""
    began = time.perf_counter()
    heads = (
        f"{'rows':>10}  {'learner':14} {'seconds':>8} {'of processors':>14} {'ndcg@10':>8}  {'to the same ndcg':>16}"
    )
    print(f"{heads}  a worker killed", flush=True)
    for rows in sizes:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            write(rows, folder)
            found: dict[str, Fit | str] = {}
            killed: dict[str, Fit | str] = {}
            for name in JOBS:
                if time.perf_counter() - began < WHOLE:
                    found[name] = told(name, folder)
                one = found.get(name, "")
                if name != JOBS[0] and rows == sizes[min(1, len(sizes) - 1)] and not isinstance(one, str):
                    killed[name] = told(name, folder, kill=one.seconds / 2)  # half-way
        level = min((max(one.curve) for one in found.values() if not isinstance(one, str)), default=0.0)
        for name in JOBS:
            one, after = found.get(name, "left out: no time"), killed.get(name, "")
            end = after if isinstance(after, str) else f"{after.seconds:.1f} s, {after.curve[-1]:.4f}"
            if isinstance(one, str):
                print(f"{rows:10,}  {name:14} {one}{'; a worker killed: ' * bool(end)}{end}", flush=True)
                continue
            steps = 1 + next(i for i, value in enumerate(one.curve) if value >= level)
            same, line = f"{one.seconds * steps / len(one.curve):.1f} s", f"{rows:10,}  {name:14} {one.seconds:8.1f}"
            print(f"{line} {one.processors:14.1f} {one.curve[-1]:8.4f}  {same:>16}  {end}", flush=True)


def overhead(workers: int, rows: int = 200_000, rounds: int = 30) -> tuple[float, float]:
    """Seconds of an evaluation of ListNet's objective, and what of it is not the work of the busiest worker."""
    from distributed import Client

    from toprank.objective import Objective

    with start(workers) as cluster, Client(cluster) as client:
        objective = Objective(tr.dask.place(make(rows), client), tr.surrogates.ListNet())
        w, took = np.zeros(136), []
        for _ in range(rounds + 3):
            began = time.perf_counter()
            _, busy = objective._parts.map_reduce(partial(_timed, objective.surrogate, w), _both)
            took.append((time.perf_counter() - began, max(busy.values())))
        whole, own = np.median(np.array(took[3:]), axis=0)
    return float(whole), float(whole - own)


def _timed(surrogate: Any, w: Any, part: Any) -> tuple[Any, dict[int, float]]:
    from toprank.objective import _loss_and_grad

    began = time.perf_counter()
    return _loss_and_grad(surrogate, w, part), {os.getpid(): time.perf_counter() - began}


def _both(left: Any, right: Any) -> Any:
    from toprank.objective import _join

    seconds = {pid: left[1].get(pid, 0.0) + right[1].get(pid, 0.0) for pid in left[1] | right[1]}
    return _join(left[0], right[0]), seconds


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
    """Rows of the table of all benchmarks: the smallest size, and what the scheduler adds."""
    rows = []
    with tempfile.TemporaryDirectory() as made:
        write(100_000, Path(made))
        found = {name: told(name, Path(made)) for name in JOBS}
    alone = found.pop(JOBS[0])
    for name, one in found.items():
        if not isinstance(one, str) and not isinstance(alone, str):
            note = f"ndcg@10 {one.curve[-1]:.4f}; one machine, ListNet: {alone.curve[-1]:.4f}"
            peer = {"peer": JOBS[0], "theirs": alone.seconds} if name == JOBS[1] else {}
            rows.append(row(f"fit 100,000 × 136 from files, {name}", one.seconds, "s", note=note, **peer))
    whole, added = overhead(2)
    note = f"of {1e3 * whole:.1f} ms; at most 15 + 1.5 a worker"
    return [*rows, row("objective, 2 workers: beside their own time", 1e3 * added, "ms", note=note)]


def main(words: list[str]) -> None:
    if words[:1] == ["job"]:
        job(words[1], Path(words[2]), float(words[3]))
    elif words[:1] == ["simulate"]:
        for count in map(int, words[1:]):
            print(f"{count} workers that do nothing: {1e3 * simulate(count):.1f} ms a round", flush=True)
    elif words[:1] == ["overhead"]:
        for count in map(int, words[1:]):
            whole, added = overhead(count)
            limit = 15 + 1.5 * count
            print(
                f"{count} workers: {1e3 * whole:.1f} ms an evaluation, {1e3 * added:.1f} ms beside their own time "
                f"(at most {limit:g})",
                flush=True,
            )
    else:
        table([int(word) for word in words] or [100_000, 300_000, 1_000_000])


if __name__ == "__main__":
    main(sys.argv[1:])
