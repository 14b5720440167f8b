"""Vector instructions for the four lanes of a node's component.

Plain numba loops over the lanes are not turned into vector instructions. Here four
lanes, or those of three rows, are one value of LLVM's vector type, which kernels load,
combine and store. Arrays are C-contiguous and indexed as if they were flat.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import PrimitiveModel
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload, register_model

from afterslip_solver.backend.base import LANES

_INT32 = ir.IntType(32)
# rows of a block as a vector: three, and one so that the length is a power of two
_QUARTERS = 4
_WIDE = _QUARTERS * LANES


class Lanes(types.Type):  # type: ignore[misc]
    """Four numbers of one precision, or sixteen."""

    def __init__(self, real: Any, width: int = LANES) -> None:
        self.real, self.width = real, width
        super().__init__(name=f"Lanes({real}, {width})")


@register_model(Lanes)
class _LanesModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Lanes) -> None:
        real = manager.lookup(kind.real).get_value_type()
        super().__init__(manager, kind, ir.VectorType(real, kind.width))


def address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Where an entry of an array of Numba type ``kind`` lies."""
    if kind.layout != "C":
        # other entries than are meant would be there
        raise TypingError(f"lanes of {kind}, which is not C-contiguous")
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


def load_from(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, width: int
) -> Any:
    """Load ``width`` entries from ``index`` on as a vector."""
    at = address(context, builder, kind, array, index)
    vector = ir.VectorType(context.get_value_type(kind.dtype), width)
    at = builder.bitcast(at, vector.as_pointer())
    return builder.load(at, align=kind.dtype.bitwidth // 8)


def store_to(
    context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any
) -> None:
    """Write a vector to the entries from ``index`` on."""
    at = address(context, builder, kind, array, index)
    at = builder.bitcast(at, vector.type.as_pointer())
    builder.store(vector, at, align=kind.dtype.bitwidth // 8)


def shuffled(builder: Any, vectors: Any, places: list[int]) -> Any:
    """Take entries of two vectors, or of one given twice, as they lie side by side."""
    mask = ir.Constant(ir.VectorType(_INT32, len(places)), places)
    return builder.shuffle_vector(*vectors, mask)


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Four entries from ``index`` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return load_from(context, builder, array, args[0], args[1], LANES)

    return Lanes(array.dtype)(array, types.int64), generate


@intrinsic
def repeated(typing: Any, array: Any, index: Any) -> Any:
    """Four entries from ``index`` on, for each row of a block."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = load_from(context, builder, array, args[0], args[1], LANES)
        return shuffled(builder, [lanes] * 2, [0, 1, 2, 3] * _QUARTERS)

    return Lanes(array.dtype, _WIDE)(array, types.int64), generate


@intrinsic(prefer_literal=True)
def strided(typing: Any, array: Any, index: Any, first: Any) -> Any:
    """Every third of eight entries from ``index`` on, each in all lanes.

    The ``first`` of them is 0 or 1. What would be a fourth row is the third once more.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = load_from(context, builder, array, args[0], args[1], 8)
        rows = first.literal_value + np.array([0, 3, 6, 6])
        return shuffled(builder, [block] * 2, np.repeat(rows, LANES).tolist())

    return Lanes(array.dtype, _WIDE)(array, types.int64, first), generate


@intrinsic
def rows(typing: Any, block: Any) -> Any:
    """Lanes of each of the three rows of a block."""
    result = types.UniTuple(Lanes(block.real), 3)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [
            shuffled(builder, [args[0]] * 2, [*range(k, k + LANES)])
            for k in range(0, 3 * LANES, LANES)
        ]
        return context.make_tuple(builder, result, parts)

    return result(block), generate


@intrinsic
def store(typing: Any, array: Any, index: Any, lanes: Any) -> Any:
    """Write four entries from ``index`` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store_to(context, builder, array, args[0], args[1], args[2])
        return context.get_dummy_value()

    if array.dtype != lanes.real:
        raise TypingError(f"lanes of {lanes.real} for {array}")
    return types.void(array, types.int64, lanes), generate


@intrinsic
def splat(typing: Any, value: Any) -> Any:
    """One number in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        empty = ir.Constant(ir.VectorType(args[0].type, LANES), ir.Undefined)
        one = builder.insert_element(empty, args[0], _INT32(0))
        return shuffled(builder, [one] * 2, [0] * LANES)

    return Lanes(value)(value), generate


@intrinsic(prefer_literal=True)
def zeros_of(typing: Any, array: Any, width: Any) -> Any:
    """Four or sixteen zeros in the precision of an array."""
    result = Lanes(array.dtype, width.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(result), [0.0] * result.width)

    return result(array, width), generate


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Add a b to c, rounded once where the processor can."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.fmul(args[0], args[1], flags=["contract"])
        return builder.fadd(product, args[2], flags=["contract"])

    return c(a, b, c), generate


@intrinsic
def widened(typing: Any, lanes: Any) -> Any:
    """Give the same numbers in FP64."""
    result = Lanes(types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if lanes.real == types.float64:
            return args[0]
        return builder.fpext(args[0], context.get_value_type(result))

    return result(lanes), generate


@intrinsic
def as_in(typing: Any, array: Any, lanes: Any) -> Any:
    """Give the same numbers in the precision of an array, which is not lower."""
    if array.dtype == types.float32 != lanes.real:
        raise TypingError(f"lanes of {lanes.real} for {array}")
    result = Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if lanes.real == array.dtype:
            return args[1]
        return builder.fpext(args[1], context.get_value_type(result))

    return result(array, lanes), generate


def _define(function: Any, name: str) -> None:
    """Let numba apply an operator to lanes."""

    @intrinsic
    def combined(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args, flags=["contract"])

        return a(a, b), generate

    def implementation(a: Any, b: Any) -> Any:
        return combined(a, b)

    @overload(function)
    def _choose(a: Any, b: Any) -> Any:
        return implementation if isinstance(a, Lanes) and a == b else None


for _function, _name in (
    (operator.add, "fadd"),
    (operator.iadd, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.imul, "fmul"),
):
    _define(_function, _name)


def ask_for(builder: Any, place: Any, ahead: Any) -> None:
    """Ask memory for what lies ``ahead`` bytes behind a place."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    at = builder.gep(builder.bitcast(place, byte), [ahead])
    read, keep, data = _INT32(0), _INT32(3), _INT32(1)
    builder.call(ask, [at, read, keep, data])


@intrinsic
def prefetch(typing: Any, array: Any, index: Any, ahead: Any) -> Any:
    """Ask for what lies ``ahead`` bytes behind an entry."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = address(context, builder, signature.args[0], *args[:2])
        ask_for(builder, at, args[2])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate
