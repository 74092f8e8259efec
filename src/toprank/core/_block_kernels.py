# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Compare each of many numbers with all others of a list: a block of them at a time, with counts and sums in registers.

The compiler alone would move the counts to memory and back after every few comparisons, which takes most of the time.
Every number has its own sum, which goes through the others in their order: the same bits on every processor.
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ._lane_kernels import broadcast, sum_in_pairs
from .jit import inner_kernel

KEYS, REALS = 16, 8
"""How many numbers a block has: 16-bit keys, and reals."""
STEP = 4
"""How many keys a block is compared with at a time. Their number is filled up: a remainder would take too long."""
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)


def _sums(context, builder, signature, arguments, lanes, blocks, prepare, terms, step=1, chains=1):
    """found[s][c] = Σ_{start ≤ k < stop} terms(k, x[k], prepare(x[c]))[s], for `blocks` blocks of c from `first` on.

    `step` numbers k are read at a time and added to `chains` sums in turns, so that no addition waits for another.
    """
    kinds = signature.args
    data = context.make_array(kinds[0])(context, builder, arguments[0]).data
    start, stop, first = arguments[1:4]
    outputs = [
        context.make_array(kind)(context, builder, output).data
        for kind, output in zip(kinds[-1], cgutils.unpack_tuple(builder, arguments[-1]), strict=True)
    ]
    block = ir.VectorType(data.type.pointee, lanes)
    size = context.get_abi_sizeof(data.type.pointee)

    def at(pointer, number):
        place = builder.gep(pointer, [builder.add(first, _WORD(lanes * number))])
        return builder.bitcast(place, block.as_pointer())

    own_blocks = [prepare(builder.load(at(data, number), align=size), block) for number in range(blocks)]
    zeros = ir.Constant(block, [0] * lanes)
    totals = [[[cgutils.alloca_once_value(builder, zeros) for _ in range(chains)] for _ in outputs] for _ in own_blocks]
    add = builder.add if lanes == KEYS else builder.fadd
    with cgutils.for_range_slice(builder, start, stop, _WORD(step), _WORD) as (first_k, _):
        for turn in range(step):
            k = builder.add(first_k, _WORD(turn))
            other = broadcast(builder, builder.load(builder.gep(data, [k])), block)
            for own, sums in zip(own_blocks, totals, strict=True):
                for term, chain in zip(terms(k, other, own, block), sums, strict=True):
                    total = chain[turn % chains]
                    builder.store(add(builder.load(total), term), total)
    for number, sums in enumerate(totals):
        for output, chain in zip(outputs, sums, strict=True):
            builder.store(reduce(add, map(builder.load, chain)), at(output, number), align=size)
    return context.get_dummy_value()


def _key_counter(blocks, *signs):
    @intrinsic
    def count(_typing, keys, start, stop, first, margin, found):
        def generate(context, builder, signature, arguments):
            def prepare(own, block):
                return builder.add(own, broadcast(builder, arguments[4], block))

            def terms(_k, other, own, block):
                return [builder.zext(builder.icmp_signed(sign, other, own), block) for sign in signs]

            return _sums(context, builder, signature, arguments, KEYS, blocks, prepare, terms, STEP, chains=2)

        return types.void(keys, types.int64, types.int64, types.int64, types.int16, found), generate

    return count


_ahead_of_one, _ahead_of_two, _ahead_of_three = (_key_counter(blocks, ">") for blocks in (1, 2, 3))
_tied_with_one, _tied_with_two, _tied_with_three = (_key_counter(blocks, ">", "==") for blocks in (1, 2, 3))


@inner_kernel
def count_ahead(keys, start, stop, m, margin, ahead):
    """ahead[c] = #{start ≤ k < stop: key_k > key_c + margin} for c < m; both arrays need room for three more blocks.

    Keys are read in whole steps from `start` on: those that fill the last step must be below all others.
    """
    for first in range(0, m, 3 * KEYS):
        if m - first > 2 * KEYS:
            _ahead_of_three(keys, start, stop, first, margin, (ahead,))
        elif m - first > KEYS:
            _ahead_of_two(keys, start, stop, first, margin, (ahead,))
        else:
            _ahead_of_one(keys, start, stop, first, margin, (ahead,))


