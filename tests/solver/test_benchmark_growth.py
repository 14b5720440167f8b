"""The benchmark of growing models sets each size against the right one."""

from __future__ import annotations

from afterslip_solver.benchmarks import growth
from afterslip_solver.model import SolverSettings


def test_sizes_are_set_against_the_smallest_and_times_against_a_full_one(
    small, monkeypatch
):
    models = [small.box_model((n, n, 4)) for n in (4, 6, 8)]
    monkeypatch.setattr(growth, "FULL", 3 * len(models[1].mesh.nodes))
    found = []
    for k, model in enumerate(models):
        slip = {"main": small.patch_slip(model.faults["main"])}
        settings = SolverSettings()
        found += growth.records(model, slip, settings, "cpu", found, lanes=k == 0)
    iterations = [r for r in found if r["metric"] == "growth_iterations"]
    times = [r for r in found if r["metric"] == "growth_ns_per_unknown"]
    assert [r["baseline"] for r in iterations] == [
        None,
        *2 * [iterations[0]["value"]],
    ]
    assert [r["baseline"] for r in times] == [None, None, times[1]["value"]]
    lanes = {r["metric"]: r["value"] for r in found if r["metric"].startswith("lanes")}
    assert set(lanes) == {f"lanes_{n}_s_per_function" for n in (1, 2, 4, 8, 16)}
    assert all(value > 0.0 for value in lanes.values())
