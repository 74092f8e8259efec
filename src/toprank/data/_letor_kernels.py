# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""LETOR lines: bytes to labels and CSR entries, and back to the shortest text that gives the same bits.

Positions are unsigned 64-bit: an index that may be negative costs a test per byte. Every chunk ends with a line feed,
which no token contains, so the loops over bytes need no test for the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel

TAB, LF, CR, BLANK, HASH, PLUS, MINUS, DOT, ZERO, COLON, EQUALS = 9, 10, 13, 32, 35, 43, 45, 46, 48, 58, 61
FIRST_POWER, LAST_POWER = -342, 342
"""The powers of ten that reading or writing a double may need."""

NEGATIVE = 23
"""Where in the table of small powers the negative ones begin."""

OK, BAD_LABEL, BAD_QID, BAD_FEATURE, BAD_VALUE, BAD_INDEX, QID_APPEARS, QID_MISSING, NO_ROOM = range(9)
"""What stopped the parser, if anything."""

EXACT, DEFERRED, MALFORMED = range(3)
"""A number: known to the last bit, left to Python's `float`, or none at all."""


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
def parse_chunk(text, size, lowest, highest, powers, table, labels, values, columns, lengths, starts, runs, ids, fixes):
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


@kernel
def skip_blanks(text, i):
    while text[i] == BLANK or text[i] == TAB or text[i] == CR:
        i += np.uint64(1)
    return i


@kernel
def ends_token(byte):
    return byte in (BLANK, LF, CR, TAB, HASH)


@kernel
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


@kernel
def same_id(text, run, qid, begin, length):
    if run[1] != qid or np.uint64(run[3]) != length:
        return False
    old = np.uint64(run[2])
    same = True
    for k in range(length):
        same &= text[old + np.uint64(k)] == text[begin + np.uint64(k)]
    return same


@kernel
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


@kernel
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


@kernel
def number(text, i, powers, table):
    """Read `[+-]digits[.digits][e[+-]digits]`: where it ends, its value, and whether that is exact."""
    one, nine, ten, zero = np.uint64(1), np.uint64(9), np.uint64(10), np.uint64(ZERO)
    negative = text[i] == MINUS
    if negative or text[i] == PLUS:
        i += one
    w = np.uint64(0)
    exponent = digits = 0  # digits: from the first that is not 0
    seen = point = False
    while True:
        digit = np.uint64(text[i]) - zero
        if digit <= nine:
            seen = True
            if digits < 19:
                w = w * ten + digit
                digits += w != 0
                exponent -= point
            else:
                digits += 1
                exponent += not point
        elif text[i] == DOT and not point:
            point = True
        else:
            break
        i += one
    if not seen:
        return i, 0.0, MALFORMED
    if text[i] == 101 or text[i] == 69:
        i += one
        down = text[i] == MINUS
        if down or text[i] == PLUS:
            i += one
        if np.uint64(text[i]) - zero > nine:
            return i, 0.0, MALFORMED
        power = 0
        while np.uint64(text[i]) - zero <= nine:
            power = min(power * 10 + np.int64(text[i]) - ZERO, 1 << 40)
            i += one
        exponent += -power if down else power
    value, exact = nearest(w, exponent, powers, table)
    if digits > 19:  # with the digits that were left out, between w and w + 1
        upper, sure = nearest(w + one, exponent, powers, table)
        exact = exact and sure and upper == value
    return i, -value if negative else value, EXACT if exact else DEFERRED


@kernel
def nearest(w, q, powers, table):
    """Return the double nearest to w·10^q, and whether that is sure.

    Where both sides are exact doubles, one operation rounds once (Clinger). Otherwise the leading 128 bits of w times
    the leading 128 bits of 10^q fall short by less than two units, which settles the rounding unless it stands that
    close to the middle between two doubles (Eisel and Lemire).
    """
    if w == 0:
        return 0.0, True
    if w <= np.uint64(1 << 53) and -22 <= q <= 22:
        return (np.float64(w) / powers[-q] if q < 0 else np.float64(w) * powers[q]), True
    if q < FIRST_POWER or q > LAST_POWER:
        return 0.0, False
    w, shift = normalized(w)
    high, low = scaled(w, q, table)
    top = np.int64(high >> np.uint64(63))
    exponent = log2_power(q) - shift + 63 + top
    kept = min(53, 53 + 1022 + exponent)  # fewer below the smallest normal double
    if kept == 0 and high << np.uint64(2 - top) != 0:  # more than half the smallest double
        return 5e-324, True
    if kept < 1 or exponent > 1023:
        return 0.0, False
    dropped = np.uint64(63 + top - kept)
    rest = high & ((np.uint64(1) << dropped) - np.uint64(1))
    half = np.uint64(1) << (dropped - np.uint64(1))
    if (rest == half and low == 0) or (rest + np.uint64(1) == half and low >= np.uint64(0xFFFFFFFFFFFFFFFE)):
        return 0.0, False
    mantissa = (high >> dropped) + np.uint64(rest >= half)
    # The leading one of a normal mantissa adds 1 to the exponent field.
    bits = np.uint64(mantissa + (np.uint64(exponent + 1022 if kept == 53 else 0) << np.uint64(52)))
    return bits.view(np.float64), bits < np.uint64(0x7FF0000000000000)


