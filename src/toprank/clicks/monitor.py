"""Two rankers on live traffic, looked at as often as one likes: an e-process over the sessions that each won.

With a sessions won by the first and b by the second, and θ the chance that the first wins a session, the mixture

    e(p) = ∫ θ^a (1 − θ)^b dBeta(θ; PRIOR, PRIOR) / (p^a (1 − p)^b)

is expected not to grow where θ = p, so it exceeds 1/δ at any time with probability at most δ (Ville). e(½) bets against
"users do not tell the rankers apart"; the p that are not rejected are an interval for θ that holds at all times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

from .._typing import ArrayLike
from ..data.validation import check_fraction
from ..errors import InputError
from ._state import Saved

Verdict = Literal["first", "second", "undecided"]

PRIOR = 20.0
"""Both parameters of the mixture's Beta distribution: it spends most on shares between 42% and 58%, where tests take
longest."""
_HALVINGS = 60


class Share(NamedTuple):
    """An interval for the share of the decided sessions that the first ranker wins."""

    lower: float
    mean: float
    upper: float


@dataclass
class InterleavingMonitor(Saved):
    """Who is clicked more, known as soon as it is shown: valid at any time and under any rule for stopping.

    Add a session at a time and look after each; stop when `verdict` names a ranker, or when you have had enough. If
    users do not tell the rankers apart, `verdict` ever names one with probability at most `alpha`.

    Parameters
    ----------
    alpha : the largest probability of naming a ranker where there is no difference.

    >>> monitor = InterleavingMonitor()
    >>> for session in range(400):
    ...     _ = monitor.add(2, 1) if session % 3 else monitor.add(0, 1)
    >>> monitor.verdict, monitor.wins_first, monitor.wins_second
    ('first', 266, 134)
    >>> bool(monitor.interval.lower > 0.5), bool(monitor.p < 0.001)
    (True, True)
    >>> InterleavingMonitor.from_json(monitor.to_json()) == monitor  # to go on tomorrow
    True
    """

    alpha: float = 0.05
    wins_first: int = 0
    wins_second: int = 0
    ties: int = 0
    largest_log_e: float = 0.0
    """The largest ln e so far."""
    shown: Verdict = "undecided"
    """Who was ahead when e reached 1/alpha."""

    def __post_init__(self) -> None:
        check_fraction(alpha=self.alpha)
        self.alpha = float(self.alpha)
        sound = min(self.wins_first, self.wins_second, self.ties) >= 0
        sound = sound and max(0.0, self.log_e - 1e-6) <= self.largest_log_e < math.inf
        if not sound or (self.largest_log_e >= -math.log(self.alpha)) != (self.shown != "undecided"):
            raise InputError("the counts contradict each other: begin with InterleavingMonitor() and add sessions")

    def add(self, first: float, second: float) -> Self:
        """Count one session by the clicks (or other credits) that each ranker got in it."""
        for credit in (first, second):
            if not (isinstance(credit, (int, float, np.number, np.bool_)) and 0 <= credit < math.inf):
                raise InputError(f"credits are numbers from 0 on, one for each ranker, got {first!r} and {second!r}")
        self.wins_first += int(first > second)
        self.wins_second += int(first < second)
        self.ties += int(first == second)
        self.largest_log_e = max(self.largest_log_e, self.log_e)
        if self.shown == "undecided" and self.largest_log_e >= -math.log(self.alpha):
            self.shown = "first" if self.wins_first > self.wins_second else "second"
        return self

    @property
    def n(self) -> int:
        """Sessions so far, decided or not."""
        return self.wins_first + self.wins_second + self.ties

    @property
    def log_e(self) -> float:
        """ln e(½) now."""
        return _log_mixture(self.wins_first, self.wins_second) + (self.wins_first + self.wins_second) * math.log(2)

    @property
    def e_value(self) -> float:
        """What a bet of 1 against "no difference" has grown to."""
        return math.exp(min(self.log_e, 700.0))

    @property
    def p(self) -> float:
        """The smallest level at which a difference has been shown at some time: 1 over the largest e so far."""
        return math.exp(-self.largest_log_e)

    @property
    def interval(self) -> Share:
        """The share of decided sessions that the first ranker wins, at all times at once with confidence 1 − alpha."""
        a, b = self.wins_first, self.wins_second
        if a + b == 0:
            return Share(0.0, math.nan, 1.0)
        return Share(_lowest_share(a, b, self.alpha), a / (a + b), 1 - _lowest_share(b, a, self.alpha))

    @property
    def verdict(self) -> Verdict:
        """ "first" or "second" once e has reached 1/alpha, by who was ahead then; until then "undecided".

        What was shown stays shown, also where the other one catches up later.
        """
        return self.shown

    def __str__(self) -> str:
        lower, _, upper = self.interval
        counts = f"first {self.wins_first:,}, second {self.wins_second:,}, neither {self.ties:,} sessions"
        share = f"the first wins {100 * lower:.1f}% to {100 * upper:.1f}% of decided sessions"
        if self.verdict == "undecided":
            return f"{counts}: no difference shown so far ({share}; e = {self.e_value:.3g}, p = {self.p:.3g})"
        return f"{counts}: the {self.verdict} is clicked more ({share}; e = {self.e_value:.3g}, p = {self.p:.3g})"


class SessionsNeeded(NamedTuple):
    """How many decided sessions show a share: by a test that is looked at once, and by one that is always looked at."""

    fixed: int
    anytime: int


def sessions_needed(share: float, alpha: float = 0.05, power: float = 0.8) -> SessionsNeeded:
    """Return how many sessions that one of the rankers wins are needed to see that one of them wins this share.

    `fixed` is for the sign test, looked at once, with probability `power`. `anytime` is the number of sessions at which
    a stream of exactly this share is shown by `InterleavingMonitor`; more than half of random streams are shown sooner.

    >>> fixed, anytime = sessions_needed(0.55)
    >>> 700 < fixed < 900 < anytime < 1000
    True
    >>> sessions_needed(0.5)
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: share must be between 0 and 1 and not 0.5, where there is nothing to see, got 0.5
    """
    from scipy.special import ndtri

    check_fraction(alpha=alpha, power=power)
    if not 0 < share < 1 or share == 0.5:
        raise InputError(f"share must be between 0 and 1 and not 0.5, where there is nothing to see, got {share!r}")
    spread = math.sqrt(share * (1 - share))
    fixed = math.ceil(((0.5 * ndtri(1 - alpha / 2) + spread * ndtri(power)) / (share - 0.5)) ** 2)

    def shown(n: int) -> bool:
        return _log_mixture(n * share, n * (1 - share)) + n * math.log(2) >= -math.log(alpha)

    return SessionsNeeded(fixed, first_true(shown))


def first_true(shown: Callable[[int], bool]) -> int:
    """Return the smallest number from 1 on at which this holds, where it holds at all that follow: by halving."""
    high = 1
    while not shown(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def monitor_of(credits: ArrayLike, alpha: float) -> InterleavingMonitor:
    """Return the monitor after all sessions of a table with two columns."""
    monitor = InterleavingMonitor(alpha)
    for first, second in np.asarray(credits).tolist():
        monitor.add(first, second)
    return monitor


def _log_mixture(a: float, b: float) -> float:
    """ln ∫ θ^a (1 − θ)^b dBeta(θ; PRIOR, PRIOR)."""
    log_beta = math.lgamma(PRIOR + a) + math.lgamma(PRIOR + b) - math.lgamma(2 * PRIOR + a + b)
    return log_beta - 2 * math.lgamma(PRIOR) + math.lgamma(2 * PRIOR)


def _lowest_share(a: int, b: int, alpha: float) -> float:
    """The lowest p that is not rejected: e(p) falls until p = a/(a + b), so halving finds where it is 1/alpha."""
    if a == 0:
        return 0.0
    log_mixture, low, high = _log_mixture(a, b), 0.0, a / (a + b)
    for _ in range(_HALVINGS):
        p = (low + high) / 2
        log_e = log_mixture - a * math.log(p) - (b * math.log1p(-p) if b else 0.0)
        low, high = (p, high) if log_e >= -math.log(alpha) else (low, p)
    return low
