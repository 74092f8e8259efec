"""Intervals on plain arrays: of means by the bootstrap, and of differences by turning the paired tests round.

Turned round, a test at level a gives the shifts δ at which it does not reject that d − δ is 0. Only the ends of this
set are computed: [δ₋, δ₊] holds 0 exactly where the test of d does not reject, up to sampling and rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

import numpy as np

from .._typing import AnyArray, Floats
from ._statistics import chunks, on_threads, rounded, tilted_signs

_CHUNK = 1 << 21
"""Queries drawn at a time by the bootstrap, whatever the number of queries and resamples."""

_FLIPS = 1 << 18
"""Signs drawn at a time: they stay in the processor's cache while every test reads them."""

_HELD = 1 << 18
"""Draws of tests that a thread holds at a time."""

_SMALLEST = 64
"""Draws that are sorted first: the tail that is asked for is nearly always among so many."""


def bootstrap_means(rows: Floats, weight: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Σ c_q w_q v_q / Σ c_q w_q (system × resample), c_q how often q is drawn; all systems share the draws.

    >>> bootstrap_means(np.ones((2, 5)), np.ones(5), 3, np.random.default_rng(0)).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    n = rows.shape[1]
    parts = []
    for size in chunks(n_resamples, n, _CHUNK):
        drawn = rng.integers(0, n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        parts.append(np.einsum("bq,sq->sb", counts, rows * weight) / np.einsum("bq,q->b", counts, weight))
    return np.concatenate(parts, axis=1)


def bca(values: Floats, weight: Floats, means: Floats, alpha: float) -> tuple[float, float]:
    """Quantiles of bootstrapped means at Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))), z = ±z_{α/2} (Efron 1987).

    z₀ is how far the median of the draws is off the mean, a = Σu³ / 6 (Σu²)^{3/2} the skewness of what each query
    adds, u = w (v − v̄). Values that are all equal have an interval of no width.

    >>> draws = bootstrap_means(np.array([[0.0, 0.0, 0.0, 1.0]]), np.ones(4), 2000, np.random.default_rng(0))
    >>> bca(np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4), draws[0], 0.05)
    (0.0, 0.75)
    """
    from scipy.special import ndtr, ndtri

    mean = float((values * weight).sum() / weight.sum())
    u = weight * (values - mean)
    spread = float((u**2).sum())
    if spread <= (1e-12 * abs(mean)) ** 2:
        return mean, mean
    slack = 1e-12 * max(abs(mean), float(np.abs(values).max()))
    below = ((means < mean - slack).mean() + (means <= mean + slack).mean()) / 2
    z0 = ndtri(np.clip(below, 1 / (len(means) + 1), 1 - 1 / (len(means) + 1)))
    a = float((u**3).sum()) / (6 * spread**1.5)
    z = z0 + ndtri(np.array([alpha / 2, 1 - alpha / 2]))
    # Where the correction has no end, the end of the draws is it.
    at = np.where(1 - a * z > 0, ndtr(z0 + z / np.where(1 - a * z > 0, 1 - a * z, 1)), (z > 0).astype(np.float64))
    low, high = np.quantile(means, at)
    return float(low), float(high)


def flip_intervals(diffs: Floats, weight: Floats, alphas: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """[α-quantile of min(m₊, m₋), (1 − α)-quantile of max(m₊, m₋)]: the shifts that the sign-flip test accepts.

    m₊ and m₋ are the mean differences of a random half of the queries and of the others. A flip of the signs of d − δ
    is as far off as the observed sum exactly where δ does not lie between the two and on the side of d̄, so p(δ) is
    the share of halvings with min(m₊, m₋) ≤ δ (for δ ≤ d̄; likewise above). Nothing but α depends on the level, so a
    row may ask for several (rows × levels); the result has two ends for each. Where all 2^n halvings are no more than
    `n_resamples`, each is taken once; otherwise half of the draws are tilted to the tail and weighted back.

    >>> levels, rng = np.array([[0.3, 0.1]]), np.random.default_rng(0)
    >>> flip_intervals(np.array([[0.0, 1.0, 2.0, 3.0]]), np.ones(4), levels, 100, rng)
    array([[[ 0.5,  2.5],
            [-inf,  inf]]])
    """
    result = np.empty((*alphas.shape, 2))
    seed = int(rng.integers(1 << 62))  # every group of rows sees the same draws

    def fill(rows: slice) -> None:
        for end, sign in enumerate((1, -1)):
            draws = np.random.default_rng(seed)
            result[rows, :, end] = sign * _lower_ends(sign * diffs[rows], weight, alphas[rows], n_resamples, draws)

    on_threads(fill, len(diffs), max(1, _HELD // n_resamples))
    return result


def _lower_ends(diffs: Floats, weight: Floats, alphas: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Return the lower ends. Draws are tilted by d − δ at about where the end will be: there the tail must be known."""
    from scipy.special import ndtri

    from ._sign_flip_kernels import half_sums

    n_rows, n = diffs.shape
    total = float(weight.sum())
    centre = (diffs * weight).sum(axis=1) / total
    rest = diffs - centre[:, None]
    rest[np.abs(rest).max(axis=1) <= 1e-12 * np.abs(centre)] = 0  # all differ by the same amount
    z = -ndtri(alphas.min(axis=1) / 2)
    shift = z * np.sqrt((rest**2).mean(axis=1)) / np.sqrt(np.maximum(n - z**2, 1))
    values = (rest + shift[:, None]) * weight
    everything = n <= 62 and 2**n <= n_resamples
    n_draws, share = (2**n, 0.0) if everything else (n_resamples, 0.5)
    tilts, logs, limits = tilted_signs(values, alphas.min(axis=1) if share else np.ones(n_rows))
    lower, each = np.empty((2, n_rows, n_draws))
    tilted = rng.random(n_draws) < share
    done = 0
    for size in chunks(n_draws, n, _FLIPS):
        part = slice(done, done + size)
        if everything:
            bits = (np.arange(n_draws)[part, None] >> np.arange(n)) & 1
            uniform = (bits - 1).astype(np.int32)  # −1 is below 0: a plus
        else:
            uniform = rng.integers(-(1 << 31), 1 << 31, size=(size, n), dtype=np.int32)
        half_sums(values, weight, limits, tilts, logs, share, tilted[part], uniform, lower[:, part], each[:, part])
        done += size
    start = centre - shift
    ends = [_tails(*one) for one in zip(lower, each, alphas, strict=True)]
    return np.asarray(start[:, None] + np.stack(ends))


def _tails(values: Floats, each: Floats, alphas: Floats) -> Floats:
    """Return, for each level, the smallest value at or below which lies more than a share of alpha."""
    order: AnyArray = np.arange(len(values))
    if len(values) > _SMALLEST:
        smallest = np.argpartition(values, _SMALLEST)[:_SMALLEST]
        if each[smallest].sum() > alphas.max() * (1 + 1e-6) * len(each):  # the tail ends among these
            order = smallest
    order = order[np.argsort(values[order])]
    cumulated = np.cumsum(each[order]) / len(each)
    places = np.searchsorted(cumulated, alphas * (1 + 1e-9), side="right")
    return np.asarray(values[order[np.minimum(places, len(order) - 1)]])


def t_intervals(diffs: Floats, alphas: Floats) -> Floats:
    """d̄ ± t_{n−1, 1−α/2} s/√n, per row and level; without end where there is no spread to go by.

    >>> t_intervals(np.array([[0.0, 0.1, 0.1, 0.2]]), np.array([[0.05]])).round(4).tolist()
    [[[-0.0299, 0.2299]]]
    """
    from scipy.special import stdtrit

    n = diffs.shape[1]
    spread = diffs.std(axis=1, ddof=1)
    known = (spread > 1e-12 * np.abs(diffs).max(axis=1)) | ~diffs.any(axis=1)
    half = np.where(known, spread, inf)[:, None] / np.sqrt(n) * stdtrit(n - 1, 1 - alphas / 2)
    centre = diffs.mean(axis=1)[:, None]
    return np.stack([centre - half, centre + half], axis=-1)


def rank_intervals(diffs: Floats, alphas: Floats) -> Floats:
    """[A_(c+1), A_(N−c)] of the N = n(n+1)/2 Walsh averages A = (d_i + d_j)/2, i ≤ j, with P(W ≤ c) ≤ α/2.

    W⁺(d − δ) counts the averages above δ, so no list of them is needed: the ends are found by halving.

    >>> rank_intervals(np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), np.array([[0.05]])).round(6).tolist()
    [[[1.0, 6.0]]]
    """
    result = np.empty((*alphas.shape, 2))
    for h, row in enumerate(diffs):
        d = rounded(row)
        n = len(d) * (len(d) + 1) // 2
        for k, alpha in enumerate(alphas[h]):
            c = _critical(len(d), alpha)
            result[h, k] = (-inf, inf) if c < 0 else (_walsh(d, n - c), _walsh(d, c + 1))
    return result


def _critical(n: int, alpha: float) -> int:
    """Return the largest c with P(W ≤ c) ≤ α/2 where all signs are even, −1 where there is none: exact up to n = 50."""
    from scipy.special import ndtri

    if n > 50:
        return int(np.floor(n * (n + 1) / 4 + ndtri(alpha / 2) * np.sqrt(n * (n + 1) * (2 * n + 1) / 24)))
    ways = np.ones(1)
    for rank in range(1, n + 1):
        ways = np.concatenate((ways, np.zeros(rank))) + np.concatenate((np.zeros(rank), ways))
    return int(np.searchsorted(np.cumsum(ways / 2.0**n), alpha / 2, side="right")) - 1


def _walsh(d: Floats, place: int) -> float:
    """Return the Walsh average with exactly place − 1 above it, counted with repetitions, to the last bits."""
    d = np.sort(d)

    def at_least(x: float) -> int:
        # i ≤ j with d_i + d_j ≥ 2x: for each j, those i ≤ j that are large enough.
        first = np.searchsorted(d, 2 * x - d, side="left")
        return int(np.maximum(np.arange(1, len(d) + 1) - first, 0).sum())

    return _largest_with_count(at_least, place, float(d[0]), float(d[-1]))


def _largest_with_count(count: Callable[[float], int], place: int, low: float, high: float) -> float:
    """Return the largest x in [low, high] with count(x) ≥ place; `count` falls as x rises."""
    if count(high) >= place:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if count(middle) >= place else (low, middle)
    return low


def agree_with_test(ends: AnyArray, shown: AnyArray, direction: AnyArray) -> Floats:
    """Return intervals that leave 0 out exactly where the test of 0 rejects.

    p falls on both sides of the centre. So where 0 is rejected, all that lies beyond it is; where it is not, all
    between it and the centre is not. The test of 0 is the better estimate of the two, and decides.

    >>> agree_with_test(np.array([[-0.1, 0.5], [0.1, 0.5]]), np.array([True, False]), np.array([1, 1])).tolist()
    [[5e-324, 0.5], [0.0, 0.5]]
    """
    tiny = np.nextafter(0, 1)
    low, high = ends[:, 0], ends[:, 1]
    low = np.where(shown, np.where(direction > 0, np.maximum(low, tiny), low), np.minimum(low, 0))
    high = np.where(shown, np.where(direction < 0, np.minimum(high, -tiny), high), np.maximum(high, 0))
    return np.stack([low, high], axis=1)


def interval(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Return the mean over runs and half the width of its 95% interval (Student's t); one run has none.

    >>> [round(v, 4) for v in interval([0.5, 0.6, 0.7])]
    [0.6, 0.2484]
    """
    from scipy.special import stdtrit

    n, mean = len(values), float(np.mean(values))
    return mean, float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def surely(values: Sequence[float] | Floats, least: float = 0.0) -> bool | None:
    """Tell by the 95% interval of a mean over runs whether it is above `least`; None where the interval cannot tell.

    >>> surely([0.2, 0.3, 0.2]), surely([-0.2, -0.3, -0.2]), surely([0.2, -0.3])
    (True, False, None)
    """
    mean, half = interval(values)
    return True if mean - half > least else False if mean + half <= least else None


def detectable(values: Sequence[float] | Floats, power: float = 0.8) -> float:
    """Return the mean that so many values, spread as these are, show at 5% with that power: (t_.975 + t_power) s/√n.

    >>> round(detectable([0.5, 0.6, 0.7]), 4)
    0.3097
    """
    from scipy.special import stdtrit

    n = len(values)
    return float((stdtrit(n - 1, 0.975) + stdtrit(n - 1, power)) * np.std(values, ddof=1) / np.sqrt(n))


def every(found: Iterable[bool | None]) -> bool | None:
    """Tell whether all hold; one that does not decides, then one that cannot be decided.

    >>> every([True, True]), every([True, None]), every([None, False])
    (True, None, False)
    """
    seen = set(found)
    return None if None in seen and False not in seen else False not in seen


def spread(values: Sequence[float] | Floats, digits: int = 4) -> str:
    """Say a mean with its sign and half of its 95% interval; that it is not shown where that holds 0.

    Where it is not shown, the difference that would have been with 80% power stands beside.

    >>> spread([0.2, 0.3, 0.2]), spread([0.2, -0.4, 0.1], 1), spread([0.2]), spread([])
    ('+0.2333 ± 0.1434', '-0.0 ± 0.8, not shown (1.0 would be)', '+0.2000 in one run', 'none')
    """
    if not len(values):
        return "none"
    mean, half = interval(values)
    if len(values) == 1:
        return f"{mean:+.{digits}f} in one run"
    told = f"{mean:+.{digits}f} ± {half:.{digits}f}"
    return told if abs(mean) > half else f"{told}, not shown ({detectable(values):.{digits}f} would be)"


def spreads(gaps: Mapping[str, Sequence[float] | Floats], digits: int = 4) -> str:
    """Say each mean with its name and interval.

    >>> spreads({"a": [0.2, 0.3, 0.2], "b": []}, 2)
    'a +0.23 ± 0.14; b none.'
    """
    return "; ".join(f"{name} {spread(gap, digits)}" for name, gap in gaps.items()) + "."
