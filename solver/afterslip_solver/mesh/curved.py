"""A curved interface as a surface of the mesh and as a fault.

The slipping part is bounded by two lines across strike and by an upper and a lower
edge, whose depths may vary along strike. It is unrolled to a rectangle: ``along`` is
the distance along the interface's mean strike; ``down`` is the arc length down dip
from the upper edge at that ``along``, stretched so that the lower edge is at
``width`` everywhere (the mean arc length between the edges).

The mesh has lines where slip ends along strike: such an end may reach the ground, where
what is between it and a place is less than an element. It has none along the lower
edge, which is deep, nor along a buried upper one, whose depth the edges of elements
should not exceed anyhow: these may vary in depth, and would come close to the bottoms
of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.geometry import Box
from afterslip_solver.mesh.fault import Unrolled, curved_fault_mesh
from afterslip_solver.mesh.geometry import CurvedFault
from afterslip_solver.mesh.interface import Interface
from afterslip_solver.mesh.mesher import Mesher
from afterslip_solver.mesh.planar import CLEAR, clear_depth
from afterslip_solver.mesh.region import Region, region_of
from afterslip_solver.model import FaultMesh, Float, Int, TetMesh

# a strip this much wider than the margin may remain between it and the surface
_ROOM = 1.5
# control points of the embedded surface along strike and in depth
_POLES = (20, 14)
# so many times as many where a tolerance asks for it
_FINEST = 3
# the surface begins this share of its depth above the free surface it pierces
_ABOVE = 0.04
# share of the length within which a node is on a line across strike
_ON_LINE = 2e-5
_DEPTHS = 161


@dataclass(frozen=True, slots=True)
class CurvedSurface:
    """A curved fault placed in a domain.

    Attributes
    ----------
    smooth : the embedded surface, margin included.
    region : its slipping part.
    """

    name: str
    smooth: Interface
    region: Region

    @property
    def top(self) -> float:
        """Least depth at which slip begins, m."""
        return float(np.min(self.region.top))

    @property
    def edge_depths(self) -> Float:
        """Depths of the embedded surface's horizontal edges, m."""
        return self.smooth.knots[1][[0, -1]]

    def embed(self, mesher: Mesher) -> None:
        """Add the surface to the mesher, with lines where slip ends along strike."""
        for part in self.smooth.sliced(self.region.lines[[0, -1]].tolist()):
            mesher.add_spline(self.name, part.poles(), part.knots)

    def project(self, points: Float) -> Float:
        """Move (n, 3) points, m, horizontally onto the smooth surface."""
        return self.smooth.project(points)

    def fault_mesh(self, mesh: TetMesh, triangles: Int) -> FaultMesh:
        """Fault of (n_tri, 3) triangles of the mesh."""
        arc = _ArcLength.of(self.smooth, self.region)
        region = self.region

        def coordinates(points: Float) -> tuple[Float, Float]:
            s, _ = self.smooth.local(points[:, 0], points[:, 1])
            upper = arc.at(s, np.interp(s, region.lines, region.top))
            lower = arc.at(s, np.interp(s, region.lines, region.bottom))
            down = (arc.at(s, -points[:, 2]) - upper) / (lower - upper)
            along = s - region.lines[0]
            # those on the lines of the mesh, whose places are rounded
            for end in (0.0, length):
                along[np.abs(along - end) < _ON_LINE * length] = end
            return along, down * arc.mean_width

        length = float(region.lines[-1] - region.lines[0])
        shape = Unrolled(
            self.name,
            coordinates,
            length,
            arc.mean_width,
            region.open_top,
            self.smooth.strike,
        )
        return curved_fault_mesh(mesh, shape, triangles)


@dataclass(frozen=True, slots=True)
class _ArcLength:
    """Table of the arc length down dip on lines across strike."""

    lines: Float
    depths: Float
    table: Float
    mean_width: float

    @classmethod
    def of(cls, smooth: Interface, region: Region) -> _ArcLength:
        low, high = smooth.knots[1][0], smooth.knots[1][-1]
        # midpoints of straight edges may lie a little beyond the surface
        depths = np.linspace(min(low, 0.0), high + 0.1 * (high - low), _DEPTHS)
        across = smooth.across(region.lines[:, None], depths[None, :])
        step = np.hypot(np.diff(across, axis=1), np.diff(depths))
        table = np.zeros(across.shape)
        table[:, 1:] = np.cumsum(step, axis=1)
        arc = cls(region.lines, depths, table, 0.0)
        width = arc.at(region.lines, region.bottom) - arc.at(region.lines, region.top)
        return cls(region.lines, depths, table, float(width.mean()))

    def at(self, s: Float, depth: Float) -> Float:
        """Arc length at s and depth, m, bilinear; constant beyond the lines."""
        row, v = _cell(s, self.lines)
        column, w = _cell(depth, self.depths)
        table = self.table
        upper = (1.0 - w) * table[row, column] + w * table[row, column + 1]
        lower = (1.0 - w) * table[row + 1, column] + w * table[row + 1, column + 1]
        return np.asarray((1.0 - v) * upper + v * lower)


