"""Waves through time against exact solutions and conservation laws."""

import numpy as np
import pytest
from scipy.sparse import random_array
from voxel_cases import (
    RHO,
    VP,
    VS,
    at_nodes,
    box,
    host,
    rock,
    varied,
)

from afterslip_common.geometry import Box
from afterslip_common.source_time import smooth_step
from afterslip_solver.reference.okada import Rectangles, surface_displacement
from afterslip_solver.reference.stokes import double_couple, static_double_couple
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.grid import VoxelGrid, WaveError
from afterslip_solver.waves.loads import (
    force_load,
    moment_loads,
    rigidity_at,
    slip_moment,
)
from afterslip_solver.waves.march import Prepared, Recording, UnstableError
from afterslip_solver.waves.record import receivers, surface_rows
from afterslip_solver.waves.sides import Sides

NONE = np.zeros(0, dtype=np.int64)
SELECTIVE = SCHEMES["selective"]


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def prepare(request):
    """Return `Prepared.of` on each backend."""

    def make(grid, medium, sides, scheme, precision="fp32"):
        return Prepared.of(grid, medium, sides, scheme, precision, request.param)

    return make


def pulse(s, width):
    """A smooth bump that is zero beyond its width, and its derivative."""
    x = np.clip(s / width, -1.0, 1.0)
    return (1.0 - x**2) ** 5, -10.0 * x * (1.0 - x**2) ** 4 / width


