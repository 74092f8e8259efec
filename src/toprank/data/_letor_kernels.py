# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""LETOR lines: bytes to labels, ids and entries, and decimal text to doubles.

Every text ends with a line feed, which no token contains, so the loops over bytes need no test for the end.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel

TAB, LF, CR, BLANK, HASH, PLUS, MINUS, DOT, ZERO, COLON, EQUALS = 9, 10, 13, 32, 35, 43, 45, 46, 48, 58, 61

ONE = np.uint64(1)
"""Positions are unsigned: an index that may be negative costs a test per byte."""

OK, BAD_LABEL, BAD_QUERY, UNEXPECTED_QUERY, MISSING_QUERY, BAD_FEATURE, BAD_VALUE, BAD_INDEX = range(8)
"""What stopped the parser, if anything."""


class Limits(NamedTuple):
    """What a line may hold: its smallest and largest feature index, and whether it names a query."""

    lowest: int
    highest: int
    has_queries: bool


class Rows(NamedTuple):
    """One place per line with a label. `starts` are positions in the text."""

    labels: Any
    new_query: Any
    """Whether the query id differs from that of the row before."""
    starts: Any
    lengths: Any
    """Number of entries."""
    query_starts: Any
    query_lengths: Any
    id_starts: Any
    id_lengths: Any
    """Document ids; a length of 0 stands for none."""


class Entries(NamedTuple):
    """One place per `index:value`, row by row. A value that only Python's `float` can read is NaN."""

    values: Any
    columns: Any
    starts: Any


class Parsed(NamedTuple):
    """How many whole rows and how many entries were read, and what is wrong where; indices that rise in every row."""

    rows: int
    entries: int
    rising: bool
    problem: int
    position: int


@kernel
def parse_lines(text, limits, rows, entries):
    """Read whole lines into `rows` and `entries`, up to the end or to the first problem.

    A line with a problem leaves what was read of it behind the last whole row.
    """
    i = np.uint64(0)
    r = n = 0
    rising = True
    while i < len(text):
        i = skip_blanks(text, i)
        if text[i] == LF or text[i] == HASH:
            i = end_of_line(text, i) + ONE
            continue
        start = i
        rows.starts[r], rows.new_query[r] = start, False
        i, rows.labels[r], is_number = read_number(text, start)
        if not is_number:
            return Parsed(r, n, rising, BAD_LABEL, np.int64(start))
        start = skip_blanks(text, i)
        i, problem = read_query(text, start, limits, rows, r)
        if problem != OK:
            return Parsed(r, n, rising, problem, np.int64(start))
        first = n
        i, n, rises, problem = read_features(text, i, limits, entries, n)
        if problem != OK:
            return Parsed(r, n, rising, problem, np.int64(i))
        rows.lengths[r] = n - first
        rising &= rises
        i, rows.id_starts[r], rows.id_lengths[r] = find_document_id(text, i)
        i += ONE
        r += 1
    return Parsed(r, n, rising, OK, np.int64(i))


@kernel
def read_query(text, i, limits, rows, r):
    """Read `qid:ID` of row r if there is one; return where it ends, and the problem."""
    start = after_word(text, i, (113, 105, 100, COLON))
    if start == i:
        return i, MISSING_QUERY if limits.has_queries else OK
    if not limits.has_queries:
        return i, UNEXPECTED_QUERY
    i = start
    while not ends_token(text[i]):
        i += ONE
    rows.query_starts[r], rows.query_lengths[r] = start, i - start
    rows.new_query[r] = r == 0 or not same_query(text, rows, r - 1, r)
    return i, BAD_QUERY if i == start else OK


@kernel
def same_query(text, rows, r, s):
    """Say whether two rows have the same bytes as their query id."""
    length = rows.query_lengths[s]
    if rows.query_lengths[r] != length:
        return False
    k = 0
    while k < length and text[rows.query_starts[r] + k] == text[rows.query_starts[s] + k]:
        k += 1
    return k == length


