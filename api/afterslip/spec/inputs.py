"""Everything that a spec names, read, checked and in local metres."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError
from afterslip.frame import Frame
from afterslip.readers.correlation import read_matrix
from afterslip.readers.interface import read_interface, read_outline
from afterslip.readers.meshfile import mesh_format
from afterslip.readers.observations import Observations, read_observations
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
from afterslip.schemas.observation import Dataset, Sigma
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
from afterslip.spec.data import data_problems, duplicates
from afterslip.spec.files import Files
from afterslip.spec.grid import grid_of
from afterslip.spec.ground import raised, read_ground, read_surface
from afterslip.spec.reach import moment_problems
from afterslip.spec.references import refs, with_content_refs, with_refs
from afterslip.units import YEAR
from afterslip_common.geometry import Box
from afterslip_common.properties import PropertyGrid

Float = NDArray[np.float64]
T = TypeVar("T")
_ANY_SIGMA = Sigma(horizontal=1.0, vertical=1.0, los=1.0)

__all__ = ["Inputs", "Interface", "refs", "resolve", "with_content_refs", "with_refs"]


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
    reader = _Reader(spec, files)
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
    reader = _Reader(dataset, files)
    # where the spec gives no domain, reading Green's functions says what is outside
    inputs = Inputs(Frame.of(model.frame), box_around(model, []))
    found = reader.observations(dataset, "", inputs, end)
    reader.check()
    if found is None:
        raise SpecError([Problem("file", dataset.file, "cannot be read")])
    return found


def observations_of(
    dataset: Dataset, content: bytes, frame: Frame, label: str
) -> Observations:
    """Read the file of a data set as its spec says.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    full = dataset.covariance is not None and dataset.covariance.file is not None
    # the diagonal of a full matrix stands for every sigma
    sigma = _ANY_SIGMA if full else dataset.sigma
    return read_observations(
        content, frame, sigma, float(dataset.epoch), label, dict(dataset.types or {})
    )


def fault_points(spec: Campaign, files: Files) -> dict[str, Float]:
    """Read the files of the model and return `source_points`.

    Raises
    ------
    SpecError
        As for `resolve`.
    """
    reader = _Reader(spec, files)
    found = source_points(spec, _model_inputs(spec.model, reader))
    reader.check()
    return found


class _Reader:
    """Reads each file once and collects what is wrong."""

    def __init__(self, spec: Campaign | Forward | Dataset, files: Files) -> None:
        self.refs = refs(spec)
        self.files = files
        self.problems: list[Problem] = []
        self._content: dict[str, bytes | None] = {}

    def read(self, path: str, parse: Callable[[bytes, str], T]) -> T | None:
        """Return a parsed file; None, with the problems noted, where it is wrong."""
        ref = self.refs[path]
        label = path if ref.startswith("sha256:") else f"{path} ({ref})"
        try:
            return parse(self._bytes(path, ref), label)
        except SpecError as error:
            self.problems += error.problems
        return None

    def _bytes(self, path: str, ref: str) -> bytes:
        content = self._content.get(ref)
        if content is None:
            try:
                content = self.files.read(ref)
            except SpecError as error:
                found = (Problem(path, ref, p.message, p.hint) for p in error.problems)
                raise SpecError(found) from None
            self._content[ref] = content
        return content

    def observations(
        self, dataset: Dataset, path: str, inputs: Inputs, end: Duration | None
    ) -> Rows | None:
        """Read a data set and note what is outside domain and curve."""
        prefix = f"{path}." if path else ""
        matrix = dataset.covariance.file if dataset.covariance else None
        found = self.read(
            f"{prefix}file",
            lambda content, label: observations_of(
                dataset, content, inputs.frame, label
            ),
        )
        if found is None:
            return None
        first = np.unique(np.array(found.name), return_index=True)[1]
        places = sorted(int(row) for row in first)
        self.problems += places_outside(
            inputs.box, inputs.frame, "station", found, places
        )
        late = np.array([], dtype=np.int64)
        if end is not None:
            late = np.flatnonzero(found.time > float(end) * (1 + 1e-9))
        if end is not None and len(late):
            self.problems.append(
                Problem(
                    found.place(int(late[0])),
                    f"{found.time[late[0]] / YEAR:.6g} yr",
                    f"is later than times.until ({float(end) / YEAR:.6g} yr)",
                    f"{len(late)} lines are: make times.until later or remove them",
                )
            )
        rows = found.rows(dataset.name)
        self.problems += duplicates(rows)
        return rows if matrix is None else self._correlated(rows, prefix)

    def _correlated(self, rows: Rows, prefix: str) -> Rows | None:
        """Return rows with the full covariance of a file; None where it is wrong."""
        matrix = self.read(
            f"{prefix}covariance.file",
            lambda c, label: read_matrix(c, len(rows), label),
        )
        if matrix is None:
            return None
        return replace(
            rows,
            sigma=np.sqrt(np.diag(matrix)),
            given=np.ones(len(rows), dtype=bool),
            blocks=((np.arange(len(rows)), matrix),),
        )

    def check(self) -> None:
        """Raise what was found, if anything."""
        if self.problems:
            raise SpecError(self.problems)


def _model_inputs(model: Model, reader: _Reader) -> Inputs:
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


def _interfaces(model: Model, frame: Frame, reader: _Reader) -> dict[str, Interface]:
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


def _campaign_inputs(spec: Campaign, inputs: Inputs, reader: _Reader) -> Inputs:
    stations = None
    if spec.stations is not None:
        stations = reader.read(
            "stations.file", lambda c, label: read_stations(c, inputs.frame, label)
        )
    if stations is not None:
        reader.problems += places_outside(inputs.box, inputs.frame, "station", stations)
    datasets: dict[str, Rows] = {}
    for index, dataset in enumerate(spec.datasets):
        found = reader.observations(dataset, f"datasets[{index}]", inputs, spec.end)
        if found is not None:
            datasets[dataset.name] = found
    inputs = replace(inputs, stations=stations, datasets=datasets)
    settings = {dataset.name: dataset for dataset in spec.datasets}
    for index, request in enumerate(spec.inversions):
        problems = moment_problems(spec, request)
        reader.problems += [p.under(f"inversions[{index}]") for p in problems]
        if all(name in datasets for name in request.datasets):
            faults = source_points(spec, inputs)
            problems = data_problems(request, settings, datasets, faults)
            reader.problems += [p.under(f"inversions[{index}]") for p in problems]
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


def _forward_inputs(spec: Forward, inputs: Inputs, reader: _Reader) -> Inputs:
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
