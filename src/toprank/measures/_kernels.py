# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Compiled evaluation: one order per query, and every measure read off that order.

`measure_queries` runs over whole data sets. Learners that evaluate inside their own compiled loop call `query_values`
for one query (see `plan.Plan`), or `ndcg_at` where NDCG is all they need, with scratch from `workspace`.

In this file `s` and `g` are the scores and grades of one query and ranks count from 0. A row of `codes` is (kind, k,
gain, discount, ties, short, norm) with k = 0 for no cut-off, a row of `reals` is (blank, above, parameter): `plan.Row`.
Scratch is two tables and two vectors, indexed in place: a view per query would cost more than the query.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import inner_kernel, kernel
from .order import Ties
from .presets import Gain, Kind, Norm, Short

DCG, NDCG, MEAN_NDCG = int(Kind.DCG), int(Kind.NDCG), int(Kind.MEAN_NDCG)
PRECISION, RECALL, AP, RR = int(Kind.PRECISION), int(Kind.RECALL), int(Kind.AP), int(Kind.RR)
RBP, ERR, AUC = int(Kind.RBP), int(Kind.ERR), int(Kind.AUC)
EXP2, LINEAR, CUT = int(Gain.EXP2), int(Gain.LINEAR), int(Norm.CUT)
INPUT, BY_ID, WORST, BEST_FIRST = int(Ties.INPUT), int(Ties.ID), int(Ties.WORST), int(Ties.BEST)
AVERAGE, SHARED = int(Ties.AVERAGE), int(Ties.SHARED)
SHORTEN, ZERO = int(Short.SHORTEN), int(Short.ZERO)

INDEX, LISTED, OTHER, ENDS = 0, 1, 2, 3
"""Rows of whole numbers: documents by rank, candidates in input order, room to merge, where a tied group ends."""
VALUES, TIE, KEYS, SPARE, SHOWN, RANKED, BEST = 0, 1, 2, 3, 4, 5, 6
"""Rows of reals: scores, tie-breakers, scores by rank, room to merge, what ranks show, grades by rank, best grades."""

EVERY = 1 << 40
"""More ranks than any list has."""
LANES = 32
"""Running maxima kept side by side where only the top is wanted."""
COUNTED = 512
"""Lists up to this length are ranked by counting (SIMD), longer ones by merging."""
WHOLE = 62
"""Grades 0, 1, …, WHOLE have their gain 2^l − 1 by a shift, exactly."""
SCALE = 31
"""Whole grades up to this are counted, not sorted, for the ideal order."""
NOTHING = 46.0
"""e^−46 is 1e-20: a reader who goes on with a smaller chance than that adds nothing."""


@kernel
def workspace(longest):
    """Scratch for lists of up to `longest` documents, made once: (ints, reals, rank, single)."""
    size = max(longest, LANES) + 1  # one more, because the filter writes before it knows whether to keep
    return np.zeros((4, size), np.int64), np.zeros((7, size)), np.zeros(size, np.int32), np.zeros(size, np.float32)


@inner_kernel
def count_ranks(values, n, rank):
    """rank[i] = #{j: v_j > v_i} + #{j < i: v_j = v_i}, each pair looked at once."""
    for i in range(n):
        x, ahead = values[i], np.int32(0)
        for j in range(i):
            before = np.int32(values[j] >= x)
            ahead += before
            rank[j] += np.int32(1) - before
        rank[i] = ahead


