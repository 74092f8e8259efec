"""Online learners: epochs over 6,000 lists (707,505 × 136, float32) against one-thread BLAS, and lists one by one.

P is the time of `X @ w` with one BLAS thread on the same array. All jobs run on one thread and are timed by the
processor's clock, in turns with P in one process, best of several: other work on the machine hardly moves the ratios.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from . import Row, row

LISTS, DOCS, FEATURES = 6000, 707_505, 136
JOBS = {
    "SLAM perceptron epoch, NDCG@10": ("ndcg@10", "slam", 1.5),
    "the same, every eighth list also by the average": ("ndcg@10", "compared", 1.5),
    "SLAM perceptron epoch, NDCG (all weights)": ("ndcg", "slam", 2.0),
    "SLAM perceptron epoch, AP (all weights)": ("map", "slam", 2.0),
    "minimax perceptron epoch, NDCG@10": ("ndcg@10", "minimax", None),
    "online ListNet epoch": ("ndcg@10", "listnet", 1.4),
}


def timed(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def lists() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian features and grades 0–4 with the shares of judged web results, 118 documents a list on average."""
    rng = np.random.default_rng(0)
    X = np.empty((DOCS, FEATURES), dtype=np.float32)
    for start in range(0, DOCS, 1 << 14):
        rng.standard_normal(out=X[start : start + (1 << 14)], dtype=np.float32)
    hidden = X[:, :14] @ rng.standard_normal(14).astype(np.float32) + 4 * rng.standard_normal(DOCS)
    y = np.searchsorted(np.quantile(hidden, [0.524, 0.849, 0.983, 0.993]), hidden).astype(np.float64)
    ptr = np.linspace(0, DOCS, LISTS + 1).astype(np.int64)
    return X, y, ptr


def learner(name: str, loss: str):
    import toprank as tr
    from toprank.solvers.steps import Steps
    from toprank.solvers.stream import OnlineDescent

    target = tr.measure(name)
    surrogate = {
        "slam": lambda: tr.surrogates.Slam(target, within="score"),
        "compared": lambda: tr.surrogates.Slam(target, within="score"),
        "minimax": tr.surrogates.Minimax,
        "listnet": tr.surrogates.ListNet,
    }[loss]()
    return OnlineDescent(surrogate, target, Steps(0.01), always=loss == "listnet", compare=loss == "compared")


def run(repeats: int = 9) -> list[Row]:
    from threadpoolctl import threadpool_limits

    X, y, ptr = lists()
    w = np.random.default_rng(1).standard_normal(FEATURES).astype(np.float32)
    order = np.random.default_rng(0).permutation(LISTS)
    learners = {job: learner(name, loss) for job, (name, loss, _) in JOBS.items()}

    def epoch(job: str, rows=X) -> None:
        learners[job].play(learners[job].start(FEATURES), rows, y, ptr, order)

    took: dict[str, list[float]] = {"P": [], **{job: [] for job in JOBS}}
    with threadpool_limits(1):
        for turn in range(repeats + 1):
            for job, times in took.items():
                seconds = timed(lambda: X @ w) if job == "P" else timed(lambda job=job: epoch(job))
                if turn > 0:
                    times.append(seconds)
    product = min(took["P"])
    rows: list[Row] = []
    for job, (_, _, goal) in JOBS.items():
        ours = min(took[job])
        note = f"goal ≤ {goal} passes" if goal else ""
        rows.append(row(job, ours * 1e3, "ms", passes=ours / product, note=note))
    for name in ("SLAM perceptron epoch, NDCG@10", "online ListNet epoch"):
        rows += [as_csr(name, learners[name], share, X, y, ptr, repeats) for share in (1.0, 0.6)]
    rows += list_by_list()
    return rows


def as_csr(name: str, learner, share: float, X, y, ptr, repeats: int) -> Row:
    """A quarter of the lists, of whose values this share is stored (judged web results have 0.6), against dense."""
    from scipy.sparse import csr_array

    part = ptr[LISTS // 4]
    few = np.random.default_rng(0).permutation(LISTS // 4)
    dense = X[:part]
    if share < 1:
        dense = dense * (np.random.default_rng(2).random(dense.shape, dtype=np.float32) < share)
    sparse = csr_array(dense)

    def play(matrix) -> None:
        learner.play(learner.start(FEATURES), matrix, y[:part], ptr[: LISTS // 4 + 1], few)

    play(sparse)
    turns = [(timed(lambda: play(dense)), timed(lambda: play(sparse))) for _ in range(2 * repeats)]
    theirs, ours = np.min(turns, axis=0)
    values = ours / sparse.nnz / (theirs / dense.size)
    note = f"{ours / theirs:.2f} times the dense epoch, goal ≤ 2; {values:.2f} times per value that is read"
    job = f"{name}, CSR, {share:.0%} stored"
    return row(job, ours * 1e3, "ms", peer="ours, the same X dense", theirs=theirs * 1e3, note=note)


def list_by_list(calls: int = 4000) -> list[Row]:
    import toprank as tr

    rng = np.random.default_rng(0)
    lists = [(rng.standard_normal((120, FEATURES), dtype=np.float32), rng.integers(0, 5, 120)) for _ in range(50)]
    rows = []
    for kind in (tr.SlamPerceptron, tr.MinimaxPerceptron, tr.OnlineListNet):
        ranker = kind(eta=0.01)
        for X, y in lists:
            ranker.partial_fit(X, y)
        before = _resident()
        times = []
        for _ in range(8):
            start = time.process_time()
            for i in range(calls // 8):
                ranker.partial_fit(*lists[i % 50])
            times.append((time.process_time() - start) / (calls // 8))
        grown = _resident() - before
        micro = min(times) * 1e6
        note = f"120 × 136; goal ≤ 60 µs; resident memory grew by {grown} KB in {calls:,} calls"
        rows.append(row(f"{kind.__name__}.partial_fit, one list", micro, "µs", note=note))
    return rows


def _resident() -> int:
    if sys.platform != "linux":
        return 0
    with open("/proc/self/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
