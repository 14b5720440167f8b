"""Creep strain and bases of vectors on a CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES, Tets
from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.loader import NOWHERE, kernel

# thread blocks of inner products, and vectors that one pass takes (basis.cu)
_DOTS = 1024
_MANY = 8


class CreepOnDevice:
    """The part of a backend that works on viscoelastic elements; see `Backend`.

    Nothing here adds with atomics, so the same input gives the same bits.
    """

    def __init__(self) -> None:
        self._incidences: WeakKeyDictionary[Tets, tuple[Any, Any]] = WeakKeyDictionary()

    def offset_forces(
        self, tets: Tets, which: Any, lam: Any, mu: Any, offsets: Any, n_node: int
    ) -> Any:
        """See `Backend`."""
        out = cupy.zeros((n_node, *offsets.shape[2:]))
        n = len(which)
        if n == 0:
            return out
        forces = cupy.empty_like(offsets)
        which = cupy.asarray(which, dtype=np.int64)
        arrays = (which, tets.gradients, tets.volume, lam, mu, offsets, forces)
        _creep("offset_forces", np.float64)(*_grid(n * LANES), (np.int32(n), *arrays))
        owners = tets.elements[which].ravel()
        entries = cupy.argsort(owners).astype(np.int32)
        nodes, counts = cupy.unique(owners, return_counts=True)
        m = len(nodes)
        tables = (nodes.astype(np.int32), _starts(counts), entries)
        shape = _grid(m * 3 * LANES)
        _creep("gather", np.float64)(*shape, (np.int32(m), *tables, forces, out))
        return out

    def strain(self, tets: Tets, u: Any, out: Any) -> None:
        """See `Backend`."""
        self._strain(tets, u, NOWHERE, out, NOWHERE, out)

    def blend_strain(
        self, tets: Tets, u: Any, keep: Any, state: Any, gain: Any, out: Any
    ) -> None:
        """See `Backend`."""
        self._strain(tets, u, keep, state, gain, out)

    def _strain(
        self, tets: Tets, u: Any, keep: Any, state: Any, gain: Any, out: Any
    ) -> None:
        n = len(tets.volume)
        arrays = (tets.elements, tets.gradients, u, keep, state, gain, out)
        _creep("strain", state.dtype)(*_grid(n * LANES), (np.int32(n), *arrays))

    def add_offset_strain(self, tets: Tets, which: Any, offsets: Any, out: Any) -> None:
        """See `Backend`."""
        n = len(which)
        if n:
            which = cupy.asarray(which, dtype=np.int64)
            arrays = (np.int32(n), which, tets.gradients, offsets, out)
            _creep("add_offset_strain", np.float64)(*_grid(n * LANES), arrays)

    def divergence(self, tets: Tets, factor: Any, stress: Any, n_node: int) -> Any:
        """See `Backend`."""
        out = cupy.empty((n_node, 3, stress.shape[-1]))
        tables = self._incidence(tets, n_node)
        arrays = (*tables, tets.gradients, tets.volume, factor, stress, out)
        run = _creep("divergence", stress.dtype)
        run(*_grid(n_node * LANES), (np.int32(n_node), *arrays))
        return out

    def _incidence(self, tets: Tets, n_node: int) -> tuple[Any, Any]:
        """Elements of each node: starts (n_node + 1,), 10 element + local node."""
        found = self._incidences.get(tets)
        if found is None:
            owners = tets.elements.ravel()
            counts = cupy.bincount(owners, minlength=n_node)
            found = _starts(counts), cupy.argsort(owners).astype(np.int32)
            # another thread's stream may be the next to read them
            cupy.cuda.get_current_stream().synchronize()
            self._incidences[tets] = found
        return found

    def dots(self, basis: Sequence[Any], r: Any) -> NDArray[np.float64]:
        """See `Backend`."""
        return _sums("dots", basis, np.int64(r.size), (), r)

    def energy_dots(
        self, energy: Any, basis: Sequence[Any], r: Any
    ) -> NDArray[np.float64]:
        """See `Backend`."""
        return _sums("energy_dots", basis, np.int64(len(r)), (energy,), r)

    def combine(
        self, r: Any, factors: NDArray[np.float64], basis: Sequence[Any]
    ) -> None:
        """See `Backend`."""
        if not basis:
            return
        run = kernel("basis.cu", "combine", *variants.basis(basis[0].dtype))
        blocks = min(-(-r.size // 256), 1 << 16)
        where = _addresses(basis)
        scalars = cupy.asarray(np.ascontiguousarray(factors, dtype=np.float64))
        sizes = (np.int64(r.size), np.int32(len(basis)))
        run((blocks,), (256,), (*sizes, where, scalars, r))


def _creep(name: str, state: Any) -> Any:
    return kernel("creep.cu", name, *variants.creep(state))


def _grid(threads: int) -> tuple[tuple[int], tuple[int]]:
    return (-(-threads // 128),), (128,)


def _starts(counts: Any) -> Any:
    starts = cupy.zeros(len(counts) + 1, dtype=np.int32)
    cupy.cumsum(counts, out=starts[1:], dtype=np.int32)
    return starts


def _addresses(basis: Sequence[Any]) -> Any:
    return cupy.asarray(np.array([b.data.ptr for b in basis], dtype=np.uint64))


def _sums(
    name: str, basis: Sequence[Any], n: np.int64, more: tuple[Any, ...], r: Any
) -> NDArray[np.float64]:
    """(m, lane) sums of a kernel of basis.cu over each vector of the basis."""
    partial = cupy.empty((_DOTS, _MANY, LANES))
    out = np.zeros((len(basis), LANES))
    for first in range(0, len(basis), _MANY):
        part = basis[first : first + _MANY]
        run = kernel("basis.cu", name, *variants.basis(part[0].dtype))
        arguments = (n, *more, np.int32(len(part)), _addresses(part), r, partial)
        run((_DOTS,), (256,), arguments)
        sums = cupy.asnumpy(partial.sum(axis=0))
        out[first : first + len(part)] = sums[: len(part)]
    return out
