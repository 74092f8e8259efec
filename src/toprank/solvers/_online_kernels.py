# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rounds of online learning, a whole epoch in one call: score a list, read its measure, step on its loss.

`codes` are (loss, target, cut, linear gain, truth in gains, always step, rule, scaling), `reals` are (threshold of
relevance, η, margin). `weights` holds raw, drift and moment, one row each. The learner's weights are w = η·raw, so that
a ranking which does not depend on η does not depend on its rounding either. drift = Σ (t−1)·(step of round t) gives the
average of the iterates as raw − drift/T, without work in rounds without a step. moment is the within-list sum of
squares of each feature. `totals` counts what `Total` names. Lists are ranked by raw scores, ties in input order.

X is dense (then values, indices, indptr are empty) or CSR (then X has no rows): one compiled loop serves both.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import kernel, sum_kernel
from .steps import Loss, Rule, Scaling, Target, Total

SLAM, MINIMAX, AP = int(Loss.SLAM), int(Loss.MINIMAX), int(Target.AP)
SQRT, ADAPTIVE = int(Rule.SQRT), int(Rule.ADAPTIVE)
RUNNING, QUERY = int(Scaling.RUNNING), int(Scaling.QUERY)
ROUNDS, STEPS, MISTAKES, MEASURE = int(Total.ROUNDS), int(Total.STEPS), int(Total.MISTAKES), int(Total.MEASURE)
SURROGATE, ZNORM2, DOCS = int(Total.SURROGATE), int(Total.ZNORM2), int(Total.DOCS)

WHOLE = 32
"""Whole grades below this are their own level; other grades are numbered by sorting."""
FEW = 8
"""Up to this many levels are counted one by one (SIMD), more in one pass."""
LANES = 32
"""Up to this many places are found through running maxima, more by ranking the whole list."""
FEWER = 64
"""Up to this many documents are put in order by grade and score by counting, more by sorting."""
COUNTED = 256
"""Lists up to this length are ranked by counting (SIMD), longer ones by a stable sort."""


@kernel
def longest_of(ptr, order):
    """Return the length of the longest list to be played."""
    longest = 1
    for q in order:
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@kernel
def one_grade(y, a, b):
    """Whether all grades of the list are equal."""
    i = a + 1
    while i < b and y[i] == y[a]:
        i += 1
    return i >= b


@kernel
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


@kernel
def find_levels(y, m, binary, above, level, count, grade, keys, chosen, spare):
    """Number the grades of a list upwards; return how many levels there are (with whole grades some may be empty)."""
    if binary:
        relevant = 0
        for i in range(m):
            level[i] = y[i] > above
            relevant += y[i] > above
        count[0], count[1] = m - relevant, relevant
        grade[0], grade[1] = 0.0, 1.0
        return 2
    odd, top = np.int32(0), np.int32(0)
    for i in range(m):
        whole = np.int32(min(y[i], WHOLE))
        odd += np.int32(whole != y[i])
        level[i] = whole
        top = max(top, whole)
    if odd == 0 and top < WHOLE:
        for g in range(top + 1):
            grade[g] = g
            number = np.int32(0)
            if top < FEW:
                for i in range(m):
                    number += np.int32(level[i] == g)
            count[g] = number
        if top >= FEW:
            for i in range(m):
                count[level[i]] += 1
        return int(top) + 1
    for i in range(m):
        keys[i] = -y[i]
        chosen[i] = i
    merge_sort(chosen, m, keys, spare)
    n = 0
    for p in range(m):
        i = chosen[p]
        if p == 0 or y[i] != grade[n - 1]:
            grade[n] = y[i]
            count[n] = 0
            n += 1
        level[i] = n - 1
        count[n - 1] += 1
    return n


@kernel
def find_gains(target, linear, above, n_levels, count, grade, gain):
    """Gain of each level: 2^grade − 1 or the grade for NDCG, relevant or not for AP; return how many levels occur."""
    present = 0
    for g in range(n_levels):
        if count[g] > 0:
            present += 1
            if target == AP:
                gain[g] = 1.0 if grade[g] > above else 0.0
            else:
                gain[g] = grade[g] if linear else 2.0 ** grade[g] - 1.0
    return present


@kernel
def count_ranks(values, n, rank):
    """rank[i] = #{j: v_j > v_i} + #{j < i: v_j = v_i}, each pair looked at once."""
    for i in range(n):
        rank[i] = 0
    for i in range(n):
        x, ahead = values[i], np.int32(0)
        for j in range(i):
            before = np.int32(values[j] >= x)
            ahead += before
            rank[j] += np.int32(1) - before
        rank[i] = ahead