@inner_kernel
def merge_ranks(n, ints, reals):
    """Sort the first n of INDEX by their VALUES, descending and stably, in O(n log n) whatever the input."""
    width, i_from, i_to, v_from, v_to = 8, INDEX, OTHER, KEYS, SPARE
    for start in range(0, n, width):
        for r in range(start, min(start + width, n)):
            i, p = ints[INDEX, r], r
            x = reals[VALUES, i]
            while p > start and reals[KEYS, p - 1] < x:
                reals[KEYS, p], ints[INDEX, p] = reals[KEYS, p - 1], ints[INDEX, p - 1]
                p -= 1
            reals[KEYS, p], ints[INDEX, p] = x, i
    while width < n:
        for start in range(0, n, 2 * width):
            # Unsigned: a signed index is checked for being negative, which costs a third of the merge.
            one, left, middle = np.uint64(1), np.uint64(start), np.uint64(min(start + width, n))
            right, stop, out = middle, np.uint64(min(start + 2 * width, n)), left
            while left < middle and right < stop:
                x, y, i, j = reals[v_from, left], reals[v_from, right], ints[i_from, left], ints[i_from, right]
                later = y > x
                reals[v_to, out], ints[i_to, out] = y if later else x, j if later else i
                left, right, out = left + np.uint64(not later), right + np.uint64(later), out + one
            while left < middle:
                reals[v_to, out], ints[i_to, out] = reals[v_from, left], ints[i_from, left]
                left, out = left + one, out + one
            while right < stop:
                reals[v_to, out], ints[i_to, out] = reals[v_from, right], ints[i_from, right]
                right, out = right + one, out + one
        i_from, i_to, v_from, v_to = i_to, i_from, v_to, v_from
        width *= 2
    if i_from != INDEX:
        for r in range(n):
            ints[INDEX, r] = ints[OTHER, r]


@inner_kernel
def comes_before(i, j, reals):
    """Whether document i strictly precedes document j."""
    x, y = reals[VALUES, i], reals[VALUES, j]
    return x > y or (x == y and reals[TIE, i] < reals[TIE, j])


@inner_kernel
def settle(low, high, ints, reals):
    """Sort INDEX[low:high] stably by (VALUES descending, TIE ascending)."""
    width = 8
    for start in range(low, high, width):
        for r in range(start + 1, min(start + width, high)):
            i, p = ints[INDEX, r], r
            while p > start and comes_before(i, ints[INDEX, p - 1], reals):
                ints[INDEX, p] = ints[INDEX, p - 1]
                p -= 1
            ints[INDEX, p] = i
    while width < high - low:
        for start in range(low, high, 2 * width):
            middle, stop = min(start + width, high), min(start + 2 * width, high)
            a, b = start, middle
            for r in range(start, stop):
                left = b == stop or (a < middle and not comes_before(ints[INDEX, b], ints[INDEX, a], reals))
                ints[OTHER, r] = ints[INDEX, a] if left else ints[INDEX, b]
                a, b = (a + 1, b) if left else (a, b + 1)
        for r in range(low, high):
            ints[INDEX, r] = ints[OTHER, r]
        width *= 2


@inner_kernel
def candidates(n, top, ints, reals, rank, single):
    """List in input order the documents that can be among the first `top`; return how many.

    The k-th largest of LANES running maxima is a lower bound of the k-th score, so only what reaches it can matter.
    """
    if top > LANES or n < 2 * LANES:
        for i in range(n):
            ints[LISTED, i] = i
        return n
    for lane in range(LANES):
        single[lane] = np.float32(reals[VALUES, lane])
    for start in range(LANES, n - LANES + 1, LANES):
        for lane in range(LANES):
            single[lane] = max(single[lane], np.float32(reals[VALUES, start + lane]))
    count_ranks(single, LANES, rank)
    bound = np.float32(-np.inf)
    for lane in range(LANES):
        if rank[lane] == top - 1:
            bound = single[lane]
    m = 0
    for i in range(n):
        ints[LISTED, m] = i
        m += int(np.float32(reals[VALUES, i]) >= bound)
    return m


