"""One forward run of waves: slip or moment tensors in, series at points out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from afterslip.errors import Problem, SpecError
from afterslip.identity import canonical_spec, digest, model_digest
from afterslip.physics.waves.forward import PointSource, WaveForward
from afterslip.readers.places import Points
from afterslip.schemas.forward import SlipFile
from afterslip.spec import load
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import Inputs, resolve
from afterslip_common.terms import KM
from afterslip_solver.inversion import magnitude_of
from afterslip_solver.model import Float
from afterslip_solver.waves.fault import FaultPoints, given_slip, table_slip
from afterslip_solver.waves.grid import VoxelGrid, WaveError
from afterslip_solver.waves.ground import lowered
from afterslip_solver.waves.loads import (
    couple_moment,
    moment_loads,
    rigidity_at,
    scalar_moment,
    slip_moment,
)
from afterslip_solver.waves.march import Recording, Series, Steps, UnstableError
from afterslip_solver.waves.record import receivers
from afterslip_workers.engines.forward import place_coordinates, write
from afterslip_workers.engines.variables import variable
from afterslip_workers.engines.waves.building import build_ground
from afterslip_workers.engines.waves.model_file import WaveGround
from afterslip_workers.engines.waves.solving import (
    backend_of,
    prepare,
    require,
    source_time,
)
from afterslip_workers.machine import device
from afterslip_workers.versions import versions

if TYPE_CHECKING:
    import xarray as xr

Report = Callable[[dict[str, Any]], None]


def run_forward(
    spec: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    report: Report | None = None,
    backend: str | None = None,
    base: str | Path | None = None,
) -> xr.Dataset:
    """Compute the motion of points; see `engines.base.ForwardEngine`.

    Returns
    -------
    Data set with ``displacement`` in m and ``velocity`` in m/s, (time, point,
    component), ``offset(point, component)`` in m, NaN where sides do not hold it; time
    in s; moment (N m) and magnitude as attributes.

    Raises
    ------
    SpecError
        With everything that is wrong in the spec and its files.
    TaskError
        Too little memory is free.
    UnstableError
        Energy grew, also with half of the step.
    """
    if isinstance(spec, str | Path):
        forward = WaveForward.from_dict(load(Path(spec)), Path(spec).parent)
    else:
        forward = WaveForward.from_dict(dict(spec), base)
    files = LocalFiles(forward.base)
    say = report or (lambda _: None)
    say({"phase": "reading files"})
    inputs = resolve(forward, files)
    ground, facts = build_ground(forward, inputs, files, lambda t: say({"phase": t}))
    points = _on_ground(inputs)
    source = _source(forward, inputs, ground)
    series, steps, name = _marched(forward, ground, source, points, say, backend)
    result = _dataset(forward, inputs, points, series, steps)
    made = canonical_spec(forward, files)
    result.attrs.update(
        {
            "Conventions": "CF-1.11",
            "title": forward.name,
            "spec": json.dumps(made),
            "digest": digest(made),
            "model_digest": model_digest(forward, files),
            "versions": json.dumps(versions()),
            "physics": "waves",
            "n_unknowns": facts["n_unknowns"],
            "n_elements": facts["n_elements"],
            "notes": json.dumps(facts["notes"]),
            "moment": source.size,
            "magnitude": magnitude_of(source.size),
            "steps": steps.count,
            "dt_s": steps.dt,
            "device": name,
        }
    )
    if out is not None:
        write(result, Path(out))
    return result


@dataclass(frozen=True, slots=True)
class _Source:
    """Moment tensors at points.

    Attributes
    ----------
    position : (n, 3) m. moment : (n, 3, 3) N m. size : N m, sum of scalar moments.
    """

    position: Float
    moment: Float
    size: float

    def centre(self) -> tuple[float, float, float]:
        """Return their middle, m."""
        weight = np.sqrt((self.moment**2).sum(axis=(1, 2)))
        # slip may be zero everywhere
        weight = weight if weight.any() else np.ones(len(weight))
        x, y, z = np.average(self.position, axis=0, weights=weight)
        return float(x), float(y), float(z)


def _on_ground(inputs: Inputs) -> Points:
    points = inputs.points
    assert points is not None  # noqa: S101 - resolve reads them for forward specs
    deep = np.flatnonzero(points.depth > 0.0)
    if len(deep):
        row = int(deep[0])
        text = f"is {points.depth[row]:.0f} m below the ground"
        hint = "waves are recorded on the ground: leave its depth out"
        raise SpecError([Problem(points.place(row), None, text, hint)])
    return points


def _source(forward: WaveForward, inputs: Inputs, ground: WaveGround) -> _Source:
    """Return all slip and tensors as one source."""
    grid, positions, moments = ground.grid, [], []
    for fault, slip in _slips(forward, inputs, ground):
        moved = np.flatnonzero(np.abs(slip).max(axis=1))
        at = fault.position[moved]
        mu = rigidity_at(grid, ground.medium, at) * fault.area[moved]
        whole = slip_moment(mu, slip[moved, None], fault.normal[moved])
        positions.append(at)
        moments.append(whole[:, 0])
    places = [_place(item, inputs) for item in forward.moment_tensors]
    if places:
        _require_inside(grid, np.array(places))
        _require_rock(forward, ground, np.array(places))
        positions.append(np.array(places))
        moments.append(np.array([_tensor(item) for item in forward.moment_tensors]))
    moment = np.concatenate(moments)
    size = sum(scalar_moment(one) for one in moment)
    return _Source(np.concatenate(positions), moment, float(size))


def _slips(
    forward: WaveForward, inputs: Inputs, ground: WaveGround
) -> list[tuple[FaultPoints, Float]]:
    if isinstance(forward.slip, SlipFile):
        table = inputs.slip_table
        assert table is not None  # noqa: S101 - resolve reads it for forward specs
        fault = ground.faults[forward.slip.fault or forward.model.faults[0].name]
        # tables are in the box, as faults are before they are under the ground
        box = inputs.topography
        flat = (
            fault
            if box is None
            else replace(fault, position=box.in_box(fault.position))
        )
        return [(fault, table_slip(flat, table.points, table.slip))]
    return [
        (
            ground.faults[item.fault],
            given_slip(
                ground.faults[item.fault], item.strike, item.dip, forward.tapered(item)
            ),
        )
        for item in forward.slip
    ]


def _place(source: PointSource, inputs: Inputs) -> Float:
    """(3,) m."""
    if source.lon is not None and source.lat is not None:
        x, y = (float(v) for v in inputs.frame.to_local(source.lon, source.lat))
    else:
        x, y = (source.x or 0.0) * KM, (source.y or 0.0) * KM
    ground = inputs.topography
    height = 0.0 if ground is None else float(ground.at(np.array(x), np.array(y)))
    return np.array([x, y, height - source.depth * KM])


def _require_inside(grid: VoxelGrid, places: Float) -> None:
    problems = []
    for index, place in enumerate(places):
        try:
            grid.cells(place[None])
        except WaveError:
            text = "is outside the domain"
            hint = "make model.domain larger, or move it"
            problems.append(Problem(f"moment_tensors[{index}]", None, text, hint))
    if problems:
        raise SpecError(problems)


def _require_rock(forward: WaveForward, ground: WaveGround, places: Float) -> None:
    """Refuse tensors where the voxels at the ground are mostly air."""
    if not ground.fill.size:
        return
    grid, problems = ground.grid, []
    by = places[:, 2] - lowered(grid, ground.fill, places)[:, 2]
    for index in np.flatnonzero(by > 0.0):
        depth = forward.moment_tensors[index].depth
        text = (
            f"is in a voxel of {grid.h / KM:.3g} km at the ground that is mostly air, "
            f"and rock is {by[index] / KM:.2g} km deeper"
        )
        hint = f"write {depth + by[index] / KM:.3g} or more, or a higher frequency"
        path = f"moment_tensors[{index}].depth"
        problems.append(Problem(path, depth, text, hint))
    if problems:
        raise SpecError(problems)


def _tensor(source: PointSource) -> Float:
    """(3, 3) N m, x east, y north, z up."""
    couple, tensor = source.couple, source.tensor
    if couple is not None:
        angles = couple.strike, couple.dip, couple.rake
        return couple_moment(*angles, couple.magnitude)
    assert tensor is not None  # noqa: S101 - the schema has one of them
    east = [tensor.mpp, -tensor.mtp, tensor.mrp]
    north = [-tensor.mtp, tensor.mtt, -tensor.mrt]
    return np.array([east, north, [tensor.mrp, -tensor.mrt, tensor.mrr]])


def _marched(
    forward: WaveForward,
    ground: WaveGround,
    source: _Source,
    points: Points,
    say: Report,
    backend: str | None,
) -> tuple[Series, Steps, str]:
    """Return the series of the source as lane 0, their times, and the device."""
    waves, grid = forward.waves, ground.grid
    say({"phase": "preparing the voxels", "n_unknowns": 3 * grid.n_node})
    wanted = backend_of(backend or waves.backend, "auto")
    require(forward, grid, wanted, lambda: None)
    prepared = prepare(forward, ground, wanted, source.centre())
    at, moment = source.position, source.moment[:, None]
    loads = moment_loads(grid, ground.medium, at, moment)
    places = receivers(grid, points.x, points.y, ground.nodes)
    record = Recording(places, np.zeros(0, dtype=np.int64))
    growth = source_time(forward, ground)
    step = None if waves.step is None else float(waves.step)
    times = float(waves.duration), float(waves.sampling)

    def report(news: dict[str, Any]) -> None:
        say({"phase": "solving", **news})

    def run(halve: int) -> tuple[Series, Steps]:
        steps = prepared.plan(*times, step, halve)
        found = prepared.run(steps, loads, growth, record, report)
        assert found is not None  # noqa: S101 - nobody stops it
        return found, steps

    try:
        found, steps = run(0)
    except UnstableError:
        found, steps = run(1)
    return found, steps, device.name_of(prepared.steps.name)


def _dataset(
    forward: WaveForward,
    inputs: Inputs,
    points: Points,
    series: Series,
    steps: Steps,
) -> xr.Dataset:
    import xarray as xr

    dims = ("time", "point", "component")

    def through_time(values: Any, units: str, text: str) -> xr.Variable:
        own = np.moveaxis(np.asarray(values[0]), -1, 0)
        return variable(dims, own, {"units": units, "long_name": text})

    coords = place_coordinates(inputs.frame, points)
    seconds = float(forward.waves.sampling) * np.arange(steps.samples)
    text = {"units": "s", "long_name": "time after the begin of slip"}
    coords["time"] = ("time", seconds, text)
    held = forward.waves.absorbing.kind == "spring_dashpot"
    offset = series.offset[0] if held else np.full_like(series.offset[0], np.nan)
    long_name = "displacement at the end; NaN without springs at the sides"
    return xr.Dataset(
        {
            "displacement": through_time(series.displacement, "m", "displacement"),
            "velocity": through_time(series.velocity, "m s-1", "velocity"),
            "offset": (
                ("point", "component"),
                offset,
                {"units": "m", "long_name": long_name},
            ),
        },
        coords,
    )


def summary(result: xr.Dataset, seconds: float) -> list[str]:
    """Say in lines what a run found, and how."""
    attrs = result.attrs
    largest = {
        name: np.linalg.norm(result[name].values, axis=2).max(axis=0)
        for name in ("displacement", "velocity")
    }
    return [
        f"{attrs['title']}: {attrs['n_unknowns']:,} unknowns, {attrs['steps']:,} steps "
        f"of {attrs['dt_s']:.4g} s on {attrs['device']}, {seconds:.1f} s",
        f"source: moment {attrs['moment']:.3g} N m, Mw {attrs['magnitude']:.2f}",
        *(f"note: {note}" for note in json.loads(attrs["notes"])),
        f"largest displacement {largest['displacement'].max():.4g} m, velocity "
        f"{largest['velocity'].max():.4g} m/s, at "
        f"{result['station'].values[largest['velocity'].argmax()]}",
    ]