@kernel
def normalized(w):
    """Shift w until its leading bit is set; return it and the shift."""
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == 0:
            w <<= np.uint64(step)
            shift += step
    return w, shift


@kernel
def scaled(w, q, table):
    """Return the leading 128 bits of w times the leading bits of 10^q: less than two units below the truth."""
    high, low = product(w, table[q - FIRST_POWER, 0])
    carry, _ = product(w, table[q - FIRST_POWER, 1])
    low += carry
    return high + np.uint64(low < carry), low


@kernel
def product(a, b):
    """Return the high and the low half of the 128-bit product of two 64-bit numbers."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half), a * b


@kernel
def log2_power(q):
    """Return ⌊log2(10^q)⌋, for every q of the table."""
    return (q * 217706) >> 16


def power_table() -> tuple[Any, Any]:
    """Return 10^0 … 10^22, which are exact doubles, and the leading 128 bits of 10^q, rounded down: a pair per q.

    From place `NEGATIVE` on, the first of them follow with a minus sign.
    """
    table = np.empty((LAST_POWER - FIRST_POWER + 1, 2), dtype=np.uint64)
    for q in range(FIRST_POWER, LAST_POWER + 1):
        bits = (10 ** abs(q)).bit_length()
        leading = (10**q << 128) >> bits if q >= 0 else (1 << (bits + 127)) // 10**-q
        table[q - FIRST_POWER] = leading >> 64, leading & (2**64 - 1)
    powers = [float(10**q) for q in range(23)]
    return np.array(powers + [-power for power in powers]), table


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


@kernel
def write_feature(out, at, column, value, single, powers, table):
    out[at] = BLANK
    at = write_digits(out, at + 1, np.uint64(column + 1), count_digits(np.uint64(column + 1), powers))
    out[at] = COLON
    return write_number(out, at + 1, value, single, powers, table)


@kernel
def write_span(out, at, source, ends, k):
    return write_bytes(out, at, source, ends[k - 1] if k else 0, ends[k])


@kernel
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


@kernel
def count_digits(w, powers):
    n = 1
    while n < 20 and w >= np.uint64(powers[n]):
        n += 1
    return n


@kernel
def write_digits(out, at, w, n):
    """Write w in n digits, with zeros in front."""
    for k in range(at + n - 1, at - 1, -1):
        out[k] = np.uint64(ZERO) + w % np.uint64(10)
        w //= np.uint64(10)
    return at + n


@kernel
def shortest(value, single, powers, table):
    """Return the fewest digits c, and an exponent q, such that c·10^q is read as `value` > 0.

    Two decimals of up to 15 digits (6 for float32) are never read as the same normal number. So if 15 digits do, they
    are the shortest ones and zeros; else 16 do, or 17 (9), which always do.
    """
    bits = np.float64(value).view(np.uint64)
    field = np.int64(bits >> np.uint64(52))
    mantissa = bits & np.uint64((1 << 52) - 1)
    if field:
        mantissa |= np.uint64(1 << 52)
    mantissa, shift = normalized(mantissa)
    binary = max(field, 1) - 1075 - shift
    q = 17 - (((63 + binary) * 78913) >> 18)  # ⌊log10 2^n⌋: 10^q may be ten times too large
    while True:  # w = value·10^q, of 18 digits, wrong by one at most
        high, _ = scaled(mantissa, q, table)
        drop = np.uint64(-(log2_power(q) + 1 + binary))
        w = (high >> drop) + ((high >> (drop - np.uint64(1))) & np.uint64(1))
        if w <= np.uint64(powers[18]):
            break
        q -= 1
    n = 1 if value < (1.1754943508222875e-38 if single else 2.2250738585072014e-308) else 6 if single else 15
    c = fitting(value, w, 18 - n, q, single, powers, table)
    while c == 0:
        n += 1
        c = fitting(value, w, 18 - n, q, single, powers, table)
    exponent = 18 - n - q
    while c % np.uint64(10) == 0:
        c //= np.uint64(10)
        exponent += 1
    return c, exponent


@kernel
def fitting(value, w, dropped, q, single, powers, table):
    """Return w without its last digits, rounded so that the reader finds `value`, or 0 if it does not."""
    one, unit = np.uint64(1), np.uint64(powers[dropped])
    c = (w + unit // np.uint64(2)) // unit
    rest = (w + unit // np.uint64(2)) % unit
    # Where w is that close to the middle, its true value may round the other way; and above a power of two there is
    # twice the room as below it, so what lies above may fit though it is not the nearest.
    power_of_two = np.float64(value).view(np.uint64) & np.uint64((1 << 52) - 1) == 0
    other = c + one if power_of_two or rest + one >= unit else c - one if rest <= one else c
    if reads_as(value, c, dropped - q, single, powers, table):
        return c
    return other if other != c and reads_as(value, other, dropped - q, single, powers, table) else np.uint64(0)


@kernel
def reads_as(value, w, q, single, powers, table):
    found, sure = nearest(w, q, powers, table)
    return sure and (np.float32(found) == np.float32(value) if single else found == value)
