"""SLAM, minimax and their learners straight from the definitions: double loops over documents."""

from __future__ import annotations

import math


def positions(scores, grades, within):
    """Documents by grade, then by index or by score (ties by index)."""
    if within == "index":
        return sorted(range(len(grades)), key=lambda i: (-grades[i], i))
    return sorted(range(len(grades)), key=lambda i: (-grades[i], -scores[i], i))


def tight_weights(scores, grades, above=0.0, within="index"):
    """(m − r)/(r (m − r + i)) for the i-th relevant document."""
    m = len(grades)
    relevant = [i for i in range(m) if grades[i] > above]
    if within == "score":
        relevant.sort(key=lambda i: (-scores[i], i))
    r, v = len(relevant), [0.0] * m
    for place, i in enumerate(relevant, 1):
        v[i] = (m - r) / (r * (m - r + place))
    return v


def slam_weights(scores, grades, kind, k=None, above=0.0, within="index"):
    """(weights, grades as compared): Eq. 10 for AP, Eq. 11 and 24 for NDCG."""
    m = len(grades)
    if kind == "map":
        relevant = [1 if g > above else 0 for g in grades]
        r = sum(relevant)
        return [x / r if r else 0.0 for x in relevant], relevant
    k = m if k is None else k
    order = positions(scores, grades, within)
    v = [0.0] * m
    for place, i in enumerate(order[:k]):
        v[i] = (2.0 ** grades[i] - 1) / math.log2(place + 2)
    z = sum(v)
    return [x / z if z else 0.0 for x in v], list(grades)


def slam(scores, grades, kind, k=None, above=0.0, within="index", margin=1.0):
    """Σ_i v_i max(0, max_j 1(R_i > R_j)(Δ + s_j − s_i))."""
    v, g = slam_weights(scores, grades, kind, k, above, within)
    total = 0.0
    for i in range(len(g)):
        hinges = [margin + scores[j] - scores[i] for j in range(len(g)) if g[i] > g[j]]
        total += v[i] * max([0.0, *hinges])
    return total


def minimax(scores, grades, margin=1.0):
    """max over pairs R_i > R_j of (Δ + s_j − s_i)₊."""
    n = len(grades)
    pairs = [margin + scores[j] - scores[i] for i in range(n) for j in range(n) if grades[i] > grades[j]]
    return max([0.0, *pairs])


def ndcg(scores, grades, k=None):
    m = len(grades)
    k = m if k is None else k
    order = sorted(range(m), key=lambda i: (-scores[i], i))
    ideal = sorted(grades, reverse=True)
    dcg = sum((2.0 ** grades[i] - 1) / math.log2(p + 2) for p, i in enumerate(order[:k]))
    best = sum((2.0**g - 1) / math.log2(p + 2) for p, g in enumerate(ideal[:k]))
    return dcg / best if best else 0.0


def average_precision(scores, grades, above=0.0):
    order = sorted(range(len(grades)), key=lambda i: (-scores[i], i))
    hits, total = 0, 0.0
    for p, i in enumerate(order):
        if grades[i] > above:
            hits += 1
            total += hits / (p + 1)
    return total / hits if hits else 0.0
