"""The benchmark of elastic solves stands beside solvers that find the same."""

from __future__ import annotations

import numpy as np

from afterslip_solver.benchmarks import solve
from afterslip_solver.model import SolverSettings


def test_a_small_model_is_measured_beside_its_peers(small):
    model = small.box_model()
    slip = {"main": small.patch_slip(model.faults["main"])}
    found = {
        r["metric"]: r for r in solve.records(model, slip, SolverSettings(), "cpu")
    }
    assert "converged" in found["group_solve_s"]["note"]
    # block Jacobi needs several times the iterations
    assert (found["group_iterations"]["ratio"] or np.inf) < 0.5
    assert {"pyamg_solve_s", "direct_solve_s"} <= found.keys()
    assert found["group_memory_gb"]["value"] > 0.0
    iteration = found["cpu_iteration_ms"]
    assert (iteration["baseline"] or 0.0) > 0.0
    assert iteration["ratio"] is not None
    assert np.isfinite(iteration["ratio"])
