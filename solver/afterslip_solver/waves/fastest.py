"""The highest frequency of the voxels, which limits the step."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.waves import WaveSteps
from afterslip_solver.model import Float
from afterslip_solver.waves.sides import Dampers

_STEPS = 30
# of the limit of leapfrog: Lanczos finds the highest frequency from below
SHARE = 0.95


def highest_frequency(steps: WaveSteps, mass: Float, held: Dampers) -> float:
    """Largest omega of K u = omega^2 M u by Lanczos, from four random vectors, rad/s.

    Parameters
    ----------
    mass : (n_node,) kg, 0 in air. held : springs are part of K.
    """
    xp = steps.xp
    root = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0.0)
    scale = xp.asarray(root.astype(steps.real))[None, :, None]
    rows, spring = (
        xp.asarray(held.rows),
        xp.asarray(held.spring)[:, None].astype(steps.real),
    )
    random = np.random.default_rng(1).standard_normal(
        (3, len(mass), LANES), dtype=np.float32
    )
    q = scale * xp.asarray(random)
    q /= _norm(xp, q)
    before: Any = xp.zeros_like(q)
    alpha, beta = np.zeros((_STEPS, LANES)), np.zeros((_STEPS, LANES))
    for step in range(_STEPS):
        w = _product(steps, scale * q, rows, spring)
        w *= scale
        alpha[step] = _host((w * q).sum(axis=(0, 1)))
        w -= xp.asarray(alpha[step].astype(steps.real)) * q
        if step:
            w -= xp.asarray(beta[step - 1].astype(steps.real)) * before
        size = _norm(xp, w)
        beta[step] = _host(size)
        before, q = q, w / size
    largest = [
        eigh_tridiagonal(alpha[:, lane], beta[:-1, lane], eigvals_only=True)[-1]
        for lane in range(LANES)
    ]
    return float(np.sqrt(max(largest)))


def _product(steps: WaveSteps, u: Any, rows: Any, spring: Any) -> Any:
    found = steps.force(u)
    flat, of = found.reshape(-1, LANES), u.reshape(-1, LANES)
    flat[rows] += spring * of[rows]
    return found


def _norm(xp: Any, w: Any) -> Any:
    return xp.sqrt((w * w).sum(axis=(0, 1)))


def _host(values: Any) -> Float:
    return np.asarray(values.get() if hasattr(values, "get") else values)
