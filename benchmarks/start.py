"""What the first second costs: `import toprank`, and the first evaluation of a fresh process with a warm cache."""

from __future__ import annotations

import subprocess
import sys
import time

from . import Row, row

CODE = {
    "bare python": "pass",
    "import toprank": "import toprank",
    "import sklearn": "import sklearn.metrics",
    "first evaluation": (
        "import numpy as np, toprank as tr\n"
        "rng = np.random.default_rng(0)\n"
        "X, y, qid = rng.random((1000, 5)), rng.integers(0, 3, 1000), np.repeat(range(50), 20)\n"
        "data = tr.QueryDataset.from_arrays(X, y, qid)\n"
        "tr.evaluate(data.X[:, 0], data, ['ndcg@10', 'map'])"
    ),
}


def seconds(code: str, repeats: int = 7) -> float:
    """Best of several fresh processes, after one that warms the caches."""
    best = float("inf")
    for i in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        if i:
            best = min(best, time.perf_counter() - start)
    return best


def run() -> list[Row]:
    took = {name: seconds(code) for name, code in CODE.items()}
    bare, peer = took["bare python"], took["import sklearn"]
    return [
        row(job, took[job] - bare, "s over bare python", peer="import sklearn.metrics", theirs=peer - bare)
        for job in ("import toprank", "first evaluation")
    ]


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
