"""What all backends share: lanes, matrices, meshes in their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_common.errors import InputError
from afterslip_common.terms import GROUP_SIZE
from afterslip_solver.array_cache import CacheScope

# one lane for each unit source of a group
LANES = GROUP_SIZE


class BackendError(InputError, RuntimeError):
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
