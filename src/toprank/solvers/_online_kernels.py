# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rounds of online learning, a whole epoch in one call: score a list, read its measure, step on its loss.

`codes` are (loss, target, cut, always step, rule, scaling, binary, compare), `reals` are (η, margin, threshold of
relevance). `weights` holds raw, drift and moment, one row each. The learner's weights are w = η·raw, so that a ranking
which does not depend on η does not depend on its rounding either. drift = Σ (t−1)·(step of round t) gives the average
of the iterates as raw − drift/T, without work in rounds without a step. moment is the within-list sum of squares of
each feature. `totals` counts what `Total` names. Lists are ranked by raw scores; tied documents count by expectation.
Grades become levels, numbered upwards: relevant or not where binary, whole grades themselves, others as
`_list_kernels.number_grades` has them. No bit of a round depends on which lists came in the same call.

X is handed over as `_feature_kernels` says: one compiled loop serves dense and CSR. While a list is ranked and its loss
taken, memory would be idle, so the list that comes next is asked for then.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import judge
from ..core.jit import inlined_kernel, inner_kernel, kernel
from ._feature_kernels import (
    AHEAD,
    all_finite,
    ask,
    csr_inverse,
    csr_scores,
    csr_sum,
    full_inverse,
    full_scores,
    full_sum,
)
from ._ranking_kernels import LANES, best_total, count_levels, make_levels, order_ideal, order_top, read_total
from ._step_kernels import step_listnet, step_minimax, step_slam
from ._stream_kernels import ROOM
from .steps import NEARLY, TRIAL, Loss, Rule, Scaling, Target, Total

SLAM, MINIMAX, LISTNET, AP = int(Loss.SLAM), int(Loss.MINIMAX), int(Loss.LISTNET), int(Target.AP)
SQRT, ADAPTIVE, RUNNING = int(Rule.SQRT), int(Rule.ADAPTIVE), int(Scaling.RUNNING)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)
LAST, AVERAGE = int(Total.LAST), int(Total.AVERAGE)

BURST = 16
"""How many lines are asked for between two steps of a round: as many as can be on their way at once."""
BLOCK = 1 << 20
"""Up to this many bytes of a CSR list are written out in full where all its documents will move."""


@kernel
def longest_of(ptr, order):
    """Return the length of the longest list to be played."""
    longest = 1
    for q in order:
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@inlined_kernel
def lose(
    codes, margin, scale, discount, m, room, n_levels, best, r, level, count, gain, mass, kept, rank, steps,
    order, ideal, chosen, reach, spare, keys, low, goal, coef, active
):  # fmt: skip
    """Return the surrogate on raw scores r, s = scale·r, and how many documents move."""
    if codes[0] == SLAM:
        weighted = order_ideal(
            codes[1], r, m, room, n_levels, level, count, order, ideal, reach, chosen, rank, kept, steps, keys, spare
        )
        return step_slam(
            codes[1], room, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active
        )  # fmt: skip
    if codes[0] == MINIMAX:
        return step_minimax(margin, scale, m, n_levels, r, level, keys, low, coef, active)
    return step_listnet(scale, m, n_levels, r, r[order[0]], count, mass, level, low, coef, active, goal)


@inner_kernel
def tied(r, m, places, order):
    """Whether documents of equal score stand among the first places, or on both sides of the last of them."""
    same = 0
    for p in range(1, places):
        same += r[order[p]] == r[order[p - 1]]
    last, equal = r[order[places - 1]], 0
    for i in range(m):
        equal += r[i] == last
    return same > 0 or equal > 1


@kernel
def expected(judge_at, r, y, codes, numbers, bounds, scores, room, out):
    """out[0] = the measure of one list, tied documents by expectation."""
    m = len(y)
    bounds[1] = m
    for i in range(m):
        scores[i] = r[i]
    judge(judge_at, scores[:m], y, bounds, codes, numbers, out, room)


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
    """Return the step of the coming round in units of η; the totals do not have the round yet."""
    if rule == SQRT:
        return 1.0 / math.sqrt(totals[ROUNDS] + 1)
    if rule == ADAPTIVE:
        return 1.0 / math.sqrt(totals[ZNORM2] + znorm2)
    return 1.0


