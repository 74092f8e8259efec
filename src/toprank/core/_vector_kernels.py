# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""e^x and log x over whole arrays, and sums: the same bits on every type of processor.

Plain loops without branches, so that the compiler does several numbers at a time.
The functions of `math` are called one number at a time, which takes longer than all else in a loss. These are within
2 units in the last place of the true value. They work in place: of two arrays the compiler would have to fear that
they overlap.
"""

from __future__ import annotations

import numpy as np

from ._lane_kernels import four_dots
from .jit import inner_kernel

LOG2E = 1.4426950408889634
LN2_HIGH = 0.693147180369123816490
"""log 2 to 33 bits: a product with a whole number of up to 20 bits is exact."""
LN2_LOW = 1.90821492927058770002e-10
"""The rest of log 2."""
ROUNDING = 6755399441055744.0
"""1.5 · 2^52: a number added to it is rounded to a whole one, which stands in the last bits of the sum."""
LOWEST, HIGHEST = -708.0, 709.0
"""Where e^x is a normal number."""
MANTISSA, HALF = (1 << 52) - 1, 0x3FE6A09E667F3BCD
"""The bits behind the point, and the bits of √½."""


@inner_kernel
def exponentials(x):
    """x ← e^x; 0 below −708, and x above 709 counts as 709."""
    for i in range(len(x)):
        v = x[i]
        inside = LOWEST if v < LOWEST else (HIGHEST if v > HIGHEST else v)
        shifted = inside * LOG2E + ROUNDING
        n = shifted - ROUNDING
        r = (inside - n * LN2_HIGH) - n * LN2_LOW
        # Σ r^i/i! up to i = 13, |r| ≤ ½ log 2, in pairs: half as many steps wait for each other.
        q = r * r
        p = 1.0 / 6227020800.0 * r + 1.0 / 479001600.0
        p = p * q + (1.0 / 39916800.0 * r + 1.0 / 3628800.0)
        p = p * q + (1.0 / 362880.0 * r + 1.0 / 40320.0)
        p = p * q + (1.0 / 5040.0 * r + 1.0 / 720.0)
        p = p * q + (1.0 / 120.0 * r + 1.0 / 24.0)
        p = p * q + (1.0 / 6.0 * r + 0.5)
        p = 1.0 + (r + q * p)
        power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
        x[i] = 0.0 if v < LOWEST else p * power


@inner_kernel
def logarithms(x):
    """x ← log x for normal positive x."""
    for i in range(len(x)):
        bits = np.float64(x[i]).view(np.int64)
        n = (bits - HALF) >> 52  # x = m 2^n with √½ ≤ m < √2
        m = np.int64(bits - (n << 52)).view(np.float64)
        # log m = 2 artanh(s), s = (m − 1)/(m + 1)
        f = m - 1.0
        s = f / (m + 1.0)
        q = s * s
        p = q * (1.0 / 23.0) + 1.0 / 21.0
        p = p * q + 1.0 / 19.0
        p = p * q + 1.0 / 17.0
        p = p * q + 1.0 / 15.0
        p = p * q + 1.0 / 13.0
        p = p * q + 1.0 / 11.0
        p = p * q + 1.0 / 9.0
        p = p * q + 1.0 / 7.0
        p = p * q + 0.2
        p = p * q + 1.0 / 3.0
        # 2 s = f − s f, so that the largest part is exact
        count = float(n)
        x[i] = count * LN2_HIGH + (f - (s * (f - 2.0 * q * p) - count * LN2_LOW))


@inner_kernel
def total(x, n):
    """Σ x[:n], in four strands."""
    a = b = c = d = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    for i in range(whole, n):
        a += x[i]
    return (a + b) + (c + d)


@inner_kernel
def dot(x, y):
    """Σ x_i y_i, in lanes."""
    return four_dots(x, 0, 0, 0, 0, y, len(x))[0]
