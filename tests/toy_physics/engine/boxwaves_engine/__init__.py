"""Scalar waves in a closed box: the worker's half of a second physics."""

from types import MappingProxyType

import numpy as np
from boxwaves import BoxCampaign, Grid, physics

from afterslip.archive import SourceTable
from afterslip.archive.layout import fixed
from afterslip.archive.tables import source_arrays, station_arrays
from afterslip.error_class import ErrorClass
from afterslip.frame import Frame
from afterslip.identity import digest
from afterslip.spec.coverage import plane_corners
from afterslip.units import COMPONENTS
from afterslip_workers.engines.base import Solved
from afterslip_workers.engines.models import get_or_build, load_model
from afterslip_workers.errors import CancelledError


class UnstableError(Exception):
    """The steps are too long for the cells."""


class GridFile:
    """A grid as a file."""

    @staticmethod
    def save(path, model) -> None:
        with path.open("wb") as stream:
            np.savez(stream, dims=model.dims, origin=model.origin, h=model.h)

    @staticmethod
    def load(path) -> Grid:
        with np.load(path) as found:
            dims = tuple(int(n) for n in found["dims"])
            return Grid(dims, tuple(found["origin"]), float(found["h"]))


class Patches:
    """Centres of the patches of one plane, (n, 3) m."""

    def __init__(self, spec: BoxCampaign, order=None) -> None:
        fault = next(f for f in spec.model.faults if f.name == spec.sources.fault)
        a, b, _, d = plane_corners(fault.plane, Frame.of(spec.model.frame))
        n, m = spec.sources.along_strike, spec.sources.down_dip
        self.patch = np.array([(i, j) for i in range(n) for j in range(m)])
        self.centre = a + np.outer((self.patch[:, 0] + 0.5) / n, b - a)
        self.centre = self.centre + np.outer((self.patch[:, 1] + 0.5) / m, d - a)
        if order is not None:
            self.patch, self.centre = self.patch[list(order)], self.centre[list(order)]
        self.names = [f.name for f in spec.model.faults]
        self.fault = self.names.index(fault.name)

    def __len__(self) -> int:
        return len(self.centre)

    @property
    def groups(self) -> list[list[int]]:
        places = list(range(len(self)))
        size = physics.group_size
        return [places[i : i + size] for i in range(0, len(places), size)]

    def table(self, model) -> SourceTable:
        n = len(self)
        one = np.ones(n)
        where = np.full(n, self.fault), np.zeros(n, dtype=int), self.patch
        return SourceTable(self.names, *where, self.centre, one, one)

    def notes(self) -> list[str]:
        return []

    def describe(self, table) -> list[dict]:
        return [{"position_km": [float(v) / 1e3 for v in p]} for p in table.position]


