# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Precision at the top of one list: the losses with their subgradients, and the steps of the perceptrons.

Each function takes the scores s of a list, its labels y (true: positive), its k and the gradient g to fill, and returns
the value. k is at most n₊, the number of positives; it is 0 where there are none. Of equal scores the earlier row ranks
higher, everywhere.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel
from ..core.sorting import best_first


@kernel
def split_classes(y):
    """Return the rows of the positives and those of the negatives."""
    positives, negatives, n_pos = np.empty(len(y), np.int64), np.empty(len(y), np.int64), 0
    for i in range(len(y)):  # no branch depends on a label: there is nothing to mispredict
        positives[n_pos] = negatives[i - n_pos] = i
        n_pos += y[i]
    return positives[:n_pos], negatives[: len(y) - n_pos]


@kernel
def best_rows(s, rows, k):
    """Return the k of these rows with the largest scores, best first; of equal scores the row that comes first."""
    scores, best = np.empty(len(rows)), np.empty(k, np.int64)
    for i in range(len(rows)):
        scores[i] = s[rows[i]]
    best_first(scores, k, best)
    for i in range(k):
        best[i] = rows[best[i]]
    return best


@kernel
def worst_rows(s, rows, k):
    """Return the k of these rows with the smallest scores, worst first: the end of the order of `best_rows`."""
    scores, worst, last = np.empty(len(rows)), np.empty(k, np.int64), len(rows) - 1
    for i in range(len(rows)):
        scores[i] = -s[rows[last - i]]
    best_first(scores, k, worst)
    for i in range(k):
        worst[i] = rows[last - worst[i]]
    return worst


@kernel
def best_labels(s, y, k):
    """Return the k rows with the largest s_i + 1 − y_i: the ones of the ŷ that is the worst for struct and ramp."""
    shifted, rows = np.empty(len(s)), np.empty(k, np.int64)
    for i in range(len(s)):
        shifted[i] = s[i] if y[i] else s[i] + 1.0
    best_first(shifted, k, rows)
    return rows


