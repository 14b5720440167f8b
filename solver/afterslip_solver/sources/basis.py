"""Unit sources: one basis function of slip and one component each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from afterslip_common.errors import InputError
from afterslip_common.geometry import EdgeCondition, Ends, bspline_spacing
from afterslip_common.terms import (
    GROUP_SIZE,
    SLIP_COMPONENTS,
    SlipComponent,
)
from afterslip_solver.model import FaultMesh, Float
from afterslip_solver.sources.profile import bspline_centre, bspline_profile
from afterslip_solver.sources.window import box_values, element_width, rectangle_values

Shape = Literal["patch", "bspline"]
# values at a fault's nodes along one of its directions, which many sources share
Profiles = dict[tuple[str, tuple[int, int, Ends]], Float]

# a source must reach this value at one node, and be positive at this many
_LEAST_PEAK, _LEAST_NODES = 0.3, 4


class SourceError(InputError, ValueError):
    """Slip that the fault's mesh cannot carry."""


class Rectangle(Protocol):
    """The slipping part of a fault in (along, down), m."""

    @property
    def name(self) -> str:
        """Name of the fault."""

    @property
    def length(self) -> float:
        """Along strike."""

    @property
    def width(self) -> float:
        """Down dip."""

    @property
    def open_top(self) -> bool:
        """Whether the top edge is on the free surface."""


@dataclass(frozen=True, slots=True)
class Edges:
    """What B-splines do at the edges of a fault, see `bspline_profile`.

    A top edge at the free surface that is clamped is free: it is no edge of the rock.
    """

    top: EdgeCondition = "free"
    bottom: EdgeCondition = "free"
    start: EdgeCondition = "free"
    end: EdgeCondition = "free"

    def along(self) -> Ends:
        """Conditions at the ends along strike."""
        return self.start, self.end

    def down(self, fault: Rectangle) -> Ends:
        """Conditions at the top and the bottom of a fault."""
        is_free = fault.open_top and self.top == "clamped"
        return "free" if is_free else self.top, self.bottom


FREE = Edges()
CLAMPED = Edges("clamped", "clamped", "clamped", "clamped")


@dataclass(frozen=True, slots=True)
class UnitSource:
    """One basis function of slip, peak 1 m.

    Attributes
    ----------
    index : position among the fault's unit sources.
    fault : name of the fault.
    patch : (along strike, down dip) number, from the fault's start and top.
    component : "strike" (left-lateral) or "dip" (reverse).
    shape : "patch" or "bspline".
    counts : functions along strike and down dip.
    centre : (along, down), m, of the peak or the cell's centre.
    edges : what B-splines do at the edges.
    """

    index: int
    fault: str
    patch: tuple[int, int]
    component: SlipComponent
    shape: Shape
    counts: tuple[int, int]
    centre: tuple[float, float]
    edges: Edges = FREE


def unit_sources(
    fault: FaultMesh,
    along_strike: int,
    down_dip: int,
    shape: Shape = "bspline",
    components: Sequence[SlipComponent] = SLIP_COMPONENTS,
    edges: Edges = FREE,
) -> list[UnitSource]:
    """List the unit sources of a fault, neighbours next to each other.

    They are listed in strips of two rows, to and fro along strike, the components
    of a patch together, so that any four in a row lie close together.

    Parameters
    ----------
    along_strike, down_dip : number of functions in each direction.

    Raises SourceError where the mesh is too coarse to carry a function.
    """
    sources = list_sources(fault, along_strike, down_dip, shape, components, edges)
    _check_resolved(sources[:: len(components)], fault)
    return sources


def list_sources(
    fault: Rectangle,
    along_strike: int,
    down_dip: int,
    shape: Shape = "bspline",
    components: Sequence[SlipComponent] = SLIP_COMPONENTS,
    edges: Edges = FREE,
) -> list[UnitSource]:
    """List the unit sources of a fault that needs no mesh, as `unit_sources` does.

    Raises SourceError where numbers or components make no sense.
    """
    if along_strike < 1 or down_dip < 1:
        raise SourceError("sources: along_strike and down_dip must be at least 1")
    if not components or len(set(components)) < len(components):
        raise SourceError("sources: components must name strike, dip or both, once")
    counts = (along_strike, down_dip)
    sources: list[UnitSource] = []
    for patch in _to_and_fro(along_strike, down_dip):
        centre = _centre(fault, shape, counts, patch, edges)
        for component in components:
            sources.append(
                UnitSource(
                    index=len(sources),
                    fault=fault.name,
                    patch=patch,
                    component=component,
                    shape=shape,
                    counts=counts,
                    centre=centre,
                    edges=edges,
                )
            )
    return sources


