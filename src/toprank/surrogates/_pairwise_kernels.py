# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sums over pairs of documents of different grade, in O(n log n) per list and without the pairs.

With the scores sorted, the partners of a document inside the margin are a run; a Fenwick tree over the grades tells
how many of them (and with what sum) have a lower or a higher grade.
"""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel

RUN = 12


@kernel
def sort_down(keys, order, keys2, order2, n):
    """Sort keys[:n] from high to low, stably, and `order` with them; the twins are scratch space."""
    for start in range(0, n, RUN):
        stop = min(start + RUN, n)
        for i in range(start + 1, stop):
            key, item = keys[i], order[i]
            j = i - 1
            while j >= start and keys[j] < key:
                keys[j + 1], order[j + 1] = keys[j], order[j]
                j -= 1
            keys[j + 1], order[j + 1] = key, item
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j >= stop or keys[i] >= keys[j]):
                    keys2[k], order2[k] = keys[i], order[i]
                    i += 1
                else:
                    keys2[k], order2[k] = keys[j], order[j]
                    j += 1
        for k in range(n):
            keys[k], order[k] = keys2[k], order2[k]
        width *= 2


@kernel
def grade_codes(y, start, stop, codes):
    """Number the grades of one list 0, 1, … in rising order into codes[start:stop]; returns how many numbers."""
    top, small = 0.0, True
    for i in range(start, stop):
        top = max(top, y[i])
        if y[i] != np.floor(y[i]) or y[i] < 0:
            small = False
    if small and top < 32:
        for i in range(start, stop):
            codes[i] = int(y[i])
        return int(top) + 1
    values = np.unique(y[start:stop])
    for i in range(start, stop):
        codes[i] = np.searchsorted(values, y[i])
    return len(values)


@kernel
def tree_add(tree, code, value):
    """Add a value at a grade."""
    k = code + 1
    while k < len(tree):
        tree[k] += value
        k += k & -k


@kernel
def tree_below(tree, code):
    """Sum over the grades below `code`."""
    total, k = 0.0, code
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel
def count_pairs(y, ptr, pairs):
    """pairs_q = number of document pairs of different grade in each list."""
    codes = np.empty(len(y), dtype=np.int64)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        counts = np.zeros(grade_codes(y, a, b, codes), dtype=np.int64)
        for i in range(a, b):
            counts[codes[i]] += 1
        same = 0.0
        for c in counts:
            same += float(c) * (c - 1) / 2
        pairs[q] = float(n) * (n - 1) / 2 - same


@kernel
def pairwise_hinge(scores, y, ptr, squared, losses, grad):
    """ℓ_q = Σ_{y_i > y_j} [1 − (s_i − s_j)]₊ (or its square) and its gradient, by two sweeps over sorted scores."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    t, t2 = np.empty(longest), np.empty(longest)
    order, order2 = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    codes = np.empty(len(y), dtype=np.int64)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        losses[q] = 0.0
        if n == 0:
            continue
        levels = grade_codes(y, a, b, codes)
        centre = scores[a]  # only differences count; near zero they lose fewer digits
        for i in range(n):
            t[i], order[i] = scores[a + i] - centre, a + i
        sort_down(t, order, t2, order2, n)
        number, total = np.zeros(levels + 1), np.zeros(levels + 1)
        # Each document as the one that should win, against the lower grades less than 1 behind it.
        p = 0
        for i in range(n):
            while p < n and t[i] - t[p] < 1.0:
                tree_add(number, codes[order[p]], 1.0)
                tree_add(total, codes[order[p]], t[p])
                p += 1
            code = codes[order[i]]
            count = tree_below(number, code)
            slack = count * (1.0 - t[i]) + tree_below(total, code)
            if squared:
                grad[order[i]] = -2.0 * slack
                losses[q] += slack * (1.0 - t[i])
            else:
                grad[order[i]] = -count
                losses[q] += slack
        # Each document as the one that should lose, against the higher grades less than 1 ahead of it.
        number[:] = 0.0
        total[:] = 0.0
        p = n - 1
        inside, inside_sum = 0.0, 0.0
        for i in range(n - 1, -1, -1):
            while p >= 0 and t[p] - t[i] < 1.0:
                tree_add(number, codes[order[p]], 1.0)
                tree_add(total, codes[order[p]], t[p])
                inside += 1.0
                inside_sum += t[p]
                p -= 1
            code = codes[order[i]]
            count = inside - tree_below(number, code + 1)
            if squared:
                slack = count * (1.0 + t[i]) - (inside_sum - tree_below(total, code + 1))
                grad[order[i]] += 2.0 * slack
                losses[q] += slack * t[i]
            else:
                grad[order[i]] += count


