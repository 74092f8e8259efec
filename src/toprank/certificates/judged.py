"""People and a machine as judges: bounds on what people would say, from few judgements of theirs and many of a machine.

A measure on a query has the value h by people's grades and f by the machine's. For a candidate mean m, draws without
replacement and means m_t, φ_t of what is left, the capital

    K = Π_t (1 + b_t [(h_t − m_t) − c_t (f_t − φ_t)]),    b_t, c_t chosen from the draws before t,

is expected not to grow where the mean of h is at most m, whatever the machine says: h_t has the mean m_t and f_t the
mean φ_t, given what was drawn before. So K reaches 1/δ with probability at most δ (Ville). A machine that agrees with
people takes variance away, so the capital against wrong means grows faster; one that does not makes c_t small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._typing import ArrayLike, Floats
from ..data.validation import check_choice, check_fraction
from ..errors import InputError
from .performance import Interval, _unit_values, mean_interval

ENOUGH_PEOPLE = 50
"""From so many queries that people judged, the machine takes part: with fewer it widens the interval."""
ENOUGH_FOR_DIFFERENCES = 200
"""The same for differences of two systems, whose range is twice as long."""
ENOUGH_FOR_NEW = 100
"""The same for new queries, where the machine's own mean is not known but bounded,"""
MACHINE_FOR_NEW = 10_000
"""and how many queries the machine must have judged alone for that."""
PEOPLE_SHARE = 0.1
"""The share of δ that people alone keep where the machine takes part."""
MEAN_SHARE = 0.1
"""The share of δ for the machine's own mean over new queries, which is not known but bounded."""
_ORDERS, _PLACES = 20, 2000


@dataclass(frozen=True)
class JudgedInterval:
    """Bounds on the mean that people's grades would give, with what people alone would have said.

    Attributes
    ----------
    lower, mean, upper : the bounds, and the mean by people, corrected by the machine where it takes part.
    people : the interval from the queries that people judged, and nothing else, with the whole of δ.
    n_people, n_machine : how many queries people judged, and how many more the machine judged.
    with_machine : whether the machine takes part. The number of queries that people judged decides it, no value does.
    confidence : how often such an interval holds the mean, at least.
    approximate : the interval of the normal law, which is narrower and promises nothing at these numbers of queries.
    """

    lower: float
    mean: float
    upper: float
    people: Interval
    approximate: Interval
    n_people: int
    n_machine: int
    with_machine: bool
    confidence: float


def judged_interval(
    human: ArrayLike,
    judge: ArrayLike,
    judge_elsewhere: ArrayLike,
    confidence: float = 0.95,
    *,
    target: str = "these",
    with_machine: bool | None = None,
) -> JudgedInterval:
    """Bound the mean of a measure by people's grades, from few queries that people judged and many that a machine did.

    It holds for any number of queries and any machine. Where the machine takes part, it gets nine tenths of δ and
    people alone keep one tenth; the better of the two bounds counts, and both hold together. So the interval is never
    wider than that of people alone at a tenth of δ. People's queries are a random sample of all. The better of the
    intervals with and without the machine, chosen after they were seen, would miss more often than either.

    Parameters
    ----------
    human : the measure on each query that people judged, by their grades, in [0, 1].
    judge : the measure on the same queries by the machine's grades.
    judge_elsewhere : the measure on all other queries of the population by the machine's grades.
    confidence : how often the interval holds the mean, at least.
    target : "these" bounds the mean over these queries, judged by people and not, "new" that of new queries like them.
    with_machine : whether the machine takes part, said before values are seen; None goes by numbers (`is_enough`).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(2, 2, size=1000)
    >>> h = np.clip(f - 0.1 + rng.normal(scale=0.05, size=1000), 0, 1)
    >>> found = judged_interval(h[:200], f[:200], f[200:])
    >>> bool(found.lower <= h.mean() <= found.upper), found.with_machine
    (True, True)
    >>> bool(found.upper - found.lower < 0.7 * (found.people.upper - found.people.lower))
    True
    """
    h, f, others = _unit_values(human), _unit_values(judge), _unit_values_if_any(judge_elsewhere)
    check_fraction(confidence=confidence)
    check_choice(("these", "new"), target=target)
    if len(h) != len(f):
        raise InputError(f"human has {len(h)} values and judge {len(f)}: both are of the queries that people judged")
    takes_part = is_enough(len(h), len(others), target) if with_machine is None else bool(with_machine)
    takes_part &= len(others) > 0
    delta, size = (1 - confidence) / 2, len(h) + len(others) if target == "these" else 0
    normal = _normal(h, f, others, size, delta, takes_part)
    if size == len(h) and size > 0:  # people judged all there is
        mean = float(h.mean())
        whole = Interval(mean, mean, mean)
        return JudgedInterval(mean, mean, mean, whole, whole, len(h), 0, False, confidence)
    people = _people_alone(h, size, delta)
    if not takes_part:
        return JudgedInterval(*people, people, normal, len(h), len(others), False, confidence)
    keep = _people_alone(h, size, PEOPLE_SHARE * delta)
    low, high = (
        _with_machine(*side, size, (1 - PEOPLE_SHARE) * delta) for side in ((h, f, others), (1 - h, 1 - f, 1 - others))
    )
    lower, upper = max(keep.lower, low), min(keep.upper, 1 - high)
    mean = float(np.clip(normal.mean, lower, upper))
    return JudgedInterval(lower, mean, upper, people, normal, len(h), len(others), True, confidence)


