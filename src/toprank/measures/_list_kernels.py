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

from ..core.jit import kernel
from ._rank_kernels import AVERAGE, documents_by_rank, rank_list
from .binary import places_at_share as places_of_numbers
from .order import TIE_TOLERANCE
from .presets import Gain, Short

LINEAR, ZERO = int(Gain.LINEAR), int(Short.ZERO)

SMALL_GRADE = 31
"""Whole grades up to this are counted, not sorted, for the best order."""

EXACT_GRADE = 62
"""Grades 0, 1, …, EXACT_GRADE have their gain 2^l − 1 by a shift, exactly."""

places_at_share = kernel(places_of_numbers)


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
def best_gains(y, places, gain):
    """Return the gains at the first `places` ranks of the best order: small whole grades are counted, others sorted."""
    n, top, others = len(y), np.int32(0), 0
    for i in range(n):
        whole = np.int32(min(max(y[i], -1.0), SMALL_GRADE + 1.0))
        others += (y[i] != whole) | (whole > SMALL_GRADE) | (whole < 0)
        top = max(top, whole)
    if others > 0:
        gains = documents_by_rank(y, places)[1][:places]
        for r in range(len(gains)):
            gains[r] = gain_of(gains[r], gain)
        return gains
    gains, rank, grade = np.empty(min(places, n)), 0, np.float64(top)
    while rank < len(gains):
        count, value = 0, gain_of(grade, gain)
        for i in range(n):
            count += y[i] == grade
        for r in range(rank, min(rank + count, len(gains))):
            gains[r] = value
        rank, grade = rank + count, grade - 1.0
    return gains


@kernel
def mean_ndcg(gains, best_gains, discount, cut, short):
    """(1/cut) Σ_{j ≤ cut} NDCG@j; beyond the end of a list NDCG@j stays what it is, or is 0 by `short`."""
    reached, ideal, total = 0.0, 0.0, 0.0
    for r in range(len(gains)):
        reached += gains[r] * discount[r]
        ideal += best_gains[r] * discount[r]
        total += reached / ideal
    if short != ZERO:
        total += (cut - len(gains)) * (reached / ideal)
    return total / cut


@kernel
def count_above(grades, above):
    """#{relevant}."""
    count = 0
    for i in range(len(grades)):
        count += grades[i] > above
    return count


@kernel
def hits(ranked, ends, places, above):
    """#{relevant} among the first `places` ranks; of a tied group that the cut goes through, the expected number."""
    last = min(places, len(ranked))
    if len(ends) == 0 or last == 0:
        return float(count_above(ranked[:last], above))
    low, high = last - 1, ends[last - 1]  # the group of the last rank
    while low > 0 and ends[low - 1] == high:
        low -= 1
    return count_above(ranked[:low], above) + count_above(ranked[low:high], above) * (last - low) / (high - low)


@kernel
def success(ranked, ends, places, above):
    """1 if any of the first `places` documents is relevant, else 0."""
    if len(ends) > 0:
        return expected_success(ranked, ends, places, above)
    return 1.0 if count_above(ranked[:places], above) > 0 else 0.0


@kernel
def expected_success(ranked, ends, places, above):
    """The chance that one of the first `places` is relevant.

    Of t tied documents, m of them relevant, j places hold none with chance Π_{i<j} (t − m − i)/(t − i).
    """
    low, last = 0, min(places, len(ranked))
    while low < last:
        high = ends[low]
        m = count_above(ranked[low:high], above)
        if m > 0:
            none = 1.0
            for r in range(low, min(last, high)):
                none *= max(high - r - m, 0) / (high - r)
            return 1.0 - none
        low = high
    return 0.0


@kernel
def reciprocal_rank(ranked, ends, places, above):
    """1 / (rank of the first relevant document, from 1) if it is among the first `places`, else 0."""
    if len(ends) > 0:
        return expected_reciprocal_rank(ranked, ends, places, above)
    for r in range(min(places, len(ranked))):
        if ranked[r] > above:
            return 1.0 / (r + 1)
    return 0.0


@kernel
def expected_reciprocal_rank(ranked, ends, places, above):
    """The expected value of `reciprocal_rank` over the orders of tied documents.

    Of t tied documents, m of them relevant, the i-th (from 0) is the first relevant one with chance
    m/(t − i) Π_{l<i} (t − m − l)/(t − l).
    """
    low, last = 0, min(places, len(ranked))
    while low < last:
        high = ends[low]
        m = count_above(ranked[low:high], above)
        if m > 0:
            value, none_yet = 0.0, 1.0
            for r in range(low, min(last, high - m + 1)):
                value += none_yet * m / (high - r) / (r + 1)
                none_yet *= (high - r - m) / (high - r)
            return value
        low = high
    return 0.0


@kernel
def sum_of_precisions(ranked, ends, places, above):
    """Σ over the relevant ranks among the first `places` of the precision there; not yet divided by #{relevant}."""
    if len(ends) > 0:
        return expected_sum_of_precisions(ranked, ends, places, above)
    found, value = 0, 0.0
    for r in range(min(places, len(ranked))):
        relevant = int(ranked[r] > above)  # a product, not a branch: whether a document is relevant is hard to predict
        found += relevant
        value += relevant * found / (r + 1)
    return value


@kernel
def expected_sum_of_precisions(ranked, ends, places, above):
    """The expected value of `sum_of_precisions` over the orders of tied documents.

    Of t tied documents, m of them relevant, the i-th (from 0) is relevant with chance m/t, and then so are
    i (m − 1)/(t − 1) of those before it.
    """
    found, value, low, last = 0, 0.0, 0, min(places, len(ranked))
    while low < last:
        high = ends[low]
        t, m = high - low, count_above(ranked[low:high], above)
        if m > 0:
            more = (m - 1) / max(t - 1, 1)
            for r in range(low, min(high, last)):
                value += m / t * ((found + 1 + (r - low) * more) / (r + 1))
        found += m
        low = high
    return value


@kernel
def shared_sum_of_precisions(ranked, ends, places, above):
    """`sum_of_precisions` where all documents of a tied group stand at its last rank."""
    found, value, low, last = 0, 0.0, 0, min(places, len(ranked))
    while low < last:
        high = ends[low]
        m = count_above(ranked[low:high], above)
        found += m
        if high <= last:
            value += m * (found / high)
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
    best = best_gains(y, places, gain)
    if best[0] == 0:
        return 0.0
    _, ranked, ends = rank_list(s, y, AVERAGE, places)
    value = ndcg(gains_by_rank(ranked, ends, places, gain), best, discount)
    return 1.0 if len(ends) > 0 and value >= 1.0 - TIE_TOLERANCE else value


@kernel
def ap_of_list(above, s, y):
    """Average precision of the ranking by s."""
    relevant, n = count_above(y, above), len(s)
    if relevant == 0:
        return 0.0
    _, ranked, ends = rank_list(s, y, AVERAGE, n)
    value = sum_of_precisions(ranked, ends, n, above) / relevant
    return 1.0 if len(ends) > 0 and value >= 1.0 - TIE_TOLERANCE else value


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
