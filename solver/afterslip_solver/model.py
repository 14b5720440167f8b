"""Arrays that the parts of the solver pass to each other.

Shape letters: n_node (P2 nodes, vertices first), n_vertex, n_elem, n_fault_node,
n_lane (right-hand sides solved together), n_trace (nodes whose motion is recorded).
Everything is SI: metres, seconds, pascals, kg/m3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.rheology import Branch, RelaxationRates, burgers, merged

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

# local edges of a P2 tetrahedron: its nodes 4..9 are the midpoints of these
TET_EDGES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))


@dataclass(frozen=True, slots=True)
class TetMesh:
    """Straight-sided second-order tetrahedral mesh.

    Attributes
    ----------
    nodes : (n_node, 3) float64, m, x east, y north, z up; the first
        ``n_vertex`` are vertices, the others midpoints of edges.
    elements : (n_elem, 10) int64, positively oriented; order of ``TET_EDGES``.
    n_vertex : number of vertices.
    tags : (n_elem,) int64, index into ``tag_names`` of the element's body.
    tag_names : names of bodies (from physical groups of an imported mesh;
        a single name where the mesh was built from a box).
    """

    nodes: Float
    elements: Int
    n_vertex: int
    tags: Int
    tag_names: tuple[str, ...] = ("box",)

    @property
    def cells(self) -> Int:
        """(n_elem, 4) vertex numbers."""
        return self.elements[:, :4]


# compared by identity, so that what is computed once a fault may refer to it
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class FaultMesh:
    """A fault: P2 triangles of the mesh, with local axes and coordinates.

    The + side is the hanging wall. ``slip`` is the jump u(+) - u(-).

    Attributes
    ----------
    name : the fault's name in the spec.
    triangles : (n_tri, 6) int64 node numbers: 3 vertices, then midpoints of
        (0,1), (1,2), (2,0); the right-hand normal points into the + side.
    nodes : (n_fault_node,) int64, the mesh's nodes on the surface, sorted.
    along : (n_fault_node,) float64, m along strike from the fault's start.
    down : (n_fault_node,) float64, m down dip from the fault's top edge.
        Nodes outside 0..length or 0..width lie on the surface's margin,
        where slip is always zero.
    length, width : size of the slipping rectangle in (along, down), m.
    open_top : the top edge lies on the free surface, so slip may reach it.
    strike, updip, normal : (n_fault_node, 3) unit vectors; slip of component
        ``strike`` is along ``strike`` (left-lateral), of ``dip`` along ``updip``.
    """

    name: str
    triangles: Int
    nodes: Int
    along: Float
    down: Float
    length: float
    width: float
    open_top: bool
    strike: Float
    updip: Float
    normal: Float


@dataclass(frozen=True, slots=True)
class Surface:
    """Free surface: the trace on which responses are recorded.

    Attributes
    ----------
    nodes : (n_trace,) int64 mesh node numbers, sorted.
    faces : (n_face, 6) int64 positions in ``nodes``: 3 vertices, then midpoints
        of (0,1), (1,2), (2,0); upward normal.
    """

    nodes: Int
    faces: Int


@dataclass(frozen=True, slots=True)
class Materials:
    """Constant per element.

    Attributes
    ----------
    lam, mu : (n_elem,) Lamé parameters, Pa.
    rho : (n_elem,) kg/m3.
    viscosity : (n_elem,) Pa s of the Maxwell dashpot; inf where elastic.
    kelvin_viscosity, kelvin_modulus : (n_elem,) Pa s and Pa of a Kelvin element in
        series with the Maxwell one (Burgers body), both inf where there is none;
        None where the whole model has none.
    branch_viscosity, branch_modulus : (n_elem, n_branch) Pa s and Pa of the branches of
        elements with another rheology, inf and 0 where there is none; both None where
        the whole model has none.
    """

    lam: Float
    mu: Float
    rho: Float
    viscosity: Float
    kelvin_viscosity: Float | None = None
    kelvin_modulus: Float | None = None
    branch_viscosity: Float | None = None
    branch_modulus: Float | None = None

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The rheology of all elements; a subclass may have another one."""
        kelvin = self.kelvin_viscosity, self.kelvin_modulus
        own = burgers(self.viscosity, *kelvin)
        if self.branch_viscosity is None or self.branch_modulus is None:
            return own
        return merged(own, self.branch_viscosity, self.branch_modulus)

    @property
    def creeps(self) -> Bool:
        """(n_elem,) where any branch creeps."""
        finite = [np.isfinite(branch.viscosity) for branch in self.branches]
        return np.asarray(np.any(finite, axis=0))

    @property
    def rates(self) -> RelaxationRates:
        """Rates of creep and recovery of all elements."""
        return RelaxationRates.of(self.mu, self.branches)

    @property
    def relaxation_time(self) -> Float:
        """(n_elem,) s, shortest time in which stress relaxes; inf where elastic."""
        rate = self.rates.largest()
        return np.where(self.creeps, 1.0 / np.where(self.creeps, rate, 1.0), np.inf)


