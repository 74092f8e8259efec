"""What new queries will see: bounds on the mean of a measure that hold for any distribution of values in [0, 1].

A candidate mean m is bet against: where the mean is at most m, the capital Π_t (1 + λ_t (x_t − m)), λ_t ≥ 0 chosen
before x_t is seen, is expected not to grow, so it reaches 1/δ with probability at most δ (Waudby-Smith and Ramdas,
*Estimating means of bounded random variables by betting*). No variance, no normal law and no constant is assumed: the
values are independent draws from one distribution, and that is all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._typing import ArrayLike, Floats
from ..data.validation import as_scores, check_count, check_fraction
from ..errors import InputError
from .base import Assumption, Certificate

PLACES = 2000
"""Means are bet against on a grid of 1/PLACES."""
_ORDERS, _VALUES = 20, 4_000_000
"""Orders that capital is averaged over, fewer where they would hold more values than this."""
_SHARES = np.concatenate([np.geomspace(0.0003, 0.02, 8), (np.arange(16) + 0.5) / 16])
_RATES = np.geomspace(0.004, 0.9, 24)


class Interval(NamedTuple):
    """Bounds on a mean, and the mean that was seen."""

    lower: float
    mean: float
    upper: float


def mean_interval(
    values: ArrayLike, confidence: float = 0.95, *, weight: ArrayLike | None = None, claims: int = 1
) -> Interval:
    """Bound the mean of what `values` are independent draws of, each in [0, 1]: both bounds hold with `confidence`.

    Each side may fail with probability δ/2. Where all values are 0 or 1, no other value is expected to come, and
    the bounds are Clopper and Pearson's. With `claims` intervals at once, each takes its share of δ, and all of
    them hold together. With a `weight` for each value the bounds are on E[weight · value]/E[weight],
    for weights that do not exceed the largest given.

    The capital is averaged over orders of the values that a fixed seed deals out: in one order alone a bound depends on
    which value came first, and the best of many would be wrong too often.

    >>> lower, mean, upper = mean_interval([0.25, 0.5, 0.75, 0.5] * 50)
    >>> mean, bool(0.45 < lower < 0.5 < upper < 0.55)
    (0.5, True)
    >>> mean_interval([1, 1, 1, 0] * 10)  # as scipy.stats.binomtest(30, 40).proportion_ci()
    Interval(lower=0.588..., mean=0.75, upper=0.873...)
    """
    x = _unit_values(values)
    check_count(claims=claims)
    delta = _delta(confidence) / claims / 2
    if weight is None:
        mean = float(x.mean())
        if ((x == 0) | (x == 1)).all():
            return Interval(
                _least_share(int(x.sum()), len(x), delta), mean, 1 - _least_share(int((1 - x).sum()), len(x), delta)
            )
        return Interval(_lower(x, None, delta), mean, 1 - _lower(1 - x, None, delta))
    v = _weights(weight, len(x))
    return Interval(_lower(x, v, delta), float(x @ v / v.sum()), 1 - _lower(1 - x, v, delta))


def difference_interval(
    a: ArrayLike, b: ArrayLike, confidence: float = 0.95, *, weight: ArrayLike | None = None, claims: int = 1
) -> Interval:
    """Bound the mean of a − b, both in [0, 1] and measured on the same queries, by that of (a − b + 1)/2.

    Differences cost more than means: their range is twice as long.

    >>> lower, mean, upper = difference_interval([0.9, 0.8, 1.0] * 40, [0.5, 0.5, 0.6] * 40)
    >>> round(mean, 4), bool(0.3 < lower < mean < upper < 0.45)
    (0.3667, True)
    """
    first, second = _unit_values(a), _unit_values(b)
    if len(first) != len(second):
        raise InputError(f"differences need as many values of a as of b, got {len(first)} and {len(second)}")
    # Differences of −1 and 1 alone are no reason to think that no other will come, so they are bet against too.
    halves, delta = (first - second + 1) / 2, _delta(confidence) / claims / 2
    v = None if weight is None else _weights(weight, len(first))
    mean = float(halves.mean() if v is None else halves @ v / v.sum())
    low, high = _lower(halves, v, delta), 1 - _lower(1 - halves, v, delta)
    return Interval(2 * low - 1, 2 * mean - 1, 2 * high - 1)


class ConfidenceSequence(NamedTuple):
    """Bounds after each value of a stream."""

    lower: Floats
    upper: Floats


def confidence_sequence(values: ArrayLike, confidence: float = 0.95, *, changing: bool = False) -> ConfidenceSequence:
    """Bound the mean of a stream after each of its values: all bounds hold at once, whenever one looks or stops.

    With `changing` each value may have an expectation of its own, as the rounds of a learner have: bounded is the mean
    of the expectations of rounds 1 … t, each given the rounds before it, and these bounds may move both ways (a mixture
    of empirical Bernstein supermartingales, with half of δ). For values with one mean these bounds never get worse, and
    K_t(m) = (1/24) Σ_k Π_{i ≤ t} (1 + u_k (x_i − m)/m), for 24 shares u_k from 0.0003 to 31/32, exceeds 2/δ at some t
    with probability at most δ/2 (Ville): the better of the two counts, so that they are never wider than with
    `changing`.

    >>> import numpy as np
    >>> lower, upper = confidence_sequence(np.tile([0.25, 0.75], 500))
    >>> len(lower), bool(lower[-1] < 0.5 < upper[-1]), bool(upper[-1] - lower[-1] < upper[9] - lower[9])
    (1000, True, True)
    """
    from . import _betting_kernels as kernels

    x, delta = _unit_values(values), _delta(confidence) / 2
    sides = []
    for side in (x, 1 - x):
        bounds = np.empty(len(x))
        kernels.lower_drift(side, _RATES, delta / 2, bounds)
        if not changing:
            kernels.lower_sequence(side, _SHARES, delta / 2, bounds)
        sides.append(bounds)
    return ConfidenceSequence(sides[0], 1 - sides[1])


@dataclass(frozen=True)
class RunningMean:
    """What `confidence_sequence` with `changing` says after the last value, in three numbers however long the stream.

    >>> seen = RunningMean()
    >>> for value in [0.5, 1.0] * 50:
    ...     seen = seen.after(value)
    >>> lower, mean, upper = seen.interval()
    >>> band = confidence_sequence([0.5, 1.0] * 50, changing=True)
    >>> mean, bool(lower == band.lower[-1]), bool(abs(upper - band.upper[-1]) < 1e-12)
    (0.75, True, True)
    """

    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    @property
    def mean(self) -> float:
        """The mean so far; NaN before the first value."""
        return self.total / self.n if self.n else math.nan

    def after(self, value: float) -> RunningMean:
        """Return what is known when one more value in [0, 1] has been seen."""
        spread = self.spread + (value - (0.5 + self.total) / (self.n + 1)) ** 2
        return RunningMean(self.n + 1, self.total + value, spread)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Bound the mean of what each value so far was expected to be, at every moment at once."""
        if self.n == 0:
            return Interval(0.0, math.nan, 1.0)
        from . import _betting_kernels as kernels

        # Seen from above, 1 − x and its guesses differ by as much: the spread, and so the reach, is the same.
        reach = float(kernels.reach_of_drift(self.spread, _RATES, _delta(confidence) / 4))
        return Interval(max(0.0, (self.total - reach) / self.n), self.mean, min(1.0, (self.total + reach) / self.n))


