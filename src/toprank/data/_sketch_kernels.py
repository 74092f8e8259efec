# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Marks of queries: hashes of a few rows each."""

from __future__ import annotations

import numpy as np

from ..core.jit import inner_kernel, kernel

ROWS = 4
"""Documents of a query that its mark is made of."""


@inner_kernel
def mixed(x):
    """Spread the bits of a number over all 64 (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def query_marks(values, indices, indptr, n_features, ptr):
    """A hash of the length of each query and of four of its rows in single precision; 0 without documents."""
    sparse, marks = len(indptr) > 0, np.empty(len(ptr) - 1, np.uint64)
    for q in range(len(ptr) - 1):
        first, n = ptr[q], ptr[q + 1] - ptr[q]
        mark = np.uint64(0) if n == 0 else mixed(np.uint64(n))
        for i in range(ROWS if n > 0 else 0):
            row = first + (n - 1) * i // (ROWS - 1)
            low, high = row * n_features, (row + 1) * n_features
            if sparse:
                low, high = indptr[row], indptr[row + 1]
            total = np.uint64(0)
            for p in range(low, high):
                value = np.float32(values[p])
                if value != 0:
                    column = indices[p] if sparse else p - low
                    total += np.uint64(value.view(np.uint32)) * (mixed(np.uint64(column + 1)) | np.uint64(1))
            mark = mixed(mark ^ total)
        marks[q] = mark
    return marks


@kernel
def with_marks(known, marks, size):
    """The `size` smallest of known and other marks, upwards, each once; 0 is no mark.

    Plain loops: numpy's search and a slice of one array in another take three seconds to compile.
    """
    merged, n = known, len(known)
    for mark in marks:
        place, beyond = 0, n
        while place < beyond:
            middle = (place + beyond) // 2
            if merged[middle] < mark:
                place = middle + 1
            else:
                beyond = middle
        if mark == 0 or place == size or (place < n and merged[place] == mark):
            continue
        if merged is known:
            merged = np.empty(size, np.uint64)
            for p in range(n):
                merged[p] = known[p]
        n = min(n + 1, size)
        for p in range(n - 1, place, -1):
            merged[p] = merged[p - 1]
        merged[place] = mark
    return merged[:n]
