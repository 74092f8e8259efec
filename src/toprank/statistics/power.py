"""How many queries it takes: what a paired test on n queries can see, from how much differences vary."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checkpoint import plain
from .._tables import Shown, Table, signed
from ..data import validation
from ..errors import InputError
from ._pairing import aligned

if TYPE_CHECKING:
    from .evaluation import Report

MOST_QUERIES = 10**9
"""Queries beyond which none are counted: the difference is as good as 0."""


@dataclass(frozen=True)
class Needed:
    """What a test of one measure can see."""

    measure: str
    n_queries: int
    difference: float
    """The difference to be seen: the one asked for, else the one observed."""
    spread: float
    """Standard deviation of the queries' differences."""
    detectable: float
    """The smallest true difference that n_queries show with the wanted power."""
    power: float
    """The chance that n_queries show `difference`."""
    needed: int | None
    """Queries that show `difference` with the wanted power; None where no number does."""


@dataclass(frozen=True)
class QueryPlan(Shown):
    """How many queries it takes, measure by measure; printed, a table."""

    rows: tuple[Needed, ...]
    alpha: float
    comparisons: int
    power: float
    observed: bool
    """Whether the differences to be seen are those that were observed."""

    def __getitem__(self, measure: str) -> Needed:
        for row in self.rows:
            if row.measure == measure:
                return row
        raise KeyError(f"{measure!r} was not planned for: there are {', '.join(row.measure for row in self.rows)}")

    def table(self) -> Table:
        """Return the plan as a table that says what it rests on."""
        share = f"{self.power:.0%}"
        notes = [
            f"Two-sided tests at {self.alpha:g}"
            + (f", the smallest level of Holm's correction over {self.comparisons}" if self.comparisons > 1 else "")
            + f". Detectable: the true difference that {share} of such samples of queries would show.",
            "From the spread of the differences on these queries, by the normal law: new queries must be like these.",
        ]
        if self.observed:
            notes.append(
                "The difference to be seen is the one observed, which may be luck: better name the smallest that "
                "matters to you."
            )
        known = ["measure", "queries", "to be seen", "spread", "power now"]
        return Table(
            [*known, f"detectable at {share}", f"queries for {share}"],
            [
                [
                    row.measure,
                    row.n_queries,
                    signed(row.difference),
                    row.spread,
                    f"{row.power:.0%}",
                    row.detectable,
                    "no number" if row.needed is None else f"{row.needed:,}",
                ]
                for row in self.rows
            ],
            title="How many queries it takes",
            notes=notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        found: dict[str, Any] = plain(asdict(self))
        return found


def queries_needed(
    a: Report,
    b: Report,
    *,
    difference: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> QueryPlan:
    """Return how many judged queries it takes to show a difference, and how small a one the queries at hand can show.

    That is the smallest n with P(|T| ≥ t_{n−1, 1−α/2}) ≥ power, T noncentral with √n δ/s.

    s is the standard deviation of the queries' differences a − b. δ is the `difference` that one wants to see, the same
    for every measure, or else the observed one, which may be luck. With `comparisons` tests at once each is held to
    alpha/comparisons. The permutation test has nearly the power of the t test that this is computed for.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=100, random_state=0)
    >>> noise = np.random.default_rng(0).standard_normal(data.n_docs)
    >>> reports = [tr.evaluate(data.y + size * noise, data, ["ndcg@10"]) for size in (1.0, 1.2)]
    >>> plan = queries_needed(*reports, difference=0.01)
    >>> plan["ndcg@10"].detectable > 0.01, plan["ndcg@10"].needed > 100
    (True, True)
    """
    validation.check_fraction(alpha=alpha)
    if not alpha < power < 1:
        raise InputError(f"power must be a share between alpha and 1, got {power!r}")
    validation.check_count(comparisons=comparisons)
    if difference is not None:
        validation.check_positive(difference=difference)
    _, values = aligned({"a": a, "b": b})
    level = alpha / comparisons
    rows = []
    for measure, (pair, weight, _) in values.items():
        d = pair[0] - pair[1]
        n = len(d)
        if n < 2:
            raise InputError(f"{measure}: {n} query says nothing about spread: give at least two")
        # Weighted queries are worth as many even ones as keeps the variance of the mean.
        mean = float((d * weight).mean())
        spread = float(np.sqrt((weight**2 * (d - mean) ** 2).sum() / (n - 1)))
        wanted = mean if difference is None else float(np.copysign(difference, mean))
        rows.append(_needed(measure, n, wanted, spread, power, level))
    return QueryPlan(tuple(rows), alpha, comparisons, power, difference is None)


def _needed(measure: str, n: int, difference: float, spread: float, power: float, level: float) -> Needed:
    size = abs(difference)
    if spread <= 1e-12 * max(size, 1e-300):  # no spread: any two queries agree
        return Needed(measure, n, difference, 0.0, 0.0, float(size > 0), 2 if size > 0 else None)
    return Needed(
        measure=measure,
        n_queries=n,
        difference=difference,
        spread=spread,
        detectable=spread * _least_effect(lambda effect: power_of(n, effect, level) >= power),
        power=power_of(n, size / spread, level),
        needed=least_queries(size / spread, power, level),
    )


def power_of(n: int, effect: float, alpha: float) -> float:
    """P(|T| ≥ t_{n−1, 1−α/2}) for T noncentral t with n − 1 degrees of freedom and noncentrality √n effect.

    >>> round(power_of(34, 0.5, 0.05), 3)  # the textbook's answer for 80%
    0.808
    """
    from scipy.stats import nct, t

    if n < 2:
        return 0.0
    bar, shift = t.ppf(1 - alpha / 2, n - 1), np.sqrt(n) * effect
    if shift > 37:  # beyond, the library's noncentral t has no digits left
        return 1.0
    with np.errstate(all="ignore"):  # older releases of the library divide by 0 on the way there
        return float(np.nan_to_num(nct.sf(bar, n - 1, shift) + nct.cdf(-bar, n - 1, shift), nan=1.0))


def least_queries(effect: float, power: float, alpha: float) -> int | None:
    """Return the least n of that power, by doubling and halving; it rises with n."""
    high = 2
    while power_of(high, effect, alpha) < power:
        high *= 2
        if high > MOST_QUERIES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect, alpha) >= power else (middle, high)
    return high


def _least_effect(enough: Any) -> float:
    """Return the smallest effect that is enough, by doubling and halving."""
    high = 1.0
    while not enough(high):
        high *= 2
        if high > 1e12:
            return float("inf")
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
