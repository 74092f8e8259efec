# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Losses of lists as C functions: whoever reads X can call one by its address while the rows are still in the cache.

A compiled function that is an argument of another is never found in the cache on disk; an address is a number. The
function gets a run of lists of its own, and fills their losses, the gradient in the scores and, unless its length is
0, the diagonal of their curvature. It returns −1, or the list that it cannot take.

Weights of documents, and the places by which documents of one grade are put in order, have length 0 where none are
given. The first of the codes says how many numbers there are.
"""

from __future__ import annotations

from functools import cached_property

import numba
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import kernel

CODES = 8
"""How many codes a function gets, the number of its numbers being the first."""

_reals, _whole = types.CPointer(types.float64), types.CPointer(types.int64)
SIGNATURE = types.int64(
    _reals, _reals, _reals, types.int64, _whole, types.int64, _whole, types.int64, _whole, _reals, _reals, _reals,
    _reals, types.int64,
)  # fmt: skip
"""Scores, y, weights, their number, places, their number, ptr, lists, codes, numbers, losses, gradient, curvature, its
length."""


class list_function:  # noqa: N801 (a decorator)
    """A C function that is compiled when its address is first asked for: a module may hold several."""

    def __init__(self, function):
        self.function = function

    @cached_property
    def compiled(self):
        """The compiled function, which must stay alive as long as its address is used."""
        return numba.cfunc(SIGNATURE, nopython=True, cache=True, error_model="numpy")(self.function)

    @property
    def address(self):
        """Where the function is, in this process."""
        return self.compiled.address


@kernel
def as_arrays(s, y, weight, weighted, place, placed, ptr, lists, codes, numbers, losses, grad, curve, curved):
    """What a list function is handed, as arrays: s, y, weight, place, ptr, codes, numbers, losses, grad, curve."""
    bounds, choice = carray(ptr, lists + 1), carray(codes, CODES)
    n = bounds[lists]
    return (
        carray(s, n), carray(y, n), carray(weight, weighted), carray(place, placed), bounds, choice,
        carray(numbers, choice[0]), carray(losses, lists), carray(grad, n), carray(curve, curved),
    )  # fmt: skip


@intrinsic
def _call(typing_context, address, arguments):
    """Call the C function at that address with a tuple of whole numbers and addresses."""

    def generate(context, builder, signature, values):
        ir = cgutils.ir
        given = cgutils.unpack_tuple(builder, values[1])
        of = [context.get_value_type(kind) for kind in SIGNATURE.args]
        kind = ir.FunctionType(context.get_value_type(SIGNATURE.return_type), of)
        passed = [
            builder.inttoptr(value, wanted) if isinstance(wanted, ir.PointerType) else value
            for value, wanted in zip(given, of, strict=True)
        ]
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), passed)

    return types.int64(types.int64, types.UniTuple(types.int64, len(SIGNATURE.args))), generate


@kernel
def call(address, s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """Let the function at that address fill losses, gradient and curvature; return −1 or the list it cannot take."""
    return _call(
        types.int64(address),
        (
            types.int64(s.ctypes.data),
            types.int64(y.ctypes.data),
            types.int64(weight.ctypes.data),
            types.int64(len(weight)),
            types.int64(place.ctypes.data),
            types.int64(len(place)),
            types.int64(ptr.ctypes.data),
            types.int64(len(ptr) - 1),
            types.int64(codes.ctypes.data),
            types.int64(numbers.ctypes.data),
            types.int64(losses.ctypes.data),
            types.int64(grad.ctypes.data),
            types.int64(curve.ctypes.data),
            types.int64(len(curve)),
        ),
    )