def group_in_fours(sources: Sequence[UnitSource]) -> list[list[int]]:
    """Positions of sources that are solved together; the last group may be short."""
    return [
        list(range(start, min(start + GROUP_SIZE, len(sources))))
        for start in range(0, len(sources), GROUP_SIZE)
    ]


def shape_values(
    source: UnitSource, fault: FaultMesh, known: Profiles | None = None
) -> Float:
    """(n_fault_node,) values of a source's basis function.

    Parameters
    ----------
    known : profiles of other sources of the fault, which gets this one's.
    """
    (n, m), (i, j) = source.counts, source.patch
    if source.shape == "bspline":
        known = {} if known is None else known
        along, down = source.edges.along(), source.edges.down(fault)
        directions = (
            ("along", (n, i, along), fault.along, fault.length),
            ("down", (m, j, down), fault.down, fault.width),
        )
        for name, which, position, size in directions:
            if (name, which) not in known:
                known[name, which] = bspline_profile(position, size, *which)
        first, second = known["along", (n, i, along)], known["down", (m, j, down)]
        if fault.open_top:
            second = np.where(fault.down >= -1e-9 * fault.width, second, 0.0)
        # where slip does not vanish it ends as that of patches does
        open_along = (along[0] != "free", along[1] != "free")
        open_down = (fault.open_top or down[0] != "free", down[1] != "free")
        if all((*open_along, *open_down)):
            return first * second
        return first * second * rectangle_values(fault, open_along, open_down)
    a, b = fault.length / n, fault.width / m
    cells = (i * a, (i + 1) * a), (j * b, (j + 1) * b)
    return box_values(fault, *cells)


def slip_of(source: UnitSource, fault: FaultMesh) -> Float:
    """(n_fault_node, 3) float64, m, slip vectors of a source in x, y, z."""
    return slips_of([source], fault)[:, :, 0]


def slips_of(sources: Sequence[UnitSource], fault: FaultMesh) -> Float:
    """(n_fault_node, 3, n_source) float64, m, slip vectors of sources in x, y, z."""
    slips = np.zeros((len(fault.nodes), 3, len(sources)))
    shapes: dict[object, Float] = {}
    known: Profiles = {}
    for number, source in enumerate(sources):
        # the components of a patch have one shape, which is zero almost everywhere
        own = source.shape, source.counts, source.patch
        if own not in shapes:
            shapes[own] = shape_values(source, fault, known)
        values = shapes[own]
        moved = np.flatnonzero(values)
        axis = fault.strike if source.component == "strike" else fault.updip
        slips[moved, :, number] = values[moved, None] * axis[moved]
    return slips


def _to_and_fro(n: int, m: int) -> list[tuple[int, int]]:
    path = []
    for strip, start in enumerate(range(0, m, 2)):
        columns = range(n) if strip % 2 == 0 else range(n - 1, -1, -1)
        path += [(i, j) for i in columns for j in range(start, min(start + 2, m))]
    return path


def _centre(
    fault: Rectangle,
    shape: Shape,
    counts: tuple[int, int],
    patch: tuple[int, int],
    edges: Edges,
) -> tuple[float, float]:
    (n, m), (i, j) = counts, patch
    if shape == "bspline":
        return (
            bspline_centre(fault.length, n, i, edges.along()),
            bspline_centre(fault.width, m, j, edges.down(fault)),
        )
    return (i + 0.5) * fault.length / n, (j + 0.5) * fault.width / m


def spacing(source: UnitSource, fault: Rectangle) -> tuple[float, float]:
    """Distance of neighbouring sources along strike and down dip, m."""
    n, m = source.counts
    if source.shape == "patch":
        return fault.length / n, fault.width / m
    return (
        bspline_spacing(fault.length, n, source.edges.along()),
        bspline_spacing(fault.width, m, source.edges.down(fault)),
    )


def _check_resolved(sources: Sequence[UnitSource], fault: FaultMesh) -> None:
    known: Profiles = {}
    for source in sources:
        value = shape_values(source, fault, known)
        count = int((value > 1e-3).sum())
        if value.max(initial=0.0) >= _LEAST_PEAK and count >= _LEAST_NODES:
            continue
        here = element_width(fault) / 1e3
        a, b = (step / 1e3 for step in spacing(source, fault))
        raise SourceError(
            f"sources: fault {fault.name}'s function {source.patch} covers {count} "
            f"nodes only; functions are {a:.3g} x {b:.3g} km apart, elements on the "
            f"fault about {here:.3g} km: reduce mesh.size.fault to "
            f"{min(a, b):.2g} km or ask for fewer functions"
        )
