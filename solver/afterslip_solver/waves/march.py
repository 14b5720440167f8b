"""Waves of up to four lanes through time, recorded on the ground."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from scipy.sparse import csr_array

from afterslip_common.source_time import SourceTime
from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.digits import MOST
from afterslip_solver.backend.waves import Voxels, WaveSteps, wave_steps
from afterslip_solver.model import Float, Int, Progress, ShouldStop
from afterslip_solver.waves.attenuation import Attenuation, attenuated
from afterslip_solver.waves.element import Scheme
from afterslip_solver.waves.fastest import SHARE, highest_frequency
from afterslip_solver.waves.grid import Medium, VoxelGrid, WaveError
from afterslip_solver.waves.loads import Loads
from afterslip_solver.waves.sides import Dampers, Sides, dampers

State = dict[str, Any]
Precision = Literal["fp32", "fp64", "int8"]

# after the source kinetic energy comes from what is stored: it cannot grow so far
_GROWTH = 100.0


class UnstableError(RuntimeError):
    """The energy of waves grows without a source."""


class Checkpointer(Protocol):
    """Stores states of a run between samples."""

    def load(self) -> State | None:
        """Return the newest state, or None."""

    def due(self) -> bool:
        """Whether a state is worth its cost; asked after every sample."""

    def save(self, state: State) -> None:
        """Store a state."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Times of a run.

    Attributes
    ----------
    dt : s. inner : steps between samples. samples : of the series, the first at 0.
    limit : s, of dt for stability.
    """

    dt: float
    inner: int
    samples: int
    limit: float

    @property
    def count(self) -> int:
        """Number of steps until the last sample."""
        return self.inner * (self.samples - 1)


class Places(Protocol):
    """What is found of displacements and velocities: `Receivers`, for one.

    ``matrix`` is what multiplies the values of its rows before `at`; None: nothing.
    """

    @property
    def matrix(self) -> csr_array | None:
        """(n, n_row)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of places and of components."""

    def rows(self, n_node: int) -> Int:
        """(n_row,) rows of all that `at` needs."""

    def at(self, values: Float) -> Float:
        """(n_lane, n_place, n_component) from values (n, lane)."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded.

    Attributes
    ----------
    stations : whose displacement and velocity are; may be none.
    surface : (n,) rows whose displacement is; may be empty.
    share : (n,) of the rows one node higher; None: the rows are on the ground.
    """

    stations: Places
    surface: Int
    share: Float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A recorded run; lanes first.

    Attributes
    ----------
    velocity, displacement : (n_lane, n_station, 3, n_sample) float32, m/s, m, where
        stations are recorded.
    offset : (n_lane, n_station, 3) m, displacement at the end.
    wavefield : (n_lane, n_surface, n_sample) float32, m.
    energy : (n_sample, n_lane) J, kinetic.
    """

    velocity: Any
    displacement: Any
    offset: Float
    wavefield: Any
    energy: Float


@dataclass(slots=True)
class Prepared:
    """Voxels in a backend's memory, with a step that is stable.

    Attributes
    ----------
    steps : of the backend. fastest : rad/s, highest frequency.
    """

    grid: VoxelGrid
    mass: Float
    held: Dampers
    steps: WaveSteps
    fastest: float
    _dt: float = field(default=0.0, init=False)

    @classmethod
    def of(
        cls,
        grid: VoxelGrid,
        medium: Medium,
        scheme: Scheme,
        sides: Sides,
        precision: Precision = "fp32",
        backend: str = "cpu",
        digits: int = MOST,
        attenuation: Attenuation | None = None,
        slabs: int = 1,
    ) -> Prepared:
        """Put voxels into a backend's memory and find their highest frequency.

        Parameters
        ----------
        digits : of INT8 products. attenuation : None: waves are elastic.
        slabs : parts along z, each on a GPU of its own.

        Raises
        ------
        BackendError
            There is no such backend, no INT8 product of this scheme, or there are too
            few GPUs or planes for the slabs.
        WaveError
            A quality factor is too low to be reached.
        """
        relaxing = None
        if attenuation is not None:
            medium, relaxing = attenuated(medium, attenuation)
        real = np.float32 if precision == "fp32" else np.float64
        betas = scheme.beta_lam, scheme.beta_mu
        moduli = medium.lam, medium.mu
        voxels = Voxels(grid.shape, grid.h, *moduli, *betas, relaxing)
        used = digits if precision == "int8" else 0
        steps = wave_steps(backend, voxels, real, used, slabs)
        mass = medium.node_mass(grid.h)
        held = dampers(grid, medium, mass, sides)
        return cls(grid, mass, held, steps, highest_frequency(steps, mass, held))

    def plan(
        self,
        duration: float,
        sampling: float,
        step: float | None = None,
        halve: int = 0,
    ) -> Steps:
        """Choose a step that divides the sampling.

        Parameters
        ----------
        duration, sampling : s. step : s, at most; None: what is stable.
        halve : how often to halve the step.

        Raises
        ------
        WaveError
            The step that was asked for is not stable.
        """
        limit = SHARE * 2.0 / self.fastest
        if step is not None and step > limit:
            raise WaveError(
                f"a step of {step:g} s is above the stable limit of these voxels, "
                f"{limit:.4g} s: leave waves.step out or make it smaller"
            )
        wanted = min(limit, sampling if step is None else step) / 2.0**halve
        inner = int(np.ceil(sampling / wanted * (1.0 - 1e-12)))
        samples = int(np.floor(duration / sampling * (1.0 + 1e-12))) + 1
        return Steps(sampling / inner, inner, samples, limit)

    def run(
        self,
        steps: Steps,
        loads: Loads,
        source: SourceTime,
        record: Recording,
        report: Progress = lambda _: None,
        should_stop: ShouldStop = lambda: False,
        keeper: Checkpointer | None = None,
    ) -> Series | None:
        """March from rest; None where it was asked to stop.

        Raises
        ------
        UnstableError
            Energy grows after the source has ended, or a number is not finite.
        """
        self._use(steps.dt)
        self.steps.begin(loads.rows, loads.values)
        run = _Run(self, steps, source, record)
        state = keeper.load() if keeper else None
        if state is not None and run.fits(state):
            run.restore(state)
        while run.done < steps.samples:
            if should_stop():
                return None
            run.sample()
            report({"solves_done": run.done, "solves_expected": steps.samples})
            if keeper and run.done < steps.samples and keeper.due():
                keeper.save(run.state())
        return run.series()

    def _use(self, dt: float) -> None:
        if dt == self._dt:
            return
        mass, rock = self.mass, self.mass > 0.0
        each = np.divide(1.0, mass, out=np.zeros_like(mass), where=rock)
        inverse = np.tile(each, 3)
        chosen = rock[self.held.rows % len(mass)]
        rows = self.held.rows[chosen]
        half = 0.5 * dt * self.held.dashpot[chosen] * inverse[rows]
        pull = dt * self.held.spring[chosen] * inverse[rows] / (1.0 + half)
        inverse[rows] /= 1.0 + half
        self.steps.prepare(dt, inverse, (rows, (1.0 - half) / (1.0 + half), pull))
        self._dt = dt