def plane_wave_error(prepare, voxels, scheme, wave):
    """Relative error of an oblique pulse inside a box that its sides do not reach."""
    h = 12e3 / voxels
    grid = box((voxels + 1,) * 3, h)
    steps = prepare(grid, rock(grid), scheme, Sides("free"), "fp64")
    way = np.array([2.0, 1.0, 1.0]) / 6**0.5
    speed, shape = (VP, way) if wave == "P" else (VS, np.array([0, 1, -1]) / 2**0.5)
    axes = [grid.axis(c) for c in range(3)]
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    along = (x * way[0] + y * way[1] + (z + 6e3) * way[2]).ravel()
    # the same part of the limit on each grid
    plan = steps.plan(1e3, 2e3 / speed / (voxels // 6))
    count = voxels // 6 * plan.inner
    steps._use(plan.dt)
    steps.steps.begin(NONE, np.zeros((0, 4)))
    field = shape[:, None, None] * np.ones(4)
    u = field * pulse(along, 3e3)[0][:, None]
    rate = -speed * pulse(along + 0.5 * speed * plan.dt, 3e3)[1]
    steps.steps.restore({"u": u, "v": field * rate[:, None]})
    for _ in range(count):
        steps.steps.step(0.0)
    # what the sides send in has not arrived here
    inner = np.max(np.abs([x, y, z + 6e3]), axis=0) < 2.01e3
    exact = field * pulse(along - speed * count * plan.dt, 3e3)[0][:, None]
    error = (host(steps.steps.u) - exact)[:, inner.ravel(), 0]
    return np.linalg.norm(error) / np.linalg.norm(exact[:, inner.ravel(), 0])


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("wave", ["S", "P"])
def test_plane_waves_converge_with_order_2(prepare, name, wave):
    coarse, fine = (plane_wave_error(prepare, n, SCHEMES[name], wave) for n in (24, 36))
    order = np.log(coarse / fine) / np.log(36 / 24)
    assert order == pytest.approx(2.0, abs=0.2)
    assert fine < 0.05


def test_energy_of_a_free_box_is_constant(prepare):
    grid = box((9, 8, 7))
    steps = prepare(grid, varied(grid, air=True), SELECTIVE, Sides("free"), "fp64")
    plan = steps.plan(10.0, 0.1)
    steps._use(plan.dt)
    own = steps.steps
    own.begin(NONE, np.zeros((0, 4)))
    u = np.random.default_rng(3).standard_normal((3, grid.n_node, 4))
    own.restore({"u": u * (steps.mass > 0)[:, None], "v": 0 * u})
    energies = []
    for _ in range(400):
        before = own.u.copy()
        own.step(0.0)
        # the invariant of leapfrog: u K u of the two ends of a step
        stored = 0.5 * (before * own.force(own.u)).sum(axis=(0, 1))
        energies.append(own.kinetic() + host(stored))
    change = np.ptp(energies, axis=0) / np.mean(energies, axis=0)
    assert change.max() < 1e-12


@pytest.mark.parametrize("kind", ["spring_dashpot", "sponge", "free"])
def test_source_and_receiver_are_exchangeable(prepare, kind):
    grid = box((14, 12, 10))
    sides = Sides(kind, cells=3, centre=(0.0, 0.0, -2e3))
    steps = prepare(grid, varied(grid, air=True), SELECTIVE, sides, "fp64")
    a, b = (4, 5, 3), (10, 8, 9)
    plan = steps.plan(6.0, 0.1)
    found = [
        steps.run(
            plan,
            force_load(grid, here),
            smooth_step(1.0),
            Recording(at_nodes(grid, [there]), NONE),
        ).displacement[:3, 0]
        for here, there in ((a, b), (b, a))
    ]
    scale = np.abs(found[0]).max()
    # recorded in FP32; the offset is not
    assert np.abs(found[0] - found[1].swapaxes(0, 1)).max() < 1e-7 * scale
    ends = [
        steps.run(
            plan,
            force_load(grid, here),
            smooth_step(1.0),
            Recording(at_nodes(grid, [there]), NONE),
        ).offset[:3, 0]
        for here, there in ((a, b), (b, a))
    ]
    assert np.abs(ends[0] - ends[1].T).max() < 1e-10 * np.abs(ends[0]).max()


def stokes_error(prepare, h, scheme):
    grid = VoxelGrid.covering(Box((-12e3, 12e3), (-12e3, 12e3), 24e3), h)
    middle = (0.0, 0.0, -12e3)
    steps = prepare(grid, rock(grid), scheme, Sides(top=True, centre=middle), "fp64")
    source = np.array([[10.0, 20.0, -12e3 + 30.0]])
    moment = np.zeros((1, 1, 3, 3))
    moment[..., 0, 2] = moment[..., 2, 0] = 1e18
    loads = moment_loads(grid, rock(grid), source, moment)
    wanted = np.array([[4e3, 3e3, -10e3], [-3e3, 2e3, -16e3], [2.5e3, 4e3, -9e3]])
    ijk = np.rint(grid.place(wanted)).astype(int)
    plan, growth = steps.plan(3.0, 0.1), smooth_step(2.0)
    found = steps.run(plan, loads, growth, Recording(at_nodes(grid, ijk), NONE))
    times = 0.1 * np.arange(plan.samples)
    places = np.array(grid.origin) + grid.h * ijk - source
    exact = double_couple(places, times, lambda t: 1e18 * growth(t), VP, VS, RHO)
    got = found.displacement[0].swapaxes(1, 2)
    own = np.linalg.norm(got - exact, axis=(1, 2)) / np.linalg.norm(exact, axis=(1, 2))
    rate = np.gradient(exact, 0.1, axis=1).swapaxes(1, 2)[:, :, 2:-2]
    speed = np.abs(found.velocity[0][:, :, 2:-2] - rate).max() / np.abs(rate).max()
    return own.max(), speed


def test_a_double_couple_moves_a_whole_space_as_stokes_says(prepare):
    # waves of 2 s are 9 voxels of 800 m long, and 14 of 500 m: 3.6 and 1.4 %
    coarse, speed = stokes_error(prepare, 800.0, SELECTIVE)
    fine, finer_speed = stokes_error(prepare, 500.0, SELECTIVE)
    assert coarse < 0.05
    # order 2 would be 0.39
    assert fine < 0.5 * coarse
    assert speed < 0.15
    assert finer_speed < 0.75 * speed


def test_the_reference_of_a_double_couple_ends_at_kelvins_derivative():
    points = np.array([[3e3, 2e3, 1e3], [1e3, -2e3, 4e3]])
    mu = RHO * VS**2
    lam, d = RHO * VP**2 - 2 * mu, 1.0
    late = double_couple(points, np.array([30.0]), smooth_step(2.0), VP, VS, RHO)[:, 0]
    limit = static_double_couple(points, 1.0, lam, mu)
    np.testing.assert_allclose(late, limit, rtol=1e-9)

    def kelvin(x, i):
        r, nu = np.linalg.norm(x), lam / (2 * (lam + mu))
        own = (3 - 4 * nu) * np.eye(3)[i] / r + x[i] * x / r**3
        return own / (16 * np.pi * mu * (1 - nu))

    e = d * np.eye(3)
    for point, expected in zip(points, limit, strict=True):
        xz = kelvin(point - e[2], 0) - kelvin(point + e[2], 0)
        zx = kelvin(point - e[0], 2) - kelvin(point + e[0], 2)
        np.testing.assert_allclose((xz + zx) / (2 * d), expected, rtol=1e-6)


def test_late_displacement_is_okadas(prepare):
    grid = VoxelGrid.covering(Box((-12e3, 12e3), (-12e3, 12e3), 12e3), 500.0)
    sides = Sides(centre=(0.0, 0.0, -3.5e3))
    steps = prepare(grid, rock(grid), SELECTIVE, sides)
    # 1 m along strike, and up, on 4 x 3 km, strike north and vertical
    along, down = np.meshgrid(np.arange(-1875.0, 2e3, 250), np.arange(2125.0, 5e3, 250))
    points = np.column_stack([0 * along.ravel(), along.ravel(), -down.ravel()])
    normal = np.tile([1.0, 0.0, 0.0], (len(points), 1))
    slip = np.tile([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], (len(points), 1, 1))
    area = rigidity_at(grid, rock(grid), points) * 250.0**2
    loads = moment_loads(grid, rock(grid), points, slip_moment(area, slip, normal))
    xy = np.array([[3e3, 3e3], [-2e3, 4e3], [4e3, -1.5e3], [-5e3, -4e3], [1e3, 6e3]])
    record = Recording(receivers(grid, *xy.T), NONE)
    found = steps.run(steps.plan(20.0, 1.0), loads, smooth_step(2.0), record)
    rectangle = Rectangles(0.0, 0.0, 2e3, 0.0, 90.0, 4e3, 3e3)
    lam = RHO * (VP**2 - 2 * VS**2)
    poisson = lam / (2 * (lam + RHO * VS**2))
    for lane, own in enumerate(([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])):
        exact = surface_displacement(xy, rectangle, own, poisson)
        # sides at 2.4 times the farthest edge of the fault: 2.6 % and 1.5 % measured
        error = np.abs(found.offset[lane] - exact).max() / np.abs(exact).max()
        assert error < 0.035


def test_a_sponge_and_dashpots_take_the_waves_out(prepare):
    grid = box((33, 33, 17), 500.0)
    source = np.array([[0.0, 0.0, -4e3]])
    moment = np.zeros((1, 1, 3, 3))
    moment[0, 0] = 1e18 * np.eye(3)
    loads = moment_loads(grid, rock(grid), source, moment)
    left = {}
    for kind in ("spring_dashpot", "sponge", "free"):
        sides = Sides(kind, cells=8, centre=(0.0, 0.0, -4e3))
        steps = prepare(grid, rock(grid), SELECTIVE, sides)
        run = steps.run(
            steps.plan(8.0, 0.25),
            loads,
            smooth_step(1.0),
            Recording(at_nodes(grid, [(5, 5, 5)]), NONE),
        )
        left[kind] = run.energy[-1, 0] / run.energy[:, 0].max()
    assert left["free"] > 0.05
    assert left["spring_dashpot"] < 3e-3
    assert left["sponge"] < 3e-4


def test_single_precision_is_far_below_the_dispersion(prepare):
    grid = box((21, 21, 13))
    loads = force_load(grid, (10, 10, 8))
    record = Recording(receivers(grid, np.array([2e3]), np.array([1.2e3])), NONE)
    found = {}
    for precision in ("fp32", "fp64"):
        steps = prepare(grid, varied(grid), SELECTIVE, Sides(), precision)
        plan = steps.plan(10.0, 0.1)
        found[precision] = steps.run(plan, loads, smooth_step(1.0), record).displacement
    worst = np.abs(found["fp32"] - found["fp64"]).max()
    assert worst < 2e-5 * np.abs(found["fp64"]).max()


def test_a_run_goes_on_from_a_state_bit_for_bit(prepare):
    grid = box((12, 11, 9))
    steps = prepare(grid, varied(grid), SELECTIVE, Sides())
    plan, loads = steps.plan(3.0, 0.1), force_load(grid, (6, 5, 5))
    x, y = np.array([1e3, -500.0]), np.array([300.0, 900.0])
    record = Recording(receivers(grid, x, y), surface_rows(grid, 2)[0])
    whole = steps.run(plan, loads, smooth_step(1.0), record)

    class Keeper:
        stored = None
        asked = 0

        def load(self):
            return self.stored

        def due(self):
            self.asked += 1
            return self.asked == 7

        def save(self, state):
            self.stored = {name: np.array(value) for name, value in state.items()}

    keeper = Keeper()
    assert steps.run(plan, loads, smooth_step(1.0), record, keeper=keeper) is not None
    assert keeper.stored is not None
    assert int(keeper.stored["solves"]) == 7
    again = steps.run(plan, loads, smooth_step(1.0), record, keeper=keeper)
    for name in ("velocity", "displacement", "offset", "wavefield", "energy"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))
    # a state of other steps is not taken
    shorter = steps.run(
        steps.plan(2.0, 0.1), loads, smooth_step(1.0), record, keeper=keeper
    )
    np.testing.assert_array_equal(shorter.velocity, whole.velocity[..., :21])


def test_a_step_above_the_limit_is_refused_and_one_that_grows_is_noticed(prepare):
    grid = box((9, 9, 9))
    steps = prepare(grid, rock(grid), SELECTIVE, Sides("free"))
    limit = steps.plan(20.0, 0.1).limit
    with pytest.raises(WaveError, match=r"step of 0.3 s is above the stable limit"):
        steps.plan(20.0, 0.3, step=0.3)
    halved = steps.plan(20.0, 0.1, halve=1)
    assert halved.dt <= 0.5 * limit
    # voxels that pretend to be slower than they are
    steps.fastest *= 0.4
    record = Recording(at_nodes(grid, [(3, 3, 3)]), NONE)
    with pytest.raises(UnstableError, match=r"set waves\.step to half"):
        steps.run(
            steps.plan(20.0, 0.2), force_load(grid, (4, 4, 4)), smooth_step(0.5), record
        )


def test_sources_outside_and_in_air_are_refused():
    grid = box((9, 8, 7))
    medium = varied(grid, air=True)
    moment = np.zeros((1, 1, 3, 3))
    with pytest.raises(WaveError, match=r"outside the voxels.*x 9\.00"):
        moment_loads(grid, medium, np.array([[9e3, 0.0, -1e3]]), moment)
    place = np.array(grid.origin) + grid.h * np.array([[1.5, 1.5, 5.5]])
    with pytest.raises(WaveError, match="in air"):
        moment_loads(grid, medium, place, moment)


def test_moment_tensors_give_no_force_and_no_torque():
    grid = box((9, 8, 7))
    random = np.random.default_rng(5)
    moment = random.standard_normal((2, 1, 3, 3))
    moment = moment + moment.swapaxes(2, 3)
    points = np.array([[100.0, 200.0, -1e3], [-400.0, 90.0, -1.6e3]])
    loads = moment_loads(grid, rock(grid), points, moment)
    component, node = np.divmod(loads.rows, grid.n_node)
    nx, ny, _ = grid.shape
    place = grid.h * np.stack([node % nx, node // nx % ny, node // (nx * ny)])
    force = np.zeros((3, len(node)))
    force[component, np.arange(len(node))] = loads.values[:, 0]
    first = np.einsum("in,jn->ij", force, place)
    np.testing.assert_allclose(first, moment[:, 0].sum(axis=0), atol=1e-9)
    assert np.abs(force.sum(axis=1)).max() < 1e-15


def test_stations_between_nodes_are_cubic():
    grid = box((11, 10, 4))
    x, y = np.array([123.0, -2450.0, 2400.0]), np.array([-77.0, 2200.0, -2249.0])
    found = receivers(grid, x, y)
    nx, ny, _ = grid.shape
    at = [grid.axis(0)[found.nodes % nx], grid.axis(1)[found.nodes // nx % ny]]

    def field(a, b):
        return 1.0 + a - 2e-3 * b + 1e-6 * a * b**2 - 1e-9 * a**3

    values = (field(*at) * found.weights).sum(axis=1)
    np.testing.assert_allclose(values, field(x, y), rtol=1e-12)
    assert (found.nodes // (nx * ny) == 3).all()


@pytest.mark.parametrize("each", [40, 3000])
def test_a_matrix_times_rows_of_a_field_is_that_of_scipy(prepare, each):
    grid = box((14, 12, 10))
    ready = prepare(grid, rock(grid), SELECTIVE, Sides("free"))
    ready._use(1e-3)
    own, random = ready.steps, np.random.default_rng(5)
    own.begin(NONE, np.zeros((0, 4)))
    u = random.standard_normal((3, grid.n_node, 4)).astype(np.float32)
    own.restore({"u": u, "v": -2.0 * u})
    rows = np.sort(random.choice(3 * grid.n_node, 4000, replace=False))
    matrix = random_array((7, 4000), density=each / 4000, format="csr", rng=random)
    exact = matrix @ u.reshape(-1, 4)[rows].astype(np.float64)
    look = own.watch(rows, matrix)
    np.testing.assert_allclose(look("u"), exact, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(look("v"), -2.0 * exact, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(own.watch(rows, None)("u"), own.read("u", rows))
