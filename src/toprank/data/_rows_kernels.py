# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Sparse rows: whether their columns are there and rise."""

from __future__ import annotations

import numpy as np

from ..core.plain import kernel


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
