# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rounds of online learning, a whole epoch in one call: score a list, read its measure, step on its loss.

`codes` are (loss, target, cut, always step, rule, scaling, binary, compare), `reals` are (η, margin, threshold of
relevance). `weights` holds raw, drift and moment, one row each. The learner's weights are w = η·raw, so that a ranking
which does not depend on η does not depend on its rounding either. drift = Σ (t−1)·(step of round t) gives the average
of the iterates as raw − drift/T, without work in rounds without a step. moment is the within-list sum of squares of
each feature. `totals` counts what `Total` names. Lists are ranked by raw scores, ties in input order. Grades become
levels, numbered upwards: relevant or not where binary, whole grades themselves, others as `_list_kernels.number_grades`
has them. No bit of a round depends on which lists came in the same call.

X is dense (then values, indices, indptr are empty) or CSR (then X has no rows): one compiled loop serves both. A list
is read twice, first for its scores: memory, not arithmetic, takes the time, so the rows to come are asked for early.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import inner_fused_kernel, inner_kernel, inner_sum_kernel, kernel
from .._prefetch_kernels import LINE, prefetch
from .steps import TRIAL, Loss, Rule, Scaling, Target, Total

SLAM, MINIMAX, AP = int(Loss.SLAM), int(Loss.MINIMAX), int(Target.AP)
SQRT, ADAPTIVE, RUNNING = int(Rule.SQRT), int(Rule.ADAPTIVE), int(Scaling.RUNNING)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)
LAST, AVERAGE = int(Total.LAST), int(Total.AVERAGE)

FEW = 8
"""Up to this many levels are counted one by one (SIMD), more in one pass."""
LANES = 16
"""Up to this many places are found through running maxima, more by ranking the whole list."""
FEWER = 64
"""Up to this many documents are put in order by grade and score by counting, more by sorting."""
COUNTED = 256
"""Lists up to this length are ranked by counting (SIMD), longer ones by a stable sort."""
ROWS_AHEAD = 16
"""How many rows of a dense list are asked for before they are read."""
VALUES_AHEAD = 1024
"""How many stored values of a CSR list are asked for before they are read."""
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
"""Places that cannot be negative need no check whether they count from the end, which halves the time of CSR rows."""


@kernel
def longest_of(ptr, order):
    """Return the length of the longest list to be played."""
    longest = 1
    for q in order:
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@inner_kernel
def merge_sort(index, n, keys, other):
    """Sort index[:n] stably by descending keys."""
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            a, b = low, middle
            for p in range(low, high):
                if b == high or (a < middle and keys[index[a]] >= keys[index[b]]):
                    other[p] = index[a]
                    a += 1
                else:
                    other[p] = index[b]
                    b += 1
        for p in range(n):
            index[p] = other[p]
        width *= 2


@inner_kernel
def make_levels(y, a, m, binary, above, level):
    """Levels of a list: relevant or not, or the whole grades themselves."""
    if binary:
        for i in range(m):
            level[i] = y[a + i] > above
    else:
        for i in range(m):
            level[i] = np.int32(y[a + i])


@inner_kernel
def count_levels(level, m, n_levels, count):
    """Count the documents of each level; return how many levels occur."""
    for g in range(n_levels):
        number = np.int32(0)
        if n_levels <= FEW:
            for i in range(m):
                number += np.int32(level[i] == g)
        count[g] = number
    if n_levels > FEW:
        for i in range(m):
            count[level[i]] += 1
    present = 0
    for g in range(n_levels):
        present += count[g] > 0
    return present


@inner_kernel
def count_ranks(values, n, rank):
    """rank[i] = #{j: v_j > v_i} + #{j < i: v_j = v_i}. The 2·LANES places after the values are written over."""
    if n <= 2 * LANES:  # every pair twice, but all loops of one length
        whole = (n + LANES - 1) // LANES * LANES
        for j in range(n, whole):
            values[j] = -math.inf
        for i in range(n):
            x, ahead = values[i], np.int32(0)
            for j in range(whole):
                ahead += np.int32((values[j] > x) | ((values[j] == x) & (j < i)))
            rank[i] = ahead
        return
    for i in range(n):  # each pair once
        x, ahead = values[i], np.int32(0)
        for j in range(i):
            before = np.int32(values[j] >= x)
            ahead += before
            rank[j] += np.int32(1) - before
        rank[i] = ahead


