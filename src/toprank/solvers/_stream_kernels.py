# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rounds of a stream, a whole epoch in one call: score a list, judge its order, take its loss, step.

`weights` holds raw, drift and moment, one row each. Scores are those of raw; the loss sees them times the score unit,
and a step is taken in step units, so that an order which does not depend on η does not depend on its rounding either.
drift = Σ (t−1)·(change of round t) gives the average of the iterates as raw − drift/T, without work in rounds without a
step. moment is the within-list sum of squares of each feature. `totals` counts what `Total` names. No bit of a round
depends on which lists came in the same call.

`codes` are (rule, step in every round, compare with the average, the loss reads grades as relevant or not, target, k);
`params` are (score unit, step unit, radius, threshold of relevance, margin). Where the judge is NDCG or AP (the target)
and grades are whole, a list is ranked here, in the precision of X, and SLAM with weights by score is taken on that
order: to have both called takes half as long again. The functions of Minimax and of ListNet with the exponential are
linked in, which spares them the memory that a call by address must ask for: a tenth of an epoch. All other judges and
losses, and lists with tied scores, are called by address. What is None is not compiled at all, being a type of its own
by which the compiler leaves branches out: the codes of a judge, `by_order` (SLAM), `as_minimax`, `as_listnet`, `ball`
(a radius), `running` (features scaled as they come), `apart` (rows that do not lie in X one after the other with all
their values stored), and `loss_at` where the loss is linked in.
While a list is judged and its loss taken, memory would be idle, so the list that comes next is fetched then.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import call, judge
from ..core._prefetch_kernels import LINE, prefetch
from ..core._row_kernels import AHEAD, all_finite, fetch, full_scores, is_full, square_norm, start_of
from ..core.jit import inlined_kernel, inner_kernel, kernel
from ..surrogates._listnet_kernels import cross_entropies
from ..surrogates._margin_kernels import largest_hinges
from ._ranking_kernels import (
    best_total,
    count_levels,
    make_levels,
    order_ideal,
    order_top,
    read_total,
    slam,
    tied,
)
from ._round_kernels import csr_inverse, full_inverse, gather_rows, listed_scores, listed_sum, weighted_sum
from .steps import NEARLY, TRIAL, Rule, Total

SQRT, ADAPTIVE = int(Rule.SQRT), int(Rule.ADAPTIVE)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)
LAST, AVERAGE = int(Total.LAST), int(Total.AVERAGE)

BURST = 16
"""How many lines are fetched between two steps of a round: as many as can be on their way at once."""
BLOCK = 1 << 20
"""Up to this many bytes of a sparse list are written out in full, where an eighth of them are not 0."""
FEW = 16
"""Documents that are looked at together, whether one of them moves."""
ROOM = 40
"""Numbers for each document that a measure may work in."""
OVERFLOW, REFUSED, NO_LOSS = 1, 2, 3
"""Why a stream stops before its end; before a list that needs the address of the loss, which was not given."""


@inner_kernel
def record(row, measure, value, mistake, znorm2, totals, trace):
    """Write a round down and add it to the totals."""
    trace[row, 0], trace[row, 1], trace[row, 2], trace[row, 3] = measure, value, mistake, znorm2
    totals[ROUNDS] += 1
    totals[STEPS] += znorm2 > 0
    totals[MISTAKES] += mistake
    totals[MEASURE] += measure
    totals[SURROGATE] += value
    totals[ZNORM2] += znorm2


@inner_kernel
def step_size(rule, totals, znorm2):
    """Return the step of the coming round in step units; the totals do not have the round yet."""
    if rule == SQRT:
        return 1.0 / math.sqrt(totals[ROUNDS] + 1)
    if rule == ADAPTIVE:
        return 1.0 / math.sqrt(totals[ZNORM2] + znorm2)
    return 1.0


@inner_kernel
def growth(step, z, raw, touched, columns):
    """By how much ‖raw‖² grows when step·z is taken off those columns (none touched: all)."""
    grown = 0.0
    for p in range(columns):
        j = touched[p] if len(touched) > 0 else p
        grown += step * z[j] * (step * z[j] - 2.0 * raw[j])
    return grown


