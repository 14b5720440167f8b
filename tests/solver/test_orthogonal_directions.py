"""Directions of Lanczos stay orthogonal, and are made so twice only where needed."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.greens.spectral import Spectral
from afterslip_solver.model import SolverSettings

SETTINGS = SolverSettings(times=(0.0, YEAR), until=YEAR)


@pytest.mark.parametrize(("part", "passes"), [(1.0, 1), (1e-7, 2)])
def test_directions_stay_orthogonal_to_those_before(small, monkeypatch, part, passes):
    prepared = prepare(small.box_model((4, 4, 4)), SETTINGS, "cpu")
    spectral, creep = prepared.relaxation.integrator, prepared.relaxation.creep
    assert isinstance(spectral, Spectral)
    rng = np.random.default_rng(0)
    basis = []
    for _ in range(3):
        q = rng.standard_normal(creep.shape)
        if basis:
            spectral._orthogonalise(q, basis)
        basis.append(q / creep.norm(q))
    combined = []
    combine = spectral.backend.combine

    def counted(*given):
        combined.append(1)
        combine(*given)

    monkeypatch.setattr(type(spectral.backend), "combine", staticmethod(counted))
    other = rng.standard_normal(creep.shape)
    r = part * other / creep.norm(other) + 2.0 * basis[0] - 0.5 * basis[2]
    alpha, left = spectral._orthogonalise(r, basis)
    assert len(combined) == passes
    np.testing.assert_allclose(alpha, -0.5, atol=0.5 * part)
    np.testing.assert_allclose(left, part, rtol=0.05)
    assert np.abs(creep.energy_dots(basis, r)).max() < 1e-14 * left.min()
