# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Inner products whose additions stand in a fixed order, so that every type of processor gives the same bits.

A compiler that may reorder a sum picks the order by the width of the machine's registers. Here the order is written
down: column j goes to partial sum j mod LANES, no product is fused with its addition, then the sums go in pairs.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = {types.float64: 8, types.float32: 16}
"""Partial sums, by the type that is summed."""
_WORD = ir.IntType(64)


def _in_pairs(builder, vector):
    """Add the second half of the lanes to the first, and again, until one is left."""
    index, lanes = ir.IntType(32), vector.type.count
    while lanes > 1:
        lanes //= 2
        halves = (ir.Constant(ir.VectorType(index, lanes), list(range(start, start + lanes))) for start in (0, lanes))
        vector = builder.fadd(*(builder.shuffle_vector(vector, vector, half) for half in halves))
    return builder.extract_element(vector, index(0))


def _by_lanes(builder, count, lanes, step):
    """Call `step(j, load, store)` for j = 0, lanes, … below count; at the end both leave out missing columns."""

    def there(pointer, place, kind):
        return builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer())

    def load(pointer, place, kind, size):
        return builder.load(there(pointer, place, kind), align=size)

    def store(vector, pointer, place, size):
        builder.store(vector, there(pointer, place, vector.type), align=size)

    done = _WORD(0)
    for together in (2, 1):  # by twos, the processor sees further ahead: a fortieth of an epoch
        stop = builder.sub(count, builder.srem(count, _WORD(together * lanes)))
        with cgutils.for_range_slice(builder, done, stop, _WORD(together * lanes), _WORD) as (j, _):
            for more in range(together):
                step(builder.add(j, _WORD(more * lanes)), load, store)
        done = stop
    with builder.if_then(builder.icmp_signed("<", done, count)):
        few, word = ir.VectorType(_WORD, lanes), ir.IntType(32)
        limit = builder.insert_element(ir.Constant(few, ir.Undefined), builder.sub(count, done), word(0))
        limit = builder.shuffle_vector(limit, limit, ir.Constant(ir.VectorType(word, lanes), [0] * lanes))
        mask = builder.icmp_signed("<", ir.Constant(few, list(range(lanes))), limit)

        def masked(action, size, back, *given):
            form = ir.FunctionType(back, given)
            name = f"llvm.masked.{action}.v{lanes}f{8 * size}.p0v{lanes}f{8 * size}"
            return cgutils.get_or_insert_function(builder.module, form, name)

        def load_some(pointer, place, kind, size):
            function = masked("load", size, kind, kind.as_pointer(), word, mask.type, kind)
            return builder.call(
                function, [there(pointer, place, kind), word(size), mask, ir.Constant(kind, [0.0] * lanes)]
            )

        def store_some(vector, pointer, place, size):
            kind = vector.type
            function = masked("store", size, ir.VoidType(), kind, kind.as_pointer(), word, mask.type)
            builder.call(function, [vector, there(pointer, place, kind), word(size), mask])

        step(done, load_some, store_some)


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
        sums = [cgutils.alloca_once_value(builder, ir.Constant(many, [0.0] * lanes)) for _ in starts]

        def add(j, load, _store):
            factor = load(weights, j, many, summed.bitwidth // 8)
            for start, total in zip(starts, sums, strict=True):
                row = load(data, builder.add(start, j), many_stored, stored.bitwidth // 8)
                row = row if stored == summed else builder.fpext(row, many)
                builder.store(builder.fadd(builder.load(total), builder.fmul(row, factor)), total)

        _by_lanes(builder, count, lanes, add)
        ends = [_in_pairs(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, ends)

    words = [types.int64] * 4
    return types.UniTuple(summed, 4)(x, *words, w, types.int64), generate


@intrinsic
def add_rows(_typing, x, starts, factors, z):
    """z[j] = (z[j] + f_0 x[s_0 + j]) + f_1 x[s_1 + j] + …, for as many starts (int64) in a flat x as factors."""
    summed, stored = z.dtype, x.dtype
    lanes, count = LANES[summed], starts.count

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        sums = context.make_array(signature.args[3])(context, builder, arguments[3])
        length = builder.extract_value(sums.shape, 0)
        number = context.get_value_type(summed)
        many, many_stored = ir.VectorType(number, lanes), ir.VectorType(context.get_value_type(stored), lanes)
        spread = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        rows = []
        for start, factor in zip(*(cgutils.unpack_tuple(builder, given) for given in arguments[1:3]), strict=True):
            one = builder.insert_element(ir.Constant(many, ir.Undefined), factor, ir.IntType(32)(0))
            rows.append((start, builder.shuffle_vector(one, one, spread)))

        def add(j, load, store):
            total = load(sums.data, j, many, summed.bitwidth // 8)
            for start, factor in rows:
                row = load(data, builder.add(start, j), many_stored, stored.bitwidth // 8)
                row = row if stored == summed else builder.fpext(row, many)
                total = builder.fadd(total, builder.fmul(row, factor))
            store(total, sums.data, j, summed.bitwidth // 8)

        _by_lanes(builder, length, lanes, add)
        return context.get_dummy_value()

    return types.void(x, types.UniTuple(types.int64, count), types.UniTuple(summed, count), z), generate


@intrinsic
def squares(_typing, x, start, mean):
    """Σ_j x[start + j]² and Σ_j (x[start + j] − mean[j])², j < len(mean), of a flat x: two sums in the type of mean."""
    summed, stored = mean.dtype, x.dtype
    lanes = LANES[summed]

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        middle = context.make_array(signature.args[2])(context, builder, arguments[2])
        number = context.get_value_type(summed)
        many, many_stored = ir.VectorType(number, lanes), ir.VectorType(context.get_value_type(stored), lanes)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(many, [0.0] * lanes)) for _ in range(2)]

        def add(j, load, _store):
            row = load(data, builder.add(arguments[1], j), many_stored, stored.bitwidth // 8)
            row = row if stored == summed else builder.fpext(row, many)
            away = builder.fsub(row, load(middle.data, j, many, summed.bitwidth // 8))
            for part, total in zip((row, away), sums, strict=True):
                builder.store(builder.fadd(builder.load(total), builder.fmul(part, part)), total)

        _by_lanes(builder, builder.extract_value(middle.shape, 0), lanes, add)
        ends = [_in_pairs(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, ends)

    return types.UniTuple(summed, 2)(x, types.int64, mean), generate


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
        sums = cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(number, lanes), [0.0] * lanes))
        slots = builder.bitcast(sums, number.as_pointer())

        with cgutils.for_range_slice(builder, arguments[2], arguments[3], _WORD(1), _WORD) as (p, _):
            column = builder.load(builder.gep(places, [p]))
            column = column if there.dtype == types.int64 else builder.zext(column, _WORD)
            total = builder.gep(slots, [builder.and_(column, _WORD(lanes - 1))])
            value = builder.load(builder.gep(data, [p]))
            value = value if stored == summed else builder.fpext(value, number)
            product = builder.fmul(value, builder.load(builder.gep(weights.data, [column])))
            builder.store(builder.fadd(builder.load(total), product), total)
        return _in_pairs(builder, builder.load(sums))

    if columns.dtype not in (types.int32, types.int64):
        raise TypeError(f"columns must be int32 or int64, not {columns.dtype}")
    return summed(x, columns, types.int64, types.int64, w), generate