@kernel
def order_top(r, m, room, order, chosen, rank, kept, keys, spare):
    """order[:room] = the best documents by score, ties in input order."""
    n = m
    if room <= LANES and m >= 2 * room:
        # At least `room` scores reach the smallest of `room` running maxima: the others need no look.
        for lane in range(room):
            kept[lane] = r[lane]
        lane = 0
        for i in range(room, m):
            kept[lane] = max(kept[lane], r[i])
            lane = lane + 1 if lane + 1 < room else 0
        bound = kept[0]
        for lane in range(1, room):
            bound = min(bound, kept[lane])
        n = 0
        for i in range(m):
            chosen[n] = i
            kept[n] = r[i]
            n += r[i] >= bound
    else:
        for i in range(m):
            chosen[i] = i
            kept[i] = r[i]
    if n <= COUNTED:
        count_ranks(kept, n, rank)
        for p in range(n):
            if rank[p] < room:
                order[rank[p]] = chosen[p]
        return
    for p in range(n):
        keys[chosen[p]] = kept[p]
    merge_sort(chosen, n, keys, spare)
    for p in range(room):
        order[p] = chosen[p]


@kernel
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
            if rank[p] < room:
                ideal[rank[p]] = chosen[p]
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


@kernel
def read_ap(m, order, level, gain):
    """Return (R, Σ over relevant documents of precision at their rank): AP is their ratio, 1 exactly when perfect."""
    hits, total = 0.0, 0.0
    for p in range(m):
        relevant = gain[level[order[p]]]
        hits += relevant
        total += relevant * (hits / (p + 1))
    return hits, total


@kernel
def read_dcg(room, n_levels, discount, order, count, level, gain):
    """Return the best DCG of these grades and the DCG of the order, added up place by place alike."""
    best = reached = 0.0
    p = 0
    for g in range(n_levels - 1, -1, -1):
        for _ in range(min(count[g], room - p)):
            best += gain[g] * discount[p]
            p += 1
    for p in range(room):
        reached += gain[level[order[p]]] * discount[p]
    return best, reached


@kernel
def best_below(r, m, level, g):
    """Return the best document of a grade below g, −1 where there is none."""
    leader = -1
    for i in range(m):
        if level[i] < g and (leader < 0 or r[i] > r[leader]):
            leader = i
    return leader


@kernel
def step_slam(target, room, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active):
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
        hinge = margin + scale * (r[leader] - r[i])
        if hinge > 0.0:
            v = (1.0 if target == AP else gain[g] * discount[p]) / best
            value += v * hinge
            coef[n], active[n] = -v, i
            n += 1
            if at_leader < 0:
                at_leader = n
                coef[n], active[n] = 0.0, leader
                n += 1
            coef[at_leader] += v
    return value, n


@kernel
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


@sum_kernel
def exponentials(x, m, scratch):
    """x = exp(x) for x ≤ 0, to the last bit or two; returns the sum. Written out so that it runs in SIMD lanes."""
    bits = scratch.view(np.int64)
    for i in range(m):
        v = max(x[i], -700.0)
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
        bits[i] = (np.int64(n) + 1023) << 52  # the bits of 2^n
    total = 0.0
    for i in range(m):
        x[i] *= scratch[i]
        total += x[i]
    return total


@kernel
def step_listnet(truth_gains, scale, m, n_levels, r, high, count, grade, level, scratch, target, coef, active):
    """−Σ_i P_R(i) log P_s(i), gradient P_s − P_R."""
    top, total = -math.inf, 0.0
    for g in range(n_levels):
        target[g] = 2.0 ** grade[g] - 1.0 if truth_gains else grade[g]
        if count[g] > 0:
            top = target[g]
    for g in range(n_levels):
        target[g] = math.exp(target[g] - top) if count[g] > 0 else 0.0
        total += count[g] * target[g]
    for g in range(n_levels):
        target[g] /= total
    for i in range(m):
        coef[i] = scale * (r[i] - high)
    dot = 0.0
    for i in range(m):
        dot += target[level[i]] * coef[i]
        active[i] = i
    mass = exponentials(coef, m, scratch)
    share = 1.0 / mass
    for i in range(m):
        coef[i] = coef[i] * share - target[level[i]]
    return math.log(mass) - dot, m


