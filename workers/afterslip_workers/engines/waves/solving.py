"""One group of unit sources: marched through time, and what is stored of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip.error_class import ErrorClass
from afterslip.errors import one_problem
from afterslip.physics.waves import physics
from afterslip.physics.waves.checks import WaveSpec, samples, surface_step
from afterslip_common.source_time import SourceTime
from afterslip_solver.backend.cpu.digits import MOST
from afterslip_solver.backend.waves import bytes_needed
from afterslip_solver.model import Float
from afterslip_solver.waves.attenuation import Attenuation
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.grid import VoxelGrid
from afterslip_solver.waves.march import Prepared, Recording, Series, Steps
from afterslip_solver.waves.record import receivers, surface_rows, surface_share
from afterslip_solver.waves.sides import Sides
from afterslip_workers.engines.base import GroupWork, Solved
from afterslip_workers.engines.waves.model_file import WaveGround
from afterslip_workers.engines.waves.receivers import Exchange, chosen
from afterslip_workers.engines.waves.sources import WaveSources
from afterslip_workers.errors import CancelledError, TaskError
from afterslip_workers.machine import device
from afterslip_workers.machine.free import free_on_gpu, free_on_host
from afterslip_workers.store.checkpoint import Checkpoints, digest_of

_SINGLE = 4


@dataclass(frozen=True, slots=True)
class _Ready:
    """Voxels with everything that the groups of a campaign share."""

    ground: WaveGround
    prepared: Prepared
    units: WaveSources


def solve(work: GroupWork) -> Solved:
    """March sources together, each a lane.

    Raises
    ------
    TaskError
        Too little memory is free.
    UnstableError
        Energy grew, with a step that should be stable.
    CancelledError
        It was asked to stop.
    """
    ready, waves = _ready(work), work.spec.waves
    step = None if waves.step is None else float(waves.step)
    times = float(waves.duration), float(waves.sampling)
    steps = ready.prepared.plan(*times, step, work.escalation)
    stations = 0 if work.stations is None else len(work.stations)
    if chosen(work.spec, ready.units, stations):
        return _by_receivers(work, ready, steps)
    work.phase("making sources")
    loads = ready.units.loads(ready.ground, work.sources)
    record = _record(work, ready.ground)
    keeper = _keeper(work, steps)

    def report(news: dict[str, Any]) -> None:
        keeper.note_progress(news)
        work.report(news)

    work.phase("solving")
    calls = report, work.should_stop, keeper
    growth = source_time(work.spec, ready.ground)
    found = ready.prepared.run(steps, loads, growth, record, *calls)
    if found is None:
        raise CancelledError
    stats = {
        "solves": steps.samples,
        "iterations": steps.count,
        "residual": 0.0,
        "dt_s": steps.dt,
        "limit_s": steps.limit,
        "device": device.name_of(ready.prepared.steps.name),
    }
    values = _values(work, found, steps)
    return Solved(values, {**stats, **keeper.stats()}, _history(found, waves))


def _by_receivers(work: GroupWork, ready: _Ready, steps: Steps) -> Solved:
    """Solve stations and not sources, as far as no other group has done so."""
    work.phase("solving")
    growth = source_time(work.spec, ready.ground)
    parts = ready.ground, ready.units, ready.prepared, steps, growth
    found = Exchange(work, *parts).solve()
    stats: dict[str, Any] = {
        "solves": steps.samples * found.marched,
        "iterations": steps.count * found.marched,
        "residual": 0.0,
        "dt_s": steps.dt,
        "limit_s": steps.limit,
        "device": device.name_of(ready.prepared.steps.name),
        "notes": [
            f"solved {found.marched} of {found.runs} runs of receivers, the others "
            "were stored",
            *found.notes,
        ],
    }
    lanes = len(work.sources)
    held = work.spec.waves.absorbing.kind == "spring_dashpot"
    values: dict[str, Any] = {
        "seismogram": found.velocity.astype(np.float32),
        "displacement": found.displacement.astype(np.float32),
        "offset": found.offset if held else np.full_like(found.offset, np.nan),
        "steps": np.full(lanes, steps.count, dtype=np.int32),
        "energy_left": np.full(lanes, found.left),
    }
    layout = physics.layout(work.facts)
    return Solved({item.name: values[item.name] for item in layout.grouped}, stats)


def backend_of(asked: str, offered: str) -> str:
    """Return "cpu" or "gpu" for what a spec asks for, where that may be "auto"."""
    found = offered if asked == "auto" else asked
    if found == "auto":
        return "gpu" if device.graphics() else "cpu"
    return found


def source_time(spec: WaveSpec, ground: WaveGround) -> SourceTime:
    """Return how slip grows."""
    found = spec.waves.source_time.function or ground.source_time
    assert found is not None  # noqa: S101 - the schema has one of them
    return found


def surface_axes(spec: WaveSpec, grid: VoxelGrid) -> tuple[Float, Float]:
    """Return x (n_column,) and y (n_row,), m, of the points of the ground."""
    every = surface_step(spec, grid.h)
    if not every:
        return np.zeros(0), np.zeros(0)
    _, i, j = surface_rows(grid, every)
    return grid.axis(0)[i], grid.axis(1)[j]


def _ready(work: GroupWork) -> _Ready:
    """Prepare the voxels, unless an earlier group left them warm."""
    waves, facts = work.spec.waves, work.facts
    wanted = backend_of(waves.backend, work.backend)

    def build() -> _Ready:
        work.phase("preparing the voxels")
        ground: WaveGround = work.model()
        require(work.spec, ground.grid, wanted, work.warm.clear)
        units = WaveSources.of(work.spec.sources, ground, facts.get("order"))
        made = prepare(work.spec, ground, wanted, units.centre())
        return _Ready(ground, made, units)

    parts = facts["digest"], facts.get("order"), work.spec.sources, waves.absorbing
    how = (
        waves.scheme,
        waves.precision,
        waves.digits,
        waves.attenuation,
        waves.gpus,
    )
    key = f"waves {parts!r} {how!r} {wanted}"
    ready: _Ready = work.warm.get(key, build)
    return ready


def prepare(
    spec: WaveSpec,
    ground: WaveGround,
    backend: str,
    centre: tuple[float, float, float],
) -> Prepared:
    """Put voxels into a backend's memory.

    Parameters
    ----------
    centre : m, of the sources, from which springs at the sides are.
    """
    waves, how = spec.waves, None
    if waves.attenuation is not None:
        given = waves.attenuation
        how = Attenuation(given.band, given.at, *ground.quality)
    sides = Sides(waves.absorbing.kind, waves.absorbing.width, centre=centre)
    parts = ground.grid, ground.filled, SCHEMES[waves.scheme], sides
    numbers = waves.precision, backend, waves.digits or MOST, how
    return Prepared.of(*parts, *numbers, waves.gpus)


def require(
    spec: WaveSpec, grid: VoxelGrid, backend: str, clear: Callable[[], None]
) -> None:
    """Refuse voxels that need more memory than is free, before any is taken.

    Parameters
    ----------
    clear : gives memory of others back.
    """
    real = np.float32 if spec.waves.precision == "fp32" else np.float64
    gpus, relaxing = spec.waves.gpus, spec.waves.attenuation is not None
    if gpus > 1 and backend == "cpu":
        text, hint = "GPUs are asked for, and the backend here is cpu", "write 1"
        raise one_problem("waves.gpus", gpus, text, hint)
    needed = bytes_needed(grid.shape, real, relaxing, gpus)
    needed += _recorded(spec, grid)
    device.trim()
    free = free_on_gpu(gpus) if backend == "gpu" else free_on_host()
    if free is not None and free < needed:
        clear()
        device.trim()
        free = free_on_gpu(gpus) if backend == "gpu" else free_on_host()
    if free is not None and free < needed:
        raise TaskError(
            ErrorClass.NO_MEMORY,
            f"{grid.n_node / 1e6:.3g} M nodes need {needed / 1e9:.3g} GB, and "
            f"{free / 1e9:.3g} GB are free: lower waves.frequency, make model.domain "
            "smaller or use a worker with more memory",
        )


def _recorded(spec: WaveSpec, grid: VoxelGrid) -> int:
    x, y = surface_axes(spec, grid)
    return 2 * _SINGLE * 12 * len(x) * len(y) * samples(spec)


def _record(work: GroupWork, ground: WaveGround) -> Recording:
    table = work.stations
    x, y = (np.zeros(0), np.zeros(0)) if table is None else (table.x, table.y)
    grid, nodes = ground.grid, ground.nodes
    places = receivers(grid, np.asarray(x), np.asarray(y), nodes)
    every = surface_step(work.spec, grid.h)
    if not every:
        return Recording(places, np.zeros(0, dtype=np.int64))
    share = None if nodes is None else surface_share(nodes, every)
    return Recording(places, surface_rows(grid, every, nodes)[0], share)


def _keeper(work: GroupWork, steps: Steps) -> Checkpoints:
    """Return the checkpoints of these lanes' numerics, the same for any process."""
    spec, facts = work.spec, work.facts
    sources, order = spec.sources.model_dump(mode="json"), facts.get("order")
    what = facts["digest"], physics.settings(spec), sources, order, list(work.sources)
    times = steps.dt, steps.samples
    return Checkpoints(work.store, digest_of(what, times, work.backend))