@kernel
def read_features(text, i, limits, entries, n):
    """Read `index:value …` up to a comment or the end of the line; the first becomes entry n.

    Return where it stopped (at a bad token, where that begins), the next free entry, whether indices rose, and the
    problem. The loops over digits stand here and not in functions, because a call with an array costs as much as
    reading a number.
    """
    values, columns, starts = entries
    last = -1
    rising = True
    while True:
        while is_blank(text[i]):
            i += ONE
        if text[i] == LF or text[i] == HASH:
            return i, n, rising, OK
        start = i
        index = 0
        while is_digit(text[i]):
            index = index * 10 + digit(text[i])
            i += ONE
        if i == start or text[i] != COLON:
            return start, n, rising, BAD_FEATURE
        if index < limits.lowest or index > limits.highest or i - start > 10:
            return start, n, rising, BAD_INDEX
        i += ONE
        number = i
        negative = text[i] == MINUS
        if negative:
            i += ONE
        first_digit = i
        w = n_decimals = 0
        while is_digit(text[i]):
            w = w * 10 + digit(text[i])
            i += ONE
        n_digits = i - first_digit
        if text[i] == DOT:
            i += ONE
            point = i
            while is_digit(text[i]):
                w = w * 10 + digit(text[i])
                i += ONE
            n_decimals = np.int64(i - point)
            n_digits = i - first_digit - ONE
        if 0 < n_digits <= 15 and ends_token(text[i]):
            value = w / TENS[n_decimals]
            value = -value if negative else value
        else:
            i, value, is_number = read_number(text, number)
            if not is_number:
                return start, n, rising, BAD_VALUE
        values[n], columns[n], starts[n] = value, index, start
        n += 1
        rising &= index > last
        last = index


@kernel
def find_document_id(text, i):
    """Find the document id in a comment at i, `#docid = ID …` or `#ID`: the end of the line, start and length."""
    if text[i] == LF:
        return i, i, np.uint64(0)
    start = skip_blanks(text, i + ONE)
    named = after_word(text, start, (100, 111, 99, 105, 100))
    equals = skip_blanks(text, named)
    is_named = named > start and text[equals] == EQUALS
    if is_named:
        value = skip_blanks(text, equals + ONE)
        is_named = text[value] != LF
        start = value if is_named else start
    stop = start
    while not (is_blank(text[stop]) or text[stop] == LF):
        stop += ONE
    is_only_word = text[skip_blanks(text, stop)] == LF
    return end_of_line(text, stop), start, stop - start if is_named or is_only_word else np.uint64(0)


@kernel
def after_word(text, i, letters):
    """Return where a word that begins at i ends, or i if another one stands there."""
    start = i
    for letter in letters:
        if text[i] != letter:
            return start
        i += ONE
    return i


@kernel
def skip_blanks(text, i):
    while is_blank(text[i]):
        i += ONE
    return i


@kernel
def end_of_line(text, i):
    while text[i] != LF:
        i += ONE
    return i


@kernel
def is_blank(byte):
    return byte in (BLANK, TAB, CR)


@kernel
def ends_token(byte):
    return byte in (BLANK, LF, CR, TAB, HASH)


@kernel
def is_digit(byte):
    return ZERO <= byte <= ZERO + 9


@kernel
def digit(byte):
    return np.int64(byte) - ZERO


@kernel
def read_number(text, i):
    """Read the token `[+-]digits[.digits][e[+-]digits]`: where it ends, its value, and whether it is such a token.

    The value is the nearest double, or NaN for one of the few that are left to Python's `float`. Digits beyond the
    first 18 that count do not fit into 64 bits: it is only noted whether one of them is not 0.
    """
    negative = text[i] == MINUS
    if negative or text[i] == PLUS:
        i += ONE
    w = q = n_digits = 0
    is_cut = has_point = False
    while is_digit(text[i]) or (text[i] == DOT and not has_point):
        if text[i] == DOT:
            has_point = True
        else:
            n_digits += 1
            if w < MOST_DIGITS:
                w = w * 10 + digit(text[i])
                q -= has_point
            else:
                is_cut |= text[i] != ZERO
                q += not has_point
        i += ONE
    is_number = n_digits > 0
    if text[i] == 101 or text[i] == 69:
        i, exponent, is_whole = read_exponent(text, i + ONE)
        is_number &= is_whole
        q += exponent
    value = nearest_double(w, q, is_cut)
    return i, -value if negative else value, is_number and ends_token(text[i])


