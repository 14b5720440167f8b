"""The elastic stiffness: as the backend likes it, and element by element for checks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.backend.base import Tets
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.model import Bool, Float
from afterslip_solver.operators import assembly
from afterslip_solver.operators.pattern import Pattern
from afterslip_solver.operators.space import Space
from afterslip_solver.operators.springs import Springs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostMatrix:
    """3 x 3 block CSR on the host; ``diagonal`` is (n, 3, 3)."""

    indptr: Any
    indices: Any
    data: Float
    diagonal: Float


def assemble(space: Space, lam: Float, mu: Float, order: int = 2) -> HostMatrix:
    """Stiffness matrix with fixed components uncoupled.

    Parameters
    ----------
    space : numbering and patterns.
    lam, mu : (n_elem,) float64, Pa, in the solver's order of elements.
    order : 2 for the mesh's nodes, 1 for linear elements on its vertices. As
        linear fields are quadratic fields too and the integrals are exact, the
        latter is the Galerkin coarse matrix of the former.
    """
    arrays = (space.gradients, space.volume, lam, mu)
    if order == 2:
        second = assembly.add_second_order
        return summed(second, space.elements, space.pattern, arrays, space.fixed)
    fixed = space.fixed[space.vertices]
    first = assembly.add_first_order
    return summed(first, space.cells, space.vertex_pattern, arrays, fixed)


def summed(
    add: Callable[..., None],
    elements: NDArray[np.int32],
    pattern: Pattern,
    arrays: tuple[Any, ...],
    fixed: Bool,
) -> HostMatrix:
    """Sum of the matrices of elements, with fixed components uncoupled.

    Parameters
    ----------
    add : from `assembly`, for the kind of elements (n_elem, k).
    arrays : gradients, volumes, lam and mu of them. fixed : (n, 3) bool.
    """
    indptr, indices = pattern
    n = len(indptr) - 1
    data = np.zeros(9 * len(indices))
    near = by_number(elements.ravel(), n)
    over(n, partial(add, *near, elements, *arrays, indptr, indices, data))
    return uncoupled(indptr, indices, data.reshape(-1, 3, 3), fixed)


def uncoupled(indptr: Any, indices: Any, data: Float, fixed: Bool) -> HostMatrix:
    """Matrix of blocks (n_block, 3, 3), from which ``fixed`` (n, 3) are taken out."""
    n = len(indptr) - 1
    diagonal = diagonal_blocks(indptr, indices, data)
    mean = float(traces(diagonal).mean() / 3.0)
    flat, fixed = data.reshape(-1), np.ascontiguousarray(fixed)
    over(n, partial(assembly.hold, indptr, indices, flat, fixed, mean, diagonal))
    return HostMatrix(indptr, indices, data, diagonal)


def traces(blocks: Float) -> Float:
    """(n,) sums of the diagonals of blocks (n, 3, 3), in less time than NumPy's."""
    return np.asarray(blocks[:, 0, 0] + blocks[:, 1, 1] + blocks[:, 2, 2])


def diagonal_blocks(indptr: Any, indices: Any, data: Float) -> Float:
    """(n, 3, 3) copies of the blocks on the diagonal."""
    n = len(indptr) - 1
    out = np.empty((n, 3, 3))
    over(n, partial(assembly.find_diagonal, indptr, indices, data, out))
    return out


