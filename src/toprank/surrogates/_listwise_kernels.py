# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What ListNet, ListMLE and RankCosine share: transformed scores, the target of a list, the chain rule.

All of them work on u = log φ(s), where nothing overflows, and apply the chain rule at the end. `curve` is filled with
the diagonal of the Gauss-Newton matrix (the part of the Hessian that is never negative) unless its length is 0. A list
is handled as slices of its own: the compiler then knows that no index is negative, and does several at a time.

Codes: (numbers, truth, transform, and two of the loss's own); numbers: (a, b, table of targets). Where the transform is
given as None it is the exponential, and where `ints` are None no truth is an order: the rest is not compiled.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._order_kernels import WHOLE, by_level, largest, number_grades, whole_levels
from ..core._vector_kernels import exponentials, logarithms
from ..core.jit import inner_kernel, kernel
from .transforms import TransformCode

GRADES, GAINS, ORDER = 0, 1, 2
"""What the truth g is: y, 2^y − 1, or the number of documents that y puts below."""

SAFE = 300.0
"""Transformed scores of a list that are no further apart than e to this power can be summed as they are."""

SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""

EXPONENTIAL, LINEAR = int(TransformCode.EXPONENTIAL), int(TransformCode.LINEAR)


@inner_kernel
def log_phi(code, a, b, x):
    """log φ(x)."""
    if code is None or code == EXPONENTIAL:
        return a * x
    if code == LINEAR:
        return math.log(a * x + b)
    return min(a * x, 0.0) - math.log1p(math.exp(-abs(a * x)))


@kernel
def target_table(truth, code, a, b, out):
    """out[top, y] = φ(g(y))/φ(g(top)) for grades y ≤ top: the target of a list with that best grade."""
    for top in range(WHOLE):
        for y in range(WHOLE):
            low, high = (float(y), float(top)) if truth == GRADES else (2.0**y - 1.0, 2.0**top - 1.0)
            out[top, y] = math.exp(log_phi(code, a, b, low) - log_phi(code, a, b, high)) if y <= top else 0.0


@inner_kernel
def smallest(x):
    """min x, in four strands."""
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


@inner_kernel
def transformed(code, a, b, s, u, v, slope):
    """u = log φ(s), v = φ(s)/e^shift, slope = u'(s); return the shift, or NaN where φ of a score is not positive.

    The shift keeps v from overflowing and vanishing. The slope of the exponential is a everywhere and not filled in.
    """
    n = len(s)
    if code is None or code == EXPONENTIAL:
        top = largest(s)
        for i in range(n):
            u[i] = a * s[i]
            v[i] = a * (s[i] - top)
        exponentials(v)
        return a * top
    if code == LINEAR:
        for i in range(n):
            v[i] = a * s[i] + b
        if not (smallest(v) >= SMALLEST and largest(v) < math.inf):
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


@inner_kernel
def grade_order(y, ints, work):
    """ints[0] = documents of one list by falling y, ties as they stand; return whether some are equal, but not all."""
    order, level, place, spare = ints[0], ints[1], ints[2], ints[3]
    levels = number_grades(y, level, work[0], order, work[1], spare)
    by_level(level, len(y), levels, place, order)
    ties, same = False, True
    for p in range(1, len(y)):
        equal = level[order[p]] == level[order[p - 1]]
        ties, same = ties or equal, same and equal
    return ties and not same


@inner_kernel
def log_target(truth, code, a, b, y, ints, work, out):
    """out = log φ(g) of one list; return whether it cannot be taken: an order with ties, or a gain past all numbers.

    A list of equal grades is no order with ties.
    """
    if ints is not None and truth == ORDER:
        if grade_order(y, ints, work):
            return True
        for p in range(len(y)):
            out[ints[0, p]] = log_phi(code, a, b, float(len(y) - 1 - p))
    else:
        for i in range(len(y)):
            out[i] = log_phi(code, a, b, y[i] if truth == GRADES else 2.0 ** y[i] - 1.0)
    return not math.isfinite(largest(out))


@inner_kernel
def fill_target(truth, code, a, b, table, y, ints, work, out):
    """out = φ(g)/max φ(g) of one list; return whether it cannot be taken."""
    levels = whole_levels(y)
    if truth != ORDER and levels > 0:
        row = (levels - 1) * WHOLE
        for i in range(len(y)):
            out[i] = table[row + np.uint8(y[i])]
        return False
    if log_target(truth, code, a, b, y, ints, work, out):
        return True
    top = largest(out)
    for i in range(len(y)):
        out[i] = math.exp(out[i] - top)
    return False


@inner_kernel
def chain(code, a, slope, grad, curve):
    """Go from u to the scores: ∂ℓ/∂s = u' ∂ℓ/∂u."""
    if code is not None and code != EXPONENTIAL:
        for i in range(len(grad)):
            grad[i] *= slope[i]
        for i in range(len(curve)):
            curve[i] *= slope[i] * slope[i]
    elif a != 1.0:
        for i in range(len(grad)):
            grad[i] *= a
        for i in range(len(curve)):
            curve[i] *= a * a
