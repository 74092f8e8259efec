# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rounds of a stream, a whole epoch in one call: score a list, judge its order, take its loss, step.

`weights` holds raw, drift and moment, one row each. Scores are those of raw; the loss sees them times the score unit,
and a step is taken in step units, so that an order which does not depend on η does not depend on its rounding either.
drift = Σ (t−1)·(change of round t) gives the average of the iterates as raw − drift/T, without work in rounds without a
step. moment is the within-list sum of squares of each feature. `totals` counts what `Total` names. No bit of a round
depends on which lists came in the same call.

`codes` are (rule, scaling, step in every round, compare with the average, grades are binary); `reals` are (score unit,
step unit, radius, threshold of relevance).
While a list is judged and its loss taken, memory would be idle, so the list that comes next is fetched then.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import call, judge
from ..core._row_kernels import AHEAD, all_finite, fetch, full_scores, is_full, square_norm, start_of
from ..core.jit import inlined_kernel, inner_kernel, kernel
from ._round_kernels import csr_inverse, full_inverse, gather_rows, listed_scores, listed_sum, weighted_sum
from .steps import NEARLY, TRIAL, Rule, Scaling, Total

SQRT, ADAPTIVE, RUNNING = int(Rule.SQRT), int(Rule.ADAPTIVE), int(Scaling.RUNNING)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)
LAST, AVERAGE = int(Total.LAST), int(Total.AVERAGE)

BURST = 16
"""How many lines are fetched between two steps of a round: as many as can be on their way at once."""
BLOCK = 1 << 20
"""Up to this many bytes of a sparse list are written out in full, where a quarter of them are not 0."""
ROOM = 40
"""Numbers for each document that a measure may work in."""
OVERFLOW, REFUSED = 1, 2
"""Why a stream stops before its end."""


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
def change(j, by, past, raw, drift, w):
    """Take `by` off one weight; return by how much the square of the weights grows."""
    grown = by * (by - 2.0 * raw[j])
    raw[j] -= by
    drift[j] -= past * by
    w[j] = raw[j]
    return grown


@inner_kernel
def shrink(square, radius, past, raw, drift, w):
    """Bring raw back into the ball."""
    scale = radius / math.sqrt(square)
    for j in range(len(raw)):
        change(j, (1.0 - scale) * raw[j], past, raw, drift, w)


@inlined_kernel
def moving(g, m, factor, single, active):
    """List the documents that move, and by how much; return how many."""
    n = 0
    for i in range(m):
        active[n] = i
        single[n] = factor * g[i]
        n += g[i] != 0.0
    return n


