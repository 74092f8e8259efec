# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListNet (top one), ListMLE and RankCosine: losses of lists, their gradients and the diagonals of their curvature.

All of them work on u = log φ(s), where nothing overflows, and apply the chain rule at the end. `curve` is filled with
the diagonal of the Gauss-Newton matrix (the part of the Hessian that is never negative) unless its length is 0. A list
is handled as slices of its own: the compiler then knows that no index is negative, and does several at a time.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numba import carray

from ..core._call_kernels import list_function
from ..core._vector_kernels import exponentials, logarithms
from ..core.jit import kernel, sum_kernel
from .transforms import TransformCode

GRADES, GAINS, ORDER = 0, 1, 2
"""What the truth g is: y, 2^y − 1, or the number of documents that y puts below."""

LEVELS = 32
"""Whole grades below this get a table and a counting sort."""

FEW = 8
"""Up to this many grades, looking for each of them in turn is the fastest sort."""

SAFE = 300.0
"""Transformed scores of a list that are no further apart than e to this power can be summed as they are."""

SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""


class Loss(IntEnum):
    """Which loss a list is given."""

    LISTNET = 0
    LISTMLE = 1
    RANKCOSINE = 2


@kernel
def log_phi(code, a, b, x):
    """log φ(x)."""
    if code == TransformCode.EXPONENTIAL:
        return a * x
    if code == TransformCode.LINEAR:
        return math.log(a * x + b)
    return min(a * x, 0.0) - math.log1p(math.exp(-abs(a * x)))


@kernel
def target_table(truth, code, a, b, out):
    """out[top, y] = φ(g(y))/φ(g(top)) for grades y ≤ top: the target of a list with that best grade."""
    for top in range(LEVELS):
        for y in range(LEVELS):
            low, high = (float(y), float(top)) if truth == GRADES else (2.0**y - 1.0, 2.0**top - 1.0)
            out[top, y] = math.exp(log_phi(code, a, b, low) - log_phi(code, a, b, high)) if y <= top else 0.0


@kernel
def largest(x):
    """max x, in four strands: one comparison waits for the one before it."""
    a = b = c = d = -math.inf
    whole = len(x) - len(x) % 4
    for i in range(0, whole, 4):
        a = x[i] if x[i] > a else a
        b = x[i + 1] if x[i + 1] > b else b
        c = x[i + 2] if x[i + 2] > c else c
        d = x[i + 3] if x[i + 3] > d else d
    for i in range(whole, len(x)):
        a = max(a, x[i])
    return max(max(a, b), max(c, d))


@kernel
def smallest(x):
    """min x, likewise."""
    a = b = c = d = math.inf
    whole = len(x) - len(x) % 4
    for i in range(0, whole, 4):
        a = x[i] if x[i] < a else a
        b = x[i + 1] if x[i + 1] < b else b
        c = x[i + 2] if x[i + 2] < c else c
        d = x[i + 3] if x[i + 3] < d else d
    for i in range(whole, len(x)):
        a = min(a, x[i])
    return min(min(a, b), min(c, d))


@kernel
def transformed(code, a, b, s, u, v, slope):
    """u = log φ(s), v = φ(s)/e^shift, slope = u'(s); return the shift, or NaN where φ of a score is not positive.

    The shift keeps v from overflowing and vanishing. The slope of the exponential is a everywhere and not filled in.
    """
    n = len(s)
    if code == TransformCode.EXPONENTIAL:
        top = largest(s)
        for i in range(n):
            u[i] = a * s[i]
            v[i] = a * (s[i] - top)
        exponentials(v)
        return a * top
    if code == TransformCode.LINEAR:
        for i in range(n):
            v[i] = a * s[i] + b
        if not smallest(v) >= SMALLEST:
            return math.nan
        for i in range(n):
            u[i] = v[i]
            slope[i] = a / v[i]
        logarithms(u)
        return 0.0
    for i in range(n):
        v[i] = -abs(a * s[i])
    exponentials(v)
    for i in range(n):
        u[i] = 1.0 + v[i]
        over = 1.0 / u[i]
        small, large = v[i] * over, over
        slope[i] = a * (small if s[i] >= 0 else large)
        v[i] = large if s[i] >= 0 else small
    logarithms(u)
    for i in range(n):
        x = a * s[i]
        u[i] = (0.0 if x >= 0 else x) - u[i]
    top = a * largest(s)
    if top < -SAFE:  # φ itself would underflow, and is e^{a s} to the last digit
        for i in range(n):
            v[i] = u[i] - top
        exponentials(v)
        return top
    return 0.0


@kernel
def count_levels(y):
    """One more than the largest grade where all are whole and small, else 0."""
    top = largest(y)
    if not top < LEVELS:
        return 0
    odd = 0
    for i in range(len(y)):
        odd += (y[i] != math.floor(y[i])) | (y[i] < 0)
    return 0 if odd else int(max(top, 0.0)) + 1


