"""Measures of one list by their definitions: every allowed order is written out, every sum is a loop.

Nothing here is fast or shared with the library. A tie rule is a set of orders; a measure under the rule "average" is
the mean of its value over all of them, so tied groups must be short.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby, permutations, product
from math import ceil, factorial, inf, log2, nan, prod

BLANK = {"zero": 0.0, "one": 1.0, "skip": nan}


def orders(scores, grades, ties, ids=None):
    """Return every order of the documents that the tie rule allows."""
    n = len(scores)
    if ties == "input":
        return [sorted(range(n), key=lambda i: -scores[i])]
    if ties == "id":
        return [sorted(sorted(range(n), key=lambda i: ids[i], reverse=True), key=lambda i: -scores[i])]
    if ties == "worst":
        return [sorted(sorted(range(n), key=lambda i: grades[i]), key=lambda i: -scores[i])]
    if ties == "best":
        return [sorted(sorted(range(n), key=lambda i: -grades[i]), key=lambda i: -scores[i])]
    assert ties == "average"
    tied = [list(group) for _, group in groupby(orders(scores, grades, "input")[0], key=lambda i: scores[i])]
    assert prod(factorial(len(group)) for group in tied) <= 50_000, "too many orders to write out"
    return [[i for part in parts for i in part] for parts in product(*(permutations(group) for group in tied))]


def average(values):
    values = list(values)
    return sum(values) / len(values)


def gain_of(grade, gain):
    return {"exp2": 2.0**grade - 1, "linear": grade}[gain]


def discount_at(rank, discount):
    """Discount of a rank that starts at 1."""
    if discount == "letor":
        return 1.0 if rank <= 2 else 1 / log2(rank)
    return 1 / log2(rank + 1)


def _dcg_of(order, grades, k, gain, discount):
    total = 0.0
    for rank, i in enumerate(order, start=1):
        if rank <= k:
            total += gain_of(grades[i], gain) * discount_at(rank, discount)
    return total


def dcg(scores, grades, ids=None, *, k, gain, discount, ties, short):
    if short == "zero" and k is not None and len(scores) < k:
        return 0.0
    k = inf if k is None else k
    return average(_dcg_of(order, grades, k, gain, discount) for order in orders(scores, grades, ties, ids))


def ndcg(scores, grades, ids=None, *, k, gain, discount, ties, short, blank):
    if all(gain_of(grade, gain) == 0 for grade in grades):
        return BLANK[blank]
    best = dcg(grades, grades, k=k, gain=gain, discount=discount, ties="input", short="shorten")
    return dcg(scores, grades, ids, k=k, gain=gain, discount=discount, ties=ties, short=short) / best


def mean_ndcg(scores, grades, ids=None, *, k, **rules):
    """Mean of NDCG@1, …, NDCG@k; all positions of the list where there is no cut-off."""
    n = len(scores)
    cuts = range(1, (n if k is None or (k > n and rules["short"] == "shorten") else k) + 1)
    return average([ndcg(scores, grades, ids, k=cut, **rules) for cut in cuts]) if cuts else BLANK[rules["blank"]]


def _hits(order, grades, k, above):
    return sum(1 for rank, i in enumerate(order, start=1) if rank <= k and grades[i] > above)


def p(scores, grades, ids=None, *, k, above, ties, short):
    n = len(scores)
    places = n if k is None or (short == "shorten" and k > n) else k
    if n == 0 or (short == "zero" and k is not None and k > n):
        return 0.0
    return average(_hits(order, grades, places, above) / places for order in orders(scores, grades, ties, ids))


def recall(scores, grades, ids=None, *, k, above, ties, blank):
    n_relevant = sum(1 for grade in grades if grade > above)
    if n_relevant == 0:
        return BLANK[blank]
    k = inf if k is None else k
    return average(_hits(order, grades, k, above) / n_relevant for order in orders(scores, grades, ties, ids))


def wta(scores, grades, ids=None, *, above, ties):
    return p(scores, grades, ids, k=1, above=above, ties=ties, short="pad")


def success(scores, grades, ids=None, *, k, above, ties):
    k = inf if k is None else k
    return average(float(_hits(order, grades, k, above) > 0) for order in orders(scores, grades, ties, ids))


def p_at_share(scores, grades, ids=None, *, share, above, ties, blank):
    n_relevant = sum(1 for grade in grades if grade > above)
    if n_relevant == 0:
        return BLANK[blank]
    cut = ceil(Fraction(str(share)) * n_relevant)  # as the number is written: 0.07 of 100 documents is 7
    return average(_hits(order, grades, cut, above) / cut for order in orders(scores, grades, ties, ids))


def rprec(scores, grades, ids=None, **rules):
    return p_at_share(scores, grades, ids, share=1, **rules)


def bpref(scores, grades, ids=None, *, above, ties, blank, unopposed):
    relevant = [i for i in range(len(grades)) if grades[i] > above]
    irrelevant = [i for i in range(len(grades)) if 0 <= grades[i] <= above]
    if not relevant:
        return BLANK[blank]
    if not irrelevant:
        return BLANK[unopposed]

    def one(order):
        total = 0.0
        for i in relevant:
            ahead = sum(1 for j in irrelevant if order.index(j) < order.index(i))
            total += 1 - min(ahead, len(relevant)) / min(len(relevant), len(irrelevant)) if ahead else 1.0
        return total / len(relevant)

    return average(one(order) for order in orders(scores, grades, ties, ids))


def judged(scores, grades, ids=None, *, k, ties):
    places = len(scores) if k is None else min(k, len(scores))
    if places == 0:
        return 0.0
    return average(
        sum(1 for i in order[:places] if grades[i] >= 0) / places for order in orders(scores, grades, ties, ids)
    )


def ap(scores, grades, ids=None, *, k, above, ties, norm, blank):
    n_relevant = sum(1 for grade in grades if grade > above)
    if n_relevant == 0:
        return BLANK[blank]
    k = len(scores) if k is None else min(k, len(scores))
    divisor = n_relevant if norm == "all" else min(n_relevant, k)
    if ties == "shared":
        # Tied documents stand at the last place of their group: precision over everything scored at least as high.
        total = 0.0
        for i in range(len(scores)):
            above_or_tied = [j for j in range(len(scores)) if scores[j] >= scores[i]]
            if grades[i] > above and len(above_or_tied) <= k:
                total += sum(1 for j in above_or_tied if grades[j] > above) / len(above_or_tied)
        return total / divisor

    def one(order):
        relevant = [rank for rank, i in enumerate(order[:k], start=1) if grades[i] > above]
        return sum(_hits(order, grades, rank, above) / rank for rank in relevant) / divisor

    return average(one(order) for order in orders(scores, grades, ties, ids))


def mrr(scores, grades, ids=None, *, k, above, ties, blank):
    if not any(grade > above for grade in grades):
        return BLANK[blank]

    def one(order):
        rank = next(rank for rank, i in enumerate(order, start=1) if grades[i] > above)
        return 1 / rank if k is None or rank <= k else 0.0

    return average(one(order) for order in orders(scores, grades, ties, ids))


def rbp(scores, grades, ids=None, *, k, p, above, ties, graded):
    k = inf if k is None else k

    def one(order):
        total = 0.0
        for rank, i in enumerate(order, start=1):
            if rank <= k and grades[i] > above:
                total += (1 - p) * p ** (rank - 1) * (grades[i] if graded else 1.0)
        return total

    return average(one(order) for order in orders(scores, grades, ties, ids))


def err(scores, grades, ids=None, *, k, gain, max_grade, ties):
    k = inf if k is None else k

    def one(order):
        total = 0.0
        for rank, i in enumerate(order, start=1):
            if rank <= k:
                stops_here = stop_probability(grades[i], gain, max_grade)
                for j in order[: rank - 1]:
                    stops_here *= 1 - stop_probability(grades[j], gain, max_grade)
                total += stops_here / rank
        return total

    return average(one(order) for order in orders(scores, grades, ties, ids))


def stop_probability(grade, gain, max_grade):
    return grade / max_grade if gain == "linear" else (2.0**grade - 1) / 2.0**max_grade


def auc(scores, grades, ids=None, *, ties, blank):
    n = len(scores)
    pairs = [(i, j) for i in range(n) for j in range(n) if grades[i] > grades[j]]
    if not pairs:
        return BLANK[blank]
    return average(
        sum(order.index(i) < order.index(j) for i, j in pairs) / len(pairs)
        for order in orders(scores, grades, ties, ids)
    )
