"""NumPy and numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES, Blocks, Discretisation, Tets
from afterslip_solver.backend.cpu import blocks as block_kernels
from afterslip_solver.backend.cpu import tets as tet_kernels
from afterslip_solver.backend.cpu import vectors as vector_kernels
from afterslip_solver.backend.cpu.matrix_free import MatrixFree, Plan
from afterslip_solver.backend.protocols import Capabilities

# rows of a vector that are not worth another thread
_SHORT = 4096


class CpuBackend:
    """One core by default; more threads share the rows of matrices.

    Parameters
    ----------
    threads : number of threads for sweeps over a matrix.
    """

    name = "cpu"
    xp: Any = np
    capabilities = Capabilities(local_rows=True)

    def __init__(self, threads: int = 1) -> None:
        self.threads = max(1, threads)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._plans: WeakKeyDictionary[Discretisation, Plan] = WeakKeyDictionary()

    def _sweep(
        self, n: int, kernel: Callable[[int, int], None], few: int = 256
    ) -> None:
        """Run ``kernel(start, stop)`` over n rows; kernels release the GIL.

        Fewer rows than ``few`` are not worth another thread.
        """
        if self._pool is None or n < few:
            kernel(0, n)
            return
        cuts = [n * k // self.threads for k in range(self.threads + 1)]
        tasks = [self._pool.submit(kernel, a, b) for a, b in pairwise(cuts)]
        for task in tasks:
            task.result()

    def beside(self) -> AbstractContextManager[None]:
        """See `Backend`; threads do that by themselves."""
        return nullcontext()

    def asarray(self, a: Any, dtype: Any = None) -> NDArray[Any]:
        """See `Backend`; the result is writable, so kernels see one type."""
        return np.require(a, dtype=dtype, requirements=["C", "W", "A"])

    def to_host(self, a: Any) -> NDArray[Any]:
        """See `Backend`."""
        return np.asarray(a)

    def later(self, a: Any) -> Callable[[], NDArray[Any]]:
        """See `Backend`; everything is done at once here."""
        found = np.array(a)
        return lambda: found

    def moved(self, u: Any, x: Any, factor: Any, rows: Any, before: Any) -> Any:
        """See `Backend`."""
        nothing = u[:0].astype(np.float32)
        parts = (nothing, np.zeros(LANES)) if x is None else (x, factor)
        out = np.empty((2, LANES))
        vector_kernels.moved(u, *parts, rows, before, out)
        return out

    def blocks(self, indptr: Any, indices: Any, data: Any, n_columns: int) -> Blocks:
        """See `Backend`."""
        rows, columns = data.shape[1:]
        n_rows = len(indptr) - 1
        if (rows, columns) != (3, 3):
            indptr, indices, data = _thirds(indptr, indices, data)
        parts = (
            np.require(indptr, np.int64, ["C", "W"]),
            np.require(indices, np.int32, ["C", "W"]),
            np.ascontiguousarray(data).reshape(-1),
        )
        size = sum(p.nbytes for p in parts)
        return Blocks(rows, columns, n_rows, n_columns, parts, size)

    def numbering(
        self, nodes: NDArray[np.float64], elements: NDArray[np.int64]
    ) -> None:
        """See `Backend`; the space's own numbering suits."""

    def stiffness(
        self,
        space: Discretisation,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        real: type[np.floating[Any]],
    ) -> Blocks:
        """See `Backend`; without a matrix, element by element."""
        plan = self._plans.get(space)
        if plan is None:
            plan = self._plans[space] = Plan.of(space)
        operator, n = MatrixFree(space, plan, lam, mu, real), len(space.nodes)
        return Blocks(3, 3, n, n, (operator,), operator.bytes)

    def multiply(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        if isinstance(matrix.parts[0], MatrixFree):
            matrix.parts[0].multiply(self._sweep, x, out)
        else:
            self._product(matrix, x, out, False)

    def add_product(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        self._product(matrix, x, out, True)

    def _product(self, matrix: Blocks, x: Any, out: Any, add: bool) -> None:
        x, y, parts = x.reshape(-1), out.reshape(-1), matrix.parts
        self._sweep(
            len(parts[0]) - 1,
            lambda m, n: block_kernels.multiply(*parts, x, y, add, m, n),
        )

    def residual(self, matrix: Blocks, b: Any, x: Any, out: Any) -> None:
        """See `Backend`."""
        if isinstance(matrix.parts[0], MatrixFree):
            matrix.parts[0].residual(self._sweep, b, x, out)
            return
        f, x, y, parts = b.reshape(-1), x.reshape(-1), out.reshape(-1), matrix.parts
        self._sweep(
            len(parts[0]) - 1,
            lambda m, n: block_kernels.residual(*parts, f, x, y, m, n),
        )

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
        if isinstance(matrix.parts[0], MatrixFree):
            matrix.parts[0].relax(self._sweep, inverse, b, x, gain, out)
            return
        if matrix.rows != 3:
            self.residual(matrix, b, x, out)
            self.scale_blocks(inverse, out.copy(), gain, out)
            out += x
            return
        vectors = [v.reshape(-1) for v in (inverse, b, x)]
        gain, y, parts = x.dtype.type(gain), out.reshape(-1), matrix.parts
        self._sweep(
            matrix.n_rows,
            lambda m, n: block_kernels.relax(*parts, *vectors, gain, y, m, n),
        )

    def stiffness_rows(
        self,
        rows: NDArray[np.int64],
        assembled: tuple[Any, Any, NDArray[np.float32]],
        inverse: Any,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
    ) -> Blocks:
        """See `LocalRows`; in FP32."""
        del lam, mu
        made = self.blocks(*assembled, len(inverse))
        numbers = rows.astype(np.int32)
        parts = (*made.parts, numbers, inverse.reshape(-1))
        size = made.bytes + numbers.nbytes
        return Blocks(3, 3, made.n_rows, made.n_columns, parts, size)

    def relax_rows(
        self,
        matrix: Blocks,
        b: Any,
        x: Any,
        gain: float,
        spare: Any,
    ) -> None:
        """See `LocalRows`."""
        vectors = (b.reshape(-1), x.reshape(-1), x.dtype.type(gain))
        *_, rows, _inverse = parts = matrix.parts
        out = spare.reshape(-1)
        self._sweep(
            matrix.n_rows,
            lambda m, n: block_kernels.relax_rows(*parts, *vectors, out, m, n),
        )
        y = x.reshape(-1)
        self._sweep(
            matrix.n_rows, lambda m, n: block_kernels.spread(rows, out, y, m, n)
        )

    def subtract_relaxed(
        self, inverse: Any, b: Any, x: Any, gain: float, out: Any
    ) -> None:
        """See `Backend`."""
        step = np.empty_like(out)
        self.scale_blocks(inverse, b, gain, step)
        step += x
        out -= step

    def scale_blocks(self, inverse: Any, r: Any, gain: float, out: Any) -> None:
        """See `Backend`."""
        flat, factor = [v.reshape(-1) for v in (inverse, r, out)], r.dtype.type(gain)
        size = inverse.shape[1]
        self._sweep(
            len(inverse),
            lambda m, n: block_kernels.scale_blocks(
                flat[0], size, flat[1], factor, flat[2], m, n
            ),
        )

    def weights(self, indptr: Any, indices: Any, weights: Any, n_columns: int) -> Any:
        """See `Backend`."""
        del n_columns
        return (
            np.require(indptr, np.int64, ["C", "W"]),
            np.require(indices, np.int32, ["C", "W"]),
            np.ascontiguousarray(weights),
        )

    def transfer(self, matrix: Any, mask: Any, x: Any, out: Any, add: bool) -> None:
        """See `Backend`."""
        x, y = x.reshape(-1), out.reshape(-1)
        # rows of the matrix: the coarsest level's vectors have no axis of components
        self._sweep(
            len(matrix[0]) - 1,
            lambda a, b: block_kernels.transfer(*matrix, mask, x, y, add, a, b),
        )

    def dot(self, a: Any, b: Any) -> NDArray[Any]:
        """See `Backend`."""
        a, b = a.reshape(-1), b.reshape(-1)
        # the same sums by however many threads
        sums = np.zeros((-(-a.size // (vector_kernels.SUMMED * LANES)), LANES))
        self._sweep(len(sums), lambda m, n: vector_kernels.dot(a, b, sums, m, n), 2)
        return np.asarray(sums.sum(axis=0))

    def partial_dot(self, a: Any, b: Any) -> Any:
        """See `Backend`."""
        return self.dot(a, b)[None]

    def axpy(self, y: Any, a: NDArray[Any], x: Any) -> None:
        """See `Backend`."""
        y, x, a = y.reshape(-1), x.reshape(-1), a.astype(y.dtype)
        self._sweep(
            y.size // LANES, lambda m, n: vector_kernels.axpy(y, a, x, m, n), _SHORT
        )

    def xpay(self, x: Any, b: NDArray[Any], y: Any) -> None:
        """See `Backend`."""
        x, y, b = x.reshape(-1), y.reshape(-1), b.astype(y.dtype)
        self._sweep(
            y.size // LANES, lambda m, n: vector_kernels.xpay(x, b, y, m, n), _SHORT
        )

    def scale_into(self, x: Any, factor: NDArray[Any], out: Any) -> None:
        """See `Backend`."""
        x, y = x.reshape(-1), out.reshape(-1)
        self._sweep(
            y.size // LANES,
            lambda m, n: vector_kernels.scale_into(x, factor, y, m, n),
            _SHORT,
        )

    def elastic_forces(self, tets: Tets, lam: Any, mu: Any, u: Any) -> Any:
        """See `Backend`."""
        out = np.zeros_like(u)
        tet_kernels.add_elastic_forces(
            tets.elements, tets.gradients, tets.volume, lam, mu, u, out
        )
        return out

    def offset_forces(
        self, tets: Tets, which: Any, lam: Any, mu: Any, offsets: Any, n_node: int
    ) -> Any:
        """See `Backend`."""
        out = np.zeros((n_node, *offsets.shape[2:]))
        tet_kernels.add_offset_forces(
            which,
            tets.elements,
            tets.gradients,
            tets.volume,
            lam,
            mu,
            offsets,
            -1.0,
            out,
        )
        return out

    def strain(self, tets: Tets, u: Any, out: Any) -> None:
        """See `Backend`."""
        tet_kernels.strain(tets.elements, tets.gradients, u, out)

    def add_offset_strain(self, tets: Tets, which: Any, offsets: Any, out: Any) -> None:
        """See `Backend`."""
        tet_kernels.add_offset_strain(which, tets.gradients, offsets, out)

    def divergence(self, tets: Tets, factor: Any, stress: Any, n_node: int) -> Any:
        """See `Backend`."""
        out = np.zeros((n_node, 3, stress.shape[-1]))
        tet_kernels.add_divergence(
            tets.elements, tets.gradients, tets.volume, factor, stress, out
        )
        return out

    def blend_strain(
        self, tets: Tets, u: Any, keep: Any, state: Any, gain: Any, out: Any
    ) -> None:
        """See `Backend`."""
        tet_kernels.blend_strain(
            tets.elements, tets.gradients, u, keep, state, gain, out
        )

    def dots(self, basis: Sequence[Any], r: Any) -> NDArray[np.float64]:
        """See `Backend`."""
        return np.array([self.dot(b, r) for b in basis]).reshape(-1, LANES)

    def energy_dots(
        self, energy: Any, basis: Sequence[Any], r: Any
    ) -> NDArray[np.float64]:
        """See `Backend`."""
        sums = [tet_kernels.energy_dot(energy, b, r) for b in basis]
        return np.array(sums).reshape(-1, LANES)

    def combine(
        self, r: Any, factors: NDArray[np.float64], basis: Sequence[Any]
    ) -> None:
        """See `Backend`."""
        for factor, b in zip(factors, basis, strict=True):
            self.axpy(r, factor, b)

    def blend(self, past: Any, part: Any, weights: Any, out: Any) -> None:
        """See `Backend`."""
        self._sweep(
            len(part),
            lambda a, b: vector_kernels.blend(past, part, weights, out, a, b),
        )

    def descend(
        self,
        inverse: Any,
        rho: NDArray[Any],
        curvature: Any,
        p: Any,
        q: Any,
        x: Any,
        e: Any,
        z: Any,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Backend`."""
        total = curvature.sum(axis=0)
        positive = total > 0.0
        a = np.where(positive, rho / np.where(positive, total, 1.0), 0.0)
        single = a.astype(np.float32)
        self.axpy(x, single, p)
        self.axpy(e, -single, q)
        self.scale_blocks(inverse, e, 1.0, z)
        return self.dot(e, z), self.dot(e, e)


def _thirds(indptr: Any, indices: Any, data: Any) -> tuple[Any, Any, Any]:
    """Cut blocks of 3 r x 3 c into 3 x 3 blocks, for which there are kernels."""
    r, c = data.shape[1] // 3, data.shape[2] // 3
    count = np.diff(indptr)
    rows = np.repeat(np.arange(len(count)), count)
    cut = data.reshape(-1, r, 3, c, 3).transpose(1, 0, 3, 2, 4)
    row = r * rows + np.arange(r)[:, None]
    columns = c * np.asarray(indices)[:, None] + np.arange(c)
    order = np.argsort(row.ravel(), kind="stable")
    out = cut.reshape(-1, c, 3, 3)[order].reshape(-1, 3, 3)
    columns = np.broadcast_to(columns, (r, *columns.shape)).reshape(-1, c)[order]
    starts = np.concatenate([[0], np.cumsum(np.repeat(c * count, r))])
    return starts, columns.ravel(), out
