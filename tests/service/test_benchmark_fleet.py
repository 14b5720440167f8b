"""The benchmark of several workers sets each number against one."""

from __future__ import annotations

from pathlib import Path

from afterslip_service.benchmarks import fleet


def test_efficiency_is_the_share_of_ideal_speed(monkeypatch):
    spans = {1: 8.0, 4: 2.5}

    def run(spec, base, out, count, groups, timeout_s):
        return fleet._Run(
            spans[count] + 1.0, spans[count], 0.5, groups, 100, {"solving": 0.4}
        )

    monkeypatch.setattr(fleet, "_run", run)
    here = Path()
    found = {r["metric"]: r for r in fleet.records({}, here, here, (1, 4), 16)}
    assert found["fleet_4_efficiency"]["value"] == 8.0 / (4 * 2.5)
    assert found["fleet_4_efficiency"]["baseline"] == 0.95
    assert found["fleet_4_wall_s"]["baseline"] == 9.0 / 4
    note = found["fleet_4_group_s"]["note"]
    assert "16 groups on 4 workers" in note
    assert "solving 0.4 s" in note