@kernel
def merge_down(y, order):
    """The same for any y, by merging runs of growing length (numpy's sorts take seconds to compile)."""
    n, width = len(y), 1
    source, target = order, np.empty(n, np.int64)
    for i in range(n):
        source[i] = i
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for place in range(low, high):
                if i < middle and (j >= high or y[source[i]] >= y[source[j]]):
                    target[place] = source[i]
                    i += 1
                else:
                    target[place] = source[j]
                    j += 1
        source, target, width = target, source, 2 * width
    for i in range(n):
        order[i] = source[i]  # where they are the same array, each element is copied on itself


@kernel
def order_down(y, levels, place, order):
    """order[:m] = documents of one list, the highest y first; ties keep their order. There is one place more than m."""
    if levels == 0:
        merge_down(y, order)
        return
    if levels <= FEW:  # no number waits to be written before it is read
        count = 0
        for g in range(levels - 1, -1, -1):
            for i in range(len(y)):
                order[count] = i
                count += y[i] == float(g)
        return
    for g in range(levels):
        place[g] = 0
    for i in range(len(y)):
        place[np.uint8(y[i])] += 1
    total = 0
    for g in range(levels - 1, -1, -1):
        count = place[g]
        place[g] = total
        total += count
    for i in range(len(y)):
        grade = np.uint8(y[i])
        order[place[grade]] = i
        place[grade] += 1


@kernel
def has_ties(y, order):
    """Whether some neighbours of one list, sorted, are equal, but not all of them."""
    ties, same = False, True
    for p in range(1, len(y)):
        equal = y[order[p]] == y[order[p - 1]]
        ties, same = ties or equal, same and equal
    return ties and not same


@kernel
def mix(x):
    """A bijection of 64-bit numbers whose output looks random (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def shuffle_ties(y, seed, order):
    """Shuffle each run of equal y in the order, by the seed and the grades of the list alone."""
    state, golden = np.uint64(seed), np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(y)):  # a sum, whose terms need not wait for each other
        state += np.uint64(np.int64(min(y[i], 1e12) * 1048576.0) + 1) * (golden * np.uint64(2 * i + 1))
    state = mix(mix(np.uint64(seed) + golden) ^ state)
    first = 0
    while first < len(y):
        last = first + 1
        while last < len(y) and y[order[last]] == y[order[first]]:
            last += 1
        for i in range(last - 1, first, -1):
            drawn = mix(state + golden * np.uint64(i)) >> np.uint64(32)
            j = first + np.int64((drawn * np.uint64(i - first + 1)) >> np.uint64(32))
            order[i], order[j] = order[j], order[i]
        first = last


@kernel
def fill_target(truth, code, a, b, table, y, place, order, out):
    """out = φ(g)/max φ(g) of one list; returns whether the truth is an order that has ties (all equal is none)."""
    levels = count_levels(y)
    if truth != ORDER and levels > 0:
        row = table[levels - 1]
        for i in range(len(y)):
            out[i] = row[np.uint8(y[i])]
        return False
    ties = False
    if truth == ORDER:
        order_down(y, levels, place, order)
        ties = has_ties(y, order)
        for p in range(len(y)):
            out[order[p]] = log_phi(code, a, b, float(len(y) - 1 - p))
    else:
        for i in range(len(y)):
            out[i] = log_phi(code, a, b, y[i] if truth == GRADES else 2.0 ** y[i] - 1.0)
    top = largest(out)
    for i in range(len(y)):
        out[i] = math.exp(out[i] - top)
    return ties


@sum_kernel
def mass_and_cross(v, u, target):
    """Σ v, Σ target and Σ target u."""
    total = mass = cross = 0.0
    for i in range(len(v)):
        total += v[i]
        mass += target[i]
        cross += target[i] * u[i]
    return total, mass, cross


@kernel
def listnet(u, v, shift, target, grad, curve):
    """ℓ = −Σ_i P_y(i) log P_s(i), ∂ℓ/∂u = P_s − P_y, curvature P_s (1 − P_s)."""
    total, mass, cross = mass_and_cross(v, u, target)
    over, under = 1.0 / total, 1.0 / mass
    for i in range(len(u)):
        grad[i] = v[i] * over - target[i] * under
    for i in range(len(curve)):
        p = v[i] * over
        curve[i] = p * (1.0 - p)
    return shift + math.log(total) - cross / mass


@kernel
def log_add(x, y):
    """log(e^x + e^y)."""
    if x == -math.inf:
        return y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@sum_kernel
def total_of(x):
    """Σ x."""
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total


@kernel
def likelihood_near(u, v, shift, order, tail, grad, curve):
    """ListMLE of one list by plain sums of v; a product of them is logged before it can overflow."""
    n = len(u)
    loss, product, rest = n * shift - total_of(u), 1.0, 0.0
    for p in range(n - 1, -1, -1):
        rest += v[order[p]]
        tail[p] = rest
        product *= rest
        if product < 1e-30 or product > 1e30:
            loss += math.log(product)
            product = 1.0
    for p in range(n):
        tail[p] = 1.0 / tail[p]
    inverse, square = 0.0, 0.0
    for p in range(n):
        i = order[p]
        inverse += tail[p]
        grad[i] = v[i] * inverse - 1.0
        if len(curve):
            # Σ q (1 − q) over the places the document could have taken, q = v/tail, never negative.
            square += tail[p] * tail[p]
            curve[i] = max(v[i] * inverse - v[i] * v[i] * square, 0.0)
    return loss + math.log(product)


@kernel
def likelihood_far(u, order, tail, grad, curve):
    """ListMLE of one list whose scores are too far apart for plain sums: the same in logarithms."""
    loss, rest = 0.0, -math.inf
    for p in range(len(u) - 1, -1, -1):
        i = order[p]
        rest = log_add(rest, u[i])
        tail[p] = rest
        loss += rest - u[i]
    inverse, square = -math.inf, -math.inf
    for p in range(len(u)):
        i = order[p]
        inverse = log_add(inverse, -tail[p])
        grad[i] = math.exp(u[i] + inverse) - 1.0
        if len(curve):
            square = log_add(square, -2.0 * tail[p])
            curve[i] = max(math.exp(u[i] + inverse) - math.exp(2.0 * u[i] + square), 0.0)
    return loss


@sum_kernel
def squares_and_product(v, target):
    """Σ v², Σ target² and Σ v target."""
    ours = theirs = inner = 0.0
    for i in range(len(v)):
        ours += v[i] * v[i]
        theirs += target[i] * target[i]
        inner += v[i] * target[i]
    return ours, theirs, inner


@kernel
def rank_cosine(v, target, grad, curve):
    """ℓ = ½ (1 − cos(φ(g), φ(s))); curvature ½ c² (1 − c²) with c = φ/‖φ‖."""
    ours, theirs, inner = squares_and_product(v, target)
    cosine = inner / math.sqrt(ours * theirs)
    own, other = 0.5 * cosine / ours, 0.5 / math.sqrt(ours * theirs)
    for i in range(len(v)):
        grad[i] = v[i] * (own * v[i] - other * target[i])
    for i in range(len(curve)):
        share = v[i] * v[i] / ours
        curve[i] = 0.5 * share * (1.0 - share)
    return 0.5 * max(1.0 - cosine, 0.0)


@kernel
def chain(code, a, slope, grad, curve):
    """Go from u to the scores: ∂ℓ/∂s = u' ∂ℓ/∂u."""
    if code != TransformCode.EXPONENTIAL:
        for i in range(len(grad)):
            grad[i] *= slope[i]
        for i in range(len(curve)):
            curve[i] *= slope[i] * slope[i]
    elif a != 1.0:
        for i in range(len(grad)):
            grad[i] *= a
        for i in range(len(curve)):
            curve[i] *= a * a


