"""Faults as points with areas, on which slip is integrated without a mesh."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afterslip_common.geometry import Box, PlaneFault
from afterslip_solver.mesh.geometry import CurvedFault
from afterslip_solver.mesh.interface import Interface
from afterslip_solver.mesh.region import Region, region_of
from afterslip_solver.model import Float
from afterslip_solver.sources import UnitSource
from afterslip_solver.sources.prescribed import scattered_slip, tapered
from afterslip_solver.sources.profile import bspline_profile
from afterslip_solver.waves.ground import Ground

# lines down dip on which a curved fault's arc length is tabulated
_DEPTHS = 401
# a table of slip may lie off the fault by this share of its width
_OFF_WIDTH = 0.25


@dataclass(frozen=True, slots=True)
class FaultPoints:
    """Middles of small cells of a fault; the hanging wall is on the side of ``normal``.

    Attributes
    ----------
    along, down : (n,) m from the fault's start and its top edge.
    length, width : m. open_top : the top edge is on the free surface.
    cell : (2,) m, sizes of cells along strike and down dip.
    position : (n, 3) m. area : (n,) m2.
    strike, updip, normal : (n, 3) unit vectors, as of `model.FaultMesh`.
    """

    name: str
    along: Float
    down: Float
    length: float
    width: float
    open_top: bool
    cell: Float
    position: Float
    area: Float
    strike: Float
    updip: Float
    normal: Float


def plane_points(fault: PlaneFault, size: float) -> FaultPoints:
    """Return the cells of a rectangle, of at most this size, m."""
    along, down, cell = _cells(fault.length, fault.width, size)
    strike, updip, normal = (np.tile(axis, (len(along), 1)) for axis in fault.axes)
    position = fault.origin + along[:, None] * strike - down[:, None] * updip
    return FaultPoints(
        name=fault.name,
        along=along,
        down=down,
        length=fault.length,
        width=fault.width,
        open_top=fault.top == 0.0,
        cell=cell,
        position=position,
        area=np.full(len(along), float(cell[0] * cell[1])),
        strike=strike,
        updip=updip,
        normal=normal,
    )


@dataclass(frozen=True, slots=True)
class _Unrolled:
    """A curved surface by (along, down); ``width`` is the mean arc length down dip."""

    smooth: Interface
    region: Region
    width: float

    @classmethod
    def of(cls, smooth: Interface, region: Region) -> _Unrolled:
        bare = cls(smooth, region, 0.0)
        return cls(smooth, region, float(bare.table(region.lines)[1][:, -1].mean()))

    def table(self, s: Float) -> tuple[Float, Float]:
        """(n, k) depths from edge to edge, and arc lengths."""
        edges = (self.region.top, self.region.bottom)
        top, bottom = (np.interp(s, self.region.lines, edge) for edge in edges)
        part = np.linspace(0.0, 1.0, _DEPTHS)
        depths = top[:, None] + (bottom - top)[:, None] * part
        across = self.smooth.across(s[:, None], depths)
        step = np.hypot(np.diff(across, axis=1), np.diff(depths, axis=1))
        return depths, np.pad(np.cumsum(step, axis=1), ((0, 0), (1, 0)))

    def position(self, along: Float, down: Float) -> Float:
        """(n, 3) m."""
        lines = self.region.lines
        s = np.clip(lines[0] + along, lines[0], lines[-1])
        own, where = np.unique(s, return_inverse=True)
        depths, arcs = self.table(own)
        found = np.empty(len(s))
        for line in range(len(own)):
            here = where == line
            share = np.clip(down[here] / self.width, 0.0, 1.0) * arcs[line, -1]
            found[here] = np.interp(share, arcs[line], depths[line])
        return self.smooth.position(s, found)


def curved_points(fault: CurvedFault, size: float) -> FaultPoints:
    """Return the cells of a curved fault, unrolled as its mesh would be.

    Parameters
    ----------
    size : m, of cells at most.

    Raises
    ------
    MeshError
        The points make no fault.
    """
    smooth, region = region_of(fault, size)
    length = float(region.lines[-1] - region.lines[0])
    surface = _Unrolled.of(smooth, region)
    along, down, cell = _cells(length, surface.width, size)
    at, (a, b) = surface.position, 0.5 * cell
    by_along, by_down = at(along + a, down) - at(along - a, down), at(along, down + b)
    normal = np.cross(by_along, at(along, down - b) - by_down)
    area = np.linalg.norm(normal, axis=1)
    normal /= area[:, None]
    strike = np.stack([-normal[:, 1], normal[:, 0], np.zeros(len(normal))], axis=1)
    flat = np.array([np.sin(smooth.strike), np.cos(smooth.strike), 0.0])
    steep = np.linalg.norm(strike, axis=1, keepdims=True)
    strike = np.where(steep > 1e-6, strike / np.maximum(steep, 1e-300), flat)
    return FaultPoints(
        name=fault.name,
        along=along,
        down=down,
        length=length,
        width=surface.width,
        open_top=region.open_top,
        cell=cell,
        position=at(along, down),
        area=area,
        strike=strike,
        updip=np.cross(normal, strike),
        normal=normal,
    )


def on_ground(fault: FaultPoints, box: Box, ground: Ground) -> FaultPoints:
    """Carry a fault with the box that is stretched to the ground, as meshes are.

    The strike follows the fault as a line drawn on it does; up dip is at right angles
    to it in the fault. Distances along and down dip stay those of the box.
    """

    def put(points: Float) -> Float:
        height = ground.at(points[:, 0], points[:, 1])
        return np.column_stack([points[:, :2], box.stretched(points[:, 2], height)])

    at, sizes = fault.position, 0.5 * fault.cell
    along, up = (
        (put(at + size * axis) - put(at - size * axis)) / (2.0 * size)
        for axis, size in zip((fault.strike, fault.updip), sizes, strict=True)
    )
    strike = along / np.linalg.norm(along, axis=1, keepdims=True)
    updip = up - np.einsum("ni,ni->n", up, strike)[:, None] * strike
    updip /= np.linalg.norm(updip, axis=1, keepdims=True)
    return replace(
        fault,
        position=put(at),
        area=fault.area * np.linalg.norm(np.cross(along, up), axis=1),
        strike=strike,
        updip=updip,
        normal=np.cross(strike, updip),
    )


def _cells(length: float, width: float, size: float) -> tuple[Float, Float, Float]:
    counts = [max(2, int(np.ceil(side / size))) for side in (length, width)]
    a, b = length / counts[0], width / counts[1]
    along, down = np.meshgrid(
        a * (np.arange(counts[0]) + 0.5), b * (np.arange(counts[1]) + 0.5)
    )
    return along.ravel(), down.ravel(), np.array([a, b])


def shape_at(source: UnitSource, fault: FaultPoints) -> Float:
    """(n,) mean of a source's function over each cell.

    Patches cover parts of cells; B-splines have the value of the middle.
    """
    (n, m), (i, j) = source.counts, source.patch
    if source.shape == "bspline":
        first = source.edges.along()
        second = source.edges.down(fault)
        along = bspline_profile(fault.along, fault.length, n, i, first)
        return np.asarray(
            along * bspline_profile(fault.down, fault.width, m, j, second)
        )
    found = np.ones(len(fault.along))
    for at, size, side, count, number in (
        (fault.along, fault.cell[0], fault.length, n, i),
        (fault.down, fault.cell[1], fault.width, m, j),
    ):
        low = np.maximum(at - 0.5 * size, number * side / count)
        high = np.minimum(at + 0.5 * size, (number + 1) * side / count)
        found *= np.maximum(high - low, 0.0) / size
    return found


def given_slip(
    fault: FaultPoints, strike: float, dip: float, taper: bool = False
) -> Float:
    """(n, 3) m, the same slip in all cells; with a taper as `sources.uniform_slip`."""
    share = np.ones(len(fault.along))
    if taper:
        size = fault.length, fault.width, fault.open_top
        share = tapered(fault.along, fault.down, *size)
    return np.asarray(share[:, None] * (strike * fault.strike + dip * fault.updip))


def table_slip(fault: FaultPoints, points: Float, slip: Float) -> Float:
    """(n, 3) m, slip of a table; see `sources.interpolated_slip`.

    Raises
    ------
    SourceError
        The table does not lie on the fault.
    """
    limit = max(2.0 * float(fault.cell.max()), _OFF_WIDTH * fault.width)
    value = scattered_slip(fault.name, fault.position, points, slip, limit)
    return np.asarray(value[:, :1] * fault.strike + value[:, 1:] * fault.updip)