@inner_kernel
def shrink(scale, past, raw, drift, w):
    """Multiply raw by `scale`."""
    for j in range(len(raw)):
        change = (1.0 - scale) * raw[j]
        raw[j] -= change
        drift[j] -= past * change
        w[j] = raw[j]


@inlined_kernel
def moving(g, m, factor, single, active):
    """List the documents that move, and by how much; return how many."""
    n = 0
    for i in range(m):
        n += g[i] != 0.0
    if n == m:
        for i in range(m):
            active[i] = i
            single[i] = factor * g[i]
        return n
    n = 0
    for start in range(0, m, FEW):
        first, last, here = np.uint64(start), np.uint64(min(start + FEW, m)), 0
        for i in range(first, last):
            here += g[i] != 0.0
        if here > 0:  # most losses move a few documents of a list
            for i in range(first, last):
                active[np.uint64(n)] = i
                single[np.uint64(n)] = factor * g[i]
                n += g[i] != 0.0
    return n


@inlined_kernel
def value_of(
    r, m, k, levels, best, wanted, level, gain, discount, target, order, chosen, rank, kept, keys, keys2, spare, s,
    labels, bounds, judge_at, judge_codes, judge_numbers, reached, work
):  # fmt: skip
    """The measure of the order by r as a part of the best, −1 where the judge refuses; `order` where there are levels.

    Tied documents count by expectation, which is rounded: there, what falls short by no more than NEARLY is the best.
    """
    if levels > 0:
        order_top(r, m, k, order, chosen, rank, kept, keys, keys2, spare)
        if not tied(r, m, k, order):
            return min(1.0, read_total(target, k, discount, order, level, gain) / best)
    for i in range(m):
        s[i] = r[i]
    if judge(judge_at, s, labels, bounds, judge_codes, judge_numbers, reached, work) >= 0:
        return -1.0
    return 1.0 if reached[0] >= wanted * (1.0 - NEARLY) else reached[0] / wanted


