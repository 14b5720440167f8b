"""What a backend must do, in four parts, and what it may do beyond them.

Vectors are (n, components, lane) C-contiguous with four lanes; scalars per lane are
float64 NumPy arrays of four, also on a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import Blocks, Discretisation, Tets


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do beyond `Backend`; algorithms ask this value only.

    Attributes
    ----------
    coarse_storage : precision that suffices for the matrices of coarse levels.
    local_rows : it is a `LocalRows`.
    device_iteration : it is a `DeviceIteration`.
    """

    coarse_storage: type[np.floating[Any]] = np.float32
    local_rows: bool = False
    device_iteration: bool = False


class VectorOps(Protocol):
    """Arrays and sums of vectors, lane by lane.

    Attributes
    ----------
    xp : NumPy or its like on the device.
    """

    xp: Any

    def asarray(self, a: Any, dtype: Any = None) -> Any:
        """Copy to the backend's memory where needed."""

    def to_host(self, a: Any) -> NDArray[Any]:
        """Return a NumPy array."""

    def later(self, a: Any) -> Callable[[], NDArray[Any]]:
        """Return a call that waits for a as it is now, copied to the host.

        What is queued after this is not waited for.
        """

    def moved(self, u: Any, x: Any, factor: Any, rows: Any, before: Any) -> Any:
        """(2, lane) on the backend: how far u + factor x has moved, and its size.

        The largest of the components at ``rows`` (n,) int64. ``before`` (n, 3, lane)
        FP64 is what it was there and becomes what it is. u is FP64, x FP32 or None,
        factor (lane,) on the backend.
        """

    def dot(self, a: Any, b: Any) -> NDArray[Any]:
        """Lane-wise inner product, float64 on the host."""

    def partial_dot(self, a: Any, b: Any) -> Any:
        """(m, lane) float64 on the backend whose sum over the rows is `dot`."""

    def axpy(self, y: Any, a: NDArray[Any], x: Any) -> None:
        """Y += a x, lane-wise."""

    def xpay(self, x: Any, b: NDArray[Any], y: Any) -> None:
        """Y = x + b y, lane-wise."""

    def scale_into(self, x: Any, factor: NDArray[Any], out: Any) -> None:
        """Out = factor x, lane-wise, in the precision of out."""

    def dots(self, basis: Sequence[Any], r: Any) -> NDArray[np.float64]:
        """Inner products (m, lane) of r, FP64, with vectors of one precision."""

    def combine(
        self, r: Any, factors: NDArray[np.float64], basis: Sequence[Any]
    ) -> None:
        """R += sum_j factors_j basis_j, factors (m, lane); r is FP64."""

    def blend(self, past: Any, part: Any, weights: Any, out: Any) -> None:
        """Out += sum_k weights_k past_k, with a weight per part of the nodes and lane.

        ``past`` is (k, n, components, lane), ``part`` (n,) int32, ``weights``
        (k, n_part, lane); all FP64.
        """


class BlockOps(Protocol):
    """Block matrices and operators that act like them."""

    def blocks(self, indptr: Any, indices: Any, data: Any, n_columns: int) -> Blocks:
        """Make a matrix from host arrays; ``data`` is (n_block, rows, columns)."""

    def multiply(self, matrix: Blocks, x: Any, out: Any) -> None:
        """Out = A x."""

    def add_product(self, matrix: Blocks, x: Any, out: Any) -> None:
        """Out += A x; of blocks only, not of a `stiffness`."""

    def residual(self, matrix: Blocks, b: Any, x: Any, out: Any) -> None:
        """Out = b - A x."""

    def relax(
        self,
        matrix: Blocks,
        inverse: Any,
        b: Any,
        x: Any,
        gain: float,
        out: Any,
    ) -> None:
        """Out = x + gain D^-1 (b - A x); out must not be x."""

    def scale_blocks(self, inverse: Any, r: Any, gain: float, out: Any) -> None:
        """Out = gain D^-1 r with (n, k, k) diagonal blocks."""

    def subtract_relaxed(
        self, inverse: Any, b: Any, x: Any, gain: float, out: Any
    ) -> None:
        """Out -= x + gain D^-1 b with (n, 3, 3) blocks."""

    def weights(self, indptr: Any, indices: Any, weights: Any, n_columns: int) -> Any:
        """Make a scalar matrix that acts alike on all components of a node."""

    def transfer(self, matrix: Any, mask: Any, x: Any, out: Any, add: bool) -> None:
        """Out (+)= mask * (W x); mask is (n, 3)."""

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
        """X += a p, e -= a q, z = D^-1 e, all FP32; returns e z and e e by lane.

        ``a`` is ``rho`` over the sum of ``curvature`` (`partial_dot` of p and q), or 0
        where that is not positive.
        """


