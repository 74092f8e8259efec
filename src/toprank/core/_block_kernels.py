# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Each of many numbers against all others of a run: a block of them at a time, with counts and sums in registers.

Left to the compiler, what was counted would go to memory and back for every few comparisons, which takes most of the
time. Every number has its own sum, which runs through the others in their order: the same bits on every processor.
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .jit import inner_kernel

KEYS, REALS = 16, 8
"""Numbers in a block: 16-bit keys, and reals."""
STEP = 4
"""Keys that blocks are compared with at a time: no last few are left over, which would take as long as all others."""
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)


def _everywhere(builder, number, block):
    one = builder.insert_element(ir.Constant(block, ir.Undefined), number, _INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INDEX, block.count), [0] * block.count))


def _sums(context, builder, signature, arguments, lanes, blocks, prepare, terms, step=1, chains=1):
    """found[s][c] = Σ_{start ≤ k < stop} terms(k, prepare(x[c]))[s], for `blocks` blocks of c from `first` on.

    `step` numbers k are taken at a time, in turns by `chains` sums, none of which waits for another.
    """
    kinds = signature.args
    given = context.make_array(kinds[0])(context, builder, arguments[0]).data
    start, stop, first = arguments[1:4]
    rooms = [
        context.make_array(kind)(context, builder, room).data
        for kind, room in zip(kinds[-1], cgutils.unpack_tuple(builder, arguments[-1]), strict=True)
    ]
    block = ir.VectorType(given.type.pointee, lanes)
    size = context.get_abi_sizeof(given.type.pointee)

    def at(pointer, number):
        place = builder.gep(pointer, [builder.add(first, _WORD(lanes * number))])
        return builder.bitcast(place, block.as_pointer())

    own = [prepare(builder.load(at(given, number), align=size), block) for number in range(blocks)]
    nothing = ir.Constant(block, [0] * lanes)
    totals = [[[cgutils.alloca_once_value(builder, nothing) for _ in range(chains)] for _ in rooms] for _ in own]
    add = builder.add if lanes == KEYS else builder.fadd
    with cgutils.for_range_slice(builder, start, stop, _WORD(step), _WORD) as (first_k, _):
        for turn in range(step):
            k = builder.add(first_k, _WORD(turn))
            here = _everywhere(builder, builder.load(builder.gep(given, [k])), block)
            for mine, sums in zip(own, totals, strict=True):
                for term, chain in zip(terms(k, here, mine, block), sums, strict=True):
                    total = chain[turn % chains]
                    builder.store(add(builder.load(total), term), total)
    for number, sums in enumerate(totals):
        for room, chain in zip(rooms, sums, strict=True):
            builder.store(reduce(add, map(builder.load, chain)), at(room, number), align=size)
    return context.get_dummy_value()


def _key_counter(blocks, *signs):
    @intrinsic
    def count(_typing, keys, start, stop, first, more, found):
        def generate(context, builder, signature, arguments):
            def prepare(own, block):
                return builder.add(own, _everywhere(builder, arguments[4], block))

            def terms(_k, here, mine, block):
                return [builder.zext(builder.icmp_signed(sign, here, mine), block) for sign in signs]

            chains = 2
            return _sums(context, builder, signature, arguments, KEYS, blocks, prepare, terms, STEP, chains)

        return types.void(keys, types.int64, types.int64, types.int64, types.int16, found), generate

    return count


_ahead_of_one, _ahead_of_two, _ahead_of_three = (_key_counter(blocks, ">") for blocks in (1, 2, 3))
_beside_one, _beside_two, _beside_three = (_key_counter(blocks, ">", "==") for blocks in (1, 2, 3))


@inner_kernel
def count_ahead(keys, start, stop, m, more, ahead):
    """ahead[c] = #{start ≤ k < stop: key_k > key_c + more} for c < m; room for three blocks is needed behind both.

    Keys are read up to a whole number of steps from `start` on: what follows those that count must be below all others.
    """
    for first in range(0, m, 3 * KEYS):
        if m - first > 2 * KEYS:
            _ahead_of_three(keys, start, stop, first, more, (ahead,))
        elif m - first > KEYS:
            _ahead_of_two(keys, start, stop, first, more, (ahead,))
        else:
            _ahead_of_one(keys, start, stop, first, more, (ahead,))


