# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Losses of lists, their gradients and the diagonals of their curvature; every kernel writes into arrays it is given.

All of them work on u = log φ(s), where nothing overflows, and apply the chain rule at the end. `curve` is filled with
the diagonal of the Gauss-Newton matrix (the part of the Hessian that is never negative) unless its length is 0.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import kernel, sum_kernel
from .transforms import TransformCode

GRADES, GAINS, ORDER = 0, 1, 2
"""What the truth g is: y, 2^y − 1, or the number of documents that y puts below."""

LEVELS = 32
"""Whole grades below this get tables and a counting sort."""

SAFE = 300.0
"""Transformed scores of a list that are no further apart than e to this power can be summed as they are."""

FULL_LIMIT = 12
"""Longest list for the full permutation form: its sum runs over all sets of documents."""


@kernel
def log_phi(code, a, b, x):
    """log φ(x)."""
    if code == TransformCode.EXPONENTIAL:
        return a * x
    if code == TransformCode.LINEAR:
        return math.log(a * x + b)
    return min(a * x, 0.0) - math.log1p(math.exp(-abs(a * x)))


@kernel
def largest(x, start, stop):
    """max x[start:stop], in four strands: one comparison waits for the one before it."""
    a = b = c = d = -math.inf
    whole = stop - (stop - start) % 4
    for i in range(start, whole, 4):
        a = x[i] if x[i] > a else a
        b = x[i + 1] if x[i + 1] > b else b
        c = x[i + 2] if x[i + 2] > c else c
        d = x[i + 3] if x[i + 3] > d else d
    for i in range(whole, stop):
        a = max(a, x[i])
    return max(max(a, b), max(c, d))


@kernel
def smallest(x, start, stop):
    """min x[start:stop], likewise."""
    a = b = c = d = math.inf
    whole = stop - (stop - start) % 4
    for i in range(start, whole, 4):
        a = x[i] if x[i] < a else a
        b = x[i + 1] if x[i + 1] < b else b
        c = x[i + 2] if x[i + 2] < c else c
        d = x[i + 3] if x[i + 3] < d else d
    for i in range(whole, stop):
        a = min(a, x[i])
    return min(min(a, b), min(c, d))


@kernel
def centre(s, ptr, a, v, shift):
    """v = a (s − top) and shift = a top for each list: what the exponential is taken of."""
    for q in range(len(ptr) - 1):
        top = largest(s, ptr[q], ptr[q + 1])
        shift[q] = a * top
        for i in range(ptr[q], ptr[q + 1]):
            v[i] = a * (s[i] - top)


@kernel
def sigmoid_parts(s, ptr, a, e, u, v, slope, shift):
    """From e = exp(−|a s|) and u = log(1 + e): u = log φ, v = φ/e^shift, slope = u'(s)."""
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        top = -math.inf
        for i in range(start, stop):
            x = a * s[i]
            top = max(top, x)
            small, large = e[i] / (1.0 + e[i]), 1.0 / (1.0 + e[i])
            u[i] = min(x, 0.0) - u[i]
            v[i] = large if x >= 0 else small
            slope[i] = a * (small if x >= 0 else large)
        shift[q] = 0.0
        if top < -SAFE:  # φ itself would underflow, and is e^{a s} to the last digit
            shift[q] = top
            for i in range(start, stop):
                v[i] = math.exp(a * s[i] - top)


@kernel
def count_levels(y):
    """One more than the largest grade where all are whole and small, else 0."""
    top = largest(y, 0, len(y))
    if not top < LEVELS:
        return 0
    odd = 0
    for i in range(len(y)):
        odd += (y[i] != math.floor(y[i])) | (y[i] < 0)
    return 0 if odd else int(max(top, 0.0)) + 1


@kernel
def order_down(y, start, stop, levels, place, order):
    """order[start:stop] = documents of one list from the highest to the lowest y; ties keep their order."""
    if levels == 0:
        order[start:stop] = start + np.argsort(-y[start:stop], kind="mergesort")
        return
    place[:] = 0
    for i in range(start, stop):
        place[int(y[i])] += 1
    total = start
    for g in range(levels - 1, -1, -1):
        count = place[g]
        place[g] = total
        total += count
    for i in range(start, stop):
        g = int(y[i])
        order[place[g]] = i
        place[g] += 1