class ElasticOps(Protocol):
    """The stiffness of quadratic tetrahedra."""

    def numbering(
        self, nodes: NDArray[np.float64], elements: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Orders of nodes and of elements that suit the device, if it has any."""

    def stiffness(
        self,
        space: Discretisation,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        real: type[np.floating[Any]],
    ) -> Blocks:
        """K in precision ``real``, as a matrix or as something that acts like it.

        Vectors must be zero on fixed components, and products are.
        """

    def elastic_forces(self, tets: Tets, lam: Any, mu: Any, u: Any) -> Any:
        """K u, element by element in FP64."""

    def offset_forces(
        self, tets: Tets, which: Any, lam: Any, mu: Any, offsets: Any, n_node: int
    ) -> Any:
        """Minus sum of K_e s_e, offsets (n_which, 10, 3, lane): (n_node, 3, lane)."""


class CreepOps(Protocol):
    """Strains of quadratic tetrahedra and sums of creep states."""

    def strain(self, tets: Tets, u: Any, out: Any) -> None:
        """Deviatoric strain (n_elem, 4, 5, lane)."""

    def add_offset_strain(self, tets: Tets, which: Any, offsets: Any, out: Any) -> None:
        """Add the strain of local offsets to the elements ``which``."""

    def divergence(self, tets: Tets, factor: Any, stress: Any, n_node: int) -> Any:
        """Int B^T (factor stress): (n_node, 3, lane)."""

    def blend_strain(
        self, tets: Tets, u: Any, keep: Any, state: Any, gain: Any, out: Any
    ) -> None:
        """Out = keep state + gain strain(u), factors (n_elem,); out may be state.

        States may be FP32 or FP64, ``out`` is FP64.
        """

    def energy_dots(
        self, energy: Any, basis: Sequence[Any], r: Any
    ) -> NDArray[np.float64]:
        """Inner products (m, lane) of states, int 2 eta a : b; energy (n_row,)."""


class Backend(VectorOps, BlockOps, ElasticOps, CreepOps, Protocol):
    """Arrays and the kernels that every algorithm is written with.

    Attributes
    ----------
    name : "cpu" or "gpu". capabilities : what it can do beyond this.
    """

    name: str

    @property
    def capabilities(self) -> Capabilities:
        """See the class."""

    def beside(self) -> AbstractContextManager[None]:
        """Return what lets the device do something beside what other threads ask.

        It may be entered again and again, by one thread at a time. What was asked of
        the device outside is done when it is entered, and all when it is left.
        """


class LocalRows(Backend, Protocol):
    """A backend that relaxes some rows of a stiffness alone."""

    def stiffness_rows(
        self,
        rows: NDArray[np.int64],
        assembled: tuple[Any, Any, NDArray[np.float32]],
        inverse: Any,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
    ) -> Blocks:
        """Rows of K for `relax_rows`, stored in FP16 where that suffices.

        Parameters
        ----------
        rows : (n,) their numbers. assembled : indptr, indices and data
        (n_block, 3, 3) of these rows, with all columns.
        inverse : (n_node, 3, 3) float32 inverse diagonal blocks of all rows.
        lam, mu : (n_elem,) of the elements that the rows are made of, Pa.
        """

    def relax_rows(
        self,
        matrix: Blocks,
        b: Any,
        x: Any,
        gain: float,
        spare: Any,
    ) -> None:
        """`relax` in place on the rows that `stiffness_rows` was given.

        ``spare`` is like x and overwritten.
        """


class DeviceIteration(Backend, Protocol):
    """A backend that does a whole iteration of conjugate gradients by itself."""

    def iteration(
        self,
        operator: Any,
        cycle: Any,
        u: Any,
        r: Any,
        unit: NDArray[Any],
        size: NDArray[Any],
        active: NDArray[Any],
        tolerance: float,
    ) -> Any:
        """Conjugate gradients on u and r; see `krylov.iteration.Iteration`."""

    def single_iteration(self, matrix: Blocks, cycle: Any) -> Any:
        """Make one in FP32; see `krylov.mixed.SingleIteration`.

        It also has ``begin(unit, active, tolerance)``, which starts a solve with the
        residual in ``cycle.right``, and does not keep the cycle alive.
        """

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
        """`relax` of a stiffness with FP64 sums (n, lane) over parts of out b."""

    def dot_into(self, a: Any, b: Any, sums: Any) -> None:
        """Put FP64 sums (m, lane) over m parts of the inner product of a and b there.

        a is FP32.
        """
