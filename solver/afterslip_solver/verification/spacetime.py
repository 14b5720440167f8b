"""A manufactured viscoelastic solution in space and time, and reciprocity in time.

A Maxwell box under a body force that appears at t = 0 and stays. Its irrotational part
grad(phi) meets the modulus lam + 2 mu, which relaxes to the bulk modulus: displacement
creeps to a limit with the rate K / (K + 4/3 mu) / tau. Its solenoidal part curl(psi)
meets mu alone and creeps for ever, as 1 + t / tau. With products of sin^2 both vanish
on all sides of the box, so the sum is an exact solution for fixed sides:
u = a(t) grad(phi) + b(t) curl(psi), and
-f = (lam + 2 mu) grad(lap phi) + mu curl(lap psi).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from afterslip_solver.backend import LANES
from afterslip_solver.greens import evaluate_curve
from afterslip_solver.mesh import surface_trace
from afterslip_solver.model import Float, Int, Model, SolverSettings, TetMesh
from afterslip_solver.verification.blocks import (
    FAULT,
    cut_box,
    on_sides,
    uniform_materials,
)
from afterslip_solver.verification.bodies import TAU as BODY_TAU
from afterslip_solver.verification.bodies import crossing_bodies
from afterslip_solver.verification.check import Check, Part, Size, at_least, at_most
from afterslip_solver.verification.device import prepared
from afterslip_solver.verification.quadrature import Quadrature

NAME = "spacetime"
LAM, MU, TAU = 1.3, 0.8, 2.0
TIMES = TAU * np.array([0.0, 0.1, 1.0, 4.0])
TIGHT = SolverSettings(
    times=tuple(TIMES),
    until=float(TIMES[-1]),
    tolerance=1e-10,
    time_tolerance=1e-9,
    max_modes=200,
)
EXACT = "u = a(t) grad(phi) + b(t) curl(psi), body force by hand"


def forced_curve(
    model: Model, settings: SolverSettings, force: Float, trace: Int, times: Float
) -> Float:
    """Displacement of nodes under nodal forces (n_node, 3, n_lane) that stay, N.

    Returns
    -------
    (n_lane, n_time, n_trace, 3) m.
    """
    ready = prepared(model, settings)
    body = np.zeros((len(force), 3, LANES))
    body[:, :, : force.shape[2]] = force[ready.space.order]
    ready.elastic.loads.body = ready.backend.asarray(body)
    n_fault = len(model.faults[FAULT].nodes)
    result = ready.solve(np.zeros((n_fault, 3, force.shape[2])), trace)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    return evaluate_curve(result, times)


def run(size: Size) -> Iterator[Check]:
    """Orders in h and in dt, then reciprocity of two forces at all times."""
    for part in PARTS.values():
        yield from part(size)


def _space(size: Size) -> Iterator[Check]:
    grids = (4, 6) if size == "small" else (4, 6, 8, 12)
    errors = np.array([space_errors(n, TIGHT) for n in grids])
    orders = np.log(errors[-2] / errors[-1]) / np.log(grids[-1] / grids[-2])
    yield at_least(
        NAME,
        f"order in L2 at all times, grids {', '.join(map(str, grids))}, spectral",
        float(orders.min()),
        2.6,
        EXACT,
        "P2 theory 3 for h to 0; the smallest of 0, 0.1, 1 and 4 relaxation times",
        2.9,
    )
    yield at_most(
        NAME,
        f"relative error in L2 at all times, grid {grids[-1]}, spectral",
        float(errors[-1].max()),
        0.2 * (4.0 / grids[-1]) ** 3,
        EXACT,
        "sin^2 has twice the wavenumber of the elastic item; error falls as h^3",
    )


def _steps(size: Size) -> Iterator[Check]:
    steps = (8, 16) if size == "small" else (8, 16, 32, 64)
    mesh, model, load, _ = _problem(4)
    trace = np.arange(len(mesh.nodes))
    late = replace(TIGHT, times=(float(TAU),), until=float(TAU))
    exact = forced_curve(model, late, load, trace, np.array([TAU]))
    errors = []
    for count in steps:
        stepped = replace(late, integrator="stepping", step=TAU / count)
        u = forced_curve(model, stepped, load, trace, np.array([TAU]))
        errors.append(np.abs(u - exact).max() / np.abs(exact).max())
    yield at_least(
        NAME,
        f"order of stepping in dt, last of {', '.join(map(str, steps))} steps",
        float(np.log2(errors[-2] / errors[-1])),
        1.9,
        "spectral curve of the same mesh at 1e-9",
        "the exponential step is of second order",
        1.99,
    )


def _problem(n: int) -> tuple[TetMesh, Model, Float, Quadrature]:
    """Build the unit cube with fixed sides, and the load of the body force."""
    geometry = cut_box((n, n, n), (1.0, 1.0, 1.0))
    mesh = geometry.mesh
    low, high = on_sides(mesh)
    wall = np.asarray(low | high).any(axis=1)
    model = Model(
        mesh,
        uniform_materials(mesh, LAM, MU, MU * TAU),
        np.repeat(np.asarray(wall)[:, None], 3, axis=1),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
    )
    rule = Quadrature(mesh, 5)
    _, _, curved, turned = fields(rule.points - mesh.nodes.min(axis=0))
    force = -((LAM + 2.0 * MU) * curved + MU * turned)
    return mesh, model, rule.load(force)[:, :, None], rule


def fields(points: Float) -> tuple[Float, Float, Float, Float]:
    """Values grad(phi), curl(psi), grad(lap phi) and curl(lap psi) at (..., 3).

    phi = psi_z = prod sin^2(pi x_i); sin^2 = (1 - cos 2 pi x) / 2 per axis.
    """
    w = 2.0 * np.pi
    value = 0.5 * (1.0 - np.cos(w * points))
    first = 0.5 * w * np.sin(w * points)
    second = 0.5 * w**2 * np.cos(w * points)
    third = -0.5 * w**3 * np.sin(w * points)

    def product(orders: tuple[int, ...]) -> Float:
        table = (value, first, second, third)
        out = np.ones(points.shape[:-1])
        for axis, order in enumerate(orders):
            out = out * table[order][..., axis]
        return out

    def derivative(axis: int, laplace: bool) -> Float:
        base = [0, 0, 0]
        base[axis] += 1
        if not laplace:
            return product(tuple(base))
        total = np.zeros(points.shape[:-1])
        for other in range(3):
            orders = base.copy()
            orders[other] += 2
            total = total + product(tuple(orders))
        return total

    out = []
    for laplace in (False, True):
        d = [derivative(axis, laplace) for axis in range(3)]
        out += [np.stack(d, -1), np.stack((d[1], -d[0], np.zeros_like(d[0])), -1)]
    return out[0], out[1], out[2], out[3]


def exact(points: Float, times: Float) -> Float:
    """(n_time, ..., 3) displacement at points from the box's corner."""
    gradient, curl, _, _ = fields(points)
    bulk = LAM + 2.0 / 3.0 * MU
    limit = (LAM + 2.0 * MU) / bulk
    rate = bulk / (LAM + 2.0 * MU) / TAU
    grows = limit - (limit - 1.0) * np.exp(-rate * times)
    creeps = 1.0 + times / TAU
    return np.asarray(
        np.multiply.outer(grows, gradient) + np.multiply.outer(creeps, curl)
    )


