# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Lists are ordered once and handed to each measure by its address."""

from __future__ import annotations

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from ..core._call_kernels import calls, measure_function
from ._order_kernels import ENDS, INDEX, LANES, ORDER, RANKED, REALS, ROWS
from ._value_kernels import VALUE

HEAD = 5
"""Codes of the order: where it is, tie rule, ranks wanted, whether places are wanted, how many measures."""
ENTRY = 3
"""Codes of each measure: where it is, where its own codes and its numbers begin."""

order_at, value_at = calls(ORDER), calls(VALUE)


@intrinsic
def number_of(typing_context, pointer):
    """Return a pointer as a whole number."""

    def generate(context, builder, signature, values):
        return builder.ptrtoint(values[0], context.get_value_type(types.int64))

    return types.int64(pointer), generate


@measure_function
def judge(
    s_at, y_at, ptr_at, lists, codes_at, numbers_at, values_at, places_at, room_at, length
):  # fmt: skip
    """values[i · lists + q] = measure i of list q; places, where wanted, are the ranks of the documents from 1.

    Documents at the end of a list whose score is no number are to be found, but are not ranked: a run lacks them.
    Allocates nothing if `room` is long enough: (ROWS + 2) (longest list + LANES + 1).
    """
    ptr, head = carray(ptr_at, lists + 1), carray(codes_at, HEAD)
    count = head[4]
    entries, values = carray(codes_at, HEAD + ENTRY * count)[HEAD:], carray(values_at, lists * count)
    longest = 0
    for q in range(lists):
        longest = max(longest, ptr[q + 1] - ptr[q])
    size = longest + LANES + 1
    own = length < (ROWS + 2) * size or head[3] != 0  # places are wanted in the caller's room
    room = np.empty((ROWS + 2) * size) if own else carray(room_at, length)
    s, y, codes, numbers = number_of(s_at), number_of(y_at), number_of(codes_at), number_of(numbers_at)
    base = room.ctypes.data
    ranked, ends, spare = base + 8 * RANKED * size, base + 8 * (REALS + ENDS) * size, base + 8 * ROWS * size
    index = room[(REALS + INDEX) * size : (REALS + INDEX + 1) * size].view(np.int64)
    scores = carray(s_at, ptr[lists])
    for q in range(lists):
        n, total, start = ptr[q + 1] - ptr[q], ptr[q + 1] - ptr[q], 8 * ptr[q]
        while n > 0 and scores[ptr[q] + n - 1] != scores[ptr[q] + n - 1]:
            n -= 1
        order_at(head[0], (s + start, y + start, n, head[1], head[2], base, size))
        for i in range(count):
            at, own, real = entries[ENTRY * i], entries[ENTRY * i + 1], entries[ENTRY * i + 2]
            values[i * lists + q] = value_at(
                at, (ranked, ends, y + start, n, total, codes + 8 * own, numbers + 8 * real, spare)
            )
        if head[3] != 0:
            places = carray(places_at, ptr[lists])
            for r in range(n):
                places[ptr[q] + index[r]] = r + 1
    return -1
