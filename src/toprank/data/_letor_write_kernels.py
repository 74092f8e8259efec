# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""Rows as LETOR lines, each number by the shortest text that gives the same bits."""

from __future__ import annotations

import numpy as np

from ..core.jit import inner_kernel, kernel
from ._decimal_kernels import DOT, MINUS, ZERO, shortest
from ._letor_kernels import BLANK, COLON, LF


@kernel
def format_rows(out, labels, values, columns, ends, last_column, query, names, name_ends, ids, id_ends, powers, table):
    """Write rows as text and return its length.

    Row r has the entries up to `ends[r]` and belongs to query number `query[r]`, whose name ends at `name_ends`.
    Without `columns` the rows are dense and zeros are written too. `last_column` of the first row is written even if
    it is 0.
    """
    single = values.itemsize == 4
    wide = last_column < 0
    at = entry = 0
    for r in range(len(labels)):
        at = write_number(out, at, labels[r], False, powers, table)
        at = write_bytes(out, at, np.frombuffer(b" qid:", np.uint8), 0, 5)
        at = write_span(out, at, names, name_ends, query[r])
        first = entry
        while entry < ends[r]:
            column = columns[entry] if len(columns) else entry - first
            value = np.float64(values[entry])
            if value != 0 or np.signbit(value) or not len(columns):
                at = write_feature(out, at, column, value, single, powers, table)
                wide |= column == last_column
            entry += 1
        if not wide:
            at = write_feature(out, at, last_column, 0.0, single, powers, table)
            wide = True
        if len(id_ends) and id_ends[r] > (id_ends[r - 1] if r else 0):
            at = write_bytes(out, at, np.frombuffer(b" #docid = ", np.uint8), 0, 10)
            at = write_span(out, at, ids, id_ends, r)
        out[at] = LF
        at += 1
    return at


@inner_kernel
def write_feature(out, at, column, value, single, powers, table):
    out[at] = BLANK
    at = write_digits(out, at + 1, np.uint64(column + 1), count_digits(np.uint64(column + 1), powers))
    out[at] = COLON
    return write_number(out, at + 1, value, single, powers, table)


@inner_kernel
def write_span(out, at, source, ends, k):
    return write_bytes(out, at, source, ends[k - 1] if k else 0, ends[k])


@inner_kernel
def write_bytes(out, at, source, start, stop):
    for k in range(start, stop):
        out[at] = source[k]
        at += 1
    return at


@kernel
def write_number(out, at, value, single, powers, table):
    """Write the shortest decimal text that is read back as the same bits (of float32, if `single`)."""
    if np.signbit(value):
        out[at] = MINUS
        at += 1
    if value == 0:
        out[at] = ZERO
        return at + 1
    size = np.abs(value)
    if size < (1 << 24 if single else 1 << 53) and size == np.floor(size):  # whole, and each digit counts
        digits, exponent = np.uint64(size), 0
    else:
        digits, exponent = shortest(size, single, powers, table)
    n = count_digits(digits, powers)
    point = n + exponent  # digits before the decimal point
    if 0 < point <= 16:
        if exponent < 0:
            at = write_digits(out, at, digits // np.uint64(powers[-exponent]), point)
            out[at] = DOT
            return write_digits(out, at + 1, digits % np.uint64(powers[-exponent]), -exponent)
        return write_digits(out, at, digits * np.uint64(powers[exponent]), point)
    if -4 < point <= 0:
        out[at], out[at + 1] = ZERO, DOT
        return write_digits(out, at + 2, digits, n - point)
    at = write_digits(out, at, digits // np.uint64(powers[n - 1]), 1)
    if n > 1:
        out[at] = DOT
        at = write_digits(out, at + 1, digits % np.uint64(powers[n - 1]), n - 1)
    out[at] = 101
    at += 1
    if point < 1:
        out[at] = MINUS
        at += 1
    power = np.uint64(abs(point - 1))
    return write_digits(out, at, power, count_digits(power, powers))


@inner_kernel
def count_digits(w, powers):
    n = 1
    while n < 20 and w >= np.uint64(powers[n]):
        n += 1
    return n


@inner_kernel
def write_digits(out, at, w, n):
    """Write w in n digits, with zeros in front."""
    for k in range(at + n - 1, at - 1, -1):
        out[k] = np.uint64(ZERO) + w % np.uint64(10)
        w //= np.uint64(10)
    return at + n
