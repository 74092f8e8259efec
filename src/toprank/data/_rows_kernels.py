# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Rows from one shape into another: sparse or dense, wider, in another order.

Values are copied one by one: with numba 0.68, `a[i:j] = b[k:l]` in a loop may keep a reference to both arrays for ever.
"""

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
def fill_rows(flat, width, base, values, columns, lengths):
    """Write CSR rows as dense ones of `width` columns; what they do not hold is 0."""
    start = entry = np.uint64(0)
    for r in range(len(lengths)):
        if lengths[r] == width:  # sorted, none twice: every column
            for c in range(np.uint64(width)):
                flat[start + c] = values[entry + c]
            entry += np.uint64(width)
        else:
            flat[start : start + np.uint64(width)] = 0
            stop = entry + np.uint64(lengths[r])
            while entry < stop:
                flat[start + np.uint64(columns[entry] - base)] = values[entry]
                entry += np.uint64(1)
        start += np.uint64(width)


@kernel
def count_entries(flat, width, lengths):
    """Count what a CSR form of dense rows holds: all but +0."""
    for r in range(len(lengths)):
        for k in range(r * width, (r + 1) * width):
            lengths[r] += flat[k] != 0 or np.signbit(flat[k])


@kernel
def take_entries(flat, width, base, values, columns):
    """Write dense rows as CSR entries, without +0."""
    entry = 0
    for k in range(len(flat)):
        if flat[k] != 0 or np.signbit(flat[k]):
            values[entry] = flat[k]
            columns[entry] = k % width + base
            entry += 1


@kernel
def widen_rows(flat, rows, width, new_width, shift):
    """Give dense rows more columns in place, `shift` of them in front: from the back, so nothing is overwritten."""
    kept = min(width, new_width - shift)
    for r in range(rows - 1, -1, -1):
        for c in range(kept - 1, -1, -1):
            flat[r * new_width + shift + c] = flat[r * width + c]
        flat[r * new_width : r * new_width + shift] = 0
        flat[r * new_width + shift + kept : (r + 1) * new_width] = 0


@kernel
def gather(source, ends, order, out):
    """Copy the runs of `source` (run r ends at `ends[r]`) in the order given, one behind the other."""
    at = 0
    for r in order:
        for k in range(ends[r - 1] if r else 0, ends[r]):
            out[at] = source[k]
            at += 1


@kernel
def reorder_rows(X, order, done, spare):
    """Let row r become the old row `order[r]`, in place: along each cycle, one spare row."""
    for first in range(len(order)):
        if done[first]:
            continue
        for c in range(X.shape[1]):
            spare[c] = X[first, c]
        r = first
        while not done[r]:
            done[r] = True
            source = order[r]
            for c in range(X.shape[1]):
                X[r, c] = X[source, c] if source != first else spare[c]
            r = source


@kernel
def spread_text(text, lengths, out):
    """Write runs of ASCII bytes as rows of UCS-4, padded with 0."""
    at = 0
    for r in range(len(lengths)):
        for k in range(out.shape[1]):
            out[r, k] = text[at + k] if k < lengths[r] else 0
        at += lengths[r]


@kernel
def take_spans(text, spans, out):
    """Copy spans of text (start and length), one behind the other."""
    at = 0
    for r in range(len(spans)):
        for k in range(spans[r, 0], spans[r, 0] + spans[r, 1]):
            out[at] = text[k]
            at += 1
