# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""AdaRank: the measure of every feature alone, and of the scores after one more step, query by query.

The values are those of `measures`, to the last bit. Two measures have a shorter way to them: NDCG@k reads the top
alone, which can only hold documents that reach the least of the last round's top, and average precision reads the
ranks of the relevant documents alone.
"""

from __future__ import annotations

import numpy as np

from .._jit import inner_kernel, kernel
from ..measures._kernels import gain_of, ideal_list, longest_list, needs, one_value, rank_list, tie_groups, workspace

LANES = 32
"""Running maxima kept side by side where many documents could be at the top."""
ANY, TOP, PRECISION = 0, 1, 2
"""Ways to a value: through the measure's own codes, NDCG@k by its top, average precision by its relevant documents."""


@inner_kernel
def value_of(s, g, key, ties, needed, codes, reals_of, table, ints, reals, rank, single):
    """Return the one measure of `codes` for one query whose ideal order stands in the scratch; 0 where undefined."""
    top, _, groups = needed
    m = rank_list(s, g, key, ties, top, ints, reals, rank, single)
    if groups:
        tie_groups(m, ints, reals)
    value = one_value(g, m, codes, reals_of, 0, table, ints, reals)
    return value if value == value else 0.0


@kernel
def feature_values(X, y, ptr, both, key, ties, codes, reals_of, table, top_grade, out):
    """out[q, k] = E of query q ranked by feature k; with `both`, the features reversed follow."""
    longest, d = longest_list(ptr), X.shape[1]
    ints, reals, rank, single = workspace(longest)
    s = np.empty(longest)
    needed = needs(codes)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        g = y[a:b]
        if needed[1] > 0:
            ideal_list(g, needed[1], top_grade, reals)
        for k in range(d):
            for i in range(n):
                s[i] = X[a + i, k]
            out[q, k] = value_of(s[:n], g, key[a:b], ties, needed, codes, reals_of, table, ints, reals, rank, single)
            if both:
                for i in range(n):
                    s[i] = -s[i]
                out[q, d + k] = value_of(
                    s[:n], g, key[a:b], ties, needed, codes, reals_of, table, ints, reals, rank, single
                )


@kernel
def ideal_gains(y, ptr, k, gain, discounts, gains, out):
    """Write the gain of every document, and out_q = Σ_{r < k} gain_r D_r for those of a query in falling order."""
    for i in range(len(y)):
        gains[i] = gain_of(y[i], gain)
    for q in range(len(ptr) - 1):
        best = np.sort(gains[ptr[q] : ptr[q + 1]])[::-1]
        out[q] = 0.0
        for r in range(min(k, len(best))):
            out[q] += best[r] * discounts[r]


@inner_kernel
def count_ahead(values, n, rank):
    """rank[i] = #{j: v_j > v_i} + #{j < i: v_j = v_i}, each pair looked at once."""
    for i in range(n):
        rank[i] = 0
    for i in range(n):
        x, ahead = values[i], np.int32(0)
        for j in range(i):
            before = np.int32(values[j] >= x)
            ahead += before
            rank[j] += np.int32(1) - before
        rank[i] = ahead


@inner_kernel
def top_value(t, n, a, q, k, gains, discounts, ideal, head, new_head, place, rank, near, shown):
    """DCG@k of the scores t over the ideal one; `head` lists documents of the last top and gets a successor."""
    size = min(k, n)
    bound = np.inf
    for r in range(size):
        bound = min(bound, t[head[q, r]])
    m = 0
    for i in range(n):
        place[m] = i
        m += int(t[i] >= bound)
    for c in range(m):
        near[c] = t[place[c]]
    if m > 2 * LANES >= 2 * size:
        # The step moved the last top far down. The k-th largest of LANES maxima is a better bound.
        for lane in range(LANES):
            shown[lane] = near[lane]
        for c in range(LANES, m):
            shown[c % LANES] = max(shown[c % LANES], near[c])
        count_ahead(shown, LANES, rank)
        for lane in range(LANES):
            if rank[lane] == size - 1:
                bound = shown[lane]
        kept = 0
        for c in range(m):
            near[kept], place[kept] = near[c], place[c]
            kept += int(near[c] >= bound)
        m = kept
    count_ahead(near, m, rank)
    for c in range(m):
        if rank[c] < size:
            new_head[q, rank[c]] = place[c]
            shown[rank[c]] = gains[a + place[c]]
    total = 0.0
    for r in range(size):
        total += shown[r] * discounts[r]
    return total / ideal[q] if ideal[q] > 0 else 0.0


@inner_kernel
def precision_value(t, n, place, n_relevant, near, rank):
    """Average precision of the scores t, from the ranks of the relevant documents `place` alone."""
    for c in range(n_relevant):
        i = place[c]
        x, ahead = t[i], 0
        for j in range(n):
            ahead += int(t[j] > x)
        for j in range(i):
            ahead += int(t[j] == x)
        near[c] = ahead
    # Ranks are distinct: how many of them are larger says which hit, counted from the last, a document is.
    count_ahead(near, n_relevant, rank)
    for c in range(n_relevant):
        t[rank[c]] = near[c]
    total = 0.0
    for hit in range(n_relevant):
        total += (hit + 1) / (t[n_relevant - 1 - hit] + 1.0)
    return total / n_relevant


@kernel
def step_values(
    way, scores, column, weight, y, ptr, counts, gains, ideal, head, key, above, k, discounts,
    ties, codes, reals_of, table, top_grade, values, new_head,
):  # fmt: skip
    """values_q = E of scores + weight · column for the queries that count, and for NDCG@k their new tops."""
    longest = longest_list(ptr)
    ints, reals, rank, single = workspace(longest)
    t, near, shown = np.empty(longest + 1), np.empty(longest + 1), np.empty(max(longest, LANES))
    place = np.empty(longest + 1, dtype=np.int64)
    needed = needs(codes)
    for q in range(len(ptr) - 1):
        values[q] = 0.0
        if not counts[q]:
            continue
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        for i in range(n):
            t[i] = scores[a + i] + weight * np.float64(column[a + i])
        if way == TOP:
            values[q] = top_value(t, n, a, q, k, gains, discounts, ideal, head, new_head, place, rank, near, shown)
            continue
        if way == PRECISION:
            relevant = 0
            for i in range(n):
                place[relevant] = i
                relevant += int(y[a + i] > above)
            if 0 < relevant <= n // 2:
                values[q] = precision_value(t, n, place, relevant, near, rank)
                continue
        if needed[1] > 0:
            ideal_list(y[a:b], needed[1], top_grade, reals)
        values[q] = value_of(t[:n], y[a:b], key[a:b], ties, needed, codes, reals_of, table, ints, reals, rank, single)
