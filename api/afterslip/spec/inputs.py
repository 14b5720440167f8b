"""Everything that a spec names, read, checked and in local metres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError
from afterslip.frame import Frame
from afterslip.physics.base import FollowsRupture
from afterslip.physics.registry import find
from afterslip.readers.interface import read_interface, read_outline
from afterslip.readers.meshfile import mesh_format
from afterslip.readers.places import (
    Points,
    Stations,
    list_points,
    read_points,
    read_stations,
)
from afterslip.readers.rows import Rows
from afterslip.readers.slip import SlipTable, read_slip
from afterslip.readers.topography import Topography
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.earth import Model
from afterslip.schemas.forward import Forward, PointFile, SlipFile
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.values import Duration
from afterslip.spec.box import box_around
from afterslip.spec.coverage import (
    extent,
    inside_polygon,
    interface_outside,
    places_outside,
    plane_corners,
    plane_outside,
)
from afterslip.spec.data import data_problems
from afterslip.spec.files import Files
from afterslip.spec.grid import grid_of
from afterslip.spec.ground import raised, read_ground, read_surface
from afterslip.spec.reach import moment_problems
from afterslip.spec.reading import FileReader, observations_of
from afterslip.spec.references import refs, with_content_refs, with_refs
from afterslip_common.geometry import Box
from afterslip_common.properties import PropertyGrid

Float = NDArray[np.float64]
__all__ = [
    "Inputs",
    "Interface",
    "observations_of",
    "read_dataset",
    "read_ground_plan",
    "refs",
    "request_problems",
    "resolve",
    "source_points",
    "with_content_refs",
    "with_refs",
]


@dataclass(frozen=True, slots=True)
class Interface:
    """A curved fault.

    Attributes
    ----------
    points : (n, 3) float64, m, local x, y, z; z negative below the ground.
    outline : (k, 2) float64, m, corners around the part that may slip; None: all.
    """

    points: Float
    outline: Float | None


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files of a spec as arrays in SI.

    Attributes
    ----------
    frame : map from what users write to local metres.
    box : the domain, m.
    interfaces : fault's name → points and outline, for faults with ``surface``.
    surfaces : body's name → (n, 3) float64, m, points of its top surface.
    grid : properties; None where the spec names none.
    mesh_format : of ``model.mesh.file``: gmsh, exodus or vtu; None where built.
    stations : of a campaign; None where the spec names none.
    datasets : name → its data, with the errors and correlations of its files.
    points, slip_table : of a forward run.
    topography : of the ground, the top of the box that surfaces have been put in.
    """

    frame: Frame
    box: Box
    interfaces: dict[str, Interface] = field(default_factory=dict)
    surfaces: dict[str, Float] = field(default_factory=dict)
    grid: PropertyGrid | None = None
    mesh_format: str | None = None
    stations: Stations | None = None
    datasets: dict[str, Rows] = field(default_factory=dict)
    points: Points | None = None
    slip_table: SlipTable | None = None
    topography: Topography | None = None


def resolve(spec: Campaign | Forward, files: Files) -> Inputs:
    """Read and check every file of a spec.

    Parameters
    ----------
    files : where the spec's references are.

    Raises
    ------
    SpecError
        With everything found: files that are missing or malformed, stations, faults
        and points outside the domain, data after the end of the curve.
    """
    reader = FileReader(spec, files)
    inputs = _model_inputs(spec.model, reader)
    if isinstance(spec, Campaign):
        inputs = _campaign_inputs(spec, inputs, reader)
    else:
        inputs = _forward_inputs(spec, inputs, reader)
    reader.check()
    return inputs


def read_dataset(
    dataset: Dataset, model: Model, end: Duration | None, files: Files
) -> Rows:
    """Read and check one data set that is not part of a campaign's spec.

    Parameters
    ----------
    end : of the campaign, the last time that data may have; None: any.

    Raises
    ------
    SpecError
        As for `resolve`.
    """
    reader = FileReader(dataset, files)
    # where the spec gives no domain, reading Green's functions says what is outside
    frame, box = Frame.of(model.frame), box_around(model, [])
    found = reader.observations(dataset, "", frame, box, end)
    reader.check()
    if found is None:
        raise SpecError([Problem("file", dataset.file, "cannot be read")])
    return found


def read_ground_plan(spec: Campaign, files: Files) -> Inputs:
    """Read the files of a campaign's model and its stations, and no data.

    Raises
    ------
    SpecError
        As for `resolve`.
    """
    reader = FileReader(spec, files)
    inputs = _model_inputs(spec.model, reader)
    inputs = replace(inputs, stations=_stations(spec, inputs, reader))
    reader.check()
    return inputs


def request_problems(
    spec: Campaign,
    request: Inversion,
    settings: Mapping[str, Dataset],
    tables: Mapping[str, Rows],
    inputs: Inputs,
) -> Iterator[Problem]:
    """Say why data cannot be inverted as a request asks; paths are within it.

    Parameters
    ----------
    settings, tables : by name, of all data sets that the request names.
    inputs : of the campaign.
    """
    yield from data_problems(request, settings, tables, source_points(spec, inputs))
    physics = find(spec.physics)
    if isinstance(physics, FollowsRupture):
        yield from physics.rupture_problems(spec, request, settings, tables, inputs)
        return
    text = f"is not for Green's functions of {spec.physics}"
    if request.windows is not None:
        yield Problem("windows", None, text, "remove it")
    for index, name in enumerate(request.datasets):
        if settings[name].series is not None:
            path = f"datasets[{index}].series"
            yield Problem(path, name, text, "give displacements that stay")


