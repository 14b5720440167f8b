"""Unit sources by reciprocity: runs of stations serve all sources of a fault.

Each run, four axes of stations, leaves what it recorded on the fault beside the
checkpoints, where every group of the campaign, of a campaign with other sources on the
same fault, and every later attempt finds it. Groups begin with different runs, so that
workers share them. Where all cells of the fault are too many, their sums over patches
are recorded, and other sources take runs of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from afterslip.errors import one_problem
from afterslip.physics.waves import physics
from afterslip.physics.waves.checks import MOST_BYTES, samples
from afterslip.physics.waves.spec import WaveCampaign
from afterslip_common.source_time import SourceTime
from afterslip_common.terms import GROUP_SIZE
from afterslip_solver.model import Float
from afterslip_solver.waves.march import Prepared, Recording, Steps
from afterslip_solver.waves.reciprocal import (
    FORCE,
    Traction,
    station_forces,
    traction_on,
)
from afterslip_solver.waves.record import Receivers, receivers
from afterslip_workers.engines.base import GroupWork
from afterslip_workers.engines.waves.model_file import WaveGround
from afterslip_workers.engines.waves.sources import WaveSources
from afterslip_workers.errors import CancelledError
from afterslip_workers.store.checkpoint import Checkpoints, digest_of, discard

# of a record: float64 and float32 of two directions of slip and four lanes
_CELL_BYTES = 2 * 4 * 12
# part of the runs between the first ones of neighbouring groups
_GOLDEN = 0.618


def record_bytes(spec: WaveCampaign, count: int) -> float:
    """Return the size of what one run records on so many cells, or patches."""
    return float(_CELL_BYTES * count * samples(spec))


def chosen(spec: WaveCampaign, units: WaveSources, stations: int) -> bool:
    """Tell whether stations are solved and not sources.

    Raises
    ------
    SpecError
        That is asked for, and would record too much.
    """
    if spec.way(stations) != "receivers":
        return False
    count = len(units.patches())
    size = record_bytes(spec, count)
    if size <= MOST_BYTES:
        return True
    if spec.waves.solve == "receivers":
        text = (
            f"would record {size / 1e9:.1f} GB a run on {count:,} patches of the "
            f"fault, and {MOST_BYTES / 1e9:g} GB are allowed"
        )
        hint = "write waves.solve: sources, or make sampling coarser"
        raise one_problem("waves.solve", "receivers", text, hint)
    return False


@dataclass(frozen=True, slots=True)
class Found:
    """Series of sources; sources first, then station, component, sample.

    Attributes
    ----------
    marched : runs that were not stored. left : energy at the end over the largest.
    """

    velocity: Float
    displacement: Float
    offset: Float
    marched: int
    runs: int
    left: float
    notes: list[str]


@dataclass(slots=True)
class Exchange:
    """The runs of a campaign's stations."""

    work: GroupWork
    ground: WaveGround
    units: WaveSources
    prepared: Prepared
    steps: Steps
    growth: SourceTime

    def solve(self) -> Found:
        """Return the series of the group's sources.

        Raises
        ------
        CancelledError
            It was asked to stop.
        """
        ground, traction, whole = self.ground, None, self._whole()
        x, y = ground.stations.T
        stations = receivers(ground.grid, x, y, ground.nodes)
        lanes = np.arange(3 * len(stations.nodes))
        runs = [lanes[n : n + GROUP_SIZE] for n in range(0, len(lanes), GROUP_SIZE)]
        slips = self._slips(whole)
        n, samples_ = len(self.work.sources), self.steps.samples
        velocity, displacement = np.empty((2, n, len(lanes), samples_))
        offset = np.empty((n, len(lanes)))
        notes: list[str] = []
        marched, left = 0, 0.0
        for run in self._order(len(runs)):
            own = runs[run]
            state = self._stored(own, whole, notes)
            if state is None:
                if traction is None:
                    traction = self._traction(whole)
                state = self._march(own, stations, traction, marched, len(runs))
                marched += 1
                self._keep(own, whole, state)
            left = max(left, float(state["left"]))
            for lane, number in enumerate(own):
                for source, (shape, axis) in enumerate(slips):
                    by = shape, axis, lane
                    velocity[source, number] = _work(state["velocity"], *by)
                    displacement[source, number] = _work(state["displacement"], *by)
                    felt = state["offset"][lane, :, axis]
                    offset[source, number] = shape @ felt / FORCE
        form = n, len(stations.nodes), 3
        return Found(
            velocity=velocity.reshape(*form, -1),
            displacement=displacement.reshape(*form, -1),
            offset=offset.reshape(form),
            marched=marched,
            runs=len(runs),
            left=left,
            notes=notes,
        )

    def _order(self, count: int) -> Iterator[int]:
        first = int(_GOLDEN * (min(self.work.sources) // GROUP_SIZE) * count) % count
        return ((first + n) % count for n in range(count))

    def _whole(self) -> bool:
        """Whether all cells of the fault are recorded."""
        cells = len(self.units.fault.area)
        return record_bytes(self.work.spec, cells) <= MOST_BYTES

    def _traction(self, whole: bool) -> Traction:
        self.work.phase("making the fault's traction")
        units, shapes = self.units, None
        if not whole:
            indices = units.patches().values()
            shares = [csr_array(units.share_of(index)[None]) for index in indices]
            shapes = csr_array(vstack(shares))
        found = traction_on(self.ground.grid, self.ground.medium, units.fault, shapes)
        self.work.phase("solving")
        return found

    def _slips(self, whole: bool) -> list[tuple[Float, int]]:
        """Return slip on cells or patches, and whether along strike, 0, or updip, 1."""
        units = self.units
        number = {patch: n for n, patch in enumerate(units.patches())}
        one = np.eye(len(number))
        return [
            (
                units.share_of(index) if whole else one[number[source.patch]],
                int(source.component != "strike"),
            )
            for index, source in ((i, units.sources[i]) for i in self.work.sources)
        ]

    def _stored(
        self, lanes: Any, whole: bool, notes: list[str]
    ) -> dict[str, Any] | None:
        """Return what a run has recorded, from this process's memory or the store."""
        keeper = Checkpoints(self.work.store, self._key("record", lanes))
        state = None
        if keeper.key not in self.work.warm:
            state = keeper.load()
            notes += keeper.notes
            if state is None or whole:
                return state
        found: dict[str, Any] = self.work.warm.get(keeper.key, lambda: state)
        return found

    def _keep(self, lanes: Any, whole: bool, state: dict[str, Any]) -> None:
        keeper = Checkpoints(self.work.store, self._key("record", lanes))
        keeper.save(state)
        discard(self.work.store, self._key("run", lanes))
        if not whole:
            self.work.warm.get(keeper.key, lambda: state)

    def _key(self, kind: str, lanes: Any) -> str:
        """Name all that changes a record's numbers."""
        work, fault = self.work, self.units.fault
        how = physics.settings(work.spec), self.steps.dt, self.steps.samples
        what: list[Any] = [work.facts["digest"], fault.name, [int(n) for n in lanes]]
        if not self._whole():
            sources = work.spec.sources.model_dump(mode="json")
            what += [sources, work.facts.get("order")]
        return digest_of("receivers", kind, what, how, work.backend)

    def _march(
        self,
        lanes: Any,
        stations: Receivers,
        traction: Traction,
        marched: int,
        runs: int,
    ) -> dict[str, Any]:
        work, each = self.work, self.steps.samples
        keeper = Checkpoints(work.store, self._key("run", lanes))

        def report(news: dict[str, Any]) -> None:
            keeper.note_progress(news)
            done = marched * each + int(news["solves_done"])
            work.report({"solves_done": done, "solves_expected": runs * each})

        loads = station_forces(self.ground.grid, stations, lanes)
        record = Recording(traction, np.zeros(0, dtype=np.int64))
        found = self.prepared.run(
            self.steps, loads, self.growth, record, report, work.should_stop, keeper
        )
        if found is None:
            raise CancelledError
        last, most = found.energy[-1], found.energy.max(axis=0)
        return {
            "velocity": found.velocity,
            "displacement": found.displacement,
            "offset": found.offset,
            "left": np.array((last / np.maximum(most, 1e-300))[: len(lanes)].max()),
            "solves": np.array(each),
        }


def _work(record: Any, shape: Float, axis: int, lane: int) -> Float:
    """(n_sample,) of one source, per metre of slip and newton."""
    moved = np.flatnonzero(shape)
    felt = record[lane, moved, axis].astype(np.float64)
    return np.asarray(shape[moved] @ felt / FORCE)
