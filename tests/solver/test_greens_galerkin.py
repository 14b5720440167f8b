"""Galerkin guesses stay good for as long as a march lasts."""

from __future__ import annotations

import numpy as np

from afterslip_solver.greens.predictor import Galerkin


def test_a_full_basis_keeps_what_increments_have_in_common(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    rng = np.random.default_rng(6)
    main = rng.standard_normal(k.shape) * k.free
    predictor = Galerkin(k, size=4)
    f = np.empty_like(main)
    for step in range(12):
        increment = (1.0 - 0.05 * step) * main
        increment += 1e-4 * rng.standard_normal(k.shape) * k.free
        k.apply(increment, f)
        guess = predictor.guess(f)
        if step:
            error = np.linalg.norm(guess - increment) / np.linalg.norm(increment)
            # nothing foretells the random part
            assert error < 5e-4
        predictor.learn(increment)
