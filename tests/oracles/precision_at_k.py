"""Precision at the top, straight from the definitions: every labelling is written out, every sum is a loop.

Formulas of "Surrogate Functions for Maximizing Precision at the Top"; nothing here is imported from the library.
"""

from __future__ import annotations

from itertools import combinations
from math import ceil


def order(scores):
    """Rows from best to worst; of equal scores the earlier row first."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def labelings(n, k):
    """All vectors of n zeros and ones with exactly k ones."""
    for chosen in combinations(range(n), k):
        yield [1 if i in chosen else 0 for i in range(n)]


def loss(scores, y, k):
    """Eq. 1: negatives among the k best."""
    return sum(1 - y[i] for i in order(scores)[:k])


def delta(y, guess):
    return sum((1 - a) * b for a, b in zip(y, guess, strict=True))


def common(y, guess):
    return sum(a * b for a, b in zip(y, guess, strict=True))


def inner(a, s):
    return sum(x * z for x, z in zip(a, s, strict=True))


def struct(s, y, k):
    """Eq. 3 over labellings with k ones."""
    return max(delta(y, g) + inner(g, s) - inner(y, s) for g in labelings(len(s), k))


def ramp(s, y, k):
    """Eq. 4."""
    first = max(delta(y, g) + inner(g, s) for g in labelings(len(s), k))
    return first - max(inner(t, s) for t in labelings(len(s), k) if common(y, t) == k)


def maximum(s, y, k):
    """Eq. 6: the second maximum runs over n₊ − k positives outside the candidate."""
    best = None
    for g in labelings(len(s), k):
        free = [i for i in range(len(s)) if y[i] == 1 and g[i] == 0]
        hidden = max(sum(s[i] for i in chosen) for chosen in combinations(free, sum(y) - k))
        value = delta(y, g) + inner(g, s) - inner(y, s) + hidden
        best = value if best is None else max(best, value)
    return best


def avg(s, y, k):
    """Eq. 7: C = (n₊ − K)/(n₊ − k), so that 1/C = (n₊ − k)/(n₊ − K); nothing is missed where K = n₊."""
    n_pos, best = sum(y), None
    for g in labelings(len(s), k):
        missed = sum((1 - b) * a * z for a, b, z in zip(y, g, s, strict=True))
        left = n_pos - common(y, g)
        value = delta(y, g) + inner(g, s) - inner(y, s) + (missed * (n_pos - k) / left if left else 0.0)
        best = value if best is None else max(best, value)
    return best


def weak_margin(s, y, k):
    """Definition 2: the best set of k positives."""
    negatives = [z for a, z in zip(y, s, strict=True) if a == 0]
    positives = [z for a, z in zip(y, s, strict=True) if a == 1]
    return max(min(chosen) for chosen in combinations(positives, k)) - max(negatives)


def k_margin(s, y, k):
    """Definition 5: the worst set of n₊ − k + 1 positives."""
    negatives = [z for a, z in zip(y, s, strict=True) if a == 0]
    positives = [z for a, z in zip(y, s, strict=True) if a == 1]
    size = len(positives) - k + 1
    return min(sum(chosen) / size for chosen in combinations(positives, size)) - max(negatives)


def strong_margin(s, y):
    """Definition 4."""
    return min(z for a, z in zip(y, s, strict=True) if a == 1) - max(z for a, z in zip(y, s, strict=True) if a == 0)


def add(w, c, x):
    return [a + c * b for a, b in zip(w, x, strict=True)]


def dot(w, x):
    return sum(a * b for a, b in zip(w, x, strict=True))


def batch_k(y, k, kappa):
    """k places, at most the positives there are; or the share kappa of the positives, rounded up."""
    return min(k, sum(y)) if k is not None else ceil(round(kappa * sum(y), 9))


def teaches(y):
    return 0 < sum(y) < len(y)


def perceptron_avg(batches, d, k=None, kappa=None):
    """Algorithm 1; returns the iterates w^1, w^2, … and the cumulative mistakes."""
    return _perceptron(batches, d, k, kappa, _missed_share)


def perceptron_max(batches, d, k=None, kappa=None):
    """Algorithm 2: only the best-ranked missed positives, as many as there are false positives."""
    return _perceptron(batches, d, k, kappa, _missed_best)


def _perceptron(batches, d, k, kappa, reward):
    w, iterates, mistakes = [0.0] * d, [], 0
    for X, y in batches:
        if not teaches(y):
            continue
        scores = [dot(w, x) for x in X]
        kt = batch_k(y, k, kappa)
        ranked = order(scores)
        top = set(ranked[:kt])
        wrong = loss(scores, y, kt)
        mistakes += wrong
        if wrong > 0:
            step = [0.0] * d
            for i in top:
                if y[i] == 0:
                    step = add(step, -1.0, X[i])
            for i, share in reward([i for i in ranked if y[i] == 1 and i not in top], wrong):
                step = add(step, share, X[i])
            w = add(w, 1.0, step)
        iterates.append(w)
    return iterates, mistakes


def _missed_share(missed, wrong):
    return [(i, wrong / len(missed)) for i in missed]


def _missed_best(missed, wrong):
    return [(i, 1.0) for i in missed[:wrong]]


def avg_subgradient(s, y, k):
    """Algorithm 4, as coefficients of the rows; of equal values of k' the largest."""
    ranked = order(s)
    positives, negatives = [i for i in ranked if y[i] == 1], [i for i in ranked if y[i] == 0]
    best, chosen = None, None
    for kk in range(k + 1):
        if k - kk > len(negatives):
            continue
        share = (k - kk) / (len(positives) - kk) if kk < k else 0.0
        value = k - kk - share * sum(s[i] for i in positives[kk:]) + sum(s[i] for i in negatives[: k - kk])
        if best is None or value >= best:
            best, chosen = value, kk
            g = [0.0] * len(s)
            for i in negatives[: k - chosen]:
                g[i] = 1.0
            for i in positives[chosen:]:
                g[i] = -share
    return g


def max_subgradient(s, y, k):
    """The active piece of Eq. 6 with the fewest exchanges."""
    ranked = order(s)
    positives, negatives = [i for i in ranked if y[i] == 1], [i for i in ranked if y[i] == 0]
    best, g = 0.0, [0.0] * len(s)
    for j in range(1, min(k, len(negatives)) + 1):
        value = sum(1 + s[negatives[i]] - s[positives[-1 - i]] for i in range(j))
        if value > best:
            best, g = value, [0.0] * len(s)
            for i in range(j):
                g[negatives[i]], g[positives[-1 - i]] = 1.0, -1.0
    return g


def struct_subgradient(s, y, k):
    """ŷ − y for the k rows with the largest s + 1 − y."""
    top = set(order([z + 1 - a for z, a in zip(s, y, strict=True)])[:k])
    return [(1.0 if i in top else 0.0) - y[i] for i in range(len(s))]


def sgd(batches, d, subgradient, *, k=None, kappa=None, eta=1.0, radius=float("inf"), normalize=True):
    """Algorithm 3 with η_t = eta/√t; returns the iterates."""
    w, iterates = [0.0] * d, []
    for X, y in batches:
        if not teaches(y):
            continue
        t, kt = len(iterates) + 1, batch_k(y, k, kappa)
        g = subgradient([dot(w, x) for x in X], y, kt)
        for i, x in enumerate(X):
            w = add(w, -eta / t**0.5 * g[i] / (kt if normalize else 1), x)
        norm = dot(w, w) ** 0.5
        if norm > radius:
            w = [a * radius / norm for a in w]
        iterates.append(w)
    return iterates
