"""Algorithms 2 and 3 and online ListNet as the paper prints them, in plain Python lists."""

from __future__ import annotations

import math
from itertools import permutations

from .slam import average_precision, ndcg, slam_weights


def run(lists, algorithm, kind, k=None, eta=1.0, margin=1.0):
    """Play (X, grades) lists; return the weights after each round and (measure, surrogate, mistake, ‖z‖²) rows."""
    d = len(lists[0][0][0])
    w = [0.0] * d
    history, rows = [], []
    for X, grades in lists:
        s = [sum(a * b for a, b in zip(x, w, strict=True)) for x in X]
        measure = expected(s, lambda s, y=grades: ndcg(s, y, k) if kind == "ndcg" else average_precision(s, y))
        mistake = measure < 1 - 1e-12
        m = len(grades)
        g, value = [0.0] * m, 0.0
        if algorithm == "listnet":
            p, t = softmax(s), softmax(grades)
            g = [a - b for a, b in zip(p, t, strict=True)]
            value = -sum(b * math.log(a) for a, b in zip(p, t, strict=True))
        elif mistake and algorithm == "slam":
            v, labels = slam_weights(s, grades, kind, k, within="score")
            for i in range(m):
                lower = [j for j in range(m) if labels[j] < labels[i]]
                if lower:
                    j = max(lower, key=lambda j: (s[j], -j))
                    hinge = margin + s[j] - s[i]
                    if hinge > 0:
                        value += v[i] * hinge
                        g[i] -= v[i]
                        g[j] += v[i]
        elif mistake:
            labels = [float(y > 0) for y in grades] if kind == "map" else grades
            pairs = [(s[j] - s[i], -i, -j) for i in range(m) for j in range(m) if labels[i] > labels[j]]
            gap = max(pair[0] for pair in pairs)
            value = max(0.0, margin + gap)
            _, i, j = max(pairs)
            g[-i] -= 1.0
            g[-j] += 1.0
        z = [sum(g[i] * X[i][c] for i in range(m)) for c in range(d)]
        w = [a - eta * b for a, b in zip(w, z, strict=True)]
        history.append(w)
        rows.append((measure, value, float(mistake), sum(b * b for b in z)))
    return history, rows


def expected(s, value):
    """The mean of a measure over all orders of documents with equal scores."""
    m = len(s)
    if len(set(s)) == m:
        return value(s)
    orders = {tuple(sorted(range(m), key=lambda i: (-s[i], p[i]))) for p in permutations(range(m))}
    total = 0.0
    for order in orders:
        scores = [0.0] * m
        for rank, i in enumerate(order):
            scores[i] = float(m - rank)
        total += value(scores)
    return total / len(orders)


def softmax(x):
    top = max(x)
    e = [math.exp(a - top) for a in x]
    return [a / sum(e) for a in e]
