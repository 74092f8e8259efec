# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The k largest of a few hundred scores, in the way that their number and spread call for.

Buffers come from the caller and hold one place more than there are scores, and at least 2·COUNTED.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inner_kernel

SMALL = 12
"""Up to this many, the largest are kept in a sorted strip; beyond it, they are selected around pivots."""
COUNTED = 64
"""Up to this many are sorted by counting, in a buffer of twice as many."""
BUCKETS, CROWD = 128, 32
"""How many buckets the largest are dealt into, and the most that one of them may hold."""
SAMPLE = 16
"""How many are looked at to guess where the k-th largest lies; of less than eight times as many, none."""


@inner_kernel
def copy(a, n, b):
    """b[:n] = a[:n]; a plain loop compiles ten times faster than slices do."""
    for i in range(n):
        b[i] = a[i]


@inner_kernel
def fill(a, start, stop, value):
    """a[start:stop] = value."""
    for i in range(start, stop):
        a[i] = value


@inner_kernel
def ascend(a, n, b):
    """Sort a[:n] upwards: short runs by counting, which has no branch to mispredict, long ones by merging."""
    if n <= COUNTED:
        for i in range(n):
            b[i] = a[i]
            b[COUNTED + i] = 0.0
            a[i] = -math.inf
        for j in range(n):
            x = b[j]
            for i in range(n):  # b[COUNTED + i] counts what is below b[i]
                b[COUNTED + i] += 1.0 if x < b[i] else 0.0
        for i in range(n):
            a[int(b[COUNTED + i])] = b[i]
        for i in range(1, n):  # of equals one was placed, the places behind it are still empty
            a[i] = max(a[i], a[i - 1])
        return
    source, target, width = a, b, 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for place in range(low, high):
                if i < middle and (j >= high or source[i] <= source[j]):
                    target[place] = source[i]
                    i += 1
                else:
                    target[place] = source[j]
                    j += 1
        source, target, width = target, source, 2 * width
    copy(source, n, a)  # where they are the same array, each element is copied on itself


@inner_kernel
def narrow(a, n, k, b, c):
    """Leave out of a[:n] what a sample shows to lie below its k largest; return how many are left."""
    expected = k * SAMPLE / n
    rank = int(expected + 2.0 * math.sqrt(expected) + 1.5)
    if n < 8 * SAMPLE or 2 * rank > SAMPLE:
        return n
    for i in range(SAMPLE):
        b[i] = a[i * (n // SAMPLE)]
    ascend(b, SAMPLE, c)
    pivot, count = b[SAMPLE - rank], 0
    for i in range(n):
        count += a[i] >= pivot
    if count < k:
        return n
    kept = 0
    for i in range(n):  # no branch depends on a comparison of two elements: nothing to mispredict
        value = a[i]
        a[kept] = value  # kept ≤ i: nothing unread is overwritten
        kept += value >= pivot
    return kept


@inner_kernel
def select(a, n, k, b):
    """Return the k-th largest of a[:n], 1 ≤ k ≤ n, around pivots (medians of three); both buffers are used up."""
    while True:
        x, y, z = a[0], a[n >> 1], a[n - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        more = less = 0
        for i in range(n):
            value = a[i]
            a[more] = value
            b[less] = value
            more += value > pivot
            less += value < pivot
        if k <= more:
            n = more
        elif k <= n - less:
            return pivot
        else:
            k -= n - less
            n = less
            a, b = b, a


@inner_kernel
def strip_of_largest(a, n, k, b):
    """Move the k largest of a[:n] to a[:k], ascending."""
    ascend(a, k, b)
    for i in range(k, n):
        x = a[i]
        if x > a[0]:
            j = 1
            while j < k and a[j] < x:
                a[j - 1] = a[j]
                j += 1
            a[j - 1] = x


@inner_kernel
def kth_largest(a, n, k, b, c):
    """Return the k-th largest of a[:n], 1 ≤ k ≤ n; all buffers are used up."""
    if k <= SMALL:
        strip_of_largest(a, n, k, b)
        return a[0]
    return select(a, narrow(a, n, k, b, c), k, b)


@inner_kernel
def top_by_buckets(a, n, k, b, c):
    """Do what `sorted_top` does by way of buckets of equal width; False where they fill too unevenly, nothing done.

    Nothing but the last touch, which moves an element past the others of its bucket, branches on what is compared.
    """
    low = high = a[0]
    for i in range(n):
        low = a[i] if a[i] < low else low
        high = a[i] if a[i] > high else high
    scale = (BUCKETS - 1) / (high - low)
    if not scale < math.inf:
        return False
    fill(c, 0, BUCKETS, 0.0)
    for i in range(n):
        c[np.uint8((a[i] - low) * scale)] += 1.0
    cut, kept, fullest = BUCKETS, 0, 0.0
    while kept < k:
        cut -= 1
        kept += int(c[cut])
        fullest = max(fullest, c[cut])
    if fullest > CROWD:
        return False
    fill(c, 0, cut, float(n))  # what lies below the cut goes to one place behind all others
    place = 0.0
    for j in range(cut, BUCKETS):  # from how many to where
        count = c[j]
        c[j] = place
        place += count
    for i in range(n):
        bucket = np.uint8((a[i] - low) * scale)
        b[int(c[bucket])] = a[i]
        c[bucket] += 1.0 if bucket >= cut else 0.0
    for i in range(1, kept):
        x, j = b[i], i
        while j > 0 and b[j - 1] > x:
            b[j] = b[j - 1]
            j -= 1
        b[j] = x
    for i in range(k):
        a[i] = b[kept - k + i]
    return True


@inner_kernel
def sorted_top(a, n, k, b, c):
    """Move the k largest of a[:n] to a[:k], ascending."""
    if k <= SMALL:
        strip_of_largest(a, n, k, b)
        return
    n = narrow(a, n, k, b, c)
    if top_by_buckets(a, n, k, b, c):
        return
    if n > COUNTED:
        copy(a, n, b)
        cut = select(b, n, k, c)
        above = 0
        for i in range(n):
            a[above] = a[i]
            above += a[i] > cut
        fill(a, above, k, cut)
        n = k
    ascend(a, n, b)
    for i in range(k):
        a[i] = a[n - k + i]
