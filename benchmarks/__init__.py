"""Ratios against named peers, peers and ours in one run."""

from __future__ import annotations

import time

import numpy as np

Row = dict[str, object]


def row(
    job: str,
    ours: float,
    unit: str = "s",
    *,
    peer: str | None = None,
    theirs: float | None = None,
    passes: float | None = None,
    note: str = "",
) -> Row:
    """One line of the table; `ratio` is how many times better ours is: less time, or more per second.

    `passes` is our time over that of one pass, `X @ w` with one BLAS thread on the same X.
    """
    ratio = None if theirs is None else ours / theirs if unit.endswith("/s") else theirs / ours
    return {
        "job": job,
        "ours": ours,
        "unit": unit,
        "peer": peer,
        "theirs": theirs,
        "ratio": ratio,
        "passes": passes,
        "note": note,
    }


def one_pass(X: np.ndarray, repeats: int = 15) -> float:
    """Seconds of `X @ w` with one BLAS thread: the unit of speed."""
    from threadpoolctl import threadpool_limits

    w, took = np.ones(X.shape[1], dtype=X.dtype), []
    with threadpool_limits(1):
        for _ in range(repeats):
            began = time.perf_counter()
            X @ w
            took.append(time.perf_counter() - began)
    return min(took)
