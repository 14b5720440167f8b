"""What a campaign will need, before anything of it is built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from afterslip.physics.viscoelastic.elements import elements
from afterslip.physics.viscoelastic.sizing import sized
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.schemas import earth
from afterslip.schemas.earth import Material
from afterslip.spec.inputs import Inputs
from afterslip_common.terms import KM
from afterslip_solver.greens.time_plan import plan_time
from afterslip_solver.memory import estimate
from afterslip_solver.rheology import Branch, RelaxationRates, merged
from afterslip_workers.engines.viscoelastic import trial as trials
from afterslip_workers.engines.viscoelastic.preflight import UNEVEN, likely_modes
from afterslip_workers.engines.viscoelastic.settings import settings_of

# components of the displacement at the nodes of a large second-order mesh, for each
# element: with T tetrahedra, T/5.6 vertices and an edge for each 0.85 T, 3 (V + E) / T
UNKNOWNS = 4.1
# a trial mesh is coarsened until it has about so many elements
TRIAL = 40_000.0


def plan(
    spec: ViscoelasticCampaign,
    inputs: Inputs,
    mesh_bytes: int | None,
    backend: str,
    *,
    trial: bool = False,
) -> dict[str, Any]:
    """Return sizes and memory of a campaign; see `afterslip_workers.entry.plan`.

    Elements are counted as `elements` does, from the volumes and the sizes asked for:
    meshes had 0.8 to 3 times as many, and five times where the bottom of a layer
    grazes an edge of a curved fault. A trial mesh, of the same geometry but coarser
    sizes, says by how much here.
    """
    model = sized(spec.model, inputs, spec.grids)
    parts = elements(model, inputs, mesh_bytes)
    count, factor = sum(parts.values()), 1.0
    tried = None
    if trial and model.mesh.size is not None:
        tried = _tried(model, inputs, count)
        factor = tried.get("n_elements", 1.0) / max(tried.get("expected", 1.0), 1.0)
    count *= factor
    return {
        "elements": int(count),
        "parts": {cause: int(number * factor) for cause, number in parts.items()},
        "unknowns": int(UNKNOWNS * count),
        "memory": _memory(spec, count, backend),
        "trial": tried,
        "mesh": _mesh(model),
    }


def _mesh(model: earth.Model) -> dict[str, Any] | None:
    """Return the sizes of the mesh, in km, after it is refined."""
    size, refine = model.mesh.size, model.mesh.refine
    if size is None:
        return None
    halved = 0.5**refine
    return {
        "fault": size.fault * halved,
        "far": size.far * halved,
        "growth": size.growth * halved,
        "ends": size.ends,
    }


def _tried(given: earth.Model, inputs: Inputs, count: float) -> dict[str, Any]:
    """Mesh the model at coarser sizes, and compare with what was expected of those."""
    size = given.mesh.size
    assert size is not None  # noqa: S101 - asked by the caller
    coarser = max((count / TRIAL) ** (1.0 / 3.0), 1.0)
    sizes = size.model_copy(
        update={"fault": size.fault * coarser, "far": size.far * coarser}
    )
    mesh = given.mesh.model_copy(update={"size": sizes, "refine": 0})
    model = given.model_copy(update={"mesh": mesh})
    expected = sum(elements(model, inputs).values())
    facts = trials.make(model, inputs)
    if "failed" in facts:
        # at the sizes asked for it may be possible
        return {"coarser": coarser, **facts}
    return {
        "coarser": coarser,
        "expected": int(expected),
        "n_elements": facts["n_elements"],
        "quality": facts["quality"],
        "notes": facts["notes"],
    }


def _memory(spec: ViscoelasticCampaign, count: float, backend: str) -> dict[str, Any]:
    """Return bytes on each device at most: as if every element could creep."""
    bodies = [*spec.model.layers, *spec.model.bodies]
    settings = settings_of(spec.times, spec.solver)
    scheme = plan_time(_rates(bodies), settings)
    mesh, gpus = spec.model.mesh, spec.solver.gpus
    # an imported mesh that is not refined has none to compare with
    comparable = mesh.file is None or mesh.refine > 0
    share = count / gpus * (1.0 if gpus == 1 else UNEVEN)
    creeping = any(body.rheology is not None for body in bodies)
    laws = [body.rheology.law for body in bodies if body.rheology is not None]
    further = max((law.arrays(np.ones(1))[0].shape[1] for law in laws), default=1) - 1
    found = estimate(
        unknowns=int(UNKNOWNS * share),
        elements=int(share),
        viscoelastic=int(share) if creeping else 0,
        modes=likely_modes(scheme, settings, backend),
        backend=backend,
        scheme=scheme.scheme,
        further_rows=int(share) * further,
        time_tolerance=settings.time_tolerance,
        predictor=settings.predictor,
        span=scheme.span,
        compared=spec.solver.space_error and comparable,
    )
    least = found
    if creeping:
        least = replace(found, creep=0)
    return {
        "backend": backend,
        "bytes": found.needed,
        # whatever creeps, this much is needed
        "least_bytes": least.needed,
        "parts": found.parts,
        "scheme": scheme.scheme,
    }


def _rates(bodies: list[Material]) -> RelaxationRates:
    """Rates of layers and bodies, in place of those of elements."""
    mu = np.array([body.rho * (body.vs * KM) ** 2 for body in bodies])
    own = [Branch(np.full(len(mu), np.inf))]
    for k, body in enumerate(bodies):
        if body.rheology is not None:
            found = body.rheology.law.arrays(mu[k : k + 1])
            shape = len(mu), found[0].shape[1]
            viscosity, modulus = np.full(shape, np.inf), np.zeros(shape)
            viscosity[k], modulus[k] = found[0][0], found[1][0]
            own = list(merged(own, viscosity, modulus))
    return RelaxationRates.of(mu, own)