@kernel
def epoch(
    values, indices, indptr, rows, y, ptr, order, best, query_weight, doc_weight, sizes, weights, totals, codes, reals,
    judge_at, judge_codes, judge_numbers, loss_at, loss_codes, loss_numbers, seen, trace
):  # fmt: skip
    """Play the lists in the given order; return (rounds played, list at which it stopped or −1, why).

    List q holds rows ptr[q]:ptr[q + 1], of X or of the permutation `rows` where that is not empty. It is a round where
    it has two grades (or both classes) and something relevant. best[q] is the best value of the measure (empty: 1), and
    above 0. `sizes` are what lists are multiplied by (empty: 1). Without an address of a measure every round steps, and
    the trace has the number of relevant documents. `seen`, where not empty, gets the scores that losses saw.
    """
    raw, drift, moment = weights[0], weights[1], weights[2]
    d, dense, permuted, running = len(raw), len(indptr) == 0, len(rows) > 0, codes[1] == RUNNING
    longest = 1
    for q in order:
        longest = max(longest, ptr[q + 1] - ptr[q])
    most = longest if dense else min(longest, BLOCK // (d * values.itemsize))
    block = np.empty(0 if dense and not permuted else most * d, values.dtype)
    r, mean_r = np.empty(longest, values.dtype), np.empty(longest, values.dtype)
    single = np.empty(longest + 1, values.dtype)
    w, mean_w, z = np.empty(d, values.dtype), np.empty(d, values.dtype), np.zeros(d, values.dtype)
    s, g, labels, own, inverse, mean = (
        np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest if len(doc_weight) > 0 else 0),
        np.ones(d), np.zeros(d),
    )  # fmt: skip
    ids, active, nowhere = np.empty(longest, np.int64), np.empty(longest + 1, np.int64), np.empty(0, np.int64)
    room, none, bounds = np.empty(ROOM * (longest + 64)), np.empty(0), np.zeros(2, np.int64)
    value, reached = np.zeros(1), np.zeros(1)
    wide = 0 if dense else d
    noted, mark, number, touched = np.full(wide, -1), np.full(wide, -1), np.zeros(wide), np.empty(wide, np.int64)
    ball = reals[2] < math.inf
    square = square_norm(raw) if ball else 0.0
    w[:] = raw
    count = 0
    for t in range(len(order)):
        q = order[t]
        a, b = ptr[q], ptr[q + 1]
        m = b - a
        weight = 1.0 if len(query_weight) == 0 else query_weight[q]
        size = 1.0 if len(sizes) == 0 else sizes[q]
        wanted = 1.0 if len(best) == 0 else best[q]
        if weight * size == 0.0 or not wanted > 0.0:
            continue
        bounds[1] = m
        for i in range(m):
            ids[i] = a + i
        if permuted:
            for i in range(m):
                ids[i] = rows[a + i]
                labels[i] = y[ids[i]]
        else:
            for i in range(m):
                labels[i] = y[a + i]
        other = relevant = 0
        for i in range(m):
            other += labels[i] != labels[0]
            relevant += labels[i] > reals[3]
        if relevant == 0 or other == 0 or (codes[4] and relevant == m):
            continue
        for i in range(len(own[:m])):
            own[i] = doc_weight[ids[i]]
        following = ptr[order[t + 1]] if t + 1 < len(order) and not permuted else a
        begin, coming = start_of(indptr, a, d), start_of(indptr, following, d)
        if running and dense:
            if not full_inverse(values, begin, m, moment, totals[DOCS], inverse, mean):
                return count, q, OVERFLOW
            w[:] = raw * inverse
        elif running:
            beyond = start_of(indptr, b, d)
            good = csr_inverse(values, indices, begin, beyond, m, moment, totals[DOCS], t, noted, mean, number, inverse)
            if not good:
                return count, q, OVERFLOW
            for p in range(begin, beyond):
                w[indices[p]] = raw[indices[p]] * inverse[indices[p]]
        totals[DOCS] += m
        full = not permuted and is_full(indptr, a, b, d)
        copied = not full and gather_rows(values, indices, indptr, ids, m, d, most, block)
        if full:
            full_scores(values, begin, m, w, r, coming, AHEAD, 4)
        elif copied:
            full_scores(block, 0, m, w, r, 0, 0, 0)
        else:
            listed_scores(values, indices, indptr, ids, m, w, r)
        at = fetch(values, indices, coming + (AHEAD if dense else AHEAD // 2), BURST)
        if not all_finite(r, m):
            return count, q, OVERFLOW
        mistake, measure = True, float(relevant)
        if judge_at != 0:
            if codes[3] and totals[ROUNDS] % TRIAL == TRIAL - 1:
                for j in range(d):
                    mean_w[j] = (raw[j] - drift[j] / totals[ROUNDS]) * inverse[j]
                if full:
                    full_scores(values, begin, m, mean_w, mean_r, coming, AHEAD, 4)
                elif copied:
                    full_scores(block, 0, m, mean_w, mean_r, 0, 0, 0)
                else:
                    listed_scores(values, indices, indptr, ids, m, mean_w, mean_r)
                for i in range(m):
                    s[i] = mean_r[i]
                if judge(judge_at, s[:m], labels[:m], bounds, judge_codes, judge_numbers, reached, room) >= 0:
                    return count, q, REFUSED
                totals[AVERAGE] += min(1.0, reached[0] / wanted)
            for i in range(m):
                s[i] = r[i]
            if judge(judge_at, s[:m], labels[:m], bounds, judge_codes, judge_numbers, reached, room) >= 0:
                return count, q, REFUSED
            measure = min(1.0, reached[0] / wanted)
            mistake = measure < 1.0 - NEARLY
            if codes[3] and totals[ROUNDS] % TRIAL == TRIAL - 1:
                totals[LAST] += measure
        at = fetch(values, indices, at, BURST)
        n, value[0] = 0, 0.0
        if mistake or codes[2]:
            for i in range(m):
                s[i] = reals[0] * size * r[i]
            for i in range(len(seen[a:b])):
                seen[a + i] = s[i]
            refused = call(
                loss_at, s[:m], labels[:m], own[:m], nowhere, bounds, loss_codes, loss_numbers, value, g[:m], none
            )
            if refused >= 0:
                return count, q, REFUSED
            n = moving(g, m, weight * size, single, active)
        at = fetch(values, indices, at, BURST)
        znorm2, columns = 0.0, d
        if n > 0 and full:
            weighted_sum(values, begin, single, active, n, inverse, running, z, values, indices, at)
            znorm2 = square_norm(z)
        elif n > 0 and copied:
            weighted_sum(block, 0, single, active, n, inverse, running, z, values, indices, at)
            znorm2 = square_norm(z)
        elif n > 0:
            znorm2, columns = listed_sum(values, indices, indptr, ids, single, active, n, inverse, mark, t, touched, z)
        if not math.isfinite(znorm2):
            return count, q, OVERFLOW
        if znorm2 > 0.0:
            step, past = reals[1] * step_size(codes[0], totals, znorm2), totals[ROUNDS]
            grown = 0.0
            for p in range(columns):
                j = p if full or copied else touched[p]
                grown += change(j, step * z[j], past, raw, drift, w)
                z[j] = 0.0
            if ball:
                square += grown
                if square > reals[2] * reals[2]:
                    square = square_norm(raw)
                    if square > reals[2] * reals[2]:
                        shrink(square, reals[2], past, raw, drift, w)
                        square = square_norm(raw)
        record(count, measure, weight * value[0], mistake and judge_at != 0, znorm2, totals, trace)
        count += 1
    return count, -1, 0
