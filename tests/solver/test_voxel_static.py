"""Displacement at rest on voxels beside that of quadratic tetrahedra."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, cg
from voxel_cases import box

from afterslip_common.geometry import PlaneFault
from afterslip_solver.backend import LANES
from afterslip_solver.greens import prepare
from afterslip_solver.mesh.trace import surface_trace
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.testing.box import box_with_fault
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.fault import plane_points
from afterslip_solver.waves.grid import Medium
from afterslip_solver.waves.loads import moment_loads, rigidity_at, slip_moment
from afterslip_solver.waves.march import Prepared
from afterslip_solver.waves.sides import Sides

SIZE = np.array([24e3, 24e3, 18e3])
DIP, LENGTH, TOP, WIDTH = 45.0, 9e3, 3e3, 4.5e3 * 2**0.5
# soft rock down to here, through the fault
BOTTOM = 6e3
SOFT, HARD = (2.2e10, 1.8e10), (3.2e10, 3.6e10)


def bump(along, down):
    """Slip that vanishes with its slope at the edges of the fault."""
    x, y = 2.0 * along / LENGTH - 1.0, 2.0 * down / WIDTH - 1.0
    return (np.clip(1.0 - x**2, 0.0, 1.0) * np.clip(1.0 - y**2, 0.0, 1.0)) ** 2


def tetrahedra(edge):
    """Places of the ground (n, 2), and displacement (2, n, 3), strike and dip slip."""
    cubes = tuple((SIZE / edge).astype(int))
    made = box_with_fault(cubes, tuple(SIZE), DIP, LENGTH, TOP, WIDTH)
    mesh, fault = made.mesh, made.faults["main"]
    deep = mesh.nodes[mesh.cells, 2].mean(axis=1) < -BOTTOM
    lam, mu = (np.where(deep, *pair) for pair in zip(HARD, SOFT, strict=True))
    # three corners hold what is rigid: nothing pushes against them
    fixed = np.zeros((len(mesh.nodes), 3), dtype=bool)
    for sides, held in (((-1, -1), (0, 1, 2)), ((1, -1), (1, 2)), ((-1, 1), (2,))):
        corner = np.array([*(0.5 * SIZE[:2] * sides), -SIZE[2]])
        (node,) = np.flatnonzero((np.abs(mesh.nodes - corner) < 1.0).all(axis=1))
        fixed[node, list(held)] = True
    rock = Materials(lam, mu, np.full(len(mu), 2700.0), np.full(len(mu), np.inf))
    surface = surface_trace(mesh)
    model = Model(mesh, rock, fixed, surface, made.faults, made.splits)
    ready = prepare(model, SolverSettings(), "cpu")
    slip = np.zeros((len(fault.nodes), 3, LANES))
    amount = bump(fault.along, fault.down)[:, None]
    slip[:, :, 0], slip[:, :, 1] = amount * fault.strike, amount * fault.updip
    nodes = surface.nodes[surface.nodes < mesh.n_vertex]
    found = ready.solve({"main": slip}, nodes)
    return mesh.nodes[nodes, :2], found.response[:2, 0]


def voxels(h):
    """Displacement (lane, node, 3) of a box of such voxels, and the box."""
    grid = box(tuple((SIZE / h).astype(int) + 1), h)
    nx, ny, nz = grid.shape
    deep = (grid.axis(2)[:-1] + 0.5 * h < -BOTTOM)[:, None, None]
    whole = np.ones((nz - 1, ny - 1, nx - 1), dtype=np.float32)
    lam, mu = (np.where(deep, *pair) for pair in zip(HARD, SOFT, strict=True))
    parts = (np.float32(part) * whole for part in (lam, mu, 2700.0))
    medium = Medium(*parts)
    ready = Prepared.of(grid, medium, SCHEMES["selective"], Sides("free"), "fp64")
    plane = PlaneFault("", 0.0, 0.0, TOP, 0.0, DIP, LENGTH, WIDTH)
    points = plane_points(plane, 0.5 * h)
    slip = bump(points.along, points.down)[:, None, None]
    slip = slip * np.stack([points.strike, points.updip], axis=1)
    area = rigidity_at(grid, medium, points.position) * points.area
    moment = slip_moment(area, slip, points.normal)
    loads = moment_loads(grid, medium, points.position, moment)
    force = np.zeros((3 * grid.n_node, LANES))
    force[loads.rows] = loads.values
    (slab,) = ready.steps.slabs
    shape = (3, grid.n_node, LANES)

    def product(u):
        return slab.steps.force(u.reshape(shape)).ravel().copy()

    operator = LinearOperator((force.size, force.size), product, dtype=np.float64)
    u, failed = cg(operator, force.ravel(), rtol=1e-6, maxiter=2000)
    assert failed == 0
    return u.reshape(shape).transpose(2, 1, 0), grid


def at_rest(xy, u):
    """Take the rigid motion that fits best out of displacements (n, 3)."""
    x, y = xy.T / SIZE[0]
    zero, one = np.zeros_like(x), np.ones_like(x)
    motions = [
        *((np.arange(3) == axis) * one[:, None] for axis in range(3)),
        np.column_stack([zero, zero, y]),
        np.column_stack([zero, zero, x]),
        np.column_stack([-y, x, zero]),
    ]
    rigid = np.reshape(motions, (6, -1)).T
    fit, *_ = np.linalg.lstsq(rigid, u.ravel(), rcond=None)
    return u - (rigid @ fit).reshape(u.shape)


# measured beside the finer tetrahedra: 5.3 and 2.3, 2.6 and 1.2, 1.2 and 0.9 %; the
# others differ from them by less than 0.9 %
@pytest.mark.parametrize(
    ("edge", "h", "allowed"),
    [
        (1500.0, 750.0, (0.06, 0.03)),
        pytest.param(750.0, 500.0, (0.03, 0.015), marks=pytest.mark.slow),
        pytest.param(750.0, 375.0, (0.015, 0.012), marks=pytest.mark.slow),
    ],
)
def test_voxels_rest_where_tetrahedra_do_in_a_box_free_of_traction(edge, h, allowed):
    xy, exact = tetrahedra(edge)
    found, grid = voxels(h)
    place = (xy - [grid.axis(0)[0], grid.axis(1)[0]]) / h
    ij = np.round(place).astype(int)
    common = (np.abs(place - ij) < 1e-6).all(axis=1)
    xy, ij, exact = xy[common], ij[common], exact[:, common]
    nodes = grid.node(np.column_stack([ij, np.full(len(ij), grid.shape[2] - 1)]))
    for lane in range(2):
        one, other = (at_rest(xy, u) for u in (found[lane, nodes], exact[lane]))
        assert np.abs(one - other).max() < allowed[lane] * np.abs(other).max()
