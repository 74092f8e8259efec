"""Paired tests, corrections and resampling on plain arrays: what a comparison of rankers rests on.

Nothing here depends on the number of threads: sums are taken in one order, chunk by chunk, and threads share rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats

EXACT = 28
"""Up to so many queries that differ, the sign-flip test counts all 2^n flips; beyond, it samples them."""

TIE = 1e-12
"""Two values of a measure that differ by less are equal: the difference is rounding."""

_FLIPS = 1 << 18
"""Signs drawn at a time: they stay in the processor's cache while every test reads them."""


_TESTS = 1 << 9
"""Tests that a thread takes at a time."""


def sign_flip(diffs: Floats, n_resamples: int, rng: np.random.Generator, level: float | None = None) -> Floats:
    """p = P(|Σ ±d| ≥ |Σ d|) over sign flips, per row of differences: counted where few queries differ, else sampled.

    Sampled flips are even, and p = (hits + 1) / (n_resamples + 1); or, with a `level` that p should be told from,
    half of them are tilted and weighted back (`_sampled`), and p can be as small as it is.

    >>> sign_flip(np.array([[0.1, 0.2, 0.3, 0.0], [0.1, -0.1, 0.0, 0.0]]), 1000, np.random.default_rng(0)).tolist()
    [0.25, 1.0]
    """
    few = (diffs != 0).sum(axis=1) <= EXACT
    p = np.empty(len(diffs))
    p[few] = [_counted(d[d != 0]) for d in diffs[few]]
    if not few.all():
        p[~few] = _sampled(diffs[~few], n_resamples, rng, level)
    return p


def _bar(diffs: Floats) -> Floats:
    """|Σ d|, less what rounding may do: a flip that ties with the observed sum counts."""
    return np.asarray(np.abs(diffs.sum(axis=-1)) - 1e-12 * np.abs(diffs).sum(axis=-1))


def _counted(d: Floats) -> float:
    """#{A + B ≥ |Σ d|} / 2^{n−1} over the sums A, B of both halves, sorted: 2^n flips for the price of 2^{n/2}."""
    bar = float(_bar(d))
    if bar <= 0:
        return 1.0
    low, high = (np.sort(_signed_sums(half)) for half in (d[::2], d[1::2]))
    return float((len(high) - np.searchsorted(high, bar - low)).sum()) / 2.0 ** (len(d) - 1)


def _signed_sums(d: Floats) -> Floats:
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate((sums - value, sums + value))
    return sums


def _sampled(diffs: Floats, n_resamples: int, rng: np.random.Generator, level: float | None) -> Floats:
    """p = (w(|Σ d|) + Σ w(|S|) over flips with |S| ≥ |Σ d|) / (n + 1), 1/w(s) = ½ + ½ e^{−K} cosh ts (Harrison 2012).

    A flip is even or, by a coin, tilted: then a plus of |d| has the odds e^{t|d|} : e^{−t|d|}, and large sums are
    common. w undoes that: K = Σ log cosh td, and t puts the sums where Chernoff's bound of p is `level` (or 2^{−0.8n},
    as n flips give no less than 2^{−n}). The tilt knows the sizes of the differences and not their signs, so
    P(p ≤ a) ≤ a holds for every a and any number of flips. Without a level all flips are even and every w is 1.
    """
    from ._sign_flip_kernels import add_tails, weight

    sizes, observed, bars = np.abs(diffs), np.abs(diffs.sum(axis=1)), _bar(diffs)
    share = 0.0 if level is None else 0.5
    tilts, logs, limits = tilted_signs(sizes, np.full(len(sizes), 1.0 if level is None else level))
    totals = np.array([weight(*one, share) for one in zip(observed, tilts, logs, strict=True)])
    tilted = rng.random(n_resamples) < share
    done = 0
    for n in chunks(n_resamples, diffs.shape[1], _FLIPS):
        uniform = rng.integers(-(1 << 31), 1 << 31, size=(n, diffs.shape[1]), dtype=np.int32)
        part = tilted[done : done + n]

        def add(rows: slice, part: Any = part, uniform: AnyArray = uniform) -> None:
            per_test = (one[rows] for one in (sizes, limits, tilts, logs, bars))
            add_tails(*per_test, share, part, uniform, totals[rows])

        on_threads(add, len(sizes), _TESTS)
        done += n
    return np.minimum(1, totals / (n_resamples + 1))