@kernel
def prec_struct(s, y, k, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{y=1} s_i (Eq. 3, over ŷ with k ones); g = ŷ − y."""
    value = 0.0
    for i in range(len(s)):
        g[i] = -1.0 if y[i] else 0.0
        value += g[i] * s[i]
    for i in best_labels(s, y, k):
        g[i] += 1.0
        value += s[i] if y[i] else s[i] + 1.0
    return value


@kernel
def prec_ramp(s, y, k, g):
    """Σ top-k of (s_i + 1 − y_i) − Σ_{i≤k} s⁺_i (Eq. 4); g = ŷ − ỹ, ỹ having ones on the k best positives."""
    value = 0.0
    for i in range(len(s)):
        g[i] = 0.0
    for i in best_labels(s, y, k):
        g[i] += 1.0
        value += s[i] if y[i] else s[i] + 1.0
    for i in best_rows(s, split_classes(y)[0], k):
        g[i] -= 1.0
        value -= s[i]
    return value


@kernel
def prec_avg(s, y, k, g):
    """max_{k'≤k} (k − k') − D_{k'} Σ_{i>k'} s⁺_i + Σ_{i≤k−k'} s⁻_i, D_{k'} = (k − k')/(n₊ − k') (Eq. 7).

    Algorithm 4 of precision at the top: g is the subgradient of the k* that reaches the maximum; of several the
    largest. k' starts at k, where the value is 0, and each step down adds a term to both sums.
    """
    positives, negatives = split_classes(y)
    n_pos, lowest = len(positives), max(k - len(negatives), 0)
    best_pos, best_neg = best_rows(s, positives, k), best_rows(s, negatives, k - lowest)  # line 1
    sum_pos, sum_neg = 0.0, 0.0
    for i in positives:
        sum_pos += s[i]
    for i in best_pos:
        sum_pos -= s[i]
    best, k_star = 0.0, k
    for k_prime in range(k - 1, lowest - 1, -1):  # lines 2 to 6
        sum_pos += s[best_pos[k_prime]]
        sum_neg += s[best_neg[k - k_prime - 1]]
        D = (k - k_prime) / (n_pos - k_prime)
        value = k - k_prime - D * sum_pos + sum_neg
        if value > best:
            best, k_star = value, k_prime  # line 7
    D = (k - k_star) / (n_pos - k_star) if k_star < k else 0.0
    for i in range(len(s)):  # line 5 for k*
        g[i] = -D if y[i] else 0.0
    for i in best_pos[:k_star]:
        g[i] = 0.0
    for i in best_neg[: k - k_star]:
        g[i] = 1.0
    return best


@kernel
def prec_max(s, y, k, g):
    """max_{j≤k} Σ_{i≤j} (1 + s⁻_i − (i-th lowest positive score)) (Eq. 6), whose terms fall with i: those above 0."""
    positives, negatives = split_classes(y)
    most = min(k, len(negatives))
    lowest, highest = worst_rows(s, positives, most), best_rows(s, negatives, most)
    for i in range(len(s)):
        g[i] = 0.0
    value = 0.0
    for i in range(most):
        term = 1.0 + s[highest[i]] - s[lowest[i]]
        if term <= 0.0:
            break
        value += term
        g[highest[i]], g[lowest[i]] = 1.0, -1.0
    return value


@kernel
def mistakes_avg(s, y, k, g):
    """Δ = Σ (1 − y_i) ŷ_i with ŷ = y^(s,k); g = 1 on the false positives and −D on the false negatives.

    Lines 5, 6 and 10 to 12 of Algorithm 1 of precision at the top: D = Δ/(n₊ − K), K = Σ y_i ŷ_i. Where Δ = 0, g = 0.
    """
    delta, false_negatives = mark_mistakes(s, y, k, g)
    D = delta / max(len(false_negatives), 1)
    for i in false_negatives:
        g[i] = -D
    return float(delta)


@kernel
def mistakes_max(s, y, k, g):
    """Δ = Σ (1 − y_i) ŷ_i with ŷ = y^(s,k); g = 1 on the false positives and −1 on FN(s, Δ).

    Lines 5, 6 and 10 to 12 of Algorithm 2 of precision at the top: FN(s, Δ) are the Δ best of the false negatives.
    """
    delta, false_negatives = mark_mistakes(s, y, k, g)
    for i in best_rows(s, false_negatives, delta):
        g[i] = -1.0
    return float(delta)


@kernel
def mark_mistakes(s, y, k, g):
    """g = (1 − y) ŷ with ŷ = y^(s,k), the top k; return Δ = Σ g_i and the false negatives, where (1 − ŷ) y = 1."""
    missed, y_hat, delta = y.copy(), np.empty(k, np.int64), 0
    for i in range(len(s)):
        g[i] = 0.0
    best_first(s, k, y_hat)
    for i in y_hat:
        missed[i] = False
        if not y[i]:
            g[i] = 1.0
            delta += 1
    return delta, split_classes(missed)[0]


@kernel
def prec_struct_of_lists(s, y, ptr, k, losses, grad):
    """`prec_struct` of every list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = prec_struct(s[a:b], y[a:b], k[q], grad[a:b])


@kernel
def prec_ramp_of_lists(s, y, ptr, k, losses, grad):
    """`prec_ramp` of every list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = prec_ramp(s[a:b], y[a:b], k[q], grad[a:b])


@kernel
def prec_avg_of_lists(s, y, ptr, k, losses, grad):
    """`prec_avg` of every list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = prec_avg(s[a:b], y[a:b], k[q], grad[a:b])


@kernel
def prec_max_of_lists(s, y, ptr, k, losses, grad):
    """`prec_max` of every list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = prec_max(s[a:b], y[a:b], k[q], grad[a:b])


@kernel
def mistakes_avg_of_lists(s, y, ptr, k, losses, grad):
    """`mistakes_avg` of every list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = mistakes_avg(s[a:b], y[a:b], k[q], grad[a:b])


@kernel
def mistakes_max_of_lists(s, y, ptr, k, losses, grad):
    """`mistakes_max` of every list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = mistakes_max(s[a:b], y[a:b], k[q], grad[a:b])