def is_enough(n_people: int, n_machine: int, target: str = "these", *, difference: bool = False) -> bool:
    """Say whether the machine takes part, from the numbers of queries alone.

    From 50 queries that people judged on, 200 for differences; for new queries from 100, and 10,000 of the machine.

    >>> is_enough(50, 100), is_enough(49, 100), is_enough(50, 100, difference=True), is_enough(50, 100, "new")
    (True, False, False, False)
    """
    return n_people >= enough_people(target, difference=difference) and (
        target == "these" or n_machine >= MACHINE_FOR_NEW
    )


def enough_people(target: str = "these", *, difference: bool = False) -> int:
    """Return from how many queries on that people judged the machine may take part.

    >>> enough_people(), enough_people("new"), enough_people(difference=True)
    (50, 100, 200)
    """
    if difference:
        return ENOUGH_FOR_DIFFERENCES
    return ENOUGH_PEOPLE if target == "these" else ENOUGH_FOR_NEW


def judged_difference(
    human: tuple[ArrayLike, ArrayLike],
    judge: tuple[ArrayLike, ArrayLike],
    judge_elsewhere: tuple[ArrayLike, ArrayLike],
    confidence: float = 0.95,
    *,
    target: str = "these",
    with_machine: bool | None = None,
) -> JudgedInterval:
    """Bound the mean difference of two systems by people's grades: each argument has the values of both systems.

    Differences lie in [−1, 1], twice the range of a measure, so they take more queries: the machine takes part from 200
    queries on that people judged. `approximate` is the interval of the normal law beside it.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(2, 2, size=(2, 4000))
    >>> h = np.clip(f - 0.1, 0, 1)
    >>> found = judged_difference(tuple(h[:, :400]), tuple(f[:, :400]), tuple(f[:, 400:]))
    >>> bool(found.lower <= (h[0] - h[1]).mean() <= found.upper)
    True
    """
    h, f, others = (_halves(*pair) for pair in (human, judge, judge_elsewhere))
    takes_part = is_enough(len(h), len(others), target, difference=True) if with_machine is None else with_machine
    found = judged_interval(h, f, others, confidence, target=target, with_machine=takes_part)
    return replace(
        found,
        lower=2 * found.lower - 1,
        mean=2 * found.mean - 1,
        upper=2 * found.upper - 1,
        people=Interval(*(2 * end - 1 for end in found.people)),
        approximate=Interval(*(2 * end - 1 for end in found.approximate)),
    )


