"""Waves under ground that is not flat."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, eigsh
from voxel_cases import RHO, VP, VS, host, rock, varied

from afterslip_common.geometry import Box, PlaneFault
from afterslip_common.source_time import smooth_step
from afterslip_solver.materials import Layer
from afterslip_solver.reference.layered_waves import ElasticLayer, layered_waves
from afterslip_solver.waves.attenuation import Attenuation, attenuated
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.fault import on_ground, plane_points
from afterslip_solver.waves.grid import VoxelGrid, WaveError
from afterslip_solver.waves.ground import covering, lowered
from afterslip_solver.waves.loads import moment_loads
from afterslip_solver.waves.march import Prepared, Recording
from afterslip_solver.waves.medium import sample_medium
from afterslip_solver.waves.reciprocal import FORCE, station_forces
from afterslip_solver.waves.record import receivers, surface_rows, surface_share
from afterslip_solver.waves.sides import Sides

NONE = np.zeros(0, dtype=np.int64)
SELECTIVE = SCHEMES["selective"]
OBLIQUE = np.array([[0.3, 0.2, -0.5], [0.2, -0.8, 0.4], [-0.5, 0.4, 0.5]]) * 1e18


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def prepare(request):
    """Return `Prepared.of` on each backend."""

    def make(grid, medium, sides, precision="fp64"):
        parts = grid, medium, SELECTIVE, sides
        return Prepared.of(*parts, precision, request.param)

    return make


class Slope:
    """A plane through a height at the origin, rising along x and y."""

    def __init__(self, along_x, along_y, height=37.0):
        self.rise, self.height = (along_x, along_y), height

    def at(self, x, y):
        return self.rise[0] * x + self.rise[1] * y + self.height


class Hills:
    """Ground as rough as the spec allows, and rougher."""

    def at(self, x, y):
        return 900.0 * np.sin(x / 731.0) * np.cos(y / 577.0 + 1.0) + 0.2 * x


def hilly(size=6e3, h=500.0):
    grid, relief = covering(Box((-size, size), (-size, size), size), h, Hills())
    return grid, relief, varied(grid, 4).filled(relief.fill)


def test_ground_raised_by_whole_voxels_gives_the_series_of_flat_ground(prepare):
    h, rise = 500.0, 3
    box = Box((-5e3, 5e3), (-5e3, 5e3), 5e3)
    raised = covering(box, h, Slope(0.0, 0.0, rise * h))
    deeper = Box(box.x, box.y, box.depth + rise * h)
    layers = [Layer("a", 1e3, 4e3, 2e3, 2600.0), Layer("b", 5e3, VP, VS, RHO)]
    # the box is stretched, and layers with it
    part = 1.0 + rise * h / box.depth
    thicker = [Layer("a", 1e3 * part, 4e3, 2e3, 2600.0), Layer("b", 9e3, VP, VS, RHO)]
    flat = VoxelGrid.covering(deeper, h)
    media = (
        sample_medium(raised[0], layers, relief=raised[1]),
        sample_medium(flat, thicker),
    )
    x, y = np.array([1.1e3, -700.0]), np.array([300.0, 1900.0])
    found = []
    for grid, medium, nodes, top in (
        (raised[0], media[0].filled(raised[1].fill), raised[1].nodes, rise * h),
        (flat, media[1], None, 0.0),
    ):
        at = np.array([100.0, 30.0, top - 2.2e3])
        ready = prepare(grid, medium, Sides(centre=tuple(at)))
        loads = moment_loads(grid, medium, at[None], OBLIQUE[None, None])
        record = Recording(receivers(grid, x, y, nodes), NONE)
        plan = ready.plan(4.0, 0.2)
        run = ready.run(plan, loads, smooth_step(1.0), record)
        found.append((run.offset, run.velocity))
    assert (raised[1].fill == 1.0).all()
    for mine, exact in zip(*found, strict=True):
        largest = np.abs(exact).max()
        # offsets are FP64, velocities are stored in FP32
        atol = 1e-12 if exact.dtype == np.float64 else 1e-7
        np.testing.assert_allclose(mine, exact, rtol=0.0, atol=atol * largest)


PLACES = np.array([[2e3, 3e3], [-1.2e3, 3e3], [3.3e3, -7e2], [-2.4e3, -1.9e3]])
SOURCE, TIMES, GROWTH = np.array([0.0, 0.0, 37.0 - 2.5e3]), 0.1 * np.arange(33), 2.0


def on_slope(prepare, ground, h):
    """(n, 3, time) m, displacement of places, before the sides answer."""
    grid, relief = covering(Box((-10e3, 10e3), (-10e3, 10e3), 11e3), h, ground)
    medium = rock(grid).filled(relief.fill)
    ready = prepare(grid, medium, Sides(centre=tuple(SOURCE)), "fp32")
    loads = moment_loads(grid, medium, SOURCE[None], OBLIQUE[None, None])
    record = Recording(receivers(grid, PLACES[:, 0], PLACES[:, 1], relief.nodes), NONE)
    plan = ready.plan(TIMES[-1], 0.1)
    found = ready.run(plan, loads, smooth_step(GROWTH), record).displacement[0]
    return found.transpose(0, 2, 1)


def turned(ground):
    """The same, of a half-space under a slope, by wavenumbers."""
    slope = np.array(ground.rise)
    across = np.append(-slope, 1.0) / np.hypot(1.0, np.linalg.norm(slope))
    along = np.array([1.0, 0.0, slope[0]]) / np.hypot(1.0, slope[0])
    # the third is at right angles to the slope
    axes = np.array([along, np.cross(across, along), across])
    top = np.array([0.0, 0.0, ground.height])
    places = (np.column_stack([PLACES, ground.at(*PLACES.T)]) - top) @ axes.T
    under = axes @ (SOURCE - top)
    parts = [ElasticLayer(bottom, VP, VS, RHO) for bottom in (1e3, np.inf)]
    where: Any = (places[:, :2] - under[:2], TIMES, -under[2])
    moment = axes @ OBLIQUE @ axes.T
    return (
        layered_waves(where[0], where[1], where[2], moment, smooth_step(GROWTH), parts)
        @ axes
    )


@pytest.mark.parametrize(
    "slope",
    [
        pytest.param((0.0, 0.0), marks=pytest.mark.slow),
        pytest.param((0.12, 0.0), marks=pytest.mark.slow),
        (0.37, 0.23),
    ],
)
def test_waves_of_a_slope_are_those_of_a_half_space_that_is_turned(prepare, slope):
    ground = Slope(*slope)
    exact = turned(ground)
    coarse, fine = (
        np.linalg.norm(on_slope(prepare, ground, h) - exact) / np.linalg.norm(exact)
        for h in (500.0, 250.0)
    )
    # the S wave of the source's 2 s is 28 voxels of 250 m; 2.0, 2.2 and 2.4 % measured,
    # for ground that is not at a plane of nodes even where it is flat
    assert fine < 0.03
    assert 1.0 < np.log2(coarse / fine) < 2.3


def test_energy_under_hills_is_constant(prepare):
    grid, relief, medium = hilly()
    assert ((relief.fill > 0.0) & (relief.fill < 1.0)).sum() > 500
    ready = prepare(grid, medium, Sides("free"))
    ready._use(ready.plan(10.0, 0.1).dt)
    own = ready.steps
    own.begin(NONE, np.zeros((0, 4)))
    u = np.random.default_rng(3).standard_normal((3, grid.n_node, 4))
    own.restore({"u": u * (ready.mass > 0)[:, None], "v": 0 * u})
    energies = []
    for _ in range(400):
        before = own.u.copy()
        own.step(0.0)
        stored = 0.5 * (before * own.force(own.u)).sum(axis=(0, 1))
        energies.append(own.kinetic() + host(stored))
    change = np.ptp(energies, axis=0) / np.mean(energies, axis=0)
    assert change.max() < 1e-12
    # nodes in air stay at rest
    assert not host(own.u)[:, ready.mass == 0.0].any()


def test_stations_on_a_hill_are_exchangeable(prepare):
    grid, relief, medium = hilly()
    ready = prepare(grid, medium, Sides(centre=(0.0, 0.0, -2e3)))
    x, y = np.array([1.3e3, -1.8e3]), np.array([-600.0, 2.1e3])
    stations = receivers(grid, x, y, relief.nodes)
    np.testing.assert_allclose(stations.weights.sum(axis=1), 1.0)
    plan, record = ready.plan(5.0, 0.1), Recording(stations, NONE)
    ends = [
        ready.run(
            plan, station_forces(grid, stations, range(n, n + 3)), smooth_step(1.0),
            record,
        ).offset[:3] / FORCE
        for n in (0, 3)
    ]  # fmt: skip
    # axis of the force, axis of the motion
    there, back = ends[0][:, 1], ends[1][:, 0]
    assert np.abs(there - back.T).max() < 1e-10 * np.abs(there).max()


@pytest.mark.parametrize("name", SCHEMES)
def test_the_highest_frequency_is_found_where_voxels_are_partly_air(name):
    grid, relief, _ = hilly(5e3)
    ready = Prepared.of(
        grid, rock(grid).filled(relief.fill), SCHEMES[name], Sides("free"), "fp64"
    )
    mass = np.tile(ready.mass, 3)
    root = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0.0)

    def product(v):
        u = np.zeros((3, grid.n_node, 4))
        u.reshape(-1, 4)[:, 0] = root * v.ravel()
        return root * ready.steps.slabs[0].steps.force(u).reshape(-1, 4)[:, 0]

    whole = LinearOperator((len(mass), len(mass)), matvec=product, dtype=np.float64)
    top = eigsh(whole, k=1, which="LA", return_eigenvectors=False, tol=1e-5)[0]
    # the step is 0.95 of the limit that follows
    assert 0.98 < ready.fastest / np.sqrt(top) < 1.0 + 1e-9


def test_rock_reaches_up_to_the_ground_and_layers_follow_it():
    ground, box, h = Slope(0.2, -0.1), Box((-4e3, 4e3), (-4e3, 4e3), 4e3), 250.0
    grid, relief = covering(box, h, ground)
    layers = [Layer("a", 1e3, 4e3, 2e3, 2600.0), Layer("b", 4e3, VP, VS, RHO)]
    medium = sample_medium(grid, layers, relief=relief)
    middle = [grid.axis(c)[:-1] + 0.5 * h for c in (0, 1)]
    height = ground.at(*np.meshgrid(*middle))
    # in columns without slivers, which are left out
    np.testing.assert_allclose(
        relief.fill.sum(axis=0) * h + grid.origin[2], height, atol=0.05 * h
    )
    assert not medium.rho[relief.fill == 0.0].any()
    soft = (np.isclose(medium.rho, 2600.0) * relief.fill).sum(axis=0) * h
    # with what the bottom that stays makes of 1 km
    thick = 1e3 * (1.0 + height / 4e3)
    assert np.abs(soft - thick).max() < 1.1 * h
    assert np.abs((soft - thick).mean()) < 0.55 * h
    assert medium.speeds()[:2] == pytest.approx((2e3, VP), rel=1e-6)


def test_faults_follow_the_ground_as_meshes_do():
    box, ground = Box((-20e3, 20e3), (-20e3, 20e3), 20e3), Slope(0.2, 0.1)
    plane = PlaneFault("f", 1e3, -2e3, 2e3, 30.0, 60.0, 6e3, 4e3)
    flat = plane_points(plane, 250.0)
    found = on_ground(flat, box, ground)
    height = ground.at(*flat.position[:, :2].T)
    depth = -flat.position[:, 2]
    wanted = height - depth * (1.0 + height / box.depth)
    np.testing.assert_allclose(found.position[:, 2], wanted)
    axes = np.stack([found.strike, found.updip, found.normal], axis=1)
    np.testing.assert_allclose(
        axes @ axes.transpose(0, 2, 1),
        np.tile(np.eye(3), (len(height), 1, 1)),
        atol=1e-12,
    )
    # corners of the surface that the rectangle becomes
    corners = plane.corners.copy()
    corners[:, 2] = box.stretched(corners[:, 2], ground.at(*corners[:, :2].T))
    a, b, c, d = corners
    exact = 0.5 * np.linalg.norm(np.cross(c - a, d - b))
    assert found.area.sum() == pytest.approx(exact, rel=2e-3)
    assert found.area.sum() != pytest.approx(flat.area.sum(), rel=2e-2)
    # the line from the first cell to the second is along strike
    step = found.position[1] - found.position[0]
    np.testing.assert_allclose(step / np.linalg.norm(step), found.strike[0], atol=1e-3)


def test_slip_in_voxels_that_are_mostly_air_is_moved_down_into_rock():
    box, ground, h = Box((-4e3, 4e3), (-4e3, 4e3), 4e3), Slope(0.0, 0.0, 100.0), 250.0
    grid, relief = covering(box, h, ground)
    points = np.array([[10.0, 20.0, 60.0], [10.0, 20.0, -60.0]])
    found = lowered(grid, relief.fill, points)
    np.testing.assert_allclose(found[:, 2], [0.0, -60.0], atol=1e-3)
    cell, _ = grid.cells(found)
    assert (relief.fill[tuple(cell[:, ::-1].T)] == 1.0).all()
    medium = sample_medium(grid, [Layer("b", 4e3, VP, VS, RHO)], relief=relief)
    high = np.array([[10.0, 20.0, 60.0]])
    assert len(moment_loads(grid, medium, high, OBLIQUE[None, None]).rows) > 0
    grid, relief = covering(box, h, Slope(0.1, 0.0, 0.0))
    medium = sample_medium(grid, [Layer("b", 4e3, VP, VS, RHO)], relief=relief)
    high[:, 0] -= 2e3
    with pytest.raises(WaveError, match=r"1 points of the source are in air.*z 0\.06"):
        moment_loads(grid, medium, high, OBLIQUE[None, None])


def test_the_wavefield_of_a_slope_is_what_stations_at_its_nodes_record(prepare):
    ground, box = Slope(0.2, -0.1), Box((-4e3, 4e3), (-4e3, 4e3), 4e3)
    grid, relief = covering(box, 500.0, ground)
    medium = rock(grid).filled(relief.fill)
    rows, i, j = surface_rows(grid, 4, relief.nodes)
    y, x = np.meshgrid(grid.axis(1)[j], grid.axis(0)[i], indexing="ij")
    stations = receivers(grid, x.ravel(), y.ravel(), relief.nodes)
    ready = prepare(grid, medium, Sides())
    at = np.array([[100.0, 30.0, -1.2e3]])
    loads = moment_loads(grid, medium, at, OBLIQUE[None, None])
    record = Recording(stations, rows, surface_share(relief.nodes, 4))
    found = ready.run(ready.plan(2.0, 0.2), loads, smooth_step(1.0), record)
    field = found.wavefield.reshape(4, len(x.ravel()), 3, -1)
    largest = np.abs(found.displacement).max()
    np.testing.assert_allclose(field, found.displacement, atol=1e-6 * largest)


@pytest.mark.gpu
@pytest.mark.parametrize("attenuates", [False, True])
@pytest.mark.parametrize(("precision", "limit"), [("fp64", 1e-12), ("fp32", 2e-5)])
def test_a_gpu_follows_waves_under_hills_as_the_cpu_does(attenuates, precision, limit):
    grid, relief, medium = hilly(8e3)
    planes = np.full(medium.mu.shape, 40.0)
    how = Attenuation((0.05, 0.8), 0.3, 2.0 * planes, planes) if attenuates else None
    at = np.array([[100.0, 30.0, -2.2e3]])
    loads = moment_loads(grid, medium, at, OBLIQUE[None, None])
    stations = receivers(grid, PLACES[:, 0], PLACES[:, 1], relief.nodes)
    found: list[Any] = []
    for backend in ("cpu", "gpu"):
        parts = grid, medium, SELECTIVE, Sides(centre=tuple(at[0]))
        ready = Prepared.of(*parts, precision, backend, attenuation=how)
        record = Recording(stations, NONE)
        found.append(ready.run(ready.plan(4.0, 0.2), loads, smooth_step(1.0), record))
    exact, mine = found
    most = np.abs(exact.offset).max()
    assert np.abs(mine.offset - exact.offset).max() < limit * most
    largest = np.abs(exact.velocity).max()
    # stored in FP32
    assert np.abs(mine.velocity - exact.velocity).max() < max(limit, 2e-7) * largest


def test_quality_factors_of_voxels_relax_as_those_of_planes():
    grid = VoxelGrid((5, 4, 7), (0.0, 0.0, -3e3), 500.0)
    medium = varied(grid)
    q = np.array([40.0, 40.0, 40.0, 60.0, 60.0, 60.0])
    planes = Attenuation((0.05, 0.8), 0.3, 2.0 * q, q)
    every = np.broadcast_to(q[:, None, None], medium.mu.shape)
    found = attenuated(medium, Attenuation((0.05, 0.8), 0.3, 2.0 * every, every))
    exact = attenuated(medium, planes)
    for mine, theirs in zip(found, exact, strict=True):
        for name in ("lam", "mu"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