def on_threads(work: Callable[[slice], None], n_rows: int, at_once: int) -> None:
    """Call `work` for all rows, so many at a time, on the threads of this machine."""
    parts = [slice(start, start + at_once) for start in range(0, n_rows, at_once)]
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(parts) < 2 or threads < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(min(threads, len(parts), 8)) as pool:
        for _ in pool.map(work, parts):
            pass


def tilted_signs(values: Floats, levels: Floats) -> tuple[Floats, Floats, AnyArray]:
    """Return t, K and the limits of the signs for each row of values, so that sums in the tail of its level are common.

    A sign is plus with probability 1/2 + limit / 2^32, which has the odds e^{tv} : e^{−tv}. At a level of 1 signs are
    even, and so are those of a row of zeros.
    """
    from ._sign_flip_kernels import tilt_rows

    tilts, logs, sizes = np.zeros(len(values)), np.zeros(len(values)), np.abs(values)
    targets = np.minimum(-np.log(levels), 0.8 * np.log(2) * np.count_nonzero(sizes, axis=1))
    tilt_rows(sizes, np.where(levels < 1, targets, 0.0), tilts, logs)
    limits = np.clip(np.rint(2.0**31 * np.tanh(tilts[:, None] * values)), -(2.0**31), 2.0**31 - 1)
    return tilts, logs, limits.astype(np.int32)


def paired_t(d: Floats) -> float:
    """p = 2 P(T_{n−1} ≥ |d̄| / (s/√n)); 1 where s = 0: equal differences say nothing about their spread.

    >>> paired_t(np.array([0.1, 0.1, 0.0, 0.2]))  # t = 0.1 / 0.0408 = √6, 3 degrees of freedom
    0.0917...
    >>> paired_t(np.array([0.1, 0.1]))
    1.0
    """
    from scipy.special import stdtr

    spread = d.std(ddof=1)
    if spread <= TIE * np.abs(d).max():
        return 1.0
    return float(2 * stdtr(len(d) - 1, -abs(d.mean()) / (spread / np.sqrt(len(d)))))


def rounded(d: Floats) -> Floats:
    """Return differences as ranks may see them: values of a measure that are equal on paper differ in the last bits."""
    return np.round(d, 9)


def wilcoxon(d: Floats) -> float:
    """p of W = Σ ranks of |d| over d > 0, zeros dropped: exact for few queries, else by the normal approximation.

    >>> wilcoxon(np.array([0.1, 0.2, 0.3, 0.0]))  # of 8 sign patterns 2 are as extreme
    0.25
    """
    from scipy.stats import wilcoxon as signed_ranks

    d = rounded(d)
    d = d[d != 0]
    return 1.0 if len(d) < 2 else float(signed_ranks(d).pvalue)


def rank_sign(d: Floats) -> int:
    """sign(W⁺ − W⁻): whom the signed ranks favour, whatever the mean says.

    >>> rank_sign(np.array([-1.0, -1.0, -1.0, 50.0])), float(np.mean([-1.0, -1.0, -1.0, 50.0]))
    (-1, 11.75)
    """
    from scipy.stats import rankdata

    d = rounded(d)
    d = d[d != 0]
    return int(np.sign(np.round(np.sign(d) @ rankdata(np.abs(d)) * 2)))


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


def holm_levels(p: Floats, alpha: float) -> Floats:
    """α/k, k the number of hypotheses still open when Holm's procedure decides one; equal p have the same level.

    Rejected in step j: α/(m − j + 1). What is left when the procedure stops was all decided at that last step.

    >>> holm_levels(np.array([0.01, 0.04, 0.03]), 0.05).round(4).tolist()
    [0.0167, 0.025, 0.025]
    """
    open_ = len(p) - np.searchsorted(np.sort(p), p, side="left")
    stopped = holm(p) > alpha
    return np.asarray(alpha / np.where(stopped, open_[stopped].max(initial=1), open_))


def chunks(n_resamples: int, n_queries: int, values: int) -> Iterator[int]:
    """Yield how many resamples to draw at a time, so that about `values` numbers are held."""
    step = max(1, values // n_queries)
    return (min(step, n_resamples - start) for start in range(0, n_resamples, step))
