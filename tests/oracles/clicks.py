"""Clicks straight from their definitions: double loops, enumeration, no toprank."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np


def counts(rows):
    """{(query, document, position): [shown, clicked]} of rows (query, document, position, clicked)."""
    table = {}
    for query, document, position, clicked in rows:
        cell = table.setdefault((query, document, position), [0, 0])
        cell[0] += 1
        cell[1] += int(clicked)
    return table


def score_equations(table, p):
    """For each position k, Σ over documents of C_k − C N_k p_k / Σ_l N_l p_l: 0 where p is the harvested estimate."""
    result = {}
    pairs = {(q, d) for q, d, _ in table}
    for query, document in pairs:
        cells = {k: cell for (q, d, k), cell in table.items() if (q, d) == (query, document)}
        total = sum(c for _, c in cells.values())
        mass = sum(n * p[k - 1] for k, (n, _) in cells.items())
        for k, (n, c) in cells.items():
            result[k] = result.get(k, 0.0) + c - total * n * p[k - 1] / mass
    return result


def belief(table, theta, spread):
    """log of the density of θ = log p near a power law × the likelihood of where clicks fell, up to a constant.

    The steps θ_{k+1} − θ_k have mean 0, variance (log (k+1)/k)² + spread², and covariance log (k+1)/k · log (l+1)/l.
    """
    n = len(theta)
    slope = [math.log((k + 1) / k) for k in range(1, n)]
    covariance = np.array([[slope[i] * slope[j] + (i == j) * spread**2 for j in range(n - 1)] for i in range(n - 1)])
    steps = np.array([theta[k + 1] - theta[k] for k in range(n - 1)])
    total = -0.5 * steps @ np.linalg.inv(covariance) @ steps - 0.5 * math.log(np.linalg.det(covariance))
    for pair in {(q, d) for q, d, _ in table}:
        cells = {k: cell for (q, d, k), cell in table.items() if (q, d) == pair}
        mass = sum(n * math.exp(theta[k - 1]) for k, (n, _) in cells.items())
        total += sum(c * (theta[k - 1] - math.log(mass)) for k, (_, c) in cells.items())
    return total


def em_step(table, seen, attracts):
    """One round of expectation and maximisation of the position model, document by document."""
    hits, shown = Counter(), Counter()
    wanted, impressions = Counter(), Counter()
    for (q, d, k), (n, c) in table.items():
        s, a = seen[k - 1], attracts[q, d]
        none = n - c
        hits[k] += c + none * s * (1 - a) / (1 - s * a)
        shown[k] += n
        wanted[q, d] += c + none * a * (1 - s) / (1 - s * a)
        impressions[q, d] += n
    return [hits[k] / shown[k] for k in sorted(shown)], {pair: wanted[pair] / impressions[pair] for pair in wanted}


def expected(value, chances):
    """Mean of value(pattern) over all patterns of independent clicks."""
    total = 0.0
    for pattern in itertools.product((0, 1), repeat=len(chances)):
        chance = math.prod(c if click else 1 - c for click, c in zip(pattern, chances, strict=True))
        total += chance * value(pattern)
    return total


def plackett_luce(scores, ranking):
    """P(the first documents are `ranking`) when each is drawn with odds e^score from what is left."""
    left, chance = set(range(len(scores))), 1.0
    for document in ranking:
        chance *= math.exp(scores[document]) / sum(math.exp(scores[d]) for d in left)
        left.remove(document)
    return chance


def preferences(clicked):
    """(better, worse) places: each click over each place without one up to one after the last click."""
    places = [i for i, click in enumerate(clicked) if click]
    if not places:
        return []
    seen = range(min(places[-1] + 2, len(clicked)))
    return [(i, j) for i in places for j in seen if not clicked[j]]


def pdgd_gradient(scores, shown, clicked):
    """Σ over preferences of ρ e^{s_k} e^{s_l}/(e^{s_k} + e^{s_l})² (e_k − e_l), by both probabilities of the page."""
    grad = [0.0] * len(scores)
    for i, j in preferences(clicked):
        swapped = list(shown)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        here, there = plackett_luce(scores, shown), plackett_luce(scores, swapped)
        k, o = shown[i], shown[j]
        odds = math.exp(scores[k]) * math.exp(scores[o]) / (math.exp(scores[k]) + math.exp(scores[o])) ** 2
        grad[k] += there / (here + there) * odds
        grad[o] -= there / (here + there) * odds
    return grad


def ab_capital(a, b, m, bets, ratio=(1, 1)):
    """Capital of the bet that the first is worth more by m: the bets begin with shares like the cube root of λ.

    Rewards lie in [0, 1]; the k-th group of the first meets the k-th group of the second.
    """
    groups = min(len(a) // ratio[0], len(b) // ratio[1])
    differences = []
    for k in range(groups):
        mine = [a[k * ratio[0] + i] for i in range(ratio[0])]
        theirs = [b[k * ratio[1] + i] for i in range(ratio[1])]
        differences.append(sum(mine) / len(mine) - sum(theirs) / len(theirs))
    result = 0.0
    for bet in bets:
        capital = 1.0
        for k in range(groups):
            before = sum(differences[:k]) / k if k else 0.0
            gain, surprise = (differences[k] - m) / 2, (differences[k] - before) / 2
            capital *= math.exp(bet * gain - (-math.log(1 - bet) - bet) * surprise**2)
        result += bet ** (1 / 3) * capital
    return result / sum(bet ** (1 / 3) for bet in bets)


def ab_lower(a, b, level, bets, places=1000):
    """Go up a grid of differences and stop at the first that is not rejected."""
    last = -1.0
    for j in range(1, 2 * places):
        m = -1 + j / places
        if ab_capital(a, b, m, bets) < 1 / level:
            break
        last = m
    return last
