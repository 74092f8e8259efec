"""Bounds on mean differences that assume nothing but that each difference lies in [−1, 1].

A test that turns signs round, a t test and a bootstrap take the differences that were seen for all that there can be.
Where one query in fifty fails badly, most samples of twenty do not show it, and their intervals leave the true mean
out. A bet against a mean m (Waudby-Smith and Ramdas) holds whatever the differences are: x = (d + 1)/2 lies in [0, 1],
and Π_t (1 + λ_t (x_t − m)) with λ_t ≥ 0 chosen before x_t is expected not to grow where the mean of x is at most m.
The λ_t here depend on the values before t alone, not on m, so the capital falls as m rises: what is rejected is found
by halving. It is averaged over orders that a fixed seed deals out.
"""

from __future__ import annotations

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ._statistics import on_threads

_ORDERS = 10
_HALVINGS = 30
_ROWS = 64
"""Rows that a thread takes at a time."""


def bounded_intervals(diffs: Floats, weight: Floats, alphas: Floats) -> Floats:
    """Return two ends for each row of differences in [−1, 1] and each level (rows × levels × 2), α/2 on either side.

    >>> near = bounded_intervals(np.zeros((1, 1000)), np.ones(1000), np.array([[0.05]]))
    >>> bool(-0.01 < near[0, 0, 0] < 0 < near[0, 0, 1] < 0.01)
    True
    >>> bool(bounded_intervals(np.zeros((1, 8)), np.ones(8), np.array([[0.05]]))[0, 0, 0] < -0.3)  # eight say little
    True
    """
    from ._bounded_kernels import lower_bounds

    orders, v = _orders(diffs.shape[1]), weight / weight.max()
    ends = np.empty((*alphas.shape, 2))
    for end, sign in enumerate((1, -1)):
        lower, x = np.empty(alphas.shape), (1 + sign * diffs) / 2

        def fill(rows: slice, x: Floats = x, lower: Floats = lower) -> None:
            lower_bounds(x[rows], v, orders, alphas[rows] / 2, _HALVINGS, lower[rows])

        on_threads(fill, len(diffs), _ROWS)
        ends[..., end] = sign * (2 * lower - 1)
    return ends


def p_of_margin(diffs: Floats, weight: Floats, margin: float, level: float) -> Floats:
    """Return, for each row, p of "the mean is −margin or below": 1 over the capital of bets against it.

    The bets are sized for a test at `level`; p is valid at every level.

    >>> bool(p_of_margin(np.zeros((1, 1000)), np.ones(1000), 0.01, 0.05)[0] < 0.01)
    True
    """
    from ._bounded_kernels import capitals

    found = np.empty(len(diffs))
    capitals((1 + diffs) / 2, weight / weight.max(), _orders(diffs.shape[1]), (1 - margin) / 2, level, found)
    return np.minimum(1.0, 1 / found)


def smallest_margin(n: int, level: float) -> float:
    """Return the margin that n differences of exactly 0 just show: below it n is too small, whatever the differences.

    >>> round(smallest_margin(8, 0.05), 2), smallest_margin(1000, 0.05) < 0.01
    (0.35, True)
    """
    return float(-bounded_intervals(np.zeros((1, n)), np.ones(n), np.array([[2 * level]]))[0, 0, 0])


def _orders(n: int) -> Ints:
    rng = np.random.default_rng(0)
    return np.array([rng.permutation(n) for _ in range(_ORDERS)])


def is_skewed(diffs: Floats, weight: Floats) -> AnyArray:
    """Say which rows of differences are lopsided: their skewness is two standard errors off 0, or they do not vary.

    >>> is_skewed(np.array([[0.1, -0.1] * 10, [0.0] * 19 + [1.0], [0.2] * 20]), np.ones(20)).tolist()
    [False, True, True]
    """
    n = diffs.shape[1]
    rest = diffs - (diffs @ weight / weight.sum())[:, None]
    spread = (rest**2) @ weight / weight.sum()
    flat = spread <= 1e-24
    skewness = (rest**3) @ weight / weight.sum() / np.where(flat, 1.0, spread) ** 1.5
    return np.asarray(flat | (np.abs(skewness) > 2 * np.sqrt(6 / n)))
