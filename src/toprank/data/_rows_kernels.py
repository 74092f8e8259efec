# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sparse rows: checked, counted, and written into arrays of other shapes."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel


@kernel
def row_outside(columns, indptr, width):
    """Return the first row with a column outside 0 … width − 1, or −1, and whether columns rise within every row."""
    rising = True
    for r in range(len(indptr) - 1):
        last = np.int64(-1)
        for k in range(indptr[r], indptr[r + 1]):
            column = np.int64(columns[k])
            if column < 0 or column >= width:
                return r, rising
            if column <= last:
                rising = False
            last = column
    return -1, rising


@kernel
def count_stored(values, lengths):
    """Count in each row what a sparse matrix stores: all but +0."""
    counts = np.zeros(len(lengths), dtype=np.int32)
    k = 0
    for r in range(len(lengths)):
        stop = k + lengths[r]
        while k < stop:
            counts[r] += values[k] != 0 or np.signbit(values[k])
            k += 1
    return counts


@kernel
def fill_rows(grid, first, lengths, values, columns):
    """Write sparse rows into a dense array of zeros, whose first column has index `first`."""
    k = 0
    for r in range(len(lengths)):
        for _ in range(lengths[r]):
            grid[r, columns[k] - first] = values[k]
            k += 1


@kernel
def place_entries(starts, lengths, values, columns, all_values, all_columns):
    """Copy the entries of row r to `starts[r]` and behind it, among those of all rows."""
    k = 0
    for r in range(len(lengths)):
        for to in range(starts[r], starts[r] + lengths[r]):
            all_values[to], all_columns[to] = values[k], columns[k]
            k += 1
