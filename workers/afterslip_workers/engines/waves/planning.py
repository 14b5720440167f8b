"""What a campaign of waves will need, before its voxels are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip.physics.waves.checks import plan_voxels, samples, surface_step
from afterslip.physics.waves.spec import WaveCampaign
from afterslip.spec.inputs import Inputs
from afterslip_solver.backend.waves import bytes_needed
from afterslip_solver.waves.dispersion import courant
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.fastest import SHARE

# sides that springs hold, over the farthest edge of a fault: offsets are 3 % wrong then
ROOM = 2.4
# displacement and velocity of four lanes, three components, in FP32
_RECORDED = 2 * 4 * 12


def plan(spec: WaveCampaign, inputs: Inputs, backend: str) -> dict[str, Any]:
    """Return sizes, steps and memory; see `afterslip_workers.entry.plan`.

    Steps are those that are stable in one material with the largest ratio of speeds;
    the voxels' own highest frequency, found when they are there, may allow longer ones.
    """
    waves, cut = spec.waves, plan_voxels(spec, inputs)
    nodes = tuple(int(n) + 1 for n in cut.voxels)
    real = np.float32 if waves.precision == "fp32" else np.float64
    needed = bytes_needed(
        (nodes[0], nodes[1], nodes[2]), real, waves.attenuation is not None, waves.gpus
    )
    needed += _surface(spec, cut.h, nodes)
    limit = SHARE * courant(cut.fastest / cut.slowest, SCHEMES[waves.scheme])
    limit *= cut.h / cut.fastest
    sampling = float(waves.sampling)
    longest = min(limit, sampling if waves.step is None else float(waves.step))
    inner = int(np.ceil(sampling / longest * (1.0 - 1e-12)))
    held = waves.absorbing.kind == "spring_dashpot"
    memory = {
        "backend": backend,
        "bytes": needed,
        "least_bytes": needed,
        "parts": {"voxels": needed},
    }
    cause = "of model.domain at waves.frequency"
    return {
        "elements": int(cut.count),
        "parts": {cause: int(cut.count)},
        "unknowns": 3 * int(np.prod(np.array(nodes, dtype=float))),
        "memory": memory,
        "steps": inner * (samples(spec) - 1),
        # without springs nothing static is held, and sides are not felt in offsets
        "room": ROOM if held else 0.0,
        "trial": None,
        "mesh": None,
    }


def _surface(spec: WaveCampaign, h: float, nodes: tuple[int, ...]) -> int:
    """Bytes of the motion of the ground."""
    every = surface_step(spec, h)
    if not every:
        return 0
    points = -(-nodes[0] // every) * -(-nodes[1] // every)
    return _RECORDED * points * samples(spec)