class BoxEngine:
    """See `afterslip_workers.engines.base.Engine`."""

    physics = physics
    failures = MappingProxyType({UnstableError: ErrorClass.NAN})

    def build(self, spec, inputs, files, store, phase, max_elements=None):
        def made():
            phase("making cells")
            cells = int(np.prod(grid.dims))
            quality = {"h": grid.h}
            return grid, {"n_unknowns": cells, "n_elements": cells, "n_node": cells,
                          "quality": quality, "notes": []}  # fmt: skip

        grid = Grid.of(spec)
        parts = [self._name(), list(grid.dims), list(map(float, grid.origin)), grid.h]
        return get_or_build(store, digest(parts), GridFile, made)

    def _name(self):
        return f"{physics.name} {physics.numerics}"

    def units(self, spec, model, order=None):
        return Patches(spec, order)

    def keys(self, spec, model, units):
        speed, waves = spec.model.layers[0].vs, spec.waves
        of_model = digest(
            [list(model.dims), list(map(float, model.origin)), model.h, speed]
        )
        of_solver = digest([self._name(), waves.width, float(waves.sampling)])
        slips = [digest([float(v) for v in centre]) for centre in units.centre]
        return {
            "model": of_model,
            "solver": of_solver,
            "slips": slips,
            "keys": [digest([of_model, of_solver, slip]) for slip in slips],
            "quality": physics.quality(spec),
        }

    def store_facts(self, spec, model, units, stations):
        frames = int(float(spec.waves.duration) / float(spec.waves.sampling) + 1.5)
        sizes = {"source": len(units), "frame": frames,
                 "node": model.dims[0] * model.dims[1],
                 "station": 0 if stations is None else len(stations)}  # fmt: skip
        grid = {"nx": model.dims[0], "ny": model.dims[1], "h": model.h,
                "x0": float(model.origin[0]), "y0": float(model.origin[1])}  # fmt: skip
        return {"sizes": sizes, "grid": grid}

    def root(self, spec, facts):
        return dict(facts["grid"])

    def fixed_arrays(self, spec, facts, model, sources, stations):
        times = np.arange(facts["sizes"]["frame"]) * float(spec.waves.sampling)
        yield fixed("component", "component", "str", "", "axes of motion"), COMPONENTS
        yield fixed("frame_time", "frame", "f8", "s", "time of a frame"), times
        yield from source_arrays(sources)
        yield from station_arrays(stations)

    def load(self, store, digest):
        return load_model(store, digest, GridFile)

    def solve(self, work):
        grid = work.warm.get(work.facts["digest"], work.model)
        spec, units = work.spec, Patches(work.spec, work.facts.get("order"))
        work.phase("solving")
        centres = units.centre[list(work.sources)]
        speed, width = 1e3 * spec.model.layers[0].vs, 1e3 * spec.waves.width
        frames, every = work.facts["sizes"]["frame"], float(spec.waves.sampling)
        series, steps = leapfrog(grid, centres, speed, width, frames, every, work)
        values = {"wavefield": series, "frames": np.full(len(centres), frames)}
        stats = {"solves": steps, "iterations": steps, "residual": 0.0, "device": "cpu"}
        return Solved(values, stats)

    def adopt(self, stored, row, work):
        frames = work.facts["sizes"]["frame"]
        if int(stored["frames"][row]) < frames:
            return None
        return {"wavefield": stored["wavefield"][row, :frames], "frames": frames}

    def slip_model(self, spec, model, order):
        return None


def leapfrog(grid, centres, speed, width, frames, every, work):
    """(n, frame, node) float32 u of the uppermost cells; second order."""
    waves = [start(grid, k, centres[:, k], width) for k in range(3)]
    now = np.einsum("nx,ny,nz->nxyz", *waves)
    inner = max(1, int(np.ceil(every * speed * np.sqrt(3.0) / (0.9 * grid.h))))
    factor = (every / inner * speed / grid.h) ** 2
    series = np.empty((len(centres), frames, grid.dims[0] * grid.dims[1]), np.float32)
    before = now + 0.5 * factor * laplacian(now)  # at rest: u(-dt) = u(dt)
    for frame in range(frames):
        series[:, frame] = now[..., 0].reshape(len(centres), -1)
        work.report({"solves_done": frame, "solves_expected": frames})
        if work.should_stop():
            raise CancelledError
        if not np.isfinite(now).all():
            raise UnstableError("u is not finite")
        for _ in range(inner):
            now, before = 2 * now - before + factor * laplacian(now), now
    return series, frames * inner


def start(grid, axis, centre, width):
    """(n, cells) Gaussians along an axis, with their images behind both walls."""
    low = -grid.h * grid.dims[2] if axis == 2 else grid.origin[axis]
    length = grid.h * grid.dims[axis]
    cell = np.arange(grid.dims[axis]) + 0.5
    # depth counts from the ground down, so that cell 0 is the uppermost
    place = -grid.h * cell if axis == 2 else low + grid.h * cell
    total = np.zeros((len(centre), len(place)))
    for image in (-1, 0, 1):
        for sign in (-1, 1):
            mirrored = low + sign * (centre - low) + 2 * image * length
            total += np.exp(-((place - mirrored[:, None]) ** 2) / (2 * width**2))
    return total


def laplacian(u):
    """Second differences, times h², with walls that reflect."""
    total = np.zeros_like(u)
    for axis in (1, 2, 3):
        step = np.diff(u, axis=axis)
        low = [slice(None)] * 4
        high = [slice(None)] * 4
        low[axis], high[axis] = slice(None, -1), slice(1, None)
        total[tuple(low)] += step
        total[tuple(high)] -= step
    return total


engine = BoxEngine()