@kernel
def epoch(
    values, indices, indptr, y, numbered, first, gain, mass, ptr, order, query_weight, sizes, weights, totals,
    codes, reals, discount, judge_at, judge_codes, judge_numbers, seen, trace
):  # fmt: skip
    """Play the lists in the given order; return (rounds played, list at which numbers overflowed or −1).

    `numbered` has the levels of all documents, those of list q standing for gain and mass at first[q]:first[q + 1];
    where it is empty, grades are binary or whole and all lists share their levels. `sizes` are what lists are
    multiplied by (empty: 1). Where scores are tied, the measure at `judge_at` judges. `seen`, where not empty, gets the
    scores that losses saw.
    """
    raw, drift, moment = weights[0], weights[1], weights[2]
    dense, running, d = len(indptr) == 0, codes[5] == RUNNING, len(raw)
    longest = longest_of(ptr, order)
    # Scratch of a round. A filter writes before it knows whether to keep, and counting fills up its last lanes.
    shared = len(numbered) == 0
    room = max(longest, len(gain) if shared else 0) + 2 * LANES
    r, mean_r, kept = np.empty(room, values.dtype), np.empty(room, values.dtype), np.empty(room, values.dtype)
    rank, steps, own = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    whole, real = np.empty((6, room), np.int64), np.empty((3, room))
    ranked, count, ideal, chosen, reach, spare = whole[0], whole[1], whole[2], whole[3], whole[4], whole[5]
    keys, low, goal = real[0], real[1], real[2]
    coef, active, single = np.empty(2 * longest), np.empty(2 * longest, np.int64), np.empty(2 * longest, values.dtype)
    w, mean_w, z, inverse, mean = (
        np.empty(d, values.dtype),
        np.empty(d, values.dtype),
        np.zeros(d, values.dtype),
        np.ones(d),
        np.zeros(d),
    )
    most = BLOCK // (d * values.itemsize)
    block = np.empty(0 if dense or codes[0] != LISTNET else min(longest, most) * d, values.dtype)
    wide = 0 if dense else d
    met, mark, number, touched = np.full(wide, -1), np.full(wide, -1), np.zeros(wide), np.empty(wide, np.int64)
    scores, room_of_judge = np.empty(longest), np.empty(ROOM * (longest + 64))
    bounds, reached_at = np.zeros(2, np.int64), np.zeros(1)
    w[:] = raw
    rounds = 0
    for t in range(len(order)):
        q = order[t]
        a, b = ptr[q], ptr[q + 1]
        following = ptr[order[t + 1]] if t + 1 < len(order) else a
        m = b - a
        weight = 1.0 if len(query_weight) == 0 else query_weight[q]
        size = 1.0 if len(sizes) == 0 else sizes[q]
        start, end = (0, len(gain)) if shared else (first[q], first[q + 1])
        n_levels, gains = end - start, gain[start:end]
        if shared:
            make_levels(y, a, m, codes[6], reals[2], own)
        levels = own if shared else numbered[a:b]
        if weight * size == 0.0 or count_levels(levels, m, n_levels, count) < 2:
            continue
        best = best_total(codes[1], min(codes[2], m), n_levels, discount, count, gains)
        if best <= 0.0:
            continue
        begin, beyond = (a * d, b * d) if dense else (np.int64(indptr[a]), np.int64(indptr[b]))
        coming = following * d if dense else np.int64(indptr[following])
        full = beyond - begin == m * d
        if running and dense:
            if not full_inverse(values, begin, m, moment, totals[DOCS], inverse, mean):
                return rounds, q
            w[:] = raw * inverse
        elif running:
            if not csr_inverse(values, indices, begin, beyond, m, moment, totals[DOCS], t, met, mean, number, inverse):
                return rounds, q
            for p in range(begin, beyond):
                w[indices[p]] = raw[indices[p]] * inverse[indices[p]]
        totals[DOCS] += m
        # Where all documents will move, a list that is not too large or too empty is written out in full.
        unpacked = not full and len(block) > 0 and m <= most and 4 * (beyond - begin) >= m * d
        if full:
            full_scores(values, begin, m, w, r, coming)
        else:
            csr_scores(values, indices, indptr, a, b, w, r, coming, block if unpacked else block[:0])
        at = ask(values, indices, coming + (AHEAD if dense else AHEAD // 2), BURST)
        if not all_finite(r, m):
            return rounds, q
        places = m if codes[1] == AP else min(codes[2], m)
        trial = codes[7] and totals[ROUNDS] % TRIAL == TRIAL - 1
        if trial:
            for j in range(d):
                mean_w[j] = (raw[j] - drift[j] / totals[ROUNDS]) * inverse[j]
            if full:
                full_scores(values, begin, m, mean_w, mean_r, coming)
            else:
                csr_scores(values, indices, indptr, a, b, mean_w, mean_r, coming, block[:0])
            order_top(mean_r, m, places, ranked, chosen, rank, kept, keys, spare)
            if tied(mean_r, m, places, ranked):
                expected(
                    judge_at, mean_r, y[a:b], judge_codes, judge_numbers, bounds, scores, room_of_judge, reached_at
                )
                totals[AVERAGE] += reached_at[0]
            else:
                totals[AVERAGE] += min(1.0, read_total(codes[1], places, discount, ranked, levels, gains) / best)
        order_top(r, m, places, ranked, chosen, rank, kept, keys, spare)
        at = ask(values, indices, at, BURST)
        reached = read_total(codes[1], places, discount, ranked, levels, gains)
        mistake, measure = reached < best * (1.0 - NEARLY), min(1.0, reached / best)
        if tied(r, m, places, ranked):
            expected(judge_at, r, y[a:b], judge_codes, judge_numbers, bounds, scores, room_of_judge, reached_at)
            mistake, measure = reached_at[0] < 1.0 - NEARLY, min(1.0, reached_at[0])
        totals[LAST] += measure if trial else 0.0
        value, n = 0.0, 0
        if mistake or codes[3]:
            for i in range(len(seen[a:b])):
                seen[a + i] = reals[0] * size * r[i]
            value, n = lose(
                codes, reals[1], reals[0] * size, discount, m, places, n_levels, best, r, levels, count, gains,
                mass[start:end], kept, rank, steps, ranked, ideal, chosen, reach, spare, keys, low, goal, coef,
                active,
            )  # fmt: skip
        at = ask(values, indices, at, BURST)
        znorm2, columns = 0.0, d
        for p in range(n):
            single[p] = weight * size * coef[p]
        if n > 0 and full:
            znorm2 = full_sum(values, begin, single, active, n, inverse, running, z, values, indices, at)
        elif n > 0 and unpacked:
            znorm2 = full_sum(block, 0, single, active, n, inverse, running, z, values, indices, at)
        elif n > 0:
            znorm2, columns = csr_sum(values, indices, indptr, a, single, active, n, inverse, mark, t, touched, z)
        if not math.isfinite(znorm2):
            return rounds, q
        if znorm2 > 0.0:
            step, past = step_size(codes[4], totals, znorm2), totals[ROUNDS]
            if full or unpacked:
                for j in range(d):
                    change = step * z[j]
                    raw[j] -= change
                    drift[j] -= past * change
                    w[j] = raw[j]
                    z[j] = 0.0
            else:
                for p in range(columns):
                    j = touched[p]
                    change = step * z[j]
                    raw[j] -= change
                    drift[j] -= past * change
                    w[j] = raw[j]
                    z[j] = 0.0
        record(rounds, measure, weight * value, mistake, znorm2, totals, trace)
        rounds += 1
    return rounds, -1
