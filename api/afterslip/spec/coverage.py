"""Whether everything lies where the model can answer for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem
from afterslip.frame import Frame
from afterslip.readers.delimited import MAX_PROBLEMS
from afterslip.readers.observations import Observations
from afterslip.readers.places import SWAPPED, Points, Stations
from afterslip.schemas.fault import Plane
from afterslip.units import KM
from afterslip_common.geometry import Box, PlaneFault

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]

# an interface may be continued this far beyond its points, as Slab2 to the trench
LONGEST_REACH = 100e3


def extent(box: Box) -> str:
    """Return a box in km, for messages."""
    x, y = (f"{low / KM:g} to {high / KM:g}" for low, high in (box.x, box.y))
    return f"x {x} km, y {y} km"


def plane_fault(name: str, plane: Plane, frame: Frame) -> PlaneFault:
    """Return the rectangle that a spec describes.

    Parameters
    ----------
    frame : of the model; maps a place in degrees.
    """
    if plane.geographic:
        x, y = (float(v) for v in frame.to_local(plane.lon or 0.0, plane.lat or 0.0))
    else:
        x, y = (plane.x or 0.0) * KM, (plane.y or 0.0) * KM
    top = (plane.top or 0.0) * KM
    length, width = plane.length * KM, plane.width * KM
    # people give it from geographic north, the mesh is made in the plane
    strike = plane.strike - float(frame.convergence(x, y))
    found = PlaneFault(name, x, y, top, strike, plane.dip, length, width)
    if plane.depth is None:
        return found
    up = 0.5 * width * found.axes[1]
    top = plane.depth * KM - float(up[2])
    # a top edge at the ground, but for rounding, breaks it
    top = 0.0 if abs(top) < 1e-9 * width else top
    return replace(found, x=x + float(up[0]), y=y + float(up[1]), top=top)


def plane_corners(plane: Plane, frame: Frame) -> Float:
    """Return the (4, 3) corners of a rectangle, m, as `PlaneFault.corners`."""
    return plane_fault("", plane, frame).corners


def places_outside(
    box: Box,
    frame: Frame,
    noun: str,
    places: Stations | Points | Observations,
    rows: Iterable[int] | None = None,
) -> list[Problem]:
    """Say which places are outside the domain.

    Parameters
    ----------
    noun : what a place is, "station" or "point".
    rows : which of the places to look at; None: all.
    """
    found: list[Problem] = []
    chosen = np.arange(len(places)) if rows is None else np.array([*rows], dtype=int)
    outside = chosen[~box.holds(places.x[chosen], places.y[chosen])]
    swapped = [row for row in outside.tolist() if _swapped(box, frame, places, row)]
    if len(swapped) > 1 and len(swapped) == len(outside):
        message = f"is outside the domain, like {len(swapped) - 1} more {noun}s"
        name = None if isinstance(places, Points) else places.name[swapped[0]]
        place = places.place(swapped[0])
        return [Problem(place, name, message, SWAPPED)]
    for row in outside[:MAX_PROBLEMS].tolist():
        hint = f"the domain is {extent(box)}: make it larger or remove the {noun}"
        if row in swapped:
            hint = SWAPPED
        x, y = places.x[row] / KM, places.y[row] / KM
        message = f"{noun} outside the domain, at x {x:.1f} km, y {y:.1f} km"
        name = None if isinstance(places, Points) else places.name[row]
        found.append(Problem(places.place(row), name, message, hint))
    if len(outside) > MAX_PROBLEMS:
        more = len(outside) - MAX_PROBLEMS
        message = f"{more} more places are outside the domain"
        found.append(Problem(places.label, None, message))
    return found


def _swapped(
    box: Box, frame: Frame, places: Stations | Points | Observations, row: int
) -> bool:
    """Tell whether a place would be in the domain with lon and lat exchanged."""
    lon, lat = places.lon[row], places.lat[row]
    if not frame.geographic or abs(lon) > 90:
        return False
    return bool(box.holds(*frame.to_local(lat, lon)).all())


def plane_outside(box: Box, plane: Plane, frame: Frame, path: str) -> Iterator[Problem]:
    """Say whether a rectangle leaves the domain or touches its sides."""
    corners = plane_corners(plane, frame)
    inside = (
        (corners[:, 0] > box.x[0])
        & (corners[:, 0] < box.x[1])
        & (corners[:, 1] > box.y[0])
        & (corners[:, 1] < box.y[1])
    )
    if not inside.all():
        x, y, _ = corners[~inside][0] / KM
        yield Problem(
            path,
            None,
            f"fault outside the domain: a corner is at x {x:.1f} km, y {y:.1f} km",
            f"the domain is {extent(box)}",
        )
    deepest = -corners[:, 2].min()
    if deepest >= box.depth:
        yield Problem(
            path,
            None,
            f"fault outside the domain: it reaches {deepest / KM:.1f} km",
            f"the domain ends at {box.depth / KM:g} km",
        )


def interface_outside(
    box: Box, points: Float, outline: Float | None, path: str
) -> Iterator[Problem]:
    """Say whether a curved fault leaves the domain, or its points do not carry it."""
    if outline is None:
        edge, slipping = points[:, :2], points
    else:
        edge, slipping = outline, points[inside_polygon(points[:, :2], outline)]
    outside = ~box.holds(edge[:, 0], edge[:, 1])
    if outside.any():
        x, y = edge[outside][0] / KM
        yield Problem(
            path,
            None,
            f"fault outside the domain, e.g. at x {x:.1f} km, y {y:.1f} km",
            f"the domain is {extent(box)}: make it larger or limit the outline",
        )
    if len(slipping) and -slipping[:, 2].min() >= box.depth:
        yield Problem(
            path,
            None,
            f"fault outside the domain: it reaches {-slipping[:, 2].min() / KM:.1f} km",
            f"the domain ends at {box.depth / KM:g} km: limit the outline",
        )
    if outline is not None:
        from scipy.spatial import cKDTree

        reach, _ = cKDTree(points[:, :2]).query(outline)
        far = int(np.argmax(reach))
        if reach[far] > LONGEST_REACH:
            x, y = outline[far] / KM
            yield Problem(
                f"{path}.outline",
                None,
                f"its corner at x {x:.1f} km, y {y:.1f} km is {reach[far] / KM:.0f} km "
                "from the nearest point of the surface",
                "the points of the surface must cover the outline",
            )


def inside_polygon(points: Float, polygon: Float) -> Bool:
    """Say which points are inside a polygon, by counting crossings to the east.

    Parameters
    ----------
    points : (n, 2) float64.
    polygon : (k, 2) float64 corners in order.
    """
    inside = np.zeros(len(points), dtype=bool)
    x, y = points[:, 0], points[:, 1]
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crosses = (y0 > y) != (y1 > y)
        inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside
