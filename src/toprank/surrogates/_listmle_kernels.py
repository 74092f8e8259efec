# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListMLE: −log of the likelihood of the true order, or its mean over several orders of the documents of equal grade.

Codes of its own: (refuse ties, number of orders or 0 for the order of the rows, seed).
"""

from __future__ import annotations

import math

import numpy as np

from ..core._call_kernels import list_function
from ..core._order_kernels import scratch_length
from ..core._vector_kernels import total
from ..core.jit import inner_kernel
from ._listwise_kernels import PLAIN_RANGE, apply_chain_rule, order_by_grade, smallest, transform_scores


@inner_kernel
def mix(x):
    """A bijection of 64-bit numbers whose output looks random (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner_kernel
def find_runs(y, order, begin):
    """begin[:r] = the places in `order` where runs of equal grades begin, begin[r] = the end of the list; return r."""
    runs, before = 0, math.nan
    for p in range(len(y)):
        grade = y[order[p]]
        begin[runs] = p
        runs += grade != before
        before = grade
    begin[runs] = len(y)
    return runs


@inner_kernel
def shuffle_ties(y, seed, begin, runs, order):
    """Shuffle `order` inside each run of equal grades; the seed and the grades of the list alone decide how."""
    state, golden = np.uint64(seed), np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(y)):  # a sum: its terms can be computed at the same time
        state += np.uint64(np.int64(min(y[i], 1e12) * 1048576.0) + 1) * (golden * np.uint64(2 * i + 1))
    state = mix(mix(np.uint64(seed) + golden) ^ state)
    for run in range(runs):
        first = begin[run]
        for i in range(begin[run + 1] - 1, first, -1):
            drawn = mix(state + golden * np.uint64(i)) >> np.uint64(32)
            j = first + np.int64((drawn * np.uint64(i - first + 1)) >> np.uint64(32))
            order[i], order[j] = order[j], order[i]


@inner_kernel
def rotate(begin, runs, order, number, orders, rotated):
    """rotated = `order`, with each run of equal grades moved up by number/orders of its length; its first go last.

    Over all `orders` a document takes places in every part of its run, and each order is as random as the first.
    """
    for run in range(runs):
        first, last = begin[run], begin[run + 1]
        shift = number * (last - first) // orders
        for p in range(first, last - shift):
            rotated[p] = order[p + shift]
        for p in range(last - shift, last):
            rotated[p] = order[p + shift - (last - first)]


@inner_kernel
def likelihood_by_sums(v, order, tail, grad, curve):
    """Return Σ_p log tail_p, tail_p = Σ_{j≥p} v_order(j), and add its derivative in u to `grad`.

    One logarithm serves many places: it is taken of their product, before that overflows.
    """
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
def likelihood_by_logs(u, order, tail, grad, curve):
    """The same from logarithms, for scores that are too far apart for plain sums."""
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
def listmle(s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """ℓ = Σ_p (log Σ_{j≥p} φ(s_y(j)) − log φ(s_y(p))), its mean over the orders."""
    transform, a, b = codes[2], numbers[0], numbers[1]
    longest = scratch_length(ptr, 1)
    work, ints = np.empty((6, longest)), np.empty((5, longest), np.int64)
    order, begin, rotated = ints[0], ints[1], ints[4]
    for q in range(len(losses)):
        first, last = ptr[q], ptr[q + 1]
        n = last - first
        losses[q] = 0.0
        if n == 0:
            continue
        u, v, slope = work[0, :n], work[1, :n], work[2, :n]
        shift = transform_scores(transform, a, b, s[first:last], u, v, slope)
        place_given = len(place) > 0 and codes[4] > 0
        if place_given:
            for i in range(first, last):
                order[place[i]] = i - first
        ties = not place_given and order_by_grade(y[first:last], ints, work[4:])
        runs = find_runs(y[first:last], order, begin) if codes[4] > 0 else n
        ties |= place_given and runs < n
        if math.isnan(shift) or (ties and codes[3] == 1):
            return q
        orders = max(codes[4], 1) if ties else 1
        if ties and codes[4] > 0 and not place_given:
            shuffle_ties(y[first:last], codes[5], begin, runs, order)
        list_grad, list_curve = grad[first:last], curve[first:last] if len(curve) > 0 else curve[:0]
        list_grad[:] = 0.0
        list_curve[:] = 0.0
        plain = shift - smallest(u) < PLAIN_RANGE
        loss = orders * ((n * shift if plain else 0.0) - total(u, n))
        for number in range(orders):
            if number > 0:
                rotate(begin, runs, order, number, orders, rotated)
            this_order = rotated if number > 0 else order
            if plain:
                loss += likelihood_by_sums(v, this_order, work[3], list_grad, list_curve)
            else:
                loss += likelihood_by_logs(u, this_order, work[3], list_grad, list_curve)
        losses[q] = loss / orders
        share = 1.0 / orders
        for i in range(n):
            list_grad[i] = list_grad[i] * share - 1.0
        for i in range(len(list_curve)):
            list_curve[i] *= share
        apply_chain_rule(transform, a, slope, list_grad, list_curve)
    return -1
