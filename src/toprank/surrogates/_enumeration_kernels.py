# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Type-two bounds by enumeration: every order of a list's grades, or every ranking."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from ..core.jit import kernel


class Phi(IntEnum):
    """The function of −(F(π*) − F(π)) in a type-two bound."""

    EXPONENTIAL = 0
    LOGISTIC = 1
    HINGE = 2
    MARGIN = 3
    STEP = 4


EXPONENTIAL, LOGISTIC, HINGE = int(Phi.EXPONENTIAL), int(Phi.LOGISTIC), int(Phi.HINGE)
MARGIN, STEP = int(Phi.MARGIN), int(Phi.STEP)


@kernel
def next_pattern(pattern):
    """Step to the next arrangement in lexicographic order; False after the last."""
    i = len(pattern) - 2
    while i >= 0 and pattern[i] >= pattern[i + 1]:
        i -= 1
    if i < 0:
        return False
    j = len(pattern) - 1
    while pattern[j] <= pattern[i]:
        j -= 1
    pattern[i], pattern[j] = pattern[j], pattern[i]
    low, high = i + 1, len(pattern) - 1
    while low < high:
        pattern[low], pattern[high] = pattern[high], pattern[low]
        low += 1
        high -= 1
    return True


@kernel
def all_patterns(first, out):
    """Write every arrangement of `first` (which must be sorted) into the rows of `out`."""
    pattern = first.copy()
    for row in range(len(out)):
        out[row] = pattern
        next_pattern(pattern)


@kernel
def pattern_scores(patterns, by_level, starts, graded, out):
    """out_m = F of the ranking with the levels of pattern m, over all pairs or those of different level.

    `by_level[starts[l]:starts[l+1]]` are the scores of level l: falling for the largest F of the pattern, rising for
    the smallest.
    """
    n = patterns.shape[1]
    upcoming = np.empty(len(starts), dtype=np.int64)
    pairs = n * (n - 1.0)
    if graded:
        pairs /= 2
        for level in range(len(starts) - 1):
            size = starts[level + 1] - starts[level]
            pairs -= size * (size - 1) / 2
    for m in range(len(patterns)):
        for level in range(len(starts)):
            upcoming[level] = starts[level]
        total = 0.0
        for p in range(n):
            level = patterns[m, p]
            document = upcoming[level]
            if graded:
                others = n - (starts[level + 1] - starts[level])
                total += (others - 2 * (p - (document - starts[level]))) * by_level[document]
            else:
                total += (n - 1 - 2 * p) * by_level[document]
            upcoming[level] += 1
        out[m] = total / pairs if pairs > 0 else 0.0


@kernel
def phi(form, lost, x):
    """lost · φ(x) at x = F(π) − F(π*), and its derivative in x; the margin form is [lost + x]₊; lost = E(π*) − E(π)."""
    if form == EXPONENTIAL:
        value = lost * math.exp(x)
        return value, value
    if form == LOGISTIC:
        value = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
        return lost * value / math.log(2.0), lost / ((1.0 + math.exp(-x)) * math.log(2.0))
    if form == HINGE:
        return (lost * (1.0 + x), lost) if x > -1.0 else (0.0, 0.0)
    if form == MARGIN:
        return (lost + x, 1.0) if lost + x > 0 else (0.0, 0.0)
    return (lost, 0.0) if x >= 0 else (0.0, 0.0)


@kernel
def largest_loss(form, lost, F, lowest_perfect):
    """Return the largest lost · φ(F(π) − F(π*)) over imperfect patterns, its derivative and its pattern."""
    best, slope, pattern = -math.inf, 0.0, -1
    for m in range(len(lost)):
        if lost[m] > 0:
            value, derivative = phi(form, lost[m], F[m] - lowest_perfect)
            if value > best:
                best, slope, pattern = value, derivative, m
    return best, slope, pattern


@kernel
def sum_over_pairs(form, lost, F, weight):
    """Return Σ over perfect π* and imperfect π of lost · φ(F(π) − F(π*)); weight_π = its derivative in F(π)."""
    total = 0.0
    weight[:] = 0.0
    for m in range(len(lost)):
        if lost[m] > 0:
            for k in range(len(lost)):
                if lost[k] == 0:
                    value, derivative = phi(form, lost[m], F[m] - F[k])
                    total += value
                    weight[m] += derivative
                    weight[k] -= derivative
    return total