@inner_kernel
def count_with_ties(keys, start, stop, m, ahead, same):
    """The same with margin = 0, and same[c] = #{start ≤ k < stop: key_k = key_c}."""
    for first in range(0, m, 3 * KEYS):
        if m - first > 2 * KEYS:
            _tied_with_three(keys, start, stop, first, 0, (ahead, same))
        elif m - first > KEYS:
            _tied_with_two(keys, start, stop, first, 0, (ahead, same))
        else:
            _tied_with_one(keys, start, stop, first, 0, (ahead, same))


@intrinsic
def precisions(_typing, hits, others, m, cut, sums):
    """sums = Σ_{c < m} (h + 1)/(h + 1 + o), as float32 numbers, where h + 1 + o ≤ cut, and Σ h, of hits and others."""

    def generate(context, builder, signature, arguments):
        arrays = [
            context.make_array(kind)(context, builder, argument).data
            for kind, argument in zip(signature.args, arguments, strict=True)
            if isinstance(kind, types.Array)
        ]
        shorts, ints, floats, doubles = (
            ir.VectorType(kind, KEYS) for kind in (ir.IntType(16), _INDEX, ir.FloatType(), ir.DoubleType())
        )
        m_in_lanes, cut_in_lanes = (broadcast(builder, builder.trunc(each, _INDEX), ints) for each in arguments[2:4])
        zeros, one = ir.Constant(ints, [0] * KEYS), ir.Constant(ints, [1] * KEYS)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(kind, [0] * KEYS)) for kind in (doubles, ints)]
        with cgutils.for_range_slice(builder, _WORD(0), arguments[2], _WORD(KEYS), _WORD) as (first, _):
            blocks = [builder.bitcast(builder.gep(each, [first]), shorts.as_pointer()) for each in arrays[:2]]
            h, o = (builder.sext(builder.load(block, align=2), ints) for block in blocks)
            hits_here = builder.add(h, one)
            place = builder.add(hits_here, o)
            number = builder.add(
                broadcast(builder, builder.trunc(first, _INDEX), ints), ir.Constant(ints, list(range(KEYS)))
            )
            is_document = builder.icmp_signed("<", number, m_in_lanes)
            within_cut = builder.and_(is_document, builder.icmp_signed("<=", place, cut_in_lanes))
            precision = builder.fdiv(builder.sitofp(hits_here, floats), builder.sitofp(place, floats))
            precision = builder.select(within_cut, precision, ir.Constant(floats, [0] * KEYS))
            terms = builder.fpext(precision, doubles), builder.select(is_document, h, zeros)
            for total, add, term in zip(totals, (builder.fadd, builder.add), terms, strict=True):
                builder.store(add(builder.load(total), term), total)
        results = [sum_in_pairs(builder, builder.load(total)) for total in totals]
        results[1] = builder.sitofp(results[1], ir.DoubleType())
        for number, total in enumerate(results):
            builder.store(total, builder.gep(arrays[2], [_WORD(number)]))
        return context.get_dummy_value()

    return types.void(hits, others, types.int64, types.int64, sums), generate


def _near(own_first):
    @intrinsic
    def near(_typing, x, start, stop, first, parts, found):
        def generate(context, builder, signature, arguments):
            parts_data = [
                context.make_array(kind)(context, builder, part).data
                for kind, part in zip(signature.args[4], cgutils.unpack_tuple(builder, arguments[4]), strict=True)
            ]

            def terms(k, other, own, block):
                apart = builder.fsub(own, other) if own_first else builder.fsub(other, own)
                close = builder.fcmp_ordered("<", apart, ir.Constant(block, [1.0] * REALS))
                zeros = ir.Constant(block, [0.0] * REALS)
                for part in parts_data:
                    value = broadcast(builder, builder.load(builder.gep(part, [k])), block)
                    yield builder.select(close, value, zeros)

            return _sums(context, builder, signature, arguments, REALS, 1, lambda own, block: own, terms)

        return types.void(x, types.int64, types.int64, types.int64, parts, found), generate

    return near


near_above, near_below = _near(False), _near(True)
"""found[s][c] = Σ parts[s][k] over start ≤ k < stop with x_k − x_c < 1, or x_c − x_k < 1, for REALS c from `first`."""
