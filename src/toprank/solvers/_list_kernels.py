# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What an online learner asks of a list besides its rounds: whether all is finite, its size, notes for certificates."""

from __future__ import annotations

import math

import numpy as np
from numba.extending import overload

from ..core.jit import kernel, sum_kernel
from ..core.rows import Dense
from ..data.validation import LARGEST_GRADE
from ..surrogates._margin_kernels import weights_of_lists
from .steps import Note

__all__ = ["list_sizes", "note_rounds", "sound_list", "weights_of_lists"]

ROUNDS, RADIUS2, LONGEST, VMAX = int(Note.ROUNDS), int(Note.RADIUS2), int(Note.LONGEST), int(Note.VMAX)
TIGHT, RATIO, HEAVIEST, SPREAD = int(Note.TIGHT), int(Note.RATIO), int(Note.HEAVIEST), int(Note.SPREAD)


@sum_kernel
def sound_list(X, y):
    """Whether all features are finite, and all grades from 0 to the largest whose gains add up."""
    total = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            total += X[i, j] * np.float32(0)  # 0 for a finite number, NaN for any other
    sound = total == 0.0
    for i in range(len(y)):
        sound &= y[i] >= 0 and y[i] <= LARGEST_GRADE
    return sound


def largest_norms(rows, first, last, d):
    """max ‖x_i‖² and max ‖x_i − x̄‖² of the rows first:last of d columns, inside a kernel."""
    raise NotImplementedError("largest_norms is called by kernels")


@sum_kernel
def dense_largest_norms(X, first, last, d):
    """Of the rows of a dense X."""
    mean, longest, farthest = np.zeros(d), 0.0, 0.0
    for i in range(first, last):
        for j in range(d):
            mean[j] += X[i, j]
    mean /= max(last - first, 1)
    for i in range(first, last):
        length, distance = 0.0, 0.0
        for j in range(d):
            x = np.float64(X[i, j])
            length += x * x
            distance += (x - mean[j]) * (x - mean[j])
        longest, farthest = max(longest, length), max(farthest, distance)
    return longest, farthest


@kernel
def sparse_largest_norms(data, indices, indptr, first, last, d):
    """Of the rows of a CSR matrix: ‖x − x̄‖² = ‖x̄‖² + Σ over the stored columns of x_j (x_j − 2 x̄_j)."""
    mean, longest, farthest, n = np.zeros(d), 0.0, 0.0, max(last - first, 1)
    for p in range(indptr[first], indptr[last]):
        mean[indices[p]] += data[p] / n
    centre = np.sum(mean**2)
    for i in range(first, last):
        length, distance = 0.0, centre
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[p])
            length += x * x
            distance += x * (x - 2.0 * mean[indices[p]])
        longest, farthest = max(longest, length), max(farthest, distance)
    return longest, farthest


@overload(largest_norms)
def _largest_norms(rows, first, last, d):
    if rows.instance_class is Dense:
        return lambda rows, first, last, d: dense_largest_norms(rows.X, first, last, d)
    return lambda rows, first, last, d: sparse_largest_norms(rows.data, rows.indices, rows.indptr, first, last, d)


@kernel
def list_sizes(rows, ptr, d):
    """1 / max_i ‖x_i − x̄‖ of each list, 0 where all its documents are equal."""
    sizes = np.zeros(len(ptr) - 1)
    for q in range(len(sizes)):
        farthest = largest_norms(rows, ptr[q], ptr[q + 1], d)[1]
        sizes[q] = 1.0 / math.sqrt(farthest) if farthest > 0.0 else 0.0
    return sizes


@kernel
def note_rounds(lists, list_of_round, rounds, v, always, n_features, measure_sum, noted):
    """Add rounds to what a stream notes for its certificates (`Note` names the places).

    Round t is of the list list_of_round[t], and rounds[t] has its measure, surrogate, mistake and ‖z‖²; `measure_sum`
    is Σ of the measure before them. `v` has the SLAM weights of the documents, and length 0 for other losses. The
    diameter of a list counts as twice its largest distance from the mean. Where each list is divided by that distance,
    `n_features` is 0, and nothing is measured: both are 1.
    """
    for t in range(len(rounds)):
        q, measure, loss, mistake, znorm2 = list_of_round[t], rounds[t, 0], rounds[t, 1], rounds[t, 2], rounds[t, 3]
        first, last = lists.ptr[q], lists.ptr[q + 1]
        noted[SPREAD] += (measure - (0.5 + measure_sum) / (noted[ROUNDS] + 1)) ** 2
        measure_sum += measure
        noted[ROUNDS] += 1
        if mistake == 0.0 and not always:
            continue
        noted[HEAVIEST] = max(noted[HEAVIEST], lists.weight[q])
        noted[LONGEST] = max(noted[LONGEST], 1.0 * (last - first))
        if loss > 0.0:
            noted[RATIO] = max(noted[RATIO], znorm2 / loss)
        lowest, highest = math.inf, 0.0
        for i in range(first, last if len(v) > 0 else first):
            if v[i] > 0.0:
                lowest, highest = min(lowest, v[i]), max(highest, v[i])
        if highest == 0.0:
            lowest, highest = 1.0, 1.0
        noted[VMAX] = max(noted[VMAX], highest / lowest)
        length2, distance2 = 1.0, 1.0
        if n_features > 0:
            length2, distance2 = largest_norms(lists.rows, first, last, n_features)
        noted[RADIUS2] = max(noted[RADIUS2], length2)
        noted[TIGHT] = max(noted[TIGHT], lists.weight[q] * 4.0 * distance2 / lowest)