@inner_kernel
def rank_list(s, g, key, ties, top, ints, reals, rank, single):
    """Order one query under a tie rule; write its documents and grades by rank and return how many ranks are filled.

    The only place that sorts scores. At least min(top, n) ranks are filled, and never a part of a tied group.
    """
    n = len(s)
    for i in range(n):
        reals[VALUES, i] = s[i]
    if ties == BY_ID:
        for i in range(n):
            reals[VALUES, i], reals[TIE, i] = np.float64(np.float32(s[i])), key[i]
    elif ties == WORST:
        for i in range(n):
            reals[TIE, i] = g[i]
    elif ties == BEST_FIRST:
        for i in range(n):
            reals[TIE, i] = -g[i]
    m = candidates(n, top, ints, reals, rank, single)
    if m > COUNTED:
        for r in range(m):
            ints[INDEX, r] = ints[LISTED, r]
        merge_ranks(m, ints, reals)
        unsettled = 0 if ties == INPUT else m
    else:
        for r in range(m):
            single[r] = reals[VALUES, ints[LISTED, r]]
        count_ranks(single, m, rank)
        for r in range(m):
            ints[INDEX, rank[r]], reals[KEYS, rank[r]] = ints[LISTED, r], single[r]
        unsettled = 0
        for r in range(1, m):
            unsettled += reals[KEYS, r] == reals[KEYS, r - 1]
    # Single precision counts at twice the speed; what it cannot tell apart, and ties with a rule, are settled here.
    low = np.int64(0)
    while unsettled > 0 and low < m - 1:
        high, x = low + 1, np.float32(reals[VALUES, ints[INDEX, low]])
        while high < m and np.float32(reals[VALUES, ints[INDEX, high]]) == x:
            high += 1
        if high > low + 1:
            settle(low, high, ints, reals)
        low = high
    for r in range(m):
        reals[RANKED, r] = g[ints[INDEX, r]]
    return m


@inner_kernel
def tie_groups(m, ints, reals):
    """Write for each rank where its group of equal scores ends; return whether any group holds two grades."""
    mixed = False
    for r in range(m - 1, -1, -1):
        ints[ENDS, r] = r + 1
        if r + 1 < m and reals[VALUES, ints[INDEX, r]] == reals[VALUES, ints[INDEX, r + 1]]:
            ints[ENDS, r] = ints[ENDS, r + 1]
            mixed |= reals[RANKED, r] != reals[RANKED, r + 1]
    return mixed


@inner_kernel
def sort_down(row, low, high, reals):
    """Sort a stretch of a row in descending order and return how many pairs stood the wrong way round."""
    count, width = 0, 1
    while width < high - low:
        for start in range(low, high, 2 * width):
            middle, stop = min(start + width, high), min(start + 2 * width, high)
            a, b = start, middle
            for r in range(start, stop):
                left = b == stop or (a < middle and reals[row, a] >= reals[row, b])
                reals[SPARE, r] = reals[row, a] if left else reals[row, b]
                count += 0 if left else middle - a
                a, b = (a + 1, b) if left else (a, b + 1)
        for r in range(low, high):
            reals[row, r] = reals[SPARE, r]
        width *= 2
    return count


@inner_kernel
def ideal_list(g, top, top_grade, reals):
    """Write the first `top` grades in descending order; `top_grade` is −1 where they are not small whole numbers."""
    n = len(g)
    if top_grade < 0:
        for i in range(n):
            reals[BEST, i] = g[i]
        sort_down(BEST, 0, n, reals)
        return
    r = 0
    for grade in range(top_grade, -1, -1):
        count = 0
        for i in range(n):
            count += g[i] == grade
        for place in range(r, r + count):
            reals[BEST, place] = grade
        r += count
        if r >= top:
            return


@inner_kernel
def gain_of(grade, gain):
    """2^l − 1, or l."""
    if gain == LINEAR:
        return grade
    whole = np.int64(min(grade, WHOLE))
    return np.float64((1 << whole) - 1) if whole == grade else 2.0**grade - 1.0


@inner_kernel
def average_ties(m, ints, reals):
    """Give every document of a tied group the mean of what the group shows: the expectation over its orders."""
    low = 0
    while low < m:
        high = ints[ENDS, low]
        if reals[SHOWN, low] != reals[SHOWN, high - 1]:  # a group stands in the order of its grades
            total = 0.0
            for r in range(low, high):
                total += reals[SHOWN, r]
            for r in range(low, high):
                reals[SHOWN, r] = total / (high - low)
        low = high


@inner_kernel
def count_above(g, above):
    """Number of relevant documents."""
    count = 0
    for i in range(len(g)):
        count += g[i] > above
    return count


