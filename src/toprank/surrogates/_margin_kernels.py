# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Margin losses of lists: walk each list's grades upwards and keep the best score of the lower ones."""

from __future__ import annotations

import math

import numpy as np

from ..core.jit import kernel


@kernel
def by_grade(grades, order):
    """order = documents by descending grade, equal grades in input order."""
    order[:] = np.argsort(-grades, kind="mergesort")


@kernel
def weigh(gains, discount, cut, order, v):
    """v_i = G(R_i) D(pos(i)) / Z for pos(i) ≤ cut, else 0 (Eq. 10, 11, 24); all 0 where no document has a gain."""
    v[:] = 0.0
    total = 0.0
    for p in range(min(cut, len(order))):
        v[order[p]] = gains[order[p]] * discount[p]
        total += v[order[p]]
    if total > 0.0:
        v /= total


@kernel
def list_weights(grades, gains, discount, cut, ptr, v):
    """v = the SLAM weights of every list."""
    order = np.empty(len(grades), np.int64)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        by_grade(grades[a:b], order[a:b])
        weigh(gains[a:b], discount, cut, order[a:b], v[a:b])


@kernel
def ahead(s, i, leader):
    """Return which of two documents comes first in the order by score, ties by index; −1 is no document."""
    return i if leader < 0 or s[i] > s[leader] or (s[i] == s[leader] and i < leader) else leader


@kernel
def slam_lists(scores, grades, gains, discount, cut, margin, ptr, losses, grad):
    """Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i) of every list (Eq. 9) and its subgradient (Eq. 13)."""
    grad[:] = 0.0
    places, weights = np.empty(len(scores), np.int64), np.empty(len(scores))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        s, y, g, order, v = scores[a:b], grades[a:b], grad[a:b], places[a:b], weights[a:b]
        by_grade(y, order)
        weigh(gains[a:b], discount, cut, order, v)
        leader, end = -1, b - a
        while end > 0:
            start = end - 1
            while start > 0 and y[order[start - 1]] == y[order[end - 1]]:
                start -= 1
            if leader >= 0:
                for p in range(start, end):
                    i = order[p]
                    hinge = margin + s[leader] - s[i]
                    if hinge > 0.0:
                        losses[q] += v[i] * hinge
                        g[i] -= v[i]
                        g[leader] += v[i]
            for p in range(start, end):
                leader = ahead(s, order[p], leader)
            end = start


@kernel
def minimax_lists(scores, grades, margin, ptr, losses, grad):
    """max_{R_i>R_j} (Δ + s_j − s_i)₊ of every list (Eq. 27) and its subgradient (Eq. 29)."""
    grad[:] = 0.0
    places = np.empty(len(scores), np.int64)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = 0.0
        s, y, g, order = scores[a:b], grades[a:b], grad[a:b], places[a:b]
        by_grade(y, order)
        gap, upper, lower, leader, end = -math.inf, -1, -1, -1, b - a
        while end > 0:
            start = end - 1
            while start > 0 and y[order[start - 1]] == y[order[end - 1]]:
                start -= 1
            if leader >= 0:
                for p in range(start, end):
                    i = order[p]
                    if s[leader] - s[i] > gap or (s[leader] - s[i] == gap and i < upper):
                        gap, upper, lower = s[leader] - s[i], i, leader
            for p in range(start, end):
                leader = ahead(s, order[p], leader)
            end = start
        if margin + gap > 0.0:
            losses[q] = margin + gap
            g[upper] -= 1.0
            g[lower] += 1.0
