"""Several GPUs of this host on one model."""

from __future__ import annotations

from functools import partial

from afterslip_solver.array_cache import ArrayCache
from afterslip_solver.backend import BackendError
from afterslip_solver.model import Model, SolverSettings
from afterslip_solver.parallel.distributed_model import DistributedModel
from afterslip_solver.parallel.processes import ProcessRankGroup


def gpu_rank_group(size: int, deterministic: bool = False) -> ProcessRankGroup:
    """Start one process on each of the first ``size`` visible GPUs.

    Parameters
    ----------
    deterministic : see `backend.get`.

    Raises
    ------
    BackendError
        If fewer are visible, or what they need is not installed.
    """
    try:
        from afterslip_solver.backend.cuda import nccl
    except ImportError as error:
        message = "CuPy is not installed (the extra 'gpu')"
        raise BackendError(message) from error
    count = nccl.device_count()
    if count < size:
        message = f"{size} GPUs are asked for and {count} are visible"
        raise BackendError(message)
    answers = {nccl.UNIQUE: lambda ids: [ids[0]] * len(ids)}
    opening = partial(nccl.open_rank, deterministic=deterministic)
    return ProcessRankGroup(size, opening, answers)


def prepare_on_gpus(
    model: Model, settings: SolverSettings, gpus: int, cache: ArrayCache | None = None
) -> DistributedModel:
    """Check a model and set it up in parts on several GPUs; see `DistributedModel`."""
    ranks = gpu_rank_group(gpus, settings.deterministic)
    return DistributedModel(model, settings, ranks, cache=cache)