def sample_p_value(judge: ArrayLike, judge_elsewhere: ArrayLike, *, draws: int = 9999, random_state: int = 0) -> float:
    """Return p of "the queries that people judged are a random sample": the machine's means on both are compared.

    A permutation test on the difference of the means, which is all that a machine can tell of the sampling.

    >>> sample_p_value([0.2, 0.4, 0.6, 0.8], [0.3, 0.5, 0.7]) > 0.5
    True
    >>> sample_p_value([0.9] * 20, [0.1] * 30) < 0.01
    True
    """
    f, others = _unit_values(judge), _unit_values_if_any(judge_elsewhere)
    if len(others) == 0:
        return 1.0
    whole, n = np.concatenate([f, others]), len(f)
    rng = np.random.default_rng(random_state)
    seen = abs(f.mean() - others.mean())
    total = whole.sum()
    sums = np.array([rng.permutation(whole)[:n].sum() for _ in range(draws)])
    gaps = np.abs(sums / n - (total - sums) / (len(whole) - n))
    return float((1 + (gaps >= seen - 1e-12).sum()) / (draws + 1))


def _halves(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return differences as values in [0, 1]."""
    a, b = _unit_values_if_any(first), _unit_values_if_any(second)
    if len(a) != len(b):
        raise InputError(f"differences need as many values of one system as of the other, got {len(a)} and {len(b)}")
    return (a - b + 1) / 2


def _unit_values_if_any(values: ArrayLike) -> Floats:
    x = np.asarray(values, dtype=np.float64)
    return _unit_values(x) if x.size else np.empty(0)


def _orders(n: int) -> Floats:
    rng = np.random.default_rng(0)
    return np.array([rng.permutation(n) for _ in range(_ORDERS)])


def _people_alone(h: Floats, size: int, delta: float) -> Interval:
    """Return the interval of people alone; over these queries, as draws without replacement."""
    if size == 0:
        return mean_interval(h, 1 - 2 * delta)
    nothing = np.zeros(len(h))
    low, high = (_lower(side, nothing, 0.0, size, delta) for side in (h, 1 - h))
    return Interval(low, float(h.mean()), 1 - high)


def _with_machine(h: Floats, f: Floats, others: Floats, size: int, delta: float) -> float:
    """Return the lower bound with the machine: its mean over a population is known, over new queries it is bounded.

    The machine's values on the other queries alone bound its mean over new ones, so that the bets on the queries that
    people judged do not depend on what they are about to see.
    """
    if size > 0:
        return _lower(h, f, float((f.sum() + others.sum()) / size), size, delta)
    least = mean_interval(others, 1 - 2 * MEAN_SHARE * delta).lower
    return _lower(h, f, least, 0, (1 - MEAN_SHARE) * delta)


def _lower(h: Floats, f: Floats, judge_mean: float, size: int, delta: float) -> float:
    from . import _judged_kernels as kernels

    orders = _orders(len(h))
    return float(kernels.largest_rejected_mean(h[orders], f[orders], judge_mean, size, delta, _PLACES))


def _normal(h: Floats, f: Floats, others: Floats, size: int, delta: float, takes_part: bool) -> Interval:
    """h̄ + c (f̄ of all − f̄ of the judged) ± z s/√n, s² the variance of h − c f; over these queries, s² (1 − n/N).

    c is the regression of h on f, clipped to [0, 1.5], 0 where the machine takes no part. For new queries the variance
    of the machine's own mean, c² var f/N, is added.
    """
    from scipy.special import ndtri

    n, everything = len(h), np.concatenate([f, others])
    variance = float(f.var())
    c = float(np.clip(((h - h.mean()) * (f - f.mean())).mean() / variance, 0, 1.5)) if variance > 0 else 0.0
    c *= takes_part
    mean = float(h.mean() + c * (everything.mean() - f.mean()))
    if n < 2:
        return Interval(0.0, mean, 1.0)
    squared = float((h - c * f).var(ddof=1)) / n
    squared = squared * (1 - n / size) if size else squared + c * c * float(everything.var()) / len(everything)
    reach = -float(ndtri(delta)) * squared**0.5
    return Interval(max(0.0, mean - reach), mean, min(1.0, mean + reach))
