"""The kernel perceptron without a kernel: every document written out in the space that the kernel stands for."""

from __future__ import annotations

import math

from .perceptrons import run
from .slam import slam_weights


def quadratic(x, gamma, coef0):
    """φ(x) with φ(x)·φ(s) = (γ x·s + c)²: all γ x_i x_j, all √(2γc) x_i, and c."""
    pairs = [gamma * a * b for a in x for b in x]
    return [*pairs, *(math.sqrt(2 * gamma * coef0) * a for a in x), coef0]


def bounds(lists, u, kind, k, eta, margin):
    """Bound and observed value of Lemma 5, Eq. 17 and Corollary 7 for weights u, from their definitions.

    `lists` are (documents, grades) with the documents written out, every list with two grades.
    """
    history, rows = run(lists, "slam", kind, k, eta, margin)
    before = [[0.0] * len(u), *history[:-1]]
    loss, ratios, gaps = 0.0, [1.0], []
    for (X, grades), w, row in zip(lists, before, rows, strict=True):
        at_w, at_u = ([dot(x, vector) for x in X] for vector in (w, u))
        v, labels = slam_weights(at_w, grades, kind, k, within="score")
        positive = [a for a in v if a > 0]
        ratios.append(max(positive) / min(positive))
        for i in range(len(X)):
            lower = [at_u[j] - at_u[i] for j in range(len(X)) if labels[j] < labels[i]]
            gaps += [-gap for gap in lower]
            if row[2] and lower:
                loss += v[i] * max(0.0, margin + max(lower))
    places = max(len(grades) for _, grades in lists)
    radius2 = max(dot(x, x) for X, _ in lists for x in X)
    A = 4 * (places if k is None else min(k, places)) * radius2 * max(ratios)
    surrogate, znorm2 = sum(row[1] for row in rows), sum(row[3] for row in rows)
    norm2, gamma = dot(u, u), min(gaps)
    scaled = eta * A / margin
    separable = norm2 * A / gamma**2 / (scaled * (2 - scaled)) if gamma > 0 and scaled < 2 else math.inf
    return {
        "Lemma 5": (A / margin, max([0.0, *(row[3] / row[1] for row in rows if row[1] > 0)])),
        "Eq. 17": (loss + norm2 / (2 * eta) + eta / 2 * znorm2, surrogate),
        "Corollary 7": (separable, sum(1 - row[0] for row in rows)),
    }


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))
