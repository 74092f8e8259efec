# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""LETOR lines: bytes to labels and CSR entries.

Positions are unsigned 64-bit: an index that may be negative costs a test per byte. Every chunk ends with a line feed,
which no token contains, so the loops over bytes need no test for the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.jit import inner_kernel, kernel
from ._decimal_kernels import DEFERRED, DOT, MALFORMED, MINUS, NEGATIVE, ZERO, number

TAB, LF, CR, BLANK, HASH, COLON, EQUALS = 9, 10, 13, 32, 35, 58, 61

OK, BAD_LABEL, BAD_QID, BAD_FEATURE, BAD_VALUE, BAD_INDEX, QID_APPEARS, QID_MISSING, NO_ROOM = range(9)
"""What stopped the parser, if anything."""


class Parsed(NamedTuple):
    """What a chunk of lines held, and where and why parsing stopped."""

    code: int
    position: int
    lines: int
    rows: int
    entries: int
    runs: int
    fixes: int
    id_bytes: int
    top_index: int
    zero_index: bool
    unsorted: bool
    has_qid: bool
    qid_known: bool


@kernel
def parse_chunk(text, size, lowest, highest, powers, table, labels, lengths, starts, runs, ids, values, columns, fixes):
    """Parse whole lines up to `size`.

    Per row: `labels`, `lengths` (entries), `starts` (of the line) and `ids` (start and length of the document id). Per
    entry: `values` and `columns`. Per change of query id: a line (row, id, start, length) of `runs`, with length 0 for
    an integer. Per number left to Python: a line (entry or −1 − row, start, stop) of `fixes`.
    """
    zero, one, two, three, four = np.uint64(ZERO), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    nine, ten, fifteen, hundred = np.uint64(9), np.uint64(10), np.uint64(15), np.uint64(100)
    i = start = entries = row_entries = top = np.uint64(0)
    lines = rows = n_runs = n_fixes = id_bytes = 0
    zero_index = unsorted = has_qid = qid_known = False
    span, minus = highest - lowest, np.uint64(NEGATIVE)
    code = OK
    while i < size:
        lines += 1
        line = i
        i = skip_blanks(text, i)
        if text[i] == LF or text[i] == HASH:
            while text[i] != LF:
                i += one
            i += one
            continue
        if rows == len(labels):
            code = NO_ROOM
            break
        starts[rows] = line
        row_entries = entries
        start = i
        i, label, kind = number(text, i, powers, table)
        if kind == MALFORMED or not ends_token(text[i]):
            code = BAD_LABEL
            break
        if kind == DEFERRED:
            fixes[n_fixes, 0], fixes[n_fixes, 1], fixes[n_fixes, 2] = -1 - rows, start, i
            n_fixes += 1
        start = i = skip_blanks(text, i)
        if text[i] == 113 and text[i + one] == 105 and text[i + two] == 100 and text[i + three] == COLON:
            if rows > 0 and not has_qid:
                code = QID_APPEARS
                break
            has_qid = qid_known = True
            begin = i + four
            i, qid, whole = integer(text, begin)
            if i == begin:
                code = BAD_QID
                break
            length = np.uint64(0) if whole else i - begin
            if rows == 0 or not same_id(text, runs[n_runs - 1], qid, begin, length):
                runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2], runs[n_runs, 3] = rows, qid, begin, length
                n_runs += 1
        elif rows > 0 and has_qid:
            code = QID_MISSING
            break
        qid_known = True
        floor = np.uint64(0)
        while True:
            digit = np.uint64(text[i]) - zero
            if digit > nine:
                i = skip_blanks(text, i)
                digit = np.uint64(text[i]) - zero
            start = i
            if digit > nine:
                break
            index = digit
            i += one
            digit = np.uint64(text[i]) - zero
            while digit <= nine:
                index = index * ten + digit
                i += one
                digit = np.uint64(text[i]) - zero
            if text[i] != COLON:
                code = BAD_FEATURE
                break
            if index - lowest > span or i - start > ten:
                code = BAD_INDEX
                break
            i += one
            begin = i
            digit = np.uint64(text[i]) - zero
            if digit <= nine and text[i + one] == BLANK:  # half the values of a typical file
                value = np.float64(digit)
                i += one
            else:
                negative = np.uint64(text[i] == MINUS)
                i += negative
                w = fraction = np.uint64(0)
                first_digit = i
                digit = np.uint64(text[i]) - zero
                while digit <= nine:
                    w = w * ten + digit
                    i += one
                    digit = np.uint64(text[i]) - zero
                digits = i - first_digit
                if text[i] == DOT:
                    i += one
                    first_digit = i
                    digit = np.uint64(text[i]) - zero
                    while digit <= nine:  # two at a time: half the branches
                        second = np.uint64(text[i + one]) - zero
                        if second > nine:
                            w = w * ten + digit
                            i += one
                            break
                        w = w * hundred + (digit * ten + second)
                        i += two
                        digit = np.uint64(text[i]) - zero
                    fraction = i - first_digit
                    digits += fraction
                # One division of exact doubles rounds once (Clinger); whatever is not that simple goes the long way.
                if digits - one < fifteen and ends_token(text[i]):
                    value = np.float64(np.int64(w)) / powers[fraction + negative * minus]
                else:
                    i, value, kind = number(text, begin, powers, table)
                    values[entries] = value
                    if kind == MALFORMED or not ends_token(text[i]) or np.isinf(values[entries]):
                        code = BAD_VALUE
                        break
                    if kind == DEFERRED:
                        fixes[n_fixes, 0], fixes[n_fixes, 1], fixes[n_fixes, 2] = entries, begin, i
                        n_fixes += 1
            values[entries] = value
            columns[entries] = index
            entries += one
            if index < floor:
                unsorted = True
                zero_index |= index == np.uint64(0)
                top = max(top, floor)
            floor = index + one
            i += np.uint64(text[i] == BLANK)
        if code != OK:
            break
        top = max(top, floor)
        zero_index |= entries > row_entries and columns[row_entries] == 0
        ids[rows, 1] = 0
        if text[i] == HASH:
            i = comment(text, i + one, ids[rows])
            id_bytes += ids[rows, 1]
        elif text[i] != LF:
            code = BAD_FEATURE
            break
        labels[rows], lengths[rows] = label, entries - row_entries
        rows += 1
        i += one
    if code != OK:
        entries = row_entries
    counts = lines, rows, np.int64(entries), n_runs, n_fixes, id_bytes
    return Parsed(code, np.int64(start), *counts, np.int64(top) - 1, zero_index, unsorted, has_qid, qid_known)