@list_function
def listwise(s_at, y_at, ptr_at, lists, codes_at, numbers_at, losses_at, grad_at, curve_at, curved):
    """Work through lists by codes (loss, truth, transform, strict, sampled, seed) and numbers (a, b, target table)."""
    ptr, losses = carray(ptr_at, lists + 1), carray(losses_at, lists)
    n = ptr[lists]
    scores, labels, slopes, curve = carray(s_at, n), carray(y_at, n), carray(grad_at, n), carray(curve_at, curved)
    codes, numbers = carray(codes_at, 6), carray(numbers_at, 2 + LEVELS * LEVELS)
    loss, truth, code, strict, sampled, seed = codes[0], codes[1], codes[2], codes[3], codes[4], codes[5]
    a, b, table = numbers[0], numbers[1], numbers[2:].reshape((LEVELS, LEVELS))
    longest = 0
    for q in range(lists):
        longest = max(longest, ptr[q + 1] - ptr[q])
    work, order, place = np.empty((4, longest)), np.empty(longest + 1, np.int64), np.empty(LEVELS, np.int64)
    for q in range(lists):
        m = ptr[q + 1] - ptr[q]
        losses[q] = 0.0
        if m == 0:
            continue
        s, y, grad = scores[ptr[q] : ptr[q + 1]], labels[ptr[q] : ptr[q + 1]], slopes[ptr[q] : ptr[q + 1]]
        bends = curve[ptr[q] : ptr[q + 1]] if curved > 0 else curve[:0]
        u, v, slope, spare = work[0, :m], work[1, :m], work[2, :m], work[3, :m]
        shift = transformed(code, a, b, s, u, v, slope)
        if math.isnan(shift):
            return q
        if loss == Loss.LISTMLE:
            order_down(y, count_levels(y), place, order)
            if strict and has_ties(y, order):
                return q
            if sampled:
                shuffle_ties(y, seed, order)
            if shift - smallest(u) < SAFE:
                losses[q] = likelihood_near(u, v, shift, order, spare, grad, bends)
            else:
                losses[q] = likelihood_far(u, order, spare, grad, bends)
        elif fill_target(truth, code, a, b, table, y, place, order, spare):
            return q
        elif loss == Loss.LISTNET:
            losses[q] = listnet(u, v, shift, spare, grad, bends)
        else:
            losses[q] = rank_cosine(v, spare, grad, bends)
        chain(code, a, slope, grad, bends)
    return -1
