# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Margin losses of one list: SLAM and the largest hinge, both from the best score below each grade.

The level of a document is the number of its grade in its list, or whether it is relevant (`binary`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel
from ..core.sorting import grade_levels, sort_down
from ..measures._list_kernels import gain_of


class SlamRule(NamedTuple):
    """What SLAM has besides scores and grades."""

    margin: float
    """Δ."""
    binary: bool
    """Whether a document is relevant or not (AP), instead of better by its grade (NDCG)."""
    above: float
    """AP: grades above this are relevant."""
    gain: int
    """NDCG: what a grade is worth (`measures.presets.Gain`)."""
    by_score: bool
    """Documents of one grade stand in order of score, instead of index."""
    tight: bool
    """AP: the weights are those of `tight_ap_weights`."""
    discounts: Any
    """NDCG: D of the places that count, which are the first k, or at least as many as the longest list has."""


class MinimaxRule(NamedTuple):
    """What the largest hinge has besides scores and grades; the fields are those of `SlamRule`."""

    margin: float
    binary: bool
    above: float


@kernel
def levels_of(y, rule, level):
    """level = the number of each document's grade, or 1 where it is relevant; return one more than the highest."""
    if not rule.binary:
        return grade_levels(y, level)
    for i in range(len(y)):
        level[i] = y[i] > rule.above
    return 2


@kernel
def ap_weights(level, v):
    """v_i = 1/r for the r relevant documents, else 0 (Eq. 10); return Σ_i v_i r = r."""
    r = 0.0
    for i in range(len(v)):
        v[i] = level[i]
        r += v[i]
    for i in range(len(v)):
        v[i] /= max(r, 1.0)
    return r


@kernel
def tight_ap_weights(s, rule, level, v):
    """v_i = (m − r)/(r (m − r + i)) for the i-th relevant document, i = 1 … r, by index or by score; return r.

    The sum of the t smallest is what average precision can lose by t relevant documents below an irrelevant one.
    """
    m, r = len(s), 0
    scores, documents = np.empty(m), np.empty(m, np.int64)
    for i in range(m):
        v[i] = 0.0
        scores[r], documents[r] = s[i], i
        r += level[i]
    if rule.by_score:
        sort_down(scores[:r], documents[:r])
    for i in range(r):
        v[documents[i]] = (m - r) / (r * (m - r + i + 1.0))
    return float(r)


@kernel
def ndcg_weights(s, y, rule, level, levels, v):
    """v_i = G(R_i) D(pos(i)) / Z for pos(i) ≤ k, else 0 (Eq. 11, 24); return Z, the DCG@k of the best order.

    Documents stand by falling grade, inside a grade by index or by score.
    """
    n, k = len(y), min(len(y), len(rule.discounts))
    next_place, before = np.zeros(levels, np.int64), 0
    for i in range(n):
        v[i] = 0.0
        next_place[level[i]] += 1
    for g in range(levels - 1, -1, -1):
        next_place[g], before = before, before + next_place[g]
    scores, documents, count = np.empty(n), np.empty(n, np.int64), 0
    for i in range(n):  # only documents that can have a weight need an order
        scores[count], documents[count] = s[i], i
        count += (next_place[level[i]] < k) & (y[i] > 0.0)
    if rule.by_score:
        sort_down(scores[:count], documents[:count])
    Z = 0.0
    for p in range(count):
        i = documents[p]
        place = next_place[level[i]]
        next_place[level[i]] += 1
        if place < k:
            v[i] = gain_of(y[i], rule.gain) * rule.discounts[place]
            Z += v[i]
    for p in range(count):
        v[documents[p]] /= Z
    return Z


@kernel
def slam_weights(s, y, rule, level, levels, v):
    """v = the weights of SLAM, which add up to at most 1; return whether the gains can be added up."""
    if not rule.binary:
        return math.isfinite(ndcg_weights(s, y, rule, level, levels, v))
    if rule.tight:
        tight_ap_weights(s, rule, level, v)
    else:
        ap_weights(level, v)
    return True


@kernel
def find_best_below(s, level, levels, best_below):
    """best_below[g] = the best-scored document of a level below g, the first of equals; −1 where there is none."""
    for g in range(levels):
        best_below[g] = -1
    for i in range(len(s)):
        g = level[i]
        if best_below[g] < 0 or s[i] > s[best_below[g]]:
            best_below[g] = i
    best = -1
    for g in range(levels):
        own_best = best_below[g]
        best_below[g] = best
        if own_best >= 0 and (best < 0 or s[own_best] > s[best] or (s[own_best] == s[best] and own_best < best)):
            best = own_best


@kernel
def weighted_slam_of_list(s, y, doc_weight, rule, g):
    """Σ_i c_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i), c_i the weight of document i; g is its subgradient (Eq. 13, 16).

    `doc_weight` has length 0 where there are no weights. NaN says that the gains are too large to add up.
    """
    n, value = len(s), 0.0
    g[:] = 0.0
    if n < 2:
        return 0.0
    level, v = np.empty(n, np.int64), np.empty(n)
    levels = levels_of(y, rule, level)
    if not slam_weights(s, y, rule, level, levels, v):
        return math.nan
    if len(doc_weight) > 0:
        for i in range(n):
            v[i] *= doc_weight[i]
    best_below = np.empty(levels, np.int64)
    find_best_below(s, level, levels, best_below)
    for i in range(n):
        j = best_below[level[i]]
        if v[i] > 0.0 and j >= 0:
            hinge = rule.margin + s[j] - s[i]
            if hinge > 0.0:
                value += v[i] * hinge
                g[i] -= v[i]
                g[j] += v[i]
    return value


@kernel
def slam_of_list(s, y, rule, g):
    """φ_v(s, R) = Σ_i v_i max(0, Δ + max_{R_j<R_i} s_j − s_i) (Eq. 9); g is its subgradient (Eq. 13, 16).

    NaN says that the gains are too large to add up.
    """
    return weighted_slam_of_list(s, y, s[:0], rule, g)


@kernel
def slam_of_lists(s, y, ptr, doc_weight, rule, losses, grad):
    """SLAM of each list; return −1 or the number of a list whose gains are too large to add up."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        c = doc_weight[a:b] if len(doc_weight) > 0 else doc_weight[:0]
        losses[q] = weighted_slam_of_list(s[a:b], y[a:b], c, rule, grad[a:b])
        if math.isnan(losses[q]):
            return q
    return -1


@kernel
def weights_of_lists(s, y, ptr, rule, v):
    """v = the weights of SLAM of every document; return −1 or the number of a list whose gains are too large."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        level = np.empty(b - a, np.int64)
        levels = levels_of(y[a:b], rule, level)
        if not slam_weights(s[a:b], y[a:b], rule, level, levels, v[a:b]):
            return q
    return -1


@kernel
def best_below_of_lists(s, y, ptr, rule, best_below):
    """best_below[i] = the best-scored document of a grade below that of i in its list; −1 where there is none.

    `rule` is that of SLAM or of the largest hinge.
    """
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        level = np.empty(b - a, np.int64)
        levels = levels_of(y[a:b], rule, level)
        of_level = np.empty(levels, np.int64)
        find_best_below(s[a:b], level, levels, of_level)
        for i in range(b - a):
            best_below[a + i] = a + of_level[level[i]] if of_level[level[i]] >= 0 else -1


@kernel
def largest_hinge_of_list(s, y, rule, g):
    """φ_C(s, R) = max_{R_i>R_j} (Δ + s_j − s_i)₊ (Eq. 27); g is its subgradient e_j* − e_i* (Eq. 29).

    The pair is found from the best score below each level and the worst score of the level.
    """
    n = len(s)
    g[:] = 0.0
    if n < 2:
        return 0.0
    level = np.empty(n, np.int64)
    levels = levels_of(y, rule, level)
    best_below, worst = np.empty(levels, np.int64), np.full(levels, -1)
    find_best_below(s, level, levels, best_below)
    for i in range(n):
        if worst[level[i]] < 0 or s[i] < s[worst[level[i]]]:
            worst[level[i]] = i
    i_star, largest = -1, -math.inf
    for h in range(levels):
        if best_below[h] >= 0 and worst[h] >= 0:
            gap = s[best_below[h]] - s[worst[h]]
            if gap > largest or (gap == largest and worst[h] < i_star):
                largest, i_star = gap, worst[h]
    if not rule.margin + largest > 0.0:
        return 0.0
    g[i_star] -= 1.0
    g[best_below[level[i_star]]] += 1.0
    return rule.margin + largest


@kernel
def largest_hinge_of_lists(s, y, ptr, rule, losses, grad):
    """The largest hinge of each list."""
    for q in range(len(losses)):
        a, b = ptr[q], ptr[q + 1]
        losses[q] = largest_hinge_of_list(s[a:b], y[a:b], rule, grad[a:b])
