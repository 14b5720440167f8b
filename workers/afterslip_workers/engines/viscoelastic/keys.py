"""What changes the numbers of a unit source, as digests.

Two campaigns may differ in name, stations, data, units or the order of their keys and
still mean the same numbers. The digests are therefore taken of what the solver is
given: the arrays of the model, the slip on the fault's nodes, and the settings.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from afterslip.frame import Frame
from afterslip.identity import digest
from afterslip.physics.base import Quality
from afterslip.physics.viscoelastic import physics
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Model, SolverSettings
from afterslip_workers.engines.viscoelastic.modes import Modes, modes_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip

# in this order, also where a model has none, in the digests of all stores
_MATERIALS = ("lam", "mu", "rho", "viscosity", "kelvin_viscosity", "kelvin_modulus")
# sources whose slip one thread shapes alone
_FEW = 8
# of a response that does not change in time
_FOR_EVER = {"until": 1e300, "time_tolerance": 0.0}


def reuse_facts(
    model: Model,
    units: UnitSources,
    settings: SolverSettings,
    wanted: Quality,
    frame: Frame,
) -> dict[str, Any]:
    """Return the keys of all unit sources, and what their numbers are good for.

    Parameters
    ----------
    wanted : quality that the spec asks for.
    frame : of the model; on a sphere it says which way east and north are.

    Returns
    -------
    {"model", "solver", "slips", "keys", "quality"}: digests, lists of them in the
    order of ``units``; an elastic model's numbers are good for every time. Left out
    of the keys are tolerances and the end of a spectral curve, because better ones
    serve as well, and what changes results within the tolerance only: backend,
    preconditioner, precision, and which other sources are solved beside.
    """
    with ThreadPoolExecutor(1) as beside:  # gigabytes, on processors that hash slowly
        model_digest = beside.submit(_model, model, frame)
        slips = _slips(model, units)
        modes = modes_of(model, settings)
    of_model = model_digest.result()
    of_solver = digest(_solver(modes, settings))
    return {
        "model": of_model,
        "solver": of_solver,
        "slips": slips,
        "keys": [digest([of_model, of_solver, slip]) for slip in slips],
        "quality": dict(wanted) | (_FOR_EVER if modes.count == 1 else {}),
    }


def _slips(model: Model, units: UnitSources) -> list[str]:
    """Digests of the slip of each source, on all cores: it is on every fault node."""
    splits = {name: _split(model, name) for name in units.faults}
    found = [""] * len(units)

    def fill(start: int, stop: int) -> None:
        for index in range(start, stop):
            fault = units.sources[index].fault
            found[index] = _digest(splits[fault], unit_slip(units, [index])[fault])

    over(len(units), fill, few=_FEW)
    return found


def _solver(modes: Modes, settings: SolverSettings) -> dict[str, Any]:
    """Return the settings that change numbers by more than a tolerance."""
    facts: dict[str, Any] = {
        "numerics": physics.numerics,
        "integrator": modes.integrator,
        "modes": modes.count,
    }
    if modes.step_times is not None:
        # steps are stored around the output times, and between them nothing is known
        facts |= {
            "step": float(settings.step),
            "predictor": str(settings.predictor),
            "steps": [float(time) for time in modes.step_times],
        }
    return facts


def _model(model: Model, frame: Frame) -> str:
    trace = two_sided(model)
    parts: list[Any] = [model.mesh.nodes, model.mesh.elements, model.fixed]
    materials = model.materials
    parts += [getattr(materials, name) for name in _MATERIALS]
    if materials.branch_viscosity is not None:
        parts += [materials.branch_viscosity, materials.branch_modulus]
    if model.restoring is not None:
        force = model.restoring
        parts += [force.faces, force.stiffness, force.owners]
    if model.placement is not None:
        parts += [model.placement.nodes, model.placement.radius]
    if frame.spherical:
        parts += [frame.lon0, frame.lat0]
    return _digest(*parts, trace.nodes, trace.faces)


def _split(model: Model, name: str) -> str:
    """Return the digest of a fault as the solver cuts the mesh along it."""
    split = model.splits[name]
    nodes = model.faults[name].nodes
    return _digest(nodes, split.elements, split.index, split.sign)


def _digest(*parts: Any) -> str:
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(f"{part.dtype.str}{part.shape}".encode())
            total.update(np.ascontiguousarray(part).data)
        else:
            total.update(repr(part).encode())
    return f"sha256:{total.hexdigest()}"
