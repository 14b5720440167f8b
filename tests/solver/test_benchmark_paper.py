"""The comparison with the published algorithms measures what it says."""

from __future__ import annotations

import pytest

from afterslip_solver.benchmarks import paper
from afterslip_solver.model import SolverSettings


@pytest.mark.slow
def test_every_figure_has_its_peer_and_ours_needs_less_work(small):
    model = small.box_model((4, 4, 4))
    slip = {"main": small.patch_slip(model.faults["main"])}
    found = {
        item["metric"]: item
        for item in paper.records(model, slip, SolverSettings(), "cpu")
    }
    assert {
        "preconditioner_cost_vs_paper",
        "paper_initial_error_dmd",
        "paper_predictor_memory_gb",
        "paper_step_per_function_s_dmd",
        "our_step_per_function_s_galerkin",
        "our_curve_30d_s",
    } <= set(found)
    for item in found.values():
        assert item["value"] > 0.0
        assert item["note"]
    # these are counted, so a busy machine cannot change them
    assert found["preconditioner_products_vs_paper"]["value"] < 0.8
    assert found["four_steps_iterations_multigrid"]["value"] > 1.3
    errors = [
        found[f"paper_initial_error_{name}"]["value"]
        for name in ("dmd", "adams_bashforth")
    ]
    assert errors[0] < 0.3 * errors[1]
