# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Losses and measures of lists as C functions: the code that reads X calls them while the rows are still in the cache.

Code that takes a compiled function as an argument is never found in the cache on disk; an address is just a number. A
loss gets some lists one after the other, and fills their losses, the gradient in the scores and, unless its length is
0, the diagonal of their curvature. It returns −1, or the number of a list that it refuses.

Weights of documents, and the places by which documents of one grade are put in order, have length 0 if none are given.
The first code is how many numbers there are.
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
"""How many codes a function gets; the first is how many numbers it gets."""

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

    `entry`, if given, turns the function that is written into one that takes pointers.
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


def caller_of(signature):
    """Return an intrinsic that calls the C function of that signature at an address, with a tuple of arguments.

    Where the function takes a pointer, an array is passed as the address of its first number, and a whole number as an
    address.
    """

    @intrinsic
    def call_at(typing_context, address, arguments):
        def generate(context, builder, _signature, values):
            ir, given = cgutils.ir, []
            c_types = [context.get_value_type(kind) for kind in signature.args]
            for kind, value, c_type in zip(arguments, cgutils.unpack_tuple(builder, values[1]), c_types, strict=True):
                if isinstance(kind, types.Array):
                    value = builder.bitcast(context.make_array(kind)(context, builder, value).data, c_type)
                elif isinstance(c_type, ir.PointerType):
                    value = builder.inttoptr(value, c_type)
                else:
                    value = context.cast(builder, value, kind, types.int64)
                given.append(value)
            kind = ir.FunctionType(context.get_value_type(signature.return_type), c_types)
            return builder.call(builder.inttoptr(values[0], kind.as_pointer()), given)

        return signature.return_type(types.int64, arguments), generate

    return call_at


_call_loss, _call_measure = caller_of(LOSS), caller_of(MEASURE)


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
    """Make a C function of a loss of lists that is written for arrays.

    They are scores, grades, weights, places, ptr, codes, numbers, losses, gradient and curvature. If the written loss
    is of one list, `of_lists` turns it into such a function.
    """

    def entry_of(written):
        loss = body_kernel(written if of_lists is None else of_lists(body_kernel(written)))

        def entry(s, y, weight, n_weights, place, n_places, ptr, lists, codes, numbers, losses, grad, curve, n_curve):
            ptr_array, code_array = array_at(ptr, lists + 1), array_at(codes, CODES)
            n = ptr_array[lists]
            return loss(
                array_at(s, n), array_at(y, n), array_at(weight, n_weights), array_at(place, n_places), ptr_array,
                code_array, array_at(numbers, code_array[0]), array_at(losses, lists), array_at(grad, n),
                array_at(curve, n_curve),
            )  # fmt: skip

        return entry

    return CFunction(LOSS, function, entry_of)


measure_function = partial(CFunction, MEASURE)


@inner_kernel
def call(address, s, y, weight, place, ptr, codes, numbers, losses, grad, curve):
    """Let the function at that address fill losses, gradient and curvature; return −1 or the list it refuses."""
    lists = s, y, weight, len(weight), place, len(place), ptr, len(ptr) - 1
    return _call_loss(types.int64(address), (*lists, codes, numbers, losses, grad, curve, len(curve)))


@inner_kernel
def judge(address, s, y, ptr, codes, numbers, values, scratch):
    """Let the measure at that address fill one value per list."""
    return _call_measure(
        types.int64(address), (s, y, ptr, len(ptr) - 1, codes, numbers, values, scratch, scratch, len(scratch))
    )
