"""The benchmark of elastic solves stands beside solvers that find the same."""

from __future__ import annotations

import numpy as np

from afterslip_solver.benchmarks import bandwidth, solve
from afterslip_solver.krylov import pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import build


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
    names = "cpu_iteration_ms", "cpu_iteration_matrix_ms", "cpu_iteration_double_ms"
    for iteration in (found[name] for name in names):
        assert (iteration["baseline"] or 0.0) > 0.0
        assert iteration["ratio"] is not None
        assert np.isfinite(iteration["ratio"])


def test_an_iteration_with_a_matrix_finds_the_same(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    cycle, f = build(k), np.random.default_rng(0).standard_normal(k.shape) * k.free
    found = pcg(k, cycle, f)
    with_matrix = bandwidth.assembled(k, cycle)
    other = pcg(*with_matrix, f)
    assert (found.precision, other.precision) == ("mixed", "mixed")
    assert found.iterations == other.iterations
    size = np.abs(found.values).max()
    np.testing.assert_allclose(other.values, found.values, atol=1e-6 * size)
    own = bandwidth.moved_bytes(k, cycle, "mixed")
    assert 2.0 * own < bandwidth.moved_bytes(*with_matrix, "mixed")
    # the first is as it was
    np.testing.assert_array_equal(pcg(k, cycle, f).values, found.values)