def space_errors(n: int, settings: SolverSettings) -> Float:
    """(n_time,) relative L2 errors of the curve at `TIMES`."""
    mesh, model, load, rule = _problem(n)
    nodes = np.arange(len(mesh.nodes))
    u = forced_curve(model, settings, load, nodes, TIMES)[0]
    truth = exact(rule.points - mesh.nodes.min(axis=0), TIMES)
    return np.array(
        [
            rule.norm(((rule.values(a) - b) ** 2).sum(-1)) / rule.norm((b**2).sum(-1))
            for a, b in zip(u, truth, strict=True)
        ]
    )


def _reciprocity(size: Size) -> Iterator[Check]:
    model = crossing_bodies(size)
    times = BODY_TAU * np.array([0.0, 0.01, 0.1, 0.5, 2.0])
    surface = model.surface.nodes
    places = surface[[len(surface) // 3, 2 * len(surface) // 3]]
    settings = replace(TIGHT, times=tuple(times), until=float(times[-1]))
    motions = []
    for place in places:
        force = np.zeros((len(model.mesh.nodes), 3, 3))
        force[place] = 1e15 * np.eye(3)
        motions.append(forced_curve(model, settings, force, places, times))
    # force c at the first place, motion c' at the second, and the other way round
    one, other = motions[0][:, :, 1], motions[1][:, :, 0].transpose(2, 1, 0)
    yield at_most(
        NAME,
        "motion there by a lasting force here against the reverse, to 2 tau, 3 x 3",
        float(np.abs(one - other).max() / np.abs(one).max()),
        1e-8,
        "reciprocity of a linear viscoelastic body at every time",
        "each side is solved on its own, to 1e-10; the curves to 1e-9",
    )


PARTS: dict[str, Part] = {
    "order in h": _space,
    "order in dt": _steps,
    "reciprocity": _reciprocity,
}
