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

from numba import types
from numba.core import cgutils
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from .caching import cache_of
from .compiling import KernelCompiler, compiling
from .jit import body_kernel, inner_kernel

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
    """A C function that is compiled, or found in the cache, when its address is first asked for.

    `entry`, where there is one, makes the function of pointers out of the one that is written.
    """

    def __init__(self, signature, function, entry=None):
        self.signature, self.function, self.entry = signature, function, entry

    @cached_property
    def compiled(self):
        """The compiled function, which must stay alive as long as its address is used."""
        options = {"nopython": True, "error_model": "numpy"}
        signature = normalize_signature(self.signature)
        function = self.function
        if self.entry is not None:
            function = self.entry(self.function)
            function.__module__, function.__qualname__ = self.function.__module__, self.function.__qualname__
        made = CFunc(function, signature, locals={}, options=options, pipeline_class=KernelCompiler)
        made._cache = cache_of(self.function)  # type: ignore[attr-defined]
        with compiling(made._cache):  # type: ignore[attr-defined]
            made.compile()
        return made

    @property
    def address(self):
        """Where the function is, in this process."""
        return int(self.compiled.address)


def calls(signature):
    """Return an intrinsic that calls the C function of that signature at an address, with a tuple of arguments.

    Arrays stand for the address of their first number; so do whole numbers where the function takes a pointer.
    """

    @intrinsic
    def call_at(typing_context, address, arguments):
        def generate(context, builder, of_call, values):
            ir, passed = cgutils.ir, []
            of = [context.get_value_type(kind) for kind in signature.args]
            for kind, value, wanted in zip(arguments, cgutils.unpack_tuple(builder, values[1]), of, strict=True):
                if isinstance(kind, types.Array):
                    value = builder.bitcast(context.make_array(kind)(context, builder, value).data, wanted)
                elif isinstance(wanted, ir.PointerType):
                    value = builder.inttoptr(value, wanted)
                else:
                    value = context.cast(builder, value, kind, types.int64)
                passed.append(value)
            kind = ir.FunctionType(context.get_value_type(signature.return_type), of)
            return builder.call(builder.inttoptr(values[0], kind.as_pointer()), passed)

        return signature.return_type(types.int64, arguments), generate

    return call_at


_call_loss, _call_measure = calls(LOSS), calls(MEASURE)


@intrinsic
def array_at(typing_context, pointer, count):
    """Return `count` numbers at a pointer as an array that nobody owns (numba's `carray` takes longer to compile)."""
    kind = types.Array(pointer.dtype, 1, "C")

    def generate(context, builder, signature, values):
        made = context.make_array(kind)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(pointer.dtype)))
        populate_array(made, data=values[0], shape=[values[1]], strides=[size], itemsize=size, meminfo=None)
        return made._getvalue()

    return kind(pointer, types.intp), generate


def list_function(function, of_lists=None):
    """Make a C function of a loss of lists, which is handed arrays.

    They are scores, grades, weights, places, ptr, codes, numbers, losses, gradient and curvature. `of_lists` makes such
    a function of what is written, where that is a loss of one list.
    """

    def entry_of(written):
        loss = body_kernel(written if of_lists is None else of_lists(body_kernel(written)))

        def entry(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
            bounds, choice = array_at(ptr, lists + 1), array_at(codes, CODES)
            n = bounds[lists]
            return loss(
                array_at(s, n), array_at(y, n), array_at(weight, n_weights), array_at(place, n_places), bounds, choice,
                array_at(numbers, choice[0]), array_at(losses, lists), array_at(grad, n), array_at(curve, n_curve),
            )  # fmt: skip

        return entry

    return CFunction(LOSS, function, entry_of)


measure_function = partial(CFunction, MEASURE)


@inner_kernel
def call(address, s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """Let the function at that address fill losses, gradient and curvature; return −1 or the list it cannot take."""
    lists = s, y, weight, len(weight), place, len(place), ptr, len(ptr) - 1
    return _call_loss(types.int64(address), (*lists, codes, numbers, losses, grad, curve, len(curve)))


@inner_kernel
def judge(address, s, y, ptr, codes, numbers, values, scratch):
    """Let the measure at that address fill one value per list."""
    return _call_measure(
        types.int64(address), (s, y, ptr, len(ptr) - 1, codes, numbers, values, scratch, scratch, len(scratch))
    )