@inner_kernel
def play(
    values, indices, indptr, rows, y, ptr, lists, best, query_weight, sizes, weights, totals, codes, params,
    gain, discount, judge_at, judge_codes, judge_numbers, by_order, as_minimax, as_listnet, ball, running, apart,
    loss_at, loss_codes, loss_numbers, seen, trace, block, lanes, columns, numbers, whole, small, spread, marks, work
):  # fmt: skip
    """Do what `epoch` says, in its scratch arrays: a function of its own, in which no references are counted."""
    raw, drift, moment = weights[0], weights[1], weights[2]
    d, dense, permuted, target, ranks = len(raw), len(indptr) == 0, len(rows) > 0, codes[4], codes[4] >= 0
    r, kept, single = lanes[0], lanes[1], lanes[2]
    w, mean_w, z = columns[0], columns[1], columns[2]
    s, g, keys, keys2, coef = numbers[0], numbers[1], numbers[3], numbers[4], numbers[9]
    value, reached, none = numbers[10, :1], numbers[11, :1], numbers[0, :0]
    order, count, ideal, chosen, reach, spare = whole[1], whole[2], whole[3], whole[4], whole[5], whole[6]
    active, bounds, nowhere = whole[7], whole[8, :2], whole[0, :0]
    free, free_ints = numbers[3:9], whole[3:7]  # what no ranking needs any more when a loss is taken
    level, rank, steps = small[0], small[1], small[2]
    inverse, mean, number = spread[0], spread[1], spread[2]
    noted, mark, touched = marks[0], marks[1], marks[2]
    most, square, bounds[0] = len(block) // d, 0.0, 0
    if ball is not None:
        square = square_norm(raw)
    for j in range(d):
        w[j], inverse[j] = raw[j], 1.0
    played = 0
    for t in range(len(lists)):
        q = lists[t]
        a, b = ptr[q], ptr[q + 1]
        m = b - a
        weight = 1.0 if len(query_weight) == 0 else query_weight[q]
        size = 1.0 if len(sizes) == 0 else sizes[q]
        wanted = 1.0 if len(best) == 0 else best[q]
        if weight * size == 0.0 or not wanted > 0.0:
            continue
        bounds[1] = m
        full, copied, ids, labels = True, False, whole[0, :m], y[a:b]
        if apart is not None:
            full = not permuted and is_full(indptr, a, b, d)
            for i in range(m):
                ids[i] = rows[a + i] if permuted else a + i
            if permuted:
                labels = numbers[2, :m]
                for i in range(m):
                    labels[i] = y[ids[i]]
        other = relevant = 0
        for i in range(m):
            other += labels[i] != labels[0]
            relevant += labels[i] > params[3]
        if relevant == 0 or other == 0 or (codes[3] and relevant == m):
            continue
        k, levels, ideal_total = min(codes[5], m), 0, 1.0
        if judge_codes is not None and ranks:
            levels = make_levels(labels, target, params[3], level)
        if judge_codes is not None and levels > 0:
            count_levels(level, m, levels, count)
            ideal_total = best_total(target, k, levels, discount, count, gain)
        if by_order is not None and levels == 0 and loss_at == 0:
            return played, t, NO_LOSS
        following, after = a, a
        if t + 1 < len(lists) and not permuted:
            following, after = ptr[lists[t + 1]], ptr[lists[t + 1] + 1]
        begin, coming = start_of(indptr, a, d), start_of(indptr, following, d)
        if running is not None and dense:
            if not full_inverse(values, begin, m, moment, totals[DOCS], inverse, mean):
                return played, t, OVERFLOW
            for j in range(d):
                w[j] = raw[j] * inverse[j]
        if apart is not None and running is not None and not dense:
            beyond = start_of(indptr, b, d)
            good = csr_inverse(
                values, indices, begin, beyond, m, moment, totals[DOCS], t + 1, noted, mean, number, inverse
            )
            if not good:
                return played, t, OVERFLOW
            for p in range(begin, beyond):
                w[indices[p]] = raw[indices[p]] * inverse[indices[p]]
        totals[DOCS] += m
        source, first = values, begin
        if apart is not None and not full:
            copied = gather_rows(values, indices, indptr, ids, m, d, most, permuted, coming, block)
            source, first = block, 0
        trial = judge_codes is not None and codes[2] and totals[ROUNDS] % TRIAL == TRIAL - 1
        if trial:
            for j in range(d):
                mean_w[j] = (raw[j] - drift[j] / totals[ROUNDS]) * inverse[j]
        for line in range(following * 8, after * 8, LINE):
            prefetch(y, np.int64(line))
        at, mistake, measure = coming + (AHEAD if dense else AHEAD // 2), True, float(relevant)
        for last in range(0 if trial else 1, 2):  # by the averaged weights, then by the last ones
            seen_by = w if last else mean_w
            if apart is None or full or copied:
                full_scores(source, first, m, seen_by, r, coming if full else 0, AHEAD if full else 0, 4 if full else 0)
            else:
                listed_scores(values, indices, indptr, ids, m, seen_by, r, following)
            if last:
                at = fetch(values, indices, at, BURST)
                if not all_finite(r, m):
                    return played, t, OVERFLOW
            if judge_codes is not None:
                measure = value_of(
                    r, m, k, levels, ideal_total, wanted, level, gain, discount, target, order, chosen, rank, kept,
                    keys, keys2, spare, s, labels, bounds, judge_at, judge_codes, judge_numbers, reached, work,
                )  # fmt: skip
                if measure < 0.0:
                    return played, t, REFUSED
                mistake = measure < 1.0
                totals[LAST if last else AVERAGE] += measure if trial else 0.0
        at = fetch(values, indices, at, BURST)
        n, value[0] = 0, 0.0
        if mistake or codes[1]:
            for i in range(m if len(seen) > 0 else 0):
                seen[a + i] = params[0] * size * r[i]
            if by_order is not None and levels > 0:
                weighted = order_ideal(
                    target, r, m, k, levels, level, count, order, ideal, reach, chosen, rank, kept, steps, keys, keys2,
                    spare,
                )  # fmt: skip
                value[0], n = slam(
                    target, k, weighted, discount, ideal_total, params[4], params[0] * size, m, r, order, ideal, level,
                    gain, coef, active,
                )  # fmt: skip
                for p in range(n):
                    single[p] = weight * size * coef[p]
            else:
                for i in range(m):
                    s[i] = params[0] * size * r[i]
                refused = -1
                if as_minimax is not None:
                    refused = largest_hinges(s, labels, bounds, loss_codes, loss_numbers, value, g, free_ints, free)
                if as_listnet is not None:
                    refused = cross_entropies(
                        None, s, labels, none, bounds, loss_codes, loss_numbers, value, g, none, free, None
                    )
                if loss_at is not None:
                    refused = call(loss_at, s, labels, none, nowhere, bounds, loss_codes, loss_numbers, value, g, none)
                if refused >= 0:
                    return played, t, REFUSED
                n = moving(g, m, weight * size, single, active)
        at = fetch(values, indices, at, BURST)
        znorm2, n_columns = 0.0, d
        if n > 0 and (apart is None or full or copied):
            weighted_sum(source, first, single, active, n, inverse, running is not None, z, values, indices, at)
            znorm2 = square_norm(z)
        elif apart is not None and n > 0:
            znorm2, n_columns = listed_sum(
                values, indices, indptr, ids, single, active, n, inverse, mark, t + 1, touched, z
            )
        if not math.isfinite(znorm2):
            return played, t, OVERFLOW
        if znorm2 > 0.0:
            step, past = params[1] * step_size(codes[0], totals, znorm2), totals[ROUNDS]
            if ball is not None:
                square += growth(step, z, raw, touched[: 0 if full or copied else n_columns], n_columns)
            if full or copied:
                for j in range(d):
                    change = step * z[j]
                    raw[j] -= change
                    drift[j] -= past * change
                    w[j] = raw[j]
                    z[j] = 0.0
            else:
                for p in range(n_columns):
                    j = touched[p]
                    change = step * z[j]
                    raw[j] -= change
                    drift[j] -= past * change
                    w[j] = raw[j]
                    z[j] = 0.0
            if ball is not None and square > params[2] * params[2]:
                square = square_norm(raw)
                if square > params[2] * params[2]:
                    shrink(params[2] / math.sqrt(square), past, raw, drift, w)
                    square = square_norm(raw)
        record(played, measure, weight * value[0], mistake and judge_codes is not None, znorm2, totals, trace)
        played += 1
    return played, -1, 0


@kernel
def epoch(
    values, indices, indptr, rows, y, ptr, lists, best, query_weight, sizes, weights, totals, codes, params,
    gain, discount, judge_at, judge_codes, judge_numbers, by_order, as_minimax, as_listnet, ball, running, apart,
    loss_at, loss_codes, loss_numbers, seen, trace
):  # fmt: skip
    """Play the lists in the given order; return (rounds played, place of the list at which it stopped or −1, why).

    List q holds rows ptr[q]:ptr[q + 1], of X or of the permutation `rows` where that is not empty. It is a round where
    it has two grades (or both classes) and something relevant. best[q] is the best value of the measure (empty: 1), and
    above 0. `sizes` are what lists are multiplied by (empty: 1). `gain` are those of whole grades, `discount` those of
    places. Without a measure every round steps, and the trace has the number of relevant documents. `loss_at` may be 0
    until a list needs it. `seen`, where not empty, gets the scores that losses saw.
    """
    d, dense, longest = weights.shape[1], len(indptr) == 0, 1
    for q in lists:
        longest = max(longest, ptr[q + 1] - ptr[q])
    most = longest if dense else min(longest, BLOCK // (d * values.itemsize))
    # A document may move for itself and as the best of lower grades; a filter writes before it knows whether to keep.
    size = 2 * longest + 64
    block = np.empty(0 if dense and len(rows) == 0 else most * d, values.dtype)
    lanes, columns = np.empty((3, size), values.dtype), np.zeros((3, d), values.dtype)
    numbers, whole, small = np.empty((12, size)), np.empty((9, size), np.int64), np.empty((3, size), np.int32)
    spread, marks, work = np.zeros((3, d)), np.zeros((3, 0 if dense else d), np.int64), np.empty(ROOM * (longest + 64))
    return play(
        values, indices, indptr, rows, y, ptr, lists, best, query_weight, sizes, weights, totals, codes, params,
        gain, discount, judge_at, judge_codes, judge_numbers, by_order, as_minimax, as_listnet, ball, running, apart,
        loss_at, loss_codes, loss_numbers, seen, trace, block, lanes, columns, numbers, whole, small, spread, marks,
        work,
    )  # fmt: skip