@kernel
def rival_slam(
    target, weighted, discount, best, margin, m, n_levels, s, scales, weight, ideal, level, gain, below, losses
):
    """losses[c] += the round's loss at scores scales[c]·s, with the weights that were fixed at the learner's order."""
    for g in range(n_levels):
        below[g] = -math.inf
    for i in range(m):
        below[level[i]] = max(below[level[i]], s[i])
    running = -math.inf
    for g in range(n_levels):
        below[g], running = running, max(running, below[g])
    for p in range(weighted):
        i = ideal[p]
        g = level[i]
        if gain[g] == 0.0 or below[g] == -math.inf:
            break
        v = weight * (1.0 if target == AP else gain[g] * discount[p]) / best
        for c in range(len(scales)):
            losses[c] += v * max(0.0, margin + scales[c] * (below[g] - s[i]))


@kernel
def rival_minimax(margin, m, n_levels, s, scales, weight, level, high, low, losses):
    """losses[c] += max_{R_i>R_j} (Δ + scales[c]·(s_j − s_i))₊."""
    for g in range(n_levels):
        high[g], low[g] = -math.inf, math.inf
    for i in range(m):
        high[level[i]] = max(high[level[i]], s[i])
        low[level[i]] = min(low[level[i]], s[i])
    running = gap = -math.inf
    for g in range(n_levels):
        gap = max(gap, running - low[g])
        running = max(running, high[g])
    for c in range(len(scales)):
        losses[c] += weight * max(0.0, margin + scales[c] * gap)


@kernel
def play(
    codes, reals, scale, discount, y, m, r, kept, level, rank, steps, order, count, ideal, chosen, reach, spare, grade,
    gain, keys, low, coef, active, rival, scales, weight, losses
):  # fmt: skip
    """One round on raw scores r, s = scale·r: return (whether it counts, measure, surrogate, mistake, n_active)."""
    loss, target, cut, above, margin = codes[0], codes[1], codes[2], reals[0], reals[2]
    binary = loss == SLAM and target == AP
    n_levels = find_levels(y, m, binary, above, level, count, grade, keys, chosen, spare)
    if find_gains(target, codes[3], 0.5 if binary else above, n_levels, count, grade, gain) < 2:
        return False, 0.0, 0.0, False, 0
    room = m if target == AP else min(cut, m)
    order_top(r, m, room, order, chosen, rank, kept, keys, spare)
    if target == AP:
        best, reached = read_ap(m, order, level, gain)
    else:
        best, reached = read_dcg(room, n_levels, discount, order, count, level, gain)
    if best <= 0.0:
        return False, 0.0, 0.0, False, 0
    mistake = reached < best
    value, n = 0.0, 0
    if mistake or codes[5]:
        if loss == SLAM:
            weighted = order_ideal(
                target, r, m, room, n_levels, level, count, order, ideal, reach, chosen, rank, kept, steps, keys, spare
            )  # fmt: skip
            value, n = step_slam(
                target, room, weighted, discount, best, margin, scale, m, r, order, ideal, level, gain, coef, active
            )
            if len(scales) > 0:
                rival_slam(
                    target, weighted, discount, best, margin, m, n_levels, rival, scales, weight, ideal, level, gain,
                    keys, losses,
                )  # fmt: skip
        elif loss == MINIMAX:
            value, n = step_minimax(margin, scale, m, n_levels, r, level, keys, low, coef, active)
            if len(scales) > 0:
                rival_minimax(margin, m, n_levels, rival, scales, weight, level, keys, low, losses)
        else:
            high = r[order[0]]
            value, n = step_listnet(codes[4], scale, m, n_levels, r, high, count, grade, level, keys, low, coef, active)
    return True, min(1.0, reached / best), weight * value, mistake, n


@kernel
def record(row, measure, value, mistake, znorm2, totals, trace):
    """Write a round down and add it to the totals."""
    trace[row, 0], trace[row, 1], trace[row, 2], trace[row, 3] = measure, value, mistake, znorm2
    totals[ROUNDS] += 1
    totals[STEPS] += znorm2 > 0
    totals[MISTAKES] += mistake
    totals[MEASURE] += measure
    totals[SURROGATE] += value
    totals[ZNORM2] += znorm2


