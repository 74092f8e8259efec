"""Paired tests over queries, and the intervals of the differences that they do not reject."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from .._typing import Floats, Ints
from ..errors import InputError
from . import _bounded as bounds
from . import _intervals as intervals
from . import _statistics as statistics

Test = Literal["permutation", "t", "wilcoxon"]

TESTS = {
    "permutation": "paired sign-flip permutation test",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon signed-rank test",
}

FEW = 50
"""Queries below which the interval of a test is not trusted, and that of a mean is said to be rough."""

HALVES = 4_000
"""Halvings of the queries for the interval of a difference: its ends are then good to a hundredth of its length."""


LARGE_FAMILY = 10_000
"""Comparisons beyond which each of them has a quarter of the draws: p stays valid, and its error doubles."""


def draws_for(family: int, draws: int) -> int:
    """Return how many draws each comparison of a family has, where `draws` is what each of a few would have."""
    return draws if family <= LARGE_FAMILY else draws // 4


class PairResult(NamedTuple):
    """One pair on one measure: its differences, and what the test says of them."""

    measure: str
    d: Floats
    weight: Floats
    p: float
    direction: int
    sides: Floats
    """With a margin: p of "a is worse by the margin or more", and of the same about b."""
    by_betting: bool
    """Whether its interval must hold for any differences in [−1, 1]: a test's would not be trusted with these."""


class PairedTest(NamedTuple):
    """A paired test, and the interval of the differences that it does not reject."""

    test: Test
    n_resamples: int
    random_state: int
    level: float | None

    def found(
        self, measure: str, diffs: Floats, weight: Floats, margin: float | None, level: float, *, bounded: bool
    ) -> list[PairResult]:
        """Test every row of differences; `bounded` says that they lie in [−1, 1].

        Margins rest on bets, sized for a test at `level`: nothing else is known to hold where rare failures were not
        seen. So do intervals beside a margin, of few queries and of skewed differences.
        """
        p, direction = self.p_values(diffs, weight)
        sides, by_betting = np.ones((len(diffs), 2)), np.zeros(len(diffs), dtype=bool)
        if bounded:
            by_betting |= margin is not None
            if self.test != "wilcoxon":  # its interval is about ranks, not about the mean
                by_betting |= bounds.is_skewed(diffs, weight) | (diffs.shape[1] < FEW)
            if margin is not None:
                for side, sign in enumerate((1, -1)):
                    sides[:, side] = bounds.p_of_margin(sign * diffs, weight, margin, level)
        return [
            PairResult(measure, d, weight, float(p[h]), int(direction[h]), sides[h], bool(by_betting[h]))
            for h, d in enumerate(diffs)
        ]

    def p_values(self, diffs: Floats, weight: Floats) -> tuple[Floats, Ints]:
        """Return p, two-sided, and whom each row favours."""
        if self.test == "permutation":
            # Every measure has the same flips, apart from the bootstrap's draws: p depends on no order.
            flips = np.random.default_rng(self.random_state).spawn(1)[0]
            p = statistics.sign_flip(diffs * weight, self.n_resamples, flips, self.level)
            return p, np.sign((diffs * weight).mean(axis=1)).astype(np.int64)
        if (weight != 1).any():
            raise InputError(
                f'the {TESTS[self.test]} knows no weights, and these queries have them: use test="permutation"'
            )
        if self.test == "t":
            if diffs.shape[1] < 2:
                raise InputError("the paired t test needs at least two queries, got 1")
            return np.array([statistics.paired_t(d) for d in diffs]), np.sign(diffs.mean(axis=1)).astype(np.int64)
        p = np.array([statistics.wilcoxon(d) for d in diffs])
        return p, np.array([statistics.rank_sign(d) for d in diffs])

    def intervals(self, found: list[PairResult], corrected: Floats, alpha: float) -> tuple[Floats, Floats]:
        """Return two intervals for each, at Holm's level and at Bonferroni's, and the confidence of the first."""
        p, way = np.array([one.p for one in found]), np.array([one.direction for one in found])
        levels = np.stack([statistics.holm_levels(p, alpha), np.full(len(p), alpha / len(p))], axis=1)
        ends, betting = np.empty((2, len(found), 2, 2))
        halvings = draws_for(len(found), HALVES)
        for measure in dict.fromkeys(one.measure for one in found):
            rows = np.array([i for i, one in enumerate(found) if one.measure == measure])
            diffs, weight = np.stack([found[i].d for i in rows]), found[rows[0]].weight
            if self.test == "permutation":
                halves = np.random.default_rng(self.random_state).spawn(2)[1]
                ends[rows] = intervals.flip_intervals(diffs, weight, levels[rows], halvings, halves)
            else:
                turned = intervals.t_intervals if self.test == "t" else intervals.rank_intervals
                ends[rows] = turned(diffs, levels[rows])
            bets = np.array([i for i in rows if found[i].by_betting], dtype=np.int64)
            betting[bets] = bounds.bounded_intervals(diffs[np.searchsorted(rows, bets)], weight, levels[bets])
        ends[:, 0] = intervals.agree_with_test(ends[:, 0], corrected <= alpha, way)
        ends[:, 1] = intervals.agree_with_test(ends[:, 1], len(p) * p <= alpha, way)
        by_betting = np.array([one.by_betting for one in found])
        ends[by_betting] = betting[by_betting]
        return ends, 1 - levels[:, 0]


def means_and_effects(diffs: Floats, weight: Floats) -> list[tuple[float, float | None]]:
    """d̄ and d̄ / s of each row, s² = Σ w (d − d̄)² / (Σ w − 1), weights with mean 1; None where s is 0."""
    means = (diffs * weight).mean(axis=1)
    spread = np.sqrt((weight * (diffs - means[:, None]) ** 2).sum(axis=1) / max(diffs.shape[1] - 1, 1))
    varies = spread > statistics.TIE
    effects = means / np.where(varies, spread, 1.0)
    return [(mean, e if v else None) for mean, e, v in zip(means.tolist(), effects.tolist(), varies, strict=True)]
