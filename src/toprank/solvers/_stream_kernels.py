# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rounds of a stream, a whole epoch in one call: score a list, judge its order, take its loss, step.

`weights` has the rows raw, drift and moment. Scores are computed with raw; the loss gets them times the score unit, and
a step is taken in step units. So an order that does not depend on η in theory does not depend on its rounding either.
drift = Σ (t−1)·(change of round t) gives the average of the weights as raw − drift/T, and a round without a step costs
nothing for it. moment is the within-list sum of squares of each feature. `totals` counts what `Total` names. No bit of
a round depends on which lists came in the same call.

`codes` are (rule, step in every round, compare with the average, the loss reads grades as relevant or not, target, k);
`numbers` are (score unit, step unit, radius, threshold of relevance, margin). If the judge is NDCG or AP (the target)
and grades are whole, a list is ranked here, in the precision of X, and SLAM with weights by score is computed from that
order: calling functions for both would take half as long again. The functions of Minimax and of ListNet with the
exponential are linked in, since a call by address has to ask for memory: a tenth of an epoch. All other judges and
losses, and judges of lists with tied scores, are called by address. An argument that is None has a type of its own, so
the compiler leaves out the branches that need it: the codes of a judge, `by_order` (SLAM), `as_minimax`, `as_listnet`,
`ball` (there is a radius), `running` (features are scaled as they come), `scattered` (rows may be permuted, or not
store all their values), and `loss_at` if the loss is linked in.
While a list is judged and its loss computed, memory would be idle, so the next list is fetched then.
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
from .steps import COMPARE_EVERY, TIE_TOLERANCE, Rule, Total

RULE, ALWAYS, COMPARE, BINARY, TARGET, CUTOFF = range(6)
SCORE_UNIT, STEP_UNIT, RADIUS, THRESHOLD, MARGIN = range(5)
"""Places in `codes` and in `numbers`, which are read where needed: copied to variables, they made SLAM slower."""
SQRT, ADAPTIVE = int(Rule.SQRT), int(Rule.ADAPTIVE)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)
LAST, AVERAGE = int(Total.LAST), int(Total.AVERAGE)

FETCHED_LINES = 16
"""How many cache lines are fetched between two parts of a round: as many as memory can deliver at once."""
BLOCK_BYTES = 1 << 20
"""A sparse list is written out with its zeros if it then has no more bytes, and an eighth of its values are not 0."""
DOCS_AT_ONCE = 16
"""Documents that are checked together: most of these groups have no document that moves."""
WORK_PER_DOC = 40
"""How many numbers of scratch a measure gets for each document."""
OVERFLOW, REFUSED, NO_LOSS = 1, 2, 3
"""Why a stream stops early. NO_LOSS: the next list needs the address of the loss, which was not given."""


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
def norm_growth(step, z, raw, touched, n_columns):
    """By how much ‖raw‖² grows when step·z is subtracted in the touched columns (in all, if `touched` is empty)."""
    grown = 0.0
    for p in range(n_columns):
        j = touched[p] if len(touched) > 0 else p
        grown += step * z[j] * (step * z[j] - 2.0 * raw[j])
    return grown


@inner_kernel
def scale_weights(scale, past, raw, drift, w):
    """Multiply raw by `scale`, and change drift as a step of this round would."""
    for j in range(len(raw)):
        change = (1.0 - scale) * raw[j]
        raw[j] -= change
        drift[j] -= past * change
        w[j] = raw[j]


@inlined_kernel
def list_moving(g, m, factor, row_coef, active):
    """List the documents with a gradient that is not 0, and their coefficients; return how many there are."""
    n = 0
    for i in range(m):
        n += g[i] != 0.0
    if n == m:
        for i in range(m):
            active[i] = i
            row_coef[i] = factor * g[i]
        return n
    n = 0
    for start in range(0, m, DOCS_AT_ONCE):
        first, last, here = np.uint64(start), np.uint64(min(start + DOCS_AT_ONCE, m)), 0
        for i in range(first, last):
            here += g[i] != 0.0
        if here > 0:  # most losses move only a few documents of a list
            for i in range(first, last):
                active[np.uint64(n)] = i
                row_coef[np.uint64(n)] = factor * g[i]
                n += g[i] != 0.0
    return n