@inner_kernel
def normalised_gain(n, cuts, gain, discount, table, short, blank, mean, reals):
    """Σ_r SHOWN_r D_r over that sum for the best order, cut off at rank `cuts`; `mean`: averaged over 1, …, `cuts`."""
    if n == 0 or gain_of(reals[BEST, 0], gain) == 0:
        return blank
    total, ideal, ratios = 0.0, 0.0, 0.0
    for r in range(min(cuts, n)):
        total += reals[SHOWN, r] * table[discount, r]
        ideal += gain_of(reals[BEST, r], gain) * table[discount, r]
        if mean:
            ratios += total / ideal
    beyond = 0.0 if short == ZERO else total / ideal  # NDCG at a cut-off longer than the list
    if mean:
        return (ratios + max(cuts - n, 0) * beyond) / cuts
    return beyond if cuts > n else total / ideal


@inner_kernel
def average_precision(last, above, ties, ints, reals):
    """Σ over the relevant ranks up to `last` of the precision there.

    Under AVERAGE its expectation over the orders of tied documents: of t documents behind a others, m of them relevant,
    the i-th is relevant with chance m/t, and then so are i (m − 1)/(t − 1) of those i before it. Under SHARED all
    relevant documents of a tied group stand at its end.
    """
    hits, total, low = 0, 0.0, 0
    while low < last:
        high = ints[ENDS, low] if ties in (AVERAGE, SHARED) else low + 1
        found = 0
        for r in range(low, high):
            found += reals[RANKED, r] > above
        if ties == SHARED:
            total += found * ((hits + found) / high) if high <= last else 0.0
        elif found > 0:
            more = (found - 1) / max(high - low - 1, 1)
            for r in range(low, min(high, last)):
                total += (found / (high - low)) * ((hits + 1 + (r - low) * more) / (r + 1))
        hits += found
        low = high
    return total


@inner_kernel
def first_relevant(last, above, ties, ints, reals):
    """1 / (rank of the first relevant document up to `last`), expected over the orders of a tied group; else 0.

    Of t tied documents, m of them relevant, the i-th (from 0) is the first relevant one with chance
    m/(t − i) Π_{l<i} (t − m − l)/(t − l).
    """
    low = 0
    while low < last:
        high = ints[ENDS, low] if ties == AVERAGE else low + 1
        found = 0
        for r in range(low, high):
            found += reals[RANKED, r] > above
        if found > 0:
            total, none_yet = 0.0, 1.0
            for r in range(low, min(last, high - found + 1)):
                total += none_yet * found / (high - r) / (r + 1)
                none_yet *= (high - r - found) / (high - r)
            return total
        low = high
    return 0.0


@inner_kernel
def expected_reciprocal_rank(last, gain, max_grade, ties, ints, reals):
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i), R = (2^l − 1) / 2^max or l / max."""
    total, going, low = 0.0, 1.0, 0
    scale = max_grade if gain == LINEAR else 2.0**max_grade
    while low < last:
        high = ints[ENDS, low] if ties == AVERAGE else low + 1
        if reals[RANKED, low] != reals[RANKED, high - 1]:
            total += going * stops_among_tied(low, high, last, gain, scale, reals)
            for r in range(low, high):
                going *= 1.0 - gain_of(reals[RANKED, r], gain) / scale
        else:
            stops = gain_of(reals[RANKED, low], gain) / scale
            for r in range(low, min(high, last)):
                total += going * stops / (r + 1)
                going *= 1.0 - stops
        low = high
    return total


@inner_kernel
def stops_among_tied(low, high, last, gain, scale, reals):
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i) over low ≤ r < min(high, last), expected over the orders of low, …, high − 1.

    With v_j the mean of Π (1 − R) over the choices of j among the m documents with R > 0, the reader stops at the j-th
    of these with chance v_{j−1} − v_j, wherever it stands; where it stands is a draw without replacement. Costs
    O(places · j), j at most m, and at most as large as v_j is not nothing (600 on a scale of 0 to 4).
    """
    m, most = 0, 0.0
    for r in range(low, high):
        stops = gain_of(reals[RANKED, r], gain) / scale
        if stops > 0:
            m, most = m + 1, max(most, 1.0 - stops)
    places = min(high, last) - low
    terms = min(m, places, 1 if most <= 0 else int(NOTHING / -np.log(most)) + 1)
    for j in range(terms + 1):
        reals[SPARE, j], reals[SHOWN, j] = 0.0, 0.0
    reals[SPARE, 0], reals[SHOWN, 0] = 1.0, 1.0
    seen = 0
    for r in range(low, high):
        stops = gain_of(reals[RANKED, r], gain) / scale
        if stops > 0:
            seen += 1
            for j in range(min(seen, terms), 0, -1):
                chosen = j / seen
                reals[SPARE, j] = (1.0 - chosen) * reals[SPARE, j] + chosen * (1.0 - stops) * reals[SPARE, j - 1]
    total = 0.0
    for place in range(places):  # SHOWN: the chance that j of the m stand before this place
        left = high - low - place
        for j in range(min(place, terms - 1), -1, -1):
            met = (m - j) / left
            total += reals[SHOWN, j] * met * (reals[SPARE, j] - reals[SPARE, j + 1]) / (low + place + 1)
            reals[SHOWN, j + 1] += reals[SHOWN, j] * met
            reals[SHOWN, j] *= 1.0 - met
    return total


