# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The value of one ranked list by each measure, as C functions: only those that are asked for are compiled.

Each gets the grades by rank, where the tied group of each rank ends, the grades as given, those of the best order, and
the measure's codes and numbers. Documents of one score are a group; under the rule "average" a group counts by the
expected value over its orders (McSherry and Najork 2008), otherwise, and where no documents tie, each rank is a group
of its own. Ranks count from 0, and the grades of an averaged group fall.

Codes begin with (k, rule), k = 0 for no cut-off; numbers begin with (blank, above).
"""

from __future__ import annotations

import numpy as np
from numba import types

from ..core._call_kernels import CODES, CFunction, array_at
from ..core._order_kernels import sort_down
from ..core.jit import body_kernel, inner_kernel
from .presets import Discount, Gain, Norm, Short

LINEAR, LETOR, CUT = int(Gain.LINEAR), int(Discount.LETOR), int(Norm.CUT)
PAD, SHORTEN, ZERO = np.int64(Short.PAD), np.int64(Short.SHORTEN), np.int64(Short.ZERO)

START = np.int64(0)
"""Where loops over ranks begin: a plain 0 is another type, and every helper would be compiled twice."""
EACH, AVERAGE, SHARED = 0, 1, 2
"""What a tied group counts: each rank alone, the mean over its orders, all documents at its last rank."""
WHOLE = 62
"""Grades 0, 1, …, WHOLE have their gain 2^l − 1 by a shift, exactly."""
NOTHING = 46.0
"""e^−46 is 1e-20: a reader who goes on with a smaller chance than that adds nothing."""

_whole, _real = types.CPointer(types.int64), types.CPointer(types.float64)
VALUE = types.float64(_real, _whole, _real, _real, types.int64, types.int64, _whole, _real, types.int64, _real)
"""Grades by rank, ends of tied groups, grades as given, those of the best order (where wanted), how many are ranked,
how many there are in all (in a run some may not have been retrieved), codes, numbers, how many of these, scratch for
2 (all + 1) reals."""


def value_function(function):
    """Make a C function of the value of one list, which is handed arrays."""

    def entry_of(written):
        value = body_kernel(written)

        def entry(ranked, ends, y, best, n, total, codes, numbers, n_numbers, scratch):
            return value(
                array_at(ranked, n), array_at(ends, n), array_at(y, total), array_at(best, total),
                array_at(codes, CODES), array_at(numbers, n_numbers), array_at(scratch, 2 * (total + 1)),
            )  # fmt: skip

        return entry

    return CFunction(VALUE, function, entry_of)


@inner_kernel
def places(k, n, short):
    """The cut-off of a list of n documents: k, or n where there is none or a short list makes it so."""
    return n if k == 0 or (k > n and short == SHORTEN) else k


@inner_kernel
def end_of(ends, low, rule):
    """Where the group that begins at rank `low` ends."""
    return ends[low] if rule != EACH else low + 1


@inner_kernel
def count_above(grades, low, high, above):
    """Number of relevant documents in a stretch."""
    count = 0
    for r in range(low, high):
        count += grades[r] > above
    return count


@inner_kernel
def gain_of(grade, gain):
    """2^l − 1 (exact for whole grades), or l."""
    if gain == LINEAR:
        return grade
    whole = np.int64(min(grade, WHOLE))
    return np.float64((1 << whole) - 1) if whole == grade else 2.0**grade - 1.0


@inner_kernel
def mean_gain(ranked, low, high, gain):
    """Mean gain of a group."""
    if ranked[low] == ranked[high - 1]:
        return gain_of(ranked[low], gain)
    total = 0.0
    for r in range(low, high):
        total += gain_of(ranked[r], gain)
    return total / (high - low)


@inner_kernel
def discount_at(rank, table, kind):
    """D of a rank, from 0: the table's, or computed where the list is longer: 1/log2(rank + 2), or LETOR's."""
    if rank < len(table):
        return table[rank]
    return 1.0 / np.log2(rank + 1.0 if kind == LETOR else rank + 2.0)


@value_function
def dcg(ranked, ends, y, best, codes, numbers, scratch):
    """Σ_{r ≤ k} G(l_r) D(r). Codes: k, rule, short, gain, discount; numbers end with a table of D."""
    k, rule, short, gain, kind = codes[0], codes[1], codes[2], codes[3], codes[4]
    n, table = len(ranked), numbers[2:]
    last, value, low = min(places(k, n, short), n), 0.0, START
    if short == ZERO and k > n:
        return 0.0
    while low < last:
        high = end_of(ends, low, rule)
        mean = mean_gain(ranked, low, high, gain)
        for r in range(low, min(high, last)):
            value += mean * discount_at(r, table, kind)
        low = high
    return value


@value_function
def ndcg(ranked, ends, y, best, codes, numbers, scratch):
    """DCG@k over that of the best order; codes as for `dcg`, and whether it is averaged over 1, …, k."""
    k, rule, short, gain, kind, mean = codes[0], codes[1], codes[2], codes[3], codes[4], codes[5] != 0
    n, total, table = len(ranked), len(y), numbers[2:]
    cuts = places(k, total, short)
    last = min(cuts, total)
    if total == 0 or gain_of(best[0], gain) == 0:
        return numbers[0]
    reached, ideal, ratios, low = 0.0, 0.0, 0.0, START
    while low < last:
        high = end_of(ends, low, rule) if low < n else last
        shown = mean_gain(ranked, low, high, gain) if low < n else 0.0
        for r in range(low, min(high, last)):
            discount = discount_at(r, table, kind)
            reached += shown * discount
            ideal += gain_of(best[r], gain) * discount
            if mean:
                ratios += reached / ideal
        low = high
    beyond = 0.0 if short == ZERO else reached / ideal  # NDCG at a cut-off longer than the list
    if mean:
        return (ratios + max(cuts - n, 0) * beyond) / cuts
    return beyond if cuts > n else reached / ideal


@inner_kernel
def expected_hits(ranked, ends, last, above, rule):
    """Expected number of relevant documents up to rank `last`."""
    hits, low = 0.0, START
    while low < last:
        high = end_of(ends, low, rule)
        found = count_above(ranked, low, high, above)
        hits += found if high <= last else found * (last - low) / (high - low)
        low = high
    return hits


@value_function
def precision(ranked, ends, y, best, codes, numbers, scratch):
    """#{r ≤ k: relevant} / k. Codes: k, rule, short."""
    n = len(ranked)
    cuts = places(codes[0], n, codes[2])
    if cuts == 0 or (cuts > n and codes[2] == ZERO):
        return 0.0
    return expected_hits(ranked, ends, min(cuts, n), numbers[1], codes[1]) / cuts


