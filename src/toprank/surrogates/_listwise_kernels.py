# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What ListNet, ListMLE and RankCosine share: transformed scores, the target of a list, the chain rule.

All of them work on u = log φ(s), where nothing overflows, and apply the chain rule at the end. `curve` is filled with
the diagonal of the Gauss-Newton matrix (the part of the Hessian that is never negative) unless its length is 0. A list
is handled as slices of its own: the compiler then knows that no index is negative, and works on several at a time.

Codes: (count of numbers, truth, transform, then the loss's own); numbers: (a, b, table of targets). A transform of None
is the exponential, and `ints` of None say that the truth is no order: the branches for the others are not compiled.
`ints` and `work` are scratch arrays.
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

PLAIN_RANGE = 300.0
"""Where log φ of the scores of a list differs by less than this, φ can be summed as it is, without logarithms."""

SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""

EXPONENTIAL, LINEAR = int(TransformCode.EXPONENTIAL), int(TransformCode.LINEAR)


@inner_kernel
def log_phi(transform, a, b, x):
    """log φ(x)."""
    if transform is None or transform == EXPONENTIAL:
        return a * x
    if transform == LINEAR:
        return math.log(a * x + b)
    return min(a * x, 0.0) - math.log1p(math.exp(-abs(a * x)))


@kernel
def target_table(truth, transform, a, b, out):
    """out[best, y] = φ(g(y))/φ(g(best)) for grades y ≤ best: the targets of a list with that best grade."""
    for best in range(WHOLE):
        for y in range(WHOLE):
            low, high = (float(y), float(best)) if truth == GRADES else (2.0**y - 1.0, 2.0**best - 1.0)
            out[best, y] = (
                math.exp(log_phi(transform, a, b, low) - log_phi(transform, a, b, high)) if y <= best else 0.0
            )


@inner_kernel
def smallest(x):
    """min x, by four minima that are computed at the same time."""
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
def transform_scores(transform, a, b, s, u, v, slope):
    """u = log φ(s), v = φ(s)/e^shift, slope = u'(s); return the shift, or NaN where φ of a score is not above 0.

    The shift keeps v from overflowing and from rounding to 0. The slope of the exponential, a, is not written.
    """
    n = len(s)
    if transform is None or transform == EXPONENTIAL:
        top = largest(s)
        for i in range(n):
            u[i] = a * s[i]
            v[i] = a * (s[i] - top)
        exponentials(v)
        return a * top
    if transform == LINEAR:
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
    if top < -PLAIN_RANGE:  # φ would round to 0; here it equals e^{a s} to the last digit
        for i in range(n):
            v[i] = u[i] - top
        exponentials(v)
        return top
    return 0.0


@inner_kernel
def order_by_grade(y, ints, work):
    """ints[0] = documents of one list by falling y, ties by row; return whether some y are equal, but not all."""
    order, level, place, spare = ints[0], ints[1], ints[2], ints[3]
    levels = number_grades(y, level, work[0], order, work[1], spare)
    by_level(level, len(y), levels, place, order)
    ties, same = False, True
    for p in range(1, len(y)):
        equal = level[order[p]] == level[order[p - 1]]
        ties, same = ties or equal, same and equal
    return ties and not same


@inner_kernel
def fill_log_target(truth, transform, a, b, y, ints, work, out):
    """out = log φ(g) of one list; return whether it must be refused: an order with ties, or a gain that overflows.

    A list whose grades are all equal is not refused.
    """
    if ints is not None and truth == ORDER:
        if order_by_grade(y, ints, work):
            return True
        for p in range(len(y)):
            out[ints[0, p]] = log_phi(transform, a, b, float(len(y) - 1 - p))
    else:
        for i in range(len(y)):
            out[i] = log_phi(transform, a, b, y[i] if truth == GRADES else 2.0 ** y[i] - 1.0)
    return not math.isfinite(largest(out))


@inner_kernel
def fill_target(truth, transform, a, b, table, y, ints, work, out):
    """out = φ(g)/max φ(g) of one list; return whether it must be refused."""
    levels = whole_levels(y)
    if truth != ORDER and levels > 0:
        row = (levels - 1) * WHOLE
        for i in range(len(y)):
            out[i] = table[row + np.uint8(y[i])]
        return False
    if fill_log_target(truth, transform, a, b, y, ints, work, out):
        return True
    top = largest(out)
    for i in range(len(y)):
        out[i] = math.exp(out[i] - top)
    return False


@inner_kernel
def apply_chain_rule(transform, a, slope, grad, curve):
    """Turn derivatives in u into derivatives in the scores: ∂ℓ/∂s = u' ∂ℓ/∂u."""
    if transform is not None and transform != EXPONENTIAL:
        for i in range(len(grad)):
            grad[i] *= slope[i]
        for i in range(len(curve)):
            curve[i] *= slope[i] * slope[i]
    elif a != 1.0:
        for i in range(len(grad)):
            grad[i] *= a
        for i in range(len(curve)):
            curve[i] *= a * a
