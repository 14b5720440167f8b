"""A backend whose vectors are one part of vectors that several devices hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.backend.base import Discretisation, Tets
from afterslip_solver.backend.protocols import Capabilities, DeviceIteration
from afterslip_solver.operators.space import along_curve
from afterslip_solver.parallel.communicator import Communicator, DeviceCommunicator
from afterslip_solver.parallel.halo import Halo
from afterslip_solver.parallel.partition import Part

# sums over the rows that parts share, see `RankBackend.relax_summed`
_SHARED_SUMS = 64


@dataclass(frozen=True, slots=True)
class RankBlocks(Blocks):
    """A part's share of a sum of matrices; products are completed by the halo."""

    halo: Halo

    @classmethod
    def of(cls, own: Blocks, halo: Halo) -> RankBlocks:
        """Take a part's own matrix."""
        sizes = own.rows, own.columns, own.n_rows, own.n_columns
        return cls(*sizes, own.parts, own.bytes, halo)


class RankBackend:
    """A part's end of everything; see `Backend`.

    Nodal vectors hold the part's nodes, shared ones with their whole value. What is
    summed over elements is then summed over the parts; inner products count a node
    where it is owned. Matrices that are no `RankBlocks` are the same on all parts.

    Parameters
    ----------
    inner : the device's own backend. communicator : to the other parts.
    part : of the model; `share` comes before anything that sums over nodes.
    """

    def __init__(self, inner: Backend, communicator: Communicator, part: Part) -> None:
        self.inner = inner
        self.communicator = communicator
        self.name = inner.name
        self.xp: Any = inner.xp
        self._part = part
        self._halos: dict[int, Halo] = {}
        # one rank alone iterates as its device does
        self._alone = communicator.size == 1
        on_device = inner.capabilities if self._alone else communicator
        self.capabilities = Capabilities(device_iteration=on_device.device_iteration)

    def halo(self, n: int) -> Halo:
        """Return the halo of nodal vectors with n rows."""
        return self._halos[n]

    def complete(self, x: Any) -> Any:
        """Add the other parts' share to a nodal vector, and return it."""
        self._halos[len(x)].sum(x)
        return x

    def total(self, values: Any) -> NDArray[np.float64]:
        """Sum of host values over the parts."""
        on_device = self.inner.asarray(np.array(values, dtype=np.float64, ndmin=1))
        self.communicator.all_reduce(on_device)
        return self.inner.to_host(on_device)

    def largest(self, values: Any) -> NDArray[np.float64]:
        """Largest over the parts of each host value."""
        table = np.zeros((self.communicator.size, *np.shape(values)))
        table[self.communicator.rank] = values
        return np.asarray(self.total(table).max(axis=0))

    def beside(self) -> AbstractContextManager[None]:
        """See `Backend`; parts of a model wait for each other, and for nobody else."""
        return nullcontext()

    def asarray(self, a: Any, dtype: Any = None) -> Any:
        """See `Backend`."""
        return self.inner.asarray(a, dtype)

    def to_host(self, a: Any) -> NDArray[Any]:
        """See `Backend`."""
        return self.inner.to_host(a)

    def later(self, a: Any) -> Callable[[], NDArray[Any]]:
        """See `Backend`."""
        return self.inner.later(a)

    def moved(self, *arguments: Any) -> Any:
        """See `Backend`."""
        found = self.inner.moved(*arguments)
        self.communicator.maximise(found)
        return found

    def blocks(self, indptr: Any, indices: Any, data: Any, n_columns: int) -> Blocks:
        """See `Backend`; a matrix that is the same on all parts."""
        return self.inner.blocks(indptr, indices, data, n_columns)

    def numbering(
        self, nodes: NDArray[np.float64], elements: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """See `Backend`; shared nodes come last, those of other owners behind."""
        found = self.inner.numbering(nodes, elements)
        order, element_order = found or along_curve(nodes, elements)
        order = order[np.argsort(self._part.sharing[order], kind="stable")]
        return order, element_order

    def share(self, order: NDArray[np.int64]) -> None:
        """Prepare sums over nodal vectors in that order, of all nodes or vertices."""
        n_vertex = self._part.model.mesh.n_vertex
        for chosen in (order, order[order < n_vertex]):
            self._halos[len(chosen)] = self._halo_of(chosen)

    def _halo_of(self, order: NDArray[np.int64]) -> Halo:
        """Halo of the nodes in ``order``, which may be some of the part's."""
        part = self._part
        place = np.full(len(part.nodes), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        shared = {peer: place[nodes] for peer, nodes in part.shared.items()}
        shared = {peer: rows[rows >= 0] for peer, rows in shared.items()}
        owned = int((part.sharing[order] < 2).sum())
        return Halo(self.inner, self.communicator, len(order), owned, shared)

    def stiffness(
        self,
        space: Discretisation,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        real: type[np.floating[Any]],
    ) -> Blocks:
        """See `Backend`."""
        own = self.inner.stiffness(space, lam, mu, real)
        return RankBlocks.of(own, self._halos[len(space.nodes)])

    def multiply(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        self.inner.multiply(matrix, x, out)
        if isinstance(matrix, RankBlocks):
            matrix.halo.sum(out)

    def add_product(self, matrix: Blocks, x: Any, out: Any) -> None:
        """See `Backend`."""
        self.inner.add_product(matrix, x, out)

    def residual(self, matrix: Blocks, b: Any, x: Any, out: Any) -> None:
        """See `Backend`."""
        if not isinstance(matrix, RankBlocks) or self.communicator.size == 1:
            self.inner.residual(matrix, b, x, out)
            return
        self.inner.residual(matrix, b, x, out)
        # b counts once, at the owner's
        others = out[matrix.halo.owned :]
        others -= b[matrix.halo.owned :]
        matrix.halo.sum(out)

    def relax(
        self,
        matrix: Blocks,
        inverse: Any,
        b: Any,
        x: Any,
        gain: float,
        out: Any,
    ) -> None:
        """See `Backend`: all but the product is counted at the owner's."""
        self.inner.relax(matrix, inverse, b, x, gain, out)
        if not isinstance(matrix, RankBlocks) or self.communicator.size == 1:
            return
        self._complete_relaxed(matrix.halo, inverse, b, x, gain, out)

    def iteration(self, operator: Any, cycle: Any, u: Any, r: Any, *limits: Any) -> Any:
        """See `DeviceIteration`."""
        if self._alone:
            alone = cast("DeviceIteration", self.inner)
            return alone.iteration(operator, cycle, u, r, *limits)

        def product(p: Any, q: Any) -> None:
            operator.apply(p, q)

        owned = self._halos[len(u)].owned
        make = cast("DeviceCommunicator", self.communicator).iteration
        # the springs' operations may allocate memory, which a graph may not
        found = make(product, cycle, (u, r), operator.springs is None, owned)
        unit, size, active, tolerance = limits
        found.begin(unit, active, tolerance, size)
        return found

    def single_iteration(self, matrix: Blocks, cycle: Any) -> Any:
        """See `DeviceIteration`."""
        if self._alone:
            alone = cast("DeviceIteration", self.inner)
            return alone.single_iteration(matrix, cycle)

        stiffness, halo = matrix.parts[0], self._halos[len(cycle.right)]
        own = stiffness.summing()
        n_sums = stiffness.n_sums + stiffness.n_joined + 2 * _SHARED_SUMS
        sums = self.xp.empty((n_sums, LANES))

        def product(p: Any, q: Any) -> Any:
            # elements belong to one part each, and so do their shares of p K p
            shares = own(p, q)
            halo.sum(q)
            return shares

        make = cast("DeviceCommunicator", self.communicator).iteration
        return make(product, cycle, None, True, halo.owned, sums)

    def relax_summed(
        self,
        matrix: Blocks,
        inverse: Any,
        b: Any,
        x: Any,
        gain: float,
        out: Any,
        sums: Any,
    ) -> None:
        """See `DeviceIteration`; the last sums are of rows that parts share."""
        inner = cast("DeviceIteration", self.inner)
        if self._alone:
            inner.relax_summed(matrix, inverse, b, x, gain, out, sums)
            return
        own, before, after = (
            sums[: -2 * _SHARED_SUMS],
            sums[-2 * _SHARED_SUMS : -_SHARED_SUMS],
            sums[-_SHARED_SUMS:],
        )
        inner.relax_summed(matrix, inverse, b, x, gain, out, own)
        halo = cast("RankBlocks", matrix).halo
        # what there was of these rows is taken out of the sums
        shared, mine = slice(halo.first, None), slice(halo.first, halo.owned)
        inner.dot_into(out[shared], b[shared], before)
        before *= -1.0
        self._complete_relaxed(halo, inverse, b, x, gain, out)
        inner.dot_into(out[mine], b[mine], after)

    def _complete_relaxed(
        self, halo: Halo, inverse: Any, b: Any, x: Any, gain: float, out: Any
    ) -> None:
        """Add the parts' shares of a smoothing step, of which only K x is shared."""
        others = slice(halo.owned, None)
        vectors = inverse[others], b[others], x[others]
        self.subtract_relaxed(*vectors, gain, out[others])
        halo.sum(out)

    def subtract_relaxed(
        self, inverse: Any, b: Any, x: Any, gain: float, out: Any
    ) -> None:
        """See `Backend`."""
        if out.size:
            self.inner.subtract_relaxed(inverse, b, x, gain, out)

    def scale_blocks(self, inverse: Any, r: Any, gain: float, out: Any) -> None:
        """See `Backend`."""
        self.inner.scale_blocks(inverse, r, gain, out)

    def weights(self, indptr: Any, indices: Any, weights: Any, n_columns: int) -> Any:
        """See `Backend`."""
        return self.inner.weights(indptr, indices, weights, n_columns)

    def transfer(self, matrix: Any, mask: Any, x: Any, out: Any, add: bool) -> None:
        """See `Backend`."""
        self.inner.transfer(matrix, mask, x, out, add)

    def dot(self, a: Any, b: Any) -> NDArray[Any]:
        """See `Backend`; of nodal vectors, or of states (four axes)."""
        partial = self.partial_dot(a, b)
        self.communicator.all_reduce(partial)
        return np.asarray(self.inner.to_host(partial).sum(axis=0))

    def partial_dot(self, a: Any, b: Any) -> Any:
        """See `Backend`; of this part."""
        if a.ndim == 3:
            owned = self._halos[len(a)].owned
            a, b = a[:owned], b[:owned]
        return self.inner.partial_dot(a, b)

    def axpy(self, y: Any, a: NDArray[Any], x: Any) -> None:
        """See `Backend`."""
        if y.size:
            self.inner.axpy(y, a, x)

    def xpay(self, x: Any, b: NDArray[Any], y: Any) -> None:
        """See `Backend`."""
        if y.size:
            self.inner.xpay(x, b, y)

    def scale_into(self, x: Any, factor: NDArray[Any], out: Any) -> None:
        """See `Backend`."""
        if out.size:
            self.inner.scale_into(x, factor, out)

    def elastic_forces(self, tets: Tets, lam: Any, mu: Any, u: Any) -> Any:
        """See `Backend`."""
        return self.complete(self.inner.elastic_forces(tets, lam, mu, u))

    def offset_forces(
        self, tets: Tets, which: Any, lam: Any, mu: Any, offsets: Any, n_node: int
    ) -> Any:
        """See `Backend`."""
        if len(which):
            own = self.inner.offset_forces(tets, which, lam, mu, offsets, n_node)
        else:
            own = self.xp.zeros((n_node, *offsets.shape[2:]))
        return self.complete(own)

    def strain(self, tets: Tets, u: Any, out: Any) -> None:
        """See `Backend`."""
        if len(out):
            self.inner.strain(tets, u, out)

    def add_offset_strain(self, tets: Tets, which: Any, offsets: Any, out: Any) -> None:
        """See `Backend`."""
        if len(which):
            self.inner.add_offset_strain(tets, which, offsets, out)

    def divergence(self, tets: Tets, factor: Any, stress: Any, n_node: int) -> Any:
        """See `Backend`."""
        if len(stress):
            own = self.inner.divergence(tets, factor, stress, n_node)
        else:
            own = self.xp.zeros((n_node, 3, stress.shape[-1]))
        return self.complete(own)

    def blend_strain(
        self, tets: Tets, u: Any, keep: Any, state: Any, gain: Any, out: Any
    ) -> None:
        """See `Backend`."""
        if len(out):
            self.inner.blend_strain(tets, u, keep, state, gain, out)

    def dots(self, basis: Sequence[Any], r: Any) -> NDArray[np.float64]:
        """See `Backend`; of nodal vectors, or of states (four axes)."""
        if r.ndim == 3:
            owned = self._halos[len(r)].owned
            basis, r = [b[:owned] for b in basis], r[:owned]
        return self.total(self.inner.dots(basis, r) if r.size else _nothing(basis))

    def energy_dots(
        self, energy: Any, basis: Sequence[Any], r: Any
    ) -> NDArray[np.float64]:
        """See `Backend`."""
        if not r.size:
            return self.total(_nothing(basis))
        return self.total(self.inner.energy_dots(energy, basis, r))

    def combine(
        self, r: Any, factors: NDArray[np.float64], basis: Sequence[Any]
    ) -> None:
        """See `Backend`."""
        if r.size:
            self.inner.combine(r, factors, basis)

    def blend(self, past: Any, part: Any, weights: Any, out: Any) -> None:
        """See `Backend`; weights of a shared node must agree between the parts."""
        self.inner.blend(past, part, weights, out)

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
        total = self.total(self.to_host(curvature).sum(axis=0))
        positive = total > 0.0
        a = np.where(positive, rho / np.where(positive, total, 1.0), 0.0)
        single = a.astype(np.float32)
        self.axpy(x, single, p)
        self.axpy(e, -single, q)
        self.scale_blocks(inverse, e, 1.0, z)
        return self.dot(e, z), self.dot(e, e)


def _nothing(basis: Sequence[Any]) -> NDArray[np.float64]:
    return np.zeros((len(basis), LANES))
