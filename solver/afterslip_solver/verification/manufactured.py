"""Orders of convergence with a manufactured solution.

u_i = a_i sin(pi X) sin(pi Y) sin(pi Z) vanishes on the sides of the box; its body
force is derived by hand from -div sigma(u).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip_solver.model import Float, Materials, TetMesh
from afterslip_solver.testing.box import box_mesh
from afterslip_solver.verification.check import Check, Size, at_least, at_most
from afterslip_solver.verification.quadrature import Quadrature
from afterslip_solver.verification.system import System

NAME = "manufactured"
AMPLITUDE = np.array([1.0, -0.7, 0.4])
LAM, MU = 1.3, 0.8
GRIDS: dict[Size, tuple[int, ...]] = {"small": (2, 4, 6), "full": (4, 8, 12, 16)}


def run(size: Size) -> Iterator[Check]:
    """L2 and energy errors on a sequence of sheared meshes."""
    grids = GRIDS[size]
    errors = np.array([_errors(_mesh(n)) for n in grids])
    steps = np.log(np.array(grids[1:]) / np.array(grids[:-1]))
    orders = np.log(errors[:-1] / errors[1:]) / steps[:, None]
    reference = "u = a sin(pi x) sin(pi y) sin(pi z), body force by hand"
    counts = f"grids {', '.join(map(str, grids))}"
    yield at_least(
        NAME,
        f"order in L2, last two meshes ({counts})",
        orders[-1, 0],
        2.8,
        reference,
        "P2 theory 3 for h to 0; 2.8 allows for meshes that are still coarse",
        2.95,
    )
    yield at_least(
        NAME,
        f"order in energy, last two meshes ({counts})",
        orders[-1, 1],
        1.8,
        reference,
        "P2 theory 2 for h to 0; 1.8 allows for meshes that are still coarse",
        1.95,
    )
    yield at_most(
        NAME,
        "relative error in L2 on the finest mesh",
        errors[-1, 0],
        0.1 * (4.0 / grids[-1]) ** 3,
        reference,
        "interpolation error of P2 with h = 1/4 is a few per cent, times h^3",
    )


def _mesh(n: int) -> TetMesh:
    """Box whose inner vertices are moved, so that no symmetry helps."""
    mesh = box_mesh((n, n, n))
    x, y, z = mesh.nodes.T
    bump = 0.06 * np.sin(2 * np.pi * x) * np.sin(2 * np.pi * y) * np.sin(2 * np.pi * z)
    vertices = mesh.nodes + bump[:, None] * np.array([1.0, 0.5, -0.8])
    vertices = vertices[: mesh.n_vertex]
    nodes = mesh.nodes.copy()
    nodes[: mesh.n_vertex] = vertices
    for k, (a, b) in enumerate(((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))):
        ends = mesh.elements[:, [a, b]]
        nodes[mesh.elements[:, 4 + k]] = vertices[ends].mean(axis=1)
    return TetMesh(nodes, mesh.elements, mesh.n_vertex, mesh.tags, mesh.tag_names)


def _errors(mesh: TetMesh) -> tuple[float, float]:
    """Relative errors in L2 and in the energy norm."""
    n_elem = len(mesh.elements)
    ones = np.ones(n_elem)
    materials = Materials(LAM * ones, MU * ones, ones, np.inf * ones)
    low, high = mesh.nodes.min(axis=0), mesh.nodes.max(axis=0)
    side = (np.abs(mesh.nodes - low) < 1e-9) | (np.abs(mesh.nodes - high) < 1e-9)
    fixed = np.repeat(side.any(axis=1)[:, None], 3, axis=1)
    system = System.build(mesh, materials, fixed)
    rule = Quadrature(mesh)
    value, gradient, force = _exact(rule.points, low)
    u = system.solve(rule.load(force)[:, :, None])[:, :, 0]
    difference = rule.values(u) - value
    strain = rule.gradient(u) - gradient
    l2 = rule.norm((difference**2).sum(-1)) / rule.norm((value**2).sum(-1))
    energy = rule.norm(_energy(strain)) / rule.norm(_energy(gradient))
    return l2, energy


def _energy(gradient: Float) -> Float:
    strain = 0.5 * (gradient + gradient.swapaxes(-1, -2))
    trace = np.trace(strain, axis1=-2, axis2=-1)
    return np.asarray(LAM * trace**2 + 2 * MU * (strain**2).sum((-1, -2)))


def _exact(points: Float, low: Float) -> tuple[Float, Float, Float]:
    """Displacement, its gradient and the body force at points (..., 3)."""
    s, c = np.sin(np.pi * (points - low)), np.cos(np.pi * (points - low))
    product = s.prod(axis=-1)
    first = np.stack(
        [np.pi * np.where(np.arange(3) == j, c, s).prod(axis=-1) for j in range(3)], -1
    )
    hessian = np.empty((*product.shape, 3, 3))
    for i in range(3):
        for j in range(3):
            if i == j:
                hessian[..., i, j] = -(np.pi**2) * product
            else:
                mixed = (np.arange(3) == i) | (np.arange(3) == j)
                hessian[..., i, j] = np.pi**2 * np.where(mixed, c, s).prod(axis=-1)
    value = product[..., None] * AMPLITUDE
    gradient = AMPLITUDE[:, None] * first[..., None, :]
    # -div sigma = -(lam + mu) grad div u - mu laplace u
    grad_div = hessian @ AMPLITUDE
    laplace = -3 * np.pi**2 * value
    return value, gradient, -(LAM + MU) * grad_div - MU * laplace
