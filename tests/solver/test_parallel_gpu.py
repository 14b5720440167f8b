"""One group over two and four GPUs gives what one GPU gives."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_parallel import refined

from afterslip_common.terms import YEAR
from afterslip_solver.backend import BackendError
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.greens.nested_guess import Solutions
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import coarsened
from afterslip_solver.model import SolverSettings
from afterslip_solver.parallel import (
    DistributedModel,
    PartNestedGuess,
    ProcessRankGroup,
    gpu_rank_group,
)

pytestmark = pytest.mark.gpu


def opened(size, opening):
    from afterslip_solver.backend.cuda import nccl

    if nccl.device_count() < size:
        raise BackendError("too few GPUs")
    return ProcessRankGroup(size, opening, {nccl.UNIQUE: lambda ids: [ids[0]] * size})


def by_nccl(size):
    """Ranks that sum nothing in each other's memory."""
    from afterslip_solver.backend.cuda import nccl

    return opened(size, partial(nccl.open_rank, peer_memory=False))


def open_refused(rank, size, ask):
    """Open a rank of which the last may not open the others' memory."""
    from afterslip_solver.backend.cuda import nccl

    runtime = import_module("cupy").cuda.runtime
    if rank == size - 1:

        def refuse(*_):
            raise runtime.CUDARuntimeError(1)

        runtime.ipcOpenMemHandle = refuse
    return nccl.open_rank(rank, size, ask)


def summed(endpoint):
    """Whether sums go through the GPUs' own memory, and sums of ranks and numbers."""
    communicator, xp = endpoint.communicator, endpoint.backend.xp
    few = xp.zeros(8) + communicator.rank + 1
    most, many = few.copy(), xp.zeros(5000) + communicator.rank + 1
    communicator.all_reduce(few)
    communicator.all_reduce(many)
    communicator.maximise(most)
    own = communicator._reduction is not None
    return own, *({float(one) for one in v.get()} for v in (few, many, most))


@pytest.mark.parametrize(
    ("group", "direct"),
    [
        (gpu_rank_group, True),
        (by_nccl, False),
        (partial(opened, opening=open_refused), False),
    ],
)
def test_all_ranks_sum_by_nccl_if_one_cannot_open_memory(group, direct):
    try:
        ranks = group(2)
    except BackendError as error:
        pytest.skip(str(error))
    try:
        found = ranks.call(summed, [()] * 2, {})
    finally:
        ranks.close()
    assert found == [(direct, {3.0}, {3.0}, {2.0})] * 2


@pytest.fixture(
    scope="module", params=[(2, gpu_rank_group), (2, by_nccl), (4, gpu_rank_group)]
)
def ranks(request):
    size, group = request.param
    try:
        ranks = group(size)
    except BackendError as error:
        pytest.skip(str(error))
    yield ranks
    ranks.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"scheme": "polynomial"},
        {"scheme": "shift_invert"},
        {"integrator": "stepping", "step": YEAR / 4},
    ],
)
def test_curves_agree_with_one_cpu(small, ranks, changes):
    model = small.box_model((8, 8, 4))
    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(times=(0.0, YEAR), until=YEAR, tolerance=1e-10, **changes)
    trace = model.surface.nodes
    whole = prepare(model, settings, "cpu").solve(slip, trace)
    parts = DistributedModel(model, settings, ranks).solve(slip, trace)
    assert parts.outcome == "converged"
    assert parts.solves == whole.solves
    times = np.array([0.0, 0.1 * YEAR, YEAR])
    found, expected = (evaluate_curve(result, times) for result in (parts, whole))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=1e-7 * scale)
    for one, other in zip(parts.history, whole.history, strict=True):
        assert abs(one["iterations"] - other["iterations"]) <= 1


def test_guesses_come_from_the_mesh_that_was_refined(small, ranks):
    fine = refined(small.box_model((4, 4, 4)), small.held_sides)
    coarse = coarsened(fine, restoring_force)
    assert coarse is not None
    on_coarse, on_fine = (
        small.patch_slip(model.faults["main"]) for model in (coarse, fine)
    )
    settings = SolverSettings(times=(0.0, YEAR), until=YEAR, tolerance=1e-10)
    whole = DistributedModel(fine, settings, ranks)
    without = whole.solve(on_fine, fine.surface.nodes)
    parts = whole.beside(coarse, settings, nested=True)
    keep = Solutions()
    parts.solve(on_coarse, coarse.surface.nodes, keep=keep)
    guesses = PartNestedGuess(parts, whole).guesses(keep)
    found = whole.solve(on_fine, fine.surface.nodes, guesses=guesses)
    assert found.outcome == "converged"
    assert found.iterations < without.iterations
    times = np.array([0.0, 0.1 * YEAR, YEAR])
    here, there = (evaluate_curve(result, times) for result in (found, without))
    np.testing.assert_allclose(here, there, atol=1e-6 * np.abs(there).max())