@kernel
def active_runs(scores, y, ptr, order, codes, ahead, behind, partners):
    """Note for each list the order by score and the margin runs, all that a Hessian product needs of the scores.

    At sorted place i: `ahead` is where the run of possible losers ends, `behind` where the run of possible winners
    begins, `partners` how many active pairs the document is in.
    """
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    t, t2 = np.empty(longest), np.empty(longest)
    order2 = np.empty(longest, dtype=np.int64)
    raw = np.empty(len(y), dtype=np.int64)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n == 0:
            continue
        levels = grade_codes(y, a, b, raw)
        centre = scores[a]
        for i in range(n):
            t[i], order[a + i] = scores[a + i] - centre, a + i
        sort_down(t, order[a:b], t2, order2, n)
        number = np.zeros(levels + 1)
        for i in range(n):
            codes[a + i] = raw[order[a + i]]
        p = 0
        for i in range(n):
            while p < n and t[i] - t[p] < 1.0:
                tree_add(number, codes[a + p], 1.0)
                p += 1
            ahead[a + i] = a + p
            partners[a + i] = tree_below(number, codes[a + i])
        number[:] = 0.0
        p = n - 1
        for i in range(n - 1, -1, -1):
            while p >= 0 and t[p] - t[i] < 1.0:
                tree_add(number, codes[a + p], 1.0)
                p -= 1
            behind[a + i] = a + p
            partners[a + i] += (n - 1 - p) - tree_below(number, codes[a + i] + 1)


@kernel
def hessian_product(v, ptr, order, codes, ahead, behind, partners, weight, out):
    """out_i = 2 weight_q Σ_{active partners j} (v_i − v_j): the squared hinge's Hessian times v."""
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        levels = 0
        for i in range(a, b):
            levels = max(levels, codes[i] + 1)
        total = np.zeros(levels + 1)
        p = a
        for i in range(a, b):
            while p < ahead[i]:
                tree_add(total, codes[p], v[order[p]])
                p += 1
            out[order[i]] = partners[i] * v[order[i]] - tree_below(total, codes[i])
        total[:] = 0.0
        p = b - 1
        inside = 0.0
        for i in range(b - 1, a - 1, -1):
            while p > behind[i]:
                tree_add(total, codes[p], v[order[p]])
                inside += v[order[p]]
                p -= 1
            out[order[i]] -= inside - tree_below(total, codes[i] + 1)
            out[order[i]] *= 2.0 * weight[q]


@kernel
def misordered(scores, y, ptr, wrong, tied):
    """Count the pairs of different grade that the scores put the wrong way round, and those they leave tied."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    t, t2 = np.empty(longest), np.empty(longest)
    order, order2 = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    codes = np.empty(len(y), dtype=np.int64)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        wrong[q] = tied[q] = 0.0
        if n == 0:
            continue
        levels = grade_codes(y, a, b, codes)
        number, here = np.zeros(levels + 1), np.zeros(levels)
        for i in range(n):
            t[i], order[i] = scores[a + i], a + i
        sort_down(t, order, t2, order2, n)
        start = 0
        while start < n:
            stop = start
            while stop < n and t[stop] == t[start]:
                wrong[q] += tree_below(number, codes[order[stop]])
                stop += 1
            for i in range(start, stop):
                tied[q] += (i - start) - here[codes[order[i]]]
                here[codes[order[i]]] += 1.0
                tree_add(number, codes[order[i]], 1.0)
            for i in range(start, stop):
                here[codes[order[i]]] = 0.0
            start = stop