@kernel
def has_ties(y, start, stop, order):
    """Whether some neighbours of one list, sorted, are equal, but not all of them."""
    ties, same = False, True
    for p in range(start + 1, stop):
        equal = y[order[p]] == y[order[p - 1]]
        ties, same = ties or equal, same and equal
    return ties and not same


@kernel
def mix(x):
    """A bijection of 64-bit numbers whose output looks random (splitmix64)."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def shuffle_ties(y, start, stop, seed, order):
    """Shuffle each run of equal y in order[start:stop], by the seed and the grades of the list alone."""
    state = np.uint64(seed)
    for i in range(start, stop):
        state = state * np.uint64(0x5851F42D4C957F2D) + np.uint64(np.int64(min(y[i], 1e12) * 1048576.0))
    state = mix(mix(np.uint64(seed)) ^ state)
    first = start
    while first < stop:
        last = first + 1
        while last < stop and y[order[last]] == y[order[first]]:
            last += 1
        for i in range(last - 1, first, -1):
            state = mix(state)
            j = first + np.int64(((state >> np.uint64(32)) * np.uint64(i - first + 1)) >> np.uint64(32))
            order[i], order[j] = order[j], order[i]
        first = last


@kernel
def grade_truth(truth, y):
    """g for a grade, where it does not depend on the rest of the list."""
    return y if truth == GRADES else 2.0**y - 1.0


@kernel
def target_table(truth, code, a, b, levels):
    """table[top, y] = φ(g(y))/φ(g(top)) for y ≤ top."""
    table = np.zeros((levels, levels))
    for top in range(levels):
        for y in range(top + 1):
            low, high = grade_truth(truth, float(y)), grade_truth(truth, float(top))
            table[top, y] = math.exp(log_phi(code, a, b, low) - log_phi(code, a, b, high))
    return table


@kernel
def log_target(truth, code, a, b, y, start, stop, levels, order, out):
    """out = log φ(g) of one list; returns whether the truth is an order that has ties (all equal is none)."""
    if truth != ORDER:
        for i in range(start, stop):
            out[i] = log_phi(code, a, b, grade_truth(truth, y[i]))
        return False
    order_down(y, start, stop, levels, np.empty(LEVELS, dtype=np.int64), order)
    for p in range(start, stop):
        out[order[p]] = log_phi(code, a, b, float(stop - 1 - p))
    return has_ties(y, start, stop, order)


@kernel
def fill_target(truth, code, a, b, y, start, stop, levels, table, order, out):
    """out = φ(g)/max φ(g) of one list; returns whether the truth is an order that has ties."""
    if truth != ORDER and levels > 0:
        row = table[int(largest(y, start, stop))]
        for i in range(start, stop):
            out[i] = row[np.uint8(y[i])]
        return False
    bad = log_target(truth, code, a, b, y, start, stop, levels, order, out)
    top = largest(out, start, stop)
    for i in range(start, stop):
        out[i] = math.exp(out[i] - top)
    return bad


@sum_kernel
def mass_and_cross(v, u, target, start, stop):
    """Σ v, Σ target and Σ target u."""
    total = mass = cross = 0.0
    for i in range(start, stop):
        total += v[i]
        mass += target[i]
        cross += target[i] * u[i]
    return total, mass, cross


@kernel
def chain(grad, curve, slope, rate):
    """Go from u to the scores: ∂ℓ/∂s = u' ∂ℓ/∂u, with u' = rate where `slope` is empty."""
    if len(slope):
        for i in range(len(grad)):
            grad[i] *= slope[i]
        for i in range(len(curve)):
            curve[i] *= slope[i] * slope[i]
    elif rate != 1.0:
        for i in range(len(grad)):
            grad[i] *= rate
        for i in range(len(curve)):
            curve[i] *= rate * rate


@kernel
def listnet_top_one(u, v, shift, slope, y, ptr, truth, code, a, b, losses, grad, curve):
    """ℓ = −Σ_i P_y(i) log P_s(i), ∂ℓ/∂u = P_s − P_y, curvature P_s (1 − P_s); returns a query with ties or −1."""
    n = len(u)
    target, order = np.empty(n), np.empty(n if truth == ORDER else 0, dtype=np.int64)
    levels = count_levels(y)
    table = target_table(truth, code, a, b, levels if truth != ORDER else 0)
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        if start == stop:
            continue
        if fill_target(truth, code, a, b, y, start, stop, levels, table, order, target):
            return q
        total, mass, cross = mass_and_cross(v, u, target, start, stop)
        losses[q] = shift[q] + math.log(total) - cross / mass
        over, under = 1.0 / total, 1.0 / mass
        for i in range(start, stop):
            grad[i] = v[i] * over - target[i] * under
        if len(curve):
            for i in range(start, stop):
                p = v[i] * over
                curve[i] = p * (1.0 - p)
    chain(grad, curve, slope, a)
    return -1


@kernel
def stage(u, target, used, weight, p, grad, curve):
    """One choice among the documents not used: weight × cross entropy is returned and its gradient added; p = P_y."""
    top_u, top_t = -math.inf, -math.inf
    for i in range(len(u)):
        if not used[i]:
            top_u, top_t = max(top_u, u[i]), max(top_t, target[i])
    total_u, total_t = 0.0, 0.0
    for i in range(len(u)):
        if not used[i]:
            total_u += math.exp(u[i] - top_u)
            p[i] = math.exp(target[i] - top_t)
            total_t += p[i]
    log_total, loss = top_u + math.log(total_u), 0.0
    for i in range(len(u)):
        if not used[i]:
            p[i] /= total_t
            chosen = math.exp(u[i] - log_total)
            loss += p[i] * (log_total - u[i])
            grad[i] += weight * (chosen - p[i])
            if len(curve):
                curve[i] += weight * chosen * (1.0 - chosen)
    return weight * loss


@kernel
def top_k_list(u, target, k, grad, curve):
    """Sum the stages over all ordered beginnings of fewer than k documents, depth first."""
    m = len(u)
    used, p = np.zeros(m, dtype=np.bool_), np.empty((k, m))
    choice, weight = np.full(k, -1), np.ones(k + 1)
    loss, depth = stage(u, target, used, 1.0, p[0], grad, curve), 0
    while depth >= 0 and k > 1:
        if choice[depth] >= 0:
            used[choice[depth]] = False
        following = choice[depth] + 1
        while following < m and used[following]:
            following += 1
        if following == m:
            choice[depth] = -1
            depth -= 1
            continue
        choice[depth] = following
        used[following] = True
        weight[depth + 1] = weight[depth] * p[depth, following]
        loss += stage(u, target, used, weight[depth + 1], p[depth + 1], grad, curve)
        if depth + 2 < k:
            depth += 1
    return loss


@kernel
def full_list(u, target, grad, curve):
    """Sum the stages over all sets of documents already chosen, each by its probability under the truth."""
    m = len(u)
    used, p = np.zeros(m, dtype=np.bool_), np.empty(m)
    weight = np.zeros(1 << m)
    weight[0] = 1.0
    loss = 0.0
    for chosen in range((1 << m) - 1):
        for i in range(m):
            used[i] = (chosen >> i) & 1
        loss += stage(u, target, used, weight[chosen], p, grad, curve)
        for i in range(m):
            if not used[i]:
                weight[chosen | (1 << i)] += weight[chosen] * p[i]
    return loss


@kernel
def listnet_top_k(u, slope, y, ptr, k, truth, code, a, b, losses, grad, curve):
    """ℓ = −Σ_π P_y(π) log P_s(π) over the first k places (k = 0: all); returns a query with ties or −1."""
    n = len(u)
    target, order = np.empty(n), np.empty(n, dtype=np.int64)
    levels = count_levels(y)
    grad[:] = 0.0
    curve[:] = 0.0
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        if stop - start < 2:
            continue
        if log_target(truth, code, a, b, y, start, stop, levels, order, target):
            return q
        ends = curve[start:stop] if len(curve) else curve
        places = stop - start - 1  # the last place is no choice
        if k == 0 or (k >= places and places < FULL_LIMIT):
            losses[q] = full_list(u[start:stop], target[start:stop], grad[start:stop], ends)
        else:
            losses[q] = top_k_list(u[start:stop], target[start:stop], min(k, places), grad[start:stop], ends)
    chain(grad, curve, slope, a)
    return -1


@kernel
def log_add(x, y):
    """log(e^x + e^y)."""
    if x == -math.inf:
        return y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@kernel
def likelihood_near(u, v, shift, order, start, stop, tail, grad, curve):
    """ListMLE of one list by plain sums of v; a product of them is logged before it can overflow."""
    loss, product, rest = (stop - start) * shift, 1.0, 0.0
    for p in range(stop - 1, start - 1, -1):
        i = order[p]
        rest += v[i]
        tail[p] = rest
        product *= rest
        if product < 1e-30 or product > 1e30:
            loss += math.log(product)
            product = 1.0
        loss -= u[i]
    inverse, square = 0.0, 0.0
    for p in range(start, stop):
        i = order[p]
        one = 1.0 / tail[p]
        inverse += one
        grad[i] = v[i] * inverse - 1.0
        if len(curve):
            # Σ q (1 − q) over the places the document could have taken, q = v/tail, never negative.
            square += one * one
            curve[i] = max(v[i] * inverse - v[i] * v[i] * square, 0.0)
    return loss + math.log(product)


@kernel
def likelihood_far(u, order, start, stop, tail, grad, curve):
    """ListMLE of one list whose scores are too far apart for plain sums: the same in logarithms."""
    loss, rest = 0.0, -math.inf
    for p in range(stop - 1, start - 1, -1):
        i = order[p]
        rest = log_add(rest, u[i])
        tail[p] = rest
        loss += rest - u[i]
    inverse, square = -math.inf, -math.inf
    for p in range(start, stop):
        i = order[p]
        inverse = log_add(inverse, -tail[p])
        grad[i] = math.exp(u[i] + inverse) - 1.0
        if len(curve):
            square = log_add(square, -2.0 * tail[p])
            curve[i] = max(math.exp(u[i] + inverse) - math.exp(2.0 * u[i] + square), 0.0)
    return loss


@kernel
def listmle(u, v, shift, slope, y, ptr, strict, sampled, seed, a, losses, grad, curve):
    """ℓ = Σ_i [log Σ_{j≥i} φ(s_{y(j)}) − log φ(s_{y(i)})]; returns a query with ties (where `strict`) or −1."""
    n = len(u)
    tail, order, place = np.empty(n), np.empty(n, dtype=np.int64), np.empty(LEVELS, dtype=np.int64)
    levels = count_levels(y)
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        if start == stop:
            continue
        order_down(y, start, stop, levels, place, order)
        if strict and has_ties(y, start, stop, order):
            return q
        if sampled:
            shuffle_ties(y, start, stop, seed, order)
        if shift[q] - smallest(u, start, stop) < SAFE:
            losses[q] = likelihood_near(u, v, shift[q], order, start, stop, tail, grad, curve)
        else:
            losses[q] = likelihood_far(u, order, start, stop, tail, grad, curve)
    chain(grad, curve, slope, a)
    return -1


@sum_kernel
def squares_and_product(v, target, start, stop):
    """Σ v², Σ target² and Σ v target."""
    ours = theirs = inner = 0.0
    for i in range(start, stop):
        ours += v[i] * v[i]
        theirs += target[i] * target[i]
        inner += v[i] * target[i]
    return ours, theirs, inner


@kernel
def rank_cosine(v, slope, y, ptr, truth, code, a, b, losses, grad, curve):
    """ℓ = ½ (1 − cos(φ(g), φ(s))); curvature ½ c² (1 − c²) with c = φ/‖φ‖; returns a query with ties or −1."""
    n = len(v)
    target, order = np.empty(n), np.empty(n if truth == ORDER else 0, dtype=np.int64)
    levels = count_levels(y)
    table = target_table(truth, code, a, b, levels if truth != ORDER else 0)
    for q in range(len(ptr) - 1):
        start, stop = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        if start == stop:
            continue
        if fill_target(truth, code, a, b, y, start, stop, levels, table, order, target):
            return q
        ours, theirs, inner = squares_and_product(v, target, start, stop)
        cosine = inner / math.sqrt(ours * theirs)
        losses[q] = 0.5 * max(1.0 - cosine, 0.0)
        own, other = 0.5 * cosine / ours, 0.5 / math.sqrt(ours * theirs)
        for i in range(start, stop):
            grad[i] = v[i] * (own * v[i] - other * target[i])
        if len(curve):
            for i in range(start, stop):
                share = v[i] * v[i] / ours
                curve[i] = 0.5 * share * (1.0 - share)
    chain(grad, curve, slope, a)
    return -1