@kernel
def step_size(rule, totals, znorm2):
    """Return the step of the coming round in units of η; the totals do not have the round yet."""
    if rule == SQRT:
        return 1.0 / math.sqrt(totals[ROUNDS] + 1)
    if rule == ADAPTIVE:
        return 1.0 / math.sqrt(totals[ZNORM2] + znorm2)
    return 1.0


@kernel
def all_finite(r, m):
    """Whether every score is finite."""
    good = True
    for i in range(m):
        good &= math.isfinite(r[i])
    return good


@sum_kernel
def dense_scores(X, a, b, w, r):
    """r = X[a:b] w, four rows at a time and each by the same sums: equal rows get equal scores."""
    d = X.shape[1]
    zero = w[0] * np.float32(0)  # in the type of w
    for i in range(a, b, 4):
        i1, i2, i3 = min(i + 1, b - 1), min(i + 2, b - 1), min(i + 3, b - 1)
        s0 = s1 = s2 = s3 = zero
        for j in range(d):
            weight = w[j]
            s0 += X[i, j] * weight
            s1 += X[i1, j] * weight
            s2 += X[i2, j] * weight
            s3 += X[i3, j] * weight
        r[i3 - a] = s3
        r[i2 - a] = s2
        r[i1 - a] = s1
        r[i - a] = s0


@sum_kernel
def dense_sum(X, a, coef, active, n, inverse, scaled, z):
    """z = Σ coef_p X[a + active_p], by columns times `inverse` where scaled; returns ‖z‖²."""
    d = X.shape[1]
    z[:] = 0
    whole = n - n % 4
    for p in range(0, whole, 4):  # four rows at a time: z is read and written less often
        c0, c1, c2, c3 = coef[p], coef[p + 1], coef[p + 2], coef[p + 3]
        i0, i1, i2, i3 = a + active[p], a + active[p + 1], a + active[p + 2], a + active[p + 3]
        for j in range(d):
            z[j] += (c0 * X[i0, j] + c1 * X[i1, j]) + (c2 * X[i2, j] + c3 * X[i3, j])
    for p in range(whole, n):
        c0, i0 = coef[p], a + active[p]
        for j in range(d):
            z[j] += c0 * X[i0, j]
    if scaled:
        for j in range(d):
            z[j] *= inverse[j]
    total = 0.0
    for j in range(d):
        total += float(z[j]) * float(z[j])
    return total


@kernel
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


@kernel
def dense_radius(X, a, b, mean):
    """max_i ‖x_i − x̄‖ of the list."""
    d = X.shape[1]
    mean[:] = 0
    for i in range(a, b):
        for j in range(d):
            mean[j] += X[i, j]
    for j in range(d):
        mean[j] /= b - a
    largest = 0.0
    for i in range(a, b):
        total = 0.0
        for j in range(d):
            total += (X[i, j] - mean[j]) ** 2
        largest = max(largest, total)
    return math.sqrt(largest)


@kernel
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


@kernel
def csr_radius(values, indices, indptr, a, b, total):
    """max_i ‖x_i − x̄‖ of the list; `total` is zero before and after."""
    m = b - a
    for p in range(indptr[a], indptr[b]):
        total[indices[p]] += values[p] / m
    centre = 0.0  # ‖x̄‖², each column once: x̄_j Σ_i x_ij / m
    for p in range(indptr[a], indptr[b]):
        centre += total[indices[p]] * values[p] / m
    largest = 0.0
    for i in range(a, b):
        distance = centre
        for p in range(indptr[i], indptr[i + 1]):
            distance += values[p] * (values[p] - 2 * total[indices[p]])
        largest = max(largest, distance)
    for p in range(indptr[a], indptr[b]):
        total[indices[p]] = 0.0
    return math.sqrt(largest)


@kernel
def csr_scores(values, indices, indptr, a, b, w, r):
    """r = X[a:b] w for CSR X, by four sums that do not wait for one another (SIMD gathers would be slower)."""
    zero = w[0] * np.float32(0)
    for i in range(a, b):
        start, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        whole = end - (end - start) % 4
        s0 = s1 = s2 = s3 = zero
        for p in range(start, whole, 4):
            s0 += values[p] * w[np.uint32(indices[p])]
            s1 += values[p + 1] * w[np.uint32(indices[p + 1])]
            s2 += values[p + 2] * w[np.uint32(indices[p + 2])]
            s3 += values[p + 3] * w[np.uint32(indices[p + 3])]
        for p in range(whole, end):
            s0 += values[p] * w[np.uint32(indices[p])]
        r[i - a] = (s0 + s1) + (s2 + s3)