@value_function
def recall(ranked, ends, y, best, codes, numbers, scratch):
    """#{r ≤ c: relevant} / d: c = k and d = #{relevant}; at a share κ > 0, c = d = ⌈κ #{relevant}⌉ instead.

    Codes: k, rule; numbers: blank, above, κ.
    """
    n, relevant = len(ranked), count_above(y, START, len(y), numbers[1])
    if relevant == 0:
        return numbers[0]
    cut, over = places(codes[0], n, PAD), relevant
    if numbers[2] > 0:
        cut = over = max(np.int64(np.ceil(numbers[2] * relevant * (1.0 - 1e-12))), 1)
    return expected_hits(ranked, ends, min(cut, n), numbers[1], codes[1]) / over


@value_function
def success(ranked, ends, y, best, codes, numbers, scratch):
    """1 if any of the first k documents is relevant. Codes: k, rule.

    Of t tied documents, m of them relevant, j places hold none with chance Π_{i<j} (t − m − i)/(t − i).
    """
    n = len(ranked)
    last, low = min(places(codes[0], n, PAD), n), START
    while low < last:
        high = end_of(ends, low, codes[1])
        found = count_above(ranked, low, high, numbers[1])
        if found > 0:
            none = 1.0
            for r in range(low, min(last, high)):
                none *= max(high - r - found, 0) / (high - r)
            return 1.0 - none
        low = high
    return 0.0


