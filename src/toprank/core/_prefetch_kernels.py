# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Ask the processor for memory that a kernel will read soon.

The processor's own prefetching stops at the end of a list when the next list lies elsewhere, and stays close ahead even
inside one. It is a hint: it changes no result, never faults (also past the end of an array), and is nothing at all on
machines without such an instruction.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LINE = 64
"""Bytes that come at once."""
BYTE, WORD = ir.IntType(8).as_pointer(), ir.IntType(32)


@intrinsic
def prefetch(_typing, array, offset):
    """Fetch the line that is `offset` bytes (int64) after the start of a contiguous array."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        start = builder.ptrtoint(data, ir.IntType(64))
        place = builder.inttoptr(builder.add(start, arguments[1]), BYTE)
        kind = ir.FunctionType(ir.VoidType(), [BYTE, WORD, WORD, WORD])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [place, WORD(0), WORD(2), WORD(1)])  # to read, into the second-level cache, data
        return context.get_dummy_value()

    return types.void(array, offset), generate
