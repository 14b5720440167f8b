"""One group over two and four GPUs gives what one GPU gives."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.backend import BackendError
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.model import SolverSettings
from afterslip_solver.parallel import (
    DistributedModel,
    ProcessRankGroup,
    gpu_rank_group,
)

pytestmark = pytest.mark.gpu


def by_nccl(size):
    """Ranks that sum nothing in each other's memory."""
    from afterslip_solver.backend.cuda import nccl

    opening = partial(nccl.open_rank, peer_memory=False)
    return ProcessRankGroup(size, opening, {nccl.UNIQUE: lambda ids: [ids[0]] * size})


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
