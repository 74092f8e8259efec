"""AdaRank and RankBoost from their figures: explicit pairs, every threshold tried anew; ties in every order."""

from __future__ import annotations

from itertools import chain, groupby, permutations, product
from math import exp, inf, log


def orders_of(scores):
    """Return every order of the documents by falling score: all orders of those that score the same."""
    falling = sorted(range(len(scores)), key=lambda i: -scores[i])
    groups = [list(same) for _, same in groupby(falling, key=lambda i: scores[i])]
    return [list(chain(*parts)) for parts in product(*(permutations(group) for group in groups))]


def expected(E, scores, grades):
    """Return the mean of E(order, grades) over the orders that the scores allow."""
    values = [E(order, grades) for order in orders_of(scores)]
    return sum(values) / len(values)


def expected_precision(scores, relevant, cut=inf):
    """Return Σ over relevant places up to the cut-off of the precision there, as expected, place by place."""
    falling = sorted(range(len(scores)), key=lambda i: -scores[i])
    total, ahead, hits = 0.0, 0, 0
    for _, same in groupby(falling, key=lambda i: scores[i]):
        same = list(same)
        g, r = len(same), sum(bool(relevant[i]) for i in same)
        for p in range(1, g + 1):
            if ahead + p <= cut and r:
                others = (p - 1) * (r - 1) / (g - 1) if g > 1 else 0.0
                total += r / g * (hits + 1 + others) / (ahead + p)
        ahead, hits = ahead + g, hits + r
    return total


def adarank(table, evaluate, rounds):
    """Return (feature, α) of each round; table[q][k] = E of feature k, evaluate(chosen) = E(f_t) of every query."""
    m = len(table)
    P = [1 / m] * m
    chosen = []
    for _ in range(rounds):
        weighted = [sum(P[q] * table[q][k] for q in range(m)) for k in range(len(table[0]))]
        k = max(range(len(weighted)), key=lambda k: (weighted[k], -k))
        alpha = 0.5 * log(
            sum(P[q] * (1 + table[q][k]) for q in range(m)) / sum(P[q] * (1 - table[q][k]) for q in range(m))
        )
        chosen.append((k, alpha))
        E = evaluate(chosen)
        total = sum(exp(-e) for e in E)
        P = [exp(-e) / total for e in E]
    return chosen


def adarank_that_improves(table, evaluate, rounds):
    """The rule "improve": the best candidate that raises the mean of E, else smaller steps; (feature, α) of each round.

    Gains below 1e-12 are rounding.
    """
    m = len(table)
    P, chosen, aside, share, mean = [1 / m] * m, [], set(), 1.0, -inf
    while len(chosen) < rounds and mean < 1 - 1e-12:
        left = [k for k in range(len(table[0])) if k not in aside]
        if not left:
            aside, share = set(), share / 2
            if share < 1 / 64:
                break
            continue
        weighted = {k: sum(P[q] * table[q][k] for q in range(m)) for k in left}
        k = max(left, key=lambda k: (weighted[k], -k))
        alpha = share * 0.5 * log((1 + weighted[k]) / max(1 - weighted[k], 1e-12))
        E = evaluate([*chosen, (k, alpha)])
        if sum(E) / m <= mean * (1 + 1e-12):
            aside.add(k)
            continue
        chosen.append((k, alpha))
        aside, mean = set(), sum(E) / m
        total = sum(exp(-e) for e in E)
        P = [exp(-e) / total for e in E]
        if weighted[k] >= 1 - 1e-12:
            break
    return chosen


def rankboost(X, y, qid, rounds):
    """Return (column, rows above the threshold, α, Σ D after the round) of each round."""
    n = len(X)
    D = {(i, j): 1.0 for i in range(n) for j in range(n) if qid[i] == qid[j] and y[i] > y[j]}
    start = len(D)
    D = dict.fromkeys(D, 1 / start)
    loss, found = 1.0, []
    for _ in range(rounds):
        best = None
        for k in range(len(X[0])):
            values = sorted({row[k] for row in X})
            for theta in values[:-1]:
                h = [float(row[k] > theta) for row in X]
                r = sum(weight * (h[i] - h[j]) for (i, j), weight in D.items())
                if best is None or abs(r) > abs(best[0]) + 1e-12:
                    best = (r, k, h)
        r, k, h = best
        alpha = 0.5 * log((1 + r) / (1 - r))
        D = {(i, j): weight * exp(-alpha * (h[i] - h[j])) for (i, j), weight in D.items()}
        Z = sum(D.values())
        loss *= Z
        D = {pair: weight / Z for pair, weight in D.items()}
        found.append((k, [i for i in range(n) if h[i]], alpha, loss))
    return found
