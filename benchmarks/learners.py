"""Every learner, fitted once as it comes, on one set of judged queries: seconds, and passes over X.

The set has the shape of judged web search (lists of 118 documents on average, 136 features, five grades). All runs use
one thread. A pass is `X @ w` with one BLAS thread. The peer of the batch learners is LightGBM's lambdarank as it comes
(100 trees, one thread), which learns trees: it is named as what a user would otherwise run, not as the same algorithm.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np

from . import Row, one_pass, row

LISTS = 500


def timed(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def run() -> list[Row]:
    from lightgbm import LGBMRanker
    from threadpoolctl import threadpool_limits

    import toprank as tr
    from toprank import rankers

    data = tr.datasets.make_graded(
        n_queries=LISTS, n_docs=(58, 178), n_features=136, dtype=np.float32, noise=1.0, random_state=0
    )
    X, y = data.X, data.y
    product, rows = one_pass(X), []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a learner that stops at its limit of iterations says so
        trees = timed(lambda: LGBMRanker(n_jobs=1, verbose=-1).fit(X, y, group=data.lengths))
        for name in rankers.__all__:
            kind = getattr(rankers, name)
            kind().fit_queries(data[:4])  # compiles, or loads what was compiled
            ours = timed(lambda kind=kind: kind().fit_queries(data))
            job, peer = f"{name}().fit, {LISTS} lists", "LightGBM lambdarank, 100 trees, 1 thread"
            rows.append(row(job, ours, peer=peer, theirs=trees, passes=ours / product))
    return rows