class Elasticity:
    """K of one set of moduli on a backend.

    Parameters
    ----------
    backend : where the matrix lives.
    space : numbering and patterns.
    tets : the space's elements on the backend.
    lam, mu : (n_elem,) float64, Pa, in the solver's order of elements; stored on the
        host as ``moduli``.
    springs : the isostatic restoring force, a part of K beside the matrix, or None.

    Attributes
    ----------
    single : what `stiffness` returned last in FP32, or None.
    """

    def __init__(
        self,
        backend: Backend,
        space: Space,
        tets: Tets,
        lam: Float,
        mu: Float,
        springs: Springs | None = None,
    ) -> None:
        self.backend = backend
        self.springs = springs
        self.space = space
        self.tets = tets
        self.moduli = lam, mu
        self.single: Blocks | None = None
        self.lam = backend.asarray(lam)
        self.mu = backend.asarray(mu)
        free = (~space.fixed[space.constrained]).astype(np.float64)[:, :, None]
        self._constrained = backend.asarray(space.constrained)
        self._moves = backend.asarray(free)

    @cached_property
    def matrix(self) -> Blocks:
        """Elastic K on the backend, FP64."""
        return self.stiffness(1.0, np.float64)

    def beside_matrix(self, call: Callable[[], T]) -> T:
        """Return what is made on the host while `matrix` is made.

        Parameters
        ----------
        call : uses neither the backend nor `host`.
        """
        with ThreadPoolExecutor(1) as beside:
            found = beside.submit(call)
            self.matrix  # noqa: B018 - made here
        return found.result()

    @cached_property
    def host(self) -> HostMatrix:
        """The assembled elastic matrix on the host."""
        return assemble(self.space, *self.moduli)

    def on_linear_elements(self) -> HostMatrix:
        """K of linear elements on the mesh's vertices, with the springs; host."""
        matrix = assemble(self.space, *self.moduli, order=1)
        if self.springs is not None:
            self.springs.add_linear(matrix.indptr, matrix.indices, matrix.data)
        return matrix

    @cached_property
    def diagonal(self) -> Float:
        """(n_node, 3, 3) diagonal blocks, fixed components uncoupled; host."""
        space = self.space
        out = np.zeros((space.n_node, 3, 3))
        arrays = (space.elements, space.gradients, space.volume, *self.moduli, out)
        # each range of nodes looks at all elements, so there is one per thread
        over(space.n_node, partial(assembly.add_diagonal, *arrays), per_thread=1)
        fixed = space.fixed[space.constrained]
        couples = ~(fixed[:, :, None] | fixed[:, None, :])
        out[space.constrained] *= couples | np.eye(3, dtype=bool)
        entries = out.reshape(-1, 9)[:, ::4]
        bad = entries <= 0.0
        if bad.any():
            entries[bad] = entries.mean()
        return out

    @cached_property
    def unit(self) -> float:
        """Mean entry of the diagonal, N/m: K over it is of the order of one."""
        return float(traces(self.diagonal).mean() / 3.0)

    def stiffness(self, unit: float, real: type[np.floating[Any]]) -> Blocks:
        """K / unit on the backend in another precision."""
        lam, mu = self.moduli
        if unit != 1.0:
            lam, mu = lam / unit, mu / unit
        made = self.backend.stiffness(self.space, lam, mu, real)
        if np.dtype(real) == np.float32:
            self.single = made
        return made

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a vector of four lanes."""
        return (self.space.n_node, 3, LANES)

    @property
    def bytes(self) -> int:
        """Memory on the backend."""
        own = self.lam.nbytes + self.mu.nbytes
        return int(self.matrix.bytes + own)

    @property
    def free(self) -> Any:
        """(n_node, 3, 1) float64, 0 where a component is fixed; made anew."""
        return self.backend.asarray((~self.space.fixed).astype(np.float64)[:, :, None])

    def hold(self, v: Any) -> None:
        """V (n_node, 3, lane) = 0 on fixed components."""
        v[self._constrained] *= self._moves

    def apply(self, u: Any, out: Any) -> None:
        """Out = K u; fixed components must be zero in u."""
        self.backend.multiply(self.matrix, u, out)
        if self.springs is not None:
            self.springs.add(u, out)

    def check(self, u: Any, f: Any) -> Any:
        """Residual f - K u computed from the elements, not from the matrix."""
        force = self.backend.elastic_forces(self.tets, self.lam, self.mu, u)
        if self.springs is not None:
            self.springs.add(u, force)
        self.backend.xp.subtract(f, force, out=force)
        self.hold(force)
        return force
