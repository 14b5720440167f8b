"""A rectangle with the margin that is embedded around its buried edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.geometry import Box, PlaneFault
from afterslip_solver.mesh.fault import plane_fault_mesh
from afterslip_solver.mesh.mesher import Mesher
from afterslip_solver.model import FaultMesh, Float, Int, TetMesh

# edges of surfaces nearer to a layer's bottom, in sizes of elements, leave slivers
CLEAR = 0.3
# a strip this much wider than the margin may remain between it and the surface
_ROOM = 1.5


@dataclass(frozen=True, slots=True)
class EmbeddedPlane:
    """A rectangle with its margin, as a surface of the mesh."""

    fault: PlaneFault
    along: Float
    down: Float

    @property
    def name(self) -> str:
        """Name of the fault."""
        return self.fault.name

    @property
    def top(self) -> float:
        """Depth at which slip begins, m."""
        return self.fault.top

    @property
    def edge_depths(self) -> Float:
        """Depths of the horizontal lines, m."""
        lean = np.sin(np.radians(self.fault.dip))
        return np.asarray(self.fault.top + self.down * lean)

    def embed(self, mesher: Mesher) -> None:
        """Add the rectangles between the lines to the mesher."""
        mesher.add_grid(self.name, grid_points(self.fault, self.along, self.down))

    def fault_mesh(self, mesh: TetMesh, triangles: Int) -> FaultMesh:
        """Fault of (n_tri, 3) triangles of the mesh."""
        return plane_fault_mesh(mesh, self.fault, triangles)


def place_plane(
    fault: PlaneFault, box: Box, size: float, horizons: Sequence[float] = ()
) -> EmbeddedPlane:
    """Check that a rectangle lies in the domain, and choose its margin.

    Parameters
    ----------
    horizons : m, depths that buried edges of the margin should meet or stay clear of.
    """
    along, down = rectangle_lines(fault, box, size)
    moved = _clear_of(fault, down, horizons, size)
    side, gap = -float(along[0]), (-float(moved[0]), float(moved[-1]) - fault.width)
    if _is_inside(fault, box, side, *gap):
        down = moved
    return EmbeddedPlane(fault, along, down)


def _clear_of(
    fault: PlaneFault, down: Float, horizons: Sequence[float], size: float
) -> Float:
    """Lines along strike, those of the margin's buried edges moved."""
    lean = float(np.sin(np.radians(fault.dip)))
    depth = fault.top + down * lean
    moved = depth.copy()
    moved[-1] = clear_depth(float(depth[-1]), float(depth[-2]), horizons, size)
    if down[0] < 0.0 and depth[0] > 1e-6:
        # upside down: away from the fault is up
        above = clear_depth(
            -float(depth[0]), -float(depth[1]), -np.array(horizons), size
        )
        moved[0] = -above if above < -CLEAR * size else depth[0]
    return np.where(moved == depth, down, (moved - fault.top) / lean)


def clear_depth(
    edge: float, fault: float, horizons: Sequence[float] | Float, size: float
) -> float:
    """Depth of a margin's lower edge that meets the nearest horizon, or is clear of it.

    Parameters
    ----------
    edge : m, the depth wished for. fault : m, the depth of the fault's own edge.
    size : m, of elements on the fault.
    """
    for horizon in horizons:
        if abs(edge - horizon) < CLEAR * size:
            # half of the margin must stay
            meets = horizon - fault > 0.5 * (edge - fault)
            return float(horizon) if meets else float(horizon) + CLEAR * size
    return edge


def check_rectangle(fault: PlaneFault) -> None:
    """Refuse numbers that are no rectangle under the free surface."""
    numbers = (fault.x, fault.y, fault.strike)
    if (
        not np.isfinite(numbers).all()
        or not 0.0 < fault.dip <= 90.0
        or not fault.top >= 0.0
        or not min(fault.length, fault.width) > 0.0
    ):
        raise MeshError(
            f"fault {fault.name}: length and width must be positive, top not negative "
            f"and dip between 0 and 90 degrees; got length {fault.length / 1e3:g}, "
            f"width {fault.width / 1e3:g}, top {fault.top / 1e3:g} km, dip "
            f"{fault.dip:g} degrees"
        )


def rectangle_lines(fault: PlaneFault, box: Box, size: float) -> tuple[Float, Float]:
    """Grid lines of the embedded plane.

    The margin is one element wide, so that the tip of the slipping rectangle
    lies inside a surface that has two sides. Towards the free surface it is
    widened or cut to end exactly there, if otherwise less than half an element
    would remain; towards the domain's sides it is halved until it fits.

    Parameters
    ----------
    size : m, size of elements on the fault.

    Returns
    -------
    along : (2..4,) float64, m, lines across strike, 0 and length among them.
    down : (2..4,) float64, m, lines along strike, 0 and width among them.
    """
    _check_inside(fault, box, 0.0, 0.0, 0.0)
    to_surface = fault.top / np.sin(np.radians(fault.dip))
    above = to_surface if to_surface < _ROOM * size else size
    side = below = size
    for _ in range(12):
        if _is_inside(fault, box, side, above, below):
            break
        if _is_inside(fault, box, 0.5 * side, above, below):
            side *= 0.5
        else:
            side, below = 0.5 * side, 0.5 * below
    else:
        _check_inside(fault, box, side, above, below)
    along = np.array([-side, 0.0, fault.length, fault.length + side])
    down = np.array([-above, 0.0, fault.width, fault.width + below])
    return along, down if fault.top > 0.0 else down[1:]


def grid_points(fault: PlaneFault, along: Float, down: Float) -> Float:
    """(n, m, 3) float64, m, positions of lines along x lines down dip."""
    strike, updip, _ = fault.axes
    points = fault.origin + along[:, None, None] * strike - down[None, :, None] * updip
    # rounding must not lift the top line out of the domain
    depth_zero = np.abs(points[..., 2]) < 1e-9 * (fault.width + fault.top)
    points[depth_zero, 2] = 0.0
    return np.asarray(points)


def _corners(fault: PlaneFault, side: float, above: float, below: float) -> Float:
    along = np.array([-side, fault.length + side])
    down = np.array([-above, fault.width + below])
    return grid_points(fault, along, down).reshape(-1, 3)


def _is_inside(
    fault: PlaneFault, box: Box, side: float, above: float, below: float
) -> bool:
    """Whether the embedded plane stays away from the domain's sides and bottom."""
    corners = _corners(fault, side, above, below)
    gap = 0.1 * min(side, below) if side > 0.0 else 0.0
    return bool(
        np.all(corners[:, 0] > box.x[0] + gap)
        and np.all(corners[:, 0] < box.x[1] - gap)
        and np.all(corners[:, 1] > box.y[0] + gap)
        and np.all(corners[:, 1] < box.y[1] - gap)
        and np.all(corners[:, 2] > -box.depth + gap)
    )


def _check_inside(
    fault: PlaneFault, box: Box, side: float, above: float, below: float
) -> None:
    if _is_inside(fault, box, side, above, below):
        return
    corners = _corners(fault, 0.0, 0.0, 0.0)
    low, high = corners.min(axis=0) / 1e3, corners.max(axis=0) / 1e3
    raise MeshError(
        f"fault {fault.name} leaves the domain or touches its side: it spans "
        f"x {low[0]:.1f}..{high[0]:.1f}, y {low[1]:.1f}..{high[1]:.1f}, "
        f"depth {-high[2]:.1f}..{-low[2]:.1f} km; enlarge model.domain or "
        "move the fault"
    )