@inner_kernel
def order_top(r, m, room, order, chosen, rank, kept, keys, spare):
    """order[:room] = the best documents by score, ties in input order."""
    n = 0
    if room <= LANES and m >= 2 * LANES:
        # `room` scores or more reach the room-th best of LANES running maxima: the others need no look.
        for lane in range(LANES):
            kept[lane] = r[lane]
        for start in range(LANES, m - m % LANES, LANES):
            for lane in range(LANES):
                kept[lane] = r[start + lane] if r[start + lane] > kept[lane] else kept[lane]
        count_ranks(kept, LANES, rank)
        bound = kept[0]
        for lane in range(LANES):
            bound = kept[lane] if rank[lane] == room - 1 else bound
        for i in range(m):
            chosen[n] = i
            kept[n] = r[i]
            n += r[i] >= bound
    else:
        for i in range(m):
            chosen[i] = i
            kept[i] = r[i]
        n = m
    if n <= COUNTED:
        count_ranks(kept, n, rank)
        for p in range(n):  # a place past the top takes the others, which is no branch to guess
            order[min(rank[p], room)] = chosen[p]
        return
    for p in range(n):
        keys[chosen[p]] = kept[p]
    merge_sort(chosen, n, keys, spare)
    for p in range(room):
        order[p] = chosen[p]


@inner_kernel
def order_ideal(
    target, r, m, room, n_levels, level, count, order, ideal, reach, chosen, rank, kept, steps, keys, spare
):
    """ideal[:room] = the best documents by grade, then score, ties in input order; return how many have a weight.

    For AP, whose weights are equal, the relevant documents in input order will do.
    """
    lowest, above = n_levels - 1, count[n_levels - 1]
    while target != AP and above < room:
        lowest -= 1
        above += count[lowest]
    n = 0
    for i in range(m):
        chosen[n] = i
        kept[n] = r[i]
        steps[n] = level[i]
        n += level[i] >= lowest
    if target == AP:
        for p in range(n):
            ideal[p] = chosen[p]
        return n
    if room < m and n <= FEWER:  # count who comes before whom, each pair looked at once
        for i in range(n):
            x, g, ahead = kept[i], steps[i], np.int32(0)
            for j in range(i):
                before = np.int32((steps[j] > g) | ((steps[j] == g) & (kept[j] >= x)))
                ahead += before
                rank[j] += np.int32(1) - before
            rank[i] = ahead
        for p in range(n):
            ideal[min(rank[p], room)] = chosen[p]
        return room
    if room < m:  # only the top of the order by score is there: sort the others too
        for p in range(n):
            keys[chosen[p]] = kept[p]
        merge_sort(chosen, n, keys, spare)
    place = 0
    for g in range(n_levels - 1, lowest - 1, -1):
        reach[g] = place
        place += count[g]
    for p in range(n):
        i = chosen[p] if room < m else order[p]
        ideal[reach[level[i]]] = i
        reach[level[i]] += 1
    return room


@inner_kernel
def best_total(target, room, n_levels, discount, count, gain):
    """Return what `read_total` returns for the best order: the best DCG, or the number of relevant documents."""
    best, p = 0.0, 0
    for g in range(n_levels - 1, -1, -1):
        if target == AP:
            best += gain[g] * count[g]
            continue
        for _ in range(min(count[g], room - p)):
            best += gain[g] * discount[p]
            p += 1
    return best


@inner_kernel
def read_total(target, room, discount, order, level, gain):
    """DCG of the order, or Σ over relevant documents of precision at their rank.

    Added up place by place as the best is, so that a perfect order reaches it to the last bit.
    """
    total, hits = 0.0, 0.0
    if target == AP:
        for p in range(room):
            relevant = gain[np.uint32(level[np.uint64(order[p])])]
            hits += relevant
            total += relevant * (hits / (p + 1))
        return total
    for p in range(room):
        total += gain[np.uint32(level[np.uint64(order[p])])] * discount[p]
    return total


@inner_kernel
def best_below(r, m, level, g):
    """Return the best document of a grade below g, −1 where there is none."""
    leader = -1
    for i in range(m):
        if level[i] < g and (leader < 0 or r[i] > r[leader]):
            leader = i
    return leader


