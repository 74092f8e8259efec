"""Listwise losses by their definitions, one document and one permutation at a time."""

from decimal import Decimal, getcontext
from itertools import permutations
from math import exp, log, prod, sqrt

getcontext().prec = 60


def phi(name, a, b=0.0):
    """The transform of that name as a function of one number."""
    return {
        "linear": lambda x: a * x + b,
        "exponential": lambda x: exp(a * x),
        "sigmoid": lambda x: 1 / (1 + exp(-a * x)),
    }[name]


def exact_phi(name, a, b=0.0):
    """The same with 60 digits and no overflow."""
    a, b = Decimal(a), Decimal(b)
    return {
        "linear": lambda x: a * Decimal(x) + b,
        "exponential": lambda x: (a * Decimal(x)).exp(),
        "sigmoid": lambda x: 1 / (1 + (-a * Decimal(x)).exp()),
    }[name]


def softmax(values):
    top = max(values)
    total = sum(exp(v - top) for v in values)
    return [exp(v - top) / total for v in values]


def listnet_top_one(scores, truth):
    """−Σ_i P_truth(i) log P_scores(i)."""
    return -sum(p * log(q) for p, q in zip(softmax(truth), softmax(scores), strict=True))


def plackett_luce(values, order):
    """P(order) = Π_i φ_i / Σ_{j≥i} φ_j for already transformed values; a beginning of an order is fine too."""
    left, p = list(range(len(values))), []
    for i in order:
        p.append(values[i] / sum(values[j] for j in left))
        left.remove(i)
    return prod(p)


def listnet(scores, truth, transform, k):
    """−Σ_π P_g(π) log P_s(π) over all beginnings π of k documents."""
    f, g = [transform(s) for s in scores], [transform(t) for t in truth]
    beginnings = permutations(range(len(scores)), int(min(k, len(scores))))
    return -sum(plackett_luce(g, order) * log(plackett_luce(f, order)) for order in beginnings)


def listmle(scores, order, transform):
    """−log P_s(order)."""
    return -log(plackett_luce([transform(s) for s in scores], order))


def exact_listmle(scores, order, transform):
    """−log P_s(order) with 60 digits."""
    values = [transform(s) for s in scores]
    return float(-sum((values[i] / sum(values[j] for j in order[p:])).ln() for p, i in enumerate(order)))


def rank_cosine(scores, truth, transform):
    """½ (1 − cos(φ(g), φ(s)))."""
    f, g = [transform(s) for s in scores], [transform(t) for t in truth]
    inner = sum(x * y for x, y in zip(f, g, strict=True))
    return 0.5 * (1 - inner / sqrt(sum(x * x for x in f)) / sqrt(sum(y * y for y in g)))


def true_scores(y, truth):
    """g: the grades, the gains, or how many documents stand below."""
    if truth == "grades":
        return list(y)
    if truth == "gains":
        return [2**grade - 1 for grade in y]
    return [sum(other < grade for other in y) for grade in y]


def order_of(y):
    """Documents from the highest to the lowest y, ties in their order."""
    return sorted(range(len(y)), key=lambda i: -y[i])
