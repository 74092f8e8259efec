"""Paired tests, corrections and resampling on plain arrays: what a comparison of rankers rests on.

Nothing here depends on the number of threads: sums are taken in one order, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._typing import Floats

EXACT = 16
"""Up to so many queries that differ, the sign-flip test counts all 2^n flips; beyond, it samples them."""

TIE = 1e-12
"""Two values of a measure that differ by less are equal: the difference is rounding."""

_CHUNK = 1 << 21
"""Values drawn at a time, whatever the number of queries and resamples."""


def sign_flip(diffs: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """p = P(|Σ ±d| ≥ |Σ d|) over sign flips, per row of differences: counted where few queries differ, else sampled.

    >>> sign_flip(np.array([[0.1, 0.2, 0.3, 0.0], [0.1, -0.1, 0.0, 0.0]]), 1000, np.random.default_rng(0)).tolist()
    [0.25, 1.0]
    """
    scale = np.abs(diffs).sum(axis=1)
    bar = np.abs(diffs.sum(axis=1)) - 1e-12 * scale  # a flip that ties with the observed sum counts
    p = np.empty(len(diffs))
    few = (diffs != 0).sum(axis=1) <= EXACT
    for h in np.flatnonzero(few):
        sums = np.zeros(1)
        for d in diffs[h][diffs[h] != 0]:
            sums = np.concatenate((sums + d, sums - d))
        p[h] = (np.abs(sums) >= bar[h]).mean()
    many = diffs[~few]
    if len(many):
        hits = np.zeros(len(many), dtype=np.int64)
        for size in _chunks(n_resamples, diffs.shape[1]):
            packed = rng.integers(0, 256, size=(size, -(-diffs.shape[1] // 8)), dtype=np.uint8)
            heads = np.unpackbits(packed, axis=1, count=diffs.shape[1]).astype(np.float64)
            sums = 2 * np.einsum("bq,hq->bh", heads, many) - many.sum(axis=1)
            hits += (np.abs(sums) >= bar[~few]).sum(axis=0)
        p[~few] = (hits + 1) / (n_resamples + 1)
    return p


def paired_t(d: Floats) -> float:
    """p = 2 P(T_{n−1} ≥ |d̄| / (s/√n)); 1 where nothing differs, 0 where all queries differ by the same amount.

    >>> paired_t(np.array([0.1, 0.1, 0.0, 0.2]))  # t = 0.1 / 0.0408 = √6, 3 degrees of freedom
    0.0917...
    """
    from scipy.special import stdtr

    if not d.any():
        return 1.0
    spread = d.std(ddof=1) / np.sqrt(len(d))
    return 0.0 if spread == 0 else float(2 * stdtr(len(d) - 1, -abs(d.mean()) / spread))


def wilcoxon(d: Floats) -> float:
    """p of W = Σ ranks of |d| over d > 0, zeros dropped: exact for few queries, else by the normal approximation.

    >>> wilcoxon(np.array([0.1, 0.2, 0.3, 0.0]))  # of 8 sign patterns 2 are as extreme
    0.25
    """
    from scipy.stats import wilcoxon as signed_ranks

    d = d[d != 0]
    return 1.0 if len(d) < 2 else float(signed_ranks(d).pvalue)


def holm(p: Floats) -> Floats:
    """p̃_(i) = max over j ≤ i of min(1, (m − j + 1) p_(j)), p-values in rising order (Holm 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1, (len(p) - np.arange(len(p))) * p[order])
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(steps)
    return corrected


def bootstrap_means(rows: Floats, weight: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Σ c_q w_q v_q / Σ c_q w_q (system × resample), c_q how often q is drawn; all systems share the draws.

    >>> bootstrap_means(np.ones((2, 5)), np.ones(5), 3, np.random.default_rng(0)).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    n = rows.shape[1]
    parts = []
    for size in _chunks(n_resamples, n):
        drawn = rng.integers(0, n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        parts.append(np.einsum("bq,sq->sb", counts, rows * weight) / np.einsum("bq,q->b", counts, weight))
    return np.concatenate(parts, axis=1)


def _chunks(n_resamples: int, n_queries: int) -> Iterator[int]:
    step = max(1, _CHUNK // n_queries)
    return (min(step, n_resamples - start) for start in range(0, n_resamples, step))
