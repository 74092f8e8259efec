# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The value of every query by each measure, under all its rules: loops over lists that have been ordered.

`k` is the cut-off, 0 for none; `blank` is the value of a query with nothing to find. What a measure counts is in
`_list_kernels`, `_cascade_kernels` and `_pair_kernels`.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel
from ._cascade_kernels import err, expected_err, rank_biased_precision, stops_by_rank
from ._list_kernels import (
    average_groups,
    best_gains,
    count_above,
    dcg,
    gains_by_rank,
    hits,
    mean_ndcg,
    ndcg,
    places_at_share,
    reciprocal_rank,
    shared_sum_of_precisions,
    success,
    sum_of_precisions,
)
from ._pair_kernels import binary_preference, count_judged_irrelevant, pairs_of_grades
from ._rank_kernels import list_at
from .presets import Norm, Short

CUT, SHORTEN, ZERO = int(Norm.CUT), int(Short.SHORTEN), int(Short.ZERO)


@kernel
def places(k, n, short):
    """The cut-off of a list of n documents: k, or n where there is none or a short list makes it so."""
    return n if k == 0 or (k > n and short == SHORTEN) else k


@kernel
def dcg_of_queries(lists, k, short, gain, discount):
    """DCG@k."""
    values = np.zeros(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, _ = list_at(lists, q)
        cut = places(k, len(ranked), short)
        if short != ZERO or cut <= len(ranked):
            values[q] = dcg(gains_by_rank(ranked, ends, cut, gain), discount)
    return values


@kernel
def ndcg_of_queries(lists, k, short, gain, discount, blank):
    """NDCG@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        cut = places(k, len(y), short)
        best = best_gains(y, cut, gain)
        if len(best) == 0 or best[0] == 0:
            values[q] = blank
        elif short == ZERO and cut > len(ranked):
            values[q] = 0.0
        else:
            values[q] = ndcg(gains_by_rank(ranked, ends, cut, gain), best, discount)
    return values


@kernel
def mean_ndcg_of_queries(lists, k, short, gain, discount, blank):
    """The mean of NDCG@1, …, NDCG@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        cut = places(k, len(y), short)
        best = best_gains(y, cut, gain)
        if len(best) == 0 or best[0] == 0:
            values[q] = blank
        else:
            values[q] = mean_ndcg(gains_by_rank(ranked, ends, cut, gain), best, discount, cut, short)
    return values


@kernel
def precision_of_queries(lists, k, short, above):
    """P@k."""
    values = np.zeros(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, _ = list_at(lists, q)
        cut = places(k, len(ranked), short)
        if cut > 0 and (short != ZERO or cut <= len(ranked)):
            values[q] = hits(ranked, ends, cut, above) / cut
    return values


@kernel
def recall_of_queries(lists, k, above, blank):
    """Recall@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        relevant = count_above(y, above)
        values[q] = hits(ranked, ends, k or len(ranked), above) / relevant if relevant > 0 else blank
    return values


@kernel
def precision_at_share_of_queries(lists, share, above, blank):
    """P@⌈κ n₊⌉, κ the share."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        cut = int(places_at_share(share, count_above(y, above)))
        values[q] = hits(ranked, ends, cut, above) / cut if cut > 0 else blank
    return values


@kernel
def success_of_queries(lists, k, above):
    """Success@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, _ = list_at(lists, q)
        values[q] = success(ranked, ends, k or len(ranked), above)
    return values


@kernel
def reciprocal_rank_of_queries(lists, k, above, blank):
    """RR@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        values[q] = reciprocal_rank(ranked, ends, k or len(ranked), above)
        if values[q] == 0 and count_above(y, above) == 0:
            values[q] = blank
    return values


@kernel
def average_precision_of_queries(lists, k, above, norm, shared, blank):
    """AP@k; with `shared` tied documents stand at the last rank of their group."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        cut, relevant = k or len(ranked), count_above(y, above)
        if relevant == 0:
            values[q] = blank
            continue
        over = min(relevant, k) if norm == CUT and k > 0 else relevant
        if shared and len(ends) > 0:
            values[q] = shared_sum_of_precisions(ranked, ends, cut, above) / over
        else:
            values[q] = sum_of_precisions(ranked, ends, cut, above) / over
    return values


@kernel
def rank_biased_precision_of_queries(lists, k, above, p, graded):
    """RBP@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, _ = list_at(lists, q)
        gains = np.zeros(len(ranked))
        for r in range(len(ranked)):
            if ranked[r] > above:
                gains[r] = ranked[r] if graded else 1.0
        if len(ends) > 0:
            average_groups(gains, ends)
        values[q] = rank_biased_precision(gains[: k or len(gains)], p)
    return values


@kernel
def err_of_queries(lists, k, gain, max_grade):
    """ERR@k."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, _ = list_at(lists, q)
        stops, cut = stops_by_rank(ranked, gain, max_grade), k or len(ranked)
        values[q] = expected_err(stops, ends, cut) if len(ends) > 0 else err(stops, cut)
    return values


@kernel
def pair_accuracy_of_queries(lists, blank):
    """The share of the pairs of different grade that stand the right way round."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, _ = list_at(lists, q)
        pairs, wrong = pairs_of_grades(ranked, ends)
        values[q] = 1.0 - wrong / pairs if pairs > 0 else blank
    return values


@kernel
def binary_preference_of_queries(lists, above, blank, unopposed):
    """bpref."""
    values = np.empty(len(lists.n_ranked))
    for q in range(len(values)):
        ranked, ends, y = list_at(lists, q)
        relevant, irrelevant = count_above(y, above), count_judged_irrelevant(y, above)
        values[q] = blank
        if relevant > 0:
            values[q] = binary_preference(ranked, ends, relevant, irrelevant, above, unopposed)
    return values
