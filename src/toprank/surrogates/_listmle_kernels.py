# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""ListMLE: −log of the likelihood of the true order, or its mean over several orders of documents of equal grade."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.jit import kernel
from ._listwise_kernels import PLAIN_RANGE, apply_chain_rule, order_by_grade, smallest, transform_scores


class OrderRule(NamedTuple):
    """What happens to documents of equal grade."""

    refuse_ties: bool
    orders: int
    """Over how many orders of them the mean is taken; 0: they stay in the order of the rows."""
    seed: int
    """Decides the first of these orders."""


@kernel
def mix(x):
    """A bijection of 64-bit numbers whose output looks random (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def runs_of_grades(y, order):
    """Return the places in `order` where runs of equal grades begin, and the end of the list."""
    begin, runs = np.empty(len(y) + 1, np.int64), 0
    for p in range(len(y)):
        if p == 0 or y[order[p]] != y[order[p - 1]]:
            begin[runs] = p
            runs += 1
    begin[runs] = len(y)
    return begin[: runs + 1]


@kernel
def shuffle_ties(y, seed, begin, order):
    """Shuffle `order` inside each run of equal grades; the seed and the grades of the list alone decide how."""
    state, golden = np.uint64(seed), np.uint64(0x9E3779B97F4A7C15)
    for i in range(len(y)):
        state += np.uint64(np.int64(min(y[i], 1e12) * 1048576.0) + 1) * (golden * np.uint64(2 * i + 1))
    state = mix(mix(np.uint64(seed) + golden) ^ state)
    for run in range(len(begin) - 1):
        first = begin[run]
        for i in range(begin[run + 1] - 1, first, -1):
            drawn = mix(state + golden * np.uint64(i)) >> np.uint64(32)
            j = first + np.int64((drawn * np.uint64(i - first + 1)) >> np.uint64(32))
            order[i], order[j] = order[j], order[i]


@kernel
def rotate(begin, order, number, orders):
    """Return `order` with each run of equal grades moved up by number/orders of its length; its first go last.

    Over all `orders` a document takes places in every part of its run, and each order is as random as the first.
    """
    rotated = np.empty_like(order)
    for run in range(len(begin) - 1):
        first, last = begin[run], begin[run + 1]
        shift = number * (last - first) // orders
        for p in range(first, last - shift):
            rotated[p] = order[p + shift]
        for p in range(last - shift, last):
            rotated[p] = order[p + shift - (last - first)]
    return rotated


@kernel
def likelihood_by_sums(v, order, grad, curve):
    """Return Σ_p log tail_p, tail_p = Σ_{j≥p} v_order(j), and add its derivative in u to `grad`.

    One logarithm serves many places: it is taken of their product, before that overflows.
    """
    n = len(v)
    inverse_tail = np.empty(n)
    loss, product, rest = 0.0, 1.0, 0.0
    for p in range(n - 1, -1, -1):
        rest += v[order[p]]
        inverse_tail[p] = 1.0 / rest
        product *= rest
        if product < 1e-30 or product > 1e30:
            loss += math.log(product)
            product = 1.0
    inverse, square = 0.0, 0.0
    for p in range(n):
        i = order[p]
        inverse += inverse_tail[p]
        grad[i] += v[i] * inverse
        if len(curve) > 0:
            # Σ q (1 − q) over the places the document could have taken, q = v/tail, never negative.
            square += inverse_tail[p] * inverse_tail[p]
            curve[i] += max(v[i] * inverse - v[i] * v[i] * square, 0.0)
    return loss + math.log(product)


@kernel
def log_add(x, y):
    """log(e^x + e^y)."""
    if x == -math.inf:
        return y
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@kernel
def likelihood_by_logs(u, order, grad, curve):
    """The same from logarithms, for scores that are too far apart for plain sums."""
    n = len(u)
    log_tail, loss, rest = np.empty(n), 0.0, -math.inf
    for p in range(n - 1, -1, -1):
        rest = log_add(rest, u[order[p]])
        log_tail[p] = rest
        loss += rest
    inverse, square = -math.inf, -math.inf
    for p in range(n):
        i = order[p]
        inverse = log_add(inverse, -log_tail[p])
        grad[i] += math.exp(u[i] + inverse)
        if len(curve) > 0:
            square = log_add(square, -2.0 * log_tail[p])
            curve[i] += max(math.exp(u[i] + inverse) - math.exp(2.0 * u[i] + square), 0.0)
    return loss


@kernel
def first_order(y, place, ties):
    """Return the documents by grade, where runs of equal grades begin, and whether there are ties.

    The runs are only found where orders are drawn. `place` says the order where it has a length; else the seed shuffles
    each run.
    """
    if len(place) > 0 and ties.orders > 0:
        order = np.empty(len(y), np.int64)
        for i in range(len(y)):
            order[place[i]] = i
        begin = runs_of_grades(y, order)
        return order, begin, len(begin) <= len(y)
    order, tied = order_by_grade(y)
    begin = order[:0]
    if tied and ties.orders > 0:
        begin = runs_of_grades(y, order)
        shuffle_ties(y, ties.seed, begin, order)
    return order, begin, tied


@kernel
def listmle_of_list(s, y, place, rule, ties, g, curve):
    """ℓ = Σ_p (log Σ_{j≥p} φ(s_y(j)) − log φ(s_y(p))), its mean over the orders; g is its gradient.

    NaN says that the list is refused: a score outside φ, or ties where there must be none.
    """
    n = len(s)
    g[:] = 0.0
    curve[:] = 0.0
    if n == 0:
        return 0.0
    u, v, slope = np.empty(n), np.empty(n), np.empty(n)
    shift = transform_scores(rule, s, u, v, slope)
    order, begin, tied = first_order(y, place, ties)
    if math.isnan(shift) or (tied and ties.refuse_ties):
        return math.nan
    orders = ties.orders if tied and ties.orders > 0 else 1
    plain_sums = shift - smallest(u) < PLAIN_RANGE
    loss = orders * (n * shift if plain_sums else 0.0)
    for i in range(n):
        loss -= orders * u[i]
    for number in range(orders):
        this_order = order if number == 0 else rotate(begin, order, number, orders)
        if plain_sums:
            loss += likelihood_by_sums(v, this_order, g, curve)
        else:
            loss += likelihood_by_logs(u, this_order, g, curve)
    for i in range(n):
        g[i] = g[i] / orders - 1.0
    for i in range(len(curve)):
        curve[i] /= orders
    apply_chain_rule(slope, g, curve)
    return loss / orders


@kernel
def listmle_of_lists(s, y, ptr, place, rule, ties, losses, grad, curve):
    """The loss of each list; return −1 or the number of a list that is refused."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        list_place = place[a:b] if len(place) > 0 else place[:0]
        list_curve = curve[a:b] if len(curve) > 0 else curve[:0]
        losses[q] = listmle_of_list(s[a:b], y[a:b], list_place, rule, ties, grad[a:b], list_curve)
        if math.isnan(losses[q]):
            return q
    return -1