def stream_performance(
    rounds: int, total: float, spread: float, measure: str, confidence: float, ranked_first: Assumption
) -> PerformanceCertificate:
    """Certify the mean of what each round of a stream was expected to reach, from three sums of the values x_i.

    `total` is Σ x_i and `spread` Σ (x_i − x̂_i)², x̂_i the mean of a ½ and the values before i: `confidence_sequence`
    with `changing` after the last round, without the values.

    >>> first = Assumption("every list was ranked before it was learned from", True)
    >>> certificate = stream_performance(1000, 700.0, 40.0, "ndcg@10", 0.95, first)
    >>> bool(0.6 < certificate.lower < certificate.mean < certificate.upper < 0.8), certificate.verdict
    (True, 'holds')
    """
    found = RunningMean(rounds, total, spread).interval(confidence)
    certificate = _certificate(found, measure, None, confidence, rounds, (ranked_first,))
    if not (rounds and certificate.assumptions_hold):
        return certificate
    return replace(
        certificate,
        statement=f"mean of the {measure} that each round was expected to reach ≥ lower bound by betting",
        reference="betting, at all times at once",
        meaning=f"over its {rounds:,} rounds so far, each ranked before it was learned from: {measure} ≥ "
        f"{found.lower:.4g} was to be expected, with {100 * confidence:g}% confidence (mean {found.mean:.4f})",
    )


