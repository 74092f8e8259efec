"""Type-one and type-two bounds and most violated rankings, by writing out every ranking."""

from __future__ import annotations

from itertools import permutations
from math import exp, inf, log2


def relevance(grades, threshold=1):
    return [int(g >= threshold) for g in grades]


def ap(order, grades):
    """Return the average precision of documents in this order."""
    hits, total = 0, 0.0
    for rank, i in enumerate(order, start=1):
        if grades[i] >= 1:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def ndcg(order, grades, k=inf, letor=False):
    """Return NDCG with gains 2^l − 1; `letor`: ranks 1 and 2 count the same."""

    def discount(rank):
        if rank > k:
            return 0.0
        return (1.0 if rank <= 2 else 1 / log2(rank)) if letor else 1 / log2(rank + 1)

    def dcg(listed):
        return sum((2**g - 1) * discount(rank) for rank, g in enumerate(listed, start=1))

    ideal = dcg(sorted(grades, reverse=True))
    return dcg([grades[i] for i in order]) / ideal if ideal else 0.0


def F(order, scores):
    """Return 1/(n(n−1)) Σ_{k<l} z_kl (s_k − s_l), z = +1 where k is ranked ahead of l."""
    n = len(scores)
    place = {i: p for p, i in enumerate(order)}
    total = 0.0
    for k in range(n):
        for m in range(k + 1, n):
            total += (1 if place[k] < place[m] else -1) * (scores[k] - scores[m])
    return total / (n * (n - 1))


def F_relevant(order, scores, grades):
    """Return 1/(|C||C̄|) Σ over relevant k, irrelevant l of z_kl (s_k − s_l)."""
    place = {i: p for p, i in enumerate(order)}
    good = [i for i, g in enumerate(grades) if g >= 1]
    bad = [i for i, g in enumerate(grades) if g < 1]
    total = sum((1 if place[k] < place[m] else -1) * (scores[k] - scores[m]) for k in good for m in bad)
    return total / (len(good) * len(bad))


def rankings(n):
    return list(permutations(range(n)))


def split(E, n, grades):
    """Return the perfect rankings and the others."""
    values = {order: E(order, grades) for order in rankings(n)}
    best = max(values.values())
    perfect = [o for o in values if values[o] >= best - 1e-12]
    return perfect, [o for o in values if values[o] < best - 1e-12]


PHI = {
    "exponential": exp,
    "logistic": lambda x: log2(1 + exp(x)),
    "hinge": lambda x: max(1 + x, 0.0),
    "step": lambda x: float(x >= 0),
}


def F_graded(order, scores, grades):
    """Return the mean of z_kl (s_k − s_l) over the pairs of different grade."""
    place = {i: p for p, i in enumerate(order)}
    pairs = [(k, m) for k in range(len(scores)) for m in range(k) if grades[k] != grades[m]]
    return sum((1 if place[k] < place[m] else -1) * (scores[k] - scores[m]) for k, m in pairs) / max(len(pairs), 1)


def type_two(E, scores, grades, loss, reduction, graded=False):
    """Return max or sum over perfect π*, other π of (E(π*) − E(π)) φ(−(F(π*) − F(π)))."""
    perfect, others = split(E, len(scores), grades)
    value = {
        order: (E(order, grades), F_graded(order, scores, grades) if graded else F(order, scores))
        for order in perfect + others
    }
    terms = []
    for good in perfect:
        for bad in others:
            lost = value[good][0] - value[bad][0]
            x = value[bad][1] - value[good][1]
            terms.append(max(lost + x, 0.0) if loss == "margin" else lost * PHI[loss](x))
    if not terms:
        return 0.0
    return max(terms) if reduction == "max" else sum(terms)


def structural(E, scores, grades):
    """Return max_π (E(π*) − E(π)) − (F(π*) − F(π)) with F over relevant × irrelevant pairs."""
    good = sorted(range(len(scores)), key=lambda i: -grades[i])
    top = F_relevant(good, scores, grades)
    best = E(good, grades)
    return max(best - E(order, grades) - (top - F_relevant(order, scores, grades)) for order in rankings(len(scores)))


def working_set(F_values, E_values):
    """Return 1/|B| Σ_{B×C} (1 − E(c)) [1 − (F(b) − F(c))]₊; E = 1 marks B."""
    B = [f for f, e in zip(F_values, E_values, strict=True) if e == 1]
    C = [(f, e) for f, e in zip(F_values, E_values, strict=True) if e != 1]
    return sum((1 - e) * max(1 - (b - c), 0.0) for b in B for c, e in C) / len(B) if B else 0.0
