"""Small models that the tests of operators and integrators share."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from afterslip_common.terms import KM, YEAR
from afterslip_solver import backend as backends
from afterslip_solver.backend.base import Tets
from afterslip_solver.mesh.trace import surface_trace
from afterslip_solver.model import Materials, Model
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.testing.box import box_mesh, box_with_fault

sys.path.insert(0, str(Path(__file__).parent))


def held_sides(nodes, sides=True):
    """Rollers on the sides, a fixed bottom."""
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    eps = 1e-9 * (high - low)
    fixed = np.zeros(nodes.shape, dtype=bool)
    if sides:
        for d in (0, 1):
            fixed[
                (nodes[:, d] < low[d] + eps[d]) | (nodes[:, d] > high[d] - eps[d]), d
            ] = True
    fixed[nodes[:, 2] < low[2] + eps[2]] = True
    return fixed


def box_model(n=(6, 6, 4), viscosity=(1e19, 3e18), crust=1.0, dip=90.0):
    """Box of 1 km cubes scaled to 10 km with a fault; Maxwell below the crust."""
    lengths = tuple(10 * KM * k for k in n)
    geometry = box_with_fault(
        n, lengths, dip=dip, length=20 * KM, top=10 * KM, width=10 * KM
    )
    mesh = geometry.mesh
    centre = mesh.nodes[mesh.cells].mean(axis=1)
    depth = -centre[:, 2] / (10 * KM)
    mu = np.where(depth < crust, 3e10, 6e10)
    lam = np.where(depth < crust, 3.2e10, 7e10)
    eta = np.where(depth < crust, np.inf, np.where(centre[:, 0] < 0, *viscosity))
    materials = Materials(lam, mu, np.full(len(mu), 3000.0), eta)
    return Model(
        mesh,
        materials,
        held_sides(mesh.nodes),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
    )


def patch_slip(fault, lanes=4):
    """Smooth slip up dip and along strike, one shape per lane."""
    inside = (fault.along > 0) & (fault.along < fault.length)
    inside &= (fault.down > 0) & (fault.down < fault.width)
    a, d = fault.along / fault.length, fault.down / fault.width
    shape = np.where(inside, np.sin(np.pi * a) * np.sin(np.pi * d), 0.0)
    slip = np.zeros((len(fault.nodes), 3, lanes))
    for lane in range(lanes):
        way = fault.updip if lane % 2 == 0 else fault.strike
        slip[:, :, lane] = (shape * (1.0 + lane * a))[:, None] * way
    return slip


def make_elasticity(mesh, fixed, lam, mu, backend=None):
    """Operator with moduli given in the mesh's order of elements."""
    backend = backend or backends.get("cpu")
    space = Space.build(mesh, fixed)
    tets = Tets(
        backend.asarray(space.elements),
        backend.asarray(space.gradients),
        backend.asarray(space.volume),
    )
    order = space.element_order
    return Elasticity(backend, space, tets, lam[order], mu[order])


@pytest.fixture(scope="session")
def small():
    """The builders above, for tests."""
    return SimpleNamespace(
        year=YEAR,
        held_sides=held_sides,
        box_model=box_model,
        box_mesh=box_mesh,
        patch_slip=patch_slip,
        elasticity=make_elasticity,
        backend=backends.get("cpu"),
    )


@pytest.fixture
def shaken_box(small):
    """Distorted box with moduli that vary from element to element, held below."""
    mesh = small.box_mesh((3, 3, 3), (1.0, 1.0, 1.0))
    rng = np.random.default_rng(1)
    nodes = mesh.nodes.copy()
    inner = np.all((np.abs(nodes[:, :2]) < 0.49), axis=1) & (
        np.abs(nodes[:, 2] + 0.5) < 0.49
    )
    inner &= np.arange(len(nodes)) < mesh.n_vertex
    nodes[inner] += 0.06 * rng.standard_normal((inner.sum(), 3))
    for k, (a, b) in enumerate(((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))):
        ends = mesh.elements[:, [a, b]]
        nodes[mesh.elements[:, 4 + k]] = nodes[ends].mean(axis=1)
    mesh = type(mesh)(nodes, mesh.elements, mesh.n_vertex, mesh.tags, mesh.tag_names)
    lam, mu = 1.0 + rng.random((2, len(mesh.elements)))
    return SimpleNamespace(mesh=mesh, lam=lam, mu=mu, fixed=small.held_sides(nodes))