@value_function
def reciprocal_rank(ranked, ends, y, best, codes, numbers, scratch):
    """1 / (rank of the first relevant document up to k), else 0. Codes: k, rule.

    Of t tied documents, m of them relevant, the i-th (from 0) is the first relevant one with chance
    m/(t − i) Π_{l<i} (t − m − l)/(t − l).
    """
    n = len(ranked)
    last, low = min(places(codes[0], n, PAD), n), START
    while low < last:
        high = end_of(ends, low, codes[1])
        found = count_above(ranked, low, high, numbers[1])
        if found > 0:
            value, none_yet = 0.0, 1.0
            for r in range(low, min(last, high - found + 1)):
                value += none_yet * found / (high - r) / (r + 1)
                none_yet *= (high - r - found) / (high - r)
            return value
        low = high
    return numbers[0] if count_above(y, START, len(y), numbers[1]) == 0 else 0.0


@value_function
def average_precision(ranked, ends, y, best, codes, numbers, scratch):
    """Σ over the relevant ranks up to k of the precision there, over #{relevant}. Codes: k, rule, norm.

    Of t tied documents, m of them relevant, the i-th (from 0) is relevant with chance m/t, and then so are
    i (m − 1)/(t − 1) of those before it. With the rule "shared" they all stand at the end of their group.
    """
    n, rule, above = len(ranked), codes[1], numbers[1]
    last, relevant = min(places(codes[0], n, PAD), n), count_above(y, START, len(y), above)
    if relevant == 0:
        return numbers[0]
    hits, value, low = 0, 0.0, START
    while low < last:
        high = end_of(ends, low, rule)
        found = count_above(ranked, low, high, above)
        if high == low + 1:
            value += found * ((hits + 1) / high)
        elif rule == SHARED:
            value += found * ((hits + found) / high) if high <= last else 0.0
        elif found > 0:
            more = (found - 1) / max(high - low - 1, 1)
            for r in range(low, min(high, last)):
                value += (found / (high - low)) * ((hits + 1 + (r - low) * more) / (r + 1))
        hits += found
        low = high
    return value / (min(relevant, codes[0]) if codes[2] == CUT and codes[0] > 0 else relevant)


@value_function
def rank_biased(ranked, ends, y, best, codes, numbers, scratch):
    """(1 − p) Σ_{r ≤ k, relevant} p^{r−1}. Codes: k, rule, whether grades weigh; numbers: blank, above, p."""
    n, above, p = len(ranked), numbers[1], numbers[2]
    last = min(places(codes[0], n, PAD), n)
    value, weight, low = 0.0, 1.0, START
    while low < last:
        high = end_of(ends, low, codes[1])
        shown = 0.0
        for r in range(low, high):
            shown += (ranked[r] if codes[2] != 0 else 1.0) if ranked[r] > above else 0.0
        for _ in range(low, min(high, last)):
            value += weight * (shown / (high - low))
            weight *= p
        low = high
    return (1.0 - p) * value


@inner_kernel
def stops_among_tied(ranked, low, high, last, gain, scale, means, ahead):
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i) over low ≤ r < min(high, last), expected over the orders of low, …, high − 1.

    With v_j the mean of Π (1 − R) over the choices of j among the m documents with R > 0, the reader stops at the j-th
    of these with chance v_{j−1} − v_j, wherever it stands; where it stands is a draw without replacement. Costs
    O(places · j), j at most m, and only as long as v_j is not nothing (600 on a scale of 0 to 4).
    """
    m, most = 0, 0.0
    for r in range(low, high):
        stops = gain_of(ranked[r], gain) / scale
        if stops > 0:
            m, most = m + 1, max(most, 1.0 - stops)
    reach = min(high, last) - low
    terms = min(m, reach, 1 if most <= 0 else int(NOTHING / -np.log(most)) + 1)
    for j in range(terms + 1):
        means[j] = ahead[j] = 0.0
    means[0] = ahead[0] = 1.0
    seen = 0
    for r in range(low, high):
        stops = gain_of(ranked[r], gain) / scale
        if stops > 0:
            seen += 1
            for j in range(min(seen, terms), 0, -1):
                means[j] = (1.0 - j / seen) * means[j] + j / seen * (1.0 - stops) * means[j - 1]
    total = 0.0
    for place in range(reach):  # `ahead`: the chance that j of the m stand before this place
        left = high - low - place
        for j in range(min(place, terms - 1), -1, -1):
            met = (m - j) / left
            total += ahead[j] * met * (means[j] - means[j + 1]) / (low + place + 1)
            ahead[j + 1] += ahead[j] * met
            ahead[j] *= 1.0 - met
    return total


@value_function
def expected_reciprocal_rank(ranked, ends, y, best, codes, numbers, scratch):
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i), R = (2^l − 1) / 2^max or l / max. Codes: k, rule, gain; numbers: 0, 0, max."""
    n, gain = len(ranked), codes[2]
    last = min(places(codes[0], n, PAD), n)
    value, going, low = 0.0, 1.0, START
    scale = numbers[2] if gain == LINEAR else 2.0 ** numbers[2]
    while low < last:
        high = end_of(ends, low, codes[1])
        if ranked[low] != ranked[high - 1]:
            value += going * stops_among_tied(ranked, low, high, last, gain, scale, scratch[: n + 1], scratch[n + 1 :])
            for r in range(low, high):
                going *= 1.0 - gain_of(ranked[r], gain) / scale
        else:
            stops = gain_of(ranked[low], gain) / scale
            for r in range(low, min(high, last)):
                value += going * stops / (r + 1)
                going *= 1.0 - stops
        low = high
    return value


@inner_kernel
def unequal_pairs(values, low, high):
    """Number of pairs with different values in a sorted stretch."""
    count, same = 0, 0
    for r in range(low, high):
        same = same + 1 if r > low and values[r] == values[r - 1] else 0
        count += r - low - same
    return count


@value_function
def pair_accuracy(ranked, ends, y, best, codes, numbers, scratch):
    """Share of the pairs of different grade that stand the right way round; averaged, a tied pair counts half."""
    n, rule, blank = len(ranked), codes[1], numbers[0]
    shown, spare = scratch[: n + 1], scratch[n + 1 :]
    for r in range(n):
        shown[r] = ranked[r]
    tied, low = 0, START
    while low < n:
        high = end_of(ends, low, rule)
        tied += unequal_pairs(shown, low, high)
        low = high
    wrong = sort_down(shown, shown, n, spare, spare)
    pairs = unequal_pairs(shown, START, n)
    return blank if pairs == 0 else 1.0 - (wrong + 0.5 * tied) / pairs


@value_function
def binary_preference(ranked, ends, y, best, codes, numbers, scratch):
    """(1/R) Σ_{relevant} 1 − min(#{irrelevant above it}, R) / min(R, N); grades below 0 are not judged.

    How many of the x irrelevant documents of its own tied group stand above a relevant one is 0, …, x alike.
    Numbers: blank, above, what a relevant document counts where nothing was judged irrelevant.
    """
    n, total, above = len(ranked), len(y), numbers[1]
    relevant = count_above(y, START, total, above)
    if relevant == 0:
        return numbers[0]
    judged = 0
    for i in range(total):
        judged += y[i] >= 0
    irrelevant = judged - relevant
    value, passed, low = 0.0, 0, START
    while low < n:
        high = end_of(ends, low, codes[1])
        found, other = count_above(ranked, low, high, above), 0
        for r in range(low, high):
            other += 0 <= ranked[r] <= above
        if found > 0:
            lost = 0.0
            for x in range(passed, passed + other + 1):
                lost += min(x, relevant) / min(relevant, irrelevant) if x > 0 else 0.0
            value += found * (1.0 - lost / (other + 1) if irrelevant > 0 else numbers[2])
        passed += other
        low = high
    return value / relevant


@value_function
def mixed_ties(ranked, ends, y, best, codes, numbers, scratch):
    """1 where documents of different grade tie among the first k ranks, else 0. Codes: k, rule."""
    n = len(ranked)
    for r in range(min(places(codes[0], n, PAD), n) if codes[1] != EACH else 0):
        if ends[r] > r + 1 and ranked[r] != ranked[r + 1]:
            return 1.0
    return 0.0