@inner_kernel
def step_slam(
    target, room, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active, given
):
    """Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i), weights by the order at s (Eq. 9); its subgradient (Eq. 16)."""
    n = 0
    value = 0.0
    g = at = leader = at_leader = -1
    for p in range(weighted):
        i = ideal[p]
        if level[i] != g:  # the next lower grade: its leader is the first of still lower grades in the order by score
            g = level[i]
            at = max(at, 0)
            while at < room and level[order[at]] >= g:
                at += 1
            leader = order[at] if at < room else best_below(r, m, level, g)
            at_leader = -1
        if gain[g] == 0.0 or leader < 0:
            break
        v = (1.0 if target == AP else gain[g] * discount[p]) / best
        if len(given) > 0:
            given[i] = v
        hinge = margin + scale * (r[leader] - r[i])
        if hinge > 0.0:
            value += v * hinge
            coef[n], active[n] = -v, i
            n += 1
            if at_leader < 0:
                at_leader = n
                coef[n], active[n] = 0.0, leader
                n += 1
            coef[at_leader] += v
    return value, n


@inner_kernel
def step_minimax(margin, scale, m, n_levels, r, level, high, low, coef, active):
    """max_{R_i>R_j} (Δ + s_j − s_i)₊ (Eq. 27): the best of the lower grades against the worst of each grade."""
    for g in range(n_levels):
        high[g], low[g] = -math.inf, math.inf
    for i in range(m):
        g = level[i]
        high[g] = max(high[g], float(r[i]))
        low[g] = min(low[g], float(r[i]))
    running = gap = -math.inf
    for g in range(n_levels):  # from the best of each level to the best of all lower ones
        gap = max(gap, running - low[g])
        high[g], running = running, max(running, high[g])
    value = margin + scale * gap
    if value <= 0.0:
        return 0.0, 0
    i = j = 0  # the first pair that attains the maximum
    while high[level[i]] - r[i] != gap:
        i += 1
    while level[j] >= level[i] or r[j] != high[level[i]]:
        j += 1
    coef[0], active[0], coef[1], active[1] = -1.0, i, 1.0, j
    return value, 2


@inner_fused_kernel
def exponentials(x, m, scratch):
    """x = exp(x) for x ≤ 0, to the last bit or two. Written out so that it runs in SIMD lanes."""
    bits = scratch.view(np.int64)
    for i in range(m):
        v = x[i] if x[i] > -700.0 else -700.0
        n = math.floor(v * 1.4426950408889634 + 0.5)
        f = (v - n * 0.693145751953125) - n * 1.42860682030941723212e-6
        # Taylor's series of exp on |f| ≤ log(2)/2.
        p = 1.0 / 6227020800.0
        p = p * f + 1.0 / 479001600.0
        p = p * f + 1.0 / 39916800.0
        p = p * f + 1.0 / 3628800.0
        p = p * f + 1.0 / 362880.0
        p = p * f + 1.0 / 40320.0
        p = p * f + 1.0 / 5040.0
        p = p * f + 1.0 / 720.0
        p = p * f + 1.0 / 120.0
        p = p * f + 1.0 / 24.0
        p = p * f + 1.0 / 6.0
        p = p * f + 0.5
        p = p * f + 1.0
        x[i] = p * f + 1.0
        bits[i] = np.int64(np.int32(n) + np.int32(1023)) << 52  # the bits of 2^n
    for i in range(m):
        x[i] *= scratch[i]


@inner_kernel
def share_out(n_levels, count, mass, share):
    """P_R of a document of each level: mass / Σ mass, added up level by level, so that absent levels change nothing."""
    total = 0.0
    for g in range(n_levels):
        total += count[g] * mass[g]
    for g in range(n_levels):
        share[g] = mass[g] / total


@inner_sum_kernel
def step_listnet(scale, m, n_levels, r, high, count, mass, level, scratch, share, coef, active, goal):
    """−Σ_i P_R(i) log P_s(i), gradient P_s − P_R."""
    share_out(n_levels, count, mass, share)
    for i in range(m):
        goal[i] = share[np.uint32(level[i])]
    dot = 0.0
    for i in range(m):
        coef[i] = scale * (r[i] - high)
        dot += goal[i] * coef[i]
        active[i] = i
    exponentials(coef, m, scratch)
    total = 0.0
    for i in range(m):
        total += coef[i]
    inverse = 1.0 / total
    for i in range(m):
        coef[i] = coef[i] * inverse - goal[i]
    return math.log(total) - dot, m


