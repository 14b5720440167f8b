"""The isostatic restoring force: columns, flexure of a lid, and long times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from afterslip_solver.materials import GRAVITY, restoring_force
from afterslip_solver.model import Float, Materials, Model, SolverSettings, TetMesh
from afterslip_solver.testing.box import box_mesh
from afterslip_solver.verification import correspondence
from afterslip_solver.verification.blocks import FAULT, on_sides
from afterslip_solver.verification.bodies import (
    TAU,
    crossing_bodies,
    curve,
    slip_lanes,
)
from afterslip_solver.verification.check import Check, Part, Size, at_most
from afterslip_solver.verification.system import System

NAME = "restoring"
DENSITY = (2800.0, 3300.0)
LID = 20e3  # m
LATE = 1e4  # relaxation times
SOFT = 1e-7  # what is left of the shear modulus of relaxed rock


def run(size: Size) -> Iterator[Check]:
    """Load columns and a lid, then compare curves of bodies that the fault cuts."""
    for part in PARTS.values():
        yield from part(size)


def _loads(size: Size) -> Iterator[Check]:
    yield at_most(
        NAME,
        "column of two layers under an even load, relative to the exact settlement",
        column_error(),
        1e-9,
        "springs in series: two layers, the free surface and the density jump between",
        "the field is linear in each layer: only the linear solver's 1e-12 remains",
    )
    yield at_most(
        NAME,
        "subsidence of a lid on relaxed rock under a wavy load, relative",
        flexure_error(size),
        0.01,
        "thin plate: load / (g rho of the mantle + D k^4)",
        "the lid, a twentieth of the wavelength, shears a little: (k h)^2 / 10",
    )


def _bodies(size: Size) -> Iterator[Check]:
    model = with_gravity(crossing_bodies(size))
    slip = slip_lanes(model)
    error, _, _ = correspondence.transform_error(model, slip)
    yield at_most(
        NAME,
        "transform of the curve at 3 / relaxation time, relative to the relaxation",
        error,
        1e-6,
        "elastic solve with mu(p) and the same restoring force",
        correspondence.NOTE,
    )


def _late(size: Size) -> Iterator[Check]:
    model = with_gravity(crossing_bodies(size))
    yield at_most(
        NAME,
        f"lid on Maxwell rock after {LATE:g} relaxation times, relative to the change",
        relaxed_error(model, slip_lanes(model)),
        1e-5,
        "elastic solve with 1e-7 of the shear modulus, the restoring force, factorised",
        "the slowest mode of the lid has died out; 1e-7 of the modulus is left",
    )


PARTS: dict[str, Part] = {"loads": _loads, "transform": _bodies, "limit": _late}


def with_gravity(model: Model) -> Model:
    """Densities of crust and mantle, and their restoring force."""
    flows = np.isfinite(model.materials.viscosity)
    rho = np.where(flows, DENSITY[1], DENSITY[0])
    restoring, _ = restoring_force(model.mesh, rho)
    materials = replace(model.materials, rho=rho)
    return replace(model, materials=materials, restoring=restoring)


def _layers(mesh: TetMesh, depth: float, lam: Float, mu: Float) -> Materials:
    """Two elastic layers with the densities above."""
    upper = mesh.nodes[mesh.cells].mean(axis=1)[:, 2] > -depth
    rho = np.where(upper, *DENSITY)
    values = np.where(upper, lam[0], lam[1]), np.where(upper, mu[0], mu[1])
    return Materials(*values, rho, np.full(len(rho), np.inf))


def column_error() -> float:
    """Error of the vertical displacement, relative to that of the top.

    The lid carries load - k_0 u_0 and the mantle that less k_1 u_1, with the springs
    k_0 = g rho_0 of the surface and k_1 of the jump, which resist as stiffly as rock.
    """
    height = 10e3
    mesh = box_mesh((2, 2, 6), (2 * height, 2 * height, 3 * height))
    lam, mu = np.array([5e8, 8e8]), np.array([4e8, 6e8])
    materials = _layers(mesh, height, lam, mu)
    low, high = on_sides(mesh)
    fixed = low.copy()
    fixed[:, :2] |= high[:, :2]
    restoring, _ = restoring_force(mesh, materials.rho)
    system = System.build(mesh, materials, fixed, restoring)
    found = system.solve(surface_load(mesh, np.ones(len(mesh.nodes))), 1e-12)[:, 2, 0]
    stiff = (lam + 2.0 * mu) / np.array([height, 2.0 * height])
    spring = GRAVITY * np.array([DENSITY[0], DENSITY[1] - DENSITY[0]])
    matrix = np.diag(spring) + np.array(
        [[stiff[0], -stiff[0]], [-stiff[0], stiff[0] + stiff[1]]]
    )
    top, middle = np.linalg.solve(matrix, [1.0, 0.0])
    depths = height * np.array([0.0, 1.0, 3.0])
    exact = np.interp(-mesh.nodes[:, 2], depths, [top, middle, 0.0])
    return float(np.abs(found - exact).max() / top)


def flexure_error(size: Size) -> float:
    """Error of the amplitude of a lid under cos(k x), relative."""
    n = (20, 1, 6) if size == "small" else (40, 1, 12)
    length = 200e3
    mesh = box_mesh(n, (length, length / n[0], 3.0 * LID))
    lam, mu = np.array([4e10, 4e10]), np.array([4e10, 4e10 * SOFT])
    materials = _layers(mesh, LID, lam, mu)
    low, high = on_sides(mesh)
    fixed = low.copy()
    fixed[:, :2] |= high[:, :2]
    restoring, _ = restoring_force(mesh, materials.rho)
    system = System.build(mesh, materials, fixed, restoring)
    k = np.pi / length
    wave = np.cos(k * (mesh.nodes[:, 0] + 0.5 * length))
    found = system.factorised(surface_load(mesh, wave))[:, 2, 0]
    young = mu[0] * (3.0 * lam[0] + 2.0 * mu[0]) / (lam[0] + mu[0])
    poisson = 0.5 * lam[0] / (lam[0] + mu[0])
    rigidity = young * LID**3 / (12.0 * (1.0 - poisson**2))
    exact = 1.0 / (GRAVITY * DENSITY[1] + rigidity * k**4)
    top = high[:, 2]
    amplitude = found[top] @ wave[top] / (wave[top] @ wave[top])
    return float(abs(amplitude / exact - 1.0))


def surface_load(mesh: TetMesh, pressure: Float) -> Float:
    """Nodal forces (n_node, 3, 1), N, of an upward traction (n_node,) Pa on top.

    Springs of 1 Pa/m on the free surface alone exert it on the displacement
    ``pressure``.
    """
    unit, _ = restoring_force(mesh, np.full(len(mesh.cells), 1.0 / GRAVITY))
    free = np.zeros((len(mesh.nodes), 3), dtype=bool)
    ones = np.ones(len(mesh.cells))
    system = System.build(mesh, Materials(ones, ones, ones, ones), free, unit)
    force = np.zeros((len(mesh.nodes), 3, 1))
    springs = system.elasticity.springs
    if springs is not None:
        force[system.space.order, 2, 0] = springs.host @ pressure[system.space.order]
    return force


def relaxed_error(model: Model, slip: Float) -> float:
    """Difference from the relaxed solution at a late time, relative to the change."""
    late = LATE * TAU
    settings = SolverSettings(
        times=(late,),
        until=late,
        scheme="shift_invert",
        tolerance=1e-10,
        time_tolerance=1e-6,
        max_modes=200,
    )
    values, result = curve(model, settings, slip)
    materials = model.materials
    soft = np.where(np.isfinite(materials.viscosity), SOFT, 1.0) * materials.mu
    lam = materials.lam + 2.0 / 3.0 * (materials.mu - soft)
    relaxed = replace(materials, lam=lam, mu=soft)
    system = System.build(model.mesh, relaxed, model.fixed, model.restoring)
    load = system.offset_load(model.splits[FAULT], slip)
    limit = system.factorised(load)[model.surface.nodes].transpose(2, 0, 1)
    change = float(np.abs(limit - result.response[:, 0]).max())
    return float(np.abs(values[:, 0] - limit).max()) / change
