# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Lists are ordered once and handed to each measure by its address."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..core._call_kernels import array_at, caller_of, measure_function
from ..core._order_kernels import longest_list
from ..core.jit import inner_kernel
from ._order_kernels import LANES, ORDER, SCRATCH
from ._value_kernels import VALUE

HEAD = 6
"""Codes of the order: where it is, tie rule, ranks wanted, ranks of the best order wanted, whether places are wanted,
how many measures."""
ENTRY = 5
"""Codes of each measure: where it is, where its own codes begin, and those for lists without ties, and its numbers, and
how many of these."""
INPUT = np.int64(0)
SCALE = 31
"""Whole grades up to this are counted, not sorted, for the best order."""

order_at, value_at = caller_of(ORDER), caller_of(VALUE)


@intrinsic
def number_of(typing_context, pointer):
    """Return a pointer as a whole number."""

    def generate(context, builder, signature, values):
        return builder.ptrtoint(values[0], context.get_value_type(types.int64))

    return types.int64(pointer), generate


@intrinsic
def whole_at(typing_context, address):
    """Return the pointer to whole numbers at an address."""

    def generate(context, builder, signature, values):
        return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(types.int64), generate


@inner_kernel
def best_grades(y, first, n, top, best):
    """Write the first `top` grades in descending order and return whether that could be done: small whole numbers."""
    outside, top_grade = 0, np.int32(0)
    for i in range(first, first + n):
        whole = np.int32(min(max(y[i], -1.0), SCALE + 1.0))
        outside += (y[i] != whole) | (whole > SCALE) | (whole < 0)
        top_grade = max(top_grade, whole)
    r, grade = 0, top_grade
    while outside == 0 and r < min(top, n):
        count = 0
        for i in range(first, first + n):
            count += y[i] == grade
        for place in range(r, r + count):
            best[place] = grade
        r, grade = r + count, grade - 1
    return outside == 0


@measure_function
def judge(
    s_at, y_at, ptr_at, lists, codes_at, numbers_at, values_at, places_at, scratch_at, length
):  # fmt: skip
    """values[i · lists + q] = measure i of list q; places, where wanted, are the ranks of the documents from 1.

    Documents at the end of a list whose score is no number are to be found, but are not ranked: a run lacks them.
    Allocates nothing if `scratch` is long enough: (SCRATCH + 3) (longest list + LANES + 1).
    """
    ptr, head = array_at(ptr_at, lists + 1), array_at(codes_at, HEAD)
    address, ties, top, ideal, count = head[0], head[1], head[2], head[3], head[5]
    entries, values = array_at(codes_at, HEAD + ENTRY * count), array_at(values_at, lists * count)
    size = longest_list(ptr) + LANES + 1
    own = length < (SCRATCH + 3) * size or head[4] != 0  # places are wanted in the caller's scratch
    scratch = np.empty((SCRATCH + 3) * size) if own else array_at(scratch_at, length)
    s, y, codes, numbers = number_of(s_at), number_of(y_at), number_of(codes_at), number_of(numbers_at)
    scores, grades = array_at(s_at, ptr[lists]), array_at(y_at, ptr[lists])
    # Grades by rank, ends of tied groups, documents by rank, six for the order; the best order, two for a measure.
    base, row = scratch.ctypes.data, 8 * size
    best_at, spare, best = base + SCRATCH * row, base + (SCRATCH + 1) * row, scratch[SCRATCH * size :]
    for q in range(lists):
        n, total, start = ptr[q + 1] - ptr[q], ptr[q + 1] - ptr[q], 8 * ptr[q]
        while n > 0 and scores[ptr[q] + n - 1] != scores[ptr[q] + n - 1]:
            n -= 1
        if ideal > 0 and not best_grades(grades, ptr[q], total, ideal, best):
            order_at(
                address,
                (
                    y + start, y + start, total, INPUT, ideal, best_at, base + row, base + 2 * row,
                    base + 3 * row, base + 4 * row, base + 5 * row, base + 6 * row, base + 7 * row, base + 8 * row,
                ),
            )  # fmt: skip
        tied = order_at(
            address,
            (
                s + start, y + start, n, ties, top, base, base + row, base + 2 * row,
                base + 3 * row, base + 4 * row, base + 5 * row, base + 6 * row, base + 7 * row, base + 8 * row,
            ),
        )  # fmt: skip
        for i in range(count):
            at = HEAD + ENTRY * i
            own_codes = codes + 8 * entries[at + (1 if tied > 0 else 2)]
            values[i * lists + q] = value_at(
                entries[at],
                (
                    base, base + row, y + start, best_at, n, total, own_codes, numbers + 8 * entries[at + 3],
                    entries[at + 4], spare,
                ),
            )  # fmt: skip
        if head[4] != 0:
            places, index = array_at(places_at, ptr[lists]), array_at(whole_at(base + 2 * row), n)
            for r in range(n):
                places[ptr[q] + index[r]] = r + 1
    return -1
