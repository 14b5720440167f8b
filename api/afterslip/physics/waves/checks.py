"""Voxels of a campaign, and whether its files fit them; with the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from afterslip.errors import Problem, SpecError
from afterslip.physics.waves.forward import WaveForward
from afterslip.physics.waves.spec import MOST_VP_VS, WaveCampaign
from afterslip.readers.topography import ALONG_SIDE
from afterslip.spec.inputs import Inputs
from afterslip.units import KM

WaveSpec = WaveCampaign | WaveForward

# of the wavefield of one source
MOST_BYTES = 2e9
# points of the ground in the shortest wavelength: cubic between them is 3 % wrong then
_LEAST_POINTS = 6.0
_LEAST_VOXELS = 8
_LISTED = 10


@dataclass(frozen=True, slots=True)
class VoxelPlan:
    """How a domain is cut.

    Attributes
    ----------
    h : m. voxels : along x, y and depth. slowest, fastest : m/s, S and P waves.
    """

    h: float
    voxels: tuple[int, int, int]
    slowest: float
    fastest: float

    @property
    def count(self) -> float:
        """Number of voxels."""
        return float(np.prod(np.array(self.voxels, dtype=float)))


def plan_voxels(spec: WaveSpec, inputs: Inputs) -> VoxelPlan:
    """Return the voxels that carry the frequency in the slowest material."""
    parts = [*spec.model.layers, *spec.model.bodies]
    slowest = [part.vs * KM for part in parts]
    fastest = [part.vp * KM for part in parts]
    if inputs.grid is not None and np.isfinite(inputs.grid.vs).any():
        slowest.append(float(np.nanmin(inputs.grid.vs)))
        fastest.append(float(np.nanmax(inputs.grid.vp)))
    waves = spec.waves
    h = min(slowest) / (waves.frequency * waves.points_per_wavelength)
    return VoxelPlan(h, _counts(inputs, h), min(slowest), max(fastest))


def _counts(inputs: Inputs, h: float) -> tuple[int, int, int]:
    box = inputs.box
    lengths = (box.x[1] - box.x[0], box.y[1] - box.y[0], box.depth)
    x, y, z = (int(np.ceil(length / h * (1.0 - 1e-9))) for length in lengths)
    if inputs.topography is not None:
        along = (np.linspace(*side, ALONG_SIDE) for side in (box.x, box.y))
        z += int(np.ceil(float(inputs.topography.at(*np.meshgrid(*along)).max()) / h))
    return x, y, z


def surface_step(spec: WaveSpec, h: float) -> int:
    """Voxels between points of the ground; 0 where none are recorded."""
    surface = spec.waves.surface
    return 0 if surface is None else max(1, round(surface.spacing * KM / h))


def samples(spec: WaveSpec) -> int:
    """Length of the series, the sample at 0 included."""
    count = float(spec.waves.duration) / float(spec.waves.sampling)
    return int(np.floor(count * (1.0 + 1e-12))) + 1


def check(spec: WaveSpec, inputs: Inputs) -> VoxelPlan:
    """Return the voxels of a campaign or forward run whose files fit them.

    Raises
    ------
    SpecError
        With every problem found.
    """
    plan = plan_voxels(spec, inputs)
    found = [*_of_voxels(plan, spec), *_of_surface(plan, spec)]
    found += [*_of_stations(plan, spec, inputs), *_of_grid(spec, inputs)]
    if found:
        raise SpecError(found)
    return plan


def _of_voxels(plan: VoxelPlan, spec: WaveSpec) -> Iterator[Problem]:
    least = _LEAST_VOXELS + 2 * spec.waves.absorbing.width
    for axis, count in zip(("x", "y", "depth"), plan.voxels, strict=True):
        if count < least:
            yield Problem(
                f"model.domain.{axis}",
                None,
                f"holds {count} voxels of {plan.h / KM:.3g} km, and {least} are needed",
                "make the domain larger or waves.frequency higher",
            )


def _of_surface(plan: VoxelPlan, spec: WaveSpec) -> Iterator[Problem]:
    surface = spec.waves.surface
    if surface is None:
        return
    shortest = plan.slowest / spec.waves.frequency / KM
    if surface.spacing > shortest / _LEAST_POINTS * (1 + 1e-9):
        yield Problem(
            "waves.surface.spacing",
            surface.spacing,
            f"is too coarse for waves that are {shortest:.3g} km long",
            f"write {shortest / _LEAST_POINTS:.3g} or less",
        )
        return
    every = surface_step(spec, plan.h)
    points = (plan.voxels[0] // every + 1) * (plan.voxels[1] // every + 1)
    size = 12.0 * points * samples(spec)
    if size > MOST_BYTES:
        yield Problem(
            "waves.surface",
            None,
            f"makes {points:,} points with {samples(spec):,} samples, {size / 1e9:.1f} "
            f"GB a source, and {MOST_BYTES / 1e9:g} GB are allowed",
            "make spacing or sampling coarser, duration shorter, or record stations",
        )


def _of_stations(plan: VoxelPlan, spec: WaveSpec, inputs: Inputs) -> Iterator[Problem]:
    stations = inputs.stations or inputs.points
    width = spec.waves.absorbing.width * plan.h
    if stations is None or not width:
        return
    box = inputs.box
    half = [0.5 * n * plan.h for n in plan.voxels[:2]]
    x, y = stations.x - 0.5 * sum(box.x), stations.y - 0.5 * sum(box.y)
    inside = (np.abs(x) <= half[0] - width) & (np.abs(y) <= half[1] - width)
    for row in np.flatnonzero(~inside)[:_LISTED]:
        yield Problem(
            stations.place(int(row)),
            stations.name[row],
            f"is on the sponge, the outermost {width / KM:.3g} km",
            "make the domain larger, waves.absorbing.cells fewer, or remove it",
        )


def _of_grid(spec: WaveSpec, inputs: Inputs) -> Iterator[Problem]:
    grid = inputs.grid
    if grid is None or spec.waves.scheme != "orthogonal":
        return
    ratio = float(np.nanmax(grid.vp / grid.vs))
    if ratio > MOST_VP_VS:
        yield Problem(
            "model.grid.file",
            None,
            f"has vp/vs up to {ratio:.2f}, and the orthogonal element is worse than "
            f"others above {MOST_VP_VS:g}",
            "write waves.scheme: selective",
        )