def _cell(values: Float, grid: Float) -> tuple[Int, Float]:
    """Cell of a uniform grid, and the position in it from 0 to 1."""
    place = np.clip((values - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1.0)
    cell = np.minimum(place.astype(np.int64), len(grid) - 2)
    return cell, place - cell


def place_curved(
    fault: CurvedFault, box: Box, size: float, horizons: Sequence[float] = ()
) -> CurvedSurface:
    """Fit the interface, find its slipping part, add a margin.

    The margin is one element wide. It is halved until it fits in the domain.

    Parameters
    ----------
    size : m, size of elements on the fault.
    horizons : m, depths that both edges should meet or stay clear of.

    Raises MeshError where the slipping part leaves the domain.
    """
    smooth, region = region_of(fault, size)
    _check_inside(fault.name, smooth, region, box)
    margin = size
    for _ in range(6):
        s, edges = _reach(smooth, region, margin)
        depth = _clear_of(region, edges, horizons, min(size, 2.0 * margin))
        embedded = _resampled(smooth, fault, s, depth)
        if _outside(embedded.position(*_grid(s, depth)), box, 0.1 * margin) == 0:
            return CurvedSurface(fault.name, embedded, region)
        margin *= 0.5
    raise MeshError(
        f"fault {fault.name} leaves no room for a margin around its buried edges; "
        "enlarge model.domain, or limit the fault by its outline or maximum depth"
    )


def _clear_of(
    region: Region, edges: tuple[float, float], horizons: Sequence[float], size: float
) -> tuple[float, float]:
    """Depths of the upper and the lower edge of a margin, moved; m."""
    above, below = edges
    below = clear_depth(below, float(region.bottom.max()), horizons, size)
    if above > 0.0:
        # upside down: away from the fault is up
        shallowest = -float(region.top.min())
        higher = -clear_depth(-above, shallowest, -np.array(horizons), size)
        above = higher if higher > CLEAR * size else above
    return above, below


def _resampled(
    smooth: Interface,
    fault: CurvedFault,
    s: tuple[float, float],
    depth: tuple[float, float],
) -> Interface:
    """Return the surface to embed, with as many poles as the tolerance needs."""
    for finer in range(1, _FINEST + 1):
        # denser above, where interfaces bend and the mesh is thinnest
        part = np.linspace(0.0, 1.0, finer * _POLES[1])
        depths = depth[0] + (depth[1] - depth[0]) * (0.5 * part + 0.5 * part**2)
        made = smooth.resampled(np.linspace(*s, finer * _POLES[0]), depths)
        rms, largest = made.misfit(fault.points)
        if fault.tolerance is None or rms <= fault.tolerance:
            break
    return replace(made, misfit_rms=rms, misfit_max=largest)


def _reach(
    smooth: Interface, region: Region, margin: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges along strike and in depth of the embedded surface, m."""
    lean = 1.0 / np.hypot(1.0, smooth.slope(region.lines, region.bottom))
    below = float(np.max(region.bottom + margin * lean))
    lean = 1.0 / np.hypot(1.0, smooth.slope(region.lines, region.top))
    if float(np.min(region.top / lean)) < _ROOM * margin:
        above = -_ABOVE * below
    else:
        above = float(np.min(region.top - margin * lean))
    return (
        (float(region.lines[0]) - margin, float(region.lines[-1]) + margin),
        (above, below),
    )


def _grid(s: tuple[float, float], depth: tuple[float, float]) -> tuple[Float, Float]:
    grid = np.meshgrid(
        np.linspace(*s, 41), np.linspace(max(depth[0], 0.0), depth[1], 21)
    )
    return grid[0].ravel(), grid[1].ravel()


def _outside(points: Float, box: Box, gap: float) -> int:
    """How many points (n, 3) lie outside the domain or nearer than gap to a wall."""
    inside = (
        (points[:, 0] > box.x[0] + gap)
        & (points[:, 0] < box.x[1] - gap)
        & (points[:, 1] > box.y[0] + gap)
        & (points[:, 1] < box.y[1] - gap)
        & (points[:, 2] > -box.depth + gap)
    )
    return int((~inside).sum())


def _check_inside(name: str, smooth: Interface, region: Region, box: Box) -> None:
    part = np.linspace(0.0, 1.0, 21)[:, None]
    depth = region.top + (region.bottom - region.top) * part
    points = smooth.position(region.lines, depth).reshape(-1, 3)
    if _outside(points, box, 0.0) == 0:
        return
    low, high = points.min(axis=0) / 1e3, points.max(axis=0) / 1e3
    raise MeshError(
        f"fault {name} leaves the domain: continued to the free surface, it spans "
        f"x {low[0]:.0f}..{high[0]:.0f}, y {low[1]:.0f}..{high[1]:.0f}, depth "
        f"{-high[2]:.0f}..{-low[2]:.0f} km; enlarge model.domain, or limit the fault "
        "by its outline or maximum depth"
    )
