# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Inner products whose additions stand in a fixed order, so that every type of processor gives the same bits.

A compiler that may reorder a sum picks the order by the width of the machine's registers. Here the order is written
down: LANES partial sums side by side, no product fused with its addition, then those sums in pairs, then the rest.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = {types.float64: 8, types.float32: 16}
"""Partial sums, by the type that is summed."""
_WORD = ir.IntType(64)


def _lanes_of(builder, vector, lanes):
    return [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(lanes)]


def _in_pairs(builder, parts):
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [builder.fadd(parts[i], parts[i + half]) for i in range(half)]
    return parts[0]


@intrinsic
def four_dots(_typing, x, first, second, third, fourth, w, n):
    """Σ_j x[start + j] w[j], j < n, for four starts (int64) in a flat x: four sums in the type of w."""
    summed, stored = w.dtype, x.dtype
    lanes = LANES[summed]

    def generate(context, builder, signature, arguments):
        here, there = signature.args[0], signature.args[5]
        data = context.make_array(here)(context, builder, arguments[0]).data
        weights = context.make_array(there)(context, builder, arguments[5]).data
        starts, count = arguments[1:5], arguments[6]
        number = context.get_value_type(summed)
        many, many_stored = ir.VectorType(number, lanes), ir.VectorType(context.get_value_type(stored), lanes)

        def load(pointer, place, kind, size):
            return builder.load(builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer()), align=size)

        def wide(value, kind):
            return value if stored == summed else builder.fpext(value, kind)

        sums = [cgutils.alloca_once_value(builder, ir.Constant(many, [0.0] * lanes)) for _ in starts]
        rest = builder.srem(count, _WORD(lanes))
        whole = builder.sub(count, rest)
        with cgutils.for_range_slice(builder, _WORD(0), whole, _WORD(lanes), _WORD) as (j, _):
            factor = load(weights, j, many, summed.bitwidth // 8)
            for start, total in zip(starts, sums, strict=True):
                row = wide(load(data, builder.add(start, j), many_stored, stored.bitwidth // 8), many)
                builder.store(builder.fadd(builder.load(total), builder.fmul(row, factor)), total)
        ends = [
            cgutils.alloca_once_value(builder, _in_pairs(builder, _lanes_of(builder, builder.load(t), lanes)))
            for t in sums
        ]
        with cgutils.for_range_slice(builder, whole, count, _WORD(1), _WORD) as (j, _):
            factor = builder.load(builder.gep(weights, [j]))
            for start, total in zip(starts, ends, strict=True):
                row = wide(builder.load(builder.gep(data, [builder.add(start, j)])), number)
                builder.store(builder.fadd(builder.load(total), builder.fmul(row, factor)), total)
        return context.make_tuple(builder, signature.return_type, [builder.load(total) for total in ends])

    words = [types.int64] * 4
    return types.UniTuple(summed, 4)(x, *words, w, types.int64), generate


@intrinsic
def sparse_dot(_typing, x, columns, start, stop, w):
    """Σ x[p] w[columns[p]], start ≤ p < stop: the bits of `four_dots` on the row with its zeros written out."""
    summed, stored = w.dtype, x.dtype
    lanes = LANES[summed]

    def generate(context, builder, signature, arguments):
        here, there, weighing = (signature.args[i] for i in (0, 1, 4))
        data = context.make_array(here)(context, builder, arguments[0]).data
        places = context.make_array(there)(context, builder, arguments[1]).data
        weights = context.make_array(weighing)(context, builder, arguments[4])
        number = context.get_value_type(summed)
        width = builder.extract_value(weights.shape, 0)
        whole = builder.sub(width, builder.srem(width, _WORD(lanes)))
        # One slot for each lane, then one for each column of the rest.
        slots = cgutils.alloca_once(builder, ir.ArrayType(number, 2 * lanes))
        builder.store(ir.Constant(slots.type.pointee, [0.0] * (2 * lanes)), slots)

        def slot(place):
            return builder.gep(slots, [_WORD(0), place])

        with cgutils.for_range_slice(builder, arguments[2], arguments[3], _WORD(1), _WORD) as (p, _):
            column = builder.load(builder.gep(places, [p]))
            column = column if there.dtype == types.int64 else builder.zext(column, _WORD)
            rest = builder.add(builder.sub(column, whole), _WORD(lanes))
            lane = builder.and_(column, _WORD(lanes - 1))
            total = slot(builder.select(builder.icmp_signed("<", column, whole), lane, rest))
            value = builder.load(builder.gep(data, [p]))
            value = value if stored == summed else builder.fpext(value, number)
            product = builder.fmul(value, builder.load(builder.gep(weights.data, [column])))
            builder.store(builder.fadd(builder.load(total), product), total)
        parts = [builder.load(slot(_WORD(lane))) for lane in range(lanes)]
        result = cgutils.alloca_once_value(builder, _in_pairs(builder, parts))
        with cgutils.for_range_slice(builder, whole, width, _WORD(1), _WORD) as (j, _):
            last = builder.load(slot(builder.add(builder.sub(j, whole), _WORD(lanes))))
            builder.store(builder.fadd(builder.load(result), last), result)
        return builder.load(result)

    if columns.dtype not in (types.int32, types.int64):
        raise TypeError(f"columns must be int32 or int64, not {columns.dtype}")
    return summed(x, columns, types.int64, types.int64, w), generate