def _lower(x: Floats, weight: Floats | None, delta: float) -> float:
    """The largest mean that the bets reject, going up from 0."""
    from . import _betting_kernels as kernels

    n = len(x)
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(n) for _ in range(max(1, min(_ORDERS, _VALUES // n)))])
    v = np.ones(n) if weight is None else weight / weight.max()
    values, shares = x[orders], v[orders]
    means = (0.5 + np.cumsum(shares * values, axis=1)) / (1 + np.cumsum(shares, axis=1))
    spread = 0.25 + np.cumsum((shares * (values - means)) ** 2, axis=1)
    past = np.hstack([np.full((len(orders), 1), 0.25), spread[:, :-1] / np.arange(2, n + 1)])
    rate = 2 / (np.arange(n, 0, -1) * past)
    return float(kernels.largest_rejected(values, shares, rate, delta, PLACES))


def _least_share(successes: int, n: int, delta: float) -> float:
    """The share of successes below which so many of n would come with probability below δ (Clopper and Pearson)."""
    from scipy.special import betaincinv

    return float(betaincinv(successes, n - successes + 1, delta)) if successes else 0.0


def _unit_values(values: ArrayLike) -> Floats:
    x = as_scores(values)
    if len(x) == 0:
        raise InputError("there are no values to bound the mean of")
    if x.min() < -1e-9 or x.max() > 1 + 1e-9:
        at = int(np.flatnonzero((x < -1e-9) | (x > 1 + 1e-9))[0])
        raise InputError(f"values must lie in [0, 1]: number {at} is {x[at]:g}")
    return np.clip(x, 0.0, 1.0)


def _weights(weight: ArrayLike, n: int) -> Floats:
    v = as_scores(weight, n)
    if not ((v >= 0).all() and v.max() > 0):
        raise InputError("weights must not be below 0, and one must be above it")
    return v


def _delta(confidence: float) -> float:
    check_fraction(confidence=confidence)
    return 1 - confidence


@dataclass(frozen=True)
class PerformanceCertificate(Certificate):
    """What measure new queries can expect: between `lower` and `upper`, with probability `confidence`.

    The probability is over the choice of the judged queries.

    >>> certificate = performance([0.25, 0.5, 0.75, 0.5] * 50, "ndcg@10")
    >>> print(certificate.meaning)
    on new queries like these 200: ndcg@10 ≥ 0.4... with 95% confidence (mean 0.5000)
    >>> certificate.verdict, certificate.n_queries
    ('holds', 200)
    """

    lower: float = 0.0
    mean: float = math.nan
    upper: float = 1.0
    confidence: float = 0.95
    """The probability with which all certificates that were made together hold."""
    n_queries: int = 0
    _silence: ClassVar[str] = "nothing can be said of new queries from these"

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values for JSON."""
        own = ("lower", "mean", "upper", "confidence", "n_queries")
        return super().to_dict() | {name: getattr(self, name) for name in own}


def performance(
    values: ArrayLike,
    measure: str,
    *,
    against: ArrayLike | None = None,
    name: str = "",
    confidence: float = 0.95,
    claims: int = 1,
    weight: ArrayLike | None = None,
    unseen: Sequence[Assumption] = (),
    worst: float = 0.0,
) -> PerformanceCertificate:
    """Certify the mean of a measure from its value on each judged query; NaN is a query that its convention skips.

    With the values of another system in `against`, called `name`, the mean difference is certified instead. `claims` is
    how many certificates are made from these queries: all of them then hold together. `unseen` says what is known of
    whether the queries took part in learning; where they did, nothing is certified. `worst` is the mean that the worst
    order of these queries has: a bound that is not above it says nothing.

    >>> better = performance([0.9, 0.8, 1.0] * 40, "map", against=[0.5, 0.5, 0.6] * 40, name="BM25")
    >>> print(better.meaning)
    on new queries like these 120: better than BM25 by at least 0.3... map with 95% confidence (mean +0.3667)
    """
    x = np.asarray(values, dtype=np.float64)
    other = None if against is None else np.asarray(against, dtype=np.float64)
    if other is not None and other.shape != x.shape:
        raise InputError(f"{name} has {len(other)} values of {measure}, the ranker {len(x)}")
    counted = ~np.isnan(x) if other is None else ~(np.isnan(x) | np.isnan(other))
    v = None if weight is None else as_scores(weight, len(x))[counted]
    n = int(counted.sum())
    seen = any(assumption.verified is False for assumption in unseen)
    if seen or n == 0:
        found = Interval(0.0 if other is None else -1.0, math.nan, 1.0)
    elif other is None:
        found = mean_interval(x[counted], confidence, weight=v, claims=claims)
    else:
        found = difference_interval(x[counted], other[counted], confidence, weight=v, claims=claims)
    assumptions = [
        Assumption(f"the {n:,} queries are an independent sample of those to come"),
        *(unseen or (Assumption("they took no part in learning or choosing"),)),
    ]
    if n == 0 and not seen:
        assumptions.append(Assumption(f"{measure} has a value on at least one query", False))
    if v is not None and n:
        assumptions.append(Assumption(f"no query weighs more than {v.max():g}; bounded is the weighted mean"))
    exact = v is None and other is None and n > 0 and bool(np.isin(x[counted], (0.0, 1.0)).all())
    if exact:
        assumptions.append(Assumption(f"{measure} is 0 or 1 on every query, as on all of these"))
    if other is not None:
        return _certificate(found, measure, name, confidence, n, tuple(assumptions))
    made = _certificate(found, measure, None, confidence, n, tuple(assumptions))
    if exact:
        method = "Clopper and Pearson"
        made = replace(made, statement=made.statement.replace("betting", method), reference=method)
    return replace(made, vacuous_from=worst)


def _certificate(
    found: Interval, measure: str, rival: str | None, confidence: float, n: int, assumptions: tuple[Assumption, ...]
) -> PerformanceCertificate:
    lower, mean, upper = found
    worse = rival is not None and upper < 0
    like, sure = f"on new queries like these {n:,}", f"with {100 * confidence:g}% confidence"
    if rival is None:
        meaning = f"{like}: {measure} ≥ {lower:.4f} {sure} (mean {mean:.4f})"
    elif worse:
        meaning = f"{like}: worse than {rival} by at least {-upper:.4f} {measure} {sure} (mean {mean:+.4f})"
    elif lower > 0:
        meaning = f"{like}: better than {rival} by at least {lower:.4f} {measure} {sure} (mean {mean:+.4f})"
    else:
        meaning = f"{like}: {measure} − that of {rival} is in [{lower:+.4f}, {upper:+.4f}] {sure}: either may be better"
    what = f"expected {measure}" if rival is None else f"expected {measure} − that of {rival}"
    return PerformanceCertificate(
        statement=f"{what} of a new query {'≤ upper' if worse else '≥ lower'} bound by betting",
        value=upper if worse else lower,
        observed=mean if mean == mean else (upper if worse else lower),
        reference="betting",
        assumptions=assumptions,
        sense="<=" if worse else ">=",
        vacuous_from=0.0,
        meaning=meaning,
        terms={"queries": n, "mean": mean, "lower": lower, "upper": upper, "confidence": confidence},
        arithmetic=f"{lower:.4f} ≤ expected value ≤ {upper:.4f}",
        lower=lower,
        mean=mean,
        upper=upper,
        confidence=confidence,
        n_queries=n,
    )
