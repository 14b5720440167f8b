"""Memory, before anything is allocated: what a model needs against what is free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from afterslip.error_class import ErrorClass
from afterslip_solver.greens.time_plan import TimePlan, plan_time
from afterslip_solver.memory import (
    Estimate,
    MemoryShortageError,
    check,
    estimate,
)
from afterslip_solver.model import Model, SolverSettings
from afterslip_workers.errors import TaskError
from afterslip_workers.machine.device import graphics, has_context, trim
from afterslip_workers.machine.free import free_on_gpu, free_on_host

# a curve that needs more grows into memory that was not estimated
LIKELY_MODES = 16
# what CUDA, its libraries and our kernels take of a GPU before the first array
CONTEXT = 600 << 20
# parts differ in size, and hold nodes on their cuts several times
UNEVEN = 1.1


def require(
    model: Model,
    settings: SolverSettings,
    backend: str,
    gpus: int = 1,
    make_room: Callable[[], None] = lambda: None,
    *,
    compared: bool = False,
) -> Estimate:
    """Refuse a model that cannot be solved in the memory that is free.

    Parameters
    ----------
    backend : "gpu", "cpu", or "auto" for a GPU where there is one.
    gpus : how many share the model.
    make_room : called where too little is free; lets go what this process holds and
        could do without.
    compared : whether a coarser model is solved too, for the error of the mesh.

    Raises
    ------
    TaskError
        Class ``no_memory``, with what is needed, what is free and what would help.
    """
    chosen = _chosen(backend)
    needed = predict_memory(model, settings, chosen, gpus, compared=compared)
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


def fits_twice(needed: Estimate, backend: str, gpus: int = 1) -> bool:
    """Say whether two groups can be solved at a time on a GPU.

    Parameters
    ----------
    needed : what `require` found, of a model that is set up now.
    """
    if _chosen(backend) != "gpu" or gpus > 1:
        return False
    free = _free("gpu", gpus)
    return free is not None and free >= needed.beside


def room(model: Model, settings: SolverSettings, backend: str, gpus: int = 1) -> float:
    """Return how many times larger a model may be than this one; infinite: unknown.

    The coarser model of the estimate of its error is counted.

    Parameters
    ----------
    gpus : how many share the model.
    """
    chosen = _chosen(backend)
    free = _free(chosen, gpus)
    if free is None:
        return np.inf
    return free / predict_memory(model, settings, chosen, gpus, compared=True).needed


def _chosen(backend: str) -> str:
    """Return "gpu" or "cpu" for "auto" too."""
    if backend != "auto":
        return backend
    return "gpu" if graphics() else "cpu"


def _free(backend: str, gpus: int) -> int | None:
    """Bytes that the arrays of a model may take here; None where nobody knows."""
    trim()
    if backend != "gpu":
        return free_on_host()
    free = free_on_gpu(gpus)
    if free is None or has_context():
        return free
    return max(free - CONTEXT, 0)


def likely_modes(plan: TimePlan, settings: SolverSettings, backend: str) -> int:
    """Return how many modes memory is asked for; what a GPU takes is not compared."""
    most = min(settings.max_modes, LIKELY_MODES)
    if backend == "gpu" or plan.scheme not in ("polynomial", "shift_invert"):
        return most
    return min(most, plan.modes(settings.time_tolerance))


def predict_memory(
    model: Model,
    settings: SolverSettings,
    backend: str,
    gpus: int = 1,
    *,
    compared: bool = False,
) -> Estimate:
    """Return the memory that groups of a model will need on each GPU that shares it."""
    materials = model.materials
    creeping = [np.isfinite(branch.viscosity) for branch in materials.branches]
    count = np.sum(creeping, axis=0)
    plan = plan_time(materials.rates, settings)

    def share(count: int) -> int:
        return int(count / gpus * (1.0 if gpus == 1 else UNEVEN))

    return estimate(
        unknowns=share(3 * len(model.mesh.nodes)),
        elements=share(len(model.mesh.elements)),
        # parts have as many elements, but perhaps not of those that creep
        viscoelastic=min(share(len(materials.mu)), int((count > 0).sum())),
        modes=likely_modes(plan, settings, backend),
        backend=backend,
        scheme=plan.scheme,
        further_rows=int(np.maximum(count - 1, 0).sum()),
        time_tolerance=settings.time_tolerance,
        predictor=settings.predictor,
        span=plan.span,
        compared=compared,
    )