@dataclass(slots=True)
class _Run:
    """A run between two samples."""

    owner: Prepared
    steps: Steps
    source: SourceTime
    record: Recording
    done: int = 0
    arrays: State = field(default_factory=dict)
    _moments: Any = None
    _watched: Any = None

    def __post_init__(self) -> None:
        n, shape = self.steps.samples, self.record.stations.shape
        self.arrays = {
            "velocity": np.zeros((n, LANES, *shape), dtype=np.float32),
            "displacement": np.zeros((n, LANES, *shape)),
            "wavefield": np.zeros((n, len(self.record.surface), LANES), np.float32),
            "energy": np.zeros((n, LANES)),
        }
        times = self.steps.dt * np.arange(self.steps.inner * n)
        self._moments = self.source(times)
        stations = self.record.stations
        rows = stations.rows(self.owner.grid.n_node)
        self._watched = self.owner.steps.watch(rows, stations.matrix)

    def sample(self) -> None:
        """Record, and march on to the next sample."""
        steps, n, inner = self.owner.steps, self.done, self.steps.inner
        stations = self.record.stations
        self.arrays["displacement"][n] = stations.at(self._watched("u"))
        before = stations.at(self._watched("v"))
        if len(self.record.surface):
            self.arrays["wavefield"][n] = self._on_surface()
        # velocities stand half a step before and after displacements
        steps.step(float(self._moments[n * inner]))
        after = stations.at(self._watched("v"))
        self.arrays["velocity"][n] = 0.5 * (before + after)
        for number in range(n * inner + 1, (n + 1) * inner):
            steps.step(float(self._moments[number]))
        self.arrays["energy"][n] = steps.kinetic()
        self._check(n)
        self.done += 1

    def _on_surface(self) -> Float:
        """(n, lane) m."""
        steps, rows, share = self.owner.steps, self.record.surface, self.record.share
        low = steps.read("u", rows)
        if share is None:
            return low
        nx, ny, _ = self.owner.grid.shape
        high = steps.read("u", rows + nx * ny)
        return np.asarray(low + share[:, None] * (high - low))

    def _check(self, n: int) -> None:
        energy = self.arrays["energy"][: n + 1].max(axis=1)
        dt = self.steps.dt * self.steps.inner
        active = energy[: int(np.ceil(self.source.end / dt)) + 1].max()
        if np.isfinite(energy[n]) and energy[n] <= _GROWTH * active:
            return
        raise UnstableError(
            f"after {(n + 1) * dt:.4g} s the kinetic energy is {energy[n]:.3g} J, "
            f"while the source gave at most {active:.3g} J: the step of "
            f"{self.steps.dt:.4g} s is not stable, set waves.step to half of it"
        )

    def state(self) -> State:
        """Return all that is needed to go on; ``solves`` are samples."""
        own = {name: array[: self.done] for name, array in self.arrays.items()}
        times = np.array([self.steps.dt, float(self.steps.samples)])
        whole = {**own, **self.owner.steps.state(), "times": times}
        return {**whole, "solves": np.array(self.done)}

    def fits(self, state: State) -> bool:
        """Whether a state is of this run's steps."""
        times = np.array([self.steps.dt, float(self.steps.samples)])
        return "times" in state and np.array_equal(state["times"], times)

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.done = int(state["solves"])
        for name, array in self.arrays.items():
            array[: self.done] = state[name]
        self.owner.steps.restore(state)

    def series(self) -> Series:
        """Return what was recorded, sources first."""
        own = self.arrays
        return Series(
            velocity=np.moveaxis(own["velocity"], 0, -1),
            displacement=np.moveaxis(own["displacement"], 0, -1).astype(np.float32),
            offset=own["displacement"][-1],
            wavefield=own["wavefield"].transpose(2, 1, 0),
            energy=own["energy"],
        )
