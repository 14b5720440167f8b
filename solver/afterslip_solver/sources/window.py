"""Indicators of cells of a fault's rectangle, as its mesh can carry them."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from afterslip_solver.model import FaultMesh, Float, Int
from afterslip_solver.sources.profile import step_profile

OpenEnds = tuple[bool, bool]
Lines = tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all sources on a fault share.

    Attributes
    ----------
    width : see `element_width`. sharp : see `edge_lines`.
    balance : see `_edge_balance`; None without such lines.
    rectangles : see `rectangle_values`.
    """

    width: float
    sharp: Lines
    balance: Float | None
    rectangles: dict[tuple[OpenEnds, OpenEnds], Float] = field(default_factory=dict)


# found once a fault: a campaign asks for hundreds of sources, again and again
_shared: WeakKeyDictionary[FaultMesh, _Shared] = WeakKeyDictionary()


def element_width(fault: FaultMesh) -> float:
    """Edge of the equilateral triangle of median area on the fault, m."""
    return _of(fault).width


def rectangle_values(
    fault: FaultMesh, open_along: OpenEnds, open_down: OpenEnds
) -> Float:
    """(n_fault_node,) `box_values` of the whole rectangle; not to be written to."""
    known = _of(fault).rectangles
    ends = open_along, open_down
    if ends not in known:
        whole = (0.0, fault.length), (0.0, fault.width)
        known[ends] = box_values(fault, *whole, *ends)
        known[ends].flags.writeable = False
    return known[ends]


def box_values(
    fault: FaultMesh,
    along: tuple[float, float],
    down: tuple[float, float],
    open_along: OpenEnds = (False, False),
    open_down: OpenEnds | None = None,
) -> Float:
    """(n_fault_node,) indicator of a cell of the rectangle, with ramps.

    Parameters
    ----------
    along, down : start and end, m.
    open_along, open_down : whether it goes on beyond the rectangle's start, end, top
        and bottom; by default beyond a top at the free surface alone.
    """
    shared = _of(fault)
    first = step_profile(
        fault.along,
        fault.length,
        along,
        min(shared.width, along[1] - along[0]),
        open_ends=open_along,
        sharp_ends=shared.sharp[0],
    )
    second = step_profile(
        fault.down,
        fault.width,
        down,
        min(shared.width, down[1] - down[0]),
        open_ends=open_down or (fault.open_top, False),
        sharp_ends=shared.sharp[1],
    )
    return first * second * (1.0 if shared.balance is None else shared.balance)


def edge_lines(fault: FaultMesh) -> Lines:
    """Whether lines of the mesh follow both ends, and both edges along strike.

    An edge at the free surface is always followed.
    """
    near_l, near_w = 1e-6 * fault.length, 1e-6 * fault.width
    inside = (fault.down > -near_w) & (fault.down < fault.width + near_w)
    ends = [
        inside & (np.abs(fault.along) < near_l),
        inside & (np.abs(fault.along - fault.length) < near_l),
    ]
    edges = [np.abs(fault.down - fault.width) < near_w]
    if not fault.open_top:
        edges.append(np.abs(fault.down) < near_w)
    along, down = (
        all(int(line.sum()) >= 3 for line in lines) for lines in (ends, edges)
    )
    return along, down


def _of(fault: FaultMesh) -> _Shared:
    found = _shared.get(fault)
    if found is None:
        place = np.searchsorted(fault.nodes, fault.triangles)
        area = _areas(fault, place)
        width = float(np.sqrt(np.median(area) * 4.0 / np.sqrt(3.0)))
        sharp = edge_lines(fault)
        balance = _edge_balance(fault, place, area, sharp) if any(sharp) else None
        found = _shared[fault] = _Shared(width, sharp, balance)
    return found


def _areas(fault: FaultMesh, place: Int) -> Float:
    """(n_tri,) float64, m2, areas in (along, down)."""
    corner = place[:, :3]
    along, down = fault.along[corner], fault.down[corner]
    u = along[:, 1:] - along[:, :1], down[:, 1:] - down[:, :1]
    return np.asarray(0.5 * np.abs(u[0][:, 0] * u[1][:, 1] - u[0][:, 1] * u[1][:, 0]))


def _edge_balance(fault: FaultMesh, place: Int, area: Float, sharp: Lines) -> Float:
    """(n_fault_node,) factors that make the half value on edges conserve potency.

    A midpoint on the rectangle's edge carries a third of the areas of both triangles
    beside it, so its value must be the inner one's share of these areas.
    """
    along = fault.along[place[:, :3]].mean(axis=1)
    down = fault.down[place[:, :3]].mean(axis=1)
    inner = np.ones(len(area), dtype=np.bool_)
    if sharp[0]:
        inner &= (along > 0.0) & (along < fault.length)
    if sharp[1]:
        inner &= (down > 0.0) & (down < fault.width)
    middle = place[:, 3:].ravel()
    count = len(fault.nodes)
    inside = np.bincount(middle, np.repeat(area * inner, 3), minlength=count)
    both = np.bincount(middle, np.repeat(area, 3), minlength=count)
    # a surface without margin, or an open top, has triangles on one side only
    shared = (inside > 0.0) & (inside < both * (1.0 - 1e-12))
    return np.where(shared, 2.0 * inside / np.maximum(both, 1e-300), 1.0)