@inner_kernel
def skip_blanks(text, i):
    while text[i] == BLANK or text[i] == TAB or text[i] == CR:
        i += np.uint64(1)
    return i


@inner_kernel
def ends_token(byte):
    return byte in (BLANK, LF, CR, TAB, HASH)


@inner_kernel
def integer(text, i):
    """Read a query id: where it ends, its value, and whether it is an integer of 64 bits, written the one usual way."""
    start = i
    negative = text[i] == MINUS
    if negative:
        i += np.uint64(1)
    digits = i
    value, fits = np.int64(0), True
    while ZERO <= text[i] <= ZERO + 9:
        digit = np.int64(text[i]) - ZERO
        # Counting downwards, because −2⁶³ has no positive twin.
        fits &= value > -922337203685477580 or (value == -922337203685477580 and digit <= 7 + negative)
        value = value * 10 - digit
        i += np.uint64(1)
    usual = text[digits] != ZERO or (i == digits + np.uint64(1) and not negative)  # 007, -0 and +7 are kept as text
    if i > digits and usual and fits and ends_token(text[i]):
        return i, value if negative else -value, True
    i = start
    while not ends_token(text[i]):
        i += np.uint64(1)
    return i, np.int64(0), False


@inner_kernel
def same_id(text, run, qid, begin, length):
    if run[1] != qid or np.uint64(run[3]) != length:
        return False
    old = np.uint64(run[2])
    same = True
    for k in range(length):
        same &= text[old + np.uint64(k)] == text[begin + np.uint64(k)]
    return same


@inner_kernel
def comment(text, i, span):
    """Find the document id in a comment, `docid = ID …` or its only word; return the end of the line."""
    begin = stop = i = skip_blanks(text, i)
    named = after_docid(text, i)
    if named > i:
        begin = i = named
    words = 0
    while text[i] != LF:
        while text[i] != LF and text[i] != BLANK and text[i] != TAB and text[i] != CR:
            i += np.uint64(1)
        if words == 0:
            stop = i
        words += 1
        i = skip_blanks(text, i)
    span[0] = begin
    span[1] = stop - begin if words == 1 or named == begin else 0
    return i


@inner_kernel
def after_docid(text, start):
    """Return where the id of `docid = ID` begins, or 0 if this is something else."""
    i = start
    for letter in (100, 111, 99, 105, 100):
        if text[i] != letter:
            return np.uint64(0)
        i += np.uint64(1)
    i = skip_blanks(text, i)
    if text[i] != EQUALS:
        return np.uint64(0)
    i = skip_blanks(text, i + np.uint64(1))
    return np.uint64(0) if text[i] == LF else i
