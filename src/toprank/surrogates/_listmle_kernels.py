# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListMLE: the likelihood of the true order, or its mean over orders of the documents of one grade.

Codes of its own: (refuse ties, number of orders or 0 for the order of the rows, seed).
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import as_arrays, list_function
from ..core._order_kernels import longest_list
from ..core._vector_kernels import total
from ..core.jit import inner_kernel
from ._listwise_kernels import SAFE, chain, grade_order, smallest, transformed


@inner_kernel
def mix(x):
    """A bijection of 64-bit numbers whose output looks random (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner_kernel
def find_runs(y, order, begin):
    """begin[:r] = where the runs of documents of one grade begin in the order, begin[r] = its end; return r."""
    runs, before = 0, math.nan
    for p in range(len(y)):
        here = y[order[p]]
        begin[runs] = p
        runs += here != before
        before = here
    begin[runs] = len(y)
    return runs


@inner_kernel
def shuffle_ties(y, seed, begin, runs, order):
    """Shuffle each run of one grade in the order, by the seed and the grades of the list alone."""
    state, golden = np.uint64(seed), np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(y)):  # a sum, whose terms need not wait for each other
        state += np.uint64(np.int64(min(y[i], 1e12) * 1048576.0) + 1) * (golden * np.uint64(2 * i + 1))
    state = mix(mix(np.uint64(seed) + golden) ^ state)
    for run in range(runs):
        first = begin[run]
        for i in range(begin[run + 1] - 1, first, -1):
            drawn = mix(state + golden * np.uint64(i)) >> np.uint64(32)
            j = first + np.int64((drawn * np.uint64(i - first + 1)) >> np.uint64(32))
            order[i], order[j] = order[j], order[i]


@inner_kernel
def turn(begin, runs, order, part, parts, turned):
    """turned = the order with each run of one grade begun part/parts of its length later, and its beginning put last.

    So a document takes places all over its run, and each of these orders is as random as the first.
    """
    for run in range(runs):
        first, last = begin[run], begin[run + 1]
        shift = part * (last - first) // parts
        for p in range(first, last - shift):
            turned[p] = order[p + shift]
        for p in range(last - shift, last):
            turned[p] = order[p + shift - (last - first)]


@inner_kernel
def likelihood_near(v, order, tail, grad, curve):
    """Add ∂/∂u of Σ_p log tail_p by plain sums of v, and return that sum: a product is logged before it overflows."""
    n = len(v)
    loss, product, rest = 0.0, 1.0, 0.0
    for p in range(n - 1, -1, -1):
        rest += v[np.uint64(order[p])]
        tail[p] = rest
        product *= rest
        if product < 1e-30 or product > 1e30:
            loss += math.log(product)
            product = 1.0
    for p in range(n):
        tail[p] = 1.0 / tail[p]
    inverse, square = 0.0, 0.0
    for p in range(n):
        i = np.uint64(order[p])
        inverse += tail[p]
        grad[i] += v[i] * inverse
        if len(curve):
            # Σ q (1 − q) over the places the document could have taken, q = v/tail, never negative.
            square += tail[p] * tail[p]
            curve[i] += max(v[i] * inverse - v[i] * v[i] * square, 0.0)
    return loss + math.log(product)


@inner_kernel
def log_add(x, y):
    """log(e^x + e^y)."""
    if x == -math.inf:
        return y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@inner_kernel
def likelihood_far(u, order, tail, grad, curve):
    """The same for scores that are too far apart for plain sums: in logarithms."""
    loss, rest = 0.0, -math.inf
    for p in range(len(u) - 1, -1, -1):
        rest = log_add(rest, u[order[p]])
        tail[p] = rest
        loss += rest
    inverse, square = -math.inf, -math.inf
    for p in range(len(u)):
        i = order[p]
        inverse = log_add(inverse, -tail[p])
        grad[i] += math.exp(u[i] + inverse)
        if len(curve):
            square = log_add(square, -2.0 * tail[p])
            curve[i] += max(math.exp(u[i] + inverse) - math.exp(2.0 * u[i] + square), 0.0)
    return loss


@list_function
def listmle(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """ℓ = Σ_p (log Σ_{j≥p} φ(s_y(j)) − log φ(s_y(p))), the mean over the orders."""
    scores, labels, _, places, bounds, choice, params, value, slopes, bends = as_arrays(
        s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve
    )
    code, a, b = choice[2], params[0], params[1]
    longest = max(longest_list(bounds), 32) + 1
    work, ints = np.empty((6, longest)), np.empty((5, longest), np.int64)
    order, begin, turned = ints[0], ints[1], ints[4]
    for q in range(lists):
        first, last = bounds[q], bounds[q + 1]
        n = last - first
        value[q] = 0.0
        if n == 0:
            continue
        u, v, slope = work[0, :n], work[1, :n], work[2, :n]
        shift = transformed(code, a, b, scores[first:last], u, v, slope)
        placed = n_places > 0 and choice[4] > 0
        if placed:
            for i in range(first, last):
                order[places[i]] = i - first
        ties = not placed and grade_order(labels[first:last], ints, work[4:])
        runs = find_runs(labels[first:last], order, begin) if choice[4] > 0 else n
        ties |= placed and runs < n
        if math.isnan(shift) or (ties and choice[3] == 1):
            return q
        parts = max(choice[4], 1) if ties else 1
        if ties and choice[4] > 0 and not placed:
            shuffle_ties(labels[first:last], choice[5], begin, runs, order)
        here, curved_here = slopes[first:last], bends[first:last] if n_curve > 0 else bends[:0]
        here[:] = 0.0
        curved_here[:] = 0.0
        near = shift - smallest(u) < SAFE
        loss = parts * ((n * shift if near else 0.0) - total(u, n))
        for part in range(parts):
            if part > 0:
                turn(begin, runs, order, part, parts, turned)
            by = turned if part > 0 else order
            if near:
                loss += likelihood_near(v, by, work[3], here, curved_here)
            else:
                loss += likelihood_far(u, by, work[3], here, curved_here)
        value[q] = loss / parts
        share = 1.0 / parts
        for i in range(n):
            here[i] = here[i] * share - 1.0
        for i in range(len(curved_here)):
            curved_here[i] *= share
        chain(code, a, slope, here, curved_here)
    return -1
