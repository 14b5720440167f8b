"""Voxels cut into slabs move as the whole does."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import random_array
from voxel_cases import box, rock, varied

from afterslip_common.source_time import smooth_step
from afterslip_solver.backend.base import BackendError
from afterslip_solver.backend.slabs import cut
from afterslip_solver.waves.attenuation import Attenuation
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.fastest import noise
from afterslip_solver.waves.loads import moment_loads
from afterslip_solver.waves.march import Prepared, Recording
from afterslip_solver.waves.reciprocal import Traction
from afterslip_solver.waves.record import receivers, surface_rows
from afterslip_solver.waves.sides import Sides

GRID = box((13, 12, 23))
OBLIQUE = np.array([[0.3, 0.2, -0.5], [0.2, -0.8, 0.4], [-0.5, 0.4, 0.5]]) * 1e18
# the source crosses the planes where slabs meet
POINTS = np.array([[100.0, 30.0, z] for z in np.arange(-9.6e3, -1.2e3, 700.0)])
BACKENDS = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


def prepared(backend, slabs, precision="fp64", attenuates=False, kind="spring_dashpot"):
    medium = varied(GRID, 3, air=True)
    how = None
    if attenuates:
        planes = np.linspace(30.0, 90.0, GRID.shape[2] - 1)
        how = Attenuation((0.05, 0.8), 0.3, 2.0 * planes, planes)
    sides = Sides(kind, cells=3, centre=(0.0, 0.0, -5e3))
    name = "orthogonal" if precision == "int8" else "selective"
    parts = GRID, medium, SCHEMES[name], sides, precision, backend
    return Prepared.of(*parts, attenuation=how, slabs=slabs)


def run(ready, keeper=None, stop=lambda: False) -> Any:
    moment = np.broadcast_to(OBLIQUE, (len(POINTS), 1, 3, 3))
    loads = moment_loads(GRID, varied(GRID, 3, air=True), POINTS, moment)
    x = np.array([1.1e3, -700.0])
    rows, _, _ = surface_rows(GRID, 3)
    record = Recording(receivers(GRID, x, x[::-1]), rows)
    plan = ready.plan(4.0, 0.1)
    return ready.run(
        plan, loads, smooth_step(1.0), record, lambda _: None, stop, keeper
    )


class Keeper:
    """Keeps one state."""

    def __init__(self, state=None):
        self.state = state

    def load(self):
        return self.state

    def due(self):
        return self.state is None

    def save(self, state):
        self.state = {name: np.array(part) for name, part in state.items()}


def same(found, exact):
    for name in ("velocity", "displacement", "offset", "wavefield"):
        np.testing.assert_array_equal(getattr(found, name), getattr(exact, name))
    assert np.abs(exact.offset[0]).max() > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("attenuates", [False, True])
@pytest.mark.parametrize("slabs", [2, 3])
def test_slabs_give_the_bits_of_the_whole(backend, attenuates, slabs):
    try:
        parts = prepared(backend, slabs, attenuates=attenuates)
    except BackendError as error:
        pytest.skip(str(error))
    whole = prepared(backend, 1, attenuates=attenuates)
    assert parts.fastest == pytest.approx(whole.fastest, rel=1e-12)
    found, exact = run(parts), run(whole)
    same(found, exact)
    np.testing.assert_allclose(found.energy, exact.energy, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        ("sponge", "fp32"),
        ("free", "fp32"),
        ("free", "int8"),
        pytest.param("sponge", "int8", marks=pytest.mark.slow),
    ],
)
def test_precisions_and_sides_have_slabs_too(backend, precision, kind):
    try:
        parts = prepared(backend, 2, precision, kind=kind)
    except BackendError as error:
        pytest.skip(str(error))
    same(run(parts), run(prepared(backend, 1, precision, kind=kind)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_goes_on_with_another_number_of_slabs(backend):
    keeper = Keeper()
    try:
        first = prepared(backend, 2, attenuates=True)
    except BackendError as error:
        pytest.skip(str(error))
    exact = run(first, keeper)
    again = run(prepared(backend, 1, attenuates=True), keeper)
    same(again, exact)
    back = Keeper()
    run(prepared(backend, 1, attenuates=True), back)
    same(
        run(prepared(backend, 3 if backend == "cpu" else 2, attenuates=True), back),
        exact,
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("slabs", [1, 2])
def test_sums_over_rows_are_those_of_the_whole_on_the_host(backend, slabs):
    random = np.random.default_rng(4)
    rows = np.sort(random.choice(3 * GRID.n_node, 500, replace=False))
    matrix = random_array((4, 500), density=0.5, format="csr", rng=random)
    traction = Traction(rows, matrix)
    try:
        steps = prepared(backend, slabs).steps
    except BackendError as error:
        pytest.skip(str(error))
    steps.prepare(1e-3, np.zeros(3 * GRID.n_node), (rows[:0], np.zeros(0), np.zeros(0)))
    steps.begin(rows[:0], np.zeros((0, 4)))
    u = random.standard_normal((3, GRID.n_node, 4))
    steps.restore({"u": u, "v": 2.0 * u})
    exact = matrix @ u.reshape(-1, 4)[rows]
    look = steps.watch(traction.rows(GRID.n_node), traction.matrix)
    np.testing.assert_allclose(look("u"), exact, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(look("v"), 2.0 * exact, rtol=1e-12, atol=1e-13)


def test_random_vectors_are_uniform_unrelated_and_each_slab_makes_its_own():
    count = 30_000
    whole = noise(np, count, 0, count)
    assert np.array_equal(noise(np, count, 700, 900), whole[:, 700:900])
    assert whole.min() >= -0.5
    assert whole.max() < 0.5
    # of 12 n uniform numbers; five standard deviations
    assert abs(whole.mean()) < 5.0 / np.sqrt(12.0 * whole.size)
    # lanes and components, and one node and the next ones
    rows = whole.transpose(0, 2, 1).reshape(12, count).astype(np.float64)
    beside = np.concatenate([rows, rows[:1].repeat(3, 0)])
    for shift in (1, 2, 3):
        beside[11 + shift] = np.roll(rows[0], shift)
    related = np.corrcoef(beside) - np.eye(len(beside))
    assert np.abs(related).max() < 5.0 / np.sqrt(count)


def test_planes_are_divided_evenly_and_too_few_are_refused():
    parts = cut(151, 4)
    assert [part.own[0] for part in parts[1:]] == [37, 75, 113]
    assert [part.held for part in (parts[0], parts[3])] == [(0, 38), (112, 151)]
    assert all(part.held[0] % 2 == 0 for part in parts)
    with pytest.raises(BackendError, match="7 planes of nodes are too few for 2 slabs"):
        cut(7, 2)
    grid = box((9, 8, 9))
    with pytest.raises(BackendError, match=r"write waves\.gpus: 1"):
        Prepared.of(grid, rock(grid), SCHEMES["selective"], Sides("free"), slabs=3)