@kernel
def read_exponent(text, i):
    """Read `[+-]digits`: where it ends, its value (cut at a million, beyond every double), and whether it is that."""
    negative = text[i] == MINUS
    if negative or text[i] == PLUS:
        i += ONE
    start = i
    exponent = 0
    while is_digit(text[i]):
        exponent = min(exponent * 10 + digit(text[i]), 1_000_000)
        i += ONE
    return i, -exponent if negative else exponent, i > start


MOST_DIGITS = 10**17
"""A number that is smaller can take one more digit, within 64 bits."""

TENS = np.array([float(10**q) for q in range(23)])
"""The powers of ten that are doubles."""

FIRST_POWER, LAST_POWER = -100, 20
POWERS = [Fraction(10) ** q for q in range(FIRST_POWER, LAST_POWER + 1)]
HIGH = np.array([float(power) for power in POWERS])
LOW = np.array([float(power - Fraction(near)) for power, near in zip(POWERS, HIGH.tolist(), strict=True)])
"""Powers of ten as sums of two doubles."""


@kernel
def nearest_double(w, q, cut):
    """Return the double nearest to w·10^q, or NaN where that is not sure; `cut` if digits followed those of w.

    Where w and 10^|q| are doubles themselves, their product or quotient is rounded once (Clinger, 1990). Else both are
    written as sums of two doubles, w = w₁ + w₂ exactly and 10^q = h₁ + h₂ up to 2^-106 h₁, and the product is p + t
    with p + e = w₁h₁ exactly and t = w₁h₂ + w₂h₁ + e. The roundings of t, and what is left out of it, are less than
    9·2^-106 p; the digits that were cut add less than 10^q. If p + t is rounded to the same double whether more than
    this error is added or taken away, that is the double nearest to the true product too (Ziv, 1991).
    Within the powers of the table nothing overflows or loses bits at the lower end, in float32 either.
    """
    if w == 0:
        return 0.0
    if w <= 1 << 53 and -22 <= q <= 22 and not cut:
        return w / TENS[-q] if q < 0 else w * TENS[q]
    if q < FIRST_POWER or q > LAST_POWER:
        return np.nan
    h1, h2 = HIGH[q - FIRST_POWER], LOW[q - FIRST_POWER]
    w1 = np.float64(w)
    w2 = np.float64(w - np.int64(w1))
    p, e = exact_product(w1, h1)
    t = w1 * h2 + w2 * h1 + e
    error = 2.0**-100 * p + (2.0 * h1 if cut else 0.0)
    return p + t if p + (t - error) == p + (t + error) else np.nan


@kernel
def exact_product(a, b):
    """Return the double nearest to a·b, and what it lacks (Dekel, 1971): halves of 26 bits have exact products."""
    a1, a2 = halves(a)
    b1, b2 = halves(b)
    p = a * b
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@kernel
def halves(a):
    scaled = 134217729.0 * a  # 2^27 + 1
    upper = scaled - (scaled - a)
    return upper, a - upper


@kernel
def count_byte(text, byte):
    """Count a byte of the text."""
    n = 0
    for k in range(len(text)):
        n += text[k] == byte
    return n


@kernel
def join_ids(text, starts, lengths, out):
    """Copy ids out of the text, each with a line feed behind it."""
    at = 0
    for r in range(len(starts)):
        for k in range(lengths[r]):
            out[at] = text[starts[r] + k]
            at += 1
        out[at] = LF
        at += 1