@inner_kernel
def play(
    codes, reals, scale, discount, m, n_levels, best, r, level, count, gain, mass, given, kept, rank, steps, order,
    ideal, chosen, reach, spare, keys, low, goal, coef, active
):  # fmt: skip
    """One round on raw scores r, s = scale·r: return (measure, surrogate, mistake, n_active).

    Where asked for, given[i] is what document i weighs in the surrogate.
    """
    loss, target, margin = codes[0], codes[1], reals[1]
    room = m if target == AP else min(codes[2], m)
    order_top(r, m, room, order, chosen, rank, kept, keys, spare)
    reached = read_total(target, room, discount, order, level, gain)
    mistake = reached < best
    value, n = 0.0, 0
    if mistake or codes[3]:
        if loss == SLAM:
            weighted = order_ideal(
                target, r, m, room, n_levels, level, count, order, ideal, reach, chosen, rank, kept, steps, keys, spare
            )  # fmt: skip
            value, n = step_slam(
                target, room, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active,
                given,
            )  # fmt: skip
        elif loss == MINIMAX:
            given[:] = 1.0
            value, n = step_minimax(margin, scale, m, n_levels, r, level, keys, low, coef, active)
        else:
            value, n = step_listnet(
                scale, m, n_levels, r, r[order[0]], count, mass, level, keys, low, coef, active, goal
            )
    return min(1.0, reached / best), value, mistake, n


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


@inner_kernel
def all_finite(r, m):
    """Whether every score is finite."""
    good = True
    for i in range(m):
        good &= math.isfinite(r[i])
    return good


@inner_sum_kernel
def dense_scores(X, a, b, w, r, c):
    """r = X[a:b] w, two rows at a time and each by the same sums: equal rows get equal scores. List c comes next."""
    d = X.shape[1]
    width = d * X.itemsize
    zero = w[0] * np.float32(0)  # in the type of w
    for i in range(a, b, 2):
        ahead = i + ROWS_AHEAD if i + ROWS_AHEAD < b else c + i + ROWS_AHEAD - b
        for offset in range(ahead * width, (ahead + 2) * width, LINE):
            prefetch(X, np.int64(offset))
        other = min(i + 1, b - 1)
        s0 = s1 = zero
        for j in range(d):
            s0 += X[i, j] * w[j]
            s1 += X[other, j] * w[j]
        r[other - a] = s1
        r[i - a] = s0


@inner_sum_kernel
def dense_sum(X, a, coef, active, n, inverse, scaled, z, c):
    """z = Σ coef_p X[a + active_p], by columns times `inverse` where scaled; returns ‖z‖². List c comes next.

    Eight rows at a time, so that z is read and written less often; the last first, for they were scored last and may
    still be in the nearest cache.
    """
    d = X.shape[1]
    width = d * X.itemsize
    z[:] = 0
    whole = n - n % 8
    for p in range(whole, n):
        c0, i0 = coef[p], a + active[p]
        for j in range(d):
            z[j] += c0 * X[i0, j]
    ahead = (c + ROWS_AHEAD) * width
    for p in range(whole - 8, -1, -8):
        for offset in range(ahead, ahead + width, LINE):
            prefetch(X, np.int64(offset))
        ahead += 2 * width
        c0, c1, c2, c3 = coef[p], coef[p + 1], coef[p + 2], coef[p + 3]
        c4, c5, c6, c7 = coef[p + 4], coef[p + 5], coef[p + 6], coef[p + 7]
        i0, i1, i2, i3 = a + active[p], a + active[p + 1], a + active[p + 2], a + active[p + 3]
        i4, i5, i6, i7 = a + active[p + 4], a + active[p + 5], a + active[p + 6], a + active[p + 7]
        for j in range(d):
            front = (c0 * X[i0, j] + c1 * X[i1, j]) + (c2 * X[i2, j] + c3 * X[i3, j])
            z[j] += front + ((c4 * X[i4, j] + c5 * X[i5, j]) + (c6 * X[i6, j] + c7 * X[i7, j]))
    if scaled:
        for j in range(d):
            z[j] *= inverse[j]
    total = 0.0
    for j in range(d):
        total += float(z[j]) * float(z[j])
    return total