@dataclass(frozen=True, slots=True)
class Restoring:
    """Isostatic restoring force: vertical springs on the free surface and horizons.

    Attributes
    ----------
    faces : (n_face, 6) int64 mesh nodes: 3 vertices, then midpoints of (0,1), (1,2),
        (2,0).
    stiffness : (n_face,) Pa/m, gravity times the density below less that above; not
        negative.
    owners : (n_face,) int64, the element under each face: on a fault the face moves
        with that element's side.
    up : (n_face, 6, 3) unit vectors, the vertical at the nodes of the faces; None
        where it is z everywhere.
    """

    faces: Int
    stiffness: Float
    owners: Int
    up: Float | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the nodes of a mesh, that was made in a box, are on the Earth.

    Attributes
    ----------
    nodes : (n_node, 3) float64, m, vertices first, midpoints on straight edges; axes
        east, north, up at the origin of the box, on the ground without topography.
    radius : m, of the sphere; infinite where the Earth is flat.
    """

    nodes: Float
    radius: float


@dataclass(frozen=True, slots=True)
class SplitNodes:
    """Which elements see a fault node displaced, and with which sign.

    An element on the + side sees u + s/2, on the - side u - s/2 (Melosh &
    Raefsky 1981), also when it touches the fault by an edge or a node only.

    Attributes
    ----------
    elements : (n_touch,) int64 element numbers.
    index : (n_touch, 10) int64 position in ``FaultMesh.nodes`` of each local
        node, -1 where the node is not on the fault.
    sign : (n_touch, 10) float64, +0.5, -0.5, or 0 where there is no offset.
    """

    elements: Int
    index: Int
    sign: Float

    def offsets(self, slip: Float) -> Float:
        """Offsets of the touching elements.

        Parameters
        ----------
        slip : (n_fault_node, 3, n_lane) float64, m, jump u(+) - u(-) in x, y, z.

        Returns
        -------
        (n_touch, 10, 3, n_lane) float64, m.
        """
        return np.asarray(
            self.sign[:, :, None, None] * slip[np.maximum(self.index, 0)],
            dtype=np.float64,
        )


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that a solve needs, apart from the slip itself.

    Attributes
    ----------
    fixed : (n_node, 3) bool, True where the displacement component is zero.
    faults, splits : by the fault's name.
    restoring : the isostatic restoring force, or None for none.
    coarser : the same on a mesh of twice as long edges, to estimate the error of this
        one; None where there is none, or where this one was refined from it.
    placement : where the nodes are on the Earth, see `mesh.placement`; None where the
        mesh has them: the Earth is flat and has no topography.
    """

    mesh: TetMesh
    materials: Materials
    fixed: Bool
    surface: Surface
    faults: dict[str, FaultMesh]
    splits: dict[str, SplitNodes]
    restoring: Restoring | None = None
    coarser: Model | None = None
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """How to solve; times in s.

    ``precision`` "mixed" iterates in FP32 around residuals in FP64, see `krylov.pcg`.
    ``deterministic`` makes products with K on a GPU repeatable to the last bit.
    ``times`` are the output times (s). ``until`` is the last time for which the
    curve must hold. ``integrator`` "spectral" chooses polynomial or shift-invert
    from until / smallest relaxation time unless ``scheme`` says which. ``predictor``
    "four_steps" is a stepping of its own kind: see `greens.time_parallel`.
    """

    times: tuple[float, ...] = (0.0,)
    until: float = 0.0
    integrator: Literal["spectral", "stepping"] = "spectral"
    scheme: Literal["auto", "polynomial", "shift_invert"] = "auto"
    step: float = 0.0
    predictor: Literal["galerkin", "dmd", "adams_bashforth", "four_steps", "none"] = (
        "galerkin"
    )
    preconditioner: Literal["multigrid", "three_level"] = "multigrid"
    tolerance: float = 1e-8
    time_tolerance: float = 1e-6
    max_modes: int = 64
    max_iterations: int = 400
    deterministic: bool = False
    precision: Literal["mixed", "double"] = "mixed"


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Outcome of one group of lanes.

    Attributes
    ----------
    outcome : "converged", "not_converged", "nan" or "stopped".
    advice : what to try next, empty when converged.
    response : (n_lane, n_mode, n_trace, 3) float64, m (mode 0 elastic).
    recurrence : (n_lane, n_mode, 2) float64, Lanczos coefficients alpha, beta of
        modes 1..; zeros for stepping.
    start_norm : (n_lane,) norm of the first creep rate.
    shift : (n_lane,) s, gamma of shift-invert, 0 for polynomial.
    mode_count : (n_lane,) modes that a lane really has (elastic included).
    step_times : (n_mode,) s, for stepping; empty for spectral.
    residual : (n_lane,) largest relative residual, recomputed from K u - f; of the
        solves of a curve, by how much error their weight allows (tolerance: as much).
    time_error : (n_lane,) estimated largest error of the curve at the output
        times, relative to the largest change of the trace.
    iterations : total of preconditioned CG iterations.
    solves : number of solves of all lanes together.
    history : per solve {phase, iterations, seconds, residuals, initial (residuals of
        the guess), inner (iterations per level of a preconditioner that iterates),
        predictor (bytes that its guess was made from), curve (some pairs of iteration
        and residual, of the first solves since the last checkpoint)}.
    """

    outcome: Literal["converged", "not_converged", "nan", "stopped"]
    advice: str
    response: Float
    recurrence: Float
    start_norm: Float
    shift: Float
    mode_count: Int
    step_times: Float
    residual: Float
    time_error: Float
    iterations: int
    solves: int
    history: list[dict[str, Any]] = field(default_factory=list)


Progress = Callable[[dict[str, Any]], None]
ShouldStop = Callable[[], bool]
