"""CUDA: own kernels for the stiffness, the sparse products and the vectors.

The stiffness of quadratic elements is applied without a matrix; coarser levels are
block matrices.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import (
    LANES,
    BackendError,
    Blocks,
    Discretisation,
    Tets,
)
from afterslip_solver.backend.cuda import half, variants
from afterslip_solver.backend.cuda.creep import CreepOnDevice
from afterslip_solver.backend.cuda.iteration import Descent, GraphIteration
from afterslip_solver.backend.cuda.loader import NOWHERE, kernel
from afterslip_solver.backend.cuda.macro_plan import find_macros, macro_numbering
from afterslip_solver.backend.cuda.macros import Stencils
from afterslip_solver.backend.cuda.matrix_free import (
    MatrixFree,
    PlanOnDevice,
    Products,
)
from afterslip_solver.backend.cuda.plan import block_numbering
from afterslip_solver.backend.cuda.sliced_matrix import SlicedMatrix, SlicedRows
from afterslip_solver.backend.cuda.slices import ROWS as SLICE
from afterslip_solver.backend.cuda.slices import in_slices
from afterslip_solver.backend.cuda.streams import SideStream
from afterslip_solver.backend.cuda.vectors import VectorsOnDevice
from afterslip_solver.backend.protocols import Capabilities
from afterslip_solver.mesh.tables.bisection import centres

# warps that share 32 rows of blocks of a size, as in sparse.cu
_SPLITS = {(3, 6): 1, (6, 3): 4, (6, 6): 4}
# rows from which there are slices enough for all multiprocessors
_FEW = 8192
# and up to which a row may have many threads, since they all run at once
_FEWEST = 512
# blocks in a row from which a row is shared between threads
_LONG = 12


class GpuBackend(VectorsOnDevice, CreepOnDevice):
    """The current CUDA device.

    Parameters
    ----------
    repeatable : sums of products are added in a fixed order.
    stencils : meshes that were refined three times or more use them in FP32, except
        where products must be repeatable. half : and smooth by them in FP16.
    """

    name = "gpu"
    beside = SideStream
    capabilities = Capabilities(
        coarse_storage=np.float16,
        local_rows=True,
        device_iteration=True,
    )

    def __init__(
        self, repeatable: bool = False, stencils: bool = True, half: bool = True
    ) -> None:
        self._repeatable = repeatable
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            message = f"no CUDA device can be used: {error}"
            raise BackendError(message) from error
        if count == 0:
            raise BackendError("no CUDA device can be used: none is visible")
        super().__init__()
        self._plans: WeakKeyDictionary[Any, PlanOnDevice] = WeakKeyDictionary()
        self._stencils = Stencils(half) if stencils and not repeatable else None

    def numbering(
        self, nodes: NDArray[np.float64], elements: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """See `Backend`; nodes of one block or macro element lie side by side."""
        macros = None if self._stencils is None else find_macros(elements)
        if macros is not None and macros.found.all():
            return macro_numbering(nodes, macros, variants.MACRO_THREADS // 32)
        return block_numbering(elements, centres(nodes, elements), variants.SHAPE.block)

    def stiffness(
        self,
        space: Discretisation,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        real: type[np.floating[Any]],
    ) -> Blocks:
        """See `Backend`; without a matrix, by stencils or element by element."""
        n = len(space.nodes)
        if self._stencils is not None:
            found = self._stencils.stiffness(space, lam, mu, np.dtype(real))
            if found is not None:
                return Blocks(3, 3, n, n, (found,), found.bytes)
        plan = self._plans.get(space)
        if plan is None:
            plan = self._plans[space] = PlanOnDevice.of(space, self._repeatable)
        operator = MatrixFree(plan, lam, mu, np.dtype(real))
        return Blocks(3, 3, n, n, (operator,), operator.bytes)

    def blocks(self, indptr: Any, indices: Any, data: Any, n_columns: int) -> Blocks:
        """See `Backend`."""
        rows, columns = data.shape[1:]
        n = len(indptr) - 1
        if rows == columns == 3:
            matrix = SlicedMatrix(indptr, indices, data, self.asarray)
            return Blocks(3, 3, n, n_columns, (matrix,), matrix.bytes)
        if (rows, columns) in _SPLITS and n >= _FEW:
            host = in_slices(indptr, indices, data)
        else:
            host = (indptr.astype(np.int32), indices.astype(np.int32), data)
        parts = tuple(self.asarray(part) for part in host)
        size = int(sum(part.nbytes for part in parts))
        return Blocks(rows, columns, n, n_columns, parts, size)

    def multiply(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        self._residual(matrix, NOWHERE, x, out)

    def residual(self, matrix: Blocks, b: Any, x: Any, out: Any) -> None:
        """See `Backend`."""
        self._residual(matrix, b, x, out)

    def _residual(self, matrix: Blocks, b: Any, x: Any, out: Any) -> None:
        """Out = A x, or b - A x where b is an array."""
        n, rows = matrix.n_rows, matrix.rows
        sizes = (np.int32(rows), np.int32(matrix.columns))
        if isinstance(matrix.parts[0], Products):
            if isinstance(b, cupy.ndarray):
                matrix.parts[0].residual(b, x, out)
            else:
                matrix.parts[0].apply(x, out)
        elif isinstance(matrix.parts[0], SlicedMatrix):
            matrix.parts[0].residual(b, x, out)
        elif (rows, matrix.columns) in _SPLITS and n >= _FEW:
            run = _sparse(f"multiply{rows}{matrix.columns}", x, matrix)
            grid = -(-n * _SPLITS[rows, matrix.columns] // (4 * SLICE))
            run((grid,), (128,), (np.int32(n), *matrix.parts, x, b, out))
        elif len(matrix.parts[1]) > _LONG * n:
            run = _sparse("multiply_wide", x, matrix)
            threads = 512 if n <= _FEWEST else 128
            run((n,), (threads,), (*sizes, *matrix.parts, x, b, out))
        else:
            run = _sparse("multiply", x, matrix)
            grid = -(-n * rows * LANES // 128)
            run((grid,), (128,), (np.int32(n), *sizes, *matrix.parts, x, b, out))

    def relax(
        self,
        matrix: Blocks,
        inverse: Any,
        b: Any,
        x: Any,
        gain: float,
        out: Any,
    ) -> None:
        """See `Backend`."""
        if isinstance(matrix.parts[0], Products | SlicedMatrix):
            matrix.parts[0].relax(inverse, b, x, gain, out)
        else:
            self._residual(matrix, b, x, out)
            self._scale(inverse, out, gain, x, out)

    def wide_stiffness(
        self,
        space: Discretisation,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        real: type[np.floating[Any]],
        lanes: int,
    ) -> MatrixFree:
        """K for vectors of 8 or 16 lanes, with a plan of its own."""
        plan = PlanOnDevice.of(space, self._repeatable, variants.SHAPES[lanes])
        return MatrixFree(plan, lam, mu, np.dtype(real))

    def stiffness_rows(
        self,
        rows: NDArray[np.int64],
        assembled: tuple[Any, Any, NDArray[np.float32]],
        inverse: Any,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
    ) -> Blocks:
        """See `LocalRows`."""
        store = np.float16 if half.compressible(lam, mu) else np.float32
        matrix = SlicedRows(rows, assembled, inverse, store, self.asarray)
        return Blocks(3, 3, len(rows), len(inverse), (matrix,), matrix.bytes)

    def relax_rows(
        self,
        matrix: Blocks,
        b: Any,
        x: Any,
        gain: float,
        spare: Any,
    ) -> None:
        """See `LocalRows`."""
        matrix.parts[0].relax(b, x, gain, spare)

    def add_product(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        self._residual(matrix, out, x, out)

    def iteration(
        self, operator: Any, cycle: Descent, u: Any, r: Any, *limits: Any
    ) -> GraphIteration:
        """See `DeviceIteration`; an iteration is one launch, see `GraphIteration`.

        The restoring springs' operations may allocate memory, which a graph may not.
        """
        capture = operator.springs is None
        product = operator.matrix.parts[0].summing() if capture else operator.apply
        found = GraphIteration(product, cycle, (u, r), capture)
        unit, size, active, tolerance = limits
        found.begin(unit, active, tolerance, size)
        return found

    def single_iteration(self, matrix: Blocks, cycle: Descent) -> GraphIteration:
        """See `DeviceIteration`."""
        stiffness: Products = matrix.parts[0]
        sums = cupy.empty((stiffness.n_sums + stiffness.n_joined, LANES))
        return GraphIteration(stiffness.summing(), cycle, None, True, sums)

    def relax_summed(self, matrix: Blocks, inverse: Any, *vectors: Any) -> None:
        """See `DeviceIteration`."""
        matrix.parts[0].relax_summed(inverse, *vectors)

    def subtract_relaxed(
        self, inverse: Any, b: Any, x: Any, gain: float, out: Any
    ) -> None:
        """See `Backend`."""
        n, real = len(inverse), out.dtype.type
        run = _sparse("subtract3", out)
        arguments = (np.int32(n), inverse, b, x, real(gain), out)
        run((-(-3 * n // 128),), (128,), arguments)

    def scale_blocks(self, inverse: Any, r: Any, gain: float, out: Any) -> None:
        """See `Backend`."""
        n, size = inverse.shape[:2]
        if size != 3:
            self._scale(inverse, r, gain, NOWHERE, out)
            return
        run, real = _sparse("scale3", r), r.dtype.type
        run((-(-3 * n // 128),), (128,), (np.int32(n), inverse, r, real(gain), out))

    def _scale(self, inverse: Any, r: Any, gain: float, x: Any, out: Any) -> None:
        """Out = gain D^-1 r, or x + that where x is an array, for 6 x 6 blocks."""
        n, real = len(inverse), r.dtype.type
        arguments = (np.int32(n), inverse, r, real(gain), x, out)
        _sparse("scale6", r)((-(-n * LANES // 128),), (128,), arguments)

    def weights(self, indptr: Any, indices: Any, weights: Any, n_columns: int) -> Any:
        """See `Backend`; two entries side by side where rows have one or two."""
        del n_columns
        counts = np.diff(indptr)
        starts, columns = (self.asarray(a, np.int32) for a in (indptr, indices))
        values = self.asarray(weights)
        if len(counts) == 0 or counts.min() < 1 or counts.max() > 2:
            return starts, columns, values
        first, last = starts[:-1], starts[1:] - 1
        second = cupy.where(last > first, values[last], 0)
        ends = (columns[first], columns[last]), (values[first], second)
        return tuple(cupy.stack(pair, axis=1) for pair in ends)

    def transfer(self, matrix: Any, mask: Any, x: Any, out: Any, add: bool) -> None:
        """See `Backend`."""
        n, *_ = mask.shape
        run = _sparse("transfer" if len(matrix) == 3 else "transfer_pairs", x)
        arguments = (np.int32(n), *matrix, mask, x, out, np.int32(add))
        run((-(-3 * n // 128),), (128,), arguments)

    def elastic_forces(self, tets: Tets, lam: Any, mu: Any, u: Any) -> Any:
        """See `Backend`; shares no tables with `stiffness`."""
        out = cupy.zeros_like(u)
        n = len(tets.volume)
        run = kernel("elastic.cu", "apply_plainly", *variants.elastic(u.dtype))
        arrays = (tets.elements, tets.gradients, tets.volume, lam, mu, u, out)
        run((-(-n * LANES // 128),), (128,), (np.int32(n), *arrays))
        return out


def _sparse(name: str, x: Any, matrix: Blocks | None = None) -> Any:
    store = None if matrix is None else matrix.parts[-1].dtype
    return kernel("sparse.cu", name, *variants.sparse(x.dtype, store))