@inner_kernel
def dense_inverse(X, a, b, moment, docs, inverse, mean):
    """Add the list to the features' within-list sums of squares; inverse = 1/σ_j (0 for a feature yet constant).

    Returns whether the sums are finite.
    """
    m, d = b - a, X.shape[1]
    mean[:] = 0
    for i in range(a, b):
        for j in range(d):
            mean[j] += X[i, j]
    for j in range(d):
        mean[j] /= m
    for i in range(a, b):
        for j in range(d):
            moment[j] += (X[i, j] - mean[j]) ** 2
    good = True
    for j in range(d):
        inverse[j] = math.sqrt((docs + m) / moment[j]) if moment[j] > 0 else 0.0
        good &= math.isfinite(moment[j])
    return good


@inner_kernel
def csr_inverse(values, indices, low, high, m, moment, docs, round_, seen, total, number, inverse):
    """As `dense_inverse`, for the columns that the list stores; the others have no spread in it."""
    for p in range(low, high):
        j = indices[p]
        if seen[j] != round_:
            seen[j], total[j], number[j] = round_, 0.0, 0
        total[j] += values[p]
        number[j] += 1
    for p in range(low, high):
        j = indices[p]
        moment[j] += (values[p] - total[j] / m) ** 2
        if number[j] > 0:  # once per column: the documents where it is zero
            moment[j] += (m - number[j]) * (total[j] / m) ** 2
            number[j] = 0
    good = True
    for p in range(low, high):
        j = indices[p]
        inverse[j] = math.sqrt((docs + m) / moment[j]) if moment[j] > 0 else 0.0
        good &= math.isfinite(moment[j])
    return good


