"""What stores of any physics hold of sources, stations and the ground's surface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.archive.layout import Variable, fixed
from afterslip.units import SLIP_COMPONENTS

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Values = Iterator[tuple[Variable, Any]]

# corners and midpoints in turn, as UGRID orders a polygon, from corners then midpoints
POLYGON_ORDER = (0, 3, 1, 4, 2, 5)


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The unit sources, in the order of the store: group g owns 4g … 4g + 3.

    Attributes
    ----------
    faults : names of the faults.
    fault : (n_source,) positions in ``faults``.
    component : (n_source,) 0 strike, 1 dip.
    patch : (n_source, 2) place in the fault's grid, along strike and down dip.
    position : (n_source, 3) m, centre; x, y, z.
    area : (n_source,) m², integral of the shape.
    rigidity : (n_source,) Pa, mean over the shape.
    """

    faults: Sequence[str]
    fault: Int
    component: Int
    patch: Int
    position: Float
    area: Float
    rigidity: Float

    def __len__(self) -> int:
        return len(self.fault)


@dataclass(frozen=True, slots=True)
class SurfaceTable:
    """Nodes and second-order triangles of the free surface.

    Attributes
    ----------
    nodes : (n_node, 3) m, x, y, z.
    faces : (n_face, 6) positions in ``nodes``: corners, then midpoints of (0,1),
        (1,2), (2,0); the store keeps them in polygon order.
    lon, lat : (n_node,) degrees; None where the frame is local.
    """

    nodes: Float
    faces: Int
    lon: Float | None = None
    lat: Float | None = None


@dataclass(frozen=True, slots=True)
class StationTable:
    """Stations of the campaign.

    Attributes
    ----------
    name : names.
    x, y : (n_station,) m.
    lon, lat : (n_station,) degrees; None where the frame is local.
    """

    name: Sequence[str]
    x: Float
    y: Float
    lon: Float | None = None
    lat: Float | None = None

    def __len__(self) -> int:
        return len(self.name)


def _degrees(name: str, dim: str) -> Variable:
    east = name.endswith("lon")
    return fixed(
        name,
        dim,
        "f8",
        "degrees_east" if east else "degrees_north",
        "longitude" if east else "latitude",
        standard_name="longitude" if east else "latitude",
    )


def source_arrays(source: SourceTable) -> Values:
    """Yield the arrays that describe the unit sources, with values."""
    n_fault = len(source.faults)
    fault = {
        "flag_values": list(range(n_fault)),
        "flag_meanings": " ".join(source.faults),
    }
    slip = {"flag_values": [0, 1], "flag_meanings": " ".join(SLIP_COMPONENTS)}
    yield fixed("source_fault", "source", "i1", "", "fault", **fault), source.fault
    yield (
        fixed("source_component", "source", "i1", "", "component of slip", **slip),
        source.component,
    )
    text = "place in the fault's grid: along strike, down dip"
    yield fixed("source_patch", "source direction", "i4", "1", text), source.patch
    text = "centre: x east, y north, z up"
    yield fixed("source_position", "source axis", "f8", "m", text), source.position
    yield fixed("source_area", "source", "f8", "m2", "integral of shape"), source.area
    text = "rigidity, mean over the shape"
    yield fixed("source_rigidity", "source", "f8", "Pa", text), source.rigidity


def station_arrays(stations: StationTable | None) -> Values:
    """Yield the arrays that describe the stations, with values."""
    if stations is None or not len(stations):
        return
    yield fixed("station", "station", "str", "", "stations"), list(stations.name)
    for axis in ("x", "y"):
        text = f"{axis} of the station"
        yield (
            fixed(f"station_{axis}", "station", "f8", "m", text),
            getattr(stations, axis),
        )
    if stations.lon is not None and stations.lat is not None:
        yield _degrees("station_lon", "station"), stations.lon
        yield _degrees("station_lat", "station"), stations.lat


def surface_arrays(surface: SurfaceTable) -> Values:
    """Yield the arrays that describe the ground's surface, with values."""
    for index, axis in enumerate("xyz"):
        text = f"{axis} of the surface's node"
        yield fixed(f"node_{axis}", "node", "f8", "m", text), surface.nodes[:, index]
    if surface.lon is not None and surface.lat is not None:
        yield _degrees("node_lon", "node"), surface.lon
        yield _degrees("node_lat", "node"), surface.lat
    text = "corners and midpoints of second-order triangles in turn"
    yield (
        fixed(
            "face_node_connectivity",
            "face face_node",
            "i4",
            "",
            text,
            cf_role="face_node_connectivity",
            start_index=0,
        ),
        surface.faces[:, list(POLYGON_ORDER)],
    )
    mesh = {
        "cf_role": "mesh_topology",
        "topology_dimension": 2,
        "node_coordinates": "node_x node_y",
        "face_node_connectivity": "face_node_connectivity",
    }
    yield fixed("mesh", "", "i4", "", "free surface", **mesh), np.int32(0)
