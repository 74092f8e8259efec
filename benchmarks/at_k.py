"""Learning precision at the top: epochs over Covertype (581,012 × 54, float32) against one-thread BLAS and peers.

P is the time of `X @ w` with one BLAS thread on the same array. All jobs run on one thread and are timed by the
processor's clock, best of several in one process: other work on the machine hardly moves the ratios.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from . import Row, row

ROWS, FEATURES, BATCH = 581_012, 54, 500

PEAK = """
import sys, numpy as np
import toprank as tr
from toprank.solvers.at_k import LearnerAtK
from toprank.solvers.batches import Batches
from toprank.solvers.steps import Rule, Steps
n = int(sys.argv[1])
rng = np.random.default_rng(0)
X, y = rng.random((n, 54), dtype=np.float32), (rng.random(n) < 0.36).astype(np.float64)
data = tr.QueryDataset.from_arrays(X, y)
small = Batches.of(data[:1].with_X(X), 500)
learner = LearnerAtK(tr.surrogates.PrecAvg(kappa=0.25, normalize=True), Steps(1.0, Rule.SQRT))
learner.play(learner.start(54), small, np.arange(1))
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
open("/proc/self/clear_refs", "w").write("5")
before = peak()
learner.play(learner.start(54), small, np.arange(small.count))
print(peak() - before)
"""


def best(job: Callable[[], object], repeats: int = 7) -> float:
    job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def covertype() -> tuple[np.ndarray, np.ndarray]:
    """Covertype, class 1 against the rest, features in [0, 1]; random rows of its shape where the file is not there."""
    import toprank as tr

    if os.environ.get("TOPRANK_DATA"):
        data = tr.datasets.load("covtype", positive=1)
        X = np.asarray(data.X, dtype=np.float32)
        low, high = X.min(axis=0), X.max(axis=0)
        return np.ascontiguousarray((X - low) / np.where(high > low, high - low, 1), dtype=np.float32), data.y
    rng = np.random.default_rng(0)
    return rng.random((ROWS, FEATURES), dtype=np.float32), (rng.random(ROWS) < 0.36).astype(np.float64)


def run() -> list[Row]:
    from scipy.sparse import csr_array
    from sklearn.linear_model import SGDClassifier
    from threadpoolctl import threadpool_limits

    import toprank as tr
    from toprank.solvers.at_k import LearnerAtK
    from toprank.solvers.batches import Batches
    from toprank.solvers.steps import Rule, Steps
    from toprank.surrogates.precision_at_k import MistakesAvg, MistakesMax, PrecAvg, PrecMax, PrecStruct

    X, y = covertype()
    w = np.random.default_rng(0).normal(size=X.shape[1]).astype(np.float32)
    order = np.random.default_rng(0).permutation(-(-len(X) // BATCH))
    dense = Batches.of(tr.QueryDataset.from_arrays(X, y), BATCH)
    sparse = Batches.of(tr.QueryDataset.from_arrays(csr_array(X), y), BATCH)
    with threadpool_limits(1):
        product = best(lambda: X @ w)
        csr_product = best(lambda: sparse.data.X @ w)

    def epoch(batches: Batches, kind) -> float:
        gradient = kind in (PrecAvg, PrecMax, PrecStruct)
        steps = Steps(1.0, Rule.SQRT, radius=100.0) if gradient else Steps(1.0)
        learner = LearnerAtK(kind(kappa=0.25, normalize=gradient), steps)
        return best(lambda: learner.play(learner.start(X.shape[1]), batches, order))

    rows: list[Row] = []
    kinds = {
        "Perceptron@k-avg": MistakesAvg,
        "Perceptron@k-max": MistakesMax,
        "SGD@k-avg": PrecAvg,
        "SGD@k-max": PrecMax,
        "1PMB": PrecStruct,
    }
    took = {name: epoch(dense, kind) for name, kind in kinds.items()}
    for name, seconds in took.items():
        rows.append(
            row(f"{name} epoch, {len(X):,} × {X.shape[1]}", seconds, passes=seconds / product, note="goal ≤ 2 passes")
        )
    seconds = epoch(sparse, PrecAvg)
    note = "passes are scipy's CSR X @ w"
    rows.append(row("SGD@k-avg epoch, CSR", seconds, passes=seconds / csr_product, note=note))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch does not converge, and says so
        peer = best(lambda: SGDClassifier(max_iter=1, tol=None, random_state=0).fit(X, y), repeats=2)
    for name in ("Perceptron@k-avg", "SGD@k-avg"):
        job, sgd = f"{name} epoch", "scikit-learn's SGDClassifier, one epoch"
        rows.append(row(job, took[name], peer=sgd, theirs=peer, note="goal ≥ 10"))
    fit = best(lambda: tr.PerceptronAtK(epochs=1, random_state=0).fit(X, y), repeats=3)
    rows.append(row("PerceptronAtK.fit(X, y), one epoch, checks and all", fit, passes=fit / product))
    if sys.platform == "linux":
        small, large = (_peak(n) for n in (ROWS // 4, ROWS))
        note = f"on a quarter of the rows {small} kB"
        rows.append(row("memory of an epoch beside X", large, "kB", note=note))
    return rows


def _peak(rows: int) -> int:
    done = subprocess.run([sys.executable, "-c", PEAK, str(rows)], check=True, capture_output=True, text=True)
    return int(done.stdout)


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
