"""Where everything of a campaign lies, in km, for maps of it before it is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.frame import Frame
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.fault import Fault, Plane, Sources
from afterslip.spec.coverage import inside_polygon, plane_fault
from afterslip.spec.inputs import Inputs
from afterslip.units import KM

Float = NDArray[np.float64]

# points of a surface, and stations, that a picture needs
MOST_POINTS = 2000
# points of a curved fault in a section
ALONG = 80


def geometry(campaign: Campaign, inputs: Inputs) -> dict[str, Any]:
    """Return plain values in km about the origin of the frame, z up.

    Parameters
    ----------
    inputs : the campaign's files.

    Returns
    -------
    {"frame", "domain": {"x", "y", "depth"}, "faults": [{"name", "outline": [[x, y, z]],
    "top": [[x, y, z]] of a plane's upper edge, "sources": [[x, y, z]],
    "line": [[s, z]] in the section}], "stations": [{"name", "x", "y"}],
    "layers": [{"name", "bottom", "creeps"}],
    "bodies": [{"name", "thickness", "top": [[x, y, z]]}],
    "section": {"x", "y", "azimuth"}}; the section passes through the middle of the
    first fault with sources, down its dip. Sources of a curved fault are placed when
    it is meshed, so that none are said.
    """
    model, box = campaign.model, inputs.box
    depth = box.depth / KM
    section = _section(campaign, inputs)
    return {
        "frame": model.frame.model_dump(mode="json"),
        "domain": {
            "x": [side / KM for side in box.x],
            "y": [side / KM for side in box.y],
            "depth": depth,
        },
        "faults": _faults(campaign, inputs, section),
        "stations": _stations(inputs),
        "layers": [
            {
                "name": layer.name,
                "bottom": min(layer.bottom, depth),
                "creeps": layer.rheology is not None,
            }
            for layer in model.layers
        ],
        "bodies": [
            {
                "name": body.name,
                "thickness": body.thickness,
                "top": _plain(_thinned(inputs.surfaces[body.name]) / KM),
            }
            for body in model.bodies
            if body.name in inputs.surfaces
        ],
        "section": section,
    }


def _faults(
    campaign: Campaign, inputs: Inputs, section: dict[str, float]
) -> list[dict[str, Any]]:
    """Return the faults as `geometry` has them."""
    faults = []
    for fault in campaign.model.faults:
        grid = next((g for g in campaign.grids if g.fault == fault.name), None)
        if fault.plane is not None:
            outline = plane_fault(fault.name, fault.plane, inputs.frame).corners / KM
            sources = _on_plane(grid, fault.plane, inputs.frame)
        elif fault.name in inputs.interfaces:
            found = inputs.interfaces[fault.name]
            outline = _edge(found.points, found.outline) / KM
            sources = np.zeros((0, 3))
        else:  # in an imported mesh
            outline, sources = np.zeros((0, 3)), np.zeros((0, 3))
        line = _line(fault, inputs, section)
        faults.append(
            {
                "name": fault.name,
                "outline": _plain(outline),
                "top": _plain(outline[:2]) if fault.plane is not None else [],
                "sources": _plain(sources),
                "line": _plain(line),
            }
        )
    return faults


def _on_plane(sources: Sources | None, plane: Plane, frame: Frame) -> Float:
    """(n, 3) km, centres of the cells of the grid of sources, if there is one."""
    if sources is None:
        return np.zeros((0, 3))
    fault = plane_fault("", plane, frame)
    strike, updip, _ = fault.axes
    along = (np.arange(sources.along_strike) + 0.5) / sources.along_strike
    down = (np.arange(sources.down_dip) + 0.5) / sources.down_dip
    a, d = (g.ravel()[:, None] for g in np.meshgrid(along, down, indexing="ij"))
    centres = fault.origin + a * fault.length * strike - d * fault.width * updip
    return np.asarray(centres / KM)


def _edge(points: Float, outline: Float | None) -> Float:
    """(k, 3) m, the corners of an outline at the depth of the nearest point."""
    from scipy.spatial import ConvexHull, cKDTree

    corners = points[ConvexHull(points[:, :2]).vertices, :2]
    if outline is not None:
        corners = outline
    nearest = cKDTree(points[:, :2]).query(corners)[1]
    return np.column_stack([corners, points[nearest, 2]])


def _section(campaign: Campaign, inputs: Inputs) -> dict[str, float]:
    """Return a point and the direction of dip, degrees clockwise from north."""
    name = campaign.grids[0].fault
    fault = next(item for item in campaign.model.faults if item.name == name)
    if fault.plane is not None:
        corners = plane_fault(name, fault.plane, inputs.frame).corners / KM
        x, y, _ = corners.mean(axis=0)
        return {"x": x, "y": y, "azimuth": (fault.plane.strike + 90.0) % 360.0}
    if name not in inputs.interfaces:
        x, y = (0.5 * sum(sides) / KM for sides in (inputs.box.x, inputs.box.y))
        return {"x": x, "y": y, "azimuth": 90.0}
    found = inputs.interfaces[name]
    points = found.points
    if found.outline is not None:
        inner = points[inside_polygon(points[:, :2], found.outline)]
        points = inner if len(inner) > 2 else points
    x, y, _ = points.mean(axis=0) / KM
    # steepest descent of the plane that fits best
    centred = points - points.mean(axis=0)
    east, north = np.linalg.lstsq(centred[:, :2], centred[:, 2], rcond=None)[0]
    azimuth = float(np.degrees(np.arctan2(-east, -north))) % 360.0
    return {"x": float(x), "y": float(y), "azimuth": azimuth}


def _line(fault: Fault, inputs: Inputs, section: dict[str, float]) -> Float:
    """(n, 2) km, position along the section and height of a fault."""
    azimuth = np.radians(section["azimuth"])
    along = np.array([np.sin(azimuth), np.cos(azimuth)])
    origin = np.array([section["x"], section["y"]])
    if fault.plane is not None:
        corners = plane_fault("", fault.plane, inputs.frame).corners / KM
        ends = np.array([corners[:2].mean(axis=0), corners[2:].mean(axis=0)])
        return np.column_stack([(ends[:, :2] - origin) @ along, ends[:, 2]])
    if fault.name not in inputs.interfaces:
        return np.zeros((0, 2))
    found = inputs.interfaces[fault.name]
    from scipy.interpolate import LinearNDInterpolator

    points = found.points / KM
    reach = (points[:, :2] - origin) @ along
    position = np.linspace(reach.min(), reach.max(), ALONG)
    places = origin + position[:, None] * along
    height = LinearNDInterpolator(points[:, :2], points[:, 2])(places)
    there = np.isfinite(height)
    if found.outline is not None:
        there &= inside_polygon(places * KM, found.outline)
    return np.asarray(np.column_stack([position, height])[there])


def _stations(inputs: Inputs) -> list[dict[str, Any]]:
    """Return each station once, those of the spec and those of data."""
    found: dict[str, tuple[float, float]] = {}
    if inputs.stations is not None:
        places = zip(inputs.stations.name, inputs.stations.x, inputs.stations.y,
                     strict=True)  # fmt: skip
        found |= {name: (x, y) for name, x, y in places}
    for rows in inputs.datasets.values():
        found |= {n: (x, y) for n, x, y in zip(rows.stations, rows.x, rows.y,
                                               strict=True)}  # fmt: skip
    step = -(-len(found) // MOST_POINTS) or 1
    return [
        {"name": name, "x": round(x / KM, 4), "y": round(y / KM, 4)}
        for name, (x, y) in list(found.items())[::step]
    ]


def _thinned(points: Float) -> Float:
    return points[:: -(-len(points) // MOST_POINTS) or 1]


def _plain(values: Float) -> list[list[float]]:
    found: list[list[float]] = np.round(values, 4).tolist()
    return found
