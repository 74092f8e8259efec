"""Is a machine kinder to one system than to another? Its bias per system, and the differences of these biases."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .._typing import Floats
from ..statistics import _statistics as statistics
from ..statistics._paired_tests import PairedTest
from ..statistics.power import least_queries

ALPHA = 0.05
_FLIPS = 10_000
POWER = 0.8


@dataclass(frozen=True)
class Bias:
    """How much higher a measure of one system is by the machine's grades than by people's, on the same queries."""

    system: str
    people: float
    machine: float
    bias: float
    """Mean over queries of machine − people."""
    interval: tuple[float, float]
    """The biases that the sign-flip test does not reject at 5%, this system by itself."""


@dataclass(frozen=True)
class Favour:
    """Whether the machine is kinder to system `a` than to `b`: mean over queries of (f_a − f_b) − (h_a − h_b)."""

    a: str
    b: str
    favour: float
    interval: tuple[float, float]
    """The values that the sign-flip test does not reject at the level at which Holm's procedure decided."""
    p_holm: float
    shown: bool
    """Whether p, corrected over all pairs, is at most 5%."""

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if not self.shown:
            return "not shown"
        return f"favours {self.a if self.favour > 0 else self.b}"


@dataclass(frozen=True)
class Suggestion:
    """What the machine suggests of two systems, and how many queries people would have to judge to show it."""

    a: str
    b: str
    machine: float
    """Mean of a − b by the machine's grades, over all queries that it judged."""
    people: float
    """The same by people's grades, over the queries that they judged."""
    agree: bool
    """Whether both have the same sign."""
    needed: int | None
    """Queries that people must judge to show so large a difference with a chance of 80%; None where no number does."""


def biases(systems: tuple[str, ...], people: Floats, machine: Floats, *, random_state: int = 0) -> list[Bias]:
    """Return the bias of the machine for each system (rows), from the values of a measure on the same queries.

    >>> h = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]])
    >>> found = biases(("one",), h, h + 0.1)[0]
    >>> round(found.bias, 4), found.interval[0] > 0
    (0.1, True)
    """
    gaps = _without_rounding(machine - people)
    _, ends = _tested(gaps, len(gaps), random_state, corrected=False)
    means = (people.mean(axis=1), machine.mean(axis=1), gaps.mean(axis=1))
    rows = zip(systems, *(m.tolist() for m in means), ends.tolist(), strict=True)
    return [Bias(name, h, f, gap, (low, high)) for name, h, f, gap, (low, high) in rows]


def favours(systems: tuple[str, ...], people: Floats, machine: Floats, *, random_state: int = 0) -> list[Favour]:
    """Test for every pair of systems whether the machine is kinder to one of them: Holm over the pairs.

    >>> h = np.random.default_rng(0).random((2, 30))
    >>> found = favours(("mine", "theirs"), h, h + np.array([[0.2], [0.0]]))[0]
    >>> found.verdict, round(found.favour, 4)
    ('favours mine', 0.2)
    """
    pairs = list(combinations(range(len(systems)), 2))
    if not pairs:
        return []
    gaps = machine - people
    apart = _without_rounding(np.stack([gaps[a] - gaps[b] for a, b in pairs]))
    p, ends = _tested(apart, len(pairs), random_state, corrected=True)
    rows = zip(pairs, apart.mean(axis=1).tolist(), ends.tolist(), p.tolist(), strict=True)
    return [Favour(systems[a], systems[b], mean, (low, high), q, q <= ALPHA) for (a, b), mean, (low, high), q in rows]


def suggestions(
    systems: tuple[str, ...], pairs: list[tuple[int, int]], people: Floats, machine: Floats, comparisons: int
) -> list[Suggestion]:
    """Return for pairs of systems how many queries people must judge to show what the machine suggests.

    That is the power of the paired t test for the machine's difference with the spread of people's, at 5% divided by
    the number of comparisons. `machine` has the values on all queries that it judged.

    >>> rng = np.random.default_rng(0)
    >>> h = rng.random((2, 50))
    >>> found = suggestions(("a", "b"), [(0, 1)], h, np.array([[0.6] * 200, [0.5] * 200]), 1)[0]
    >>> round(found.machine, 4), found.needed > 50
    (0.1, True)
    """
    found = []
    for a, b in pairs:
        d, suggested = people[a] - people[b], float((machine[a] - machine[b]).mean())
        spread = float(d.std(ddof=1)) if len(d) > 1 else 0.0
        needed = None
        if abs(suggested) > statistics.TIE and spread > statistics.TIE:
            needed = least_queries(abs(suggested) / spread, POWER, ALPHA / comparisons)
        mean = float(d.mean())
        found.append(Suggestion(systems[a], systems[b], suggested, mean, mean * suggested > 0, needed))
    return found


def _without_rounding(gaps: Floats) -> Floats:
    return np.where(np.abs(gaps) <= statistics.TIE, 0.0, gaps)


def _tested(rows: Floats, family: int, random_state: int, *, corrected: bool) -> tuple[Floats, Floats]:
    """Return p and the interval of each row of differences; with `corrected`, at the levels of Holm's procedure."""
    test = PairedTest("permutation", _FLIPS, random_state, ALPHA / family)
    weight = np.ones(rows.shape[1])
    found = test.found("favour", rows, weight, None, ALPHA, bounded=False)
    p = np.array([one.p for one in found])
    if corrected:
        q = statistics.holm(p)
        ends, _ = test.intervals(found, q, ALPHA)
        return q, ends[:, 0]
    # One row at a time is a family of one: its interval is at 5%.
    ends = np.stack([test.intervals([one], np.array([one.p]), ALPHA)[0][0, 0] for one in found])
    return p, ends