@inlined_kernel
def judged_value(
    r, m, k, levels, best, best_value, level, gain, discount, target, order, chosen, rank, kept, keys, keys2, spare, s,
    labels, bounds, judge_at, judge_codes, judge_numbers, reached, work
):  # fmt: skip
    """The measure of the order by r divided by its best value, −1 if the judge refuses; with levels, also `order`.

    Tied documents count by expectation, which is rounded: there, a value within TIE_TOLERANCE of the best is the best.
    """
    if levels > 0:
        order_top(r, m, k, order, chosen, rank, kept, keys, keys2, spare)
        if not tied(r, m, k, order):
            return min(1.0, read_total(target, k, discount, order, level, gain) / best)
    for i in range(m):
        s[i] = r[i]
    if judge(judge_at, s, labels, bounds, judge_codes, judge_numbers, reached, work) >= 0:
        return -1.0
    return 1.0 if reached[0] >= best_value * (1.0 - TIE_TOLERANCE) else reached[0] / best_value


@inner_kernel
def play(
    values, indices, indptr, rows, y, ptr, lists, best, query_weight, sizes, weights, totals, codes, numbers,
    gain, discount, judge_at, judge_codes, judge_numbers, by_order, as_minimax, as_listnet, ball, running, scattered,
    loss_at, loss_codes, loss_numbers, seen, trace, block, doc_values, reals, ints, ints32, column_values, column_reals,
    column_ints, work
):  # fmt: skip
    """Do what `epoch` says, in its scratch arrays: separate, so that numba counts no references to arrays here."""
    raw, drift, moment = weights[0], weights[1], weights[2]
    d, dense, permuted, target = len(raw), len(indptr) == 0, len(rows) > 0, codes[TARGET]
    r, kept, row_coef = doc_values[0], doc_values[1], doc_values[2]
    w, mean_w, z = column_values[0], column_values[1], column_values[2]
    s, g, keys, keys2, coef = reals[0], reals[1], reals[3], reals[4], reals[9]
    value, reached, no_floats = reals[10, :1], reals[11, :1], reals[0, :0]
    order, count, ideal, chosen, reach, spare = ints[1], ints[2], ints[3], ints[4], ints[5], ints[6]
    active, bounds, no_places = ints[7], ints[8, :2], ints[0, :0]
    free, free_ints = reals[3:9], ints[3:7]  # the ranking is done with them when a loss is computed
    level, rank, steps = ints32[0], ints32[1], ints32[2]
    inverse, mean, number = column_reals[0], column_reals[1], column_reals[2]
    noted, mark, touched = column_ints[0], column_ints[1], column_ints[2]
    block_rows, norm2, bounds[0] = len(block) // d, 0.0, 0
    if ball is not None:
        norm2 = square_norm(raw)
    for j in range(d):
        w[j], inverse[j] = raw[j], 1.0
    played = 0
    for t in range(len(lists)):
        q = lists[t]
        a, b = ptr[q], ptr[q + 1]
        m = b - a
        weight = 1.0 if len(query_weight) == 0 else query_weight[q]
        size = 1.0 if len(sizes) == 0 else sizes[q]
        best_value = 1.0 if len(best) == 0 else best[q]
        if weight * size == 0.0 or not best_value > 0.0:
            continue
        bounds[1] = m
        full, copied, ids, labels = True, False, ints[0, :m], y[a:b]
        if scattered is not None:
            full = not permuted and is_full(indptr, a, b, d)
            for i in range(m):
                ids[i] = rows[a + i] if permuted else a + i
            if permuted:
                labels = reals[2, :m]
                for i in range(m):
                    labels[i] = y[ids[i]]
        differing = relevant = 0
        for i in range(m):
            differing += labels[i] != labels[0]
            relevant += labels[i] > numbers[THRESHOLD]
        if relevant == 0 or differing == 0 or (codes[BINARY] and relevant == m):
            continue
        k, levels, ideal_total = min(codes[CUTOFF], m), 0, 1.0
        if judge_codes is not None and target >= 0:
            levels = make_levels(labels, target, numbers[THRESHOLD], level)
        if judge_codes is not None and levels > 0:
            count_levels(level, m, levels, count)
            ideal_total = best_total(target, k, levels, discount, count, gain)
        if by_order is not None and levels == 0 and loss_at == 0:
            return played, t, NO_LOSS
        next_start, next_stop = a, a
        if t + 1 < len(lists) and not permuted:
            next_start, next_stop = ptr[lists[t + 1]], ptr[lists[t + 1] + 1]
        begin, next_values = 0, 0
        if not permuted:  # else rows do not lie one after the other, and there may be more of them than X has
            begin, next_values = start_of(indptr, a, d), start_of(indptr, next_start, d)
        if running is not None and dense:
            if not full_inverse(values, begin, m, moment, totals[DOCS], inverse, mean):
                return played, t, OVERFLOW
            for j in range(d):
                w[j] = raw[j] * inverse[j]
        if scattered is not None and running is not None and not dense:
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
        if scattered is not None and not full:
            copied = gather_rows(values, indices, indptr, ids, m, d, block_rows, permuted, next_values, block)
            source, first = block, 0
        compares = judge_codes is not None and codes[COMPARE] and totals[ROUNDS] % COMPARE_EVERY == COMPARE_EVERY - 1
        if compares:
            for j in range(d):
                mean_w[j] = (raw[j] - drift[j] / totals[ROUNDS]) * inverse[j]
        for line in range(next_start * 8, next_stop * 8, LINE):
            prefetch(y, np.int64(line))
        fetch_at, mistake, measure = next_values + (AHEAD if dense else AHEAD // 2), True, float(relevant)
        for last in range(0 if compares else 1, 2):  # by the averaged weights, then by the last ones
            ranking_w = w if last else mean_w
            if scattered is None or full or copied:
                full_scores(
                    source, first, m, ranking_w, r, next_values if full else 0, AHEAD if full else 0, 4 if full else 0
                )
            else:
                listed_scores(values, indices, indptr, ids, m, ranking_w, r, next_start)
            if last:
                fetch_at = fetch(values, indices, fetch_at, FETCHED_LINES)
                if not all_finite(r, m):
                    return played, t, OVERFLOW
            if judge_codes is not None:
                measure = judged_value(
                    r, m, k, levels, ideal_total, best_value, level, gain, discount, target, order, chosen, rank, kept,
                    keys, keys2, spare, s, labels, bounds, judge_at, judge_codes, judge_numbers, reached, work,
                )  # fmt: skip
                if measure < 0.0:
                    return played, t, REFUSED
                mistake = measure < 1.0
                totals[LAST if last else AVERAGE] += measure if compares else 0.0
        fetch_at = fetch(values, indices, fetch_at, FETCHED_LINES)
        n, value[0] = 0, 0.0
        if mistake or codes[ALWAYS]:
            for i in range(m if len(seen) > 0 else 0):
                seen[a + i] = numbers[SCORE_UNIT] * size * r[i]
            if by_order is not None and levels > 0:
                weighted = order_ideal(
                    target, r, m, k, levels, level, count, order, ideal, reach, chosen, rank, kept, steps, keys, keys2,
                    spare,
                )  # fmt: skip
                value[0], n = slam(
                    target, k, weighted, discount, ideal_total, numbers[MARGIN], numbers[SCORE_UNIT] * size, m, r,
                    order, ideal, level, gain, coef, active,
                )  # fmt: skip
                for p in range(n):
                    row_coef[p] = weight * size * coef[p]
            else:
                for i in range(m):
                    s[i] = numbers[SCORE_UNIT] * size * r[i]
                refused = -1
                if as_minimax is not None:
                    refused = largest_hinges(s, labels, bounds, loss_codes, loss_numbers, value, g, free_ints, free)
                if as_listnet is not None:
                    refused = cross_entropies(
                        None, s, labels, no_floats, bounds, loss_codes, loss_numbers, value, g, no_floats, free, None
                    )
                if loss_at is not None:
                    refused = call(
                        loss_at, s, labels, no_floats, no_places, bounds, loss_codes, loss_numbers, value, g, no_floats
                    )
                if refused >= 0:
                    return played, t, REFUSED
                n = list_moving(g, m, weight * size, row_coef, active)
        fetch_at = fetch(values, indices, fetch_at, FETCHED_LINES)
        znorm2, n_columns = 0.0, d
        if n > 0 and (scattered is None or full or copied):
            weighted_sum(source, first, row_coef, active, n, inverse, running is not None, z, values, indices, fetch_at)
            znorm2 = square_norm(z)
        elif scattered is not None and n > 0:
            znorm2, n_columns = listed_sum(
                values, indices, indptr, ids, row_coef, active, n, inverse, mark, t + 1, touched, z
            )
        if not math.isfinite(znorm2):
            return played, t, OVERFLOW
        if znorm2 > 0.0:
            step, past = numbers[STEP_UNIT] * step_size(codes[RULE], totals, znorm2), totals[ROUNDS]
            if ball is not None:
                norm2 += norm_growth(step, z, raw, touched[: 0 if full or copied else n_columns], n_columns)
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
            if ball is not None and norm2 > numbers[RADIUS] * numbers[RADIUS]:
                norm2 = square_norm(raw)
                if norm2 > numbers[RADIUS] * numbers[RADIUS]:
                    scale_weights(numbers[RADIUS] / math.sqrt(norm2), past, raw, drift, w)
                    norm2 = square_norm(raw)
        record(played, measure, weight * value[0], mistake and judge_codes is not None, znorm2, totals, trace)
        played += 1
    return played, -1, 0


@kernel
def epoch(
    values, indices, indptr, rows, y, ptr, lists, best, query_weight, sizes, weights, totals, codes, numbers,
    gain, discount, judge_at, judge_codes, judge_numbers, by_order, as_minimax, as_listnet, ball, running, scattered,
    loss_at, loss_codes, loss_numbers, seen, trace
):  # fmt: skip
    """Play the lists in the given order; return (rounds played, place of the list at which it stopped or −1, why).

    List q holds rows ptr[q]:ptr[q + 1], of X or of the permutation `rows` where that is not empty. It is a round where
    it has two grades (or both classes), something relevant, and a best value of the measure, best[q], above 0 (empty:
    1). Each list is multiplied by its entry of `sizes` (empty: 1). `gain` is by whole grade, `discount` by place.
    Without a measure every round steps, and the trace has the number of relevant documents. `loss_at` may be 0 until a
    list needs it. `seen`, if not empty, gets the scores that the losses saw.
    """
    d, dense, longest = weights.shape[1], len(indptr) == 0, 1
    for q in lists:
        longest = max(longest, ptr[q + 1] - ptr[q])
    block_rows = longest if dense else min(longest, BLOCK_BYTES // (d * values.itemsize))
    # A document may move twice, once as the best of lower grades; a filter writes before it knows whether to keep.
    size = 2 * longest + 64
    block = np.empty(0 if dense and len(rows) == 0 else block_rows * d, values.dtype)
    doc_values, column_values = np.empty((3, size), values.dtype), np.zeros((3, d), values.dtype)
    reals, ints, ints32 = np.empty((12, size)), np.empty((9, size), np.int64), np.empty((3, size), np.int32)
    column_reals, column_ints = np.zeros((3, d)), np.zeros((3, 0 if dense else d), np.int64)
    work = np.empty(WORK_PER_DOC * (longest + 64))
    return play(
        values, indices, indptr, rows, y, ptr, lists, best, query_weight, sizes, weights, totals, codes, numbers, gain,
        discount, judge_at, judge_codes, judge_numbers, by_order, as_minimax, as_listnet, ball, running, scattered,
        loss_at, loss_codes, loss_numbers, seen, trace, block, doc_values, reals, ints, ints32, column_values,
        column_reals, column_ints, work,
    )  # fmt: skip
