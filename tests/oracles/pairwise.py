"""Losses over explicit lists of document pairs."""

from __future__ import annotations


def pairs(grades):
    """Return (i, j) for every pair in which i should come before j."""
    n = len(grades)
    return [(i, j) for i in range(n) for j in range(n) if grades[i] > grades[j]]


def hinge(scores, grades, squared=False):
    """Return Σ [1 − (s_i − s_j)]₊ (or squares) over the pairs, and its gradient."""
    value, grad = 0.0, [0.0] * len(scores)
    for i, j in pairs(grades):
        slack = max(1 - (scores[i] - scores[j]), 0.0)
        value += slack**2 if squared else slack
        slope = (2 * slack if squared else 1.0) if slack > 0 else 0.0
        grad[i] -= slope
        grad[j] += slope
    return value, grad


def hessian_product(scores, grades, v):
    """Return the second derivative of the sum of squares times v: 2 (v_i − v_j) on both ends of each active pair."""
    out = [0.0] * len(scores)
    for i, j in pairs(grades):
        if scores[i] - scores[j] < 1:
            out[i] += 2 * (v[i] - v[j])
            out[j] += 2 * (v[j] - v[i])
    return out
