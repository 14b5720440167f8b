"""Relaxation of layers against exact exponentials, by every integrator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from afterslip_solver.greens import evaluate_curve
from afterslip_solver.mesh import surface_trace
from afterslip_solver.model import (
    Bool,
    Float,
    Materials,
    Model,
    SolverSettings,
    TetMesh,
)
from afterslip_solver.reference import (
    layered_burgers_shear,
    layered_opening,
    layered_shear,
)
from afterslip_solver.verification.blocks import FAULT, cut_box, on_sides
from afterslip_solver.verification.check import Check, Part, Size, at_least, at_most
from afterslip_solver.verification.device import prepared

NAME = "relaxation"
LAM, MU, VISCOSITY = (40e9, 60e9), (30e9, 65e9), 1e19  # elastic, Maxwell
EDGE = 1e3  # x of the interface; the Maxwell layer holds the fault x = 0
HALF = 3e3  # half the length of the box
TAU = VISCOSITY / MU[1]
TIMES = TAU * np.array([0.0, 0.25, 0.5, 2.0, 6.0])
# steps err most about one relaxation time after the slip
EARLY = TIMES[:-1]
# at once, just after, and from a thousandth to a thousand relaxation times
EVERY = TAU * np.concatenate(([0.0, 1e-9], np.geomspace(1e-3, 1e3, 19)))
MOTIONS = ("shear", "opening")
Kelvin = tuple[float, float]
REFERENCE = "exact exponential of two layers in series"


def run(size: Size) -> Iterator[Check]:
    """Shear and opening."""
    for part in PARTS.values():
        yield from part(size)


def _motion(motion: str, size: Size) -> Iterator[Check]:
    """Two layers by both spectral schemes and by stepping."""
    tight = SolverSettings(
        times=tuple(TIMES), until=float(TIMES[-1]), tolerance=1e-10, time_tolerance=1e-9
    )
    cases = {
        "polynomial": replace(tight, scheme="polynomial"),
        "shift-invert": replace(tight, scheme="shift_invert"),
    }
    finest = 16 if size == "small" else 64
    for words, settings in cases.items():
        yield at_most(
            NAME,
            f"{motion} of two layers to 6 relaxation times, {words}, largest error "
            "of all nodes relative to the slip",
            layer_error(motion, settings),
            1e-7,
            REFERENCE,
            "one decaying mode: only the linear solver's 1e-10 remains",
        )
    long = replace(tight, times=tuple(EVERY), until=float(EVERY[-1]))
    yield at_most(
        NAME,
        f"{motion} of two layers at 0, 0+ and 1e-3 to 1e3 relaxation times",
        layer_error(motion, long, times=EVERY),
        1e-6,
        REFERENCE,
        "one decaying mode: the linear solver's 1e-10, more after long times",
    )
    yield from second_order(
        (NAME, REFERENCE),
        motion,
        finest,
        lambda n: layer_error(motion, stepping(tight, TAU / n), times=EARLY),
        2e-4 * (16.0 / finest) ** 2,
        "second order: (dt/tau)^2/24 of what relaxes is 1.6e-4 at dt = tau/16",
    )


def second_order(
    labels: tuple[str, str],
    motion: str,
    finest: int,
    error: Callable[[int], float],
    limit: float,
    why: str,
) -> Iterator[Check]:
    """Check steps through the relaxation of two layers, and their order.

    Parameters
    ----------
    labels : of the item and of its reference.
    finest : steps of a relaxation time; half as many give the order.
    error : largest error with so many. limit : of the finest, and ``why``.
    """
    name, reference = labels
    coarse, fine = error(finest // 2), error(finest)
    yield at_most(
        name,
        f"{motion} of two layers to 2 relaxation times, steps of 1/{finest} of one",
        fine,
        limit,
        reference,
        why,
        1e-5,
    )
    yield at_least(
        name,
        f"{motion} of two layers, stepping: order up to 1/{finest}",
        float(np.log2(coarse / fine)),
        1.9,
        reference,
        "the exponential step is second order",
    )


PARTS: dict[str, Part] = {motion: partial(_motion, motion) for motion in MOTIONS}


def stepping(settings: SolverSettings, step: float) -> SolverSettings:
    """As the settings, in steps (s), and only to the last of `EARLY`."""
    return replace(
        settings,
        integrator="stepping",
        step=step,
        max_modes=1000,
        times=tuple(EARLY),
        until=float(EARLY[-1]),
    )


def layer_error(
    motion: str,
    settings: SolverSettings,
    kelvin: Kelvin | None = None,
    times: Float = TIMES,
) -> float:
    """Largest error of a curve, relative to the slip of 1 m.

    Parameters
    ----------
    motion : one of `MOTIONS`; a Burgers layer must be sheared.
    kelvin : modulus (Pa) and viscosity (Pa s) of a Kelvin element in the Maxwell
        layer, which makes it a Burgers body.
    times : s, when the curve is compared.
    """
    geometry = cut_box((6, 2, 2), (2 * HALF, 2e3, 2e3))
    mesh, fault = geometry.mesh, geometry.faults[FAULT]
    model = Model(
        mesh,
        _materials(mesh, kelvin),
        _held(mesh, motion),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
    )
    slip = (fault.strike if motion == "shear" else fault.normal)[:, :, None]
    nodes = np.arange(len(mesh.nodes))
    result = prepared(model, settings).solve(np.ascontiguousarray(slip), nodes)
    if result.outcome != "converged":
        return float("nan")
    u = evaluate_curve(result, times)[0]
    return float(np.abs(u - _exact(mesh, motion, kelvin, times)).max())


def _materials(mesh: TetMesh, kelvin: Kelvin | None) -> Materials:
    """Elastic beyond the interface, Maxwell or Burgers before it."""
    centre = mesh.nodes[mesh.cells].mean(axis=1)[:, 0]
    lid = centre > EDGE
    return Materials(
        lam=np.where(lid, *LAM),
        mu=np.where(lid, *MU),
        rho=np.full(len(centre), 3000.0),
        viscosity=np.where(lid, np.inf, VISCOSITY),
        kelvin_modulus=np.where(lid, np.inf, kelvin[0]) if kelvin else None,
        kelvin_viscosity=np.where(lid, np.inf, kelvin[1]) if kelvin else None,
    )


def _held(mesh: TetMesh, motion: str) -> Bool:
    """Hold the ends, and the sides so that the motion stays one-dimensional."""
    low, high = on_sides(mesh)
    side = low | high
    fixed = np.repeat(side[:, :1], 3, axis=1)
    if motion == "shear":
        # the shear stress pulls the sides y = const along x
        fixed[:, 0] |= side[:, 1]
    else:
        fixed[:, 1] |= side[:, 1]
        fixed[:, 2] |= side[:, 2]
    return fixed


def _exact(mesh: TetMesh, motion: str, kelvin: Kelvin | None, times: Float) -> Float:
    """(n_time, n_node, 3) m."""
    heights = HALF - EDGE, HALF + EDGE
    if kelvin is not None:
        burgers = (heights[1], MU[1], VISCOSITY, *kelvin)
        strains = layered_burgers_shear(times, 1.0, (heights[0], MU[0]), burgers)
    elif motion == "shear":
        strains = layered_shear(
            times, 1.0, (heights[0], MU[0]), (heights[1], MU[1], VISCOSITY)
        )
    else:
        strains = layered_opening(
            times,
            1.0,
            (heights[0], LAM[0], MU[0]),
            (heights[1], LAM[1], MU[1], VISCOSITY),
        )
    upper, lower = (s[:, None] for s in strains)
    x = np.round(mesh.nodes[:, 0], 6)[None]
    jump = np.where(x > 0, 1.0, np.where(x == 0, 0.5, 0.0))
    before = lower * (x + HALF) + jump
    value = np.where(x <= EDGE, before, upper * (x - HALF))
    u = np.zeros((*value.shape, 3))
    u[..., 1 if motion == "shear" else 0] = value
    return u
