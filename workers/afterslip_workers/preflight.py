"""Memory, before anything is allocated: what a model needs against what is free."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from afterslip_solver.greens.prepared import POLYNOMIAL_UP_TO
from afterslip_solver.memory import (
    Estimate,
    MemoryShortageError,
    Scheme,
    check,
    estimate,
)
from afterslip_solver.model import Model, SolverSettings
from afterslip_workers.device import graphics
from afterslip_workers.errors import TaskError

# a curve that needs more grows into memory that was not foretold
_LIKELY_MODES = 16
# parts differ in size, and hold nodes on their cuts several times
_UNEVEN = 1.1


def require(
    model: Model, settings: SolverSettings, backend: str, gpus: int = 1
) -> Estimate:
    """Refuse a model that cannot be solved in the memory that is free.

    Parameters
    ----------
    backend : "gpu", "cpu", or "auto" for a GPU where there is one.
    gpus : how many share the model.

    Raises
    ------
    TaskError
        Class ``no_memory``, with what is needed, what is free and what would help.
    """
    chosen = backend if backend != "auto" else "gpu" if graphics() else "cpu"
    needed = foretell(model, settings, chosen, gpus)
    free = free_on_gpu() if chosen == "gpu" else free_on_host()
    if free is not None:
        try:
            check(needed, free)
        except MemoryShortageError as error:
            raise TaskError("no_memory", str(error)) from error
    return needed


def foretell(
    model: Model, settings: SolverSettings, backend: str, gpus: int = 1
) -> Estimate:
    """Return the memory that groups of a model will need on each GPU that shares it."""
    materials = model.materials
    flowing = np.isfinite(materials.viscosity)
    kelvin = materials.kelvin_viscosity

    def share(count: int) -> int:
        return int(count / gpus * (1.0 if gpus == 1 else _UNEVEN))

    return estimate(
        unknowns=share(3 * len(model.mesh.nodes)),
        elements=share(len(model.mesh.elements)),
        # parts have as many elements, but perhaps not of those that creep
        viscoelastic=min(share(len(flowing)), int(flowing.sum())),
        modes=min(settings.max_modes, _LIKELY_MODES),
        backend=backend,
        scheme=_scheme(model, settings),
        kelvin=0 if kelvin is None else int(np.isfinite(kelvin).sum()),
    )


def _scheme(model: Model, settings: SolverSettings) -> Scheme:
    materials = model.materials
    flowing = np.isfinite(materials.viscosity)
    until = max(settings.until, *settings.times, 0.0)
    if until == 0.0 or not flowing.any():
        return "elastic"
    if settings.integrator == "stepping":
        return "stepping"
    shortest = float(materials.relaxation_time[flowing].min())
    return "shift_invert" if until > POLYNOMIAL_UP_TO * shortest else "polynomial"


def free_on_host() -> int:
    """Bytes that this process can still get, of the machine and of its cgroup."""
    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        limit = int((group / "memory.max").read_text())
        free = min(free, limit - int((group / "memory.current").read_text()))
    return max(free, 0)


def free_on_gpu() -> int | None:
    """Bytes free on the GPU of this process, None if nobody can be asked.

    The driver's tool is asked: it needs no CUDA context, which would itself take
    half a gigabyte.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    which = ["--id", visible] if visible else []
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            [*query, *which], capture_output=True, text=True, timeout=10, check=True
        ).stdout
        return int(answer.splitlines()[0]) << 20
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
