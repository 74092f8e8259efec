"""Penalised minima by trying: a grid of weights that is drawn closer around the best of them."""

from itertools import product
from math import sqrt


def spreads(X, y, qid):
    """The root of the mean variance of each feature in the lists whose grades differ, one number at a time."""
    lists = [[i for i in range(len(qid)) if qid[i] == q] for q in dict.fromkeys(qid)]
    lists = [rows for rows in lists if len({y[i] for i in rows}) > 1]
    found = []
    for j in range(len(X[0])):
        total = 0.0
        for rows in lists:
            mean = sum(X[i][j] for i in rows) / len(rows)
            total += sum((X[i][j] - mean) ** 2 for i in rows) / len(rows)
        found.append(sqrt(total / len(lists)))
    return found


def mean_loss(loss, X, y, qid, w):
    """The mean of `loss(scores, grades)` over the lists whose grades differ."""
    total, count = 0.0, 0
    for q in dict.fromkeys(qid):
        rows = [i for i in range(len(qid)) if qid[i] == q]
        if len({y[i] for i in rows}) > 1:
            scores = [sum(a * b for a, b in zip(X[i], w, strict=True)) for i in rows]
            total, count = total + loss(scores, [y[i] for i in rows]), count + 1
    return total / count


def lowest(value, signs, reach=8.0, points=9, rounds=30):
    """The weights with the lowest value: a grid around 0, then finer ones around the best so far; signs are kept."""
    centre, best = [0.0] * len(signs), value([0.0] * len(signs))
    for _ in range(rounds):
        offsets = [reach * (2 * i / (points - 1) - 1) for i in range(points)]
        for step in product(offsets, repeat=len(signs)):
            w = [c + s for c, s in zip(centre, step, strict=True)]
            w = [max(x, 0.0) if sign > 0 else min(x, 0.0) if sign < 0 else x for x, sign in zip(w, signs, strict=True)]
            found = value(w)
            if found < best:
                best, kept = found, w
                centre = kept
        reach *= 0.6
    return centre, best