@inner_sum_kernel
def csr_scores(values, indices, indptr, a, b, w, r, c):
    """r = X[a:b] w for CSR X, by sums that do not wait for one another (SIMD gathers would be slower). c comes next."""
    zero = w[0] * np.float32(0)
    last, following = np.int64(indptr[b]), np.int64(indptr[c])
    for i in range(a, b):
        start, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        ahead = start + VALUES_AHEAD if start + VALUES_AHEAD < last else following + start + VALUES_AHEAD - last
        for p in range(ahead, ahead + end - start, LINE // values.itemsize):
            prefetch(values, np.int64(p * values.itemsize))
        for p in range(ahead, ahead + end - start, LINE // indices.itemsize):
            prefetch(indices, np.int64(p * indices.itemsize))
        s0 = s1 = s2 = s3 = zero
        at = np.uint64(start)
        for _ in range((end - start) // 4):
            s0 += values[at] * w[np.uint32(indices[at])]
            s1 += values[at + ONE] * w[np.uint32(indices[at + ONE])]
            s2 += values[at + TWO] * w[np.uint32(indices[at + TWO])]
            s3 += values[at + THREE] * w[np.uint32(indices[at + THREE])]
            at += FOUR
        for _ in range((end - start) % 4):
            s0 += values[at] * w[np.uint32(indices[at])]
            at += ONE
        r[i - a] = (s0 + s1) + (s2 + s3)


@inner_kernel
def csr_sum(values, indices, indptr, a, coef, active, n, inverse, mark, t, touched, z):
    """z = Σ coef_p X[a + active_p] times `inverse`, for zero z; returns ‖z‖² and how many columns were touched.

    Where there are more values than columns, all columns count as touched, which saves looking at each.
    """
    stored = 0
    for p in range(n):
        stored += indptr[a + active[p] + 1] - indptr[a + active[p]]
    few = stored < len(z)
    columns = 0
    for p in range(n):
        c, i = coef[p], a + active[p]
        if few:
            for e in range(indptr[i], indptr[i + 1]):
                j = np.uint32(indices[e])
                if mark[j] != t:
                    mark[j] = t
                    touched[columns] = j
                    columns += 1
        at = np.uint64(indptr[i])
        for _ in range(indptr[i + 1] - indptr[i]):
            z[np.uint32(indices[at])] += c * values[at]
            at += ONE
    if not few:
        columns = len(z)
        for p in range(columns):
            touched[p] = p
    total = 0.0
    for p in range(columns):
        column = touched[p]
        z[column] *= inverse[column]
        total += float(z[column]) * float(z[column])
    return total, columns


@kernel
def epoch(
    X, values, indices, indptr, y, numbered, first, gain, mass, ptr, order, query_weight, sizes, weights, totals,
    codes, reals, discount, given, trace
):  # fmt: skip
    """Play the lists in the given order; return (rounds played, list at which numbers overflowed or −1).

    `numbered` has the levels of all documents, those of list q standing for gain and mass at first[q]:first[q + 1];
    where it is empty, grades are binary or whole and all lists share their levels. `sizes` are what lists are
    multiplied by (empty: 1). `given`, where not empty, becomes what each document weighs in the surrogate of its round.
    """
    raw, drift, moment = weights[0], weights[1], weights[2]
    dense, running, d = X.shape[0] > 0, codes[5] == RUNNING, len(raw)
    longest = longest_of(ptr, order)
    # Scratch of a round. A filter writes before it knows whether to keep, and counting fills up its last lanes.
    shared = len(numbered) == 0
    room = max(longest, len(gain) if shared else 0) + 2 * LANES
    r, mean_r, kept = np.empty(room, X.dtype), np.empty(room, X.dtype), np.empty(room, X.dtype)
    rank, steps, own = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    whole, real = np.empty((6, room), np.int64), np.empty((3, room))
    ranked, count, ideal, chosen, reach, spare = whole[0], whole[1], whole[2], whole[3], whole[4], whole[5]
    keys, low, goal = real[0], real[1], real[2]
    coef, active, single = np.empty(2 * longest), np.empty(2 * longest, np.int64), np.empty(2 * longest, X.dtype)
    w, mean_w, z, inverse, mean = (
        np.empty(d, X.dtype),
        np.empty(d, X.dtype),
        np.zeros(d, X.dtype),
        np.ones(d),
        np.zeros(d),
    )
    wide = 0 if dense else d
    seen, mark, number, touched = np.full(wide, -1), np.full(wide, -1), np.zeros(wide), np.empty(wide, np.int64)
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
        if running and dense:
            if not dense_inverse(X, a, b, moment, totals[DOCS], inverse, mean):
                return rounds, q
            w[:] = raw * inverse
        elif running:
            low_end, high_end = indptr[a], indptr[b]
            if not csr_inverse(
                values, indices, low_end, high_end, m, moment, totals[DOCS], t, seen, mean, number, inverse
            ):
                return rounds, q
            for p in range(low_end, high_end):
                w[indices[p]] = raw[indices[p]] * inverse[indices[p]]
        totals[DOCS] += m
        if dense:
            dense_scores(X, a, b, w, r, following)
        else:
            csr_scores(values, indices, indptr, a, b, w, r, following)
        if not all_finite(r, m):
            return rounds, q
        trial = codes[7] and totals[ROUNDS] % TRIAL == TRIAL - 1
        if trial:
            for j in range(d):
                mean_w[j] = (raw[j] - drift[j] / totals[ROUNDS]) * inverse[j]
            if dense:
                dense_scores(X, a, b, mean_w, mean_r, following)
            else:
                csr_scores(values, indices, indptr, a, b, mean_w, mean_r, following)
            places = m if codes[1] == AP else min(codes[2], m)
            order_top(mean_r, m, places, ranked, chosen, rank, kept, keys, spare)
            totals[AVERAGE] += min(1.0, read_total(codes[1], places, discount, ranked, levels, gains) / best)
        noted = given[a:b] if len(given) > 0 else given
        measure, value, mistake, n = play(
            codes, reals, reals[0] * size, discount, m, n_levels, best, r, levels, count, gains, mass[start:end],
            noted, kept, rank, steps, ranked, ideal, chosen, reach, spare, keys, low, goal, coef, active,
        )  # fmt: skip
        totals[LAST] += measure if trial else 0.0
        noted *= weight
        znorm2, columns = 0.0, d
        for p in range(n):
            single[p] = weight * size * coef[p]
        if n > 0 and dense:
            znorm2 = dense_sum(X, a, single, active, n, inverse, running, z, following)
        elif n > 0:
            znorm2, columns = csr_sum(values, indices, indptr, a, single, active, n, inverse, mark, t, touched, z)
        if not math.isfinite(znorm2):
            return rounds, q
        if znorm2 > 0.0:
            step, past = step_size(codes[4], totals, znorm2), totals[ROUNDS]
            if dense:
                for j in range(d):
                    change = step * z[j]
                    raw[j] -= change
                    drift[j] -= past * change
                    w[j] = raw[j]
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
