"""Names, dimensions, types and chunks of ``greens.zarr``, written down once.

Everything that a group of sources writes is chunked by `GROUP` along ``source``, one
chunk file per array and group. A group can therefore be written elsewhere as a store
of its own and be accepted by renaming its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from afterslip.units import COMPONENTS, SLIP_COMPONENTS

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Integrator = Literal["spectral", "stepping"]

GROUP = 4
CONVENTIONS = "CF-1.11 UGRID-1.0"

# corners and midpoints in turn, as UGRID orders a polygon, from corners then midpoints
POLYGON_ORDER = (0, 3, 1, 4, 2, 5)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths of the dimensions.

    Attributes
    ----------
    mode : largest number of modes of a source, the elastic one included; for
        stepping the number of steps and one.
    station, time : 0 stations: there is no ``displacement``.
    """

    source: int
    mode: int
    node: int
    face: int
    station: int = 0
    time: int = 0

    @property
    def groups(self) -> int:
        """Number of groups of four sources."""
        return -(-self.source // GROUP)

    def of(self, dim: str) -> int:
        """Return the length of a dimension."""
        fixed = {"component": 3, "pair": 2, "axis": 3, "direction": 2, "face_node": 6}
        return fixed[dim] if dim in fixed else int(getattr(self, dim))


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


@dataclass(frozen=True, slots=True)
class Variable:
    """An array of the store.

    Attributes
    ----------
    dtype : NumPy's short name, or "str".
    grouped : written by groups; else once, when the store is created.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str
    grouped: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def fill(self) -> Any:
        """What a missing value reads as."""
        return {"f": np.nan, "i": 0, "s": ""}[self.dtype[0]]

    def chunks(self, sizes: Sizes) -> tuple[int, ...]:
        """Return the smallest part that can be read."""
        if self.name == "response":
            return (1, 1, sizes.node, 3)
        return self.files(sizes)

    def files(self, sizes: Sizes) -> tuple[int, ...]:
        """Return the part that is one file."""
        whole = tuple(max(1, sizes.of(dim)) for dim in self.dims)
        return (GROUP, *whole[1:]) if self.grouped else whole


def group_arrays(sizes: Sizes, integrator: Integrator) -> tuple[Variable, ...]:
    """Return the arrays that groups write."""
    return tuple(_grouped(sizes, integrator))


def chunk_file(variable: Variable, group: int) -> str:
    """Return the file, below the store, of a group's part of an array.

    In a group's own store the group is number 0.
    """
    return "/".join([variable.name, "c", str(group), *("0" for _ in variable.dims[1:])])


def _grouped(sizes: Sizes, integrator: Integrator) -> Iterator[Variable]:
    def part(name: str, dims: str, dtype: str, unit: str, text: str) -> Variable:
        attributes = {"units": unit, "long_name": text}
        return Variable(name, ("source", *dims.split()), dtype, True, attributes)

    response = part(
        "response",
        "mode node component",
        "f4",
        "m m-1",
        "displacement per metre of slip: mode 0 elastic, then Lanczos modes or steps",
    )
    response.attributes.update(mesh="mesh", location="node")
    yield response
    if integrator == "spectral":
        yield part(
            "recurrence", "mode pair", "f8", "s-1", "alpha and beta of the modes"
        )
        yield part("start_norm", "", "f8", "1", "norm of the first creep rate")
        yield part("shift", "", "f8", "s", "gamma of shift-invert, 0: polynomial")
    if sizes.station:
        text = "displacement per metre of slip at the stations"
        yield part("displacement", "time station component", "f8", "m m-1", text)
    yield part("mode_count", "", "i4", "1", "modes of a source, 0: not solved yet")
    yield part("residual", "", "f8", "1", "largest relative residual reached")
    yield part("time_error", "", "f8", "1", "estimated relative error of the curve")
    yield part("iterations", "", "i4", "1", "iterations of the linear solver")


def fixed_arrays(
    source: SourceTable,
    surface: SurfaceTable,
    stations: StationTable | None,
    time: Float,
    step_time: Float | None,
    n_mode: int,
) -> Iterator[tuple[Variable, Any]]:
    """Yield the arrays that are written when the store is created, with values.

    Parameters
    ----------
    time, step_time : yr.
    """

    def fixed(
        name: str, dims: str, dtype: str, unit: str, text: str, **more: Any
    ) -> Any:
        attributes = {"long_name": text, **more}
        if unit:
            attributes["units"] = unit
        return Variable(name, tuple(dims.split()), dtype, False, attributes)

    yield fixed("component", "component", "str", "", "axes of motion"), COMPONENTS
    modes = np.arange(n_mode)
    yield fixed("mode", "mode", "i4", "1", "0: elastic"), modes
    yield fixed("time", "time", "f8", "yr", "output times after the event"), time
    if step_time is not None:
        yield fixed("step_time", "mode", "f8", "yr", "time of a step"), step_time
    yield from _source_arrays(fixed, source)
    yield from _surface_arrays(fixed, surface)
    if stations is not None and len(stations):
        yield fixed("station", "station", "str", "", "stations"), list(stations.name)
        for axis in ("x", "y"):
            text = f"{axis} of the station"
            variable = fixed(f"station_{axis}", "station", "f8", "m", text)
            yield variable, getattr(stations, axis)
        if stations.lon is not None and stations.lat is not None:
            yield _degrees(fixed, "station_lon", "station"), stations.lon
            yield _degrees(fixed, "station_lat", "station"), stations.lat


def _degrees(fixed: Any, name: str, dim: str) -> Variable:
    east = name.endswith("lon")
    found: Variable = fixed(
        name,
        dim,
        "f8",
        "degrees_east" if east else "degrees_north",
        "longitude" if east else "latitude",
        standard_name="longitude" if east else "latitude",
    )
    return found


def _source_arrays(fixed: Any, source: SourceTable) -> Iterator[tuple[Variable, Any]]:
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


def _surface_arrays(
    fixed: Any, surface: SurfaceTable
) -> Iterator[tuple[Variable, Any]]:
    for index, axis in enumerate("xyz"):
        text = f"{axis} of the surface's node"
        yield fixed(f"node_{axis}", "node", "f8", "m", text), surface.nodes[:, index]
    if surface.lon is not None and surface.lat is not None:
        yield _degrees(fixed, "node_lon", "node"), surface.lon
        yield _degrees(fixed, "node_lat", "node"), surface.lat
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