@inner_kernel
def unequal_pairs(low, high, reals):
    """Number of pairs with different values in the sorted stretch SHOWN[low:high]."""
    count, same = 0, 0
    for r in range(low, high):
        same = same + 1 if r > low and reals[SHOWN, r] == reals[SHOWN, r - 1] else 0
        count += r - low - same
    return count


@inner_kernel
def pair_accuracy(n, average, blank, ints, reals):
    """Share of the pairs of different grade that stand the right way round; with `average` a tied pair counts half."""
    for r in range(n):
        reals[SHOWN, r] = reals[RANKED, r]
    tied, low = 0, 0
    while average and low < n:
        high = ints[ENDS, low]
        sort_down(SHOWN, low, high, reals)
        tied += unequal_pairs(low, high, reals)
        low = high
    wrong = sort_down(SHOWN, 0, n, reals)
    pairs = unequal_pairs(0, n, reals)
    return blank if pairs == 0 else 1.0 - (wrong + 0.5 * tied) / pairs


@inner_kernel
def one_value(g, m, codes, reals_of, i, table, ints, reals):
    """Return measure i for the query whose order is in the scratch tables."""
    kind, k, gain, discount, ties, short = codes[i, 0], codes[i, 1], codes[i, 2], codes[i, 3], codes[i, 4], codes[i, 5]
    blank, above, parameter = reals_of[i, 0], reals_of[i, 1], reals_of[i, 2]
    n = len(g)
    cuts = n if k == 0 or (k > n and short == SHORTEN) else k
    last = min(cuts, n)
    if kind == AP:
        n_relevant = count_above(g, above)
        if n_relevant == 0:
            return blank
        total = average_precision(last, above, ties, ints, reals)
        return total / (min(n_relevant, last) if codes[i, 6] == CUT else n_relevant)
    if kind == RR:
        value = first_relevant(last, above, ties, ints, reals)
        return blank if value == 0 and count_above(g, above) == 0 else value
    if kind == ERR:
        return expected_reciprocal_rank(last, gain, parameter, ties, ints, reals)
    if kind == AUC:
        return pair_accuracy(n, ties == AVERAGE, blank, ints, reals)
    for r in range(m):
        if kind <= MEAN_NDCG:
            reals[SHOWN, r] = gain_of(reals[RANKED, r], gain)
        else:
            weighs = reals[RANKED, r] if kind == RBP and codes[i, 6] != 0 else 1.0
            reals[SHOWN, r] = weighs if reals[RANKED, r] > above else 0.0
    if ties == AVERAGE:
        average_ties(m, ints, reals)
    if kind in (NDCG, MEAN_NDCG):
        return normalised_gain(n, cuts, gain, discount, table, short, blank, kind == MEAN_NDCG, reals)
    total, weight = 0.0, 1.0
    for r in range(last):
        total += (table[discount, r] if kind == DCG else weight) * reals[SHOWN, r]
        if kind == RBP:
            weight *= parameter
    if cuts > n and short == ZERO:
        return 0.0
    if kind == PRECISION:
        return total / max(cuts, 1)
    if kind == RECALL:
        n_relevant = count_above(g, above)
        return blank if n_relevant == 0 else total / n_relevant
    return (1.0 - parameter) * total if kind == RBP else total


