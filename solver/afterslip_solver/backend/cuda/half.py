"""What products in FP16 go by; see macro_half.cuh and tasks_half.cuh.

They smooth only: what conjugate gradients multiply by, and residuals that a solve is
judged by, are in FP32 and FP64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.model import Bool, Float

# FP16 rounds what a macro element's largest forces are made of, so those along its
# stiffest direction must not be too much larger than the others. Largest ratios: of
# lengths (a box of tetrahedra 16 times as wide as thick, whose ratio is 48, takes 64
# iterations for 61), and of P to S moduli (Poisson's ratio 0.4975). Few exceptions
# would cost a launch of their own for each colour.
_FLATTEST, _STIFFEST = 64.0, 200.0
# Exponent of two by which forces of a macro element's elements may differ: sums of the
# weakest ones have fewer digits. Twelve macro elements with stripes of moduli 30, 100
# and 1000 times apart, emulated, take 39, 45 and 101 iterations for 38, 43 and 65.
_WIDEST = 8


def even(gradients: Float) -> Bool:
    """(n_macro,) whether macro elements with gradients (n_macro, 3, 3) are thick."""
    return np.asarray(np.linalg.cond(gradients) <= _FLATTEST)


def compressible(lam: Float, mu: Float) -> bool:
    """Tell whether all moduli allow products in FP16."""
    return bool((lam + 2.0 * mu <= _STIFFEST * mu).all())


def scaled(shapes: Float) -> Float:
    """Divide moduli by powers of two that make the coefficients of blocks at most 1.

    Parameters
    ----------
    shapes : (n_macro, 12), see make_blocks in macro.cu; the last column is the divisor.
    """
    matrices = variants.macro_tasks().matrices.T.reshape(-1, 3, 3)
    largest = np.linalg.norm(matrices, axis=(1, 2)).max()
    moduli = shapes[:, 9] + 3.0 * shapes[:, 10]
    gradients = (shapes[:, :9] ** 2).sum(axis=1)
    unit = 2.0 ** np.ceil(np.log2(moduli * gradients * largest))
    out = shapes.copy()
    out[:, 9:11] /= unit[:, None]
    out[:, 11] = unit
    return out


class PackedBlocks:
    """Symmetric blocks (n, 3, 3) as (n, 4) float32: `Inverse` in pairs.cuh.

    A thread then reads 16 bytes instead of nine numbers that lie 36 bytes from those
    of its neighbours. They are packed when they are first used, and live as long as
    this does: a graph reads them.
    """

    def __init__(self) -> None:
        # by the identity of what was packed
        self._found: dict[int, tuple[Any, Any]] = {}

    def of(self, blocks: Any) -> Any:
        """Return blocks, float32, packed."""
        key = id(blocks)
        if key not in self._found:
            n = len(blocks)
            out = cupy.empty((n, 4), dtype=np.float32)
            options = variants.sparse(np.float32, np.float16)
            pack = kernel("sparse.cu", "pack", *options)
            pack((-(-n // 256),), (256,), (np.int32(n), blocks, out))
            # another thread may have been first, and a graph may read its own
            self._found.setdefault(key, (blocks, out))
        return self._found[key][1]


@dataclass(frozen=True, eq=False, slots=True)
class HalfBlocks:
    """Blocks of elements whose products are in FP16.

    Attributes
    ----------
    tables : `shapes` and `back` of elastic_half.cu.
    launches : of those blocks of each launch, and of the others, which stay in FP32.
    """

    tables: tuple[Any, Any]
    launches: list[tuple[Any, Any]]

    @classmethod
    def of(
        cls, tasks: Any, gradients: Any, moduli: Any, launches: Sequence[Any]
    ) -> HalfBlocks:
        """Pack all elements, and choose blocks.

        Parameters
        ----------
        tasks, gradients, moduli : as elastic.cu takes them, in FP32.
        launches : blocks of each.
        """
        n_task, _, each = gradients.shape
        n_block = len(tasks) - 1
        shapes = cupy.empty((n_task, 6, each), dtype=np.uint32)
        back = cupy.empty(n_block, dtype=np.float32)
        ranges = cupy.empty(n_block, dtype=np.int32)
        options = variants.elastic_half(variants.RESIDUAL, packed=False)
        pack = kernel("elastic_half.cu", "pack_elements", *options)
        given = (tasks, gradients, moduli, np.float32(_FLATTEST))
        threads = (variants.MACRO_SHAPE.threads,)
        pack((n_block,), threads, (*given, shapes, back, ranges))
        suit = cupy.asnumpy(ranges) <= _WIDEST
        found = []
        for launch in launches:
            which = cupy.asnumpy(launch)
            parts = which[suit[which]], which[~suit[which]]
            found.append((cupy.asarray(parts[0]), cupy.asarray(parts[1])))
        return cls((shapes, back), found)

    @property
    def bytes(self) -> int:
        """Memory of the tables."""
        return sum(int(table.nbytes) for table in self.tables)
