"""What a backend must do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import CacheScope

LANES = 4


class BackendError(RuntimeError):
    """The asked-for device cannot be used here; the message says why."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A block CSR matrix in a backend's own memory.

    Attributes
    ----------
    rows, columns : size of a block.
    n_rows, n_columns : number of block rows and block columns.
    parts : the backend's own arrays.
    bytes : memory of the matrix.
    """

    rows: int
    columns: int
    n_rows: int
    n_columns: int
    parts: tuple[Any, ...]
    bytes: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Tets:
    """Second-order tetrahedra in a backend's own memory.

    Attributes
    ----------
    elements : (n_elem, 10) int32 node numbers.
    gradients : (n_elem, 4, 3) float64, 1/m, of the barycentric coordinates.
    volume : (n_elem,) float64, m3.
    """

    elements: Any
    gradients: Any
    volume: Any

    @property
    def bytes(self) -> int:
        """Memory of the three arrays."""
        return int(self.elements.nbytes + self.gradients.nbytes + self.volume.nbytes)


class Discretisation(Protocol):
    """What a backend must know of a mesh to apply its stiffness; host arrays.

    Attributes
    ----------
    elements : (n_elem, 10) int32. nodes : (n_node, 3) float64, m.
    gradients : (n_elem, 4, 3) float64, 1/m. volume : (n_elem,) float64, m3.
    fixed : (n_node, 3) bool. cache : arrays keyed by these arrays.
    """

    @property
    def elements(self) -> NDArray[np.int32]:
        """See the class."""

    @property
    def nodes(self) -> NDArray[np.float64]:
        """See the class."""

    @property
    def gradients(self) -> NDArray[np.float64]:
        """See the class."""

    @property
    def volume(self) -> NDArray[np.float64]:
        """See the class."""

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """See the class."""

    @property
    def cache(self) -> CacheScope:
        """See the class."""


class Backend(Protocol):
    """Arrays and the few kernels that every algorithm is written with.

    Vectors are (n, components, lane) C-contiguous with four lanes; scalars per
    lane are float64 NumPy arrays of four, also on a device.
    """

    name: str
    xp: Any

    def asarray(self, a: Any, dtype: Any = None) -> Any:
        """Copy to the backend's memory where needed."""

    def to_host(self, a: Any) -> NDArray[Any]:
        """Return a NumPy array."""

    def blocks(self, indptr: Any, indices: Any, data: Any, n_columns: int) -> Blocks:
        """Make a matrix from host arrays; ``data`` is (n_block, rows, columns)."""

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
        assembled: Callable[[], tuple[Any, Any, Any]],
    ) -> Blocks:
        """K in precision ``real``, as a matrix or as something that acts like it.

        ``assembled`` returns it on the host (indptr, indices, data); a backend that
        needs none does not call it. Vectors must be zero on fixed components.
        """

    def multiply(self, matrix: Blocks, x: Any, out: Any) -> None:
        """Out = A x."""

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

    def weights(self, indptr: Any, indices: Any, weights: Any, n_columns: int) -> Any:
        """Make a scalar matrix that acts alike on all components of a node."""

    def transfer(self, matrix: Any, mask: Any, x: Any, out: Any, add: bool) -> None:
        """Out (+)= mask * (W x); mask is (n, 3)."""

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

    def elastic_forces(self, tets: Tets, lam: Any, mu: Any, u: Any) -> Any:
        """K u, element by element in FP64."""

    def offset_forces(
        self, tets: Tets, which: Any, lam: Any, mu: Any, offsets: Any, n_node: int
    ) -> Any:
        """Minus sum of K_e s_e, offsets (n_which, 10, 3, lane): (n_node, 3, lane)."""

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

    def dots(self, basis: Sequence[Any], r: Any) -> NDArray[np.float64]:
        """Inner products (m, lane) of r, FP64, with vectors of one precision."""

    def energy_dots(
        self, energy: Any, basis: Sequence[Any], r: Any
    ) -> NDArray[np.float64]:
        """Inner products (m, lane) of states, int 2 eta a : b; energy (n_row,)."""

    def combine(
        self, r: Any, factors: NDArray[np.float64], basis: Sequence[Any]
    ) -> None:
        """R += sum_j factors_j basis_j, factors (m, lane); r is FP64."""

    def blend(self, past: Any, part: Any, weights: Any, out: Any) -> None:
        """Out += sum_k weights_k past_k, with a weight per part of the nodes and lane.

        ``past`` is (k, n, components, lane), ``part`` (n,) int32, ``weights``
        (k, n_part, lane); all FP64.
        """

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


class Fused(Backend, Protocol):
    """What some backends do in fewer passes; others are asked for the parts.

    Attributes
    ----------
    storage : precision that suffices for the matrices of coarse levels.
    """

    storage: type[np.floating[Any]]

    def stiffness_rows(
        self,
        space: Discretisation,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        chosen: NDArray[np.bool_],
        rows: NDArray[np.int64],
        assembled: Callable[[], tuple[Any, Any, Any]],
    ) -> Blocks:
        """FP32 rows of K for `relax_rows`, which only ``chosen`` elements touch.

        ``assembled`` returns these rows as a host matrix with all columns; a backend
        that needs none does not call it.
        """

    def relax_rows(
        self,
        matrix: Blocks,
        rows: Any,
        inverse: Any,
        b: Any,
        x: Any,
        gain: float,
        spare: Any,
    ) -> None:
        """`relax` in place on ``rows`` (n,) int32, which `stiffness_rows` was given.

        ``spare`` is like x and overwritten.
        """

    def add_product(self, matrix: Blocks, x: Any, out: Any) -> None:
        """Out += A x, blocks other than 3 x 3."""