@kernel
def needs(codes):
    """Return how many ranks, and how many ideal ranks, the measures read, and whether they read groups of ties."""
    top, top_ideal, groups = 1, 0, False
    for i in range(len(codes)):
        k = EVERY if codes[i, 1] == 0 else codes[i, 1]
        top = max(top, k)
        if codes[i, 0] in (NDCG, MEAN_NDCG):
            top_ideal = max(top_ideal, k)
        groups = groups or codes[i, 4] in (AVERAGE, SHARED)
    return top, top_ideal, groups


@inner_kernel
def query_values(
    scores, y, start, stop, key, ties, needed, codes, reals_of, table, top_grade, ints, reals, rank, single, values
):
    """Fill values[i] with measure i of one query; return whether tied documents differ in grade (if `needed` groups).

    `ties` is the tie rule of the order (INPUT, ID, WORST or BEST; `key` is read for ID), `needed` comes from `needs`,
    `table` holds the discounts by `Discount` and rank, `top_grade` is the largest grade, or −1 where not all grades are
    whole numbers up to SCALE, and `ints` to `single` come from `workspace`.
    """
    s, g = scores[start:stop], y[start:stop]
    top, top_ideal, groups = needed
    m = rank_list(s, g, key[start:stop], ties, top, ints, reals, rank, single)
    mixed = tie_groups(m, ints, reals) if groups else False
    if top_ideal > 0:
        ideal_list(g, top_ideal, top_grade, reals)
    for i in range(len(codes)):
        values[i] = one_value(g, m, codes, reals_of, i, table, ints, reals)
    return mixed


@inner_kernel
def ndcg_at(scores, y, start, stop, k, table, top_grade, ints, reals, rank, single):
    """Return NDCG@k of one query under the standard convention (k = 0: of the whole list)."""
    s, g = scores[start:stop], y[start:stop]
    top = k if k > 0 else EVERY
    m = rank_list(s, g, s, INPUT, top, ints, reals, rank, single)
    ideal_list(g, top, top_grade, reals)
    for r in range(m):
        reals[SHOWN, r] = gain_of(reals[RANKED, r], EXP2)
    return normalised_gain(len(s), min(top, len(s)), EXP2, 0, table, 0, 0.0, False, reals)


@kernel
def longest_list(ptr):
    """Documents in the longest query."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@kernel
def measure_queries(scores, y, ptr, key, ties, want_mixed, codes, reals_of, table, top_grade, values, mixed):
    """Fill values[q, i] for every query; with `want_mixed` say in which ones documents tie that differ in grade."""
    ints, reals, rank, single = workspace(longest_list(ptr))
    top, top_ideal, groups = needs(codes)
    needed = (EVERY, top_ideal, True) if want_mixed else (top, top_ideal, groups)
    for q in range(len(ptr) - 1):
        a, b, row = ptr[q], ptr[q + 1], values[q]
        mixed[q] = query_values(
            scores, y, a, b, key, ties, needed, codes, reals_of, table, top_grade, ints, reals, rank, single, row
        )


@kernel
def rank_queries(scores, y, ptr, ties, places):
    """Fill places with each document's rank in its query, from 1; `y` is read where grades settle ties."""
    ints, reals, rank, single = workspace(longest_list(ptr))
    for q in range(len(ptr) - 1):
        s, g = scores[ptr[q] : ptr[q + 1]], y[ptr[q] : ptr[q + 1]]
        rank_list(s, g, s, ties, EVERY, ints, reals, rank, single)
        for r in range(len(s)):
            places[ptr[q] + ints[INDEX, r]] = r + 1


@kernel
def scale_of(y):
    """Return the largest grade where all are whole numbers from 0 to SCALE, else −1, and whether any is negative."""
    outside, negative = 0, 0
    for i in range(len(y)):
        outside += int(y[i] != np.floor(y[i])) | int(y[i] > SCALE)
        negative += int(y[i] < 0)
    top = np.int32(0)
    for i in range(len(y) if outside + negative == 0 else 0):
        top = max(top, np.int32(y[i]))
    return top if outside + negative == 0 else np.int32(-1), negative > 0