@kernel
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
        for e in range(indptr[i], indptr[i + 1]):
            j = np.uint32(indices[e])
            z[j] += c * values[e]
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


@sum_kernel
def sound_list(X, y):
    """Whether all features are finite and all grades finite and not negative."""
    total = X[0, 0] * np.float32(0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            total += X[i, j] * np.float32(0)  # 0 for a finite number, NaN for any other
    good = total == 0
    for i in range(len(y)):
        good &= math.isfinite(y[i]) and y[i] >= 0
    return good


@kernel
def epoch(
    X, values, indices, indptr, y, ptr, order, query_weight, weights, totals, codes, reals, discount,
    rival, scales, losses, trace
):  # fmt: skip
    """Play the lists in the given order; return (rounds played, list at which numbers overflowed or −1).

    `rival` holds the scores of another weight vector: losses[c] = Σ_t f_t(scales[c] times that vector).
    """
    raw, drift, moment = weights[0], weights[1], weights[2]
    dense, scaling, d = X.shape[0] > 0, codes[7], len(raw)
    longest = longest_of(ptr, order)
    # Scratch of a round. One more than the longest list: a filter writes before it knows whether to keep.
    room = max(longest, WHOLE, LANES) + 1
    r, kept, level = np.empty(room, X.dtype), np.empty(room, X.dtype), np.empty(room, np.int32)
    rank, steps = np.empty(room, np.int32), np.empty(room, np.int32)
    whole, real = np.empty((6, room), np.int64), np.empty((4, room))
    ranked, count, ideal, chosen, reach, spare = whole[0], whole[1], whole[2], whole[3], whole[4], whole[5]
    grade, gain, keys, low = real[0], real[1], real[2], real[3]
    coef, active, single = np.empty(2 * longest), np.empty(2 * longest, np.int64), np.empty(2 * longest, X.dtype)
    w, z, inverse, mean = np.empty(d, X.dtype), np.zeros(d, X.dtype), np.ones(d), np.zeros(d)
    wide = 0 if dense else d
    seen, mark, number, touched = np.full(wide, -1), np.full(wide, -1), np.zeros(wide), np.empty(wide, np.int64)
    w[:] = raw
    rounds = 0
    for t in range(len(order)):
        q = order[t]
        a, b = ptr[q], ptr[q + 1]
        m = b - a
        weight = 1.0 if len(query_weight) == 0 else query_weight[q]
        if weight == 0.0 or one_grade(y, a, b):
            continue
        size = 1.0
        if scaling == QUERY:
            radius = dense_radius(X, a, b, mean) if dense else csr_radius(values, indices, indptr, a, b, mean)
            if radius == 0.0:
                continue
            size = 1.0 / radius
        if scaling == RUNNING and dense:
            if not dense_inverse(X, a, b, moment, totals[DOCS], inverse, mean):
                return rounds, q
            w[:] = raw * inverse
        elif scaling == RUNNING:
            first, end = indptr[a], indptr[b]
            if not csr_inverse(values, indices, first, end, m, moment, totals[DOCS], t, seen, mean, number, inverse):
                return rounds, q
            for p in range(first, end):
                w[indices[p]] = raw[indices[p]] * inverse[indices[p]]
        totals[DOCS] += m
        if dense:
            dense_scores(X, a, b, w, r)
        else:
            csr_scores(values, indices, indptr, a, b, w, r)
        if not all_finite(r, m):
            return rounds, q
        counts, measure, value, mistake, n = play(
            codes, reals, reals[1] * size, discount, y[a:b], m, r, kept, level, rank, steps, ranked, count, ideal,
            chosen, reach, spare, grade, gain, keys, low, coef, active, rival[a:b], scales, weight, losses,
        )  # fmt: skip
        if not counts:
            continue
        znorm2, columns = 0.0, d
        for p in range(n):
            single[p] = weight * size * coef[p]
        if n > 0 and dense:
            znorm2 = dense_sum(X, a, single, active, n, inverse, scaling == RUNNING, z)
        elif n > 0:
            znorm2, columns = csr_sum(values, indices, indptr, a, single, active, n, inverse, mark, t, touched, z)
        if not math.isfinite(znorm2):
            return rounds, q
        if znorm2 > 0.0:
            step, past = step_size(codes[6], totals, znorm2), totals[ROUNDS]
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
        record(rounds, measure, value, mistake, znorm2, totals, trace)
        rounds += 1
    return rounds, -1
