"""CuPy: the same algorithms on a CUDA device, with libraries' sparse products.

Block matrices are kept as scalar CSR for cuSPARSE, which limits one matrix to 2^31
entries (about 25 million unknowns).
"""

from __future__ import annotations

from typing import Any

import cupy
import cupyx
import numpy as np
from cupyx.scipy import sparse
from numpy.typing import NDArray
from scipy.sparse import bsr_matrix

from afterslip_solver.backend.base import LANES, BackendError, Blocks, Tets
from afterslip_solver.kernels.tets import MID

# elements whose gradients are held in memory at a time
_CHUNK = 1 << 18
_R2 = float(np.sqrt(0.5))
_R6 = float(np.sqrt(1.0 / 6.0))


def _basis() -> NDArray[np.float64]:
    """(5, 3, 3) orthonormal deviatoric tensors, as in ``kernels.tets``."""
    e = np.zeros((5, 3, 3))
    e[0] = np.diag([_R2, -_R2, 0.0])
    e[1] = np.diag([-_R6, -_R6, 2.0 * _R6])
    for k, (i, j) in enumerate(((0, 1), (1, 2), (0, 2))):
        e[2 + k, i, j] = e[2 + k, j, i] = _R2
    return e


class GpuBackend:
    """The current CUDA device."""

    name = "gpu"
    xp: Any = cupy

    def __init__(self) -> None:
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            message = f"no CUDA device can be used: {error}"
            raise BackendError(message) from error
        if count == 0:
            raise BackendError("no CUDA device can be used: none is visible")
        self._basis = cupy.asarray(_basis())
        self._mass = cupy.asarray((np.ones((4, 4)) + np.eye(4)) / 20.0)

    def asarray(self, a: Any, dtype: Any = None) -> Any:
        """See `Backend`."""
        return cupy.ascontiguousarray(cupy.asarray(a, dtype=dtype))

    def to_host(self, a: Any) -> NDArray[Any]:
        """See `Backend`."""
        return np.asarray(cupy.asnumpy(a))

    def blocks(self, indptr: Any, indices: Any, data: Any, n_columns: int) -> Blocks:
        """See `Backend`."""
        rows, columns = data.shape[1:]
        n_rows = len(indptr) - 1
        if data.size >= 2**31:
            message = f"a matrix of {data.size} entries is beyond cuSPARSE's index"
            raise BackendError(message)
        shape = (rows * n_rows, columns * n_columns)
        host = bsr_matrix((data, indices, indptr), shape=shape).tocsr()
        matrix = sparse.csr_matrix(host)
        size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        return Blocks(rows, columns, n_rows, n_columns, (matrix,), int(size))

    def multiply(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        out[...] = (matrix.parts[0] @ x.reshape(-1, LANES)).reshape(out.shape)

    def residual(self, matrix: Blocks, b: Any, x: Any, out: Any) -> None:
        """See `Backend`."""
        self.multiply(matrix, x, out)
        cupy.subtract(b, out, out=out)

    def chebyshev(
        self,
        matrix: Blocks,
        inverse: Any,
        b: Any,
        x: Any,
        d: Any,
        keep: float,
        gain: float,
        out: Any,
    ) -> None:
        """See `Backend`."""
        self.residual(matrix, b, x, out)
        if keep == 0.0:
            d.fill(0)
        d *= d.dtype.type(keep)
        d += d.dtype.type(gain) * cupy.matmul(inverse, out)
        cupy.add(x, d, out=out)

    def scale_blocks(self, inverse: Any, r: Any, gain: float, out: Any) -> None:
        """See `Backend`."""
        out[...] = out.dtype.type(gain) * cupy.matmul(inverse, r)

    def weights(self, indptr: Any, indices: Any, weights: Any, n_columns: int) -> Any:
        """See `Backend`."""
        parts = (
            cupy.asarray(weights),
            cupy.asarray(indices, dtype=np.int32),
            cupy.asarray(indptr, dtype=np.int32),
        )
        return sparse.csr_matrix(parts, shape=(len(indptr) - 1, n_columns))

    def transfer(self, matrix: Any, mask: Any, x: Any, out: Any, add: bool) -> None:
        """See `Backend`."""
        product = matrix @ x.reshape(matrix.shape[1], -1)
        product = product.reshape(matrix.shape[0], 3, LANES) * mask[:, :, None]
        target = out.reshape(product.shape)
        if add:
            target += product
        else:
            target[...] = product

    def dot(self, a: Any, b: Any) -> NDArray[Any]:
        """See `Backend`."""
        product = (a.reshape(-1, LANES) * b.reshape(-1, LANES)).sum(
            axis=0, dtype=np.float64
        )
        return np.asarray(cupy.asnumpy(product))

    def axpy(self, y: Any, a: NDArray[Any], x: Any) -> None:
        """See `Backend`."""
        y += cupy.asarray(a, dtype=y.dtype) * x

    def xpay(self, x: Any, b: NDArray[Any], y: Any) -> None:
        """See `Backend`."""
        y *= cupy.asarray(b, dtype=y.dtype)
        y += x

    def scale_into(self, x: Any, factor: NDArray[Any], out: Any) -> None:
        """See `Backend`."""
        out[...] = cupy.asarray(factor) * x

    def elastic_forces(self, tets: Tets, lam: Any, mu: Any, u: Any) -> Any:
        """See `Backend`."""
        out = cupy.zeros_like(u)
        for part in _parts(len(tets.volume)):
            nodes = tets.elements[part]
            force = self._element_forces(
                tets.gradients[part], tets.volume[part], lam[part], mu[part], u[nodes]
            )
            cupyx.scatter_add(out, nodes, force)
        return out

    def offset_forces(
        self, tets: Tets, which: Any, lam: Any, mu: Any, offsets: Any, n_node: int
    ) -> Any:
        """See `Backend`."""
        out = cupy.zeros((n_node, *offsets.shape[2:]))
        force = self._element_forces(
            tets.gradients[which], tets.volume[which], lam[which], mu[which], offsets
        )
        cupyx.scatter_add(out, tets.elements[which], -force)
        return out

    def strain(self, tets: Tets, u: Any, out: Any) -> None:
        """See `Backend`."""
        for part in _parts(len(tets.volume)):
            s = _gradients(u[tets.elements[part]], tets.gradients[part])
            out[part] = cupy.einsum("kij,eaijm->eakm", self._basis, s)

    def add_offset_strain(self, tets: Tets, which: Any, offsets: Any, out: Any) -> None:
        """See `Backend`."""
        s = _gradients(offsets, tets.gradients[which])
        # an element is listed once, so plain indexing adds every row
        out[which] += cupy.einsum("kij,eaijm->eakm", self._basis, s)

    def divergence(self, tets: Tets, factor: Any, stress: Any, n_node: int) -> Any:
        """See `Backend`."""
        out = cupy.zeros((n_node, 3, stress.shape[-1]))
        for part in _parts(len(tets.volume)):
            weight = factor[part] * tets.volume[part]
            s = cupy.einsum("kij,eakm->eaijm", self._basis, stress[part])
            s = cupy.einsum("ab,ebijm->eaijm", self._mass, s)
            s *= weight[:, None, None, None, None]
            cupyx.scatter_add(
                out, tets.elements[part], _forces(s, tets.gradients[part])
            )
        return out

    def _element_forces(self, g: Any, volume: Any, lam: Any, mu: Any, u: Any) -> Any:
        """K_e u_e for local values u (n, 10, 3, lane)."""
        s = _gradients(u, g)
        pressure = cupy.einsum("eaiim->eam", s) * lam[:, None, None]
        s = mu[:, None, None, None, None] * (s + s.transpose(0, 1, 3, 2, 4))
        for i in range(3):
            s[:, :, i, i] += pressure
        s = cupy.einsum("ab,ebijm->eaijm", self._mass, s)
        return _forces(s * volume[:, None, None, None, None], g)


def _parts(n: int) -> list[slice]:
    return [slice(k, min(k + _CHUNK, n)) for k in range(0, n, _CHUNK)]


def _gradients(u: Any, g: Any) -> Any:
    """(n, 4, 3, 3, lane) vertex gradients of local values u (n, 10, 3, lane)."""
    out = cupy.empty((len(u), 4, 3, 3, u.shape[-1]))
    for a in range(4):
        w = [
            3.0 * u[:, a] if b == a else 4.0 * u[:, int(MID[a, b])] - u[:, b]
            for b in range(4)
        ]
        out[:, a] = sum(w[b][:, :, None, :] * g[:, b, None, :, None] for b in range(4))
    return out


def _forces(s: Any, g: Any) -> Any:
    """(n, 10, 3, lane) transpose of ``_gradients``."""
    out = cupy.zeros((len(s), 10, 3, s.shape[-1]))
    for a in range(4):
        for b in range(4):
            t = (s[:, a] * g[:, b, None, :, None]).sum(axis=2)
            if a == b:
                out[:, a] += 3.0 * t
            else:
                out[:, int(MID[a, b])] += 4.0 * t
                out[:, b] -= t
    return out
