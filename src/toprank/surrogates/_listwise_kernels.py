# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What ListNet, ListMLE and RankCosine share: transformed scores, the target of a list, the chain rule.

All of them work on u = log φ(s), where nothing overflows, and apply the chain rule at the end. `curve` is filled with
the diagonal of the Gauss-Newton matrix (the part of the Hessian that is never negative) unless its length is 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..core.jit import kernel
from ..core.sorting import grade_levels, order_by_level
from ..measures._list_kernels import gain_of
from ..measures.presets import Gain
from .transforms import TransformCode

GRADES, GAINS, ORDER = 0, 1, 2
"""What the truth g is: y, 2^y − 1, or the number of documents that y puts below."""

PLAIN_RANGE = 300.0
"""Where log φ of the scores of a list differs by less than this, φ can be summed as it is, without logarithms."""

SMALLEST = 2.2250738585072014e-308
"""The smallest normal number."""

EXP2 = int(Gain.EXP2)
EXPONENTIAL, LINEAR = int(TransformCode.EXPONENTIAL), int(TransformCode.LINEAR)


class ListwiseRule(NamedTuple):
    """What a listwise loss has besides scores and grades."""

    truth: int
    """GRADES, GAINS or ORDER."""
    transform: int
    """The code of φ, and its parameters a and b."""
    a: float
    b: float


@kernel
def log_phi(rule, x):
    """log φ(x)."""
    if rule.transform == EXPONENTIAL:
        return rule.a * x
    if rule.transform == LINEAR:
        return math.log(rule.a * x + rule.b)
    return min(rule.a * x, 0.0) - math.log1p(math.exp(-abs(rule.a * x)))


@kernel
def largest(x):
    """max x, −∞ of no numbers."""
    top = -math.inf
    for i in range(len(x)):
        top = x[i] if x[i] > top else top
    return top


@kernel
def smallest(x):
    """min x, ∞ of no numbers."""
    low = math.inf
    for i in range(len(x)):
        low = x[i] if x[i] < low else low
    return low


@kernel
def transform_scores(rule, s, u, v, slope):
    """u = log φ(s), v = φ(s)/e^shift, slope = u'(s); return the shift, or NaN where φ of a score is not above 0.

    The shift keeps v from overflowing and from rounding to 0.
    """
    if rule.transform == EXPONENTIAL:
        top = largest(s)
        for i in range(len(s)):
            u[i] = rule.a * s[i]
            v[i] = math.exp(rule.a * (s[i] - top))
            slope[i] = rule.a
        return rule.a * top
    if rule.transform == LINEAR:
        for i in range(len(s)):
            v[i] = rule.a * s[i] + rule.b
            if not SMALLEST <= v[i] < math.inf:
                return math.nan
            u[i] = math.log(v[i])
            slope[i] = rule.a / v[i]
        return 0.0
    top = rule.a * largest(s)
    for i in range(len(s)):  # φ = 1/(1 + e^{−as}) without overflow, whatever the sign of s
        e = math.exp(-abs(rule.a * s[i]))
        v[i] = (1.0 if s[i] >= 0 else e) / (1.0 + e)
        slope[i] = rule.a * (e if s[i] >= 0 else 1.0) / (1.0 + e)
        u[i] = min(rule.a * s[i], 0.0) - math.log1p(e)
        if top < -PLAIN_RANGE:  # φ would round to 0; here it equals e^{a s} to the last digit
            v[i] = math.exp(u[i] - top)
    return top if top < -PLAIN_RANGE else 0.0


@kernel
def order_by_grade(y):
    """Return the documents by falling y, ties by row, and whether some y are equal, but not all."""
    n = len(y)
    level = np.empty(n, np.int64)
    order = order_by_level(level, grade_levels(y, level))
    equal = 0
    for p in range(1, n):
        equal += y[order[p]] == y[order[p - 1]]
    return order, 0 < equal < n - 1


@kernel
def truth_of_levels(rule, y, level):
    """Number the truth g of one list from 0 upwards in `level`; return log φ(g) of each level.

    It is −∞ of a level without documents. Nothing is returned where the list must be refused: an order with ties, or a
    gain that overflows. A list whose grades are all equal is not refused; its order is that of the rows.
    """
    n = len(y)
    if rule.truth == ORDER:
        order, ties = order_by_grade(y)
        log_target = np.empty(0 if ties else n)
        for p in range(len(log_target)):
            level[order[p]] = n - 1 - p
            log_target[n - 1 - p] = log_phi(rule, float(n - 1 - p))
        return log_target
    log_target, highest = np.full(grade_levels(y, level), -math.inf), 0.0
    for i in range(n):
        g = level[i]
        if log_target[g] == -math.inf:
            log_target[g] = log_phi(rule, y[i] if rule.truth == GRADES else gain_of(y[i], EXP2))
            highest = max(highest, log_target[g])
    return log_target if highest < math.inf else log_target[:0]


@kernel
def fill_log_target(rule, y, out):
    """out = log φ(g) of one list; return whether it must be refused (`truth_of_levels`)."""
    level = np.empty(len(y), np.int64)
    log_target = truth_of_levels(rule, y, level)
    if len(log_target) > 0:
        for i in range(len(y)):
            out[i] = log_target[level[i]]
    return len(log_target) == 0


@kernel
def fill_target(rule, y, out):
    """out = φ(g)/max φ(g) of one list; return whether it must be refused (`truth_of_levels`)."""
    level = np.empty(len(y), np.int64)
    target = truth_of_levels(rule, y, level)
    top = largest(target)
    for g in range(len(target)):
        target[g] = math.exp(target[g] - top)
    if len(target) > 0:
        for i in range(len(y)):
            out[i] = target[level[i]]
    return len(target) == 0


@kernel
def apply_chain_rule(slope, grad, curve):
    """Turn derivatives in u into derivatives in the scores: ∂ℓ/∂s = u' ∂ℓ/∂u."""
    for i in range(len(grad)):
        grad[i] *= slope[i]
    for i in range(len(curve)):
        curve[i] *= slope[i] * slope[i]