@inner_kernel
def count_with_ties(keys, start, stop, m, ahead, same):
    """The same with more = 0, and same[c] = #{start ≤ k < stop: key_k = key_c}."""
    for first in range(0, m, 3 * KEYS):
        if m - first > 2 * KEYS:
            _beside_three(keys, start, stop, first, 0, (ahead, same))
        elif m - first > KEYS:
            _beside_two(keys, start, stop, first, 0, (ahead, same))
        else:
            _beside_one(keys, start, stop, first, 0, (ahead, same))


@intrinsic
def precisions(_typing, hits, others, m, cut, sums):
    """sums = Σ_{c < m} (h + 1)/(h + 1 + o), as float32 numbers, where h + 1 + o ≤ cut, and Σ h, of hits and others."""

    def generate(context, builder, signature, arguments):
        given = [
            context.make_array(kind)(context, builder, argument).data
            for kind, argument in zip(signature.args, arguments, strict=True)
            if isinstance(kind, types.Array)
        ]
        short, whole, single, double = (
            ir.VectorType(kind, KEYS) for kind in (ir.IntType(16), _INDEX, ir.FloatType(), ir.DoubleType())
        )
        count, last = (_everywhere(builder, builder.trunc(each, _INDEX), whole) for each in arguments[2:4])
        nothing, one = ir.Constant(whole, [0] * KEYS), ir.Constant(whole, [1] * KEYS)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(kind, [0] * KEYS)) for kind in (double, whole)]
        with cgutils.for_range_slice(builder, _WORD(0), arguments[2], _WORD(KEYS), _WORD) as (first, _):
            blocks = [builder.bitcast(builder.gep(each, [first]), short.as_pointer()) for each in given[:2]]
            h, o = (builder.sext(builder.load(block, align=2), whole) for block in blocks)
            found = builder.add(h, one)
            place = builder.add(found, o)
            number = builder.add(
                _everywhere(builder, builder.trunc(first, _INDEX), whole), ir.Constant(whole, list(range(KEYS)))
            )
            own = builder.icmp_signed("<", number, count)
            near = builder.and_(own, builder.icmp_signed("<=", place, last))
            share = builder.fdiv(builder.sitofp(found, single), builder.sitofp(place, single))
            share = builder.select(near, share, ir.Constant(single, [0] * KEYS))
            terms = builder.fpext(share, double), builder.select(own, h, nothing)
            for total, add, term in zip(totals, (builder.fadd, builder.add), terms, strict=True):
                builder.store(add(builder.load(total), term), total)
        summed = [_across(builder, builder.load(total)) for total in totals]
        summed[1] = builder.sitofp(summed[1], ir.DoubleType())
        for number, total in enumerate(summed):
            builder.store(total, builder.gep(given[2], [_WORD(number)]))
        return context.get_dummy_value()

    return types.void(hits, others, types.int64, types.int64, sums), generate


def _across(builder, block):
    """Add up the numbers of a block, the halves first."""
    add = builder.add if isinstance(block.type.element, ir.IntType) else builder.fadd
    count = block.type.count
    while count > 1:
        count //= 2
        halves = (ir.Constant(ir.VectorType(_INDEX, count), list(range(at, at + count))) for at in (0, count))
        block = add(*(builder.shuffle_vector(block, block, half) for half in halves))
    return builder.extract_element(block, _INDEX(0))


def _near(own_first):
    @intrinsic
    def near(_typing, x, start, stop, first, parts, found):
        def generate(context, builder, signature, arguments):
            summed = [
                context.make_array(kind)(context, builder, part).data
                for kind, part in zip(signature.args[4], cgutils.unpack_tuple(builder, arguments[4]), strict=True)
            ]

            def terms(k, here, mine, block):
                apart = builder.fsub(mine, here) if own_first else builder.fsub(here, mine)
                close = builder.fcmp_ordered("<", apart, ir.Constant(block, [1.0] * REALS))
                nothing = ir.Constant(block, [0.0] * REALS)
                for part in summed:
                    value = _everywhere(builder, builder.load(builder.gep(part, [k])), block)
                    yield builder.select(close, value, nothing)

            return _sums(context, builder, signature, arguments, REALS, 1, lambda own, block: own, terms)

        return types.void(x, types.int64, types.int64, types.int64, parts, found), generate

    return near


near_above, near_below = _near(False), _near(True)
"""found[s][c] = Σ_{start ≤ k < stop} parts[s][k] where x_k − x_c < 1, or x_c − x_k < 1, for REALS c from `first` on."""
