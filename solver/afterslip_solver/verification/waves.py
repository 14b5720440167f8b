"""Elastic waves on voxels against exact solutions and conservation laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from afterslip_common.geometry import Box, PlaneFault
from afterslip_common.source_time import smooth_step
from afterslip_solver.backend.base import LANES
from afterslip_solver.materials import Layer
from afterslip_solver.model import Float, Int
from afterslip_solver.reference.layered_waves import ElasticLayer, layered_waves
from afterslip_solver.reference.okada import Rectangles, surface_displacement
from afterslip_solver.reference.stokes import double_couple
from afterslip_solver.verification.check import (
    Check,
    Part,
    Size,
    at_least,
    at_most,
    not_run,
)
from afterslip_solver.verification.device import BACKEND
from afterslip_solver.verification.misfit import misfits
from afterslip_solver.waves.attenuation import Attenuation
from afterslip_solver.waves.dispersion import phase_error
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.fault import plane_points
from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.loads import (
    force_load,
    moment_loads,
    rigidity_at,
    slip_moment,
)
from afterslip_solver.waves.march import Prepared, Recording
from afterslip_solver.waves.medium import sample_medium
from afterslip_solver.waves.record import Receivers, receivers
from afterslip_solver.waves.sides import Sides

NAME = "waves"
_VP, _VS, _RHO = 6000.0, 3464.0, 2700.0
_SCHEME = SCHEMES["selective"]
# bottom, vp, vs, rho, qp, qs, the last two of LOH.3, as of 0.3 Hz here
_LAYERS = (
    (1e3, 4000.0, 2000.0, 2600.0, 120.0, 40.0),
    (np.inf, 6000.0, 3464.0, 2700.0, 155.9, 69.3),
)
_REFERENCE, _LOWEST = 0.3, 0.1
# highest frequency, Hz: edge of voxels, m, duration of the source, s, and sampling, s
_TO_FREQUENCY = {0.4: (400.0, 3.0, 0.1), 1.0: (250.0, 1.2, 0.05)}
_NOTHING: Int = np.zeros(0, dtype=np.int64)


def dispersion(_: Size) -> Iterator[Check]:
    """Speed of S waves over all directions, at 15 voxels in a wavelength."""
    for ratio in (3.0**0.5, 2.5, 5.0):
        yield at_most(
            NAME,
            f"worst S speed at 15 voxels, vp/vs {ratio:.3g}",
            phase_error(15.0, ratio, _SCHEME).s_worst,
            8e-3,
            "symbol of the selective element with leapfrog",
            "the trilinear element has 0.9, 1.0 and 3.2 %",
            6e-3,
        )


def conservation(size: Size) -> Iterator[Check]:
    """Energy of a free box, and source and receiver exchanged."""
    n = 10 if size == "small" else 24
    grid, medium = _box((n + 3, n + 1, n)), _varied((n - 1, n, n + 2))
    ready = _prepared(grid, medium, Sides("free"), "fp64")
    yield at_most(
        NAME,
        "change of energy in a free box, 400 steps",
        _energy_change(ready, n),
        1e-11,
        "invariant of leapfrog",
        "rounding of FP64",
        1e-12,
    )
    held = _prepared(grid, medium, Sides(centre=(0.0, 0.0, -2e3)), "fp64")
    a, b = (3, 4, 3), (n - 2, n - 3, n - 1)
    plan = held.plan(5.0, 0.1)
    ends = [
        _run(held, plan, force_load(grid, here), _at(grid, [there])).offset[:3, 0]
        for here, there in ((a, b), (b, a))
    ]
    yield at_most(
        NAME,
        "source and receiver exchanged, FP64",
        float(np.abs(ends[0] - ends[1].T).max() / np.abs(ends[0]).max()),
        1e-10,
        "reciprocity",
        "stiffness, mass and dampers are symmetric",
        1e-12,
    )


def whole_space(size: Size) -> Iterator[Check]:
    """Compare a double couple in a whole space, before its sides answer."""
    edges = (800.0, 500.0) if size == "small" else (500.0, 300.0)
    coarse, fine = (_stokes(h) for h in edges)
    order = np.log(coarse / fine) / np.log(edges[0] / edges[1])
    reference = "Aki & Richards 4.32"
    yield at_least(
        NAME, "double couple in a whole space, order", order, 1.6, reference,
        "second order; the source is a point", 1.9,
    )  # fmt: skip
    yield at_most(
        NAME, "the same, L2 on finer voxels", fine, 0.02, reference,
        f"{_VS * 2.0 / edges[1]:.0f} voxels in the S wave of the source's 2 s", 0.01,
    )  # fmt: skip


def offsets(size: Size) -> Iterator[Check]:
    """Late displacement behind springs at the sides."""
    side, h = (12e3, 500.0) if size == "small" else (24e3, 400.0)
    grid = VoxelGrid.covering(Box((-side, side), (-side, side), side), h)
    medium = _uniform(grid)
    ready = _prepared(grid, medium, Sides(centre=(0.0, 0.0, -3.5e3)), "fp32")
    fault = plane_points(PlaneFault("", 0.0, 0.0, 2e3, 0.0, 90.0, 4e3, 3e3), 0.5 * h)
    slip = np.stack([fault.strike, fault.updip], axis=1)
    area = rigidity_at(grid, medium, fault.position) * fault.area
    moment = slip_moment(area, slip, fault.normal)
    loads = moment_loads(grid, medium, fault.position, moment)
    xy = np.array([[3e3, 3e3], [-2e3, 4e3], [4e3, -1.5e3], [-5e3, -4e3], [1e3, 6e3]])
    places = receivers(grid, xy[:, 0], xy[:, 1])
    found = _run(ready, ready.plan(1.5 * side / 1e3, 0.5), loads, places).offset
    rectangle = Rectangles(0.0, 0.0, 2e3, 0.0, 90.0, 4e3, 3e3)
    ratio = (_VP / _VS) ** 2
    poisson = (ratio - 2.0) / (2.0 * (ratio - 1.0))
    for lane, name in enumerate(("strike", "dip")):
        exact = surface_displacement(xy, rectangle, np.eye(3)[lane], poisson)
        yield at_most(
            NAME,
            f"static offset, {name} slip, largest",
            float(np.abs(found[lane] - exact).max() / np.abs(exact).max()),
            0.035 if size == "small" else 0.02,
            "Okada's half-space",
            "springs at the sides are approximate; error falls with their distance",
            0.02 if size == "small" else 0.01,
        )


def layers(size: Size) -> Iterator[Check]:
    """Compare a layer over a half-space, without and with attenuation.

    Structure, source and receiver are those of the problems LOH.1 and LOH.3; the
    source is slower, so that voxels of 250 or 400 m carry it.
    """
    for name, attenuates in (("LOH.1", False), ("LOH.3", True)):
        if size == "small":
            reason = "--size full runs it"
            yield not_run(NAME, name, "own sum over wavenumbers", reason)
            continue
        for highest, (h, _, sampling) in _TO_FREQUENCY.items():
            found, exact = over_layers(highest, attenuates)
            misfit = misfits(found, exact, sampling, (_LOWEST, highest))
            voxels = _LAYERS[0][2] / (h * highest)
            for kind, value in zip(("envelope", "phase"), misfit, strict=True):
                yield at_most(
                    NAME,
                    f"{name} at (6, 8) km, {kind} misfit, 0.1 to {highest:g} Hz",
                    value,
                    0.05,
                    "own sum over wavenumbers",
                    f"{voxels:.3g} voxels in the shortest S wave; sides 11 km behind",
                    0.03,
                )


def run(size: Size) -> Iterator[Check]:
    """Measure all of it."""
    for part in PARTS.values():
        yield from part(size)


PARTS: dict[str, Part] = {
    "dispersion": dispersion,
    "conservation": conservation,
    "whole space": whole_space,
    "offsets": offsets,
    "layers": layers,
}


def _box(shape: tuple[int, int, int], h: float = 500.0) -> VoxelGrid:
    nx, ny, nz = shape
    corner = (-0.5 * h * (nx - 1), -0.5 * h * (ny - 1), -h * (nz - 1))
    return VoxelGrid(shape, corner, h)


def _uniform(grid: VoxelGrid) -> Medium:
    nx, ny, nz = grid.shape
    mu, whole = _RHO * _VS**2, _RHO * _VP**2
    parts = (whole - 2.0 * mu, mu, _RHO)
    arrays = (np.full((nz - 1, ny - 1, nx - 1), p, dtype=np.float32) for p in parts)
    return Medium(*arrays)


def _varied(shape: tuple[int, int, int]) -> Medium:
    random = np.random.default_rng(0)
    mu, ratio, rho = (
        random.uniform(low, high, shape)
        for low, high in ((1e10, 4e10), (0.5, 4.0), (2000.0, 3300.0))
    )
    return Medium(*(part.astype(np.float32) for part in (ratio * mu, mu, rho)))


def _prepared(
    grid: VoxelGrid, medium: Medium, sides: Sides, precision: Any
) -> Prepared:
    return Prepared.of(grid, medium, _SCHEME, sides, precision, BACKEND.get())


def _at(grid: VoxelGrid, ijk: Any) -> Receivers:
    """Record nodes themselves."""
    nodes = np.repeat(grid.node(np.asarray(ijk))[:, None], 16, axis=1)
    weights = np.zeros(nodes.shape)
    weights[:, 0] = 1.0
    return Receivers(nodes, weights)


def _run(ready: Prepared, plan: Any, loads: Any, places: Receivers) -> Any:
    found = ready.run(plan, loads, smooth_step(2.0), Recording(places, _NOTHING))
    assert found is not None  # noqa: S101 - nobody stops it
    return found


def _energy_change(ready: Prepared, n: int) -> float:
    """Relative change of 1/2 v M v + 1/2 u K u', u and u' the ends of a step."""
    grid, own = ready.grid, ready.steps.slabs[0].steps
    # a run fixes the step
    _run(
        ready, ready.plan(0.1, 0.1), force_load(grid, (2, 2, 2)), _at(grid, [(1, 1, 1)])
    )
    u = np.random.default_rng(n).standard_normal((3, grid.n_node, LANES))
    own.restore({"u": u, "v": 0.0 * u})
    energies = []
    for _ in range(400):
        before = own.xp.asarray(own.state()["u"]).copy()
        own.step(0.0)
        force = own.force(own.xp.asarray(own.state()["u"]))
        stored = 0.5 * (before * force).sum(axis=(0, 1))
        energies.append(own.kinetic() + _host(stored))
    values = np.array(energies)
    return float((np.ptp(values, axis=0) / values.mean(axis=0)).max())


def _host(array: Any) -> Float:
    return np.asarray(array.get() if hasattr(array, "get") else array)


def over_layers(highest: float, attenuates: bool) -> tuple[Float, Float]:
    """(3, n_sample) m/s of voxels, and of the sum over wavenumbers, 10 km away.

    Parameters
    ----------
    highest : Hz, 0.4 or 1. attenuates : with the quality factors of LOH.3.
    """
    h, rise, sampling = _TO_FREQUENCY[highest]
    side, deep, source = 19e3, 15e3, 2e3
    grid = VoxelGrid.covering(Box((-side, side), (-side, side), deep), h)
    rock = [Layer(f"to {v[0]:g} m", min(v[0], deep), *v[1:4]) for v in _LAYERS]
    medium = sample_medium(grid, rock)
    quality = None
    if attenuates:
        soft = -(grid.axis(2)[:-1] + 0.5 * h) < _LAYERS[0][0]
        own = (np.where(soft, *(v[n] for v in _LAYERS)) for n in (4, 5))
        quality = Attenuation((0.05, 2.0 * highest), _REFERENCE, *own)
    ready = Prepared.of(
        grid,
        medium,
        _SCHEME,
        Sides(centre=(0.0, 0.0, -source)),
        backend=BACKEND.get(),
        attenuation=quality,
    )
    moment = np.zeros((3, 3))
    moment[0, 1] = moment[1, 0] = 1e18
    at = np.array([[0.0, 0.0, -source]])
    loads = moment_loads(grid, medium, at, moment[None, None])
    place, growth = np.array([[6e3, 8e3]]), smooth_step(rise)
    plan = ready.plan(10.0, sampling)
    record = Recording(receivers(grid, *place.T), _NOTHING)
    series = ready.run(plan, loads, growth, record)
    assert series is not None  # noqa: S101 - nobody stops it
    times = np.asarray(sampling * np.arange(plan.samples), dtype=np.float64)
    parts = [
        ElasticLayer(*v, _REFERENCE) if attenuates else ElasticLayer(*v[:4])
        for v in _LAYERS
    ]
    exact = layered_waves(place, times, source, moment, growth, parts)[0].T
    whole = series.displacement[0, 0].astype(np.float64)
    # of both in the same way
    found, wanted = (np.gradient(u, sampling, axis=1) for u in (whole, exact))
    return found, wanted


def _stokes(h: float) -> float:
    """Relative L2 error of displacement at three places through 3 s."""
    box, middle = Box((-12e3, 12e3), (-12e3, 12e3), 24e3), (0.0, 0.0, -12e3)
    grid = VoxelGrid.covering(box, h)
    medium = _uniform(grid)
    ready = _prepared(grid, medium, Sides(top=True, centre=middle), "fp64")
    source = np.array([[10.0, 20.0, -12e3 + 30.0]])
    moment = np.zeros((1, 1, 3, 3))
    moment[..., 0, 2] = moment[..., 2, 0] = 1e18
    loads = moment_loads(grid, medium, source, moment)
    wanted = np.array([[4e3, 3e3, -10e3], [-3e3, 2e3, -16e3], [2.5e3, 4e3, -9e3]])
    ijk = np.rint(grid.place(wanted)).astype(np.int64)
    plan = ready.plan(3.0, 0.1)
    found = _run(ready, plan, loads, _at(grid, ijk)).displacement[0].swapaxes(1, 2)
    growth: Callable[[Float], Float] = smooth_step(2.0)
    times = np.asarray(0.1 * np.arange(plan.samples), dtype=np.float64)
    places = np.array(grid.origin) + grid.h * ijk - source
    exact = double_couple(places, times, lambda t: 1e18 * growth(t), _VP, _VS, _RHO)
    error = np.linalg.norm(found - exact, axis=(1, 2))
    return float((error / np.linalg.norm(exact, axis=(1, 2))).max())
