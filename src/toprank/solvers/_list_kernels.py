# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What an online learner knows of a list before it plays it: grades numbered upwards, the list's size, its soundness.

And what another weight vector would have lost on lists that were played.
"""

from __future__ import annotations

import math

import numpy as np

from ..core._lane_kernels import add_rows
from ..core._vector_kernels import dot
from ..core.jit import inner_kernel, kernel, sum_kernel


@sum_kernel
def sound_list(X, y):
    """Whether all features are finite and all grades finite and not negative."""
    total = X[0, 0] * np.float32(0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            total += X[i, j] * np.float32(0)  # 0 for a finite number, NaN for any other
    good = total == 0
    for i in range(len(y)):
        good &= y[i] >= 0 and y[i] < 1024  # 2^grade must fit into a number
    return good


@kernel
def number_grades(y, ptr):
    """level[i] = the place of y_i among the grades of its list; those of list q are grade[first[q]:first[q + 1]]."""
    level, first, grade = np.empty(len(y), np.int32), np.zeros(len(ptr), np.int64), np.empty(len(y))
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        known = np.unique(y[a:b])
        level[a:b] = np.searchsorted(known, y[a:b])
        grade[first[q] : first[q] + len(known)] = known
        first[q + 1] = first[q] + len(known)
    return level, first, grade[: first[-1]]


@inner_kernel
def extent(values, indices, indptr, d, a, b, mean, row):
    """max ‖x_i‖² and max ‖x_i − x̄‖² of the rows a:b; `mean` must be 0 and stays so, `row` is scratch."""
    m, longest, farthest = max(b - a, 1), 0.0, 0.0
    if len(indptr) == 0:
        for i in range(a, b):
            add_rows(values, (i * d,), (1.0,), mean)
        for j in range(d):
            mean[j] /= m
        for i in range(a, b):
            start = np.uint64(i * d)
            for j in range(np.uint64(d)):
                row[j] = values[start + j]
            longest = max(longest, dot(row, row))
            for j in range(np.uint64(d)):
                row[j] -= mean[j]
            farthest = max(farthest, dot(row, row))
        for j in range(d):
            mean[j] = 0.0
        return longest, farthest
    low, high = indptr[a], indptr[b]
    for p in range(low, high):
        mean[indices[p]] += values[p] / m
    centre = 0.0  # ‖x̄‖², each column once: x̄_j Σ_i x_ij / m
    for p in range(low, high):
        centre += mean[indices[p]] * values[p] / m
    for i in range(a, b):
        distance, length = centre, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(values[p])
            distance += x * (x - 2 * mean[indices[p]])
            length += x * x
        longest, farthest = max(longest, length), max(farthest, distance)
    for p in range(low, high):
        mean[indices[p]] = 0.0
    return longest, farthest


@kernel
def list_sizes(values, indices, indptr, d, ptr):
    """1 / max_i ‖x_i − x̄‖ of each list, 0 where all its documents are equal; X as `core._row_kernels` has it."""
    sizes, mean, row = np.zeros(len(ptr) - 1), np.zeros(d), np.empty(d)
    for q in range(len(ptr) - 1):
        _, largest = extent(values, indices, indptr, d, ptr[q], ptr[q + 1], mean, row)
        sizes[q] = 1.0 / math.sqrt(largest) if largest > 0.0 else 0.0
    return sizes


@kernel
def rival_losses(minimax, margin, s, weight, level, ptr, scales, losses):
    """losses[c] += Σ of f_t(scales[c]·u) over the lists, s the scores of u, `weight` what each document weighs in f_t.

    SLAM: Σ_i weight_i (Δ + c·(max_{R_j<R_i} s_j − s_i))₊. Minimax: weight·max_{R_i>R_j} (Δ + c·(s_j − s_i))₊.
    """
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        heaviest = 0.0
        for i in range(a, b):
            heaviest = max(heaviest, weight[i])
        if heaviest == 0.0:
            continue
        top = 0
        for i in range(a, b):
            top = max(top, level[i])
        below = np.full(top + 2, -math.inf)  # the best score of all lower grades
        for i in range(a, b):
            below[level[i] + 1] = max(below[level[i] + 1], s[i])
        for g in range(1, top + 2):
            below[g] = max(below[g], below[g - 1])
        gap = -math.inf
        for i in range(a, b):
            if minimax:
                gap = max(gap, below[level[i]] - s[i])
            elif weight[i] > 0.0 and below[level[i]] > -math.inf:
                for c in range(len(scales)):
                    losses[c] += weight[i] * max(0.0, margin + scales[c] * (below[level[i]] - s[i]))
        if minimax:
            for c in range(len(scales)):
                losses[c] += heaviest * max(0.0, margin + scales[c] * gap)


@kernel
def rival_slope(minimax, margin, s, weight, level, ptr, slope):
    """Return Σ f_t(u) as `rival_losses` has it, and write a subgradient in the scores into `slope`."""
    total = 0.0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        heaviest, top = 0.0, 0
        for i in range(a, b):
            slope[i] = 0.0
            heaviest = max(heaviest, weight[i])
            top = max(top, level[i])
        if heaviest == 0.0:
            continue
        best = np.full(top + 2, -1)  # the document with the best score of all lower grades
        for i in range(a, b):
            g = level[i] + 1
            if best[g] < 0 or s[i] > s[best[g]]:
                best[g] = i
        for g in range(1, top + 2):
            if best[g] < 0 or (best[g - 1] >= 0 and s[best[g - 1]] > s[best[g]]):
                best[g] = best[g - 1]
        gap, low, high = -math.inf, -1, -1
        for i in range(a, b):
            j = best[level[i]]
            if j < 0:
                continue
            if minimax:
                if s[j] - s[i] > gap:
                    gap, low, high = s[j] - s[i], j, i
            elif weight[i] > 0.0 and margin + s[j] - s[i] > 0.0:
                total += weight[i] * (margin + s[j] - s[i])
                slope[i] -= weight[i]
                slope[j] += weight[i]
        if minimax and high >= 0 and margin + gap > 0.0:
            total += heaviest * (margin + gap)
            slope[high] -= heaviest
            slope[low] += heaviest
    return total


@kernel
def note_rounds(values, indices, indptr, d, ptr, v, weights, which, rows, always, scaled, measured, noted):
    """Add rounds to what a stream notes of itself (`rankers.noting.Noted` names the places).

    which[t] is the list of round t, rows[t] its (measure, surrogate, mistake, ‖z‖²); `measured` is Σ of the measure
    before them. The diameter of a list counts as twice its largest distance from the mean, 2 where lists are scaled.
    """
    mean, row = np.zeros(d), np.empty(d)
    for t in range(len(rows)):
        q, x = which[t], rows[t, 0]
        a, b = ptr[q], ptr[q + 1]
        weight = 1.0 if len(weights) == 0 else weights[q]
        noted[7] += (x - (0.5 + measured) / (noted[0] + 1)) ** 2
        measured += x
        noted[0] += 1
        if rows[t, 2] == 0.0 and not always:
            continue
        noted[6] = max(noted[6], weight)
        noted[2] = max(noted[2], 1.0 * (b - a))
        if rows[t, 1] > 0.0:
            noted[5] = max(noted[5], rows[t, 3] / rows[t, 1])
        low, high = math.inf, 0.0
        for i in range(a, b if len(v) else a):
            if v[i] > 0.0:
                low, high = min(low, v[i]), max(high, v[i])
        low, high = (low, high) if high > 0.0 else (1.0, 1.0)
        noted[3] = max(noted[3], high / low)
        longest, distance2 = 1.0, 1.0
        if not scaled:
            longest, distance2 = extent(values, indices, indptr, d, a, b, mean, row)
        noted[1] = max(noted[1], longest)
        noted[4] = max(noted[4], weight * 4.0 * distance2 / low)
