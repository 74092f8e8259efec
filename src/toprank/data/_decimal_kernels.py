# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""Decimals and doubles: the double nearest to a text, and the shortest decimal that is read as the same bits.

Positions are unsigned 64-bit: an index that may be negative costs a test per byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.jit import inner_kernel

PLUS, MINUS, DOT, ZERO = 43, 45, 46, 48
FIRST_POWER, LAST_POWER = -342, 342
"""The powers of ten that reading or writing a double may need."""

NEGATIVE = 23
"""Where in the table of small powers the negative ones begin."""

EXACT, DEFERRED, MALFORMED = range(3)
"""A number: known to the last bit, left to Python's `float`, or none at all."""


@inner_kernel
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


@inner_kernel
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


@inner_kernel
def normalized(w):
    """Shift w until its leading bit is set; return it and the shift."""
    shift = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == 0:
            w <<= np.uint64(step)
            shift += step
    return w, shift


@inner_kernel
def scaled(w, q, table):
    """Return the leading 128 bits of w times the leading bits of 10^q: less than two units below the truth."""
    high, low = product(w, table[q - FIRST_POWER, 0])
    carry, _ = product(w, table[q - FIRST_POWER, 1])
    low += carry
    return high + np.uint64(low < carry), low


@inner_kernel
def product(a, b):
    """Return the high and the low half of the 128-bit product of two 64-bit numbers."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half), a * b


@inner_kernel
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


@inner_kernel
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


@inner_kernel
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


@inner_kernel
def reads_as(value, w, q, single, powers, table):
    found, sure = nearest(w, q, powers, table)
    return sure and (np.float32(found) == np.float32(value) if single else found == value)
