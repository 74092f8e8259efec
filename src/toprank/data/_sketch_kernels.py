# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Marks of rows: hashes of their features."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel

LIST_BITS = np.uint64(16)
"""The low bits of a mark, which say in which list the row stands."""
LIST_MASK = np.uint64(0xFFFF)
SOME = 256
"""Marks that are sorted before they are merged with those that are kept."""


@kernel
def mixed(x):
    """Spread the bits of a number over all 64 (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def bits_of(value):
    """The bits of a value in single precision; in double precision where single has no such number but 0 or ∞."""
    single = np.float32(value)
    if single == 0 or single - single != 0:
        return mixed(np.float64(value).view(np.uint64))
    return np.uint64(single.view(np.uint32))


@kernel
def row_marks(values, indices, indptr, n_features, ptr):
    """One mark for each row: 48 bits of its values other than 0, then 16 bits of its list; 0 for a row of zeros.

    A missing cell (NaN) counts as 0: a row is the same whether it was filled with 0 when it was read or later. The bits
    of a list are those of the sum over its rows, so the order of the rows does not matter. They are never 0.
    """
    sparse, n_rows = len(indptr) > 0, ptr[-1]
    factor = np.empty(0 if sparse else n_features, np.uint64)
    for column in range(len(factor)):
        factor[column] = mixed(np.uint64(column + 1)) | np.uint64(1)
    marks = np.zeros(n_rows, np.uint64)
    for q in range(len(ptr) - 1):
        of_list = np.uint64(0)
        for row in range(ptr[q], ptr[q + 1]):
            total, filled = np.uint64(0), False
            if sparse:
                for p in range(indptr[row], indptr[row + 1]):
                    if values[p] != 0 and not np.isnan(values[p]):
                        total += bits_of(values[p]) * (mixed(np.uint64(indices[p] + 1)) | np.uint64(1))
                        filled = True
            else:
                for column in range(n_features):
                    value = values[row * n_features + column]
                    if value != 0 and not np.isnan(value):
                        total += bits_of(value) * factor[column]
                        filled = True
            if filled:
                marks[row] = mixed(total)
                of_list += marks[row]
        tag = max(mixed(of_list) & LIST_MASK, np.uint64(1))
        for row in range(ptr[q], ptr[q + 1]):
            if marks[row] != 0:
                marks[row] = ((marks[row] >> LIST_BITS) << LIST_BITS) | tag
    return marks


@kernel
def sort_in(fresh, count, mark):
    """Put a mark at its place among the first `count`, which go upwards; return how many there are then."""
    row, place = mark >> LIST_BITS, count
    while place > 0 and fresh[place - 1] >> LIST_BITS > row:
        place -= 1
    if place > 0 and fresh[place - 1] >> LIST_BITS == row:
        if fresh[place - 1] != mark:
            fresh[place - 1] = row << LIST_BITS
        return count
    for p in range(count, place, -1):
        fresh[p] = fresh[p - 1]
    fresh[place] = mark
    return count + 1


@kernel
def with_marks(known, marks, size):
    """The marks of the `size` smallest rows of both, upwards, each row once; 0 is no mark.

    A row that stands in different lists loses the bits of its list. Some marks at a time are sorted and merged.
    """
    merged, n, fresh = known, len(known), np.empty(min(SOME, len(marks)), np.uint64)
    for start in range(0, len(marks), SOME):
        count = 0
        for p in range(start, min(start + SOME, len(marks))):
            mark = marks[p]
            if mark != 0 and (n < size or mark >> LIST_BITS <= merged[size - 1] >> LIST_BITS):
                count = sort_in(fresh, count, mark)
        if count == 0:
            continue
        before, both = merged, np.empty(min(size, n + count), np.uint64)
        i = j = k = 0
        while k < len(both) and (i < n or j < count):
            if j == count or (i < n and before[i] >> LIST_BITS < fresh[j] >> LIST_BITS):
                both[k] = before[i]
                i += 1
            elif i == n or before[i] >> LIST_BITS > fresh[j] >> LIST_BITS:
                both[k] = fresh[j]
                j += 1
            else:
                both[k] = before[i] if before[i] == fresh[j] else (before[i] >> LIST_BITS) << LIST_BITS
                i += 1
                j += 1
            k += 1
        merged, n = both, k
    return merged[:n]