def _values(work: GroupWork, found: Series, steps: Steps) -> dict[str, Any]:
    """Arrays of the group's store; lanes first."""
    lanes = len(work.sources)
    layout = physics.layout(work.facts)
    left = found.energy[-1] / np.maximum(found.energy.max(axis=0), 1e-300)
    # sides without springs hold no static displacement
    held = work.spec.waves.absorbing.kind == "spring_dashpot"
    offset = found.offset[:lanes]
    field = found.wavefield[:lanes]
    values: dict[str, Any] = {
        "seismogram": found.velocity[:lanes],
        "displacement": found.displacement[:lanes],
        "offset": offset if held else np.full_like(offset, np.nan),
        "steps": np.full(lanes, steps.count, dtype=np.int32),
        "energy_left": left[:lanes],
    }
    if field.shape[1]:
        rows, columns = layout.of("row"), layout.of("column")
        values["wavefield"] = field.reshape(lanes, rows, columns, 3, -1)
    return {item.name: values[item.name] for item in layout.grouped}


def _history(found: Series, waves: Any) -> list[dict[str, Any]]:
    """Kinetic energy through time, at most fifty times."""
    every = max(1, len(found.energy) // 50)
    return [
        {"time_s": n * float(waves.sampling), "energy_j": found.energy[n].tolist()}
        for n in range(0, len(found.energy), every)
    ]
