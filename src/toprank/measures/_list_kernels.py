# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The value of one list by each measure: short functions of the grades by rank, counted from 0.

Under the rule "average" a group of tied documents counts by its expected value over all their orders (McSherry and
Najork 2008). These expectations are functions of their own, called only where documents tie: `ends` is empty elsewhere
(`_rank_kernels`). In a run, the grades `y` of all judged documents may be more than those by rank.

Learners judge their lists by `measure_of_list` with a rule for NDCG or average precision: the same functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from ..core.plain import kernel
from . import binary
from ._rank_kernels import AVERAGE, best_grades, rank_list
from .presets import Gain

LINEAR = int(Gain.LINEAR)

EXACT_GRADE = 62
"""Grades 0, 1, …, EXACT_GRADE have their gain 2^l − 1 by a shift, exactly."""

TIE_TOLERANCE = 1e-12
"""A tied list whose expected value is below 1 by at most this is in the best order, to a learner."""

places_at_share = kernel(binary.places_at_share)


@kernel
def gain_of(grade, gain):
    """2^l − 1 (exact for whole grades), or l."""
    if gain == LINEAR:
        return grade
    whole = np.int64(min(grade, EXACT_GRADE))
    return np.float64((1 << whole) - 1) if whole == grade else 2.0**grade - 1.0


@kernel
def gains_by_rank(ranked, ends, places, gain):
    """Return the gains at the first `places` ranks; the documents of a tied group have their mean gain."""
    last = min(places, len(ranked))
    tied = len(ends) > 0 and last > 0
    gains = np.empty(ends[last - 1] if tied else last)
    for r in range(len(gains)):
        gains[r] = gain_of(ranked[r], gain)
    if tied:
        average_groups(gains, ends)
    return gains[:last]


@kernel
def average_groups(gains, ends):
    """Give each document of a tied group the mean gain of the group.

    The expected value of a weighted sum of gains by rank is the same sum of these means.
    """
    low = 0
    while low < len(gains):
        high, total = ends[low], 0.0
        if gains[low] != gains[high - 1]:  # grades fall in a group: otherwise all are equal, and stay as they are
            for r in range(low, high):
                total += gains[r]
            gains[low:high] = total / (high - low)
        low = high


@kernel
def dcg(gains, discount):
    """Σ_r G(l_r) D(r) over the ranks that have both."""
    value = 0.0
    for r in range(min(len(gains), len(discount))):
        value += gains[r] * discount[r]
    return value


@kernel
def ndcg(gains, best_gains, discount):
    """DCG over that of the best order."""
    return dcg(gains, discount) / dcg(best_gains, discount)


@kernel
def count_above(grades, above):
    """#{relevant}."""
    count = 0
    for i in range(len(grades)):
        count += grades[i] > above
    return count


@kernel
def average_precision(ranked, places, above):
    """Σ over the relevant ranks among the first `places` of the precision there; not yet divided."""
    hits, value = 0, 0.0
    for r in range(min(places, len(ranked))):
        if ranked[r] > above:
            hits += 1
            value += hits / (r + 1)
    return value


@kernel
def expected_average_precision(ranked, ends, places, above):
    """The expected value of `average_precision` over the orders of tied documents.

    Of t tied documents, m of them relevant, the i-th (from 0) is relevant with chance m/t, and then so are
    i (m − 1)/(t − 1) of those before it.
    """
    hits, value, low, last = 0, 0.0, 0, min(places, len(ranked))
    while low < last:
        high = ends[low]
        t, m = high - low, count_above(ranked[low:high], above)
        if m > 0:
            more = (m - 1) / max(t - 1, 1)
            for r in range(low, min(high, last)):
                value += m / t * ((hits + 1 + (r - low) * more) / (r + 1))
        hits += m
        low = high
    return value


class NDCGRule(NamedTuple):
    """NDCG@k as learners judge a list: tied documents by expectation, a short list like any other (k := n)."""

    k: int
    """The cut-off; 0 for none."""
    gain: int
    """A `presets.Gain`."""
    discount: Any
    """D by rank, for min(k, n) ranks of the longest list at least (`dcg.discounts`)."""


class APRule(NamedTuple):
    """Average precision as learners judge a list: tied documents by expectation."""

    above: float
    """Documents with a higher grade are relevant."""


@kernel
def ndcg_of_list(k, gain, discount, s, y):
    """NDCG@k of the ranking by s."""
    n = len(s)
    places = n if k == 0 else min(k, n)
    if places == 0:
        return 0.0
    best_gains = gains_by_rank(best_grades(y, places), np.empty(0, np.int64), places, gain)
    if best_gains[0] == 0:
        return 0.0
    _, ranked, ends = rank_list(s, y, AVERAGE, places)
    value = ndcg(gains_by_rank(ranked, ends, places, gain), best_gains, discount[:places])
    return 1.0 if len(ends) > 0 and value >= 1.0 - TIE_TOLERANCE else value


@kernel
def ap_of_list(above, s, y):
    """Average precision of the ranking by s."""
    relevant, n = count_above(y, above), len(s)
    if relevant == 0:
        return 0.0
    _, ranked, ends = rank_list(s, y, AVERAGE, n)
    if len(ends) == 0:
        return average_precision(ranked, n, above) / relevant
    value = expected_average_precision(ranked, ends, n, above) / relevant
    return 1.0 if value >= 1.0 - TIE_TOLERANCE else value


def measure_of_list(rule, s, y):
    """Return the measure of the ranking of one list by s, inside a kernel; `rule` is an NDCGRule or an APRule.

    0 where there is nothing to find, and exactly 1 for the best order: a perceptron steps where it is below 1. Tied
    documents are in the best order if the expected value is below 1 by at most TIE_TOLERANCE.
    """
    raise NotImplementedError("measure_of_list is called by kernels")


@overload(measure_of_list)
def _measure_of_list(rule, s, y):
    if rule.instance_class is NDCGRule:
        return lambda rule, s, y: ndcg_of_list(rule.k, rule.gain, rule.discount, s, y)
    return lambda rule, s, y: ap_of_list(rule.above, s, y)