def _model_inputs(model: Model, reader: FileReader) -> Inputs:
    frame = Frame.of(model.frame)
    interfaces = _interfaces(model, frame, reader)
    surfaces: dict[str, Float] = {}
    planes = [f.plane for f in model.faults if f.plane is not None]
    edges = [plane_corners(plane, frame) for plane in planes]
    box = box_around(model, [*edges, *map(_slipping, interfaces.values())])
    ground = read_ground(model, frame, box, reader.read)
    interfaces = {n: raised(found, ground) for n, found in interfaces.items()}
    for index, fault in enumerate(model.faults):
        path = f"model.faults[{index}]"
        if fault.plane is not None:
            reader.problems += plane_outside(box, fault.plane, frame, f"{path}.plane")
        elif fault.name in interfaces:
            known = interfaces[fault.name]
            reader.problems += interface_outside(
                box, known.points, known.outline, f"{path}.surface"
            )
    for index, body in enumerate(model.bodies):
        path = f"model.bodies[{index}].below"
        top = read_surface(path, frame, ground, reader.read)
        if top is None:
            continue
        if not box.holds(top[:, 0], top[:, 1]).any():
            message = "body outside the domain: none of its points is inside"
            reader.problems.append(Problem(path, body.below, message, extent(box)))
        surfaces[body.name] = top
    grid = kind = None
    if model.grid is not None:
        grid = reader.read("model.grid.file", partial(grid_of, model, frame, box))
    if model.mesh.file is not None:
        kind = reader.read("model.mesh.file", mesh_format)
    return Inputs(frame, box, interfaces, surfaces, grid, kind, topography=ground)


def _interfaces(model: Model, frame: Frame, reader: FileReader) -> dict[str, Interface]:
    """Read the curved faults, by name; those that are wrong are left out."""
    found: dict[str, Interface] = {}
    for index, fault in enumerate(model.faults):
        if fault.surface is None:
            continue
        path = f"model.faults[{index}].surface"
        points = reader.read(
            f"{path}.file", lambda c, label: read_interface(c, frame, label)
        )
        outline = None
        if fault.surface.outline is not None:
            outline = reader.read(
                f"{path}.outline", lambda c, label: read_outline(c, frame, label)
            )
            if outline is None:
                continue
        if points is not None:
            found[fault.name] = Interface(points, outline)
    return found


def _slipping(interface: Interface) -> Float:
    """(n, 3) m, the points inside the outline, and the outline's own at the ground."""
    outline = interface.outline
    if outline is None:
        return interface.points
    inner = interface.points[inside_polygon(interface.points[:, :2], outline)]
    return np.concatenate([inner, np.column_stack([outline, np.zeros(len(outline))])])


def _stations(spec: Campaign, inputs: Inputs, reader: FileReader) -> Stations | None:
    if spec.stations is None:
        return None
    found = reader.read(
        "stations.file", lambda c, label: read_stations(c, inputs.frame, label)
    )
    if found is not None:
        reader.problems += places_outside(inputs.box, inputs.frame, "station", found)
    return found


def _campaign_inputs(spec: Campaign, inputs: Inputs, reader: FileReader) -> Inputs:
    stations = _stations(spec, inputs, reader)
    datasets: dict[str, Rows] = {}
    for index, dataset in enumerate(spec.datasets):
        where = inputs.frame, inputs.box, spec.end
        found = reader.observations(dataset, f"datasets[{index}]", *where)
        if found is not None:
            datasets[dataset.name] = found
    inputs = replace(inputs, stations=stations, datasets=datasets)
    settings = {dataset.name: dataset for dataset in spec.datasets}
    for index, request in enumerate(spec.inversions):
        problems = moment_problems(spec, request)
        reader.problems += [p.under(f"inversions[{index}]") for p in problems]
        if all(name in datasets for name in request.datasets):
            wrong = request_problems(spec, request, settings, datasets, inputs)
            reader.problems += [p.under(f"inversions[{index}]") for p in wrong]
    return inputs


def source_points(spec: Campaign, inputs: Inputs) -> dict[str, Float]:
    """(n, 2) float64, m, points of each fault that slips; not of one in a mesh file."""
    by_name = {fault.name: fault for fault in spec.model.faults}
    found = {}
    for name in dict.fromkeys(grid.fault for grid in spec.grids):
        plane, known = by_name[name].plane, inputs.interfaces.get(name)
        if plane is not None:
            found[name] = plane_corners(plane, inputs.frame)[:, :2]
        elif known is not None:
            points = known.points[:, :2]
            found[name] = points if known.outline is None else known.outline
    return found


def _forward_inputs(spec: Forward, inputs: Inputs, reader: FileReader) -> Inputs:
    slip: SlipTable | None = None
    if isinstance(spec.slip, SlipFile):
        slip = reader.read(
            "slip.file", lambda c, label: read_slip(c, inputs.frame, label)
        )
        if (spec.slip.fault or spec.model.faults[0].name) in inputs.interfaces:
            slip = raised(slip, inputs.topography)
    points: Points | None
    if isinstance(spec.points, PointFile):
        points = reader.read(
            "points.file", lambda c, label: read_points(c, inputs.frame, label)
        )
    else:
        points = list_points(spec.points, inputs.frame)
    if points is not None:
        reader.problems += places_outside(inputs.box, inputs.frame, "point", points)
        deep = np.flatnonzero(points.depth > inputs.box.depth)
        if len(deep):
            place = points.place(int(deep[0]))
            message = "point outside the domain, below its bottom"
            reader.problems.append(Problem(place, None, message))
    return replace(inputs, points=points, slip_table=slip)
