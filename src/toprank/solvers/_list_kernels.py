# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What an online learner asks of a list besides its rounds: whether all is finite, its size, notes for certificates."""

from __future__ import annotations

import math

import numpy as np

from ..core._lane_kernels import add_rows, squares
from ..core.jit import inner_kernel, kernel, sum_kernel
from ..data.validation import LARGEST_GRADE
from ..surrogates._margin_kernels import weights_of_lists
from .steps import Note

ROUNDS, RADIUS2, LONGEST, VMAX = int(Note.ROUNDS), int(Note.RADIUS2), int(Note.LONGEST), int(Note.VMAX)
TIGHT, RATIO, HEAVIEST, SPREAD = int(Note.TIGHT), int(Note.RATIO), int(Note.HEAVIEST), int(Note.SPREAD)


@sum_kernel
def sound_list(X, y):
    """Whether all features are finite, and all grades from 0 to the largest whose gains add up."""
    total = X[0, 0] * np.float32(0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            total += X[i, j] * np.float32(0)  # 0 for a finite number, NaN for any other
    sound = total == 0
    for i in range(len(y)):
        sound &= y[i] >= 0 and y[i] <= LARGEST_GRADE
    return sound


@inner_kernel
def largest_norms(values, indices, indptr, d, a, b, mean):
    """max ‖x_i‖² and max ‖x_i − x̄‖² of the rows a:b; `mean` must be 0 and stays so."""
    m, longest, farthest = max(b - a, 1), 0.0, 0.0
    if len(indptr) == 0:
        fours = (b - a) // 4 * 4
        for i in range(a, a + fours, 4):
            add_rows(values, (i * d, (i + 1) * d, (i + 2) * d, (i + 3) * d), (1.0, 1.0, 1.0, 1.0), mean)
        for i in range(a + fours, b):
            add_rows(values, (i * d,), (1.0,), mean)
        for j in range(d):
            mean[j] /= m
        for i in range(a, b):
            length, distance = squares(values, i * d, mean)
            longest, farthest = max(longest, length), max(farthest, distance)
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
    sizes, mean = np.zeros(len(ptr) - 1), np.zeros(d)
    for q in range(len(ptr) - 1):
        _, largest = largest_norms(values, indices, indptr, d, ptr[q], ptr[q + 1], mean)
        sizes[q] = 1.0 / math.sqrt(largest) if largest > 0.0 else 0.0
    return sizes


@kernel
def note_rounds(
    values, indices, indptr, d, y, ptr, codes, numbers, weights, list_of_round, rows, always, scaled, measure_sum, noted
):  # fmt: skip
    """Add rounds to what a stream notes for its certificates (`Note` names the places).

    Codes and numbers are those of SLAM, None for other losses. Round t has the list list_of_round[t] and rows[t] =
    (measure, surrogate, mistake, ‖z‖²); `measure_sum` is Σ of the measure before them. The diameter of a list counts as
    twice its largest distance from the mean, 2 where lists are scaled.
    """
    mean, v = np.zeros(d), np.empty(0 if codes is None else len(y))
    if codes is not None:
        weights_of_lists(y, y, ptr, codes, numbers, v)
    for t in range(len(rows)):
        q, measure = list_of_round[t], rows[t, 0]
        a, b = ptr[q], ptr[q + 1]
        weight = 1.0 if len(weights) == 0 else weights[q]
        noted[SPREAD] += (measure - (0.5 + measure_sum) / (noted[ROUNDS] + 1)) ** 2
        measure_sum += measure
        noted[ROUNDS] += 1
        if rows[t, 2] == 0.0 and not always:
            continue
        noted[HEAVIEST] = max(noted[HEAVIEST], weight)
        noted[LONGEST] = max(noted[LONGEST], 1.0 * (b - a))
        if rows[t, 1] > 0.0:
            noted[RATIO] = max(noted[RATIO], rows[t, 3] / rows[t, 1])
        low, high = math.inf, 0.0
        for i in range(a, b if len(v) else a):
            if v[i] > 0.0:
                low, high = min(low, v[i]), max(high, v[i])
        low, high = (low, high) if high > 0.0 else (1.0, 1.0)
        noted[VMAX] = max(noted[VMAX], high / low)
        norm2, distance2 = 1.0, 1.0
        if not scaled:
            norm2, distance2 = largest_norms(values, indices, indptr, d, a, b, mean)
        noted[RADIUS2] = max(noted[RADIUS2], norm2)
        noted[TIGHT] = max(noted[TIGHT], weight * 4.0 * distance2 / low)
