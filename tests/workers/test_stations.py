"""Stations are found once on the stored surface."""

from typing import Any

import numpy as np
import pytest

from afterslip.archive import StationTable, SurfaceInterpolator
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_workers.engines.viscoelastic import solving


def test_stations_are_sought_once_for_a_campaign(broken_ground, monkeypatch):
    sought = []

    class Counted(SurfaceInterpolator):
        def weights(self, x, y, names=None):
            sought.append(len(x))
            return super().weights(x, y, names)

    monkeypatch.setattr(solving, "SurfaceInterpolator", Counted)
    unprepared: Any = None
    ready = solving._Ready(broken_ground, unprepared, two_sided(broken_ground))
    two = StationTable(["a", "b"], np.array([1e4, -3e4]), np.array([5e3, 2e4]))
    three = StationTable(["a", "b", "c"], np.zeros(3), 1e4 * np.arange(3.0))
    nodes, weights = ready.stations("c1", two)
    xy = broken_ground.mesh.nodes[ready.trace.nodes[nodes], :2]
    place = np.einsum("sk,skc->sc", weights, xy)
    assert place == pytest.approx(np.column_stack([two.x, two.y]), abs=1e-6)
    assert ready.stations("c1", two)[0] is nodes
    assert len(ready.stations("c2", three)[0]) == 3
    assert sought == [2, 3]
