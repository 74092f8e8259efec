# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Inner products whose additions stand in a fixed order, so that every type of processor gives the same bits.

A compiler that may reorder a sum chooses the order by the width of the machine's registers. Here the order is fixed:
column j is added to partial sum j mod LANES, no product is fused with its addition, and at the end the partial sums are
added in pairs.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = {types.float64: 8, types.float32: 16}
"""Number of partial sums, by the type that is summed."""
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)


def broadcast(builder, number, vector_type):
    """Return a vector with the number in every lane."""
    one = builder.insert_element(ir.Constant(vector_type, ir.Undefined), number, _INDEX(0))
    lanes = vector_type.count
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INDEX, lanes), [0] * lanes))


def sum_in_pairs(builder, vector):
    """Add the second half of the lanes to the first, and again, until one is left."""
    add, lanes = builder.add if isinstance(vector.type.element, ir.IntType) else builder.fadd, vector.type.count
    while lanes > 1:
        lanes //= 2
        halves = (ir.Constant(ir.VectorType(_INDEX, lanes), list(range(start, start + lanes))) for start in (0, lanes))
        vector = add(*(builder.shuffle_vector(vector, vector, half) for half in halves))
    return builder.extract_element(vector, _INDEX(0))


def _by_lanes(builder, count, lanes, step):
    """Call `step(j, load, store)` for j = 0, lanes, … below count; in the last call both leave out missing columns."""

    def pointer_at(pointer, place, kind):
        return builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer())

    def load(pointer, place, kind, size):
        return builder.load(pointer_at(pointer, place, kind), align=size)

    def store(vector, pointer, place, size):
        builder.store(vector, pointer_at(pointer, place, vector.type), align=size)

    done = _WORD(0)
    for vectors in (2, 1):  # two at a time, the processor works further ahead: this saves a fortieth of an epoch
        stop = builder.sub(count, builder.srem(count, _WORD(vectors * lanes)))
        with cgutils.for_range_slice(builder, done, stop, _WORD(vectors * lanes), _WORD) as (j, _):
            for number in range(vectors):
                step(builder.add(j, _WORD(number * lanes)), load, store)
        done = stop
    with builder.if_then(builder.icmp_signed("<", done, count)):
        words = ir.VectorType(_WORD, lanes)
        limit = broadcast(builder, builder.sub(count, done), words)
        mask = builder.icmp_signed("<", ir.Constant(words, list(range(lanes))), limit)

        def masked(action, size, result, *arguments):
            form = ir.FunctionType(result, arguments)
            name = f"llvm.masked.{action}.v{lanes}f{8 * size}.p0v{lanes}f{8 * size}"
            return cgutils.get_or_insert_function(builder.module, form, name)

        def load_masked(pointer, place, kind, size):
            function = masked("load", size, kind, kind.as_pointer(), _INDEX, mask.type, kind)
            return builder.call(
                function, [pointer_at(pointer, place, kind), _INDEX(size), mask, ir.Constant(kind, [0.0] * lanes)]
            )

        def store_masked(vector, pointer, place, size):
            kind = vector.type
            function = masked("store", size, ir.VoidType(), kind, kind.as_pointer(), _INDEX, mask.type)
            builder.call(function, [vector, pointer_at(pointer, place, kind), _INDEX(size), mask])

        step(done, load_masked, store_masked)


@intrinsic
def four_dots(_typing, x, first, second, third, fourth, w, n):
    """Σ_j x[start + j] w[j], j < n, for four starts (int64) in a flat x: four sums in the type of w."""
    summed, stored = w.dtype, x.dtype
    lanes = LANES[summed]

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        weights = context.make_array(signature.args[5])(context, builder, arguments[5]).data
        starts, count = arguments[1:5], arguments[6]
        number = context.get_value_type(summed)
        vector_type, stored_type = ir.VectorType(number, lanes), ir.VectorType(context.get_value_type(stored), lanes)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector_type, [0.0] * lanes)) for _ in starts]

        def add(j, load, _store):
            factor = load(weights, j, vector_type, summed.bitwidth // 8)
            for start, total in zip(starts, sums, strict=True):
                row = load(data, builder.add(start, j), stored_type, stored.bitwidth // 8)
                row = row if stored == summed else builder.fpext(row, vector_type)
                builder.store(builder.fadd(builder.load(total), builder.fmul(row, factor)), total)

        _by_lanes(builder, count, lanes, add)
        ends = [sum_in_pairs(builder, builder.load(total)) for total in sums]
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
        vector_type, stored_type = ir.VectorType(number, lanes), ir.VectorType(context.get_value_type(stored), lanes)
        starts, factors = (cgutils.unpack_tuple(builder, given) for given in arguments[1:3])
        rows = [(start, broadcast(builder, f, vector_type)) for start, f in zip(starts, factors, strict=True)]

        def add(j, load, store):
            total = load(sums.data, j, vector_type, summed.bitwidth // 8)
            for start, factor in rows:
                row = load(data, builder.add(start, j), stored_type, stored.bitwidth // 8)
                row = row if stored == summed else builder.fpext(row, vector_type)
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
        means = context.make_array(signature.args[2])(context, builder, arguments[2])
        number = context.get_value_type(summed)
        vector_type, stored_type = ir.VectorType(number, lanes), ir.VectorType(context.get_value_type(stored), lanes)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector_type, [0.0] * lanes)) for _ in range(2)]

        def add(j, load, _store):
            row = load(data, builder.add(arguments[1], j), stored_type, stored.bitwidth // 8)
            row = row if stored == summed else builder.fpext(row, vector_type)
            deviation = builder.fsub(row, load(means.data, j, vector_type, summed.bitwidth // 8))
            for part, total in zip((row, deviation), sums, strict=True):
                builder.store(builder.fadd(builder.load(total), builder.fmul(part, part)), total)

        _by_lanes(builder, builder.extract_value(means.shape, 0), lanes, add)
        ends = [sum_in_pairs(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, ends)

    return types.UniTuple(summed, 2)(x, types.int64, mean), generate


@intrinsic
def sparse_dot(_typing, x, columns, start, stop, w):
    """Σ x[p] w[columns[p]], start ≤ p < stop: the bits of `four_dots` on the row with its zeros written out."""
    summed, stored = w.dtype, x.dtype
    lanes = LANES[summed]

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        indices = context.make_array(signature.args[1])(context, builder, arguments[1]).data
        weights = context.make_array(signature.args[4])(context, builder, arguments[4]).data
        number = context.get_value_type(summed)
        sums = cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(number, lanes), [0.0] * lanes))
        lane_sums = builder.bitcast(sums, number.as_pointer())

        with cgutils.for_range_slice(builder, arguments[2], arguments[3], _WORD(1), _WORD) as (p, _):
            column = builder.load(builder.gep(indices, [p]))
            column = column if columns.dtype == types.int64 else builder.zext(column, _WORD)
            total = builder.gep(lane_sums, [builder.and_(column, _WORD(lanes - 1))])
            value = builder.load(builder.gep(data, [p]))
            value = value if stored == summed else builder.fpext(value, number)
            product = builder.fmul(value, builder.load(builder.gep(weights, [column])))
            builder.store(builder.fadd(builder.load(total), product), total)
        return sum_in_pairs(builder, builder.load(sums))

    if columns.dtype not in (types.int32, types.int64):
        raise TypeError(f"columns must be int32 or int64, not {columns.dtype}")
    return summed(x, columns, types.int64, types.int64, w), generate
