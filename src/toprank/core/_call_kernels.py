# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Losses and measures of lists as C functions: whoever reads X can call one while the rows are still in the cache.

A compiled function that is an argument of another is never found in the cache on disk; an address is a number. The
function gets a run of lists of its own, and fills their losses, the gradient in the scores and, unless its length is
0, the diagonal of their curvature. It returns −1, or the list that it cannot take.

Weights of documents, and the places by which documents of one grade are put in order, have length 0 where none are
given. The first of the codes says how many numbers there are.
"""

from __future__ import annotations

from functools import cached_property, partial

from numba import carray, types
from numba.core import cgutils
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from .caching import cache_of
from .compiling import KernelCompiler, compiling
from .jit import kernel

CODES = 8
"""How many codes a function gets, the number of its numbers being the first."""

_floats, _ints = types.CPointer(types.float64), types.CPointer(types.int64)
LOSS = types.int64(
    _floats, _floats, _floats, types.int64, _ints, types.int64, _ints, types.int64, _ints, _floats, _floats, _floats,
    _floats, types.int64,
)  # fmt: skip
"""Scores, y, weights, their number, places, their number, ptr, lists, codes, numbers, losses, gradient, curvature, its
length."""
MEASURE = types.int64(_floats, _floats, _ints, types.int64, _ints, _floats, _floats, _floats, _floats, types.int64)
"""Scores, y, ptr, lists, codes, numbers, values, places of documents (where wanted), scratch to work in, its length."""


class CFunction:
    """A C function that is compiled, or found in the cache, when its address is first asked for."""

    def __init__(self, signature, function):
        self.signature, self.function = signature, function

    @cached_property
    def compiled(self):
        """The compiled function, which must stay alive as long as its address is used."""
        options = {"nopython": True, "error_model": "numpy"}
        signature = normalize_signature(self.signature)
        made = CFunc(self.function, signature, locals={}, options=options, pipeline_class=KernelCompiler)
        made._cache = cache_of(self.function)  # type: ignore[attr-defined]
        with compiling(made._cache):  # type: ignore[attr-defined]
            made.compile()
        return made

    @property
    def address(self):
        """Where the function is, in this process."""
        return int(self.compiled.address)


list_function, measure_function = partial(CFunction, LOSS), partial(CFunction, MEASURE)


def calls(signature):
    """Return an intrinsic that calls the C function of that signature at an address, with a tuple of whole numbers."""

    @intrinsic
    def call_at(typing_context, address, arguments):
        def generate(context, builder, _signature, values):
            ir = cgutils.ir
            given = cgutils.unpack_tuple(builder, values[1])
            of = [context.get_value_type(kind) for kind in signature.args]
            kind = ir.FunctionType(context.get_value_type(signature.return_type), of)
            passed = [
                builder.inttoptr(value, wanted) if isinstance(wanted, ir.PointerType) else value
                for value, wanted in zip(given, of, strict=True)
            ]
            return builder.call(builder.inttoptr(values[0], kind.as_pointer()), passed)

        return signature.return_type(types.int64, types.UniTuple(types.int64, len(signature.args))), generate

    return call_at


_call_loss, _call_measure = calls(LOSS), calls(MEASURE)


@kernel
def as_arrays(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
    """What a list function is handed, as arrays: s, y, weight, place, ptr, codes, numbers, losses, grad, curve."""
    bounds, choice = carray(ptr, lists + 1), carray(codes, CODES)
    n = bounds[lists]
    return (
        carray(s, n), carray(y, n), carray(weight, n_weights), carray(place, n_places), bounds, choice,
        carray(numbers, choice[0]), carray(losses, lists), carray(grad, n), carray(curve, n_curve),
    )  # fmt: skip


@kernel
def call(address, s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """Let the function at that address fill losses, gradient and curvature; return −1 or the list it cannot take."""
    return _call_loss(
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


@kernel
def judge(address, s, y, ptr, codes, numbers, values, scratch):
    """Let the measure at that address fill one value per list."""
    return _call_measure(
        types.int64(address),
        (
            types.int64(s.ctypes.data),
            types.int64(y.ctypes.data),
            types.int64(ptr.ctypes.data),
            types.int64(len(ptr) - 1),
            types.int64(codes.ctypes.data),
            types.int64(numbers.ctypes.data),
            types.int64(values.ctypes.data),
            types.int64(scratch.ctypes.data),
            types.int64(scratch.ctypes.data),
            types.int64(len(scratch)),
        ),
    )
