"""Two rankers that serve different sessions: whose rewards are higher, looked at as often as one likes.

The k-th reward of the first and the k-th reward of the second make a pair, whose difference d_k lies in [−1, 1] when
rewards lie in [0, 1]. Let S = Σ d_k, and V = Σ (d_k − c_k)², where c_k in [−1, 1] is the mean of the differences before
the k-th. For 0 < λ < 1 let ψ(λ) = −ln(1 − λ) − λ. A bet that the mean difference is above m has the capital

    E_λ(m) = exp(λ (S − n m) / 2 − ψ(λ) V / 4).

Why this is a fair bet, where the true mean μ is at most m. With ξ = (d − c)/2 ≥ −1, calculus says
exp(λ ξ − ψ(λ) ξ²) ≤ 1 + λ ξ. Its expectation, given the pairs before, is at most 1 + λ (μ − c)/2 ≤ exp(λ (μ − c)/2).
Divide by the right side: each pair multiplies the capital by a factor whose expectation is at most 1. A capital that
starts at 1 and is not expected to grow reaches 2/α at any time with probability at most α/2 (Ville's inequality). The
sum of such capitals over several λ, each with its share of the 1, is one again. (Howard et al. 2021, Waudby-Smith and
Ramdas 2023; the inequality is that of Fan, Grama and Liu 2015.)

Which ranker serves when, and when one stops, decides how many pairs are seen, but not what is in them. So a rule for
either may depend on all that was seen.

The bet that the mean is below m is the same bet on −d. The interval is the union of two one-sided sequences, each at
α/2: it leaves out every m against which one of the two bets has reached 2/α.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

import numpy as np

from ..data.validation import check_count, check_finite, check_fraction, check_positive
from ..errors import InputError
from ._state import Saved
from .monitor import SessionsNeeded, Verdict, first_true

BETS: tuple[float, ...] = tuple(0.5 / 2**j for j in range(14))
"""The λ of the bets: large ones see large differences soon, small ones see small differences at last."""
_SHARES = tuple(math.cbrt(bet) / sum(map(math.cbrt, BETS)) for bet in BETS)
"""What share of the capital each bet begins with: a little more for large differences."""
_WORTH = tuple(-math.log1p(-bet) - bet for bet in BETS)
"""ψ(λ) of each bet."""
_HALVINGS = 40


class Difference(NamedTuple):
    """An interval for the mean reward of the first less that of the second, in the units of the rewards."""

    lower: float
    mean: float
    upper: float


@dataclass
class ABMonitor(Saved):
    """Whose sessions are worth more, known as soon as it is shown: valid at any time and under any rule for stopping.

    Each session is served by one ranker, chosen without regard to what the session will be worth, and is worth one
    number between `low` and `high`: clicked or not, the reciprocal rank of the first click, seconds of reading up to a
    cap. Add sessions as they end, in any order of the two, and look after each; stop when `verdict` names a ranker, or
    when you have had enough.

    What is promised: if the mean rewards are equal, `verdict` ever names a ranker with probability at most `alpha`, and
    a ranker that is worse or equal is ever named with probability at most `alpha`/2. `interval` holds the difference at
    all times at once with probability 1 − `alpha`. What is assumed: rewards do not depend on one another, and those of
    a ranker have one mean. Where a user has many sessions, give one reward per user. Nothing is assumed about how the
    rewards are distributed in their range, or how many sessions each ranker gets.

    Parameters
    ----------
    low : the smallest reward that there can be.
    high : the largest reward that there can be.
    alpha : the largest probability of naming a ranker where there is no difference.
    ratio : how many sessions of each ranker make one comparison: (9, 1) where nine in ten sessions are the first's. It
        is chosen beforehand.

    >>> monitor = ABMonitor()
    >>> for session in range(500):
    ...     _ = monitor.add_a(session % 2 == 0).add_b(session % 4 == 0)
    >>> monitor.verdict, monitor.n, bool(monitor.p < 0.001)
    ('first', 1000, True)
    >>> bool(0 < monitor.interval.lower < 0.25 == monitor.interval.mean < monitor.interval.upper)
    True
    >>> ABMonitor.from_json(monitor.to_json()) == monitor
    True
    """

    low: float = 0.0
    high: float = 1.0
    alpha: float = 0.05
    ratio: tuple[int, int] = (1, 1)
    n_a: int = 0
    """Sessions of the first."""
    n_b: int = 0
    """Sessions of the second."""
    pairs: int = 0
    """Comparisons so far; what the evidence rests on."""
    total: float = 0.0
    """S, with rewards brought to [0, 1]."""
    spread: float = 0.0
    """V, with rewards brought to [0, 1]."""
    largest_log_first: float = 0.0
    """The largest ln of the capital that bets on the first."""
    largest_log_second: float = 0.0
    """The largest ln of the capital that bets on the second."""
    waiting_a: list[float] = field(default_factory=list)
    """Rewards of the first that wait for sessions of the second."""
    waiting_b: list[float] = field(default_factory=list)
    """Rewards of the second that wait for sessions of the first."""

    def __post_init__(self) -> None:
        check_fraction(alpha=self.alpha)
        check_finite(low=self.low, high=self.high)
        if not 0 < self.high - self.low < math.inf:
            raise InputError(f"low must be below high, got low={self.low!r} and high={self.high!r}")
        if not isinstance(self.ratio, Sequence) or len(self.ratio) != 2:
            raise InputError(f"ratio must be two whole numbers, sessions of the first and the second: {self.ratio!r}")
        check_count(**{"ratio[0]": self.ratio[0], "ratio[1]": self.ratio[1]})
        self.alpha, self.low, self.high = float(self.alpha), float(self.low), float(self.high)
        self.ratio = (int(self.ratio[0]), int(self.ratio[1]))
        self._check_counts()

    def _check_counts(self) -> None:
        """Refuse counts that no sessions lead to: they can come from a file."""
        waiting = [*self.waiting_a, *self.waiting_b]
        counted = [
            (self.n_a, self.ratio[0], self.waiting_a),
            (self.n_b, self.ratio[1], self.waiting_b),
        ]
        sound = (
            self.pairs >= 0
            and all(n == each * self.pairs + len(rewards) for n, each, rewards in counted)
            and any(len(rewards) < each for _, each, rewards in counted)
            and all(0 <= reward <= 1 for reward in waiting)
            and abs(self.total) <= self.pairs
            and 0 <= self.spread <= 4 * self.pairs
            and max(0.0, self._log_capital(0.0, 1) - 1e-6) <= self.largest_log_first < math.inf
            and max(0.0, self._log_capital(0.0, -1) - 1e-6) <= self.largest_log_second < math.inf
        )
        if not sound:
            raise InputError("the counts contradict each other: begin with ABMonitor() and add sessions")

    def add_a(self, reward: float) -> Self:
        """Count a session of the first ranker."""
        self.waiting_a.append(self._scaled(reward))
        self.n_a += 1
        return self._compare()

    def add_b(self, reward: float) -> Self:
        """Count a session of the second ranker."""
        self.waiting_b.append(self._scaled(reward))
        self.n_b += 1
        return self._compare()

    def add(self, arm: Literal["a", "b"], reward: float) -> Self:
        """Count a session of the first ("a") or of the second ranker ("b")."""
        if arm not in ("a", "b"):
            raise InputError(f"arm must be 'a' or 'b', got {arm!r}")
        return self.add_a(reward) if arm == "a" else self.add_b(reward)

    def _scaled(self, reward: float) -> float:
        if not (isinstance(reward, (int, float, np.number, np.bool_)) and self.low <= reward <= self.high):
            raise InputError(
                f"a reward is a number from {self.low:g} to {self.high:g}, got {reward!r}: cap it, or change the range"
            )
        return min(1.0, max(0.0, (float(reward) - self.low) / (self.high - self.low)))

    def _compare(self) -> Self:
        """Take a pair from the rewards that wait, where there is one; bets see it only now."""
        of_a, of_b = self.ratio
        if len(self.waiting_a) < of_a or len(self.waiting_b) < of_b:
            return self
        d = sum(self.waiting_a[:of_a]) / of_a - sum(self.waiting_b[:of_b]) / of_b
        del self.waiting_a[:of_a], self.waiting_b[:of_b]
        center = self.total / self.pairs if self.pairs else 0.0
        self.spread += (d - center) ** 2
        self.total += d
        self.pairs += 1
        self.largest_log_first = max(self.largest_log_first, self._log_capital(0.0, 1))
        self.largest_log_second = max(self.largest_log_second, self._log_capital(0.0, -1))
        return self

    def _log_capital(self, m: float, sign: int) -> float:
        """ln of the capital of all λ together: bets on more than m (sign 1), or on less (sign −1)."""
        return log_capital(sign * (self.total - self.pairs * m), self.spread)

    @property
    def n(self) -> int:
        """Sessions of both rankers."""
        return self.n_a + self.n_b

    @property
    def e_value(self) -> float:
        """What a bet of 1 against "no difference", half of it on either ranker, has grown to.

        It is expected to be at most 1 wherever one stops by what the pairs so far say. A rule that also looks at
        rewards that still wait for their partner is covered by `p`, `interval` and `verdict`, not by this number.
        """
        return sum(math.exp(min(self._log_capital(0.0, sign), 700.0)) for sign in (1, -1)) / 2

    @property
    def p(self) -> float:
        """The smallest level at which a difference has been shown at some time: 2 over the largest capital so far."""
        return min(1.0, 2 * math.exp(-max(self.largest_log_first, self.largest_log_second)))

    @property
    def interval(self) -> Difference:
        """The mean of the first less that of the second, at all times at once with confidence 1 − alpha."""
        unit = self.high - self.low
        if self.pairs == 0:
            return Difference(-unit, math.nan, unit)
        lower, upper = self._end(1), -self._end(-1)
        return Difference(unit * lower, unit * self.total / self.pairs, unit * upper)

    def _end(self, sign: int) -> float:
        """The lowest m of sign × d that is not rejected: capital falls as m rises, so halving finds where it is 2/α."""
        low, high = -1.0, sign * self.total / self.pairs
        for _ in range(_HALVINGS):
            m = (low + high) / 2
            low, high = (m, high) if self._log_capital(sign * m, sign) >= math.log(2 / self.alpha) else (low, m)
        return low

    @property
    def verdict(self) -> Verdict:
        """ "first" or "second" once the bet on it has reached 2/alpha; until then, and where both have, "undecided".

        What was shown stays shown. Both bets reach it only where rankers or users have changed on the way.
        """
        enough = math.log(2 / self.alpha)
        first, second = self.largest_log_first >= enough, self.largest_log_second >= enough
        return "undecided" if first == second else "first" if first else "second"

    def __str__(self) -> str:
        lower, _, upper = self.interval
        counts = f"first {self.n_a:,}, second {self.n_b:,} sessions"
        difference = f"first − second is {lower:+.4g} to {upper:+.4g}"
        if self.verdict == "undecided":
            return f"{counts}: no difference shown so far ({difference}; e = {self.e_value:.3g}, p = {self.p:.3g})"
        return f"{counts}: the {self.verdict} is worth more ({difference}; e = {self.e_value:.3g}, p = {self.p:.3g})"


def ab_sessions_needed(
    difference: float,
    std: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
    ratio: tuple[int, int] = (1, 1),
) -> SessionsNeeded:
    """Return how many sessions, of both rankers together, are needed to see this difference of mean rewards.

    `std` is the standard deviation of a session's reward, √(p (1 − p)) where p is the share of sessions with a click.
    `fixed` is for the z test, looked at once, with probability `power`. `anytime` is the number of sessions at which
    a stream of exactly this difference and spread is shown by `ABMonitor`; more than half of random streams are shown
    sooner.

    >>> fixed, anytime = ab_sessions_needed(0.05, std=0.5)
    >>> 3000 < fixed < 3300 < anytime < 5500
    True
    >>> ab_sessions_needed(0, std=0.5)
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: difference must not be 0, where there is nothing to see
    """
    from scipy.special import ndtri

    of_a, of_b = ABMonitor(low, high, alpha, ratio).ratio
    check_fraction(power=power)
    check_finite(difference=difference)
    check_positive(std=std)
    unit = high - low
    if difference == 0:
        raise InputError("difference must not be 0, where there is nothing to see")
    if abs(difference) >= unit or std > unit / 2:
        raise InputError(
            f"rewards from {low:g} to {high:g} differ by less than {unit:g} in the mean, and their std is at most "
            f"{unit / 2:g}: got difference={difference!r} and std={std!r}"
        )
    gap, variance = abs(difference) / unit, (std / unit) ** 2 * (1 / of_a + 1 / of_b)
    if BETS[-1] * gap / 2 <= _WORTH[-1] * variance / 4:
        raise InputError(f"difference {difference!r} is too small to be seen by ABMonitor: name a larger one")
    fixed = math.ceil((ndtri(1 - alpha / 2) + ndtri(power)) ** 2 * variance / gap**2)
    anytime = first_true(lambda n: log_capital(n * gap, n * variance) >= math.log(2 / alpha))
    return SessionsNeeded(fixed * (of_a + of_b), anytime * (of_a + of_b))


def log_capital(total: float, spread: float) -> float:
    """ln of the sum over λ of its share × exp(λ S/2 − ψ(λ) V/4)."""
    logs = [bet * total / 2 - worth * spread / 4 for bet, worth in zip(BETS, _WORTH, strict=True)]
    largest = max(logs)
    return largest + math.log(sum(share * math.exp(log - largest) for share, log in zip(_SHARES, logs, strict=True)))
