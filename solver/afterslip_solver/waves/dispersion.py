"""Speed of plane waves on the voxels, and the longest step, from the symbol."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_solver.model import Float
from afterslip_solver.waves.element import Scheme, symbol

# of the limit, as the table has it
_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class PhaseError:
    """Relative errors of the phase speed over all directions.

    Attributes
    ----------
    s_worst, s_rms : of both S waves, at points per S wavelength.
    p_worst : of P waves, at as many points per P wavelength.
    """

    s_worst: float
    s_rms: float
    p_worst: float


def courant(vp_vs: float, scheme: Scheme) -> float:
    """Largest vp dt/h of leapfrog in one material: 2 vp over the highest frequency."""
    axis = np.linspace(0.0, np.pi, 33)
    theta = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    stiffness = symbol(theta, vp_vs**2 - 2.0, 1.0, scheme)
    return float(2.0 * vp_vs / np.sqrt(np.linalg.eigvalsh(stiffness).max()))


def phase_error(
    points: float, vp_vs: float, scheme: Scheme, share: float = _SHARE
) -> PhaseError:
    """Errors of the phase speed, of space and of steps together.

    Parameters
    ----------
    points : voxels per wavelength. share : of the step over its limit.
    """
    dt = share * courant(vp_vs, scheme) / vp_vs
    ways = directions()
    stiffness = symbol(2 * np.pi / points * ways, vp_vs**2 - 2.0, 1.0, scheme)
    squares, shapes = np.linalg.eigh(stiffness)
    exact = np.sqrt(np.maximum(squares, 0.0))
    omega = 2.0 / dt * np.arcsin(np.minimum(1.0, 0.5 * dt * exact))
    along = np.abs(np.einsum("nij,ni->nj", shapes, ways)).argmax(axis=1)
    is_p = along[:, None] == np.arange(3)
    k = 2 * np.pi / points
    s_error = omega[~is_p] / k - 1.0
    p_error = omega[is_p] / (k * vp_vs) - 1.0
    return PhaseError(
        s_worst=float(np.abs(s_error).max()),
        s_rms=float(np.sqrt(np.mean(s_error**2))),
        p_worst=float(np.abs(p_error).max()),
    )


def directions(n: int = 2000) -> Float:
    """(n + 3, 3) unit vectors: evenly over the sphere, and an axis and diagonals."""
    place = np.arange(n) + 0.5
    around, z = np.pi * (1 + 5**0.5) * place, 1 - 2 * place / n
    ring = np.sqrt(1 - z**2)
    even = np.stack([ring * np.cos(around), ring * np.sin(around), z], axis=1)
    special = np.array([[1.0, 0, 0], [1, 1, 0], [1, 1, 1]])
    special /= np.linalg.norm(special, axis=1, keepdims=True)
    return np.vstack([even, special])
