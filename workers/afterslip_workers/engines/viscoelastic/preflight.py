"""Memory, before anything is allocated: what a model needs against what is free."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from afterslip.error_class import ErrorClass
from afterslip_solver.greens.time_plan import plan_time
from afterslip_solver.memory import (
    Estimate,
    MemoryShortageError,
    check,
    estimate,
)
from afterslip_solver.model import Model, SolverSettings
from afterslip_workers.errors import TaskError
from afterslip_workers.machine import limit
from afterslip_workers.machine.device import graphics, has_context, trim

# a curve that needs more grows into memory that was not estimated
_LIKELY_MODES = 16
# what CUDA, its libraries and our kernels take of a GPU before the first array
CONTEXT = 600 << 20
# parts differ in size, and hold nodes on their cuts several times
_UNEVEN = 1.1


def require(
    model: Model,
    settings: SolverSettings,
    backend: str,
    gpus: int = 1,
    make_room: Callable[[], None] = lambda: None,
) -> Estimate:
    """Refuse a model that cannot be solved in the memory that is free.

    Parameters
    ----------
    backend : "gpu", "cpu", or "auto" for a GPU where there is one.
    gpus : how many share the model.
    make_room : called where too little is free; lets go what this process holds and
        could do without.

    Raises
    ------
    TaskError
        Class ``no_memory``, with what is needed, what is free and what would help.
    """
    chosen = backend if backend != "auto" else "gpu" if graphics() else "cpu"
    needed = predict_memory(model, settings, chosen, gpus)
    free = _free(chosen, gpus)
    if free is not None and free < needed.needed:
        make_room()
        free = _free(chosen, gpus)
    if free is not None:
        try:
            check(needed, free)
        except MemoryShortageError as error:
            raise TaskError(ErrorClass.NO_MEMORY, str(error)) from error
    return needed


def _free(backend: str, gpus: int) -> int | None:
    """Bytes that the arrays of a model may take here; None where nobody knows."""
    trim()
    if backend != "gpu":
        return free_on_host()
    free = free_on_gpu(gpus)
    if free is None or has_context():
        return free
    return max(free - CONTEXT, 0)


def predict_memory(
    model: Model, settings: SolverSettings, backend: str, gpus: int = 1
) -> Estimate:
    """Return the memory that groups of a model will need on each GPU that shares it."""
    materials = model.materials
    creeping = [np.isfinite(branch.viscosity) for branch in materials.branches]
    plan = plan_time(materials.rates, settings)

    def share(count: int) -> int:
        return int(count / gpus * (1.0 if gpus == 1 else _UNEVEN))

    return estimate(
        unknowns=share(3 * len(model.mesh.nodes)),
        elements=share(len(model.mesh.elements)),
        # parts have as many elements, but perhaps not of those that creep
        viscoelastic=min(share(len(materials.mu)), int(np.any(creeping, axis=0).sum())),
        modes=min(settings.max_modes, _LIKELY_MODES),
        backend=backend,
        scheme=plan.scheme,
        further_rows=sum(int(has.sum()) for has in creeping[1:]),
        time_tolerance=settings.time_tolerance,
        predictor=settings.predictor,
        span=plan.span,
    )


def free_on_host() -> int:
    """Bytes that this process can still get of machine, cgroup and its own limit."""
    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        most = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        free = min(free, most - used + _reclaimable(group))
    allowed = limit.of_child()
    if allowed is not None:
        free = min(free, allowed - int(psutil.Process().memory_info().rss))
    return max(free, 0)


def _reclaimable(group: Path) -> int:
    """Bytes of a cgroup that only remember files, and go when memory is wanted."""
    stat = dict(
        line.split() for line in (group / "memory.stat").read_text().splitlines()
    )
    return int(stat.get("active_file", 0)) + int(stat.get("inactive_file", 0))


def free_on_gpu(gpus: int = 1) -> int | None:
    """Bytes free on each GPU of this process, None if nobody can be asked.

    The driver's tool is asked: it needs no CUDA context, which would itself take
    half a gigabyte.

    Parameters
    ----------
    gpus : how many of those that it sees; the fullest one counts.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").replace(" ", "")
    chosen = ",".join(visible.split(",")[:gpus])
    which = ["--id", chosen] if chosen else []
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            [*query, *which], capture_output=True, text=True, timeout=10, check=True
        ).stdout
        return min(int(line) for line in answer.splitlines()[:gpus]) << 20
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
