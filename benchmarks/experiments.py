"""Errors and sessions of online comparisons: looked at once, looked at often, and by the monitors.

    python -m benchmarks.experiments

prints, of 10,000 simulated experiments each, how often a difference is shown where there is none, with a look after
every session for the monitors, and how many sessions it takes to show one.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom

from toprank.clicks import ab_sessions_needed, sessions_needed
from toprank.clicks.ab import BETS
from toprank.clicks.monitor import PRIOR

EXPERIMENTS, AT_ONCE = 10_000, 125


def interleaving(share: float, sessions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether the exact sign test, looked at every 100 sessions, ever says p < 5%; when the monitor does (0: never)."""
    rng, n = np.random.default_rng(seed), np.arange(1, sessions + 1)
    one, two = gammaln(PRIOR + np.arange(sessions + 1)), gammaln(2 * PRIOR + n)
    start = 2 * gammaln(PRIOR) - gammaln(2 * PRIOR)
    # Two-sided p is 2 P(at most k wins): shown where the fewer wins are below the smallest k with P > 2.5%.
    few = binom.ppf(0.025, n[99::100], 0.5)
    signs, when = [], []
    for _ in range(EXPERIMENTS // AT_ONCE):
        wins = (rng.random((AT_ONCE, sessions)) < share).cumsum(axis=1)
        signs.append((np.minimum(wins, n - wins)[:, 99::100] < few).any(axis=1))
        log_e = one[wins] + one[n - wins] - two - start + n * math.log(2)
        when.append(first_time(log_e >= math.log(1 / 0.05)))
    return np.concatenate(signs), np.concatenate(when)


def first_time(shown: np.ndarray) -> np.ndarray:
    """After how many looks each stream is shown; 0 where it never is."""
    return np.where(shown.any(axis=1), shown.argmax(axis=1) + 1, 0)


def when_shown(d: np.ndarray) -> np.ndarray:
    """After how many pairs `ABMonitor` names a ranker, for streams of differences; 0 where it never does."""
    n, total = np.arange(1, d.shape[1] + 1), d.cumsum(axis=1)
    center = np.concatenate([np.zeros((len(d), 1)), (total / n)[:, :-1]], axis=1)
    spread = ((d - center) ** 2).cumsum(axis=1)
    shares, capital = np.cbrt(BETS) / np.cbrt(BETS).sum(), np.zeros((2, *d.shape))
    for share, bet in zip(shares, BETS, strict=True):
        cost = (-math.log1p(-bet) - bet) * spread / 4
        for side, sign in enumerate((1, -1)):
            capital[side] += share * np.exp(np.minimum(sign * bet * total / 2 - cost, 600))
    return first_time((capital >= 2 / 0.05).any(axis=0))


def ab_clicks(p: float, q: float, pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether a z test, looked at every 50 pairs, ever says p < 5%; when the monitor does (0: never)."""
    rng, tests, when = np.random.default_rng(seed), [], []
    for _ in range(EXPERIMENTS // AT_ONCE):
        d = (rng.random((AT_ONCE, pairs)) < p).astype(float) - (rng.random((AT_ONCE, pairs)) < q)
        z = d.cumsum(axis=1) / np.sqrt(np.maximum((d**2).cumsum(axis=1), 1))
        tests.append((np.abs(z[:, 49::50]) > 1.96).any(axis=1))
        when.append(when_shown(d))
    return np.concatenate(tests), np.concatenate(when)


def swinging(pairs: int, period: int, seed: int) -> np.ndarray:
    """When the monitor names one of two equal rankers, a coin choosing who serves, while clicks swing from 10% to 50%.

    Rewards of a ranker then have no single mean: the promise does not cover this.
    """
    rng, when = np.random.default_rng(seed), []
    sessions = 2 * pairs
    rate = 0.3 + 0.2 * np.sin(2 * np.pi * np.arange(sessions) / period)
    for _ in range(EXPERIMENTS // AT_ONCE):
        clicked = (rng.random((AT_ONCE, sessions)) < rate).astype(float)
        coin = rng.random((AT_ONCE, sessions)) < 0.5
        complete = np.minimum(coin.sum(axis=1), (~coin).sum(axis=1)).min()
        arms = [
            np.stack([row[side][:complete] for row, side in zip(clicked, who, strict=True)]) for who in (coin, ~coin)
        ]
        when.append(when_shown(arms[0] - arms[1]))
    return np.concatenate(when)


def main() -> None:
    signs, when = interleaving(0.5, 20_000, 0)
    print(f"interleaving, no difference, 20,000 sessions: sign test every 100 sessions errs {signs.mean():.1%}, "
          f"InterleavingMonitor after every session {(when > 0).mean():.1%}")  # fmt: skip
    _, when = interleaving(0.55, 8_000, 1)
    fixed, anytime = sessions_needed(0.55)
    print(f"interleaving, 55:45: shown in {(when > 0).mean():.1%}, median {np.median(when[when > 0]):,.0f} sessions; "
          f"fixed test with 80% power {fixed:,}, planned {anytime:,}")  # fmt: skip
    for p in (0.3, 0.02):
        tests, when = ab_clicks(p, p, 5_000, 2)
        print(f"A/B, both {p:.0%} clicks, 10,000 sessions: z test every 100 sessions errs {tests.mean():.1%}, "
              f"ABMonitor after every session {(when > 0).mean():.2%}")  # fmt: skip
    for p, q, pairs in ((0.4, 0.3, 3_000), (0.35, 0.3, 10_000)):
        _, when = ab_clicks(p, q, pairs, 3)
        fixed, anytime = ab_sessions_needed(p - q, math.sqrt((p * (1 - p) + q * (1 - q)) / 2))
        print(f"A/B, {p:.0%} against {q:.0%} clicks: shown in {(when > 0).mean():.1%}, "
              f"median {2 * np.median(when[when > 0]):,.0f} sessions; fixed test with 80% power {fixed:,}, "
              f"planned {anytime:,}")  # fmt: skip
    for period in (500, 5_000):
        when = swinging(5_000, period, 4)
        print(f"A/B, equal rankers, clicks swinging from 10% to 50% every {period:,} of 10,000 sessions "
              f"(not covered by the promise): ABMonitor errs {(when > 0).mean():.2%}")  # fmt: skip


if __name__ == "__main__":
    main()
