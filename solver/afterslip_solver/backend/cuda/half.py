"""What products in FP16 go by; see macro_half.cuh and tasks_half.cuh.

They smooth only: what conjugate gradients multiply by, and residuals that a solve is
judged by, are in FP32 and FP64.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cupy
import numpy as np

from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.model import Bool, Float

# FP16 rounds what a macro element's largest forces are made of, so those along its
# stiffest direction must not be too much larger than the others. Largest ratios: of
# lengths (a box of tetrahedra 16 times as wide as thick, whose ratio is 48, takes 64
# iterations for 61), and of P to S moduli (Poisson's ratio 0.4975). Few exceptions
# would cost a launch of their own for each colour.
_FLATTEST, _STIFFEST = 64.0, 200.0
# exponent of two by which forces of a macro element's elements may differ
_WIDEST = 12


def even(gradients: Float) -> Bool:
    """(n_macro,) whether macro elements with gradients (n_macro, 3, 3) are thick."""
    return np.asarray(np.linalg.cond(gradients) <= _FLATTEST)


def even_elements(gradients: Float, each: int) -> Bool:
    """(n,) whether all of ``each`` elements behind each other are thick.

    Parameters
    ----------
    gradients : (n each, 4, 3) 1/m, of barycentric coordinates.
    """
    out = np.empty(len(gradients) // each, dtype=bool)
    over(len(out), partial(_thick, gradients, each, _FLATTEST, out), few=1)
    return out


@compiled()
def _thick(
    gradients: Any, each: int, flattest: float, out: Any, start: int, stop: int
) -> None:
    for m in range(start, stop):
        out[m] = True
        for e in range(m * each, (m + 1) * each):
            g = gradients[e]
            det = size = inverse = 0.0
            for i in range(1, 4):
                # rows of cofactors: the inverse times the determinant
                j, k = i % 3 + 1, (i + 1) % 3 + 1
                for x in range(3):
                    y, z = (x + 1) % 3, (x + 2) % 3
                    cofactor = g[j, y] * g[k, z] - g[j, z] * g[k, y]
                    inverse += cofactor**2
                    size += g[i, x] ** 2
                    det += g[i, x] * cofactor / 3.0
            # their product is the largest ratio of lengths, or up to three times that
            if size * inverse > (flattest * det) ** 2:
                out[m] = False
                break


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


def packed(inverse: Any) -> Any:
    """(n, 4) float32 of (n, 3, 3) symmetric blocks: `Inverse` in nodes.cuh.

    A thread then reads 16 bytes instead of nine numbers that lie 36 bytes from those
    of its neighbours.
    """
    n = len(inverse)
    out = cupy.empty((n, 4), dtype=np.float32)
    options = variants.macro(np.float32, np.float32, variants.RELAX, True, True)
    pack = kernel("macro.cu", "pack", *options)
    pack((-(-n // 256),), (256,), (np.int32(n), inverse, out))
    return out


def packed_elements(tasks: Any, gradients: Any, moduli: Any) -> Any:
    """Return `shapes` and `back` of elastic_half.cu; None if elements differ too much.

    Parameters
    ----------
    tasks, gradients, moduli : as elastic.cu takes them, in FP32.
    """
    n_task, _, each = gradients.shape
    n_block = len(tasks) - 1
    shapes = cupy.empty((n_task, 6, each), dtype=np.uint32)
    back = cupy.empty(n_block, dtype=np.float32)
    ranges = cupy.empty(n_block, dtype=np.int32)
    options = variants.elastic_half(variants.RESIDUAL, packed=False)
    pack = kernel("elastic_half.cu", "pack_elements", *options)
    arguments = (tasks, gradients, moduli, shapes, back, ranges)
    pack((n_block,), (variants.MACRO_SHAPE.threads,), arguments)
    return (shapes, back) if cupy.asnumpy(ranges).max() <= _WIDEST else None
